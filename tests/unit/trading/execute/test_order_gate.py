"""Rulings as orders: executed once, protected at the venue, closed, resumed after a restart."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from tests.wire.order_gate import BTC, GateHarness, rule
from tests.wire.paper_venue import ACCOUNT, open_binance, open_upbit
from zuno.adapters.account.trade_log import MemoryTradeLog
from zuno.kernel.errors import NotFound, Refused, Unavailable
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.execute.intents import close_id, find_close_id
from zuno.trading.model.cycle import Call, Style
from zuno.trading.model.market import DAY_MS, HOUR_MS, MINUTE_MS, Side
from zuno.trading.model.orders import (
    ClientId,
    Order,
    OrderRequest,
    OrderSide,
    OrderStatus,
    OrderType,
    TimeInForce,
)
from zuno.trading.model.trade_events import ExitReason, IntentStored, Mandate, OrderPlanned, Protection, TradeEvent
from zuno.trading.rules.protections import ProtectionLimits

D = Decimal


def protective(desk: GateHarness) -> dict[str, tuple[Decimal, Decimal | None]]:
    """Quantity and trigger of what protects, by purpose."""
    return {
        order.purpose: (order.left, order.request.trigger)
        for order in desk.gate.book.open_orders.values()
        if order.purpose in ("stop", "target")
    }


def held(desk: GateHarness) -> Decimal:
    position = desk.gate.book.position(desk.paper.exchange, BTC)
    return D(0) if position is None else position.quantity


async def opened(desk: GateHarness | None = None, **named: Any) -> GateHarness:
    desk = desk or GateHarness()
    result = await desk.gate.execute(desk.opening(**named))
    assert result.state == "open", result
    return desk


async def events_of(desk: GateHarness, kind: type) -> list[Any]:
    return [event for event in await desk.log.events(ACCOUNT) if isinstance(event, kind)]


async def test_a_ruling_becomes_a_position_with_stop_and_target_at_the_venue() -> None:
    desk = await opened()
    assert held(desk) == D("0.050")
    assert protective(desk) == {"stop": (D("0.050"), D("19600.0")), "target": (D("0.050"), D("20800.0"))}
    at_venue = {order.request.type for order in await desk.paper.open_venue().open_orders()}
    assert at_venue == {OrderType.STOP_MARKET, OrderType.TAKE_PROFIT_MARKET}
    assert (await desk.gate.reconcile()) == ()


async def test_ruling_and_intent_are_stored_in_one_entry_before_anything_is_sent() -> None:
    desk = await opened()
    events = await desk.log.events(ACCOUNT)
    assert isinstance(events[0], IntentStored)
    assert events[0].ruling is not None
    assert events[0].ruling.decision is Call.LONG
    planned = [place for place, event in enumerate(events) if isinstance(event, OrderPlanned)]
    assert planned[0] == 1


async def test_two_identical_decisions_make_one_intent() -> None:
    """Behaviour 9."""
    desk = GateHarness()
    order = desk.opening()
    first, second = await asyncio.gather(
        desk.gate.execute(order), desk.open_gate().execute(replace(order, run_id="run_other"))
    )
    assert first.intent == second.intent
    await desk.gate.refresh()
    assert len(desk.gate.book.intents) == 1
    assert held(desk) == D("0.050")
    again = await desk.restart().execute(order)
    assert (again.state, again.intent) == ("open", first.intent)
    assert held(desk) == D("0.050")


async def test_cancel_and_close_survives_zero_ev_closes_and_cancels_what_is_pending() -> None:
    """Behaviour 5: an exit is never weighed by its expectancy."""
    desk = GateHarness()
    await desk.gate.execute(desk.opening(style=Style.SMART_DCA))
    assert [order.purpose for order in desk.gate.book.open_orders.values()].count("entry") == 2
    closing = desk.closing()
    assert closing.ruling.card is None
    result = await desk.gate.execute(closing)
    assert result.state == "closed"
    assert held(desk) == 0
    assert desk.gate.book.open_orders == {}
    assert await desk.paper.open_venue().open_orders() == ()
    (summary,) = desk.gate.book.closed
    assert summary.reason is ExitReason.DECISION


async def test_a_target_touched_by_two_threads_credits_once() -> None:
    """Behaviour 10."""
    desk = await opened()
    await desk.move(20_810)
    gates = [desk.open_gate() for _ in range(2)]
    await asyncio.gather(*(gate.advance() for gate in gates))
    await desk.gate.refresh()
    (summary,) = desk.gate.book.closed
    assert summary.reason is ExitReason.TARGET
    assert held(desk) == 0
    venue = desk.paper.open_venue()
    assert await venue.open_orders() == ()
    assert (await venue.balance()).total == desk.gate.book.venue_balance(Venue("BINANCE"))


async def test_two_people_who_close_the_same_trade_close_it_once() -> None:
    desk = await opened()
    (trade,) = desk.gate.book.trades
    gates = [desk.open_gate() for _ in range(2)]
    await asyncio.gather(*(gate.close(trade) for gate in gates), return_exceptions=True)
    await desk.gate.refresh()
    assert len(desk.gate.book.closed) == 1
    assert len([intent for intent in desk.gate.book.intents.values() if intent.intent.reason]) == 1
    with pytest.raises(Refused):
        await desk.gate.close(trade)


class ProcessEnds(BaseException):
    """Nothing is caught and nothing goes on."""


class DyingVenue:
    """A venue whose process ends after so many calls of a kind that change something."""

    def __init__(self, venue: Any, kind: str, count: int) -> None:
        self._venue, self._kind, self._left = venue, kind, count

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._venue, name)
        if name != self._kind:
            return found

        async def call(*args: Any, **named: Any) -> Any:
            done = await found(*args, **named)
            self._left -= 1
            if self._left < 0:
                raise ProcessEnds
            return done

        return call


async def test_a_restart_with_a_half_filled_intent_resumes_it() -> None:
    """Behaviour 11: the order was filled in part, the process ended before it heard; the next one books the fill,
    protects what is held, and goes on with the rest."""
    paper = open_binance()
    desk = GateHarness(paper)
    await desk.move(20_000, size="0.020")
    desk.venue = DyingVenue(paper.open_venue(), "place", 0)
    with pytest.raises(ProcessEnds):
        await desk.restart().execute(desk.opening())
    desk.venue = None
    gate = desk.restart()
    assert held(desk) == 0
    await desk.move(20_000)
    await gate.advance()
    assert held(desk) == D("0.050")
    assert protective(desk)["stop"] == (D("0.050"), D("19600.0"))
    entries = [order for order in gate.book.orders.values() if order.purpose == "entry"]
    assert [order.filled for order in entries] == [D("0.020"), D("0.030")]
    assert gate.book.open_intents == {}
    assert await gate.reconcile() == ()


async def test_protective_orders_follow_the_size_of_the_position() -> None:
    desk = GateHarness()
    await desk.gate.execute(desk.opening(style=Style.SMART_DCA))
    assert protective(desk)["stop"][0] == held(desk) == D("0.021")
    await desk.move(19_890)
    await desk.gate.advance()
    assert protective(desk)["stop"][0] == protective(desk)["target"][0] == held(desk) == D("0.038")
    stops = [order for order in desk.gate.book.orders.values() if order.purpose == "stop"]
    assert [order.status for order in stops] == [OrderStatus.CANCELED, OrderStatus.OPEN]
    # The new one stood before the old one went.
    assert stops[1].planned <= (stops[0].updated or 0)


async def test_what_waits_longer_than_it_may_is_cancelled() -> None:
    desk = GateHarness()
    await desk.gate.execute(desk.opening(style=Style.SMART_DCA))
    desk.wait(4 * HOUR_MS)
    await desk.gate.advance()
    assert {order.purpose for order in desk.gate.book.open_orders.values()} == {"stop", "target"}
    (tracked,) = desk.gate.book.intents.values()
    assert tracked.state == "partial"


async def test_the_rest_of_an_entry_goes_when_its_trade_has_ended() -> None:
    desk = GateHarness()
    await desk.gate.execute(desk.opening(style=Style.SMART_DCA))
    await desk.move(20_810)
    await desk.gate.advance()
    assert desk.gate.book.open_orders == {}
    assert held(desk) == 0
    await desk.move(19_700)
    await desk.gate.advance()
    assert held(desk) == 0


async def test_passive_maker_reprices_and_takes_the_rest_in_the_end() -> None:
    desk = GateHarness()
    result = await desk.gate.execute(desk.opening(style=Style.PASSIVE_MAKER))
    assert result.state == "working"
    for _ in range(4):
        desk.wait(3 * MINUTE_MS)
        await desk.gate.advance()
    entries = [order for order in desk.gate.book.orders.values() if order.purpose == "entry"]
    assert [order.request.time_in_force for order in entries] == [TimeInForce.POST_ONLY] * 4 + [TimeInForce.IOC]
    assert held(desk) == D("0.050")
    assert set(protective(desk)) == {"stop", "target"}


@pytest.mark.parametrize(("price", "reason"), [(19_590, ExitReason.STOP), (20_810, ExitReason.TARGET)])
async def test_when_one_of_stop_and_target_is_filled_the_other_goes(price: int, reason: ExitReason) -> None:
    desk = await opened()
    await desk.move(price)
    await desk.gate.advance()
    assert desk.gate.book.open_orders == {}
    (summary,) = desk.gate.book.closed
    assert summary.reason is reason
    assert summary.edge == 0.05


async def test_a_hold_that_is_over_ends_the_trade() -> None:
    desk = await opened()
    desk.wait(5 * DAY_MS)
    await desk.gate.advance()
    (summary,) = desk.gate.book.closed
    assert summary.reason is ExitReason.HOLD_OVER


async def test_an_expired_ruling_is_refused() -> None:
    desk = GateHarness()
    order = desk.opening()
    desk.wait(16 * MINUTE_MS)
    result = await desk.gate.execute(order)
    assert result.state == "refused"
    assert desk.gate.book.intents == {}


async def test_a_mark_that_moved_more_than_half_an_atr_is_refused() -> None:
    desk = GateHarness()
    order = desk.opening()
    await desk.move(20_101)
    result = await desk.gate.execute(order)
    assert result.state == "refused"
    assert "ATR" in result.reason


async def test_hold_does_nothing() -> None:
    desk = GateHarness()
    as_of = Millis(desk.paper.at)
    result = await desk.gate.execute(desk.order(rule(Call.HOLD, as_of), as_of, "run_1"))
    assert result.state == "held"
    assert await desk.log.events(ACCOUNT) == ()


async def test_an_opposite_decision_closes_now_and_opens_nothing() -> None:
    desk = await opened()
    desk.wait(MINUTE_MS)
    result = await desk.gate.execute(desk.opening(Side.SHORT, run_id="run_2"))
    assert result.state == "closed"
    assert held(desk) == 0
    desk.wait(2 * HOUR_MS)
    result = await desk.gate.execute(desk.opening(Side.SHORT, run_id="run_3"))
    assert result.state == "open"
    assert desk.gate.book.side_of(BTC) is Side.SHORT
    assert protective(desk)["stop"] == (D("0.050"), D("20400.0"))


async def test_a_top_up_resizes_the_stop_and_never_loosens_it() -> None:
    desk = await opened()
    desk.wait(HOUR_MS)
    further = desk.opening(quantity=0.02, run_id="run_2", stop=19_000.0)
    await desk.gate.execute(further)
    assert held(desk) == D("0.070")
    assert protective(desk)["stop"] == (D("0.070"), D("19600.0"))
    desk.wait(HOUR_MS)
    await desk.gate.execute(desk.opening(quantity=0.01, run_id="run_3", stop=19_800.0))
    assert protective(desk)["stop"] == (D("0.080"), D("19800.0"))


class RefusingVenue:
    """Takes everything but orders of one type. `before`: what happens while such an order is on its way."""

    def __init__(self, venue: Any, kind: OrderType, before: Callable[[], None] = lambda: None) -> None:
        self._venue, self._kind, self._before = venue, kind, before

    def __getattr__(self, name: str) -> Any:
        return getattr(self._venue, name)

    async def place(self, order: OrderRequest, good_till: Millis | None = None, *, unread: bool = False) -> Order:
        request = order
        if request.type is not self._kind:
            placed: Order = await self._venue.place(request, good_till, unread=unread)
            return placed
        self._before()
        now = await self._venue.now()
        return Order(
            request=request, venue_id="none", status=OrderStatus.REJECTED, updated=now, reason="Order would trigger"
        )


async def test_an_entry_that_cannot_be_protected_is_undone() -> None:
    paper = open_binance()
    desk = GateHarness(paper, venue=RefusingVenue(paper.open_venue(), OrderType.STOP_MARKET))
    result = await desk.gate.execute(desk.opening())
    assert result.state == "ended"
    assert held(desk) == 0
    (summary,) = desk.gate.book.closed
    assert summary.reason is ExitReason.UNDONE
    assert await paper.open_venue().open_orders() == ()


@pytest.mark.parametrize(
    ("kind", "price", "reason"),
    [
        (OrderType.STOP_MARKET, "19000", ExitReason.STOP),
        (OrderType.TAKE_PROFIT_MARKET, "21500", ExitReason.TARGET),
    ],
)
async def test_a_level_passed_while_its_order_was_on_its_way_ends_the_trade_there(
    kind: OrderType, price: str, reason: ExitReason
) -> None:
    paper = open_binance()
    desk = GateHarness(paper, venue=RefusingVenue(paper.open_venue(), kind, lambda: paper.show(D(price))))
    await desk.gate.execute(desk.opening())
    (summary,) = desk.gate.book.closed
    assert summary.reason is reason


class DeafVenue:
    """Does not answer for a while."""

    def __init__(self, venue: Any) -> None:
        self._venue = venue
        self.silent = False
        self.lose_replies = False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._venue, name)
        if not asyncio.iscoroutinefunction(found):
            return found

        async def call(*args: Any, **named: Any) -> Any:
            if self.silent:
                raise Unavailable("HTTP 502, <html>")
            done = await found(*args, **named)
            if self.lose_replies and name == "place":
                raise Unavailable("timeout")
            return done

        return call


class RealVenue(DeafVenue):
    """Taken for one that another process's order may still be on its way to."""

    simulated = False


class LostLog(MemoryTradeLog):
    """A database that is gone from the moment at which an entry would be planned."""

    lost: bool | None = None

    async def events(self, account: str, after: int = 0) -> tuple[TradeEvent, ...]:
        if account == ACCOUNT and self.lost:
            raise Unavailable("the database does not answer")
        return await super().events(account, after)

    async def append(self, account: str, events: Sequence[TradeEvent], after: int) -> None:
        if account == ACCOUNT and self.lost is None and any(isinstance(event, OrderPlanned) for event in events):
            self.lost = True
        if account == ACCOUNT and self.lost:
            raise Unavailable("the database does not answer")
        await super().append(account, events, after)


async def test_an_entry_whose_plan_is_in_no_log_is_not_sent() -> None:
    log = LostLog()
    paper = replace(open_binance(), log=log)
    desk = GateHarness(paper, venue=RealVenue(paper.open_venue()))
    await desk.gate.advance()
    desk.wait(MINUTE_MS)  # an order sent before the start would have arrived by now
    await desk.gate.execute(desk.opening())
    assert log.lost
    assert await paper.open_venue().positions() == await paper.open_venue().open_orders() == ()
    log.lost = False
    await desk.gate.advance()
    assert held(desk) == D("0.050"), "the intent is stored and the ruling still holds: it is planned anew"
    assert len(await events_of(desk, OrderPlanned)) == 3


async def test_a_lost_reply_is_looked_up_and_not_sent_again() -> None:
    paper = open_binance()
    venue = DeafVenue(paper.open_venue())
    desk = GateHarness(paper, venue=venue)
    venue.lose_replies = True
    order = desk.opening()
    result = await desk.gate.execute(order)
    assert result.state == "open"  # looked up at once
    assert Venue("BINANCE") in desk.gate.troubles
    venue.lose_replies = False
    await desk.gate.advance()
    assert desk.gate.troubles == {}
    assert held(desk) == D("0.050")
    for id in desk.gate.book.orders:
        assert paper.count_orders(id) == 1


async def test_a_venue_that_is_down_for_an_hour_leaves_nothing_undone() -> None:
    paper = open_binance()
    venue = DeafVenue(paper.open_venue())
    desk = GateHarness(paper, venue=venue)
    await desk.gate.execute(desk.opening(style=Style.SMART_DCA))
    venue.silent = True
    assert (await desk.gate.execute(desk.opening(run_id="run_2"))).state in ("working", "open", "refused")
    await desk.move(19_890)
    for _ in range(60):
        desk.paper.at += MINUTE_MS
        await desk.gate.advance()
    venue.silent = False
    desk.paper.show(Decimal(19_890))
    await desk.gate.advance()
    assert desk.gate.troubles == {}
    assert held(desk) == protective(desk)["stop"][0] == D("0.038")
    assert await desk.gate.reconcile() == ()


async def test_a_stop_is_watched_where_the_venue_holds_none() -> None:
    desk = GateHarness(open_upbit())
    result = await desk.gate.execute(desk.opening(quantity=0.02))
    assert result.state == "open"
    assert protective(desk) == {}
    await desk.move(48_990_000)
    await desk.gate.advance()
    (summary,) = desk.gate.book.closed
    assert summary.reason is ExitReason.STOP
    assert desk.gate.book.positions == {}


async def test_what_is_too_small_to_be_sold_waits_until_it_is_worth_enough() -> None:
    """A gap takes a small position past its stop and below the exchange's minimum of 5,000 won."""
    desk = GateHarness(open_upbit())
    assert (await desk.gate.execute(desk.opening(quantity=0.00011))).state == "open"
    await desk.move(44_000_000)
    await desk.gate.advance()
    written = desk.gate.book.count
    for _ in range(5):
        desk.paper.at += 5 * MINUTE_MS
        await desk.move(44_000_000)
        await desk.gate.advance()
    assert (desk.gate.book.count, held(desk)) == (written, D("0.00011"))
    assert (await desk.gate.execute(desk.closing())).state == "refused"
    assert not [order for order in desk.gate.book.orders.values() if order.purpose == "exit"]
    desk.paper.at += 5 * MINUTE_MS
    await desk.move(46_000_000)
    await desk.gate.advance()
    (summary,) = desk.gate.book.closed
    assert (summary.reason, desk.gate.book.positions) == (ExitReason.STOP, {})


# -- intents


async def test_a_leg_that_is_left_out_is_told_with_its_reason() -> None:
    desk = GateHarness(others={Venue("UPBIT"): open_upbit().venue})
    order = desk.opening()
    (leg,) = order.ruling.legs
    small = leg.model_copy(update={"venue": Venue("UPBIT"), "currency": "KRW", "quantity": 0.00001})
    both = replace(order, ruling=order.ruling.model_copy(update={"legs": (leg, small)}))
    result = await desk.gate.execute(both)
    assert result.state == "open"
    assert "UPBIT" in result.reason
    (tracked,) = desk.gate.book.intents.values()
    assert [leg.exchange for leg in tracked.intent.legs] == [Venue("BINANCE")]
    assert (await desk.gate.execute(both)).reason == result.reason


@pytest.mark.parametrize("closes", [0, 1, 2, 3, 4, 7, 20])
async def test_the_next_close_of_the_same_trades_has_the_next_number(closes: int) -> None:
    desk = await opened()
    book, (trade,) = desk.gate.book, desk.gate.book.trades
    (known,) = book.intents.values()
    for number in range(closes):
        book.intents[close_id(ACCOUNT, BTC, (trade,), number)] = known
    assert find_close_id(book, ACCOUNT, BTC) == close_id(ACCOUNT, BTC, (trade,), closes)


# -- bad input


async def test_a_leg_that_could_not_be_sold_at_its_stop_is_refused() -> None:
    """5,000 won at the entry are 4,900 at the stop."""
    desk = GateHarness(open_upbit())
    assert (await desk.gate.execute(desk.opening(quantity=0.0001))).state == "refused"
    assert desk.gate.book.intents == {}


async def test_a_quantity_under_the_lot_and_a_stop_on_the_wrong_side_are_refused() -> None:
    desk = GateHarness()
    assert (await desk.gate.execute(desk.opening(quantity=0.0004))).state == "refused"
    assert (await desk.gate.execute(desk.opening(stop=20_100.0))).state == "refused"
    assert desk.gate.book.intents == {}


async def test_a_symbol_that_was_delisted_over_night_is_refused() -> None:
    desk = GateHarness()
    await desk.paper.delist()
    assert (await desk.gate.execute(desk.opening())).state == "refused"


async def test_what_is_not_there_cannot_be_closed_or_cancelled() -> None:
    desk = GateHarness()
    with pytest.raises(NotFound):
        await desk.gate.close("trd_000000000000")
    with pytest.raises(NotFound):
        await desk.gate.cancel("zn000")
    assert await desk.gate.close(BTC) == ()


async def test_a_protective_order_is_not_cancelled_by_itself() -> None:
    desk = await opened()
    stop = next(order for order in desk.gate.book.open_orders.values() if order.purpose == "stop")
    with pytest.raises(Refused):
        await desk.gate.cancel(stop.request.client_id)


async def test_an_entry_that_waits_can_be_cancelled() -> None:
    desk = GateHarness()
    await desk.gate.execute(desk.opening(style=Style.PASSIVE_MAKER))
    (id,) = desk.gate.book.open_orders
    await desk.gate.close(BTC)
    assert desk.gate.book.orders[id].status is OrderStatus.CANCELED
    assert desk.gate.book.open_intents == {}


# -- levels


async def test_levels_are_tightened_at_once_and_loosened_when_confirmed() -> None:
    desk = await opened()
    (trade,) = desk.gate.book.trades
    await desk.gate.set_levels(trade, D("19800.07"), None)
    assert protective(desk)["stop"] == (D("0.050"), D("19800.1"))  # on the tick, and no more is risked than was said
    with pytest.raises(Refused):
        await desk.gate.set_levels(trade, D(19_500), None)
    with pytest.raises(Refused):
        await desk.gate.set_levels(trade, None, D(21_000))
    await desk.gate.set_levels(trade, D(19_500), None, confirmed=True)
    assert protective(desk)["stop"][1] == D("19500.0")
    for wrong in ((D(20_500), None), (None, D(19_900))):
        with pytest.raises(Refused):
            await desk.gate.set_levels(trade, *wrong, confirmed=True)


# -- protections


async def test_kill_cancels_all_closes_all_and_locks_until_unlocked() -> None:
    desk = GateHarness(limits=ProtectionLimits(cooldown_minutes=0))
    await desk.gate.execute(desk.opening(style=Style.SMART_DCA))
    await desk.gate.kill()
    assert held(desk) == 0
    assert desk.gate.book.open_orders == {}
    (summary,) = desk.gate.book.closed
    assert summary.reason is ExitReason.KILL_SWITCH
    desk.wait(MINUTE_MS)
    refused = await desk.restart().execute(desk.opening(run_id="run_2"))
    assert refused.state == "refused"
    assert Protection.KILL_SWITCH.value in refused.reason
    await desk.gate.unlock()
    assert (await desk.gate.execute(desk.opening(run_id="run_3"))).state == "open"


async def test_a_pause_keeps_new_risk_back_and_lets_exits_pass() -> None:
    desk = await opened()
    await desk.gate.pause()
    desk.wait(MINUTE_MS)
    assert (await desk.gate.execute(desk.opening(run_id="run_2", quantity=0.01))).state == "refused"
    assert (await desk.gate.execute(desk.closing())).state == "closed"
    assert await desk.gate.resume()


async def test_a_daily_loss_is_stored_as_a_lock_with_its_end() -> None:
    desk = GateHarness(limits=ProtectionLimits(daily_loss_pct=D(1)))
    await opened(desk)
    await desk.move(19_590)
    await desk.gate.advance()
    lock = desk.gate.book.locks[Protection.DAILY_LOSS, None]
    assert lock.until == desk.paper.at // DAY_MS * DAY_MS + DAY_MS
    desk.wait(2 * HOUR_MS)
    result = await desk.gate.execute(desk.opening(run_id="run_2"))
    assert result.state == "refused"
    assert "daily_loss" in result.reason


async def test_no_more_trades_than_may_be_open() -> None:
    desk = GateHarness(limits=ProtectionLimits(max_open_trades=0))
    assert (await desk.gate.execute(desk.opening())).state == "refused"


# -- money needs a mandate


def mandate(desk: GateHarness, **named: Any) -> Mandate:
    fields: dict[str, Any] = {
        "symbols": (BTC,),
        "venues": (Venue("BINANCE"),),
        "max_margin_per_trade_usd": D(1_000),
        "max_margin_per_day_usd": D(1_500),
        "max_daily_loss_usd": D(100),
        "granted": desk.paper.at,
        "expires": desk.paper.at + DAY_MS,
    }
    return Mandate(**{**fields, **named})


async def test_a_live_account_without_a_mandate_places_nothing() -> None:
    desk = GateHarness(live=True)
    result = await desk.gate.execute(desk.opening())
    assert result.state == "refused"
    assert "mandate" in result.reason
    assert await desk.paper.open_venue().open_orders() == ()


@pytest.mark.parametrize(
    "named",
    [{"symbols": (Symbol("ETHUSDT"),)}, {"max_margin_per_trade_usd": D(999), "max_margin_per_day_usd": D(999)}],
)
async def test_a_mandate_for_something_else_is_no_mandate(named: dict[str, Any]) -> None:
    desk = GateHarness(live=True)
    await desk.gate.grant_mandate(mandate(desk, **named))
    assert (await desk.gate.execute(desk.opening())).state == "refused"


async def test_a_live_order_cites_its_mandate_until_it_is_revoked() -> None:
    desk = GateHarness(live=True)
    granted = await desk.gate.grant_mandate(mandate(desk))
    assert (await desk.gate.execute(desk.opening())).state == "open"
    (tracked,) = desk.gate.book.intents.values()
    assert tracked.intent.mandate == granted.hash
    await desk.gate.revoke_mandate()
    desk.wait(MINUTE_MS)
    assert (await desk.gate.execute(desk.opening(run_id="run_2", quantity=0.01))).state == "refused"


# -- reconciliation


async def place_foreign(desk: GateHarness, client_id: ClientId, kind: OrderType = OrderType.LIMIT) -> None:
    price = D(15_000) if kind is OrderType.LIMIT else None
    request = OrderRequest(
        client_id=client_id,
        exchange=Venue("BINANCE"),
        symbol=BTC,
        side=OrderSide.BUY,
        type=kind,
        quantity=D("0.010"),
        price=price,
    )
    await desk.paper.open_venue().place(request)


async def test_an_order_of_ours_that_the_book_does_not_know_is_cancelled() -> None:
    desk = await opened()
    await place_foreign(desk, "zn1234")
    assert len(await desk.gate.reconcile()) == 1
    assert {order.request.client_id for order in await desk.paper.open_venue().open_orders()} == set(
        desk.gate.book.open_orders
    )
    assert (Protection.RECONCILIATION, BTC) not in desk.gate.book.locks


async def test_a_strangers_order_or_position_stops_the_symbol() -> None:
    desk = GateHarness()
    await place_foreign(desk, "by-hand")
    await desk.gate.reconcile()
    assert (Protection.RECONCILIATION, BTC) in desk.gate.book.locks
    other = GateHarness()
    await place_foreign(other, "by-hand", OrderType.MARKET)
    said = await other.gate.reconcile()
    assert said
    assert (Protection.RECONCILIATION, BTC) in other.gate.book.locks
    assert (await other.gate.execute(other.opening())).state == "refused"


async def test_cash_that_differs_by_a_little_is_adopted_and_by_much_stops_the_desk() -> None:
    desk = GateHarness()
    await desk.paper.owe(D("1999.99"))
    await desk.gate.reconcile()
    assert desk.gate.book.cash(Venue("BINANCE")) == D("1999.99")
    assert desk.gate.book.locks == {}
    await desk.paper.owe(D("1500"))
    await desk.gate.reconcile()
    assert (Protection.RECONCILIATION, None) in desk.gate.book.locks
