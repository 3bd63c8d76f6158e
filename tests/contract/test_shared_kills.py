"""Homes on one Postgres respect each other's kills of accounts at exchanges."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.trading.execute.test_kill_lock import KillableHarness
from zuno.adapters.kill_lock import KillLockFile
from zuno.trading.model.trade_events import Protection


@pytest.fixture
def homes(tmp_path: Path, postgres: str) -> tuple[KillLockFile, KillLockFile]:
    first, second = (KillLockFile(tmp_path / name, postgres) for name in ("first", "second"))
    return first, second


async def test_an_entry_of_another_home_is_refused_until_either_unlocks(
    homes: tuple[KillLockFile, KillLockFile], tmp_path: Path
) -> None:
    first, second = homes
    other = KillableHarness(tmp_path / "second", second, "demo")
    first.lock("demo", "terminal")
    assert second.why_locked("demo") is None, "the first step is the home's own"
    first.share("demo", "terminal")
    first.share("demo", "page")
    assert second.why_locked("live") is None
    assert second.why_locked(), "and no LP plan begins there"
    result = await other.gate.execute(other.opening())
    assert (result.state, Protection.KILL_SWITCH.value in result.reason) == ("refused", True)
    second.unlock("demo")
    assert second.why_locked("demo") is None
    assert (await other.gate.execute(other.opening(run_id="run_2"))).state == "open"
    assert first.why_locked("demo"), "its own file is its own"
    first.unlock("demo")
    assert first.why_locked() is None


def test_paper_is_each_home_s_own(homes: tuple[KillLockFile, KillLockFile]) -> None:
    first, second = homes
    first.lock("paper", "page")
    first.share("paper", "page")
    assert (bool(first.why_locked("paper")), second.why_locked("paper"), second.why_locked()) == (True, None, None)
    first.unlock("paper")


def test_a_named_account_at_an_exchange_is_shared(tmp_path: Path, postgres: str) -> None:
    first, second = (KillLockFile(tmp_path / name, postgres, ["mine"]) for name in ("first", "second"))
    other = KillLockFile(tmp_path / "third", postgres)
    first.lock("live:mine", "page")
    first.share("mine", "page")
    assert second.why_locked("mine")
    assert other.why_locked("mine") is None, "a paper account of that name is the home's own"
    second.unlock("mine")
    assert (second.why_locked("mine"), bool(first.why_locked("mine"))) == (None, True)


def test_a_database_that_does_not_answer_counts_as_locked_and_keeps_no_home_from_locking(tmp_path: Path) -> None:
    cut_off = KillLockFile(tmp_path, "postgresql://127.0.0.1:9/none")
    assert cut_off.why_locked("live")
    assert cut_off.why_locked("paper") is None
    cut_off.lock("paper", "page")
    assert cut_off.why_locked("paper")
