"""`zuno trade` about an account, in one process: documents, tables, files, and the exit codes of bad wishes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.wire.account_home import write_account_home
from zuno.doors.cli.main import run
from zuno.kernel.units import Millis
from zuno.settings import Settings
from zuno.wiring.application import Application

END = Millis(1_767_225_600_000)
Say = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    asyncio.run(write_account_home(folder))
    return folder


@pytest.fixture
def say(home: Path, capsys: pytest.CaptureFixture[str]) -> Say:
    def ask(*words: str) -> tuple[int, str]:
        code = run(words, lambda given: Application(Settings(home=home, recording="own")))
        return code, capsys.readouterr().out

    return ask


def test_every_table_says_whose_money_it_is(say: Say) -> None:
    for command in ("status", "positions", "orders", "fills", "trades", "ledger", "balance", "profit", "locks"):
        code, out = say("trade", command)
        assert code == 0, command
        assert out.startswith("PAPER · "), command
        assert "recorded" in out.splitlines()[1], command


def test_positions_as_a_document(say: Say) -> None:
    code, out = say("trade", "positions", "--json")
    (position,) = json.loads(out)["positions"]
    assert code == 0
    assert (position["stop"], position["target"], position["unrealised"]) == (58_900.0, 61_500.0, 10.0)
    assert sorted((position["stopOrder"], position["targetOrder"])) == sorted(position["orders"])


def test_a_picture_and_a_spreadsheet(say: Say, tmp_path: Path) -> None:
    code, out = say("trade", "performance", "--out", str(tmp_path / "equity.png"), "--json")
    assert code == 0
    assert json.loads(out)["maxDrawdownUsd"] > 0
    assert (tmp_path / "equity.png").read_bytes().startswith(b"\x89PNG")
    code, out = say("export", "trades", "--csv")
    assert code == 0
    assert [line.split(",")[14] for line in out.splitlines()] == ["exit_reason", "target", "stop"]
    code, out = say("export", "ledger", "--out", str(tmp_path / "ledger.csv"))
    assert code == 0
    rows = [line.split(",") for line in (tmp_path / "ledger.csv").read_text().splitlines()[1:]]
    for currency in ("USD", "KRW"):
        debits, credits = (sum(float(row[place] or 0) for row in rows if row[7] == currency) for place in (5, 6))
        assert debits == pytest.approx(credits)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("close", "trd_nothing"), 3),
        (("cancel", "nothing"), 3),
        (("set", "trd_nothing"), 2),
        (("set", "trd_nothing", "--stop", "1e"), 2),
        (("set", "trd_nothing", "--stop", "100"), 3),
        (("profit", "--by", "colour"), 2),
        (("fills", "--lines", "0"), 2),
        (("unlock", "luck"), 2),
        (("kill",), 2),
        (("mandate", "grant"), 2),
        (("mandate", "grant", "--symbol", "DOGE"), 2),
        (("mandate", "grant", "--for", "31d"), 3),
        (("mandate", "revoke"), 3),
        (("status", "--account", "a b"), 2),
        (("kill", "--yes", "--account", "LIVE"), 2),
    ],
)
def test_bad_wishes_have_exit_codes(say: Say, words: tuple[str, ...], code: int) -> None:
    assert say("trade", *words)[0] == code


LOOKS = ("status", "positions", "orders", "fills", "trades", "ledger", "balance", "profit", "locks")


def test_paper_is_the_homes_own_account(say: Say) -> None:
    for command in (*(("trade", look, "--json") for look in LOOKS), ("export", "trades"), ("export", "ledger")):
        code, own = say(*command)
        assert code == 0
        assert say(*command, "--account", "paper") == (0, own), command
        assert say(*command, "--account", "second") != (0, own), command
    for word in ("calibration", "vetoes", "evaluate", "pause", "stop"):
        code, out = say("trade", word, "--account", "paper", "--json")
        assert (code, json.loads(out)["account"]) == (0, "paper:recorded"), word
