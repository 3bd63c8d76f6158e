"""Entries never outlive who protects them: a process that ends, a pause, a mandate that is over, an order that is
cancelled."""

from __future__ import annotations

import asyncio
import random
from decimal import Decimal
from typing import Any

import pytest

from tests.unit.trading.execute.test_faults import FaultyLog
from tests.unit.trading.execute.test_order_faults import SilentFor
from tests.unit.trading.execute.test_order_gate import DeafVenue, ProcessEnds, held, mandate, protective
from tests.wire.order_gate import GateHarness
from tests.wire.paper_venue import open_binance
from zuno.kernel.errors import DiskFull, Unavailable
from zuno.trading.model.cycle import Style
from zuno.trading.model.market import DAY_MS, HOUR_MS, MINUTE_MS
from zuno.trading.model.orders import Order, OrderRequest, OrderType
from zuno.trading.rules.protections import ProtectionLimits

D = Decimal
STOPS = {OrderType.STOP_MARKET, OrderType.TAKE_PROFIT_MARKET}


async def types_at_venue(desk: GateHarness) -> set[OrderType]:
    return {order.request.type for order in await desk.paper.open_venue().open_orders()}


async def waiting(style: Style = Style.PASSIVE_MAKER, desk: GateHarness | None = None) -> GateHarness:
    """An entry waits at the venue; of a DCA a part is held."""
    desk = desk or GateHarness()
    if desk.live:
        await desk.gate.grant_mandate(mandate(desk))
    assert (await desk.gate.execute(desk.opening(style=style))).state in ("working", "open")
    assert OrderType.LIMIT in await types_at_venue(desk)
    return desk


@pytest.mark.parametrize("style", [Style.PASSIVE_MAKER, Style.SMART_DCA])
async def test_a_process_that_ends_leaves_stops_at_the_venue_and_no_entry(style: Style) -> None:
    desk = await waiting(style)
    assert await desk.gate.end_entries("the desk has ended") == ()
    assert await types_at_venue(desk) == (STOPS if style is Style.SMART_DCA else set())
    assert desk.gate.book.open_intents == {}
    await desk.move(19_700)
    await desk.restart().reconcile()
    assert held(desk) == (D("0.021") if style is Style.SMART_DCA else 0)
    assert desk.gate.book.locks == {}


async def test_what_an_entry_was_filled_with_as_it_was_cancelled_is_protected() -> None:
    desk = await waiting()
    await desk.move(19_990, size="0.020")  # nobody looked
    await desk.gate.end_entries("the desk has ended")
    assert held(desk) == D("0.020")
    assert protective(desk)["stop"] == (D("0.020"), D("19600.0"))
    assert await types_at_venue(desk) == STOPS


async def test_an_entry_that_could_not_be_cancelled_is_named_and_the_next_start_cancels_it() -> None:
    paper = open_binance()
    venue = SilentFor(paper.open_venue())
    desk = await waiting(desk=GateHarness(paper, venue=venue))
    (id,) = desk.gate.book.open_orders
    venue.deaf_to = {"find", "cancel"}
    assert await desk.gate.end_entries("the desk has ended") == (id,)
    venue.deaf_to = set()
    await desk.restart().reconcile()
    assert await types_at_venue(desk) == set()
    assert held(desk) == 0


async def test_a_full_disk_keeps_no_entry_at_the_venue() -> None:
    paper = open_binance()
    log = FaultyLog(random.Random(1), 0.0)
    paper.log = log
    desk = await waiting(desk=GateHarness(paper))
    log.rate = 1.0
    with pytest.raises(DiskFull):
        await desk.gate.end_entries("the desk has ended")
    assert await types_at_venue(desk) == set()


async def test_a_pause_without_a_desk_cancels_what_waits() -> None:
    desk = await waiting(Style.SMART_DCA)
    desk.entries = False
    await desk.restart().pause()
    assert await types_at_venue(desk) == STOPS
    assert desk.gate.book.open_intents == {}


@pytest.mark.parametrize("style", [Style.PASSIVE_MAKER, Style.SMART_DCA])
async def test_a_mandate_that_is_revoked_ends_the_entries_under_it(style: Style) -> None:
    desk = await waiting(style, GateHarness(live=True))
    desk.entries = False
    await desk.restart().revoke_mandate()
    assert await types_at_venue(desk) <= STOPS
    desk.entries = True
    await desk.restart().grant_mandate(mandate(desk, max_daily_loss_usd=D(99)))
    desk.wait(4 * MINUTE_MS)
    await desk.gate.advance()
    assert OrderType.LIMIT not in await types_at_venue(desk)


@pytest.mark.parametrize("bound", ["mandate", "protection"])
async def test_a_day_s_loss_ends_the_entries_that_wait(bound: str) -> None:
    """The parts of a DCA wait below the market: they would be filled by the very fall that made the loss."""
    limits = ProtectionLimits(daily_loss_pct=D("0.05") if bound == "protection" else D(50))
    desk = GateHarness(live=True, limits=limits)
    await desk.gate.grant_mandate(mandate(desk, max_daily_loss_usd=D(1) if bound == "mandate" else D(1_000)))
    assert (await desk.gate.execute(desk.opening(style=Style.SMART_DCA))).state == "working"
    desk.wait(6 * MINUTE_MS)
    for _ in range(2):
        await desk.move(19_920)
        await desk.gate.advance()
    assert await types_at_venue(desk) == STOPS
    assert desk.gate.book.open_intents == {}


@pytest.mark.parametrize("change", ["expired", "replaced"])
async def test_an_entry_is_worked_under_its_own_mandate_alone(change: str) -> None:
    desk = GateHarness(live=True)
    await desk.gate.grant_mandate(mandate(desk, expires=desk.paper.at + HOUR_MS))
    await desk.gate.execute(desk.opening(style=Style.SMART_DCA))
    if change == "replaced":
        await desk.gate.grant_mandate(mandate(desk, expires=desk.paper.at + DAY_MS))
    else:
        desk.wait(HOUR_MS)
    await desk.gate.advance()
    assert await types_at_venue(desk) == STOPS
    assert held(desk) == D("0.021")


async def test_who_has_no_permit_works_no_entry_and_protects_what_is_held() -> None:
    desk = await waiting()
    desk.entries = False
    gate = desk.restart()
    desk.wait(4 * MINUTE_MS)
    await gate.advance()
    assert len(gate.book.orders) == 1, "nothing was placed anew"
    assert (await gate.execute(desk.opening(run_id="run_2"))).state == "refused"
    await desk.move(19_990)
    await gate.advance()
    assert protective(desk)["stop"][0] == held(desk) == D("0.050")


class LateVenue(DeafVenue):
    """An order is on its way while another process looks."""

    def __init__(self, venue: Any) -> None:
        super().__init__(venue)
        self.sent: list[OrderRequest] = []
        self.die = True

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._venue, name)
        if name != "place":
            return found

        async def place(request: OrderRequest, *rest: Any, **named: Any) -> Order:
            if self.die:
                self.sent.append(request)
                raise ProcessEnds
            placed: Order = await found(request, *rest, **named)
            return placed

        return place


@pytest.mark.parametrize("act", ["pause", "close"])
async def test_an_order_on_its_way_from_another_process_is_not_given_up(act: str) -> None:
    """Given up in the book and filled at the venue, it would be a position that nobody protects."""
    paper = open_binance()
    venue = LateVenue(paper.open_venue())
    desk = GateHarness(paper, venue=venue)
    with pytest.raises(ProcessEnds):
        await desk.gate.execute(desk.opening())
    desk.venue, desk.entries = None, False
    gate = desk.restart()
    await (gate.pause() if act == "pause" else gate.close(None))
    await paper.open_venue().place(venue.sent[0])  # it arrives
    desk.entries = True
    await desk.restart().advance()
    assert held(desk) == (D("0.050") if act == "pause" else 0)
    assert await types_at_venue(desk) == (STOPS if act == "pause" else set())
    assert await desk.gate.reconcile() == ()


async def test_a_passive_entry_that_is_cancelled_is_not_placed_anew() -> None:
    desk = await waiting()
    (id,) = desk.gate.book.open_orders
    desk.entries = False
    await desk.restart().cancel(id)
    desk.entries = True
    for _ in range(4):
        desk.wait(MINUTE_MS)
        await desk.restart().advance()
    assert len(desk.gate.book.orders) == 1
    assert await types_at_venue(desk) == set()


async def test_of_several_waiting_parts_one_is_cancelled() -> None:
    desk = await waiting(Style.SMART_DCA)
    first, *others = [o for o in desk.gate.book.open_orders.values() if o.purpose == "entry"]
    await desk.gate.cancel(first.request.client_id)
    left = [o.request.client_id for o in desk.gate.book.open_orders.values() if o.purpose == "entry"]
    assert left == [order.request.client_id for order in others]


async def test_a_cancel_that_did_not_reach_the_venue_is_not_called_done() -> None:
    paper = open_binance()
    venue = SilentFor(paper.open_venue())
    desk = await waiting(desk=GateHarness(paper, venue=venue))
    (id,) = desk.gate.book.open_orders
    venue.deaf_to = {"cancel"}
    with pytest.raises(Unavailable):
        await desk.gate.cancel(id)
    venue.deaf_to = set()
    await desk.restart().advance()
    assert await types_at_venue(desk) == set()


class SlowVenue(DeafVenue):
    """Takes an order, and answers when it is let."""

    def __init__(self, venue: Any) -> None:
        super().__init__(venue)
        self.asked, self.answer = asyncio.Event(), asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._venue, name)
        if name != "place":
            return found

        async def place(request: OrderRequest, *rest: Any, **named: Any) -> Order:
            self.asked.set()
            await self.answer.wait()
            placed: Order = await found(request, *rest, **named)
            return placed

        return place


async def test_an_act_that_is_cancelled_in_the_middle_of_an_order_hears_its_reply() -> None:
    paper = open_binance()
    venue = SlowVenue(paper.open_venue())
    desk = GateHarness(paper, venue=venue)
    task = asyncio.create_task(desk.gate.execute(desk.opening()))
    await venue.asked.wait()
    task.cancel()
    await asyncio.sleep(0)
    venue.answer.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert held(desk) == protective(desk)["stop"][0] == D("0.050")
