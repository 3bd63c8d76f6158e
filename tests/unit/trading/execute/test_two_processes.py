"""Two processes act for one paper account at once: one sends an order, the other stops everything."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal as D

import pytest

from tests.unit.trading.execute.test_order_gate import ProcessEnds
from tests.wire.order_gate import BTC, GateHarness
from tests.wire.paper_venue import ACCOUNT, PaperHarness, open_binance
from zuno.adapters.account.trade_log import MemoryTradeLog
from zuno.adapters.venues.paper.venue import LATENCY_MS, PaperVenue
from zuno.kernel.units import Millis
from zuno.markets.venues import Venue
from zuno.trading.execute.order_gate import OrderGate
from zuno.trading.execute.venue_context import GateContext
from zuno.trading.model.market import MINUTE_MS, SECOND_MS
from zuno.trading.model.orders import OrderStatus
from zuno.trading.model.trade_events import ExitReason, Protection, TradeEvent
from zuno.trading.rules.inputs import Fees


class LatencyGate:
    """A desk whose paper orders take their time to arrive, as at a clock that runs; one of them waits to be let go."""

    def __init__(self, paper: PaperHarness, number: int) -> None:
        self.sent, self.arrive = asyncio.Event(), asyncio.Event()
        self._left = number

        async def sleep(seconds: float) -> None:
            if self._left == 0:
                self.sent.set()
                await self.arrive.wait()
            self._left -= 1

        async def now() -> Millis:
            return Millis(paper.at)

        venue = PaperVenue(paper.exchange, ACCOUNT, paper.log, paper.tape, now, Fees().at(paper.exchange), sleep=sleep)
        assert venue.latency_ms == LATENCY_MS
        context = GateContext(
            log=paper.log, account=ACCOUNT, venues={paper.exchange: venue}, now=lambda: Millis(paper.at)
        )
        self.gate = OrderGate(context)


async def assert_flat(desk: GateHarness) -> None:
    """Here, at the venue, and to the next start."""
    venue = desk.paper.open_venue()
    assert (await venue.positions(), await venue.open_orders()) == ((), ())
    gate = desk.restart()
    assert await gate.reconcile() == ()
    assert (gate.book.positions, gate.book.open_orders, gate.book.open_intents) == ({}, {}, {})
    assert {lock for lock, _ in gate.book.locks} <= {Protection.KILL_SWITCH}


@pytest.mark.parametrize("number", [0, 1, 2], ids=["entry", "stop", "target"])
@pytest.mark.parametrize("act", ["kill", "close"])
async def test_an_order_that_arrives_after_everything_was_closed_leaves_nothing_behind(act: str, number: int) -> None:
    desk = GateHarness()
    slow = LatencyGate(desk.paper, number)
    task = asyncio.create_task(slow.gate.execute(desk.opening()))
    await slow.sent.wait()
    other = desk.open_gate()
    await (other.kill() if act == "kill" else other.close(None))
    slow.arrive.set()
    await task
    book = await slow.gate.advance()
    assert book.positions == {}
    reasons = {summary.reason for summary in book.closed}
    late = ExitReason.UNDONE if number == 0 else ExitReason.OWNER
    assert reasons == {ExitReason.KILL_SWITCH if act == "kill" else late}
    await assert_flat(desk)


class EndingLog(MemoryTradeLog):
    """The process ends before it writes anything more of its own; the venue's side is stored."""

    ended = False

    async def append(self, account: str, events: Sequence[TradeEvent], after: int) -> None:
        if self.ended and account == ACCOUNT:
            raise ProcessEnds
        await super().append(account, events, after)


async def test_an_entry_whose_sender_died_is_found_by_whoever_gave_it_up() -> None:
    log = EndingLog()
    desk = GateHarness(replace(open_binance(), log=log))
    slow = LatencyGate(desk.paper, 0)
    task = asyncio.create_task(slow.gate.execute(desk.opening()))
    await slow.sent.wait()
    other = desk.open_gate()
    await other.close(BTC)
    log.ended = True
    slow.arrive.set()
    with pytest.raises(ProcessEnds):
        await task
    log.ended = False
    assert [held.exchange for held in await desk.paper.open_venue().positions()] == [Venue("BINANCE")]
    desk.wait(SECOND_MS)
    await other.advance()
    await assert_flat(desk)


async def test_a_late_fill_of_a_scale_in_that_was_given_up_is_shown_in_its_order() -> None:
    log = EndingLog()
    desk = GateHarness(replace(open_binance(), log=log))
    await desk.gate.execute(desk.opening(quantity=0.02))
    desk.wait(MINUTE_MS)
    slow = LatencyGate(desk.paper, 0)
    task = asyncio.create_task(slow.gate.execute(desk.opening(run_id="run_2", quantity=0.01)))
    await slow.sent.wait()
    other = desk.open_gate()
    await other.end_entries("the desk has ended")
    log.ended = True
    slow.arrive.set()
    with pytest.raises(ProcessEnds):
        await task
    log.ended = False
    desk.wait(SECOND_MS)
    book = await other.advance()
    (late,) = [order for order in book.orders.values() if order.purpose == "entry" and order.booked == D("0.01")]
    assert (late.status, late.filled) == (OrderStatus.FILLED, late.booked)
    assert book.positions[Venue("BINANCE"), BTC, "debate"].quantity == D("0.03"), (
        "what was held before is not closed for it"
    )
    assert await desk.restart().reconcile() == ()
