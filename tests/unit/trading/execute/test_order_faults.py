"""Faults at the worst moment: venues that fall silent, forget or refuse while something is being opened or closed."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest

from tests.unit.trading.execute.test_order_gate import DeafVenue, held, mandate, opened, protective
from tests.wire.order_gate import BTC, GateHarness
from tests.wire.paper_venue import ACCOUNT, open_binance, open_upbit
from zuno.adapters.account.trade_log import MemoryTradeLog
from zuno.kernel.errors import Refused, Unavailable
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.execute.account_writer import AccountWriter
from zuno.trading.execute.intents import build_close_intent
from zuno.trading.execute.order_gate import OrderGate
from zuno.trading.execute.protection import CLOSE_AGAIN_MS
from zuno.trading.execute.venue_context import GateContext
from zuno.trading.model.account import Holding, PositionOpened
from zuno.trading.model.cycle import Style
from zuno.trading.model.market import HOUR_MS, MINUTE_MS, SECOND_MS, Side
from zuno.trading.model.orders import Fill, Order, OrderRequest, OrderSide, OrderStatus, OrderType
from zuno.trading.model.trade_events import ExitReason, IntentStored, ManualChange, OrderPlanned, Protection, TradeEvent
from zuno.trading.ports.venue import OrderVenue
from zuno.trading.rules.protections import ProtectionLimits

D = Decimal
NO_COOLDOWN = ProtectionLimits(cooldown_minutes=0)


class SilentFor(DeafVenue):
    """Answers everything but calls of these names."""

    def __init__(self, venue: Any) -> None:
        super().__init__(venue)
        self.deaf_to: set[str] = set()
        self.error: type[Exception] = Unavailable

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._venue, name)
        if name not in self.deaf_to:
            return found

        async def call(*args: Any, **named: Any) -> Any:
            raise self.error("HTTP 502, <html>")

        return call


async def write_by_hand(desk: GateHarness, symbol: Symbol = BTC) -> None:
    holding = Holding(
        id="pos_1",
        symbol=symbol,
        exchange=Venue("BINANCE"),
        side=Side.LONG,
        quantity=0.01,
        entry=20_000.0,
        leverage=1.0,
        opened=Millis(desk.paper.at),
    )
    writer = AccountWriter(desk.log, ACCOUNT)
    await writer.refresh()
    await writer.write(
        [
            ManualChange(
                at=Millis(desk.paper.at), change=PositionOpened(at=Millis(desk.paper.at), position=holding, fee=0.0)
            )
        ]
    )


async def test_an_opposite_decision_executed_again_opens_nothing() -> None:
    """A run that was cut off comes to its ruling again: the other side is the next cycle's."""
    desk = await opened(GateHarness(limits=NO_COOLDOWN))
    desk.wait(MINUTE_MS)
    order = desk.opening(side=Side.SHORT, run_id="run_2")
    first = await desk.gate.execute(order)
    assert first.state == "closed"
    again = await desk.restart().execute(order)
    assert again.state == "closed"
    assert desk.gate.book.positions == {}


@pytest.mark.parametrize(("since", "state"), [(True, "closed"), (False, "open")])
async def test_the_other_side_begins_no_earlier_than_a_decision_after_the_close(since: bool, state: str) -> None:
    """Somebody else closed the long between the decision's moment and its execution."""
    desk = await opened(GateHarness(limits=NO_COOLDOWN))
    desk.wait(MINUTE_MS)
    before = desk.opening(side=Side.SHORT, run_id="run_2")
    desk.wait(MINUTE_MS)
    await desk.open_gate().close(None)
    desk.wait(MINUTE_MS)
    order = before if since else desk.opening(side=Side.SHORT, run_id="run_2")
    assert (await desk.gate.execute(order)).state == state
    assert [trade.side for trade in desk.gate.book.positions.values()] == ([] if since else [Side.SHORT])


class HushingLog(MemoryTradeLog):
    """The exchange falls silent the moment an intent is stored."""

    venue: SilentFor | None = None

    async def append(self, account: str, events: Sequence[TradeEvent], after: int) -> None:
        await super().append(account, events, after)
        if self.venue is not None and any(isinstance(event, IntentStored) for event in events):
            self.venue.deaf_to = {"quote", "place", "find"}


async def test_nothing_is_opened_after_a_kill_that_found_no_order_yet() -> None:
    log = HushingLog()
    paper = replace(open_binance(), log=log)
    log.venue = venue = SilentFor(paper.open_venue())
    desk = GateHarness(paper, venue=venue, limits=NO_COOLDOWN)
    assert (await desk.gate.execute(desk.opening())).state == "working"
    log.venue = None
    await desk.gate.kill()
    venue.deaf_to = set()
    for _ in range(3):
        desk.wait(MINUTE_MS)
        await desk.restart().advance()
    assert held(desk) == 0
    assert desk.gate.book.open_intents == {}


async def test_a_kill_closes_everything_though_a_position_by_hand_has_no_price() -> None:
    paper = open_binance()
    venue = SilentFor(paper.open_venue())
    desk = await opened(GateHarness(paper, venue=venue))
    await write_by_hand(desk)
    venue.deaf_to = {"quote"}
    with pytest.raises(Unavailable):
        await desk.gate.kill()
    assert held(desk) == 0
    assert desk.gate.book.open_orders == {}


async def test_a_kill_that_the_venue_refuses_is_tried_again_every_minute() -> None:
    """Each close is given up after a few refusals, and the kill switch stores the next."""
    paper = open_binance()
    venue = Refusing(paper.open_venue())
    desk = await opened(GateHarness(paper, venue=venue))
    venue.refuses = {OrderType.MARKET}
    await desk.gate.kill()
    closes: list[int] = []
    for _ in range(40):
        desk.wait(5 * SECOND_MS)
        await desk.gate.advance()
        events = await desk.log.events(ACCOUNT)
        closes = [event.at for event in events if isinstance(event, IntentStored) and event.intent.reason]
    gaps = [later - earlier for earlier, later in pairwise(closes)]
    assert len(gaps) in (2, 3)
    assert all(CLOSE_AGAIN_MS <= gap <= CLOSE_AGAIN_MS + 20 * SECOND_MS for gap in gaps)
    assert held(desk)
    assert "stop" in protective(desk)
    venue.refuses = set()
    desk.wait(2 * MINUTE_MS)
    await desk.restart().advance()
    assert held(desk) == 0
    assert [summary.reason for summary in desk.gate.book.closed] == [ExitReason.KILL_SWITCH]


class Refusing(DeafVenue):
    """Rejects orders of these types."""

    def __init__(self, venue: Any) -> None:
        super().__init__(venue)
        self.refuses: set[OrderType] = set()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._venue, name)
        if name != "place":
            return found

        async def place(request: OrderRequest, good_till: Millis | None = None, **named: Any) -> Order:
            if request.type in self.refuses:
                return Order(
                    request=request,
                    venue_id="none",
                    status=OrderStatus.REJECTED,
                    updated=await self._venue.now(),
                    reason="no",
                )
            placed: Order = await found(request, good_till, **named)
            return placed

        return place


async def test_one_exchange_that_refuses_keeps_no_other_from_its_stops() -> None:
    desk = GateHarness(open_upbit())
    assert (await desk.gate.execute(desk.opening(quantity=0.02))).state == "open"
    bad = SilentFor(open_binance().open_venue())
    bad.error, bad.deaf_to = Refused, {"find"}
    order = OrderRequest(
        client_id="zn1",
        exchange=Venue("BINANCE"),
        symbol=Symbol("ETHUSDT"),
        side=OrderSide.SELL,
        type=OrderType.MARKET,
        quantity=D("0.1"),
        reduce_only=True,
    )
    at, intent = (
        Millis(desk.paper.at),
        build_close_intent("int_1", "x", Symbol("ETHUSDT"), Side.LONG, D(1), ExitReason.OWNER),
    )
    writer = AccountWriter(desk.log, ACCOUNT)
    await writer.refresh()
    await writer.write(
        [
            IntentStored(at=at, intent=intent, ruling=None),
            OrderPlanned(at=at, intent="int_1", purpose="exit", order=order),
        ]
    )
    venues: dict[Venue, OrderVenue] = {Venue("BINANCE"): bad, Venue("UPBIT"): desk.paper.open_venue()}
    gate = OrderGate(GateContext(log=desk.log, account=ACCOUNT, venues=venues, now=lambda: Millis(desk.paper.at)))
    await desk.move(48_990_000)
    await gate.advance()
    assert gate.book.positions == {}
    assert list(gate.troubles) == [Venue("BINANCE")]


async def test_a_stop_that_the_venue_forgot_is_placed_anew() -> None:
    paper = open_binance()
    venue = Forgetful(paper.open_venue())
    desk = await opened(GateHarness(paper, venue=venue))
    (stop,) = (order for order in desk.gate.book.open_orders.values() if order.purpose == "stop")
    await paper.venue.cancel(BTC, stop.request.client_id)
    venue.forgot = {stop.request.client_id}
    desk.wait(MINUTE_MS)
    await desk.gate.advance()
    at_venue = [o for o in await paper.open_venue().open_orders() if o.request.type is OrderType.STOP_MARKET]
    assert [order.request.quantity for order in at_venue] == [D("0.050")]


class Forgetful(DeafVenue):
    """Does not know these orders any more."""

    def __init__(self, venue: Any) -> None:
        super().__init__(venue)
        self.forgot: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._venue, name)
        if name != "find":
            return found

        async def find(symbol: Symbol, client_id: str, kind: OrderType | None = None) -> Order | None:
            if client_id in self.forgot:
                return None
            order: Order | None = await found(symbol, client_id, kind)
            return order

        return find


async def test_a_planned_entry_is_not_sent_after_the_market_moved_away() -> None:
    paper = open_binance()
    venue = SilentFor(paper.open_venue())
    desk = GateHarness(paper, venue=venue)
    venue.deaf_to = {"place"}
    await desk.gate.execute(desk.opening(style=Style.SMART_DCA))
    await desk.move(20_400)  # two ATR
    venue.deaf_to = set()
    await desk.gate.advance()
    assert held(desk) == 0


async def test_a_paused_desk_works_no_entry_on() -> None:
    desk = GateHarness()
    assert (await desk.gate.execute(desk.opening(style=Style.PASSIVE_MAKER))).state == "working"
    await desk.gate.pause()
    for _ in range(14):
        desk.wait(MINUTE_MS)
        await desk.gate.advance()
    assert held(desk) == 0


class Late(DeafVenue):
    """Tells of fills with the time at which they happened, long after."""

    def __init__(self, venue: Any) -> None:
        super().__init__(venue)
        self.earlier = 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._venue, name)
        if name != "fills":
            return found

        async def fills(symbol: Symbol, since: Millis) -> tuple[Fill, ...]:
            every = await found(symbol, Millis(0))
            moved = [f if f.side != "SELL" else f.model_copy(update={"at": f.at - self.earlier}) for f in every]
            return tuple(f for f in moved if f.at >= since)

        return fills


async def test_a_fill_that_is_told_late_is_booked() -> None:
    paper = open_binance()
    venue = Late(paper.open_venue())
    desk = await opened(GateHarness(paper, venue=venue))
    desk.wait(HOUR_MS)
    await desk.gate.advance()
    venue.earlier = 10 * MINUTE_MS
    await desk.move(19_590)
    await desk.gate.advance()
    assert held(desk) == 0
    assert await desk.gate.reconcile() == ()


async def test_levels_of_a_position_by_hand_are_its_own() -> None:
    desk = await opened()
    await write_by_hand(desk)
    before = protective(desk)["stop"]
    with pytest.raises(Refused):
        await desk.gate.set_levels("pos_1", D(15_000), None)
    assert protective(desk)["stop"] == before


async def test_a_mandates_daily_loss_counts_what_is_lost_and_not_closed() -> None:
    desk = GateHarness(live=True)
    await desk.gate.grant_mandate(mandate(desk, max_daily_loss_usd=D(10), max_margin_per_trade_usd=D(1_500)))
    await opened(desk)
    desk.paper.price = D(19_750)
    desk.wait(MINUTE_MS)
    result = await desk.gate.execute(desk.opening(run_id="run_2", quantity=0.01))
    assert result.state == "refused", result
    assert "lost" in result.reason


async def test_a_mandates_margin_of_a_trade_counts_what_is_held() -> None:
    desk = GateHarness(live=True)
    await desk.gate.grant_mandate(mandate(desk, max_margin_per_trade_usd=D(1_010), max_margin_per_day_usd=D(5_000)))
    await opened(desk)
    desk.wait(MINUTE_MS)
    result = await desk.gate.execute(desk.opening(run_id="run_2", quantity=0.02))
    assert result.state == "refused", result


async def test_a_mandates_margin_counts_entries_that_wait() -> None:
    desk = GateHarness(live=True)
    await desk.gate.grant_mandate(mandate(desk, max_margin_per_trade_usd=D(1_010), max_margin_per_day_usd=D(5_000)))
    assert (await desk.gate.execute(desk.opening(style=Style.PASSIVE_MAKER))).state == "working"
    desk.wait(MINUTE_MS)
    result = await desk.gate.execute(desk.opening(run_id="run_2", quantity=0.02))
    assert result.state == "refused", result
    assert re.search(r"\$[\d,.]+ \w+ trade\b", result.reason)
    fits = await desk.gate.execute(desk.opening(run_id="run_3", side=Side.LONG, quantity=0.0005))
    assert not re.search(r"\$[\d,.]+ \w+ trade\b", fits.reason)


async def test_a_mandates_margin_counts_an_intent_that_has_no_order_yet() -> None:
    log = HushingLog()
    paper = replace(open_binance(), log=log)
    log.venue = venue = SilentFor(paper.open_venue())
    desk = GateHarness(paper, venue=venue, live=True)
    await desk.gate.grant_mandate(mandate(desk, max_margin_per_trade_usd=D(1_010), max_margin_per_day_usd=D(5_000)))
    assert (await desk.gate.execute(desk.opening())).state == "working"
    assert desk.gate.book.orders == {}
    log.venue, venue.deaf_to = None, {"place", "find"}
    desk.wait(MINUTE_MS)
    result = await desk.gate.execute(desk.opening(run_id="run_2", quantity=0.02))
    assert result.state == "refused", result
    assert re.search(r"\$[\d,.]+ \w+ trade\b", result.reason)


async def test_a_mandates_margin_of_a_day_counts_what_waits_since_yesterday() -> None:
    desk = GateHarness(live=True)
    desk.wait(12 * HOUR_MS - MINUTE_MS)  # 23:59
    await desk.gate.grant_mandate(mandate(desk, max_margin_per_trade_usd=D(2_100), max_margin_per_day_usd=D(2_100)))
    await desk.gate.execute(desk.opening(style=Style.SMART_DCA))
    (tracked,) = desk.gate.book.open_intents.values()
    other = tracked.intent.model_copy(update={"id": "int_other", "symbol": Symbol("ETHUSDT")})
    writer = AccountWriter(desk.log, ACCOUNT)
    await writer.refresh()
    await writer.write([IntentStored(at=Millis(desk.paper.at), intent=other, ruling=None)])
    desk.wait(2 * MINUTE_MS)
    result = await desk.gate.execute(desk.opening(run_id="run_2", quantity=0.05))
    assert result.state == "refused", result
    assert re.search(r"\$[\d,.]+ \w+ day\b", result.reason)


async def test_a_mandates_margin_of_a_day_is_given_back_by_an_entry_that_ended_unfilled() -> None:
    desk = GateHarness(live=True)
    await desk.gate.grant_mandate(mandate(desk, max_margin_per_trade_usd=D(1_100), max_margin_per_day_usd=D(1_100)))
    assert (await desk.gate.execute(desk.opening(style=Style.SMART_DCA))).state == "working"
    desk.wait(MINUTE_MS)
    assert (await desk.gate.execute(desk.opening(run_id="run_2", quantity=0.006))).state == "refused"
    (tracked,) = desk.gate.book.open_intents.values()
    await desk.gate.end_entries("cancelled")
    filled = sum((desk.gate.book.orders[id].booked for id in tracked.orders), D(0))
    assert 0 < filled < D("0.025")
    desk.wait(MINUTE_MS)
    more = await desk.gate.execute(desk.opening(run_id="run_3", quantity=0.05 - float(filled)))
    assert more.state == "open", more
    desk.wait(MINUTE_MS)
    spent = await desk.gate.execute(desk.opening(run_id="run_4", quantity=0.01))
    assert spent.state == "refused", spent


async def test_a_part_of_a_position_that_was_lost_counts_as_lost_today() -> None:
    """The stop was filled in part, and the market came back."""
    desk = GateHarness(limits=ProtectionLimits(daily_loss_pct=D("0.4")), live=True)
    await desk.gate.grant_mandate(mandate(desk, max_daily_loss_usd=D(8), max_margin_per_trade_usd=D(1_500)))
    await opened(desk)
    await desk.move(19_590, size="0.020")
    await desk.gate.advance()
    assert held(desk) == D("0.030")
    await desk.move(20_010, size="0.0001")  # nobody takes the rest
    await desk.gate.advance()
    assert held(desk) == D("0.030")
    assert [lock.protection for lock in await desk.gate.locks()] == [Protection.DAILY_LOSS]
    await desk.gate.unlock()
    result = await desk.gate.execute(desk.opening(run_id="run_2", quantity=0.01))
    assert result.state == "refused", result
    assert "lost" in result.reason


async def test_a_liquidation_is_called_one() -> None:
    desk = GateHarness()
    order = desk.opening(quantity=0.2, stop=None)
    leg = order.ruling.legs[0].model_copy(update={"leverage": 3.0})
    order = replace(order, ruling=order.ruling.model_copy(update={"legs": (leg,)}))
    result = await desk.gate.execute(order)
    assert result.state == "open", result
    await desk.paper.liquidate()
    await desk.gate.advance()
    (summary,) = desk.gate.book.closed
    assert summary.reason is ExitReason.LIQUIDATION
    assert await desk.gate.reconcile() == ()
    assert desk.gate.book.open_orders == {}


async def test_an_entry_in_won_is_held_to_the_mark_of_the_ruling() -> None:
    """The won's price follows the dollar's: what moved since the ruling is told by the dollar's."""
    upbit, binance = open_upbit(), open_binance()
    desk = GateHarness(upbit, others={Venue("BINANCE"): binance.open_venue()})
    order = replace(desk.opening(quantity=0.02), mark=D(20_000), atr=D(200))
    card = order.ruling.card
    assert card is not None
    dollars = card.model_copy(update={"entry": 20_000.0, "stop": 19_000.0, "target": 22_000.0})
    order = replace(order, ruling=order.ruling.model_copy(update={"card": dollars}))
    binance.at = upbit.at
    binance.show(D(20_400))  # two ATR
    upbit.at = binance.at
    upbit.show(D(51_000_000))
    refused = await desk.gate.execute(order)
    assert refused.state == "refused", refused
    binance.show(D(20_000))
    upbit.show(D(50_000_000))
    binance.at = upbit.at = max(binance.at, upbit.at)
    assert (await desk.gate.execute(order)).state == "open"


async def test_an_unlock_lifts_what_the_exchanges_clock_dated_ahead() -> None:
    paper = open_binance()
    ahead = Late(paper.open_venue())
    ahead.earlier = -250
    desk = await opened(GateHarness(paper, venue=ahead))
    await desk.gate.close(None)
    assert [lock.protection for lock in await desk.gate.unlock()] == [Protection.COOLDOWN]
    assert await desk.gate.locks() == ()


async def test_funding_that_cannot_be_read_holds_up_nothing() -> None:
    paper = open_binance()
    venue = SilentFor(paper.open_venue())
    venue.deaf_to = {"funding"}
    desk = await opened(GateHarness(paper, venue=venue))
    assert set(protective(desk)) == {"stop", "target"}
    assert "funding" in desk.gate.troubles[Venue("BINANCE")]
    await paper.settle_funding(D("0.0001"))
    await desk.move(19_590)
    await desk.gate.advance()
    assert held(desk) == 0
    assert desk.gate.book.closed[-1].reason is ExitReason.STOP
    venue.deaf_to = set()
    desk.wait(5 * MINUTE_MS)
    await desk.gate.advance()
    assert desk.gate.troubles == {}
    assert await desk.gate.reconcile() == ()


async def test_a_trade_is_closed_with_the_funding_of_its_last_hours() -> None:
    desk = await opened()
    await desk.paper.settle_funding(D("0.0001"))
    await desk.move(19_590)
    await desk.gate.advance()
    (summary,) = desk.gate.book.closed
    assert summary.funding == D("-0.1")
    assert await desk.gate.reconcile() == ()


async def test_funding_is_asked_for_every_few_minutes() -> None:
    paper = open_binance()
    venue = Counting(paper.open_venue())
    desk = await opened(GateHarness(paper, venue=venue))
    venue.asked.clear()
    for _ in range(20):
        desk.wait(MINUTE_MS)
        await desk.gate.advance()
    assert 5 <= venue.asked["funding"] <= 8
    assert venue.asked["fills"] >= 20


class Counting(DeafVenue):
    """Counts what it is asked for."""

    def __init__(self, venue: Any) -> None:
        super().__init__(venue)
        self.asked: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._venue, name)
        if not asyncio.iscoroutinefunction(found):
            return found

        async def call(*args: Any, **named: Any) -> Any:
            self.asked[name] += 1
            return await found(*args, **named)

        return call


class DeafToStops(DeafVenue):
    """Answers nothing about stops and targets; market orders work."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._venue, name)
        if name not in ("place", "find", "cancel"):
            return found

        async def call(*args: Any, **named: Any) -> Any:
            kind = args[0].type if name == "place" else args[2]
            if self.silent and kind in (OrderType.STOP_MARKET, OrderType.TAKE_PROFIT_MARKET):
                raise Unavailable("HTTP 503")
            return await found(*args, **named)

        return call


async def test_a_position_whose_stop_cannot_be_sent_is_undone_after_a_minute() -> None:
    paper = open_binance()
    venue = DeafToStops(paper.open_venue())
    venue.silent = True
    desk = GateHarness(paper, venue=venue)
    await desk.gate.execute(desk.opening())
    assert held(desk) == D("0.050")
    for _ in range(6):
        desk.wait(MINUTE_MS // 5)
        await desk.gate.advance()
    assert held(desk) == 0
    assert (await paper.open_venue().positions()) == ()
    assert desk.gate.book.closed[-1].reason is ExitReason.UNDONE


async def test_an_order_without_a_reply_is_not_sent_again_while_it_may_arrive() -> None:
    paper = open_binance()
    venue = LatePlacing(paper.open_venue())
    desk = GateHarness(paper, venue=venue)
    await desk.gate.execute(desk.opening())
    assert len(venue.sent) == 1
    desk.wait(3_000)
    await desk.gate.advance()
    assert len(venue.sent) == 1
    await desk.gate.close(None)  # nor is it given up for lost
    assert desk.gate.book.open_orders
    await venue.arrive()
    desk.wait(1_000)
    await desk.gate.advance()
    assert (await paper.open_venue().positions()) == ()
    assert paper.count_orders(venue.sent[0].client_id) == 1
    assert desk.gate.book.open_orders == {}


class LatePlacing(DeafVenue):
    """The reply to the first order does not come, and the order arrives later."""

    def __init__(self, venue: Any) -> None:
        super().__init__(venue)
        self.sent: list[OrderRequest] = []

    async def arrive(self) -> None:
        await self._venue.place(self.sent[0])

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._venue, name)
        if name != "place" or len(self.sent) > 1:
            return found

        async def place(request: OrderRequest, good_till: Millis | None = None, **named: Any) -> Order:
            self.sent.append(request)
            if len(self.sent) == 1:
                raise Unavailable("connection reset")
            placed: Order = await found(request, good_till, **named)
            return placed

        return place


async def test_an_exchange_that_is_held_at_and_not_configured_is_said() -> None:
    desk = await opened()
    context = GateContext(
        log=desk.log,
        account=ACCOUNT,
        venues={Venue("UPBIT"): open_upbit().open_venue()},
        now=lambda: Millis(desk.paper.at),
    )
    gate = OrderGate(context)
    await gate.advance()
    assert list(gate.troubles) == [Venue("BINANCE")]
    desk.restart()
    await desk.gate.close(None)
    await gate.advance()
    assert gate.troubles == {}


class Hanging(DeafVenue):
    """Every call takes twenty seconds and fails."""

    def __init__(self, venue: Any, harness: Any) -> None:
        super().__init__(venue)
        self._harness = harness
        self.asked = 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._venue, name)
        if not self.silent or not asyncio.iscoroutinefunction(found):
            return found

        async def call(*args: Any, **named: Any) -> Any:
            self.asked += 1
            self._harness.at += 20_000
            raise Unavailable("no answer in time")

        return call


async def test_an_exchange_that_hangs_is_asked_little_and_left() -> None:
    paper = open_binance()
    venue = Hanging(paper.open_venue(), paper)
    desk = GateHarness(paper, venue=venue, limits=NO_COOLDOWN)
    await desk.gate.execute(desk.opening(style=Style.SMART_DCA))
    assert len(desk.gate.book.open_orders) > 3
    venue.silent = True
    await desk.gate.advance()
    assert venue.asked <= 2 + len(desk.gate.book.positions)
    assert Venue("BINANCE") in desk.gate.troubles
    venue.silent = False
    desk.wait(MINUTE_MS)
    await desk.gate.advance()
    assert desk.gate.troubles == {}
    assert set(protective(desk)) == {"stop", "target"}


class RefusingUnseen(Refusing):
    """Rejects orders of these types, and says no price after it did."""

    def __getattr__(self, name: str) -> Any:
        if name == "quote" and self.refuses:

            async def quote(symbol: Symbol) -> Any:
                raise Unavailable("stale")

            return quote
        return super().__getattr__(name)


async def test_a_stop_that_is_refused_undoes_the_entry_though_no_price_is_known() -> None:
    paper = open_binance()
    venue = RefusingUnseen(paper.open_venue())
    desk = await opened(GateHarness(paper, venue=venue))
    (stop,) = (order for order in desk.gate.book.open_orders.values() if order.purpose == "stop")
    await paper.venue.cancel(BTC, stop.request.client_id)  # by another hand
    venue.refuses = {OrderType.STOP_MARKET}
    desk.wait(MINUTE_MS)
    await desk.gate.advance()
    assert held(desk) == 0
    assert desk.gate.book.closed[-1].reason is ExitReason.UNDONE
