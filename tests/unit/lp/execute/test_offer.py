"""Showing what an apply would do is a look; applying reads the plan's entries once."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.lp.execute.test_handed_out import WATCHED, send_step
from zuno.adapters.file_lock import wallet_lock
from zuno.journal.port import Entry
from zuno.kernel.errors import Refused, Unavailable
from zuno.lp.execute.plan_state import append_event, catch_up
from zuno.lp.model.plan import PlanState
from zuno.lp.model.plan_events import Action, PlanOver
from zuno.lp.service.execution import Consent, Execution
from zuno.lp.service.execution_view import ApprovalView, UnsignedView
from zuno.lp.service.positions import LpDesk


class CountingJournal:
    """Everything of a journal; counts how often each entry of a plan is read."""

    def __init__(self, journal: Any) -> None:
        self._journal = journal
        self.read: Counter[int] = Counter()
        self.loads = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)

    async def entries(self, *, request_id: str | None = None, **other: Any) -> AsyncIterator[Entry]:
        self.loads += request_id is not None and not other.get("after")
        async for entry in self._journal.entries(request_id=request_id, **other):
            self.read[entry.seq] += request_id is not None
            yield entry


def service(bench: Any, journal: Any) -> Execution:
    hands = replace(bench.hands, journal=journal, lock=lambda name: wallet_lock(bench.folder, name))

    async def open_journal() -> Any:
        return journal

    async def context(chain: str) -> Any:
        return hands

    archive: Any = None
    return Execution(
        open_journal, archive, context, lambda chain: LpDesk(bench.chain, hands.feeds_of), "sim", lambda count: b"1"
    )


def agree(view: Any) -> bool:
    return True


def heard(line: str) -> None:
    """Nobody listens."""


async def head(bench: Any) -> Entry:
    (newest,) = await bench.journal.latest(1)
    return newest


async def test_an_offer_takes_no_lock_and_writes_nothing(bench: Any) -> None:
    plan_id = await bench.approved(await bench.told(Action.CLOSE))
    execution, before = service(bench, bench.journal), await head(bench)
    alone = await execution.offer_apply(plan_id)
    assert isinstance(alone, ApprovalView)
    with wallet_lock(bench.folder, f"sim-{bench.wallet}"):
        beside = await execution.offer_apply(plan_id)
        with pytest.raises(Refused, match="used"):
            await execution.apply(plan_id, Consent(agree, agree), heard)
    assert beside == alone
    assert await head(bench) == before
    assert not list(bench.folder.glob("*.tmp"))
    bound = Consent.bound_to(alone.approval_hash, "test")
    assert (await execution.apply(plan_id, bound, heard)).state == PlanState.CONFIRMED


async def test_an_offer_beside_a_plan_in_flight_writes_nothing_of_that_one_either(bench: Any) -> None:
    bench.pond.holding = True
    other = await bench.approved(await bench.told(Action.COLLECT, bench.inside))
    with pytest.raises(Unavailable, match=other):
        await bench.apply(other)
    await bench.pond.mine()
    bench.pond.holding = False
    plan_id = await bench.approved(await bench.told(Action.CLOSE))
    before = await head(bench)
    await service(bench, bench.journal).offer_apply(plan_id)
    assert await head(bench) == before, "what the chain shows of the other is not written down by a look"


async def test_an_offer_of_and_beside_a_plan_that_was_handed_out_writes_nothing(bench: Any) -> None:
    handed = await bench.approved(await bench.told(Action.COLLECT, bench.inside))
    book = await bench.apply(handed, signer=WATCHED)
    plan_id = await bench.approved(await bench.told(Action.CLOSE))
    before = await head(bench)
    with pytest.raises(Refused, match=handed):
        await service(bench, bench.journal).offer_apply(plan_id)
    assert isinstance(await service(bench, bench.journal).offer_apply(handed), UnsignedView)
    await send_step(bench, book)
    assert isinstance(await service(bench, bench.journal).offer_apply(plan_id), ApprovalView)
    assert isinstance(await service(bench, bench.journal).offer_apply(handed), ApprovalView)
    assert (await head(bench), (await bench.book(handed)).over) == (before, None)


async def test_a_plan_that_is_done_is_not_offered(bench: Any) -> None:
    plan_id = await bench.approved(await bench.told(Action.CLOSE))
    await bench.apply(plan_id)
    with pytest.raises(Refused, match="never"):
        await service(bench, bench.journal).offer_apply(plan_id)


async def test_an_apply_reads_the_plan_once(bench: Any) -> None:
    plan_id = await bench.approved(await bench.told(Action.CLOSE))
    journal = CountingJournal(bench.journal)
    done = await service(bench, journal).apply(plan_id, Consent(agree, agree), heard)
    assert done.state == PlanState.CONFIRMED
    assert journal.loads == 1
    assert max(journal.read.values()) == 1


async def test_what_another_process_wrote_since_is_taken_in(bench: Any) -> None:
    plan_id = await bench.approved(await bench.told(Action.CLOSE))
    held, other = await bench.book(plan_id), await bench.book(plan_id)
    await append_event(bench.journal, other, PlanOver(plan_id=plan_id, state=PlanState.CANCELLED, why="elsewhere"))
    with pytest.raises(Refused, match="never"):
        await bench.gate().apply(plan_id, lambda *shown: True, heard, progress=held)
    await catch_up(bench.journal, held)
    assert held == other
