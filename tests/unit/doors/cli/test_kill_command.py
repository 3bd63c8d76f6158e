"""`zuno trade kill`: locked before anything is opened, in a home that is empty, damaged or read-only."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.wire.account_home import write_account_home
from tests.wire.commands import run_process, run_zuno
from zuno.__main__ import _find_account, _lock_account
from zuno.adapters.kill_lock import KillLockFile
from zuno.doors.cli.main import run
from zuno.kernel.errors import DiskFull, Refused, Unavailable
from zuno.wiring import open_zuno


def test_a_kill_in_a_fresh_home_locks_and_touches_no_market(tmp_path: Path) -> None:
    home = tmp_path / "home"
    ran = run_process(home, "trade", "kill", "--yes", "--json")
    assert ran.code == 0
    assert (ran.document["positions"], ran.document["orders"]) == ([], [])
    assert [lock["protection"] for lock in ran.document["protections"]] == ["kill_switch"]
    assert not (home / "market").exists()
    assert [(account, said.split()[1]) for account, said in KillLockFile(home).list_kills()] == [("paper", "terminal")]


def test_a_kill_with_a_journal_that_cannot_be_read_still_locks(tmp_path: Path) -> None:
    asyncio.run(write_account_home(tmp_path))
    (tmp_path / "journal.db").write_bytes(b"not a database" * 400)
    ran = run_process(tmp_path, "trade", "kill", "--yes", "--json", ZUNO_RECORDING="own")
    assert ran.code in (4, 5)
    assert "LOCKED" in json.loads(ran.out)["error"]["message"]
    assert KillLockFile(tmp_path).why_locked("paper")


def test_a_lock_that_cannot_be_written_keeps_nobody_from_getting_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(home: str | None, account: str) -> None:
        raise DiskFull("no room")

    asyncio.run(write_account_home(tmp_path))
    monkeypatch.setenv("ZUNO_RECORDING", "own")
    words = ["trade", "kill", "--yes", "--json", "--home", str(tmp_path)]
    assert run(words, open_zuno, lock_account=fail) == 0
    locks = json.loads(capsys.readouterr().out)["protections"]
    assert ("kill_switch", "kill switch") in [(lock["protection"], lock["reason"]) for lock in locks]


def test_an_account_of_any_name_is_locked_before_anything_is_opened(tmp_path: Path) -> None:
    opened: list[bool] = []

    def open_home(home: str | None) -> Any:
        opened.append(KillLockFile(tmp_path).why_locked("second") is not None)
        raise Refused("opened")

    words = ["trade", "kill", "--yes", "--account", "second", "--home", str(tmp_path)]
    assert run(words, open_home, lock_account=_lock_account, find_account=_find_account) == 3
    assert opened == [True]


def test_a_named_account_with_money_in_it_is_asked_for_before_it_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SWISS_KEY", "k")
    monkeypatch.setenv("SWISS_SECRET", "s")
    said = '[accounts.swiss]\nvenues = ["bybit"]\nkey = { env = "SWISS_KEY" }\nsecret = { env = "SWISS_SECRET" }\n'
    (tmp_path / "zuno.toml").write_text(said, encoding="utf-8")
    (tmp_path / "zuno.toml").chmod(0o600)
    words = ["trade", "kill", "--yes", "--account", "swiss", "--home", str(tmp_path)]
    assert run(words, open_zuno, lock_account=_lock_account, find_account=_find_account) == 2
    assert "The word kill has to be typed" in capsys.readouterr().err
    assert KillLockFile(tmp_path).why_locked("swiss") is None


@pytest.mark.parametrize("setting", ["ZUNO_NO_SUCH_SETTING", "ZUNO_CHAIN_ID"])
def test_a_kill_waits_for_no_setting_that_cannot_be_read(tmp_path: Path, setting: str) -> None:
    ran = run_process(tmp_path, "trade", "kill", "--yes", "--account", "demo", **{setting: "nonsense"})
    assert ran.code == 2
    assert KillLockFile(tmp_path).why_locked("demo")


def test_a_lock_that_cannot_be_written_keeps_nobody_from_the_rest_of_the_kill(tmp_path: Path) -> None:
    opened: list[str | None] = []

    def fail(home: str | None, account: str) -> None:
        raise Unavailable("the disk is full")

    def open_home(home: str | None) -> Any:
        opened.append(home)
        raise Refused("opened")

    assert run(["trade", "kill", "--yes", "--home", str(tmp_path)], open_home, lock_account=fail) == 3
    assert opened == [str(tmp_path)]


@pytest.mark.parametrize(
    "words", [("--account", "LIVE", "--yes"), ("--account", "a b", "--yes"), ("--account", "live", "--yes"), ()]
)
def test_what_was_not_confirmed_or_is_no_account_is_not_locked(tmp_path: Path, words: tuple[str, ...]) -> None:
    """With money the word is typed, whatever `--yes` says."""
    assert run_process(tmp_path, "trade", "kill", *words).code == 2
    assert not KillLockFile(tmp_path).folder.exists()


def test_the_lock_is_shown_and_lifted_by_unlock(tmp_path: Path) -> None:
    asyncio.run(write_account_home(tmp_path))
    lock = KillLockFile(tmp_path)
    lock.lock("paper", "page")
    lock.lock("second", "page")

    def list_locks(account: str) -> list[str]:
        ran = run_zuno(tmp_path, "trade", "locks", "--json", "--account", account, ZUNO_RECORDING="own")
        return [found["protection"] for found in ran.document["protections"]]

    assert "kill_switch" in list_locks("paper")
    checks = run_zuno(tmp_path, "doctor", "--json", ZUNO_RECORDING="own").document["checks"]
    assert [line["state"] for line in checks if line["topic"] == "kill"] == ["warn"]
    assert run_zuno(tmp_path, "trade", "unlock", "cooldown", ZUNO_RECORDING="own").code == 0
    assert lock.why_locked("paper")
    assert run_zuno(tmp_path, "trade", "unlock", ZUNO_RECORDING="own").code == 0
    assert (lock.why_locked("paper"), bool(lock.why_locked("second"))) == (None, True)
    assert "kill_switch" not in list_locks("paper")


def test_a_home_that_is_killed_runs_no_order_of_a_command(tmp_path: Path) -> None:
    """The lock as another process wrote it, through the wiring of a whole home."""
    from zuno.settings import Settings
    from zuno.trading.execute.order_gate import OrderGate
    from zuno.wiring.application import Application

    async def read_locks(account: str) -> list[str]:
        zuno = Application(Settings(home=tmp_path, recording="own"))
        try:
            gate: OrderGate = await zuno._open_gate(account, lambda: 1_767_225_600_000)  # type: ignore[arg-type,return-value]
            context = await zuno._execution_context("sim")
            found = context.killed()
            return [str(lock.protection) for lock in await gate.locks()] + ([] if found is None else [found.why])
        finally:
            await zuno.close()

    asyncio.run(write_account_home(tmp_path))
    assert "kill_switch" not in asyncio.run(read_locks("paper:recorded"))
    (tmp_path / "kill.lock").write_text("second\n")
    for account, killed in (("paper:recorded:second", True), ("paper:recorded", False), ("demo", False)):
        locks = asyncio.run(read_locks(account))
        assert ("kill_switch" in locks, len(locks) > 0) == (killed, True)
