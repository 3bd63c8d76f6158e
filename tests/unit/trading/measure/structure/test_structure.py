"""Turns, breaks, gaps, lines, divergences and levels: each by hand, and the same whatever came later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.wire.markets import MIDNIGHT, flat, of_closes, small_markets, walk
from tests.wire.real_minutes import grouped, minutes
from zuno.kernel.units import Millis
from zuno.trading.measure.bars import LOOKBACK, Bars, bars
from zuno.trading.measure.frames import measure_frame, measure_structure_of_window
from zuno.trading.measure.indicators import compute_indicators
from zuno.trading.measure.levels import NEWEST, ZONE_WIDTH, LevelKind, PriceLevel, Structure, find_pattern, find_zones
from zuno.trading.measure.portable import GAUGE_DIGITS, places
from zuno.trading.measure.structure import (
    BreakKind,
    Divergence,
    DivergenceSource,
    Extreme,
    Gap,
    Pivot,
    PriceDirection,
    SwingKind,
    TrendLine,
    build_zigzag,
    find_breaks,
    find_divergences,
    find_fair_value_gaps,
    find_pivots,
    find_swings,
    find_trend_lines,
    list_neighbours,
    measure_fibonacci,
)
from zuno.trading.model.market import Candle, Mode, Timeframe

HOUR = Timeframe.H1.millis


def measure_structure(market: Bars, shoulder: int) -> Structure | None:
    frame = measure_frame(market, shoulder)
    return None if frame is None else frame.structure


def bar(i: int) -> Millis:
    """When the bar of that number opened."""
    return Millis(MIDNIGHT + i * HOUR)


def shaped(
    *rows: tuple[float, float, float], at: Sequence[int] | None = None, takers: Sequence[float | None] = ()
) -> Bars:
    """Low, high and close of each bar."""
    places = range(len(rows)) if at is None else at
    sold = [*takers, *[None] * len(rows)]
    return bars(
        Timeframe.H1,
        [
            Candle(bar(i), c, high, low, c, 10.0, taken)
            for i, (low, high, c), taken in zip(places, rows, sold, strict=False)
        ],
    )


def turn(extreme: Extreme, i: int, price: float, shoulder: int = 1) -> Pivot:
    return Pivot(extreme, bar(i), price, bar(i + shoulder + 1))


HIGH, LOW = Extreme.HIGH, Extreme.LOW
STEPS = of_closes([10, 11, 10.5, 11.5, 11, 10, 10.5, 9, 10, 12, 11, 12.5])
"""Up over 11, down under 10, up over 11.5 and on over 12."""


# -- pivots


def test_a_pivot_towers_over_its_shoulders_and_is_known_after_the_right_one() -> None:
    assert find_pivots(STEPS, 1) == (
        turn(HIGH, 1, 11),
        turn(HIGH, 3, 11.5),
        turn(LOW, 5, 10),
        turn(LOW, 7, 9),
        turn(HIGH, 9, 12),
    )
    assert find_pivots(STEPS, 3) == (turn(HIGH, 3, 11.5, 3), turn(LOW, 7, 9, 3))


def test_of_equal_highs_side_by_side_the_first_is_the_pivot() -> None:
    assert find_pivots(shaped((1, 5, 3), (1, 6, 3), (1, 6, 3), (1, 5, 3)), 1) == (turn(HIGH, 1, 6),)


def test_a_bar_can_be_both_and_is_a_high_first() -> None:
    assert find_pivots(shaped((2, 5, 3), (1, 6, 3), (2, 5, 3)), 1) == (turn(HIGH, 1, 6), turn(LOW, 1, 1))


def test_a_shoulder_of_missing_hours_is_known_when_its_own_last_bar_closed() -> None:
    (found,) = find_pivots(shaped((1, 5, 3), (1, 6, 3), (1, 5, 3), at=(0, 1, 9)), 1)
    assert found.known_at == bar(10)


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(small_markets(), st.integers(1, 4))
def test_pivots_are_those_that_a_plain_search_finds(market: Bars, shoulder: int) -> None:
    found = {(pivot.extreme, pivot.at) for pivot in find_pivots(market, shoulder)}
    high, low = market.high.tolist(), market.low.tolist()
    for row in range(len(market)):
        before, after = slice(max(0, row - shoulder), row), slice(row + 1, row + 1 + shoulder)
        whole = row >= shoulder and row + shoulder < len(market)
        tops = whole and high[row] > max(high[before]) and high[row] >= max(high[after])
        sinks = whole and low[row] < min(low[before]) and low[row] <= min(low[after])
        assert ((HIGH, market.at[row]) in found, (LOW, market.at[row]) in found) == (tops, sinks)


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("count", [1, 2, 10, 11, 24, 25, 300])
def test_a_market_that_stands_still_has_levels_but_no_shape(mode: Mode, count: int) -> None:
    found = measure_structure(flat(count), mode.shoulder)
    assert found is not None
    assert (found.pivots, found.breaks, found.gaps, found.lines, found.divergences) == ((), (), (), (), ())
    assert (found.trend, found.fibonacci, found.anchored, found.zones) == (None, None, (), ())
    assert {round(level.price, 9) for level in found.levels} == {100.0}
    assert found.profile is not None


def test_no_bars_have_no_structure() -> None:
    assert measure_structure(bars(Timeframe.H1, []), 5) is None


# -- swings and breaks


def test_swings_are_named_against_the_last_of_their_kind() -> None:
    assert [swing.step for swing in find_swings(find_pivots(STEPS, 1))] == [
        None,
        SwingKind.HIGHER_HIGH,
        None,
        SwingKind.LOWER_LOW,
        SwingKind.HIGHER_HIGH,
    ]
    line = (turn(HIGH, 1, 5), turn(LOW, 2, 3), turn(HIGH, 3, 5), turn(LOW, 4, 3), turn(HIGH, 5, 4), turn(LOW, 6, 3.5))
    assert [swing.step for swing in find_swings(line)] == [
        None,
        None,
        SwingKind.LOWER_HIGH,
        SwingKind.HIGHER_LOW,
        SwingKind.LOWER_HIGH,
        SwingKind.HIGHER_LOW,
    ]


def test_a_close_beyond_a_known_pivot_breaks_it_and_a_break_against_the_trend_changes_its_character() -> None:
    found = find_breaks(STEPS, find_pivots(STEPS, 1))
    assert [(each.kind, each.way, each.pivot.price, each.at) for each in found] == [
        (BreakKind.BOS, PriceDirection.UP, 11, bar(3)),
        (BreakKind.CHOCH, PriceDirection.DOWN, 10, bar(7)),
        (BreakKind.CHOCH, PriceDirection.UP, 11.5, bar(9)),
        (BreakKind.BOS, PriceDirection.UP, 12, bar(11)),
    ]
    assert [each.known_at for each in found] == [bar(4), bar(8), bar(10), bar(12)]
    read = measure_structure(STEPS, 1)
    assert read is not None
    assert read.trend is PriceDirection.UP


def test_a_wick_through_a_pivot_is_no_break_and_neither_is_a_close_on_it() -> None:
    wicked = shaped((1, 5, 3), (1, 6, 3), (1, 5, 3), (1, 9, 6), (1, 5, 3))
    assert find_breaks(wicked, find_pivots(wicked, 1)) == ()


def test_what_is_not_known_yet_cannot_be_broken() -> None:
    """With a shoulder of 3 the high of bar 3 is known after bar 6; with one of 1 bar 4 would have been enough."""
    found = find_breaks(STEPS, find_pivots(STEPS, 3))
    assert [(each.kind, each.way, each.at) for each in found] == [(BreakKind.BOS, PriceDirection.UP, bar(9))]


def test_a_pivot_that_is_confirmed_by_the_bar_that_breaks_the_one_before_hides_nothing() -> None:
    rows = shaped((1, 5, 3), (1, 6, 3), (1, 5, 3), (1, 9, 5), (1, 8, 7))
    found = find_breaks(rows, find_pivots(rows, 1))
    assert [(each.pivot.price, each.at) for each in found] == [(6, bar(4))]


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(small_markets(), st.integers(1, 3))
def test_every_break_is_a_first_close_beyond_the_last_pivot_known_before_its_bar(market: Bars, shoulder: int) -> None:
    turns = find_pivots(market, shoulder)
    found = find_breaks(market, turns)
    assert len({each.pivot for each in found}) == len(found)
    for each in found:
        row = int(np.searchsorted(market.at, each.at))
        known = [p for p in turns if p.extreme is each.pivot.extreme and p.known_at <= market.at[row - 1] + HOUR]
        assert known[-1] == each.pivot
        beyond = market.close[row] - each.pivot.price
        assert beyond > 0 if each.way is PriceDirection.UP else beyond < 0
    for earlier, later in pairwise(found):
        assert (later.kind is BreakKind.CHOCH) == (earlier.way is not later.way)


# -- Fibonacci


def test_fibonacci_divides_the_last_confirmed_swing() -> None:
    found = measure_fibonacci((turn(HIGH, 1, 150), turn(LOW, 5, 100), turn(HIGH, 9, 200)))
    assert found is not None
    assert (found.start.price, found.end.price, found.known_at) == (100, 200, bar(11))
    assert [(each.ratio, round(each.price, 6)) for each in (*found.retracements, *found.extensions)] == [
        (0.236, 176.4),
        (0.382, 161.8),
        (0.5, 150.0),
        (0.618, 138.2),
        (0.786, 121.4),
        (1.272, 227.2),
        (1.618, 261.8),
    ]


def test_a_falling_swing_is_divided_from_its_low() -> None:
    found = measure_fibonacci((turn(HIGH, 1, 200), turn(LOW, 5, 100)))
    assert found is not None
    assert (round(found.retracements[0].price, 6), round(found.extensions[0].price, 6)) == (123.6, 72.8)


def test_a_swing_ends_at_its_furthest_pivot() -> None:
    line = (turn(LOW, 1, 100), turn(HIGH, 3, 180), turn(HIGH, 5, 200), turn(HIGH, 7, 190), turn(HIGH, 9, 200))
    assert build_zigzag(line, 4) == (line[0], line[2])
    assert measure_fibonacci(line[:1]) is None


# -- gaps


def test_a_gap_is_what_the_bars_beside_a_jump_do_not_touch_and_is_filled_when_traded_through() -> None:
    rows = shaped((1, 3, 2), (2, 8, 7), (5, 9, 8), (4, 9, 8), (3, 9, 8), (1, 5, 2))
    assert find_fair_value_gaps(rows) == (Gap(PriceDirection.UP, 3, 5, bar(1), bar(3), bar(5)),)
    assert find_fair_value_gaps(rows.last(6).upto(bar(4))) == (Gap(PriceDirection.UP, 3, 5, bar(1), bar(3), None),)


def test_a_gap_downward_is_filled_from_below() -> None:
    rows = shaped((7, 9, 8), (2, 8, 3), (1, 5, 2), (1, 6.5, 2), (1, 7, 2))
    assert find_fair_value_gaps(rows) == (Gap(PriceDirection.DOWN, 5, 7, bar(1), bar(3), bar(5)),)


def test_bars_that_touch_or_are_not_neighbours_leave_no_gap() -> None:
    assert find_fair_value_gaps(shaped((1, 3, 2), (2, 8, 7), (3, 9, 8))) == ()
    assert find_fair_value_gaps(shaped((1, 3, 2), (2, 8, 7), (5, 9, 8), at=(0, 1, 3))) == ()


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(small_markets())
def test_gaps_are_those_that_a_plain_search_finds(market: Bars) -> None:
    expected: list[Gap] = []
    high, low, at = market.high.tolist(), market.low.tolist(), market.at.tolist()
    for i in range(1, len(market) - 1):
        if at[i + 1] - at[i - 1] != 2 * HOUR:
            continue
        later = range(i + 2, len(market))
        if low[i + 1] > high[i - 1]:
            through = [j for j in later if low[j] <= high[i - 1]]
            edges = (PriceDirection.UP, high[i - 1], low[i + 1])
        elif high[i + 1] < low[i - 1]:
            through = [j for j in later if high[j] >= low[i - 1]]
            edges = (PriceDirection.DOWN, high[i + 1], low[i - 1])
        else:
            continue
        filled = Millis(at[through[0]] + HOUR) if through else None
        expected.append(Gap(*edges, at[i], Millis(at[i + 1] + HOUR), filled))
    assert list(find_fair_value_gaps(market)) == expected


# -- lines and divergences


def test_a_line_runs_through_two_pivots_until_a_close_lies_beyond_it() -> None:
    rising = shaped(
        (9, 12, 11), (8, 11, 10), (9, 12, 11), (10, 13, 12), (9, 12, 10), (10, 13, 12), (11, 14, 13), (9.6, 13, 9.7)
    )
    turns = [pivot for pivot in find_pivots(rising, 1) if pivot.extreme is LOW]
    assert [pivot.price for pivot in turns] == [8, 9]
    (found,) = find_trend_lines(rising, turns)
    assert (found.extreme, found.first, found.second, found.known_at) == (LOW, *turns, bar(6))
    assert found.broken_at == bar(8)
    assert (found.price_at(bar(1)), found.price_at(bar(4)), found.price_at(bar(7))) == pytest.approx((8, 9, 10))
    (then,) = find_trend_lines(rising.upto(bar(7)), turns)
    assert then == replace(found, broken_at=None)


def test_no_line_is_drawn_through_closes_or_when_it_broke_before_it_was_known() -> None:
    through = shaped((1, 5, 4), (1, 10, 5), (1, 9, 8), (1, 8.5, 8.3), (1, 9, 8.7), (1, 8, 5))
    turns = (turn(HIGH, 1, 10), turn(HIGH, 4, 9, 1))
    assert len(find_trend_lines(through, turns)) == 1
    assert find_trend_lines(through, (turn(HIGH, 1, 10), turn(HIGH, 4, 6, 1))) == ()
    early = shaped((1, 5, 4), (1, 10, 5), (1, 5, 5), (1, 6, 5), (1, 5.5, 5.4))
    assert find_trend_lines(early, (turn(HIGH, 1, 10), turn(HIGH, 3, 6, 1))) == ()


@pytest.mark.parametrize("gap", range(2, 30))
def test_closes_on_a_line_do_not_break_it(gap: int) -> None:
    """Whatever rounding says of them: 33.3 less a tenth with every bar is on the line, in decimals."""
    closes = [10.0, *(round(33.3 - i / 10, 1) for i in range(gap + 1)), 10.0]
    rows = shaped(*[(1.0, close, close) for close in closes])
    (found,) = find_trend_lines(rows, (turn(HIGH, 1, closes[1]), turn(HIGH, 1 + gap, closes[1 + gap])))
    assert found.broken_at is None


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(small_markets(), st.integers(1, 3))
def test_a_standing_line_has_every_close_on_its_side(market: Bars, shoulder: int) -> None:
    for line in find_trend_lines(market, find_pivots(market, shoulder)):
        sign = 1 if line.extreme is HIGH else -1
        for at, close in zip(market.at.tolist(), market.close.tolist(), strict=True):
            beyond = sign * (close - line.price_at(at)) > 1e-6
            broken = line.broken_at is not None and at + HOUR >= line.broken_at
            assert broken or at < line.first.at or not beyond
            if line.broken_at == at + HOUR:
                assert beyond
        assert line.broken_at is None or line.broken_at > line.known_at


def diverged(
    extreme: Extreme, prices: tuple[float, float], strength: tuple[float, float], takers: Sequence[float | None]
) -> list[tuple[DivergenceSource, PriceDirection, bool]]:
    market = shaped(*[(1, 300, 100)] * 6, takers=takers)
    column = np.array([np.nan, strength[0], 50, 50, strength[1], 50])
    turns = (turn(extreme, 1, prices[0]), turn(extreme, 4, prices[1]))
    taken = 2 * market.taker_buy - market.volume
    found = find_divergences([*list_neighbours(market, turns)], column, taken)
    assert all(each.known_at == turns[1].known_at and (each.first, each.second) == turns for each in found)
    return [(each.gauge, each.way, each.hidden) for each in found]


EVEN: tuple[float, ...] = (5.0,) * 6
BOUGHT: tuple[float, ...] = (0.0, 0.0, 9.0, 9.0, 9.0, 0.0)
NOTHING: tuple[float, ...] = (5.0, 5.0, 5.05, 5.1, 4.85, 5.0)
"""Bought and sold alike, but for rounding."""
SOLD: tuple[float, ...] = (9.0, 9.0, 1.0, 1.0, 1.0, 9.0)


@pytest.mark.parametrize(
    ("extreme", "prices", "strength", "takers", "expected"),
    [
        (HIGH, (100, 110), (70, 60), EVEN, [(DivergenceSource.RSI, PriceDirection.DOWN, False)]),
        (HIGH, (110, 100), (60, 70), EVEN, [(DivergenceSource.RSI, PriceDirection.DOWN, True)]),
        (LOW, (100, 90), (30, 40), EVEN, [(DivergenceSource.RSI, PriceDirection.UP, False)]),
        (LOW, (90, 100), (40, 30), EVEN, [(DivergenceSource.RSI, PriceDirection.UP, True)]),
        (HIGH, (100, 110), (60, 70), EVEN, []),
        (LOW, (100, 90), (40, 30), EVEN, []),
        (HIGH, (100, 100), (60, 70), SOLD, []),
        (HIGH, (100, 110), (60, 60), EVEN, []),
        (HIGH, (100, 110), (60, 60 - 1e-9), EVEN, []),
        (HIGH, (100, 110), (float("nan"), 60), EVEN, []),
        (HIGH, (100, 110), (60, 70), SOLD, [(DivergenceSource.CVD, PriceDirection.DOWN, False)]),
        (HIGH, (110, 100), (70, 60), BOUGHT, [(DivergenceSource.CVD, PriceDirection.DOWN, True)]),
        (LOW, (100, 90), (40, 30), BOUGHT, [(DivergenceSource.CVD, PriceDirection.UP, False)]),
        (LOW, (90, 100), (30, 40), SOLD, [(DivergenceSource.CVD, PriceDirection.UP, True)]),
        (
            LOW,
            (100, 90),
            (30, 40),
            BOUGHT,
            [(DivergenceSource.RSI, PriceDirection.UP, False), (DivergenceSource.CVD, PriceDirection.UP, False)],
        ),
        (HIGH, (100, 110), (60, 70), (9.0, 9.0, 1.0, None, 1.0, 9.0), []),
        (HIGH, (100, 110), (60, 70), NOTHING, []),
        (HIGH, (110, 100), (70, 60), NOTHING, []),
        (
            HIGH,
            (100, 110),
            (60, 70),
            (None, None, 1.0, 1.0, 1.0, None),
            [(DivergenceSource.CVD, PriceDirection.DOWN, False)],
        ),
    ],
)
def test_a_divergence_is_a_gauge_that_does_not_go_along(
    extreme: Extreme,
    prices: tuple[float, float],
    strength: tuple[float, float],
    takers: Sequence[float | None],
    expected: list[tuple[DivergenceSource, PriceDirection, bool]],
) -> None:
    assert diverged(extreme, prices, strength, takers) == expected


# -- levels and zones


def level(name: str, kind: LevelKind, price: float) -> PriceLevel:
    return PriceLevel(name, kind, price, bar(0))


def test_a_zone_is_where_levels_of_different_kinds_meet() -> None:
    menu = [
        level("a", LevelKind.PIVOT, 100.0),
        level("b", LevelKind.PIVOT, 100.1),
        level("c", LevelKind.AVERAGE, 103.0),
        level("d", LevelKind.FIBONACCI, 104.0),
        level("e", LevelKind.PIVOT, 104.5),
        level("f", LevelKind.VWAP, 105.4),
        level("g", LevelKind.VWAP, 110.0),
    ]
    found = find_zones(menu, atr=10.0)
    assert [(zone.low, zone.high, zone.levels) for zone in found] == [(103.0, 105.4, ("c", "d", "e", "f"))]
    assert found[0].kinds == (LevelKind.AVERAGE, LevelKind.FIBONACCI, LevelKind.PIVOT, LevelKind.VWAP)
    narrow = find_zones(menu, atr=4.0)
    assert [zone.levels for zone in narrow] == [("d", "e")]
    assert find_zones(menu, None) == find_zones(menu, 0.0) == ()


def test_levels_that_stand_exactly_a_quarter_of_an_atr_apart_meet() -> None:
    menu = [level("a", LevelKind.PIVOT, 100.0), level("b", LevelKind.GAP, 101.0)]
    assert len(find_zones(menu, 4.0)) == 1
    assert find_zones(menu, 3.99) == ()


def test_of_equal_zones_the_narrowest_and_then_the_lowest_is_taken() -> None:
    pivot, gap = LevelKind.PIVOT, LevelKind.GAP
    row = [level("a", pivot, 100.0), level("b", gap, 101.0), level("c", pivot, 102.0)]
    assert [zone.levels for zone in find_zones(row, 4.0)] == [("a", "b")]
    nearer = [*row[:2], level("c", pivot, 101.9)]
    assert [zone.levels for zone in find_zones(nearer, 4.0)] == [("b", "c")]


@pytest.mark.slow
@settings(max_examples=examples(80), deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(LevelKind), st.integers(1, 60)), max_size=25),
    st.integers(1, 60),
)
def test_zones_never_overlap_and_miss_nothing(rows: list[tuple[LevelKind, int]], atr: int) -> None:
    menu = [level(f"{i}", kind, float(price)) for i, (kind, price) in enumerate(rows)]
    by_id = {each.id: each for each in menu}
    found = find_zones(menu, float(atr))
    taken = [name for zone in found for name in zone.levels]
    assert len(taken) == len(set(taken))
    for zone in found:
        members = [by_id[name] for name in zone.levels]
        prices = [each.price for each in members]
        assert (min(prices), max(prices)) == (zone.low, zone.high)
        assert zone.high - zone.low <= ZONE_WIDTH * atr
        assert len({each.kind for each in members}) == len(zone.kinds) >= 2
    left = sorted((each for each in menu if each.id not in taken), key=lambda each: each.price)
    for first, second in pairwise(left):
        assert first.kind is second.kind or second.price - first.price > ZONE_WIDTH * atr
    assert [zone.levels for zone in found] == plain_zones(menu, atr)


def plain_zones(menu: list[PriceLevel], atr: int) -> list[tuple[str, ...]]:
    """The best of all stretches of levels, and again of what is left."""
    left = sorted(menu, key=lambda each: (each.price, each.id))
    found: list[list[PriceLevel]] = []
    while True:
        stretches = [left[start:end] for start in range(len(left)) for end in range(start + 1, len(left) + 1)]
        meeting = [part for part in stretches if part[-1].price - part[0].price <= ZONE_WIDTH * atr]
        best = max(meeting, key=lambda part: (kinds_in(part), part[0].price - part[-1].price), default=[])
        if kinds_in(best) < 2:
            return [tuple(each.id for each in part) for part in sorted(found, key=lambda part: part[0].price)]
        found.append(best)
        left = [each for each in left if each not in best]


def kinds_in(part: list[PriceLevel]) -> int:
    return len({each.kind for each in part})


def real_hours() -> Bars:
    return bars(Timeframe.H1, grouped(minutes(), Timeframe.H1))


@pytest.mark.slow
def test_the_menu_names_every_level_once_with_its_kind_price_and_since() -> None:
    found = measure_structure(real_hours(), 5)
    assert found is not None
    names = [each.id for each in found.levels]
    assert len(set(names)) == len(names) > 40
    assert [each.price for each in found.levels] == sorted(each.price for each in found.levels)
    assert {each.kind for each in found.levels} == set(LevelKind)
    last = int(real_hours().at[-1]) + HOUR
    assert all(each.since <= last and each.price > 0 for each in found.levels)
    menu = {each.id: each for each in found.levels}
    newest = [pivot for pivot in found.pivots if pivot.extreme is HIGH][-1]
    decimals = places(float(real_hours().close[-1]), GAUGE_DIGITS)
    assert menu["1h.pivot_high_1"].since == newest.known_at
    assert menu["1h.pivot_high_1"].price == round(newest.price, decimals)
    assert f"1h.pivot_high_{NEWEST + 1}" not in menu
    assert found.fibonacci is not None
    assert menu["1h.fib_618"].price == round(found.fibonacci.retracements[3].price, decimals)
    assert found.profile is not None
    assert menu["1h.poc"].price == round(found.profile.poc, decimals)
    assert menu["1h.ema200"].since == last
    assert [each.pivot for each in found.anchored] == [
        newest,
        [pivot for pivot in found.pivots if pivot.extreme is LOW][-1],
    ]
    for each in found.anchored:
        assert menu[f"1h.vwap_since_{each.pivot.extreme}"].price == round(each.price, decimals)
    open_up = [gap for gap in found.gaps if gap.way is PriceDirection.UP and gap.filled_at is None]
    assert menu["1h.gap_up_1_low"].price == round(open_up[-1].low, decimals)
    support = [line for line in found.lines if line.extreme is LOW and line.broken_at is None][-1]
    assert menu["1h.line_support"].price == round(support.price_at(last - HOUR), decimals)


@pytest.mark.parametrize("count", [90, 150, 220, 310, 400, 528])
def test_the_menu_shows_open_gaps_and_standing_lines_only(count: int) -> None:
    market = real_hours()
    found = measure_structure(market.upto(int(market.at[count - 1]) + HOUR), 3)
    assert found is not None
    shown = {each.id.removeprefix("1h."): each.price for each in found.levels}
    expected: dict[str, float] = {}
    for way in PriceDirection:
        still = [gap for gap in found.gaps if gap.way is way and gap.filled_at is None]
        for place, gap in enumerate(still[: -NEWEST - 1 : -1], 1):
            expected |= {f"gap_{way}_{place}_low": gap.low, f"gap_{way}_{place}_high": gap.high}
    for extreme, name in ((HIGH, "line_resistance"), (LOW, "line_support")):
        standing = [line for line in found.lines if line.extreme is extreme and line.broken_at is None]
        if standing:
            expected[name] = standing[-1].price_at(int(market.at[count - 1]))
    decimals = places(float(market.close[count - 1]), GAUGE_DIGITS)
    assert {name: price for name, price in shown.items() if name.startswith(("gap", "line"))} == {
        name: round(price, decimals) for name, price in expected.items()
    }


def test_a_line_that_has_fallen_below_zero_is_no_level() -> None:
    down = [100.0 - i for i in range(45)]
    rows = [(price - (6 if i in (10, 20) else 1), price + 1, price) for i, price in enumerate(down)]
    sunk = shaped(*rows, *[(59.0, 61.0, 60.0)] * 90)
    found = measure_structure(sunk, 2)
    assert found is not None
    (line,) = [each for each in found.lines if each.extreme is LOW and each.broken_at is None][-1:]
    assert line.price_at(int(sunk.at[-1])) < 0
    assert all(each.price > 0 for each in found.levels)


# -- the future


def as_of(found: Structure, at: int) -> tuple[object, ...]:
    """What of it was known by then, as it was known."""

    def gap(each: Gap) -> Gap:
        return each if each.filled_at is None or each.filled_at <= at else replace(each, filled_at=None)

    def line(each: TrendLine) -> TrendLine:
        return each if each.broken_at is None or each.broken_at <= at else replace(each, broken_at=None)

    turns = tuple(each for each in found.pivots if each.known_at <= at)
    return (
        turns,
        tuple(each for each in found.swings if each.pivot.known_at <= at),
        tuple(each for each in found.breaks if each.known_at <= at),
        tuple(gap(each) for each in found.gaps if each.known_at <= at),
        tuple(line(each) for each in found.lines if each.known_at <= at),
        tuple(each for each in found.divergences if each.known_at <= at),
        measure_fibonacci(turns),
    )


def all_of(found: Structure) -> tuple[object, ...]:
    return (
        found.pivots,
        found.swings,
        found.breaks,
        found.gaps,
        found.lines,
        found.divergences,
        found.fibonacci,
    )


@pytest.mark.slow
@settings(max_examples=examples(80), deadline=None)
@given(small_markets(least=2), st.integers(1, 120), st.integers(1, 3))
def test_behaviour_15_truncating_the_future_changes_no_structure(market: Bars, hours: int, shoulder: int) -> None:
    whole = measure_structure(market, shoulder)
    at = int(market.at[0]) + hours * HOUR
    part = measure_structure(market.upto(at), shoulder)
    assert whole is not None
    assert part is not None
    assert as_of(whole, at) == all_of(part)


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("cut", [3, 40, 151, 300, 500])
def test_behaviour_15_truncating_the_future_changes_no_structure_of_a_real_market(mode: Mode, cut: int) -> None:
    market = real_hours()
    at = int(market.at[cut])
    whole, part = measure_structure(market, mode.shoulder), measure_structure(market.upto(at), mode.shoulder)
    assert whole is not None
    assert part is not None
    assert as_of(whole, at) == all_of(part)
    assert all(each.since <= at for each in part.levels)


def test_behaviour_15_the_last_thousand_bars_end_with_the_moment_asked_for() -> None:
    """Profile, levels and zones are of a window that ends at t: what came later is not in it."""
    market = walk(LOOKBACK + 200, seed=21)
    at = int(market.at[LOOKBACK + 50])
    then = market.upto(at)
    cut = bars(market.timeframe, candles_of(market)[: LOOKBACK + 50])
    assert measure_structure(then, 5) == measure_structure(cut, 5) == measure_structure(cut.last(LOOKBACK), 5)


def candles_of(market: Bars) -> list[Candle]:
    numbers = (market.open, market.high, market.low, market.close, market.volume, market.taker_buy)
    rows = zip(market.at.tolist(), *(each.tolist() for each in numbers), strict=True)
    return [Candle(*row) for row in rows]


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(small_markets(), st.integers(-3, 20))
def test_structure_does_not_depend_on_the_unit_of_price(market: Bars, power: int) -> None:
    """Units in which prices have no more digits than they are kept to."""
    factor = 2.0**power
    prices = [each * factor for each in (market.open, market.high, market.low, market.close)]
    other = Bars(
        market.timeframe, market.at, prices[0], prices[1], prices[2], prices[3], market.volume, market.taker_buy
    )
    plain, scaled = measure_structure(market, 2), measure_structure(other, 2)
    assert plain is not None
    assert scaled is not None
    assert [(each.extreme, each.at, each.price * factor) for each in plain.pivots] == [
        (each.extreme, each.at, each.price) for each in scaled.pivots
    ]
    assert [(each.kind, each.way, each.at) for each in plain.breaks] == [
        (each.kind, each.way, each.at) for each in scaled.breaks
    ]
    assert {each.id: each.price for each in scaled.levels} == pytest.approx(
        {each.id: each.price * factor for each in plain.levels}, rel=1e-9
    )
    assert {frozenset(each.levels) for each in plain.zones} == {frozenset(each.levels) for each in scaled.zones}
    assert [_bare(each) for each in plain.divergences] == [_bare(each) for each in scaled.divergences]
    assert [(each.known_at, each.broken_at) for each in plain.lines] == [
        (each.known_at, each.broken_at) for each in scaled.lines
    ]


def _bare(each: Divergence) -> tuple[object, ...]:
    return each.gauge, each.way, each.hidden, each.first.at, each.second.at


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(small_markets(), st.integers(1, 3))
def test_a_market_turned_upside_down_has_its_structure_turned(market: Bars, shoulder: int) -> None:
    """Highs for lows and up for down: no rule may lean to one side."""
    top = 500.0
    turned = Bars(
        market.timeframe,
        market.at,
        top - market.open,
        top - market.low,
        top - market.high,
        top - market.close,
        market.volume,
        market.volume - market.taker_buy,
    )
    there, back = (measure_structure_of_window(each, compute_indicators(each), shoulder) for each in (market, turned))
    assert {(each.extreme, each.at, each.price) for each in there.pivots} == {
        (HIGH if each.extreme is LOW else LOW, each.at, top - each.price) for each in back.pivots
    }
    assert [(each.kind, each.at, each.way is PriceDirection.UP) for each in there.breaks] == [
        (each.kind, each.at, each.way is PriceDirection.DOWN) for each in back.breaks
    ]
    assert [(each.at, each.low, each.high, each.filled_at) for each in there.gaps] == [
        (each.at, top - each.high, top - each.low, each.filled_at) for each in back.gaps
    ]
    assert {(each.first.at, each.second.at, each.broken_at, each.extreme) for each in there.lines} == {
        (each.first.at, each.second.at, each.broken_at, HIGH if each.extreme is LOW else LOW) for each in back.lines
    }
    assert {(each.gauge, each.hidden, each.second.at, each.way is PriceDirection.UP) for each in there.divergences} == {
        (each.gauge, each.hidden, each.second.at, each.way is PriceDirection.DOWN) for each in back.divergences
    }


def test_the_structure_of_a_real_market_is_plausible() -> None:
    found = measure_structure(real_hours(), Mode.SWING.shoulder)
    assert found is not None
    assert 40 < len(found.pivots) < 100
    assert abs(len([each for each in found.pivots if each.extreme is HIGH]) * 2 - len(found.pivots)) < 15
    assert 10 < len(found.breaks) < 45
    assert {each.kind for each in found.breaks} == set(BreakKind)
    assert 0.02 < len([each for each in found.gaps if each.filled_at is None]) / len(found.gaps) < 0.4
    assert 5 < len(found.divergences) < 40
    assert 5 < len(found.zones) < 25
    assert found.profile is not None
    assert 1_300 < found.profile.value_low < found.profile.poc < found.profile.value_high < 1_900
    assert len(found.anchored) == 2


def test_a_bar_no_market_can_have_made_changes_nothing() -> None:
    rows = [Candle(bar(i), 100.0, 101.0 + i % 7, 99.0 - i % 5, 100.0, 5.0, 2.0) for i in range(60)]
    spoiled = [*rows[:30], Candle(bar(30), 100.0, 90.0, 110.0, 100.0, 5.0, 2.0), *rows[31:]]
    assert measure_structure(bars(Timeframe.H1, spoiled), 2) == measure_structure(
        bars(Timeframe.H1, rows[:30] + rows[31:]), 2
    )


def test_a_market_and_its_mirror_image_have_one_log_atr_and_opposite_shapes() -> None:
    market = walk(400)
    turned = replace(market, open=1 / market.open, high=1 / market.low, low=1 / market.high, close=1 / market.close)
    own, other = measure_structure(market, 5), measure_structure(turned, 5)
    assert own is not None
    assert other is not None
    assert own.log_atr is not None
    assert own.log_atr == pytest.approx(other.log_atr, abs=2e-9)
    assert (own.trend is PriceDirection.UP) is (other.trend is PriceDirection.DOWN)
    for count in range(4, len(own.pivots)):
        close = own.pivots[count - 1].price
        shape = find_pattern(own.pivots[:count], close, own.log_atr)
        twin = find_pattern(other.pivots[:count], 1 / close, own.log_atr)
        assert (shape is None) is (twin is None)
        if shape is not None and twin is not None:
            assert (shape.way is PriceDirection.UP, shape.way is PriceDirection.DOWN) == (
                twin.way is PriceDirection.DOWN,
                twin.way is PriceDirection.UP,
            )
            assert (shape.line * twin.line, shape.confirmed) == (pytest.approx(1), twin.confirmed)
