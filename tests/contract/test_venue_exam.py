"""The exam of venues that take orders: every adapter sits it, over its exchange's own wire format.

A candidate is a venue in a harness (`tests/wire/exchanges/harness.py`): a market that a test moves. Papers of the exam:
what every venue owes; what one owes that holds stops, or positions on margin; what one owes that is reached by HTTP.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from decimal import Decimal
from typing import Any

import pytest

from tests.wire.exchanges import binance as binance_wire
from tests.wire.exchanges.binance import FakeBinance
from tests.wire.exchanges.harness import (
    PAGE,
    VenueHarness,
    WireHarness,
    over_binance,
    over_upbit,
    request_order,
)
from tests.wire.exchanges.serving import BLOCKED, DOWN, HTML, Answer
from tests.wire.exchanges.upbit import FakeUpbit
from tests.wire.paper_venue import binance_on_paper, upbit_on_paper
from tests.wire.vendors.serving import fields, without
from zuno.adapters.http import RateLimited
from zuno.adapters.venues.exchange import PATIENCE
from zuno.kernel.errors import NotFound, Refused, Unavailable, ZunoError
from zuno.kernel.units import Millis
from zuno.markets.venues import DEFAULT_VENUES
from zuno.trading.model.market import DAY_MS, HOUR_MS, MINUTE_MS, Side
from zuno.trading.model.orders import Order, OrderRequest, OrderSide, OrderStatus, OrderType, TimeInForce

BUY, SELL = OrderSide.BUY, OrderSide.SELL
LIMIT, STOP, TARGET = OrderType.LIMIT, OrderType.STOP_MARKET, OrderType.TAKE_PROFIT_MARKET
ALWAYS = Millis(0)
Opening = Callable[[], AbstractAsyncContextManager[Any]]

EVERY: dict[str, Opening] = {
    "binance": over_binance,
    "upbit": over_upbit,
    "binance on paper": binance_on_paper,
    "upbit on paper": upbit_on_paper,
}
WITH_STOPS = ["binance", "binance on paper"]
ON_MARGIN = ["binance", "binance on paper"]
BY_HTTP = ["binance", "upbit"]


@pytest.fixture(params=list(EVERY))
async def here(request: pytest.FixtureRequest) -> AsyncIterator[VenueHarness]:
    async with EVERY[request.param]() as harness:
        yield harness


def only(names: list[str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("here", names, indirect=True)


def limit(here: VenueHarness, name: str, price: Decimal, side: OrderSide = BUY, **more: Any) -> OrderRequest:
    return request_order(here, name, side, LIMIT, price=price, **more)


async def find(here: VenueHarness, order: OrderRequest) -> Order | None:
    return await here.venue.find(here.symbol, order.client_id)


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
    assert [fill.quantity for fill in fills] == [part, here.quantity - part]
    assert {fill.client_id for fill in fills} == {order.client_id}
    assert len({fill.id for fill in fills}) == 2
    assert await here.venue.order_fills(done) in (None, fills)
    assert [fill.at for fill in fills] == sorted(fill.at for fill in fills)
    paid = sum(fill.quantity * fill.price for fill in fills)
    assert done.average_price is not None
    assert abs(done.average_price - paid / here.quantity) < here.tick
    assert all(0 < fill.fee < fill.quantity * fill.price / 1_000 for fill in fills)


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
    (held,) = await here.venue.positions()
    assert (held.symbol, held.side, held.quantity) == (here.symbol, Side.LONG, here.quantity)
    assert held.entry is not None
    assert abs(held.entry - here.price) <= 2 * here.tick
    await here.venue.place(request_order(here, "out", SELL, reduce_only=True))
    assert await here.venue.positions() == ()
    fills = await here.venue.fills(here.symbol, ALWAYS)
    flow = sum(-fill.side.sign * fill.quantity * fill.price - fill.fee for fill in fills)
    assert abs((await here.venue.balance()).total - before.total - flow) < Decimal("0.0001")


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
        "least": limit(here, "least", filters.tick * 10, quantity=filters.min_quantity),
        "most": request_order(here, "most", quantity=filters.max_quantity + filters.lot),
        "no price": request_order(here, "no price", kind=LIMIT),
        "no trigger": request_order(here, "no trigger", SELL, STOP),
    }
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
    await here.venue.place(request_order(here, "in"))
    order = request_order(here, "out", SELL, quantity=here.quantity * 2, reduce_only=True)
    ended = await here.venue.place(order)
    assert ended.status.final
    assert ended.filled in (0, here.quantity)
    held = await here.venue.positions()
    assert sum(position.quantity for position in held) == here.quantity - ended.filled
    assert all(position.side is Side.LONG for position in held)


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


async def open_long(here: VenueHarness, name: str = "in") -> None:
    assert (await here.venue.place(request_order(here, name))).status is OrderStatus.FILLED


@only(WITH_STOPS)
async def test_stop_and_target_stand_beside_plain_orders(here: VenueHarness) -> None:
    await open_long(here)
    away = 1_000 * here.tick
    orders = [
        request_order(here, "stop", SELL, STOP, trigger=here.price - away, reduce_only=True),
        request_order(here, "target", SELL, TARGET, trigger=here.price + away, reduce_only=True),
        limit(here, "more", here.price - away),
    ]
    for order in orders:
        assert (await here.venue.place(order)).status is OrderStatus.OPEN
        assert (await here.venue.place(order)).status is OrderStatus.OPEN
        assert here.count_orders(order.client_id) == 1
    await here.restart()
    listed = {order.request.client_id: order.request for order in await here.venue.open_orders()}
    assert listed == {order.client_id: order for order in orders}


@only(WITH_STOPS)
async def test_a_stop_is_triggered_by_the_mark_and_its_fills_are_its_own(here: VenueHarness) -> None:
    await open_long(here)
    trigger = here.price - 1_000 * here.tick
    stop = request_order(here, "stop", SELL, STOP, trigger=trigger, reduce_only=True)
    await here.venue.place(stop)
    await here.move(trigger - 10 * here.tick, mark=trigger + here.tick)
    assert [order.request.client_id for order in await here.venue.open_orders()] == [stop.client_id]
    await here.move(trigger - 10 * here.tick, mark=trigger)
    assert await here.venue.open_orders() == ()
    assert await here.venue.positions() == ()
    for _ in range(2):
        ended = await find(here, stop)
        assert ended is not None
        assert (ended.status, ended.filled) == (OrderStatus.FILLED, here.quantity)
        assert ended.average_price is not None
        assert ended.average_price <= trigger
        fills = [fill for fill in await here.venue.fills(here.symbol, ALWAYS) if fill.side is SELL]
        assert [(fill.client_id, fill.quantity) for fill in fills] == [(stop.client_id, here.quantity)]
        assert (await here.venue.cancel(here.symbol, stop.client_id)).status is OrderStatus.FILLED
        assert (await here.venue.place(stop)).status is OrderStatus.FILLED
        await here.restart()
    assert here.count_orders(stop.client_id) == 1


@only(WITH_STOPS)
async def test_a_stop_on_the_wrong_side_is_rejected(here: VenueHarness) -> None:
    await open_long(here)
    for name, kind, trigger in (("stop", STOP, here.price + 100 * here.tick), ("target", TARGET, here.price / 2)):
        trigger -= trigger % here.tick
        rejected = await here.venue.place(request_order(here, name, SELL, kind, trigger=trigger, reduce_only=True))
        assert rejected.status is OrderStatus.REJECTED
        assert rejected.reason


@only(WITH_STOPS)
async def test_a_stop_is_cancelled_like_any_order(here: VenueHarness) -> None:
    await open_long(here)
    stop = request_order(here, "stop", SELL, STOP, trigger=here.price - 1_000 * here.tick, reduce_only=True)
    await here.venue.place(stop)
    assert (await here.venue.cancel(here.symbol, stop.client_id)).status is OrderStatus.CANCELED
    assert await here.venue.open_orders() == ()
    assert (await here.venue.place(stop)).status is OrderStatus.CANCELED


@only(WITH_STOPS)
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


@only(["upbit"])
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


# -- Binance's own


@pytest.fixture
async def binance() -> AsyncIterator[tuple[WireHarness, FakeBinance]]:
    async with over_binance() as harness:
        assert isinstance(harness.fake, FakeBinance)
        yield harness, harness.fake


async def test_margin_is_isolated_and_leverage_set_before_the_first_order(
    binance: tuple[WireHarness, FakeBinance],
) -> None:
    here, fake = binance
    assert not (await here.venue.rights()).isolated
    await here.venue.place(request_order(here, "one", leverage=3))
    assert fake.margin_types["BTCUSDT"] == "ISOLATED"
    assert fake.engine.leverage["BTCUSDT"] == 3
    await here.venue.place(request_order(here, "two", leverage=3))
    await here.restart()
    await here.venue.place(request_order(here, "three", leverage=3))
    assert here.server.count("POST /fapi/v1/marginType") == here.server.count("POST /fapi/v1/leverage") == 1


async def test_a_cross_margin_position_takes_no_order(binance: tuple[WireHarness, FakeBinance]) -> None:
    here, fake = binance
    fake.engine.place("web_1", "BTCUSDT", "BUY", "MARKET", Decimal("0.01"))
    rejected = await here.venue.place(request_order(here, "cross"))
    assert rejected.status is OrderStatus.REJECTED
    assert "-4048" in rejected.reason


async def test_conditional_orders_go_to_their_own_endpoint(binance: tuple[WireHarness, FakeBinance]) -> None:
    """The old one answers −4120; the mark is what triggers."""
    here, fake = binance
    await open_long(here)
    posted = here.server.count("POST /fapi/v1/order")
    await here.venue.place(request_order(here, "stop", SELL, STOP, trigger=Decimal(50_000), reduce_only=True))
    assert here.server.count("POST /fapi/v1/order") == posted
    assert [algo.working_type for algo in fake.engine.algos.values()] == ["MARK_PRICE"]
    assert [algo.reduce_only for algo in fake.engine.algos.values()] == [True]


async def test_a_clock_that_is_wrong_is_set_by_the_exchange(binance: tuple[WireHarness, FakeBinance]) -> None:
    here, fake = binance
    for number, ahead in enumerate((60_000, -60_000, 8 * 3_600_000)):
        fake.clock.ahead = ahead
        order = request_order(here, f"skew {number}")
        assert (await here.venue.place(order)).status is OrderStatus.FILLED
        assert here.count_orders(order.client_id) == 1
        assert abs(await here.venue.now() - fake.clock.now()) < 5_000


async def test_a_request_the_matching_engine_finds_too_old_is_dated_anew(
    binance: tuple[WireHarness, FakeBinance],
) -> None:
    here, _ = binance
    late = binance_wire.error(-5028, "Timestamp for this request is outside of the ME recvWindow.")
    order = request_order(here, "late")
    here.server.fail(here.place_name, late)
    asked = here.server.count("GET /fapi/v1/time")
    assert (await here.venue.place(order)).status is OrderStatus.FILLED
    assert here.server.count("GET /fapi/v1/time") == asked + 1
    assert here.count_orders(order.client_id) == 1
    here.server.fail(here.place_name, late, times=2)
    with pytest.raises(Unavailable):
        await here.venue.place(request_order(here, "later"))


async def test_a_resting_order_ends_by_itself_where_no_desk_is_left(binance: tuple[WireHarness, FakeBinance]) -> None:
    here, fake = binance
    resting, soon, post_only = (
        limit(here, name, here.price - 100 * here.tick, time_in_force=in_force)
        for name, in_force in (("long", TimeInForce.GTC), ("soon", TimeInForce.GTC), ("maker", TimeInForce.POST_ONLY))
    )
    ends = {
        "long": Millis(fake.clock.now() + 4 * HOUR_MS),
        "soon": Millis(fake.clock.now() + 1_000),
    }
    for order, end in ((resting, ends["long"]), (soon, ends["soon"]), (post_only, ends["long"])):
        assert (await here.venue.place(order, end)).status is OrderStatus.OPEN
    found = await find(here, resting)
    assert found is not None
    assert found.request.model_copy(update={"leverage": 1}) == resting
    fake.clock.ahead += 20 * MINUTE_MS
    assert [(await find(here, order)).status.final for order in (resting, soon)] == [False, True]  # type: ignore[union-attr]
    fake.clock.ahead += 4 * HOUR_MS
    assert [shown.request.client_id for shown in await here.venue.open_orders()] == [post_only.client_id]


async def test_an_exit_does_not_wait_for_filters(binance: tuple[WireHarness, FakeBinance]) -> None:
    here, _ = binance
    filters = "GET /fapi/v1/exchangeInfo"
    await open_long(here)
    await here.restart()
    here.server.fail(filters, DOWN, times=10_000)
    stop = request_order(here, "stop", SELL, STOP, trigger=here.price / 2, reduce_only=True)
    assert (await here.venue.place(stop)).status is OrderStatus.OPEN
    with pytest.raises(Unavailable):
        await here.venue.place(request_order(here, "more"))
    here.server.faults.clear()
    await here.venue.filters(here.symbol)
    asked = here.server.count(filters)
    assert (await here.venue.place(request_order(here, "out", SELL, reduce_only=True))).status is OrderStatus.FILLED
    assert here.server.count(filters) == asked


async def test_a_plain_order_does_not_need_the_endpoint_of_conditional_ones(
    binance: tuple[WireHarness, FakeBinance],
) -> None:
    here, _ = binance
    here.server.fail("GET /fapi/v1/algoOrder", DOWN, times=10_000)
    await open_long(here)
    never = request_order(here, "never")
    assert await here.venue.find(here.symbol, never.client_id, never.type) is None
    resting = limit(here, "resting", here.price - 100 * here.tick)
    await here.venue.place(resting)
    assert (await here.venue.cancel(here.symbol, resting.client_id, resting.type)).status is OrderStatus.CANCELED
    with pytest.raises(Unavailable):
        await find(here, never)


async def test_fills_of_weeks_ago_are_found_window_by_window(binance: tuple[WireHarness, FakeBinance]) -> None:
    here, fake = binance
    fake.clock.ahead = -30 * DAY_MS
    await here.venue.place(request_order(here, "in", quantity=Decimal("0.002")))
    stop = request_order(here, "stop", SELL, STOP, quantity=Decimal("0.002"), trigger=Decimal(59_000), reduce_only=True)
    await here.venue.place(stop)
    fake.clock.ahead = 0
    await here.move(Decimal(58_990))
    await here.restart()
    since = Millis(fake.clock.now() - 31 * DAY_MS)
    assert [fill.side for fill in await here.venue.fills(here.symbol, since)] == [BUY, SELL]
    assert (await here.venue.fills(here.symbol, Millis(fake.clock.now() - DAY_MS)))[0].client_id == stop.client_id


async def test_an_order_is_not_filled_before_its_fills_are_there(binance: tuple[WireHarness, FakeBinance]) -> None:
    here, fake = binance
    order = request_order(here, "early")
    fake.hidden_trades = 2
    assert (await here.venue.place(order)).status is OrderStatus.FILLED
    assert len(here.waits) == 2
    await here.restart()
    fake.hidden_trades = 100
    with pytest.raises(Unavailable):
        await find(here, order)
    fake.clock.ahead += DAY_MS
    assert await here.venue.now() > 0
    assert (await find(here, order)) is not None  # of an old order trades are not listed any more


async def test_orders_of_another_hand_are_listed(binance: tuple[WireHarness, FakeBinance]) -> None:
    here, fake = binance
    fake.engine.place("web_1.2:3", "ETHUSDT", "BUY", "LIMIT", Decimal("0.1"), Decimal(2_000))
    fake.engine.place("web_2", "BTCUSDT", "BUY", "MARKET", Decimal("0.01"))
    fake.engine.place_algo(
        "web_3", "BTCUSDT", "SELL", "STOP_MARKET", Decimal(0), Decimal(50_000), False, "CONTRACT_PRICE", True
    )
    listed = {order.request.client_id: order.request for order in await here.venue.open_orders()}
    assert set(listed) == {"web_1_2_3", "web_3"}
    assert (listed["web_3"].reduce_only, listed["web_3"].quantity) == (True, Decimal("0.01"))
    assert [fill.client_id for fill in await here.venue.fills(here.symbol, ALWAYS)] == ["web_2"]


async def test_an_order_cannot_arrive_after_its_reply_was_given_up(binance: tuple[WireHarness, FakeBinance]) -> None:
    here, fake = binance
    await open_long(here)
    await here.venue.place(request_order(here, "stop", SELL, STOP, trigger=Decimal(50_000), reduce_only=True))
    assert len(fake.order_windows) == 2
    assert max(fake.order_windows) < PATIENCE.timeout * 1_000


@pytest.mark.parametrize("setting", ["hedge", "fee_burn"])
async def test_an_account_set_otherwise_takes_no_order(binance: tuple[WireHarness, FakeBinance], setting: str) -> None:
    here, fake = binance
    setattr(fake, setting, True)
    with pytest.raises(Refused):
        await here.venue.place(request_order(here, "set otherwise"))
    assert here.server.count(here.place_name) == 0


async def test_codes_that_say_nothing_of_an_order_leave_it_unknown(binance: tuple[WireHarness, FakeBinance]) -> None:
    here, _ = binance
    for code in (-1000, -1001, -1006, -1007, -1008, -1016, -9999):
        here.server.fail(here.place_name, binance_wire.error(code, "Send status unknown; execution status unknown."))
        with pytest.raises(Unavailable):
            await here.venue.place(request_order(here, f"code {code}"))


# -- Upbit's own


async def test_an_order_that_settles_late_is_waited_for() -> None:
    async with over_upbit() as here:
        assert isinstance(here.fake, FakeUpbit)
        here.fake.late = 2
        assert (await here.venue.place(request_order(here, "in"))).status is OrderStatus.FILLED
        assert here.waits


async def test_the_fills_of_an_order_that_has_ended_are_read_once() -> None:
    async with over_upbit() as here:
        for number in range(3):
            await here.venue.place(request_order(here, f"buy {number}", quantity=here.quantity / 10))
        resting = limit(here, "resting", here.price - 10 * here.tick)
        await here.venue.place(resting)
        first = await here.venue.fills(here.symbol, ALWAYS)
        asked = here.server.count(here.find_name)
        assert await here.venue.fills(here.symbol, ALWAYS) == first
        assert here.server.count(here.find_name) == asked + 1
        await here.move(here.price - 30 * here.tick)
        assert len(await here.venue.fills(here.symbol, ALWAYS)) == len(first) + 1


# -- whatever is between the venue and us


@only(BY_HTTP)
async def test_what_is_repeated_and_shuffled_is_told_once_and_in_order(here: WireHarness) -> None:
    await here.move(here.price, size=here.quantity / 2)
    await here.venue.place(limit(here, "in", here.price + 10 * here.tick))
    here.fake.clock.ahead += 2_000
    await here.move(here.price)
    for number in range(2):
        await here.venue.place(limit(here, f"resting {number}", here.price - 100 * here.tick))
    if isinstance(here.fake, FakeBinance):
        here.fake.engine.settle_funding("BTCUSDT", Decimal("0.0001"))
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


@only(BY_HTTP)
async def test_an_old_price_is_no_price(here: WireHarness) -> None:
    """By the venue's clock, not by ours."""
    here.fake.clock.ahead = -600_000
    assert (await here.venue.quote(here.symbol)).mark == here.price
    at = here.fake.clock.now()

    def keep(name: str, document: Any) -> Any:
        rows = document if isinstance(document, list) else [document]
        for row in rows:
            row |= {field: at for field in ("time", "timestamp") if field in row}
        return document

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


@only(BY_HTTP)
async def test_a_request_that_was_not_carried_out_leaves_none(here: WireHarness) -> None:
    for number, answer in enumerate((HTML, DOWN, BLOCKED)):
        order = request_order(here, f"stopped {number}")
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
    limited = Answer(429, here.limited.body, headers=(("retry-after", "7"),))
    order = request_order(here, "limited")
    here.server.fail(here.place_name, limited)
    assert (await here.venue.place(order)).status is OrderStatus.FILLED
    assert 7.0 in here.waits
    assert here.count_orders(order.client_id) == 1
    here.server.fail("*", here.banned)
    with pytest.raises(RateLimited):
        await here.venue.balance()
    asked = len(here.server.asked)
    with pytest.raises(RateLimited):
        await here.venue.place(request_order(here, "banned"))
    assert len(here.server.asked) == asked


@only(BY_HTTP)
async def test_a_limit_without_end_is_unavailable(here: WireHarness) -> None:
    here.server.fail("*", Answer(429, here.limited.body, headers=(("retry-after", "1"),)), times=1_000)
    with pytest.raises(Unavailable):
        await here.venue.positions()
    assert len(here.server.asked) < 10


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
    numbers = "origQty price qty entryPrice tickSize bidPrice avg_buy_price volume tick_size ask_price".split()
    for wrong in ("-1", "1e400", "", True):

        def change(name: str, document: Any, wrong: object = wrong) -> Any:
            if isinstance(document, dict):
                return {key: wrong if key in numbers else change(name, inner) for key, inner in document.items()}
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
    await open_long(here)
    here.fake.withdrawals = True
    await here.restart()
    assert (await here.venue.place(request_order(here, "out", SELL, reduce_only=True))).status is OrderStatus.FILLED


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
    for ask in (here.venue.balance, here.venue.rights, lambda: here.venue.place(request_order(here, "wrong"))):
        with pytest.raises(Refused):
            await ask()


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
        for answer in (HTML, DOWN, here.banned):
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
    "binance": {
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
    "upbit": {
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


OPTIONAL = ("identifier", "time_in_force")
"""Upbit leaves them out where an order has none."""


@pytest.mark.soak(every=2)
@only(BY_HTTP)
async def test_a_renamed_field_is_noticed(here: WireHarness) -> None:
    """Each field in turn: what the adapter needs it misses, and what it does not need changes nothing."""
    await here.venue.place(request_order(here, "in"))
    await here.venue.place(limit(here, "resting", here.price - 100 * here.tick))
    if isinstance(here.fake, FakeBinance):
        await here.venue.place(request_order(here, "stop", SELL, STOP, trigger=here.price / 2, reduce_only=True))
    name = "binance" if isinstance(here.fake, FakeBinance) else "upbit"
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
        expected = set(NEEDED[name].get(question, "").split())
        assert expected <= missed, (question, expected - missed)
