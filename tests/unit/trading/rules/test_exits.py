"""When an open position has passed its stop, its target or its time: by the mark, by the bars since, by the clock."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.wire.accounts import build_account
from tests.wire.desk_bundles import AS_OF, bundle_of
from tests.wire.desk_bundles import holding as held_in
from zuno.kernel.units import Millis, Seconds
from zuno.markets.feeds import BINANCE, UPBIT, name_at
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.account import Holding
from zuno.trading.model.bundle import Block, Bundle
from zuno.trading.model.known import Missing
from zuno.trading.model.market import HOUR_MS, MINUTE_MS, Candle, Side, Timeframe, candles
from zuno.trading.rules.draft import RuleName
from zuno.trading.rules.exits import find_exits

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
