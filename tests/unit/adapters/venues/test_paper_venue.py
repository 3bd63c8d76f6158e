"""The paper venue's matching: prices, fees, funding, margin, liquidation, gaps, latency, and what a restart keeps."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal as D
from typing import Any

import pytest

from tests.wire.accounts import open_account
from tests.wire.fakes.series import MemorySeries
from tests.wire.paper_venue import START, ListTape, PaperHarness, depth, open_binance, open_upbit
from zuno.adapters.account.trade_log import MemoryTradeLog
from zuno.adapters.venues.paper.matching import PaperExchange
from zuno.adapters.venues.paper.tape import Bar, FundingRate, Mark, SeriesTape, Tick
from zuno.kernel.errors import Unavailable
from zuno.kernel.units import Millis
from zuno.markets.feeds import BINANCE, UPBIT, USDT_KRW
from zuno.markets.market import DEFAULT_SYMBOLS, Catalogue, Symbol, assume_market
from zuno.markets.venues import Venue
from zuno.trading.model.market import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    Book,
    Candle,
    Funding,
    Level,
    MarkAndIndex,
    Quote,
    Side,
    Timeframe,
    basis,
    books,
    candles,
    funding,
    rates,
)
from zuno.trading.model.orders import Order, OrderRequest, OrderSide, OrderStatus, OrderType, TimeInForce
from zuno.trading.model.trade_events import TradeEvent
from zuno.trading.ports.series import PUBLIC_HISTORY, Batch, Origin, Source
from zuno.trading.ports.venue import OrderVenue
from zuno.trading.rules.inputs import FeeRates, Fees
from zuno.trading.rules.margin import TIERS, liquidation_distance, liquidation_price
from zuno.trading.watch.desk_loop import MarketClock
from zuno.wiring.orders import build_paper_venues

BTC, BUY, SELL = Symbol("BTCUSDT"), OrderSide.BUY, OrderSide.SELL
MARKET, LIMIT, STOP, TARGET = (
    OrderType.MARKET,
    OrderType.LIMIT,
    OrderType.STOP_MARKET,
    OrderType.TAKE_PROFIT_MARKET,
)


def maintenance_margin(notional: D) -> D:
    tier = next(tier for tier in TIERS if notional <= tier.up_to)
    return notional * tier.rate - tier.deduction


def bar(number: int, open_: float, high: float, low: float, close: float, span: int = MINUTE_MS) -> Bar:
    start = START + number * span
    return Bar(Millis(start), Millis(start + span), open_, high, low, close)


class Floor:
    """An exchange without a venue around it."""

    def __init__(self, *ticks: Tick, exchange: Venue = Venue("BINANCE")) -> None:
        self.engine = PaperExchange(exchange, Fees().at(exchange))
        self.now = Millis(START)
        self.made = 0
        self.see(*ticks)

    def see(self, *ticks: Tick) -> None:
        self.engine.advance(BTC, ticks)
        self.now = max([self.now, *(tick.at for tick in ticks)])

    def place(self, side: OrderSide, kind: OrderType = MARKET, quantity: str = "0.05", **more: Any) -> Order:
        self.made += 1
        request = OrderRequest(
            client_id=f"c{self.made}",
            exchange=self.engine.exchange,
            symbol=BTC,
            side=side,
            type=kind,
            quantity=D(quantity),
            **{name: D(value) if isinstance(value, str) else value for name, value in more.items()},
        )
        return self.engine.place(request, self.now)

    def state(self, id: str) -> Order:
        order = self.engine.to_order(id)
        assert order is not None
        return order

    @property
    def cash(self) -> D:
        return self.engine.book.cash(self.engine.exchange)


QUIET = bar(-1, 20_000, 20_000, 20_000, 20_000)


# -- takers


def test_a_market_order_walks_the_book_level_by_level() -> None:
    asks = (Quote(20_001.0, 0.02), Quote(20_002.0, 0.02), Quote(20_010.0, 5.0))
    floor = Floor(Book(Millis(START), (Quote(20_000.0, 1.0),), asks))
    order = floor.place(BUY)
    fills = floor.engine.fills[BTC]
    assert [(fill.quantity, fill.price) for fill in fills] == [
        (D("0.02"), D("20001.0")),
        (D("0.02"), D("20002.0")),
        (D("0.01"), D("20010.0")),
    ]
    assert [fill.fee for fill in fills] == [fill.quantity * fill.price * D("0.0005") for fill in fills]
    assert (order.status, order.average_price) == (OrderStatus.FILLED, D("20003.2"))


def test_a_book_that_the_price_has_left_moves_with_it() -> None:
    floor = Floor(depth(START, 20_000, 20_001), Mark(Millis(START + 1_000), 19_400.0))
    assert floor.place(BUY).average_price == D("19400.5")
    assert floor.place(SELL, reduce_only=True).average_price == D("19399.5")


def test_what_the_book_does_not_hold_is_not_filled() -> None:
    floor = Floor(depth(START, 20_000, 20_001, 0.02))
    order = floor.place(BUY)
    assert (order.status, order.filled) == (OrderStatus.EXPIRED, D("0.02"))


def test_without_a_fresh_book_a_taker_pays_five_basis_points_on_the_last_price() -> None:
    floor = Floor(depth(START - 11_000, 20_000, 20_001), bar(-1, 20_000, 20_000, 20_000, 20_100))
    assert floor.place(BUY).average_price == D("20110.1")  # 20,100 × 1.0005 = 20,110.05, up to the tick
    assert floor.place(SELL).average_price == D("20089.9")


def test_a_stale_price_is_no_market() -> None:
    floor = Floor(QUIET)
    floor.now = Millis(START + 11 * MINUTE_MS)
    assert floor.place(BUY).status is OrderStatus.REJECTED
    assert floor.engine.quote(BTC, floor.now) is None


def test_a_marketable_limit_never_pays_more_than_its_limit() -> None:
    floor = Floor(QUIET)
    assert floor.place(BUY, LIMIT, price="20003").average_price == D(20_003)
    assert floor.place(BUY, LIMIT, "0.04", price="19990").status is OrderStatus.OPEN


# -- makers


def test_a_resting_order_is_filled_when_the_market_trades_through_it_and_not_at_its_touch() -> None:
    floor = Floor(QUIET)
    floor.place(BUY, LIMIT, price="19990")
    floor.see(bar(0, 20_000, 20_010, 19_990, 20_000))
    assert floor.state("c1").status is OrderStatus.OPEN
    floor.see(bar(1, 20_000, 20_010, 19_989.9, 20_000))
    (fill,) = floor.engine.fills[BTC]
    assert (fill.price, fill.maker, fill.fee) == (D(19_990), True, D("0.05") * 19_990 * D("0.0002"))


def test_a_look_at_the_book_fills_what_rests_as_far_as_it_goes() -> None:
    floor = Floor(depth(START, 20_000, 20_001))
    floor.place(BUY, LIMIT, price="19990")
    floor.see(depth(START + 1, 19_980, 19_990, 0.02))
    assert floor.state("c1").filled == 0
    floor.see(depth(START + 2, 19_980, 19_989, 0.02))
    assert (floor.state("c1").filled, floor.state("c1").status) == (D("0.02"), OrderStatus.OPEN)
    floor.see(depth(START + 3, 19_980, 19_989))
    assert floor.state("c1").status is OrderStatus.FILLED


def test_a_bar_that_began_before_the_order_counts_by_its_close_alone() -> None:
    for close, filled in ((19_995.0, False), (19_980.0, True)):
        floor = Floor(QUIET)
        floor.now = Millis(START + 1)
        floor.place(BUY, LIMIT, price="19990")
        floor.see(bar(0, 20_000, 20_010, 19_950, close))
        assert (floor.state("c1").status is OrderStatus.FILLED) is filled


def test_a_bar_that_was_over_when_the_order_arrived_says_nothing_of_it() -> None:
    """It comes late, as bars of a live market do: its close is of before the order."""
    for arrived, filled in ((MINUTE_MS, True), (MINUTE_MS + 1, False)):
        floor = Floor(QUIET)
        floor.now = Millis(START + arrived)
        floor.place(BUY, LIMIT, price="19990")
        floor.see(bar(0, 20_000, 20_010, 19_950, 19_980))
        assert (floor.state("c1").status is OrderStatus.FILLED) is filled


# -- stops and targets


def open_long(floor: Floor, leverage: int = 1) -> None:
    assert floor.place(BUY, leverage=leverage).status is OrderStatus.FILLED


def test_a_stop_is_filled_at_its_trigger_or_at_the_gap() -> None:
    for after, paid in (
        (bar(0, 20_000, 20_000, 19_400, 19_450), "19490.2"),  # 19,500 less 5 bps, down to the tick
        (bar(0, 19_300, 19_350, 19_200, 19_250), "19290.3"),
    ):
        floor = Floor(QUIET)
        open_long(floor)
        floor.place(SELL, STOP, trigger="19500", reduce_only=True)
        floor.see(after)
        assert (floor.state("c2").status, floor.state("c2").average_price) == (OrderStatus.FILLED, D(paid))
        assert floor.engine.book.positions == {}


def test_of_a_bar_that_touches_both_the_stop_comes_first() -> None:
    floor = Floor(QUIET)
    open_long(floor)
    floor.place(SELL, TARGET, trigger="20500", reduce_only=True)
    floor.place(SELL, STOP, trigger="19500", reduce_only=True)
    floor.see(bar(0, 20_000, 20_600, 19_400, 20_550))
    assert [floor.state(id).status for id in ("c2", "c3")] == [OrderStatus.EXPIRED, OrderStatus.FILLED]


def test_on_the_way_down_an_entry_is_filled_before_the_stop_behind_it() -> None:
    floor = Floor(QUIET)
    open_long(floor)
    floor.place(BUY, LIMIT, "0.04", price="19800")
    floor.place(SELL, STOP, "0.09", trigger="19500", reduce_only=True)
    floor.see(bar(0, 20_000, 20_000, 19_400, 19_450))
    assert [fill.client_id for fill in floor.engine.fills[BTC]] == ["c1", "c2", "c3"]
    assert floor.engine.book.positions == {}


def test_a_stop_in_a_thin_book_goes_on_until_all_is_out() -> None:
    floor = Floor(depth(START, 20_000, 20_001))
    open_long(floor)
    floor.place(SELL, STOP, trigger="19500", reduce_only=True)
    floor.see(depth(START + 1, 19_400, 19_401, 0.02), Mark(Millis(START + 1), 19_400.0))
    assert floor.state("c2").filled == D("0.02")
    floor.see(depth(START + 2, 19_890, 19_901, 0.02), Mark(Millis(START + 2), 19_900.0))
    assert floor.state("c2").filled == D("0.04")
    floor.see(bar(0, 19_900, 19_950, 19_880, 19_900))
    assert (floor.state("c2").status, floor.engine.book.positions) == (OrderStatus.FILLED, {})


@pytest.mark.parametrize(("kind", "trigger"), [(STOP, "20100"), (TARGET, "19900")])
def test_a_trigger_that_is_passed_already_is_rejected(kind: OrderType, trigger: str) -> None:
    floor = Floor(QUIET)
    open_long(floor)
    assert floor.place(SELL, kind, trigger=trigger, reduce_only=True).status is OrderStatus.REJECTED


# -- margin


def test_a_leveraged_position_is_liquidated_for_its_margin_and_no_more() -> None:
    for crash in (bar(0, 20_000, 20_000, 13_300, 13_400), bar(0, 5_000, 5_000, 4_000, 4_500)):
        floor = Floor(QUIET)
        open_long(floor, leverage=3)
        held = floor.engine.book.positions[Venue("BINANCE"), BTC, "debate"]
        margin, before = held.margin, floor.cash
        floor.place(SELL, STOP, trigger="13000", reduce_only=True)
        floor.see(crash)
        assert floor.engine.fills[BTC][-1].liquidation
        assert floor.state("c2").status is OrderStatus.EXPIRED
        assert before - D("0.01") < floor.cash <= before + D("0.01")
        assert margin > 0
    floor = Floor(QUIET)
    open_long(floor, leverage=3)
    floor.see(bar(0, 20_000, 20_000, 13_500, 13_500))
    assert floor.engine.book.positions


def test_a_long_of_own_money_is_never_liquidated_and_a_short_is() -> None:
    floor = Floor(QUIET)
    open_long(floor)
    floor.see(bar(0, 20_000, 20_000, 1.0, 1.0))
    assert floor.engine.book.positions
    floor = Floor(QUIET)
    floor.place(SELL, leverage=2)
    floor.see(bar(0, 20_000, 30_000, 20_000, 30_000))
    assert floor.engine.fills[BTC][-1].liquidation


def test_what_open_positions_have_lost_is_not_available() -> None:
    floor = Floor(QUIET)
    open_long(floor, leverage=2)
    before = floor.engine.available()
    floor.see(bar(0, 20_000, 20_000, 15_000, 15_000))
    assert floor.engine.available() < before - D(240)
    assert floor.place(BUY, quantity="0.25", leverage=2).status is OrderStatus.REJECTED


def test_a_turn_needs_margin_at_the_leverage_of_its_own_order() -> None:
    floor = Floor(QUIET)
    floor.place(SELL, quantity="0.01", leverage=3)
    assert floor.place(BUY, quantity="0.12", leverage=1).status is OrderStatus.REJECTED
    assert floor.place(BUY, quantity="0.12", leverage=3).status is OrderStatus.FILLED
    assert floor.cash > 0


def test_the_liquidation_price_is_the_one_on_the_trade_card() -> None:
    for side, sign in ((Side.LONG, -1), (Side.SHORT, 1)):
        for leverage in (2, 3):
            cost = D("0.05") * 20_000
            price = liquidation_price(side, D("0.05"), cost, cost / leverage)
            assert price is not None
            assert float(price) == pytest.approx(20_000 * (1 + sign * liquidation_distance(leverage, side)), rel=1e-12)


def test_maintenance_margin_grows_without_a_step() -> None:
    for tier in TIERS[:-1]:
        at, above = maintenance_margin(tier.up_to), maintenance_margin(tier.up_to + D("0.01"))
        assert 0 <= above - at < D("0.002")


# -- funding


def test_funding_is_paid_by_the_side_the_rate_says() -> None:
    settled = START + 8 * HOUR_MS
    for side, rate, both, paid in (
        (BUY, 0.0001, False, "-0.1"),
        (SELL, 0.0001, False, "0.1"),
        (SELL, -0.0001, False, "-0.1"),
        (SELL, 0.0001, True, "-0.1"),
    ):
        floor = Floor(QUIET)
        floor.place(side)
        before = floor.cash
        floor.see(bar(479, 20_000, 20_000, 20_000, 20_000), FundingRate(Millis(settled), rate, both))
        floor.see(FundingRate(Millis(settled), rate, both))
        assert floor.cash - before == D(paid)
        assert len(floor.engine.payments[BTC]) == 1


# -- the venue around it


async def test_an_order_sees_the_market_of_its_arrival_and_not_of_its_sending() -> None:
    here = open_binance()
    here.venue.latency_ms = 300
    here.tape.market[BTC].append(depth(here.at + 200, 20_100, 20_100.1))
    here.tape.market[BTC].append(depth(here.at + 400, 25_000, 25_000.1))
    order = await here.venue.place(request("late"))
    assert (order.average_price, order.updated) == (D("20100.1"), here.at + 300)


def request(name: str, side: OrderSide = BUY, kind: OrderType = MARKET, **more: Any) -> OrderRequest:
    return OrderRequest(
        client_id=name, exchange=Venue("BINANCE"), symbol=BTC, side=side, type=kind, quantity=D("0.05"), **more
    )


async def test_a_restart_goes_on_where_the_last_one_ended() -> None:
    """The market moves on between any two steps; one venue lives through all, the other dies after each."""

    async def trade(here: PaperHarness, *, restarts: bool) -> list[Any]:
        told: list[Any] = []
        steps = (
            request("in", leverage=3),
            request("stop", SELL, STOP, trigger=D(19_000), reduce_only=True),
            request("add", BUY, LIMIT, price=D(19_500), leverage=3, time_in_force=TimeInForce.POST_ONLY),
        )
        for number, order in enumerate(steps):
            told.append(await here.venue.place(order))
            if restarts:
                await here.restart()
            await here.move(D(20_000 - 200 * number))
        here.tape.market[BTC].append(FundingRate(Millis(here.at + 500), 0.0001))
        for price in (19_400, 18_900):
            await here.move(D(price))
            if restarts:
                await here.restart()
            told.append([await here.venue.balance(), await here.venue.positions(), await here.venue.open_orders()])
        told += [await here.venue.fills(BTC, Millis(0)), await here.venue.funding(BTC, Millis(0))]
        return told

    assert await trade(open_binance(), restarts=False) == await trade(open_binance(), restarts=True)


class FullLog(MemoryTradeLog):
    async def append(self, account: str, events: Sequence[TradeEvent], after: int) -> None:
        raise Unavailable("the disk is full")


async def test_what_was_not_stored_did_not_happen() -> None:
    here = open_binance()
    here.log = FullLog()
    await here.restart()
    with pytest.raises(Unavailable):
        await here.venue.place(request("in"))
    assert await here.venue.find(BTC, "in") is None
    assert await here.venue.positions() == ()


async def test_two_processes_share_one_venue() -> None:
    here = open_binance()
    other = here.open_venue()
    await here.venue.place(request("in"))
    assert len(await other.positions()) == 1
    assert (await other.place(request("out", SELL, reduce_only=True))).status is OrderStatus.FILLED
    assert await here.venue.positions() == ()


async def test_upbit_holds_no_stops_and_sells_what_it_has() -> None:
    here = open_upbit()
    buy = OrderRequest(
        client_id="in", exchange=Venue("UPBIT"), symbol=BTC, side=BUY, type=MARKET, quantity=D("0.02"), leverage=1
    )
    assert not (await here.venue.filters(BTC)).holds_stops
    assert (await here.venue.place(buy)).status is OrderStatus.FILLED
    stop = buy.model_copy(update={"client_id": "s", "side": SELL, "type": STOP, "trigger": D(40_000_000)})
    assert (await here.venue.place(stop)).status is OrderStatus.REJECTED
    more = buy.model_copy(update={"client_id": "o", "side": SELL, "quantity": D("0.03")})
    assert (await here.venue.place(more)).status is OrderStatus.REJECTED
    assert (await here.venue.place(more.model_copy(update={"client_id": "p", "quantity": D("0.02")}))).left == 0
    paid = sum(fill.fee for fill in await here.venue.fills(BTC, Millis(0)))
    assert (await here.venue.balance()).total == 2_000_000 - paid - D("0.02") * 2_000


# -- the tape


def rows_of_a_day() -> list[Batch[Any]]:
    """An hour of minutes, then hours; a book, a settlement, marks, and the won from the third hour on."""
    day = START // DAY_MS * DAY_MS
    minutes = [Candle(Millis(day + n * MINUTE_MS), 100.0, 101.0, 99.0, 100.0 + n / 100, 1.0, None) for n in range(60)]
    hours = [Candle(Millis(day + n * HOUR_MS), 100.0, 102.0, 98.0, 100.0 + n / 100, 1.0, None) for n in range(24)]
    marks = [MarkAndIndex(Millis(day + n * HOUR_MS), 100.5, 100.4) for n in range(1, 24)]
    won = [Level(Millis(day + n * HOUR_MS), 1_400.0) for n in range(3, 25)]
    book = Book(Millis(day + 90 * MINUTE_MS), (Quote(100.0, 1.0),), (Quote(100.1, 1.0),))
    return [
        Batch(candles(BINANCE, BTC, Timeframe.M1), minutes),
        Batch(candles(BINANCE, BTC, Timeframe.H1), hours),
        Batch(basis(BINANCE, BTC), marks),
        Batch(books(BINANCE, BTC), [book]),
        Batch(funding(BINANCE, BTC), [Funding(Millis(day + 8 * HOUR_MS), 0.0001, 8.0)]),
        Batch(rates(UPBIT, USDT_KRW), won),
    ]


async def test_the_tape_gives_each_tick_once_in_order_from_the_finest_bars() -> None:
    store = MemorySeries(Origin(False, "recorded"))
    await store.write(rows_of_a_day())
    day, end = Millis(START // DAY_MS * DAY_MS), Millis(START // DAY_MS * DAY_MS + 2 * DAY_MS)
    tape = SeriesTape(store, Venue("BINANCE"), live=False)
    whole = list(await tape.ticks(BTC, day, end))
    assert [tick.at for tick in whole] == sorted(tick.at for tick in whole)
    bars = [tick for tick in whole if isinstance(tick, Bar)]
    assert [bar.at - bar.start for bar in bars] == [MINUTE_MS] * 60 + [HOUR_MS] * 23
    assert [type(tick) for tick in whole if not isinstance(tick, Bar | Mark)] == [Book, FundingRate]
    parts: list[Tick] = []
    for start in range(day, end, 7 * MINUTE_MS):
        parts += await tape.ticks(BTC, Millis(start), Millis(min(start + 7 * MINUTE_MS, end)))
    assert parts == whole
    assert await SeriesTape(store, Venue("BINANCE"), live=True).ticks(BTC, day, end) == whole
    won = await SeriesTape(store, Venue("UPBIT"), live=False).ticks(BTC, day, end)
    assert (won[0].at, type(won[0])) == (day + 3 * HOUR_MS, Bar)
    assert {type(tick) for tick in won} == {Bar, Mark}
    assert [tick.high for tick in won if isinstance(tick, Bar)] == [102.0 * 1_400] * 22


async def test_what_happened_in_a_gap_of_the_minutes_is_in_the_hour() -> None:
    store = MemorySeries(Origin(False, "recorded"))
    minutes = [Candle(Millis(START + n * MINUTE_MS), 100.0, 100.0, 100.0, 100.0, 1.0, None) for n in range(120)]
    hours = [Candle(Millis(START + n * HOUR_MS), 100.0, 100.0, 90.0, 100.0, 1.0, None) for n in range(2)]
    await store.write([Batch(candles(BINANCE, BTC, Timeframe.M1), minutes[:30] + minutes[31:])])
    await store.write([Batch(candles(BINANCE, BTC, Timeframe.H1), hours)])
    tape = SeriesTape(store, Venue("BINANCE"), live=False)
    ticks = await tape.ticks(BTC, START, Millis(START + 2 * HOUR_MS))
    coarse = [tick for tick in ticks if isinstance(tick, Bar) and tick.at - tick.start == HOUR_MS]
    assert [(tick.at, tick.low) for tick in coarse] == [(START + HOUR_MS, 90.0)]
    assert len(ticks) == 120


async def test_a_bar_that_came_late_is_matched_once() -> None:
    store = MemorySeries(Origin(False, "recorded"))
    early, late = ([Candle(Millis(START + n * MINUTE_MS), 100.0, 101.0, 99.0, 100.0, 1.0, None)] for n in (0, 1))
    series = candles(BINANCE, BTC, Timeframe.M1)
    await store.write([Batch(series, early)])
    tape = SeriesTape(store, Venue("BINANCE"), live=True)
    looked = Millis(START + 2 * MINUTE_MS + 1_000)
    assert len(await tape.ticks(BTC, Millis(START), looked)) == 1
    await store.write([Batch(series, late, Millis(looked + 500))])
    found = [len(await tape.ticks(BTC, Millis(looked + n), Millis(looked + n + 500))) for n in (0, 500, 1_000)]
    assert found == [1, 0, 0]


async def test_a_home_of_candles_alone_charges_funding_to_either_side() -> None:
    store = MemorySeries(PUBLIC_HISTORY)
    await store.write([Batch(batch.series, batch.rows, None, Source.IMPORTED) for batch in rows_of_a_day()[:2]])
    day = Millis(START // DAY_MS * DAY_MS)
    ticks = await SeriesTape(store, Venue("BINANCE"), live=False).ticks(BTC, day, Millis(day + DAY_MS - 1))
    assert [tick for tick in ticks if isinstance(tick, FundingRate)] == [
        FundingRate(Millis(day + hours * HOUR_MS), 0.0001, True) for hours in (8, 16)
    ]


async def test_an_order_of_a_closed_bar_meets_the_next_one_from_its_open() -> None:
    """Filled at its open; a stop that this bar passes is honoured; funding of the moment of the decision is not paid,
    the next is."""
    day = START // DAY_MS * DAY_MS
    prices = [(10_000.0, 10_000.0, 10_000.0, 10_000.0)] * 24
    prices[8] = (10_300.0, 10_400.0, 9_500.0, 10_100.0)
    hours = [Candle(Millis(day + n * HOUR_MS), *row, 1.0, None) for n, row in enumerate(prices)]
    store = MemorySeries(PUBLIC_HISTORY)
    await store.write([Batch(candles(BINANCE, BTC, Timeframe.H1), hours, None, Source.IMPORTED)])
    clock = MarketClock(Millis(day + 8 * HOUR_MS))
    venues = build_paper_venues(store, MemoryTradeLog(), "paper:test", clock.now, Fees())
    venue = venues[Venue("BINANCE")]
    assert (await venue.quote(BTC)).mark == 10_000
    bought = await venue.place(request("entry"))
    assert (bought.average_price, bought.updated) == (D("10305.2"), clock.now()), "at the start of the bar"
    half = request("stop", SELL, STOP, trigger=D(9_700), reduce_only=True).model_copy(update={"quantity": D("0.025")})
    stop = await venue.place(half)
    clock.move(Millis(day + 8 * HOUR_MS + 30 * 60_000))
    assert (await venue.quote(BTC)).mark == 10_300, "the open stands while the bar lasts"
    clock.move(Millis(day + 9 * HOUR_MS))
    stopped = await venue.find(BTC, stop.request.client_id)
    assert stopped is not None
    assert stopped.average_price == D("9695.1")
    clock.move(Millis(day + 16 * HOUR_MS))
    assert [payment.at for payment in await venue.funding(BTC, Millis(0))] == [day + 16 * HOUR_MS]


@pytest.mark.parametrize("again", [False, True], ids=["one process", "a new process"])
async def test_a_stop_that_a_bar_opens_beyond_is_filled_at_its_open(again: bool) -> None:
    """And is dated at the start of that bar, also by a process that reads the market from the last stored event on."""
    day = START // DAY_MS * DAY_MS
    prices = [(10_000.0, 10_000.0, 10_000.0, 10_000.0)] * 10 + [(9_000.0, 9_900.0, 8_900.0, 9_800.0)] * 14
    hours = [Candle(Millis(day + n * HOUR_MS), *row, 1.0, None) for n, row in enumerate(prices)]
    store, log = MemorySeries(PUBLIC_HISTORY), MemoryTradeLog()
    await store.write([Batch(candles(BINANCE, BTC, Timeframe.H1), hours, None, Source.IMPORTED)])
    clock = MarketClock(Millis(day + 9 * HOUR_MS))

    def open_venue() -> OrderVenue:
        return build_paper_venues(store, log, "paper:test", clock.now, Fees())[Venue("BINANCE")]

    venue = open_venue()
    await venue.place(request("entry"))
    stop = await venue.place(request("stop", SELL, STOP, trigger=D(9_700), reduce_only=True))
    assert stop.updated == clock.now()
    clock.move(Millis(day + 10 * HOUR_MS))
    venue = open_venue() if again else venue
    assert await venue.positions(), "the next open is not known at a close"
    clock.move(Millis(day + 10 * HOUR_MS + 30 * 60_000))
    assert not await (open_venue() if again else venue).positions()
    [_, fill] = await venue.fills(BTC, Millis(0))
    assert (fill.price, fill.at) == (D("8995.5"), day + 10 * HOUR_MS)


async def test_an_order_shows_no_open_of_another_symbol() -> None:
    """What is decided about ETH at a close must not hang on whether BTC was ordered at it."""
    day = START // DAY_MS * DAY_MS
    prices = [(10_000.0, 10_000.0, 10_000.0, 10_000.0)] * 10 + [(9_000.0, 9_900.0, 8_900.0, 9_800.0)] * 14
    hours = [Candle(Millis(day + n * HOUR_MS), *row, 1.0, None) for n, row in enumerate(prices)]
    store = MemorySeries(PUBLIC_HISTORY)
    for symbol in DEFAULT_SYMBOLS:
        await store.write([Batch(candles(BINANCE, symbol, Timeframe.H1), hours, None, Source.IMPORTED)])
    clock = MarketClock(Millis(day + 9 * HOUR_MS))
    venue = build_paper_venues(store, MemoryTradeLog(), "paper:test", clock.now, Fees())[Venue("BINANCE")]
    eth = {"symbol": Symbol("ETHUSDT")}
    await venue.place(request("entry").model_copy(update=eth))
    await venue.place(request("stop", SELL, STOP, trigger=D(9_700), reduce_only=True).model_copy(update=eth))
    clock.move(Millis(day + 10 * HOUR_MS))
    bought = await venue.place(request("other"))
    assert (bought.average_price, bought.updated) == (D("9004.5"), clock.now())
    assert {position.symbol for position in await venue.positions()} == {*DEFAULT_SYMBOLS}
    assert (await venue.quote(Symbol("ETHUSDT"))).mark == 10_000
    clock.move(Millis(day + 11 * HOUR_MS))
    assert [position.symbol for position in await venue.positions()] == [BTC]
    [_, fill] = await venue.fills(Symbol("ETHUSDT"), Millis(0))
    assert (fill.price, fill.at) == (D("8995.5"), day + 10 * HOUR_MS)


def test_an_account_can_be_opened_with_other_cash() -> None:
    floor = Floor()
    floor.engine.restore([open_account(at=Millis(1), usd=D(50), krw=D(0))])
    assert floor.engine.available() == 50
    assert ListTape().market[BTC] == []


async def test_without_a_fresh_price_an_order_is_neither_taken_nor_rejected() -> None:
    paper = open_binance()
    order = OrderRequest(
        client_id="zn1", exchange=Venue("BINANCE"), symbol=BTC, side=BUY, type=MARKET, quantity=D("0.010")
    )
    paper.at += HOUR_MS
    with pytest.raises(Unavailable):
        await paper.venue.place(order)
    assert await paper.venue.find(BTC, "zn1") is None
    paper.show(paper.price)
    assert (await paper.venue.place(order)).status is OrderStatus.FILLED
    paper.at += HOUR_MS
    assert (await paper.venue.place(order)).status is OrderStatus.FILLED


async def test_two_symbols_are_matched_in_the_order_of_time() -> None:
    """However seldom somebody looks: a fill is dated by its own market."""
    times: list[list[tuple[str, int]]] = []
    for looks in ((9,), range(1, 10)):
        paper = open_binance()
        for symbol, price in ((BTC, 20_000.0), (Symbol("ETHUSDT"), 1_000.0)):
            paper.tape.market[symbol].append(Bar(Millis(START - MINUTE_MS), START, price, price, price, price))
            passed = 6 if symbol is BTC else 3
            for number in range(9):
                low = price * (0.98 if number == passed else 1.0)
                start = Millis(START + number * MINUTE_MS)
                paper.tape.market[symbol].append(Bar(start, Millis(start + MINUTE_MS), price, price, low, price))
            paper.tape.market[symbol].sort(key=lambda tick: tick.at)
        paper.at = START
        for name, symbol, limit in (("zn1", BTC, D(19_800)), ("zn2", Symbol("ETHUSDT"), D(990))):
            order = OrderRequest(
                client_id=name,
                exchange=Venue("BINANCE"),
                symbol=symbol,
                side=BUY,
                type=LIMIT,
                quantity=D("0.030"),
                price=limit,
            )
            assert (await paper.venue.place(order)).status is OrderStatus.OPEN
        for look in looks:
            paper.at = START + look * MINUTE_MS
            await paper.venue.balance()
        fills = [fill for symbol in DEFAULT_SYMBOLS for fill in await paper.venue.fills(symbol, Millis(0))]
        times.append([(fill.symbol, (fill.at - START) // MINUTE_MS) for fill in fills])
    assert times[0] == times[1] == [(BTC, 7), (Symbol("ETHUSDT"), 4)]


async def test_what_a_late_bar_fills_is_told_as_news() -> None:
    paper = open_binance()
    order = OrderRequest(
        client_id="zn1",
        exchange=Venue("BINANCE"),
        symbol=BTC,
        side=BUY,
        type=LIMIT,
        quantity=D("0.010"),
        price=D(19_900),
    )
    paper.tape = LateTape(paper.tape.market)
    venue = paper.open_venue()
    await venue.place(order)
    began = paper.at
    paper.at += 5 * MINUTE_MS
    paper.show(D(19_950))
    looked = paper.at
    assert await venue.fills(BTC, Millis(looked)) == ()
    paper.tape.market[BTC].append(Bar(Millis(began), Millis(began + MINUTE_MS), 20_000.0, 20_000.0, 19_800.0, 19_950.0))
    paper.at += 1_000
    (fill,) = await venue.fills(BTC, Millis(looked))
    assert looked < fill.at <= paper.at
    assert (await venue.quote(BTC)).at == looked


class LateTape(ListTape):
    """Gives a bar that came late with the next look."""

    async def ticks(self, symbol: Symbol, after: Millis, until: Millis) -> Sequence[Tick]:
        late = [tick for tick in self.market[symbol] if type(tick) is Bar and tick.at <= after]
        return [*late, *await super().ticks(symbol, after, until)]


@pytest.mark.parametrize(
    ("price", "tick"),
    [(150_000_000, "1000"), (7_500, "5"), (640, "1"), (12.3, "0.1"), (0.02, "0.0001"), (1e-7, "1e-8")],
)
def test_won_prices_have_the_ticks_of_their_size(price: float, tick: str) -> None:
    exchange = PaperExchange(Venue("UPBIT"), FeeRates(0.05, 0.05))
    exchange.market_state[BTC].price = price
    assert exchange.tick(BTC) == D(tick)


def test_a_coin_that_left_the_list_can_still_be_closed_on_paper() -> None:
    listed = Catalogue().renew(Venue("BINANCE"), [assume_market(Venue("BINANCE"), "ETH")], Millis(1))
    exchange = PaperExchange(Venue("BINANCE"), FeeRates(0.02, 0.05), listed)
    assert exchange.lot(BTC) == PaperExchange(Venue("BINANCE"), FeeRates(0.02, 0.05)).lot(BTC)
    assert exchange.filters(BTC, Millis(2)).tick == D("0.1")
