"""`zuno config`, and what a settings file that cannot be used stops."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.wire.commands import Ran, run_zuno
from zuno.kernel.errors import UsageError
from zuno.settings import read_settings
from zuno.wiring.config import WatchedWallets

ADDRESS, OTHER = "0x" + "ab" * 20, "0x" + "cd" * 20


def broken(home: Path) -> Path:
    home.mkdir(exist_ok=True)
    (home / "zuno.toml").write_text("[lp]\nslippage_bps = 0\n[telegram]\nbot_token = '1:hunter2'\n")
    return home


def test_a_new_file_can_be_used_and_is_not_overwritten(tmp_path: Path) -> None:
    home = tmp_path / "home"
    written = run_zuno(home, "config", "init", "--json", ZUNO_SLIPPAGE_BPS="7", ZUNO_FRED_API_KEY="hunter2")
    assert written.code == 0
    assert (written.document["ok"], written.document["settings"]) == (True, 2)
    text = (home / "zuno.toml").read_text()
    assert "hunter2" not in text
    assert '\nfred_api_key = { env = "ZUNO_FRED_API_KEY" }\n' in text
    assert (home / "zuno.toml").stat().st_mode & 0o777 == 0o600
    assert run_zuno(home, "config", "init").code == 3
    checked = run_zuno(home, "config", "check", "--json")
    assert (checked.code, checked.document["ok"], checked.document["settings"]) == (0, True, 2)
    assert len(checked.document["notes"]) == 1  # the key's variable is not set any more
    shown = run_zuno(home, "config", "show", "--json", ZUNO_TICK_DRIFT="3", ZUNO_FRED_API_KEY="hunter2").document
    rows = {line["name"]: (line["value"], line["origin"]) for line in shown["settings"]}
    line = text.split("\n").index("slippage_bps = 7") + 1
    key = text.split("\n").index('fred_api_key = { env = "ZUNO_FRED_API_KEY" }') + 1
    assert rows == {
        "ZUNO_SLIPPAGE_BPS": ("7", f"zuno.toml:{line}"),
        "ZUNO_TICK_DRIFT": ("3", "environment"),
        "ZUNO_FRED_API_KEY": ("set", f"environment, over zuno.toml:{key}"),
    }


def test_a_broken_file_stops_a_command_with_one_sentence(tmp_path: Path) -> None:
    stopped = run_zuno(broken(tmp_path / "home"), "lp", "positions")
    assert stopped.code == 2
    assert "`zuno config check`" in stopped.err
    assert "hunter2" not in stopped.err + stopped.out
    assert stopped.err.count("\n") == 1


@pytest.mark.parametrize(("words", "code"), [("config check", 2), ("config init", 3), ("doctor", 5), ("version", 0)])
def test_what_mends_a_broken_file_runs(words: str, code: int, tmp_path: Path) -> None:
    ran: Ran = run_zuno(broken(tmp_path / "home"), *words.split())
    assert ran.code == code
    assert "hunter2" not in ran.err + ran.out


def test_another_file_is_checked_by_all_its_lines(tmp_path: Path) -> None:
    home, other = tmp_path / "home", tmp_path / "other.toml"
    home.mkdir()
    (home / "wallets.txt").write_text(f"{ADDRESS} cold\n{ADDRESS}\nnothing\n\n0x1\n")
    other.write_text(
        f"nope = 1\n[wallets]\nfile = 'wallets.txt'\nwatched_wallets = ['{ADDRESS}']\n[lp]\nslippage_bps = 0"
    )
    checked = run_zuno(home, "config", "check", str(other), "--json")
    assert checked.code == 2
    assert [fault.rpartition("line ")[2].partition(":")[0] for fault in checked.document["faults"]] == [
        "1",
        "6",
        "3",
        "5",
    ]
    assert run_zuno(home, "config", "check", str(tmp_path / "nowhere")).code == 2
    other.write_text(f"[wallets]\nfile = 'wallets.txt'\nwatched_wallets = ['{ADDRESS}']\n[lp]\nslippage_bps = 5")
    (home / "wallets.txt").write_text(f"{ADDRESS} cold\n{OTHER}\n")
    checked = run_zuno(home, "config", "check", str(other), "--json", ZUNO_SLIPPAGE_BPS="6")
    assert (checked.code, checked.document["wallets"]) == (0, 2)
    assert len(checked.document["notes"]) == 2  # the environment's setting, and a wallet of two lists
    other.write_text("[wallets]\nfile = 'gone.txt'")
    assert len(run_zuno(home, "config", "check", str(other), "--json").document["faults"]) == 1


def test_watched_wallets_follow_their_file(tmp_path: Path) -> None:
    file = tmp_path / "wallets.txt"
    (tmp_path / "zuno.toml").write_text(f"[wallets]\nfile = 'wallets.txt'\nwatched_wallets = ['hot={OTHER}']")
    wallets = WatchedWallets(read_settings(os.environ, tmp_path))
    for text in (None, "nonsense"):
        if text is not None:
            file.write_text(text)
        for _ in range(2):
            with pytest.raises(UsageError):
                wallets.read()
    file.write_text(f"{ADDRESS}, cold\n{OTHER}")
    assert wallets.read() == {ADDRESS: "cold", OTHER: "hot"}
    file.write_text("nonsense, for a while")
    assert wallets.read() == {ADDRESS: "cold", OTHER: "hot"}
    file.write_text("# nobody")
    assert wallets.read() == {OTHER: "hot"}
