"""What a venue alone has or lacks, over its fake: the exam (`test_venue_exam.py`) asks for what all of them owe."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

import pytest

from tests.contract import test_venue_exam
from tests.wire.exchanges import binance as binance_wire
from tests.wire.exchanges.__main__ import FAULTS
from tests.wire.exchanges.binance import FakeBinance
from tests.wire.exchanges.bybit import FakeBybit
from tests.wire.exchanges.harness import (
    ALWAYS,
    QUICK,
    WireHarness,
    find,
    limit,
    open_long,
    over_binance,
    over_upbit,
    over_wire,
    request_order,
)
from tests.wire.exchanges.hyperliquid import AGENT_KEY, OWNER_KEY, FakeHyperliquid, owner
from tests.wire.exchanges.matching import build_market
from tests.wire.exchanges.okx import FakeOkx
from tests.wire.exchanges.serving import DOWN, Request
from tests.wire.exchanges.upbit import FakeUpbit
from zuno.adapters.venues.exchange import PATIENCE, ApiKeys
from zuno.adapters.venues.orders.wires import build_account
from zuno.kernel.errors import NotFound, Refused, Unavailable
from zuno.kernel.units import Millis
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol
from zuno.trading.model.market import DAY_MS, HOUR_MS, MINUTE_MS
from zuno.trading.model.orders import OrderSide, OrderStatus, OrderType, TimeInForce
from zuno.trading.rules.execution_styles import find_filter_breach

BUY, SELL, STOP = OrderSide.BUY, OrderSide.SELL, OrderType.STOP_MARKET


def test_every_fault_of_the_table_is_a_paper_of_the_exam() -> None:
    papers = {name.removeprefix("test_").replace("_", " ") for name in dir(test_venue_exam)}
    assert set(FAULTS.values()) <= papers


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


async def test_a_coin_under_one_won_is_bought_by_the_billion() -> None:
    """The most of an order is in won, and says nothing of how many coins that is."""
    async with over_upbit() as here:
        coin = here.fake.engine.markets["KRW-BTC"]
        coin.tick, coin.bid, coin.ask, coin.mark = map(Decimal, ("0.000001", "0.0005", "0.000501", "0.0005"))
        coin.max_quantity = coin.ask_size = Decimal(10**17)
        order = request_order(here, "cheap", quantity=Decimal(2 * 10**9))
        assert find_filter_breach(order, await here.venue.filters(here.symbol)) is None
        assert (await here.venue.place(order)).filled == order.quantity


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


# -- Bybit's own


async def test_what_has_ended_is_found_in_the_history_when_the_service_was_restarted() -> None:
    async with over_wire("BYBIT") as here:
        assert isinstance(here.fake, FakeBybit)
        order = request_order(here, "ended")
        await here.venue.place(order)
        here.fake.restarted = True
        await here.restart()
        ended = await find(here, order)
        assert ended is not None
        assert ended.status is OrderStatus.FILLED
        assert (await here.venue.place(order)).venue_id == ended.venue_id
        assert here.count_orders(order.client_id) == 1


async def test_an_order_that_is_acknowledged_before_it_is_listed_is_waited_for() -> None:
    async with over_wire("BYBIT") as here:
        here.server.before[here.place_name] = lambda: setattr(here.fake, "late", 4)
        assert (await here.venue.place(request_order(here, "in"))).status is OrderStatus.FILLED
        assert here.waits


async def test_the_cash_of_coins_and_of_positions_is_one() -> None:
    async with over_wire("BYBIT") as perpetuals, over_wire("BYBIT-SPOT") as coins:
        await coins.venue.place(request_order(coins, "coins"))
        assert await coins.venue.positions()
        perpetuals.fake.engine.take("spot:BTCUSDT", Decimal("0.05"), Decimal(60_000))
        assert (await perpetuals.venue.balance()).total == Decimal(7_000)
        assert await perpetuals.venue.positions() == ()


# -- OKX's own


async def test_contracts_are_counted_in_coins() -> None:
    async with over_wire("OKX") as here:
        await open_long(here)
        (trade,) = here.fake.engine.trades
        (fill,) = await here.venue.fills(here.symbol, ALWAYS)
        assert trade.quantity == fill.quantity == here.quantity
        filters = await here.venue.filters(here.symbol)
        market = here.fake.engine.markets[here.market]
        assert (filters.lot, filters.min_quantity) == (market.lot, market.min_quantity)
        assert market.contract == Decimal("0.01")


async def test_an_order_at_okx_ends_before_its_reply_is_given_up() -> None:
    async with over_wire("OKX") as here:
        assert isinstance(here.fake, FakeOkx)
        here.fake.clock.ahead = 20_000  # less than what a request may be dated wrongly by
        await open_long(here)
        assert (await here.venue.place(request_order(here, "stop", SELL, STOP, trigger=Decimal(50_000)))).venue_id
        assert here.fake.deadlines
        assert 0 < min(here.fake.deadlines) <= max(here.fake.deadlines) < PATIENCE.timeout * 1_000


# -- spot


@pytest.mark.parametrize("name", ["BINANCE-SPOT", "OKX-SPOT"])
async def test_coins_are_sold_once_where_an_id_may_come_again(name: str) -> None:
    """A process that knows nothing of the first sale, and cannot look it up."""
    async with over_wire(name) as here:
        await open_long(here)
        lot = here.fake.engine.markets[here.market].lot
        out = request_order(here, "out", SELL, quantity=here.quantity / 5 // lot * lot, reduce_only=True)
        assert (await here.venue.place(out)).status is OrderStatus.FILLED
        await here.restart()
        here.server.fail(here.find_name, DOWN, times=10_000)
        with pytest.raises(Unavailable):
            await here.venue.place(out)
        assert here.count_orders(out.client_id) == 1


# -- Hyperliquid's own


async def test_a_tick_holds_for_what_stands_above_the_market() -> None:
    """At 9,990 a price may have one decimal, at 10,050 none."""
    async with over_wire("HYPERLIQUID") as here:
        await here.move(Decimal(9_990))
        filters = await here.venue.filters(here.symbol)
        assert filters.tick == 1
        await open_long(here)
        target = request_order(
            here, "target", SELL, OrderType.TAKE_PROFIT_MARKET, trigger=Decimal(10_050), reduce_only=True
        )
        assert (await here.venue.place(target)).status is OrderStatus.OPEN
        (standing,) = await here.venue.open_orders()
        assert standing.request.trigger == target.trigger


async def test_a_thousand_of_a_coin_has_the_name_and_the_size_of_the_venue() -> None:
    """`1000PEPE` of Binance is `kPEPE` at Hyperliquid; where a coin is traded by itself, a thousand of it are not."""
    many = Symbol("1000PEPEUSDT")
    async with over_wire("HYPERLIQUID") as here:
        market = build_market("kPEPE", "0.012", "0.000001", "1", "10", "100000000", base="kPEPE", quote="USDC")
        here.fake.engine.markets["kPEPE"] = market
        here.symbols = (here.symbol, many)
        await here.restart()
        listed = {market.base for market in await here.venue.list_markets()}  # type: ignore[attr-defined]
        assert {"BTC", "1000PEPE"} <= listed
        order = request_order(here, "pepe", quantity=Decimal(5_000)).model_copy(update={"symbol": many})
        assert (await here.venue.place(order)).status is OrderStatus.FILLED
        (held,) = await here.venue.positions()
        assert (held.symbol, held.quantity) == (many, Decimal(5_000))
    for name in ("OKX", "BYBIT"):
        async with over_wire(name) as here:
            with pytest.raises(NotFound):
                await here.venue.filters(many)
            order = request_order(here, "pepe").model_copy(update={"symbol": many})
            assert (await here.venue.place(order)).status is OrderStatus.REJECTED
            assert here.server.count(here.place_name) == 0


async def test_the_main_key_of_an_account_signs_nothing() -> None:
    async with over_wire("HYPERLIQUID") as here:
        keys = ApiKeys(owner(), OWNER_KEY)
        venue = build_account(here.exchange, keys, DEFAULT_SYMBOLS, here.server.url, patience=QUICK, throttled=False)
        try:
            with pytest.raises(Refused):
                await venue.rights()
            for reduce_only in (False, True):
                with pytest.raises(Refused):
                    await venue.place(request_order(here, f"main {reduce_only}", SELL, reduce_only=reduce_only))
        finally:
            await venue.close()
        assert isinstance(here.fake, FakeHyperliquid)
        assert here.fake.actions == []


async def sign_action(fake: FakeHyperliquid, action: dict[str, Any], sent_action: dict[str, Any] | None = None) -> Any:
    """An action as ccxt signs it, and the answer."""
    import ccxt

    signer = ccxt.hyperliquid({"walletAddress": owner(), "privateKey": AGENT_KEY})
    nonce = fake.clock.now()
    signature = signer.sign_l1_action(action, nonce)
    sent = {"action": sent_action or action, "nonce": nonce, "signature": signature}
    answer = fake.server.answer(Request("POST", "/exchange", "", {}, json.dumps(sent).encode()))
    assert answer is not None
    return json.loads(answer.body)


def build_action(**more: Any) -> dict[str, Any]:
    row = {"a": 0, "b": True, "p": "63000", "s": "0.05", "r": False, "t": {"limit": {"tif": "Ioc"}}}
    return {"type": "order", "orders": [{**row, "c": "0x" + "ab" * 16}], "grouping": "na", **more}


async def test_an_action_is_its_signers_to_the_byte() -> None:
    fake = FakeHyperliquid()
    turned = {name: build_action()[name] for name in ("grouping", "orders", "type")}
    assert "does not exist" in (await sign_action(fake, turned))["response"]
    assert not fake.engine.orders
    (status,) = (await sign_action(fake, build_action()))["response"]["data"]["statuses"]
    assert status["filled"]["totalSz"] == "0.05"
    other = {**build_action(), "orders": [{**build_action()["orders"][0], "s": "0.06"}]}
    assert (await sign_action(fake, build_action(), other))["status"] == "err"
    assert len(fake.engine.orders) == 1
    assert len(fake.actions) == 3


async def test_whoever_would_be_paid_for_an_order_is_written_down() -> None:
    fake = FakeHyperliquid()
    for action in (
        build_action(builder={"b": owner(), "f": 0}),
        {"type": "approveBuilderFee", "maxFeeRate": "0%", "builder": owner(), "nonce": 1},
        {"type": "setReferrer", "code": "X"},
    ):
        assert (await sign_action(fake, action))["status"] == "err"
    assert fake.broker_marks == ["builder", "approveBuilderFee", "setReferrer"]
    assert not fake.engine.orders
