"""When an open position has passed its stop, its target or its time: by the mark, by the bars since, by the clock."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.accounts import build_account
from tests.wire.desk_bundles import AS_OF, bundle_of
from tests.wire.desk_bundles import holding as held_in
from tests.wire.order_gate import GateHarness
from zuno.adapters.venues.paper.matching import PaperExchange
from zuno.adapters.venues.paper.tape import Bar
from zuno.kernel.units import Millis, Seconds
from zuno.markets.feeds import BINANCE, UPBIT, name_at
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.account import Holding
from zuno.trading.model.bundle import Block, Bundle
from zuno.trading.model.known import Missing
from zuno.trading.model.market import HOUR_MS, MINUTE_MS, Candle, Side, Timeframe, candles
from zuno.trading.model.orders import OrderRequest, OrderSide, OrderStatus, OrderType
from zuno.trading.model.trade_events import LevelsSet
from zuno.trading.rules.draft import RuleName
from zuno.trading.rules.exits import find_exits
from zuno.trading.rules.inputs import FeeRates

PRICE = 100.0
GONE = Missing("nobody said")
HOURS = candles(BINANCE, Symbol("BTCUSDT"), Timeframe.H1)
MINUTES = candles(BINANCE, Symbol("BTCUSDT"), Timeframe.M1)
WON = candles(UPBIT, name_at(UPBIT, Symbol("BTCUSDT")), Timeframe.H1)


def bar(at: int, low: float = PRICE, high: float = PRICE) -> Candle:
    return Candle(Millis(at), PRICE, high, low, PRICE, 1.0, 0.5)


def bundle(**rows: list[Candle]) -> Bundle:
    """Nothing but these candles."""
    blocks = []
    for series in (HOURS, MINUTES, WON):
        name = {HOURS: "hours", MINUTES: "minutes", WON: "won"}[series]
        found = tuple(rows.get(name, ()))
        if found:
            blocks.append(Block(series, found, found[-1].at, Seconds(0), Seconds(7_200)))
    return replace(bundle_of(), blocks=tuple(blocks))


def position(side: Side = Side.LONG, hours: float = 5.5, **changed: Any) -> Holding:
    plain = Holding(
        id="pos_1",
        symbol=Symbol("BTCUSDT"),
        exchange=Venue("BINANCE"),
        side=side,
        quantity=0.1,
        entry=PRICE,
        leverage=1.0,
        opened=Millis(AS_OF - int(hours * HOUR_MS)),
    )
    return plain.model_copy(update=changed)


def exits(given: Bundle, mark: Any = PRICE, **changed: Any) -> list[RuleName]:
    account = build_account(2_000.0, 0.0, (position(**changed),))
    return [passed.rule for passed in find_exits(given, account, mark)]


@pytest.mark.parametrize("side", list(Side))
def test_where_the_market_stands_now(side: Side) -> None:
    sign = 1 if side is Side.LONG else -1
    levels = {"side": side, "stop": PRICE - 2 * sign, "take": PRICE + 4 * sign}
    for away, passed in ((-2, RuleName.STOP_PASSED), (-1.99, None), (4, RuleName.TARGET_PASSED), (3.99, None)):
        assert exits(bundle(), PRICE + sign * away, **levels) == ([passed] if passed else [])


@pytest.mark.parametrize("side", list(Side))
@pytest.mark.parametrize("series", ["hours", "minutes"])
def test_a_bar_since_the_opening_that_touched_it(side: Side, series: str) -> None:
    step = HOUR_MS if series == "hours" else MINUTE_MS
    sign = 1 if side is Side.LONG else -1
    levels = {"side": side, "stop": PRICE - 2 * sign, "take": PRICE + 4 * sign}
    at = AS_OF - 3 * step
    lower, higher = (bar(at, low=97.9, high=PRICE), bar(at, high=102.1))
    wild = bar(at, low=90.0, high=110.0)
    hit = lower if side is Side.LONG else higher
    assert exits(bundle(**{series: [hit]}), **levels) == [RuleName.STOP_PASSED]
    assert exits(bundle(**{series: [wild]}), **levels) == [RuleName.STOP_PASSED]
    gain = bar(at, high=104.0) if side is Side.LONG else bar(at, low=96.0)
    assert exits(bundle(**{series: [gain]}), **levels) == [RuleName.TARGET_PASSED]
    assert exits(bundle(**{series: [gain, replace_at(hit, at + step)]}), **levels) == [RuleName.TARGET_PASSED]
    assert exits(bundle(**{series: [hit, replace_at(gain, at + step)]}), **levels) == [RuleName.STOP_PASSED]


def replace_at(row: Candle, at: int) -> Candle:
    return row._replace(at=Millis(at))


def test_a_bar_that_began_before_the_opening_or_has_not_closed_proves_nothing() -> None:
    before, unfinished = bar(AS_OF - 6 * HOUR_MS, low=90.0), bar(AS_OF - HOUR_MS // 2, low=90.0)
    assert exits(bundle(hours=[before, unfinished]), stop=98.0) == []


def test_a_bar_no_market_can_have_made_proves_nothing() -> None:
    absurd = Candle(Millis(AS_OF - 3 * HOUR_MS), PRICE, PRICE, -5.0, PRICE, 1.0, 0.5)
    assert exits(bundle(hours=[absurd]), stop=98.0) == []


@pytest.mark.parametrize(
    ("hold", "hours", "over"), [("5h", 4.9, False), ("5h", 5, True), ("1d", 23, False), ("2w", 336, True)]
)
def test_a_hold_that_is_over(hold: str, hours: float, over: bool) -> None:
    assert exits(bundle(), hours=hours, hold=hold) == ([RuleName.HOLD_OVER] if over else [])


def test_what_was_touched_is_told_before_the_time() -> None:
    assert exits(bundle(), 97.0, hours=30, stop=98.0, hold="1d") == [RuleName.STOP_PASSED]


def test_without_a_mark_the_last_close_stands_for_it() -> None:
    closes = [bar(AS_OF - HOUR_MS)]
    assert exits(bundle(hours=closes), GONE, stop=100.5) == [RuleName.STOP_PASSED]
    assert exits(bundle(), GONE, stop=100.5) == []
    assert exits(bundle(), GONE, hours=30, stop=100.5, hold="1d") == [RuleName.HOLD_OVER]


def test_won_are_held_against_won() -> None:
    spot = {"exchange": Venue("UPBIT"), "stop": 98.0}
    assert exits(bundle(hours=[bar(AS_OF - 3 * HOUR_MS, low=90.0)]), 90.0, **spot) == []
    assert exits(bundle(won=[bar(AS_OF - 3 * HOUR_MS, low=97.0)]), **spot) == [RuleName.STOP_PASSED]


def test_a_position_without_levels_or_of_another_symbol_stays() -> None:
    assert exits(bundle(), 1.0) == []
    assert exits(bundle(), 1.0, stop=98.0, symbol=Symbol("ETHUSDT")) == []
    assert find_exits(bundle_of(), held_in(Side.LONG), 1.0) == ()


# -- levels that were set after the opening


@pytest.mark.parametrize("side", list(Side))
def test_each_level_counts_from_when_it_was_set(side: Side) -> None:
    sign, moment = (1 if side is Side.LONG else -1), AS_OF - 2 * HOUR_MS
    levels = {"side": side, "stop": PRICE - 2 * sign, "take": PRICE + 4 * sign}
    lower, higher = bar(moment - HOUR_MS, low=97.9), bar(moment - HOUR_MS, high=102.1)
    hit = lower if side is Side.LONG else higher
    gain = bar(moment - HOUR_MS, high=104.0) if side is Side.LONG else bar(moment - HOUR_MS, low=96.0)

    assert exits(bundle(hours=[hit]), **levels, stop_since=Millis(moment)) == []
    assert exits(bundle(hours=[gain]), **levels, take_since=Millis(moment)) == []
    assert exits(bundle(hours=[gain]), **levels, stop_since=Millis(moment)) == [RuleName.TARGET_PASSED]
    assert exits(bundle(hours=[hit]), **levels, take_since=Millis(moment)) == [RuleName.STOP_PASSED]

    after = replace_at(hit, moment)
    assert exits(bundle(hours=[after]), **levels, stop_since=Millis(moment)) == [RuleName.STOP_PASSED]
    assert exits(bundle(hours=[after]), **levels, stop_since=Millis(moment + 1)) == []
    minute = replace_at(hit, moment + MINUTE_MS)
    assert exits(bundle(minutes=[minute]), **levels, stop_since=Millis(moment + 1)) == [RuleName.STOP_PASSED]


def test_a_record_of_an_older_edition_has_one_moment_for_both_levels() -> None:
    touched = [bar(AS_OF - 3 * HOUR_MS, low=97.0, high=105.0)]
    assert exits(bundle(hours=touched), stop=98.0, take=104.0, levels_since=Millis(AS_OF - HOUR_MS)) == []
    assert exits(bundle(hours=touched), stop=98.0, take=104.0) == [RuleName.STOP_PASSED]


@pytest.mark.parametrize("by", ["owner", "top-up"])
async def test_a_stop_above_where_the_market_was_closes_nothing(by: str) -> None:
    """A long at 20,000 whose market was at 19,900 and is at 20,500; its stop is raised to 20,100."""
    desk = GateHarness()
    assert (await desk.gate.execute(desk.opening())).state == "open"
    (trade,) = desk.gate.book.trades.values()
    begun = Timeframe.M1.floor(Millis(trade.opened + 2 * MINUTE_MS))
    desk.paper.price = Decimal(20_500)
    desk.wait(5 * MINUTE_MS)
    if by == "owner":
        await desk.gate.set_levels(trade.id, Decimal(20_100), None)
    else:
        await desk.gate.execute(desk.opening(quantity=0.01, run_id="run_2", stop=20_100.0))
    assert trade.stop == Decimal(20_100)

    def find(*rows: Candle) -> list[RuleName]:
        seen = replace(bundle(minutes=list(rows)), as_of=Millis(begun + HOUR_MS))
        return [passed.rule for passed in find_exits(seen, desk.gate.book.to_account(), 20_500.0)]

    before = Candle(Millis(begun), 20_000.0, 20_550.0, 19_900.0, 20_500.0, 1.0, 0.5)
    since = Candle(Millis(begun + 30 * MINUTE_MS), 20_500.0, 20_550.0, 20_300.0, 20_500.0, 1.0, 0.5)
    assert find(before, since) == []
    assert find(before, since._replace(low=20_090.0)) == [RuleName.STOP_PASSED]


STEPS = st.integers(-30, 30)
"""In tens of dollars."""


@given(
    side=st.sampled_from(list(Side)),
    minutes=st.lists(
        st.tuples(
            STEPS,
            st.integers(0, 30),
            st.integers(0, 30),
            st.none() | st.tuples(st.integers(1, 40), st.integers(1, 40), st.sampled_from((0, 1, 30_000, 59_999))),
        ),
        min_size=3,
        max_size=25,
    ),
)
def test_paper_and_the_rule_close_where_a_price_after_the_setting_reached_a_level(
    side: Side, minutes: list[tuple[int, int, int, tuple[int, int, int] | None]]
) -> None:
    """Levels are set at random moments; what closes on paper, what the rule closes, and what a price reached after the
    setting are the same, minute by minute."""
    symbol, exchange, sign = Symbol("BTCUSDT"), Venue("BINANCE"), 1 if side is Side.LONG else -1
    start = Timeframe.M1.floor(Millis(AS_OF - HOUR_MS))
    engine, last = PaperExchange(exchange, FeeRates(0.0, 0.0)), 20_000
    request = OrderRequest(
        client_id="in",
        exchange=exchange,
        symbol=symbol,
        side=OrderSide.BUY if side is Side.LONG else OrderSide.SELL,
        type=OrderType.MARKET,
        quantity=Decimal("0.010"),
        leverage=1,
    )
    engine.advance(symbol, [Bar(Millis(start - MINUTE_MS), start, last, last, last, last)])
    assert engine.place(request, start).status is OrderStatus.FILLED
    rows: list[Candle] = []
    stop, target, since = None, None, start
    for number, (step, down, up, change) in enumerate(minutes):
        begun = Millis(start + number * MINUTE_MS)
        ended = Millis(begun + MINUTE_MS)
        if change is not None:
            near, far, offset = change
            stop, target, since = last - sign * 10 * near, last + sign * 10 * far, Millis(begun + offset)
            _set_levels(engine, side, since, stop, target)
        close = last + 10 * step
        low, high = min(last, close) - 10 * down, max(last, close) + 10 * up
        rows.append(Candle(begun, last, high, low, close, 1.0, 0.5))
        account, open_, last = engine.book.to_account(), last, close
        engine.advance(symbol, [Bar(begun, ended, open_, high, low, close)])

        seen = replace(bundle(minutes=rows), as_of=ended)
        ruled = [passed.rule for passed in find_exits(seen, account, float(close))]
        worst, best = (low, high) if since <= begun else (close, close)
        if side is Side.SHORT:
            worst, best = best, worst
        stopped = stop is not None and sign * (worst - stop) <= 0
        reached = target is not None and sign * (best - target) >= 0
        due = [RuleName.STOP_PASSED] if stopped else [RuleName.TARGET_PASSED] if reached else []
        filled = [
            order.request.type for order in engine.book.orders.values() if order.request.reduce_only and order.filled
        ]
        on_paper = [
            RuleName.STOP_PASSED if kind is OrderType.STOP_MARKET else RuleName.TARGET_PASSED for kind in filled
        ]
        assert ruled == on_paper == due
        if due:
            return


def _set_levels(engine: PaperExchange, side: Side, at: Millis, stop: int, target: int) -> None:
    """As the desk does: written down, and the orders of before replaced."""
    (trade,) = engine.book.trades.values()
    levels = {"exchange": trade.exchange, "symbol": trade.symbol, "hold_until": None, "trade": trade.id}
    moved = LevelsSet(at=at, stop=Decimal(stop), target=Decimal(target), by="owner", **levels)
    engine.book.apply(moved)
    for order in list(engine.book.open_orders.values()):
        engine.cancel(order.request.client_id, at)
    for kind, trigger in ((OrderType.STOP_MARKET, stop), (OrderType.TAKE_PROFIT_MARKET, target)):
        request = OrderRequest(
            client_id=f"{kind}-{at}",
            exchange=trade.exchange,
            symbol=trade.symbol,
            side=OrderSide.SELL if side is Side.LONG else OrderSide.BUY,
            type=kind,
            quantity=trade.quantity,
            trigger=Decimal(trigger),
            reduce_only=True,
        )
        assert engine.place(request, at).status is OrderStatus.OPEN
