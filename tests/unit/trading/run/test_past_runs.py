"""What earlier runs came to, kept beside the journal: always what reading everything anew would say."""

from __future__ import annotations

from pathlib import Path

import pytest

from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.store.memory import MemoryStore
from zuno.journal.journal import ChainedJournal
from zuno.journal.port import DamagedRow, Entry, Row
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.trading.model.cycle import Call, JudgeKind, Regime, RegimeFamily
from zuno.trading.model.market import Mode
from zuno.trading.model.memory import Exploration
from zuno.trading.run.record import DESK, ENDED, EXPLORED, ExplorationClaim, PastRuns, RunSummary

MOST = 3


class CountingJournal(ChainedJournal):
    """Counts the rows it reads."""

    read = 0

    async def _read_row(self, row: Row | DamagedRow) -> Entry:
        self.read += 1
        return await super()._read_row(row)


@pytest.fixture
def journal(tmp_path: Path) -> CountingJournal:
    key = KeyFile(tmp_path / "node.key")
    key.ensure()
    return CountingJournal(MemoryStore(), key, code=lambda: "test", now=lambda: Millis(1))


def summary(number: int) -> RunSummary:
    return RunSummary(
        symbol=Symbol("BTCUSDT"),
        mode=Mode.SWING,
        as_of=Millis(number),
        origin="test",
        regime=Regime.RANGE_BOUND,
        signal=None,
        score=None,
        decision=Call.HOLD,
        entry_price=None,
        stop_loss=None,
        take_profit=None,
        hold_duration="",
        win_probability_pct=50,
        ruling=Call.HOLD,
        allocation_pct=0.0,
        leverage=1.0,
        veto=None,
        hash="",
    )


async def write_run(journal: ChainedJournal, number: int) -> None:
    explored = Exploration(at=Millis(number), judge=JudgeKind.MODEL, family=RegimeFamily.RANGE)
    claim = ExplorationClaim(origin="test", symbol=Symbol("BTCUSDT"), mode=Mode.SWING, explored=explored)
    await journal.append_once(kind=EXPLORED, author=DESK, payload=claim, request_id=f"run_{number}")
    await journal.append_once(kind=ENDED, author=DESK, payload=summary(number), request_id=f"run_{number}")


async def test_it_says_what_reading_everything_anew_says(journal: CountingJournal) -> None:
    kept = PastRuns(journal, MOST)
    assert (await kept.list_ended(), await kept.list_claims()) == ([], [])
    for number in range(1, 9):
        await write_run(journal, number)
        fresh = PastRuns(journal, MOST)
        for _ in range(number % 3):  # sometimes several runs are new at once
            ended = [run.as_of for run in await kept.list_ended()]
            assert ended == [run.as_of for run in await fresh.list_ended()] == [*range(number, 0, -1)][:MOST]
            claims = await kept.list_claims()
            assert claims == await fresh.list_claims()
            assert [logged.run_id for logged in claims] == [f"run_{earlier}" for earlier in range(1, number + 1)]
        for run_id in ("run_1", f"run_{number}", "run_99"):
            assert await kept.find_summary(run_id) == await fresh.find_summary(run_id)
    assert await kept.find_summary("run_99") is None


async def test_what_was_read_is_not_read_again(journal: CountingJournal) -> None:
    for number in range(1, 9):
        await write_run(journal, number)
    kept = PastRuns(journal, MOST)
    await kept.list_ended()
    await kept.list_claims()
    journal.read = 0
    await write_run(journal, 9)
    for _ in range(3):
        await kept.list_ended()
        await kept.list_claims()
        await kept.find_summary("run_9")
    assert journal.read == 2
