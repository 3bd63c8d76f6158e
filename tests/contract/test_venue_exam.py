"""The exam of venues that take orders: every adapter sits it, over its exchange's own wire format.

A candidate is a venue in a harness (`tests/wire/exchanges/harness.py`): a market that a test moves. Papers of the exam:
what every venue owes; what one owes that holds stops, or positions on margin; what one owes that is reached by HTTP.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from decimal import Decimal
from functools import partial
from itertools import product
from typing import Any, TypeVar
from zlib import crc32

import pytest

from tests.wire.exchanges.account import is_open
from tests.wire.exchanges.desk import WireDesk
from tests.wire.exchanges.harness import (
    ALWAYS,
    PAGE,
    WIRES,
    VenueHarness,
    WireHarness,
    find,
    hold,
    limit,
    open_long,
    over_beside,
    over_wire,
    request_order,
)
from tests.wire.exchanges.serving import BLOCKED, DOWN, HTML, Answer
from tests.wire.paper_venue import binance_on_paper, upbit_on_paper
from tests.wire.vendors.serving import fields, without
from zuno.adapters.http import RateLimited
from zuno.adapters.venues.orders.wires import ACCOUNTS, build_funds
from zuno.kernel.errors import NotFound, Refused, Unavailable, ZunoError
from zuno.markets.venues import DEFAULT_VENUES, Venue
from zuno.trading.execute.carry import HedgeTarget
from zuno.trading.model.cycle import Style
from zuno.trading.model.market import Side
from zuno.trading.model.orders import OUR_PREFIX, OrderRequest, OrderSide, OrderStatus, OrderType, TimeInForce

BUY, SELL = OrderSide.BUY, OrderSide.SELL
LIMIT, STOP, TARGET = OrderType.LIMIT, OrderType.STOP_MARKET, OrderType.TAKE_PROFIT_MARKET
Opening = Callable[[], AbstractAsyncContextManager[Any]]

PAPER: dict[str, Opening] = {"BINANCE on paper": binance_on_paper, "UPBIT on paper": upbit_on_paper}
BY_HTTP = [name for name in WIRES if name in ACCOUNTS]
EVERY: dict[str, Opening] = {**{name: partial(over_wire, name) for name in BY_HTTP}, **PAPER}


def choose(able: Callable[[Venue], bool], *, by_http: bool = False) -> list[str]:
    """Candidates whose venue is able to."""
    return [name for name in (BY_HTTP if by_http else EVERY) if able(Venue(name.removesuffix(" on paper")))]


WITH_STOPS = choose(lambda venue: venue.holds_stops)
WITHOUT_STOPS = choose(lambda venue: not venue.holds_stops, by_http=True)
ON_MARGIN = choose(lambda venue: not venue.spot)
ON_MARGIN_BY_HTTP = choose(lambda venue: not venue.spot, by_http=True)
SPOT = choose(lambda venue: venue.spot, by_http=True)
FEE_IN_BASE = choose(lambda venue: venue.fee_in_base, by_http=True)


LONG = ("test_a_renamed_field_is_noticed",)
"""Papers that only the first candidate sits in `make test`."""
Test = TypeVar("Test", bound=Callable[..., Any])


def only(names: list[str]) -> Callable[[Test], Test]:
    """Who sits a paper that not everybody can."""

    def mark(test: Test) -> Test:
        test.candidates = names  # type: ignore[attr-defined]
        return test

    return mark


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Everybody sits the whole exam in `make soak`; in `make test` the first two, paper, and one more of the others,
    which changes from paper to paper."""
    if "here" not in metafunc.fixturenames:
        return
    names: list[str] = getattr(metafunc.function, "candidates", list(EVERY))
    others = [name for name in names if name in BY_HTTP and name not in DEFAULT_VENUES]
    chosen = others[crc32(metafunc.function.__name__.encode()) % len(others)] if others else ""
    long = set(names[1:]) if metafunc.function.__name__ in LONG else {name for name in others if name != chosen}
    rows = [pytest.param(name, marks=[pytest.mark.soak] if name in long else []) for name in names]
    metafunc.parametrize("here", rows, indirect=True)


@pytest.fixture
async def here(request: pytest.FixtureRequest) -> AsyncIterator[VenueHarness]:
    async with EVERY[request.param]() as harness:
        yield harness


# -- one order of a client id


async def test_an_order_placed_twice_is_one(here: VenueHarness) -> None:
    order = request_order(here, "twice")
    first = await here.venue.place(order)
    again = await here.venue.place(order)
    assert (first.status, first.filled) == (OrderStatus.FILLED, here.quantity)
    assert (again.venue_id, again.status, again.filled) == (first.venue_id, first.status, first.filled)
    assert here.count_orders(order.client_id) == 1


async def test_an_order_placed_by_three_at_once_is_one(here: VenueHarness) -> None:
    order = request_order(here, "at once")
    placed = await asyncio.gather(*(here.venue.place(order) for _ in range(3)))
    assert len({answer.venue_id for answer in placed}) == 1
    assert here.count_orders(order.client_id) == 1


async def test_an_order_is_one_across_a_restart_whatever_became_of_it(here: VenueHarness) -> None:
    resting = limit(here, "resting", here.price - 100 * here.tick)
    cancelled = limit(here, "cancelled", here.price - 100 * here.tick)
    await here.venue.place(resting)
    await here.venue.place(cancelled)
    await here.venue.cancel(here.symbol, cancelled.client_id)
    await here.restart()
    assert (await here.venue.place(resting)).status is OrderStatus.OPEN
    assert (await here.venue.place(cancelled)).status is OrderStatus.CANCELED
    assert [here.count_orders(order.client_id) for order in (resting, cancelled)] == [1, 1]


async def test_an_order_that_was_never_placed_is_not_found(here: VenueHarness) -> None:
    assert await find(here, request_order(here, "never")) is None


async def test_what_was_placed_is_found_as_it_was_asked_for(here: VenueHarness) -> None:
    order = limit(here, "found", here.price - 50 * here.tick)
    placed = await here.venue.place(order)
    await here.restart()
    found = await find(here, order)
    assert found is not None
    assert found.request.model_copy(update={"leverage": order.leverage}) == order
    assert (found.venue_id, found.status, found.filled, found.average_price) == (
        placed.venue_id,
        OrderStatus.OPEN,
        0,
        None,
    )
    assert [shown.request.client_id for shown in await here.venue.open_orders()] == [order.client_id]


async def test_an_order_of_another_exchange_is_refused(here: VenueHarness) -> None:
    other = next(exchange for exchange in DEFAULT_VENUES if exchange is not here.venue.exchange)
    with pytest.raises(Refused):
        await here.venue.place(request_order(here, "elsewhere").model_copy(update={"exchange": other}))


# -- fills


async def test_a_partial_fill_is_told_and_the_rest_stays_open(here: VenueHarness) -> None:
    part = here.quantity / 5
    await here.move(here.price, size=part)
    order = limit(here, "partial", here.price + 10 * here.tick)
    placed = await here.venue.place(order)
    assert (placed.status, placed.filled, placed.left) == (OrderStatus.OPEN, part, here.quantity - part)
    await here.move(here.price + here.tick)
    done = await find(here, order)
    assert done is not None
    assert (done.status, done.filled) == (OrderStatus.FILLED, here.quantity)
    fills = await here.venue.fills(here.symbol, ALWAYS)
    assert [fill.executed for fill in fills] == [part, here.quantity - part]
    assert {fill.client_id for fill in fills} == {order.client_id}
    assert len({fill.id for fill in fills}) == 2
    assert await here.venue.order_fills(done) in (None, fills)
    assert [fill.at for fill in fills] == sorted(fill.at for fill in fills)
    paid = sum(fill.executed * fill.price for fill in fills)
    assert done.average_price is not None
    assert abs(done.average_price - paid / here.quantity) < here.tick
    assert all(0 < fill.fee <= fill.executed * fill.price / 1_000 for fill in fills)


async def test_an_immediate_order_keeps_nothing_open(here: VenueHarness) -> None:
    part = here.quantity / 5
    await here.move(here.price, size=part)
    order = limit(here, "ioc", here.price + 10 * here.tick, time_in_force=TimeInForce.IOC)
    placed = await here.venue.place(order)
    assert placed.filled == part
    assert placed.status in (OrderStatus.EXPIRED, OrderStatus.CANCELED)
    assert await here.venue.open_orders() == ()


async def test_a_post_only_order_never_takes(here: VenueHarness) -> None:
    order = limit(here, "maker", here.price + 10 * here.tick, time_in_force=TimeInForce.POST_ONLY)
    placed = await here.venue.place(order)
    assert placed.status.final
    assert placed.filled == 0
    assert await here.venue.fills(here.symbol, ALWAYS) == ()
    resting = limit(here, "rests", here.price - 10 * here.tick, time_in_force=TimeInForce.POST_ONLY)
    assert (await here.venue.place(resting)).status is OrderStatus.OPEN
    await here.move(here.price - 30 * here.tick)
    assert [fill.maker for fill in await here.venue.fills(here.symbol, ALWAYS)] == [True]


async def test_fills_come_again_and_never_fewer(here: VenueHarness) -> None:
    for number in range(2 * PAGE + 1):
        await here.venue.place(request_order(here, f"buy {number}", quantity=here.quantity / 10))
    first = await here.venue.fills(here.symbol, ALWAYS)
    assert len(first) == 2 * PAGE + 1
    await here.restart()
    assert await here.venue.fills(here.symbol, ALWAYS) == first
    later = await here.venue.fills(here.symbol, first[-1].at)
    assert set(later) <= set(first)
    assert first[-1] in later


async def test_money_and_position_follow_the_fills(here: VenueHarness) -> None:
    before = await here.venue.balance()
    await here.venue.place(request_order(here, "in"))
    (bought,) = await here.venue.fills(here.symbol, ALWAYS)
    (held,) = await here.venue.positions()
    assert (held.symbol, held.side, held.quantity) == (here.symbol, Side.LONG, bought.quantity)
    assert bought.executed == here.quantity
    assert held.entry is None or abs(held.entry - here.price) <= 2 * here.tick
    await here.venue.place(request_order(here, "out", SELL, quantity=held.quantity, reduce_only=True))
    assert await here.venue.positions() == ()
    fills = await here.venue.fills(here.symbol, ALWAYS)
    paid = [Decimal(0) if fill.base_fee else fill.fee for fill in fills]
    flow = sum(-fill.side.sign * fill.executed * fill.price for fill in fills) - sum(paid)
    assert abs((await here.venue.balance()).total - before.total - flow) < Decimal("0.0001")


@only(FEE_IN_BASE)
async def test_a_fee_in_base_reduces_what_is_held(here: WireHarness) -> None:
    await here.venue.place(request_order(here, "in"))
    (fill,) = await here.venue.fills(here.symbol, ALWAYS)
    (trade,) = here.fake.engine.trades
    assert (fill.base_fee, fill.executed, fill.foreign_fee) == (trade.fee, here.quantity, "")
    assert fill.quantity == await hold(here) == here.quantity - trade.fee
    assert abs(fill.fee - trade.fee * fill.price) < Decimal("0.01")


@only(SPOT)
async def test_what_is_not_held_is_not_sold(here: VenueHarness) -> None:
    rejected = await here.venue.place(request_order(here, "short", SELL))
    assert (rejected.status, rejected.filled) == (OrderStatus.REJECTED, 0)
    assert rejected.reason
    assert await here.venue.funding(here.symbol, ALWAYS) == ()


# -- cancels


async def test_a_cancel_keeps_what_was_filled_before(here: VenueHarness) -> None:
    part = here.quantity / 5
    await here.move(here.price, size=part)
    order = limit(here, "cancel", here.price + 10 * here.tick)
    await here.venue.place(order)
    ended = await here.venue.cancel(here.symbol, order.client_id)
    assert (ended.status, ended.filled) == (OrderStatus.CANCELED, part)
    again = await here.venue.cancel(here.symbol, order.client_id)
    assert (again.status, again.filled) == (OrderStatus.CANCELED, part)
    assert await here.venue.open_orders() == ()


async def test_a_cancel_of_what_is_filled_says_so(here: VenueHarness) -> None:
    order = request_order(here, "filled")
    await here.venue.place(order)
    assert (await here.venue.cancel(here.symbol, order.client_id)).status is OrderStatus.FILLED


async def test_a_cancel_of_nothing_is_unknown(here: VenueHarness) -> None:
    with pytest.raises(NotFound):
        await here.venue.cancel(here.symbol, request_order(here, "nothing").client_id)


# -- rejects


async def test_an_order_against_the_filters_is_rejected_with_its_reason(here: VenueHarness) -> None:
    filters = await here.venue.filters(here.symbol)
    resting = here.price - 100 * here.tick
    broken = {
        "lot": limit(here, "lot", resting, quantity=here.quantity + filters.lot / 2),
        "tick": limit(here, "tick", resting + filters.tick / 2),
        "most": request_order(here, "most", quantity=filters.max_quantity + filters.lot),
        "no price": request_order(here, "no price", kind=LIMIT),
        "no trigger": request_order(here, "no trigger", SELL, STOP),
    }
    if filters.tick * 10 * filters.min_quantity < filters.min_notional:
        broken["least"] = limit(here, "least", filters.tick * 10, quantity=filters.min_quantity)
    for name, order in broken.items():
        rejected = await here.venue.place(order)
        assert rejected.status is OrderStatus.REJECTED, name
        assert rejected.reason, name
        assert here.count_orders(order.client_id) == 0, name


async def test_more_than_there_is_money_for_is_rejected_with_its_reason(here: VenueHarness) -> None:
    order = request_order(here, "rich", quantity=here.quantity * 100)
    rejected = await here.venue.place(order)
    assert (rejected.status, rejected.filled) == (OrderStatus.REJECTED, 0)
    assert rejected.reason
    assert await here.venue.positions() == ()


async def test_a_reduce_only_order_without_a_position_is_rejected(here: VenueHarness) -> None:
    for side in OrderSide:
        rejected = await here.venue.place(request_order(here, f"reduce {side}", side, reduce_only=True))
        assert rejected.status is OrderStatus.REJECTED
        assert rejected.reason
    assert await here.venue.positions() == ()


async def test_a_reduce_only_order_never_turns_a_position(here: VenueHarness) -> None:
    opened = await open_long(here)
    order = request_order(here, "out", SELL, quantity=here.quantity * 2, reduce_only=True)
    ended = await here.venue.place(order)
    assert ended.status.final
    assert ended.filled in (0, opened)
    assert await hold(here) == opened - ended.filled
    assert all(position.side is Side.LONG for position in await here.venue.positions())


async def test_a_symbol_that_stopped_trading_takes_no_order(here: VenueHarness) -> None:
    await here.delist()
    assert not (await here.venue.filters(here.symbol)).trading
    order = request_order(here, "delisted")
    rejected = await here.venue.place(order)
    assert rejected.status is OrderStatus.REJECTED
    assert rejected.reason
    assert here.count_orders(order.client_id) == 0


async def test_a_balance_below_zero_is_told_as_it_is(here: VenueHarness) -> None:
    await here.owe(Decimal("-966.25"))
    balance = await here.venue.balance()
    assert (balance.total, balance.available) == (Decimal("-966.25"), Decimal("-966.25"))
    assert (await here.venue.place(request_order(here, "owing"))).status is OrderStatus.REJECTED


async def test_the_touch_lies_around_the_mark(here: VenueHarness) -> None:
    await here.move(here.price + 5 * here.tick)
    quote = await here.venue.quote(here.symbol)
    assert quote.bid < quote.mark < quote.ask
    assert quote.mark == here.price + 5 * here.tick


# -- stops


def as_listed(here: VenueHarness, order: OrderRequest) -> OrderRequest:
    """A spot exchange does not say of an order that it only reduces."""
    return order.model_copy(update={"reduce_only": False}) if here.venue.exchange.spot else order


@only(WITH_STOPS)
async def test_stop_and_target_stand_beside_plain_orders(here: VenueHarness) -> None:
    """Of coins that are locked by a stop there is no target; the desk watches it."""
    opened = await open_long(here)
    away = 1_000 * here.tick
    orders = [
        request_order(here, "stop", SELL, STOP, opened, trigger=here.price - away, reduce_only=True),
        limit(here, "more", here.price - away),
    ]
    if not here.venue.exchange.spot:
        orders.append(request_order(here, "target", SELL, TARGET, trigger=here.price + away, reduce_only=True))
    for order in orders:
        assert (await here.venue.place(order)).status is OrderStatus.OPEN
        assert (await here.venue.place(order)).status is OrderStatus.OPEN
        assert here.count_orders(order.client_id) == 1
    await here.restart()
    listed = {order.request.client_id: as_listed(here, order.request) for order in await here.venue.open_orders()}
    assert listed == {order.client_id: as_listed(here, order) for order in orders}


@only(WITH_STOPS)
async def test_a_stop_is_triggered_by_the_mark_and_its_fills_are_its_own(here: VenueHarness) -> None:
    opened = await open_long(here)
    trigger = here.price - 1_000 * here.tick
    stop = request_order(here, "stop", SELL, STOP, opened, trigger=trigger, reduce_only=True)
    await here.venue.place(stop)
    await here.move(trigger - 10 * here.tick, mark=trigger + here.tick)
    assert [order.request.client_id for order in await here.venue.open_orders()] == [stop.client_id]
    await here.move(trigger - 10 * here.tick, mark=trigger)
    assert await here.venue.open_orders() == ()
    assert await here.venue.positions() == ()
    for _ in range(2):
        ended = await find(here, stop)
        assert ended is not None
        assert (ended.status, ended.filled) == (OrderStatus.FILLED, opened)
        assert ended.average_price is not None
        assert ended.average_price <= trigger
        fills = [fill for fill in await here.venue.fills(here.symbol, ALWAYS) if fill.side is SELL]
        assert [(fill.client_id, fill.quantity) for fill in fills] == [(stop.client_id, opened)]
        assert (await here.venue.cancel(here.symbol, stop.client_id)).status is OrderStatus.FILLED
        assert (await here.venue.place(stop)).status is OrderStatus.FILLED
        await here.restart()
    assert here.count_orders(stop.client_id) == 1


@only(WITH_STOPS)
async def test_a_stop_on_the_wrong_side_is_rejected(here: VenueHarness) -> None:
    opened = await open_long(here)
    for name, kind, trigger in (("stop", STOP, here.price + 100 * here.tick), ("target", TARGET, here.price / 2)):
        trigger -= trigger % here.tick
        wrong = request_order(here, name, SELL, kind, opened, trigger=trigger, reduce_only=True)
        rejected = await here.venue.place(wrong)
        assert rejected.status is OrderStatus.REJECTED
        assert rejected.reason


@only(WITH_STOPS)
async def test_a_stop_is_cancelled_like_any_order(here: VenueHarness) -> None:
    opened = await open_long(here)
    stop = request_order(here, "stop", SELL, STOP, opened, trigger=here.price - 1_000 * here.tick, reduce_only=True)
    await here.venue.place(stop)
    assert (await here.venue.cancel(here.symbol, stop.client_id)).status is OrderStatus.CANCELED
    assert await here.venue.open_orders() == ()
    assert (await here.venue.place(stop)).status is OrderStatus.CANCELED


@only(ON_MARGIN)
async def test_a_stop_whose_position_is_gone_fills_nothing(here: VenueHarness) -> None:
    await open_long(here)
    trigger = here.price - 1_000 * here.tick
    stop = request_order(here, "stop", SELL, STOP, trigger=trigger, reduce_only=True)
    await here.venue.place(stop)
    await here.venue.place(request_order(here, "out", SELL, reduce_only=True))
    await here.move(trigger - here.tick)
    ended = await find(here, stop)
    assert ended is not None
    assert ended.filled == 0
    assert await here.venue.positions() == ()


@only(WITHOUT_STOPS)
async def test_a_venue_without_stops_says_so_and_takes_none(here: VenueHarness) -> None:
    await open_long(here)
    assert not (await here.venue.filters(here.symbol)).holds_stops
    stop = request_order(here, "stop", SELL, STOP, trigger=here.price - 10 * here.tick, reduce_only=True)
    assert (await here.venue.place(stop)).status is OrderStatus.REJECTED
    assert await here.venue.funding(here.symbol, ALWAYS) == ()


# -- margin


@only(ON_MARGIN)
async def test_a_short_is_a_position_with_margin_leverage_and_liquidation(here: WireHarness) -> None:
    await here.venue.place(request_order(here, "short", SELL, leverage=3))
    (held,) = await here.venue.positions()
    assert (held.side, held.quantity, held.leverage) == (Side.SHORT, here.quantity, 3)
    assert held.entry is not None
    assert abs(held.margin - held.entry * held.quantity / 3) < Decimal("0.01")
    assert held.liquidation is not None
    assert held.liquidation > held.entry
    assert (await here.venue.balance()).available < (await here.venue.balance()).total


@only(ON_MARGIN)
async def test_an_open_gain_is_no_cash(here: WireHarness) -> None:
    await open_long(here)
    before = (await here.venue.balance()).total
    for change in (500, -700):
        await here.move(here.price + change * here.tick)
        assert (await here.venue.balance()).total == before


@only(ON_MARGIN)
async def test_funding_comes_oldest_first_each_once(here: VenueHarness) -> None:
    await open_long(here)
    for rate in ("0.0001", "-0.0002", "0.0001", "0.0003", "0.0001"):
        await here.settle_funding(Decimal(rate))
    paid = await here.venue.funding(here.symbol, ALWAYS)
    assert [payment.amount < 0 for payment in paid] == [True, False, True, True, True]
    assert len({payment.id for payment in paid}) == 5
    assert [payment.at for payment in paid] == sorted(payment.at for payment in paid)
    assert await here.venue.funding(here.symbol, paid[3].at) == paid[3:]


@only(ON_MARGIN)
async def test_a_liquidation_is_marked_as_one(here: VenueHarness) -> None:
    await here.venue.place(request_order(here, "in", leverage=3))
    await here.liquidate()
    assert [fill.liquidation for fill in await here.venue.fills(here.symbol, ALWAYS)] == [False, True]


# -- whatever is between the venue and us


@only(BY_HTTP)
async def test_what_is_repeated_and_shuffled_is_told_once_and_in_order(here: WireHarness) -> None:
    await here.move(here.price, size=here.quantity / 2)
    await here.venue.place(limit(here, "in", here.price + 10 * here.tick))
    here.fake.clock.ahead += 2_000
    await here.move(here.price)
    for number in range(2):
        await here.venue.place(limit(here, f"resting {number}", here.price - 100 * here.tick))
    if not here.exchange.spot:
        await here.settle_funding(Decimal("0.0001"))
        await here.venue.place(request_order(here, "stop", SELL, STOP, trigger=here.price / 2, reduce_only=True))

    async def read() -> list[Any]:
        await here.restart()
        venue = here.venue
        lists = [await venue.fills(here.symbol, ALWAYS), await venue.open_orders()]
        return [*lists, await venue.funding(here.symbol, ALWAYS), await find(here, limit(here, "in", here.price))]

    usual = await read()
    assert len(usual[0]) == 2
    here.fake.repeat_and_shuffle()
    assert await read() == usual


def date_back(document: Any, at: int) -> Any:
    if isinstance(document, list):
        return [date_back(row, at) for row in document]
    if not isinstance(document, dict):
        return document
    dates = {name: type(document[name])(at) for name in ("time", "timestamp", "ts", "closeTime") if name in document}
    return {name: date_back(value, at) for name, value in document.items()} | dates


@only(BY_HTTP)
async def test_an_old_price_is_no_price(here: WireHarness) -> None:
    """By the venue's clock, not by ours."""
    here.fake.clock.ahead = -600_000
    assert (await here.venue.quote(here.symbol)).mark == here.price
    at = here.fake.clock.now()

    def keep(name: str, document: Any) -> Any:
        return document if any(word in name for word in ("/time", "exchangeStatus")) else date_back(document, at)

    here.fake.clock.ahead = 0
    here.server.change = keep
    await here.restart()
    with pytest.raises(Unavailable):
        await here.venue.quote(here.symbol)


@only(BY_HTTP)
async def test_an_order_is_looked_up_before_it_is_made(here: WireHarness) -> None:
    await here.venue.place(request_order(here, "looked up"))
    asked = here.server.asked
    assert asked.index(here.find_name) < asked.index(here.place_name)
    await here.venue.place(request_order(here, "looked up"))
    assert asked.count(here.place_name) == 1


@only(BY_HTTP)
async def test_a_lost_reply_leaves_one_order(here: WireHarness) -> None:
    for number, restart in enumerate((False, True)):
        order = request_order(here, f"lost {number}")
        here.server.lose_reply(here.place_name)
        with pytest.raises(Unavailable):
            await here.venue.place(order)
        if restart:
            await here.restart()
        found = await find(here, order)
        assert found is not None
        assert found.status is OrderStatus.FILLED
        assert (await here.venue.place(order)).venue_id == found.venue_id
        assert here.count_orders(order.client_id) == 1
    assert here.server.count(here.place_name) == 2


@only(choose(lambda venue: venue.holds_stops, by_http=True))
async def test_a_lost_reply_leaves_one_stop(here: WireHarness) -> None:
    opened = await open_long(here)
    stop = request_order(here, "stop", SELL, STOP, opened, trigger=here.price - 1_000 * here.tick, reduce_only=True)
    here.server.lose_reply(here.fake.stop_name)
    with pytest.raises(Unavailable):
        await here.venue.place(stop)
    await here.restart()
    found = await find(here, stop)
    assert found is not None
    assert found.status is OrderStatus.OPEN
    assert (await here.venue.place(stop)).venue_id == found.venue_id
    assert here.count_orders(stop.client_id) == 1


@only(BY_HTTP)
async def test_an_order_that_another_process_placed_meanwhile_is_one(here: WireHarness) -> None:
    """Between the look-up and the order: the venue refuses the second one of an id, and the first is found."""
    order = limit(here, "meanwhile", here.price - 100 * here.tick)
    placed: list[int] = []

    def place() -> None:
        made = here.fake.place_meanwhile(here.spell(order.client_id), here.market, "BUY", order.quantity, order.price)
        placed.append(made.id)

    here.server.before[here.place_name] = place
    standing = await here.venue.place(order)
    assert (standing.status, standing.request.price) == (OrderStatus.OPEN, order.price)
    assert here.count_orders(order.client_id) == len(placed) == 1


# -- what is new is listed late


LAGS = (0, 3_000, 12_000)
"""Milliseconds for which look-ups and lists do not show what is new."""
CAREFUL = [name for name in SPOT if name != "UPBIT"]
"""Where an id may come again and nothing only reduces: a second sale would be of other coins."""
HOUSES = [name for name in ON_MARGIN if f"{name}-SPOT" in BY_HTTP]


async def open_late(here: WireHarness, **options: Any) -> AsyncIterator[tuple[WireDesk, int]]:
    """A desk for each lag, at an exchange of its own."""
    for lag in LAGS:
        async with over_wire(here.exchange) as late:
            yield WireDesk(late, options=options), lag


def check_whole(desk: WireDesk, held: Decimal, *, orders: int) -> None:
    """The exchange holds that and the book too, and of each order planned one was made."""
    book, lot = desk.gate.book, desk.here.fake.engine.markets[desk.here.market].lot
    assert abs(desk.held() - held) < lot
    assert abs(sum((trade.signed for trade in book.positions.values()), Decimal(0)) - held) < lot
    made = [desk.here.count_orders(id) for id, order in book.orders.items() if order.status is not OrderStatus.REJECTED]
    assert made == [1] * orders
    assert book.locks == {}


@only(BY_HTTP)
async def test_an_entry_listed_late_is_one(here: WireHarness) -> None:
    async for desk, lag in open_late(here):
        desk.die_behind("entry", lag)
        await desk.open()
        await desk.go_on()
        check_whole(desk, desk.held(), orders=1 + here.exchange.holds_stops * (2 - here.exchange.spot))


@only(choose(lambda venue: venue.holds_stops, by_http=True))
async def test_a_stop_listed_late_is_one_and_keeps_its_position(here: WireHarness) -> None:
    async for desk, lag in open_late(here):
        desk.die_behind("stop", lag)
        await desk.open()
        await desk.go_on()
        assert desk.held() > 0
        check_whole(desk, desk.held(), orders=2 if here.exchange.spot else 3)


@only(ON_MARGIN_BY_HTTP)
async def test_a_target_listed_late_is_one(here: WireHarness) -> None:
    """Of a part of what is held; the rest runs on."""
    async for desk, lag in open_late(here, let_run_pct=50):
        desk.die_behind("target", lag)
        await desk.open()
        await desk.go_on()
        check_whole(desk, desk.held(), orders=3)


@only(BY_HTTP)
async def test_a_close_listed_late_sells_no_more_than_what_is_held(here: WireHarness) -> None:
    """Coins beside it are the owner's."""
    async for desk, lag in open_late(here):
        await desk.open()
        owned = here.quantity if here.exchange.spot else Decimal(0)
        desk.here.fake.hold_foreign(desk.here.market, owned) if owned else None
        desk.die_behind("exit", lag)
        await desk.gate.execute(desk.closing(here.symbol))
        await desk.go_on()
        assert 0 <= desk.held() - owned < desk.here.fake.engine.markets[desk.here.market].lot
        assert desk.gate.book.positions == desk.gate.book.locks == {}


@only(BY_HTTP)
async def test_a_cut_listed_late_is_one(here: WireHarness) -> None:
    """Of a part, toward a smaller target."""
    async for desk, lag in open_late(here):
        await desk.set_target(Decimal("0.02"))
        desk.die_behind("exit", lag)
        await desk.set_target(Decimal("0.012"))
        await desk.go_on()
        left = desk.held()
        assert Decimal("0.0119") < left <= Decimal("0.012")
        check_whole(desk, left, orders=len(desk.gate.book.orders))


@only(HOUSES)
async def test_legs_listed_late_are_one_each(here: WireHarness) -> None:
    """Coins bought, and as much sold short: first the one and then the other."""
    for lag, leg in product(LAGS, (f"{here.exchange}-SPOT", here.exchange)):
        async with over_beside(here.exchange) as (late, beside):
            desk = WireDesk(late, beside=beside)
            await desk.fund_legs()
            desk.die_behind("entry", lag, Venue(leg))
            target = HedgeTarget(here.symbol, beside.exchange, late.exchange, Decimal("0.02"), "req_1")
            await desk.gate.set_hedge(target)
            await desk.go_on()
            legs = sorted(trade.signed for trade in desk.gate.book.positions.values())
            assert len(legs) in (0, 2)  # the second may have come too late
            assert abs(sum(legs, Decimal(0))) < Decimal("0.001")
            made = [
                late.count_orders(id) + (late.fake is not beside.fake) * beside.count_orders(id)
                for id in desk.gate.book.orders
            ]
            assert max(made) == 1
            assert desk.gate.book.locks == {}


@only(["BINANCE"])
async def test_a_transfer_listed_late_is_made_once(here: WireHarness) -> None:
    for lag in LAGS:
        async with over_beside(here.exchange) as (late, beside):
            await late.venue.place(request_order(late, "short", SELL))
            late.fake.clock.lag, moved = lag, Decimal(0)
            for lost in ("POST /sapi/v1/asset/transfer", "POST /fapi/v1/positionMargin"):
                late.server.lose_reply(lost)
            for _ in range(20):
                funds = build_funds({venue.exchange: venue for venue in (late.venue, beside.venue)})
                assert funds is not None
                for _ in range(8):
                    late.fake.clock.ahead += 4_000
                    with suppress(Unavailable):
                        moved = await funds.add_margin(
                            "int_1", beside.exchange, late.exchange, here.symbol, Decimal(100)
                        )
            assert beside.fake.engine.cash == 10_000 - moved
            assert 99 < moved <= 100


@only(BY_HTTP)
async def test_an_id_that_is_taken_is_no_rejection(here: WireHarness) -> None:
    """Whoever sends an order again before it is listed does not know what became of it."""
    for lag in LAGS:
        late = here.fake.clock
        order = limit(here, f"taken {lag}", here.price - 100 * here.tick, quantity=here.quantity / 5)
        late.lag = 60_000
        with suppress(Unavailable):
            await here.venue.place(order)
        await here.restart()
        late.lag = lag
        try:
            again = await here.venue.place(order)
        except Unavailable:
            late.ahead += 12_000
            again = await here.venue.place(order)
        assert again.status is OrderStatus.OPEN
        assert here.count_orders(order.client_id) == 1
        late.lag = 0


@only(BY_HTTP)
async def test_what_reduces_is_sent_unread_where_that_does_no_harm(here: WireHarness) -> None:
    opened = await open_long(here)
    for question in ("GET", "POST /info orderStatus"):
        for name in (name for name in here.server.routes if name.startswith(question) and "order" in name.lower()):
            here.server.fail(name, DOWN, 100) if "book" not in name else None
    await here.restart()
    part = request_order(here, "part", SELL, quantity=here.quantity / 5, reduce_only=True)
    with pytest.raises(Unavailable):
        await here.venue.place(part)
    assert await hold(here) == opened
    whole = request_order(here, "whole", SELL, quantity=opened, reduce_only=True)
    with suppress(Unavailable):
        await here.venue.place(whole, unread=True)
    assert await hold(here) == (opened if here.exchange in CAREFUL else 0)


@only(BY_HTTP)
async def test_a_position_of_a_symbol_that_stopped_trading_is_told_and_cannot_be_sold(here: WireHarness) -> None:
    opened = await open_long(here)
    resting = limit(here, "resting", here.price - 100 * here.tick, quantity=here.quantity / 5)
    await here.venue.place(resting)
    await here.delist()
    assert await hold(here) == opened
    assert [shown.request.client_id for shown in await here.venue.open_orders()] == [resting.client_id]
    assert (await here.venue.cancel(here.symbol, resting.client_id)).status is OrderStatus.CANCELED
    rejected = await here.venue.place(request_order(here, "out", SELL, quantity=opened, reduce_only=True))
    assert rejected.status is OrderStatus.REJECTED
    assert rejected.reason
    assert await hold(here) == opened


@only(BY_HTTP)
async def test_a_request_that_was_not_carried_out_leaves_none(here: WireHarness) -> None:
    for number, answer in enumerate((HTML, DOWN, BLOCKED, here.fake.maintenance)):
        order = request_order(here, f"stopped {number}", quantity=here.quantity / 5)
        here.server.fail(here.place_name, answer)
        with pytest.raises(Unavailable):
            await here.venue.place(order)
        assert await find(here, order) is None
        assert (await here.venue.place(order)).status is OrderStatus.FILLED
        assert here.count_orders(order.client_id) == 1


@only(BY_HTTP)
async def test_a_lost_reply_to_a_cancel_is_asked_about_again(here: WireHarness) -> None:
    order = limit(here, "cancel", here.price - 100 * here.tick)
    await here.venue.place(order)
    here.server.lose_reply(here.cancel_name, times=2)  # the client itself sends what is harmless to repeat once more
    with pytest.raises(Unavailable):
        await here.venue.cancel(here.symbol, order.client_id)
    assert (await here.venue.cancel(here.symbol, order.client_id)).status is OrderStatus.CANCELED


@only(BY_HTTP)
async def test_an_order_filled_while_it_is_cancelled_is_filled(here: WireHarness) -> None:
    order = limit(here, "race", here.price - 10 * here.tick)
    await here.venue.place(order)

    def fill() -> None:
        price = here.price - 30 * here.tick
        here.fake.engine.move(here.market, price - here.tick, price + here.tick)

    here.server.before[here.cancel_name] = fill
    ended = await here.venue.cancel(here.symbol, order.client_id)
    assert (ended.status, ended.filled) == (OrderStatus.FILLED, here.quantity)


@only(BY_HTTP)
async def test_a_limit_is_waited_for_and_a_ban_is_not(here: WireHarness) -> None:
    limited = Answer(429, here.fake.limited.body, headers=(("retry-after", "7"),))
    order = request_order(here, "limited")
    here.server.fail(here.place_name, limited)
    assert (await here.venue.place(order)).status is OrderStatus.FILLED
    assert 7.0 in here.waits
    assert here.count_orders(order.client_id) == 1
    here.server.fail("*", here.fake.banned)
    with pytest.raises(RateLimited):
        await here.venue.balance()
    asked = len(here.server.asked)
    with pytest.raises(RateLimited):
        await here.venue.place(request_order(here, "banned"))
    assert len(here.server.asked) == asked


@only(BY_HTTP)
async def test_a_limit_without_end_is_unavailable(here: WireHarness) -> None:
    here.server.fail("*", Answer(429, here.fake.limited.body, headers=(("retry-after", "1"),)), times=1_000)
    with pytest.raises(Unavailable):
        await here.venue.positions()
    assert len(here.server.asked) < 10


@only(BY_HTTP)
async def test_too_many_requests_in_the_venues_own_words_leave_none(here: WireHarness) -> None:
    order = request_order(here, "too many")
    here.server.fail(here.place_name, here.fake.overloaded, times=100)
    with pytest.raises(RateLimited):
        await here.venue.place(order)
    assert here.server.count(here.place_name) < 10
    here.server.faults.clear()
    await here.restart()
    assert (await here.venue.place(order)).status is OrderStatus.FILLED
    assert here.count_orders(order.client_id) == 1


@only(BY_HTTP)
async def test_a_clock_that_is_wrong_is_set_by_the_venue(here: WireHarness) -> None:
    for number, ahead in enumerate((60_000, -60_000, 8 * 3_600_000)):
        here.fake.clock.ahead = ahead
        order = request_order(here, f"skew {number}", quantity=here.quantity / 5)
        assert (await here.venue.place(order)).status is OrderStatus.FILLED
        assert here.count_orders(order.client_id) == 1
        assert abs(await here.venue.now() - here.fake.clock.now()) < 5_000


@only(BY_HTTP)
async def test_an_account_is_dated_by_the_venues_clock(here: WireHarness) -> None:
    """What a desk has ordered is booked and protected at the first look, though its machine's clock leaps; while that
    is further off than fills are asked for again, nothing new is opened."""
    for ahead, state in ((45_000, "open"), (120_000, "refused"), (600_000, "refused"), (-120_000, "refused")):
        async with over_wire(here.exchange) as other:
            desk, other.fake.clock.ahead = WireDesk(other), -ahead
            assert await desk.open(style=Style.PASSIVE_MAKER) == "working"
            desk.ahead = ahead
            await other.move(other.price * Decimal("0.99"))
            await desk.gate.advance()
            (trade,) = desk.gate.book.positions.values()
            assert trade.quantity == desk.held() > 0
            stops = [algo.type for algo in other.fake.engine.algos.values()].count("STOP_MARKET")
            assert stops == here.exchange.holds_stops
            assert desk.gate.book.newest <= other.fake.clock.now() + 60_000
            await desk.gate.kill()
            await desk.gate.unlock()
            assert await desk.open() == state
            assert desk.gate.troubles == {}


@only(BY_HTTP)
async def test_a_filter_that_changed_over_night_is_the_venues_to_say(here: WireHarness) -> None:
    before = await here.venue.filters(here.symbol)
    lot = here.fake.engine.markets[here.market].lot
    changed = {"min_notional": before.min_notional * 10_000} if here.fake.sizes_are_fixed else {"lot": lot * 100}
    here.fake.change_filters(here.market, **changed)
    order = limit(here, "old lot", here.price - 100 * here.tick, quantity=here.quantity + before.lot)
    rejected = await here.venue.place(order)
    assert rejected.status is OrderStatus.REJECTED
    assert rejected.reason
    assert not [row for row in here.fake.engine.orders.values() if is_open(row)]
    after = await here.venue.filters(here.symbol)
    assert (after.lot, after.min_notional) != (before.lot, before.min_notional)


@only([name for name in BY_HTTP if name not in ("HYPERLIQUID", "UPBIT")])
async def test_a_tick_that_coarsened_over_night_is_the_venues_to_say(here: WireHarness) -> None:
    """Of orders and of stops. At Hyperliquid and at Upbit the tick goes with the price."""
    opened = await open_long(here)
    before = await here.venue.filters(here.symbol)
    here.fake.change_filters(here.market, tick=before.tick * 10)
    beside = here.price - 1_000 * before.tick + before.tick
    stop = request_order(here, "stop", SELL, STOP, opened, trigger=beside, reduce_only=True)
    for order in (limit(here, "old tick", beside), stop):
        rejected = await here.venue.place(order)
        assert rejected.status is OrderStatus.REJECTED
        assert here.count_orders(order.client_id) == 0
    assert (await here.venue.filters(here.symbol)).tick == before.tick * 10
    on_it = stop.model_copy(update={"client_id": f"{stop.client_id[:-1]}0", "trigger": beside - before.tick})
    assert (await here.venue.place(on_it)).status is OrderStatus.OPEN


@only([name for name in BY_HTTP if WIRES[name].build().unsure])
async def test_a_code_that_says_nothing_of_an_order_is_no_rejection(here: WireHarness) -> None:
    for number, answer in enumerate(here.fake.unsure):
        order = request_order(here, f"unsure {number}", quantity=here.quantity / 5)
        here.server.fail(here.place_name, answer)
        with pytest.raises(Unavailable):
            await here.venue.place(order)
        assert (await here.venue.place(order)).status is OrderStatus.FILLED


@only(["UPBIT"])
async def test_an_id_that_a_failed_order_has_is_rejected_in_time(here: WireHarness) -> None:
    """The exchange never takes an id again, and lists no order of it."""
    order = request_order(here, "failed", quantity=here.quantity * 100)
    here.server.lose_reply(here.place_name)
    with pytest.raises(Unavailable):
        await here.venue.place(order)
    with pytest.raises(Unavailable):
        await here.venue.place(order)
    here.fake.clock.ahead += 16_000
    assert (await here.venue.place(order)).status is OrderStatus.REJECTED


@only([name for name in BY_HTTP if name not in ("HYPERLIQUID", "UPBIT")])
async def test_a_market_of_zero_lot_takes_no_order(here: WireHarness) -> None:
    """Hyperliquid tells decimals, and Upbit no lot at all."""
    here.fake.change_filters(here.market, lot=Decimal(0))
    with pytest.raises(Unavailable):
        await here.venue.filters(here.symbol)
    with pytest.raises(Unavailable):
        await here.venue.place(request_order(here, "zero lot"))
    assert here.server.count(here.place_name) == 0


@only(BY_HTTP)
async def test_what_another_hand_did_is_told_as_its_own(here: WireHarness) -> None:
    here.fake.hold_foreign(here.market, here.quantity)
    here.fake.order_foreign(here.market, "BUY", here.quantity, here.price - 100 * here.tick)
    (held,) = await here.venue.positions()
    (shown,) = await here.venue.open_orders()
    assert (held.quantity, shown.request.quantity) == (here.quantity, here.quantity)
    assert not shown.request.client_id.startswith(OUR_PREFIX)
    await here.move(here.price - 200 * here.tick)
    (fill,) = await here.venue.fills(here.symbol, ALWAYS)
    assert not fill.client_id.startswith(OUR_PREFIX)


@only([name for name in ("BINANCE", "BYBIT", "OKX") if name in BY_HTTP])
async def test_an_account_in_hedge_mode_takes_no_order(here: WireHarness) -> None:
    here.fake.hedge = True
    assert not (await here.venue.rights()).one_way
    with pytest.raises(Refused):
        await here.venue.place(request_order(here, "hedge"))
    assert not here.fake.engine.orders


@only(BY_HTTP)
async def test_nobody_is_paid_for_our_orders(here: WireHarness) -> None:
    opened = await open_long(here)
    if here.exchange.holds_stops:
        stop = request_order(here, "stop", SELL, STOP, opened, trigger=here.price / 2, reduce_only=True)
        await here.venue.place(stop)
        await here.venue.cancel(here.symbol, stop.client_id)
    await here.venue.place(request_order(here, "out", SELL, quantity=opened, reduce_only=True))
    assert here.fake.broker_marks == []
    assert await here.venue.positions() == ()


@only(BY_HTTP)
async def test_whatever_cannot_be_read_is_unavailable(here: WireHarness) -> None:
    for answer in (HTML, DOWN, BLOCKED, Answer(200, b"null"), Answer(200, b"[1"), Answer(200, b'{"a": NaN}')):
        here.server.fail("*", answer, times=10_000)
        for ask in questions(here).values():
            with pytest.raises(Unavailable):
                await ask()
        here.server.faults.clear()


@only(BY_HTTP)
async def test_numbers_that_cannot_be_are_unavailable(here: WireHarness) -> None:
    await here.venue.place(request_order(here, "in"))
    await here.venue.place(limit(here, "resting", here.price - 100 * here.tick))
    numbers = "origQty price qty entryPrice tickSize bidPrice avg_buy_price volume tick_size ask_price bid1Price sz"
    numbers += " execPrice execQty tickSz bidPx fillSz fillPx origSz limitPx px szDecimals"
    names = numbers.split()
    for wrong in ("-1", "1e400", "", True):

        def change(name: str, document: Any, wrong: object = wrong) -> Any:
            if isinstance(document, dict):
                return {key: wrong if key in names else change(name, inner) for key, inner in document.items()}
            return [change(name, inner) for inner in document] if isinstance(document, list) else document

        here.server.change = change
        for name in ("filters", "quote", "find", "open_orders", "fills"):
            await here.restart()
            with pytest.raises(Unavailable):
                await questions(here)[name]()


@only(BY_HTTP)
async def test_keys_that_may_withdraw_trade_nothing(here: WireHarness) -> None:
    here.fake.withdrawals = True
    assert (await here.venue.rights()).can_withdraw
    with pytest.raises(Refused):
        await here.venue.place(request_order(here, "withdraw"))
    assert here.server.count(here.place_name) == 0


@only(BY_HTTP)
async def test_an_exit_goes_out_whatever_else_the_keys_may_do(here: WireHarness) -> None:
    opened = await open_long(here)
    here.fake.withdrawals = True
    await here.restart()
    out = request_order(here, "out", SELL, quantity=opened, reduce_only=True)
    assert (await here.venue.place(out)).status is OrderStatus.FILLED


@only(BY_HTTP)
async def test_keys_that_may_not_trade_are_refused(here: WireHarness) -> None:
    here.fake.trading = False
    assert not (await here.venue.rights()).can_trade
    with pytest.raises(Refused):
        await here.venue.place(request_order(here, "no right"))
    assert here.server.count(here.place_name) == 0


@only(BY_HTTP)
async def test_wrong_keys_are_refused(here: WireHarness) -> None:
    here.fake.change_keys()
    asked = [lambda: here.venue.place(request_order(here, "wrong"))]
    if here.fake.tells_anybody:
        assert not (await here.venue.rights()).can_trade
    else:
        asked += [here.venue.balance, here.venue.rights]  # type: ignore[list-item]
    for ask in asked:
        with pytest.raises(Refused):
            await ask()
    assert not here.fake.engine.orders


@only(BY_HTTP)
async def test_a_symbol_the_venue_does_not_have_is_unknown(here: WireHarness) -> None:
    del here.fake.engine.markets[here.market]
    with pytest.raises(NotFound):
        await here.venue.filters(here.symbol)
    assert (await here.venue.place(request_order(here, "gone"))).status is OrderStatus.REJECTED


@only(BY_HTTP)
async def test_no_key_reaches_a_log_or_an_error(here: WireHarness, caplog: pytest.LogCaptureFixture) -> None:
    told = []
    with caplog.at_level(logging.DEBUG):
        await here.venue.place(request_order(here, "logged"))
        for answer in (HTML, DOWN, here.fake.banned):
            here.server.fail("*", answer, times=2)
            with pytest.raises(ZunoError) as raised:
                await here.venue.balance()
            told.append(str(raised.value))
    for secret in here.fake.secrets:
        assert not any(secret in line for line in [*told, caplog.text, repr(here.venue)]), secret


# -- a field renamed


def questions(here: VenueHarness) -> dict[str, Callable[[], Awaitable[Any]]]:
    """Everything that is read of a venue, by the port's names."""
    venue, symbol = here.venue, here.symbol
    return {
        "now": venue.now,
        "rights": venue.rights,
        "filters": lambda: venue.filters(symbol),
        "quote": lambda: venue.quote(symbol),
        "find": lambda: venue.find(symbol, request_order(here, "in").client_id),
        "open_orders": venue.open_orders,
        "fills": lambda: venue.fills(symbol, ALWAYS),
        "positions": venue.positions,
        "balance": venue.balance,
    }


NEEDED: dict[str, dict[str, str]] = {
    "BINANCE": {
        "now": "serverTime",
        "rights": "enableFutures enableWithdrawals canTrade dualSidePosition multiAssetsMargin marginType symbol",
        "filters": "symbols symbol status contractType filters filterType tickSize stepSize minQty maxQty notional",
        "quote": "bidPrice askPrice markPrice time",
        "find": "clientOrderId executedQty orderId origQty price reduceOnly side status symbol type timeInForce "
        "updateTime avgPrice stopPrice id qty",
        "open_orders": "clientOrderId executedQty orderId origQty price reduceOnly side status symbol type algoId "
        "clientAlgoId orderType quantity algoStatus triggerPrice closePosition updateTime timeInForce avgPrice "
        "stopPrice",
        "fills": "commission commissionAsset id maker orderId price qty side symbol time serverTime clientOrderId",
        "positions": "symbol positionSide positionAmt entryPrice liquidationPrice isolatedWallet leverage",
        "balance": "asset balance availableBalance",
    },
    "BINANCE-SPOT": {
        "now": "serverTime",
        "rights": "canTrade enableSpotAndMarginTrading enableWithdrawals permitsUniversalTransfer",
        "filters": "baseAsset filterType filters isSpotTradingAllowed maxQty minNotional minQty quoteAsset status "
        "stepSize symbol symbols tickSize",
        "quote": "askPrice bidPrice closeTime lastPrice",
        "find": "clientOrderId commission commissionAsset cummulativeQuoteQty executedQty id isBuyer isMaker "
        "orderId origQty price qty side status stopPrice symbol time timeInForce type updateTime",
        "open_orders": "clientOrderId executedQty orderId origQty price side status stopPrice symbol timeInForce type "
        "updateTime",
        "fills": "clientOrderId commission commissionAsset id isBuyer isMaker orderId price qty serverTime symbol "
        "time type",
        "positions": "asset balances free locked",
        "balance": "asset balances free locked",
    },
    "BYBIT": {
        "now": "retCode time",
        "rights": "ContractTrade Wallet list marginMode permissions positionIdx readOnly result retCode",
        "filters": "baseCoin contractType fundingInterval list lotSizeFilter maxMktOrderQty maxOrderQty "
        "minNotionalValue minOrderQty priceFilter qtyStep quoteCoin result retCode status symbol "
        "tickSize",
        "quote": "ask1Price bid1Price list markPrice result retCode time",
        "find": "avgPrice cumExecQty execFee execId execPrice execQty execTime execType feeCurrency isMaker list "
        "orderId orderLinkId orderStatus orderType price qty reduceOnly result retCode side symbol "
        "timeInForce triggerPrice updatedTime",
        "open_orders": "avgPrice cumExecQty list orderId orderLinkId orderStatus orderType price qty reduceOnly result "
        "retCode side symbol timeInForce triggerDirection triggerPrice updatedTime",
        "fills": "execFee execId execPrice execQty execTime execType feeCurrency isMaker list orderId orderLinkId "
        "result retCode side symbol time",
        "positions": "avgPrice leverage liqPrice list positionBalance positionIdx result retCode side size symbol",
        "balance": "coin list locked result retCode totalOrderIM totalPositionIM walletBalance",
    },
    "OKX": {
        "now": "code data ts",
        "rights": "code data instId mgnMode perm posMode",
        "filters": "code ctMult ctType ctVal ctValCcy data instId lotSz maxLmtSz maxMktSz minSz settleCcy state tickSz",
        "quote": "askPx bidPx code data last markPx ts",
        "find": "accFillSz algoClOrdId avgPx billId clOrdId code ctMult ctType ctVal ctValCcy data execType fee "
        "feeCcy fillPx fillSz instId lotSz maxLmtSz maxMktSz minSz ordId ordType px reduceOnly settleCcy "
        "side state subType sz tickSz ts uTime",
        "open_orders": "accFillSz algoClOrdId algoId avgPx clOrdId code ctMult ctType ctVal ctValCcy data instId lotSz "
        "maxLmtSz maxMktSz minSz ordId ordType px reduceOnly settleCcy side slTriggerPx state sz tickSz "
        "tpTriggerPx triggerPx uTime",
        "fills": "billId clOrdId code ctMult ctType ctVal ctValCcy data execType fee feeCcy fillPx fillSz instId "
        "lotSz maxLmtSz maxMktSz minSz ordId settleCcy side state subType tickSz ts",
        "positions": "avgPx code ctMult ctType ctVal ctValCcy data instId lever liqPx lotSz margin maxLmtSz maxMktSz "
        "minSz pos posSide settleCcy state tickSz",
        "balance": "availBal cashBal ccy code data details isoEq isoUpl",
    },
    "HYPERLIQUID": {
        "now": "time",
        "rights": "assetPositions data leverage position role type user",
        "filters": "BTC name szDecimals universe",
        "quote": "levels markPx name px szDecimals time universe",
        "find": "cloid coin crossed fee feeToken limitPx oid order orderType origSz px reduceOnly side status "
        "statusTimestamp sz tid tif time triggerPx",
        "open_orders": "cloid coin limitPx oid orderType origSz reduceOnly side sz tif timestamp triggerPx",
        "fills": "cloid coin crossed fee feeToken oid px side sz tid time",
        "positions": "assetPositions coin entryPx leverage liquidationPx marginUsed position szi value",
        "balance": "accountValue assetPositions marginSummary position unrealizedPnl withdrawable",
    },
    "UPBIT": {
        "now": "market",
        "filters": "market id bid ask min_total max_total state tick_size",
        "quote": "timestamp orderbook_units ask_price bid_price trade_price",
        "find": "identifier uuid side ord_type price state market created_at volume remaining_volume executed_volume "
        "funds trades",
        "open_orders": "uuid side ord_type price state market created_at volume remaining_volume executed_volume",
        "fills": "uuid price volume funds created_at side paid_fee executed_volume trades",
        "positions": "currency balance locked avg_buy_price unit_currency",
        "balance": "currency balance locked",
    },
}


OPTIONAL = ("identifier", "time_in_force", "cloid")
"""Left out, or empty, where an order has none."""


@only(BY_HTTP)
async def test_a_renamed_field_is_noticed(here: WireHarness) -> None:
    """Each field in turn: what the adapter needs it misses, and what it does not need changes nothing."""
    await here.venue.place(request_order(here, "in"))
    await here.venue.place(limit(here, "resting", here.price - 100 * here.tick))
    if not here.exchange.spot:
        await here.venue.place(request_order(here, "stop", SELL, STOP, trigger=here.price / 2, reduce_only=True))
    for question in questions(here):
        here.server.change = lambda path, document: document
        await here.restart()
        seen: set[str] = set()

        def note(path: str, document: Any, seen: set[str] = seen) -> Any:
            seen |= {place for place in fields(document) if isinstance(place, str)}
            return document

        here.server.change = note
        usual = await questions(here)[question]()
        missed = set()
        for place in sorted(seen):
            here.server.change = lambda path, document, place=place: without(document, place)  # type: ignore[misc]
            await here.restart()
            try:
                found = await questions(here)[question]()
            except (Unavailable, NotFound):
                missed.add(place)
            else:
                if question not in ("now", "quote") and place not in OPTIONAL:
                    assert found == usual, (question, place)
        expected = set(NEEDED.get(here.exchange, {}).get(question, "").split())
        assert expected <= missed, (question, expected - missed)
