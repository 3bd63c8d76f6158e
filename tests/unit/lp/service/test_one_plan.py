"""One request, one plan: whoever records it, and however many do at once."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tests.wire.debating import REQUEST, Table, observed
from zuno.adapters.store.sqlite import open_sqlite
from zuno.journal.journal import ChainedJournal
from zuno.kernel.errors import Broken, ZunoError
from zuno.lp.model.ballot import RiskProfile, Verdict
from zuno.lp.model.debate import FlowStart
from zuno.lp.model.plan import PLAN_KIND
from zuno.lp.service.plan_view import PlanView
from zuno.lp.service.recommend import DebateEnd, record_plan

pytestmark = pytest.mark.slow

START = FlowStart(chain="sim", position_id=1, profile=RiskProfile.BALANCED, max_rounds=2)
AT_ONCE = 6


def journal_of(table: Table) -> ChainedJournal:
    """Another handle on the journal of this home, as another process has."""
    return ChainedJournal(open_sqlite(table.folder), table.key, code=lambda: "test", now=table.now)


@pytest.fixture
async def table(tmp_path: Path) -> Table:
    """On a journal that others can open."""
    table = Table(tmp_path, await observed(tmp_path / "sim"))
    table.journal = journal_of(table)
    return table


def recorded_at_once(table: Table, end: DebateEnd, choices: list[int | None]) -> list[PlanView | ZunoError]:
    """What each of them gets, all recording in the same moment: threads with loops and handles of their own."""
    gate, got = threading.Barrier(len(choices)), dict[int, PlanView | ZunoError]()

    async def record(choice: int | None) -> PlanView:
        journal = journal_of(table)
        room = replace(table.room(2), journal=journal)
        gate.wait(20)
        try:
            return await record_plan(room, end, choice)
        finally:
            await journal.close()

    def run(number: int) -> None:
        try:
            got[number] = asyncio.run(record(choices[number]))
        except ZunoError as error:
            got[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(choices))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return [got[number] for number in range(len(choices))]


async def test_the_same_plan_recorded_at_once_is_recorded_once(table: Table) -> None:
    end = await table.room(2).debate(START, table.thoughts.append)
    got = await asyncio.to_thread(recorded_at_once, table, end, [None] * AT_ONCE)
    assert all(one == got[0] for one in got)
    assert isinstance(got[0], PlanView)
    assert len(await table.journal.latest(AT_ONCE, request_id=REQUEST, kind=PLAN_KIND)) == 1
    assert (await table.journal.verify()).ok
    await table.journal.close()


async def test_of_different_plans_recorded_at_once_one_stands_and_the_others_are_told(table: Table) -> None:
    end = await table.room(2).debate(START, table.thoughts.append)
    free = [one.index for one in end.ready.debate.rounds[-1].judgments if one.verdict is not Verdict.VETO]
    choices: list[int | None] = [None, free[0], free[1], None, free[0], free[1]]
    got = await asyncio.to_thread(recorded_at_once, table, end, choices)
    (record,) = await table.journal.latest(AT_ONCE, request_id=REQUEST, kind=PLAN_KIND)
    stands = record.payload["planId"]
    for choice, one in zip(choices, got, strict=True):
        if choice == record.payload.get("ownerChoice"):
            assert isinstance(one, PlanView)
            assert one.plan_id == stands
        else:
            assert isinstance(one, Broken)
            assert str(stands) in str(one)
    assert (await table.journal.verify()).ok
    await table.journal.close()
