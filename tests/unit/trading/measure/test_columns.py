"""Columns are judged and summed up as single rows are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.resampling import resample_bars
from zuno.kernel.units import Millis
from zuno.trading.measure.columns import (
    WIDTH,
    compare_rows,
    find_clock_shifts,
    mark_foreign_prices,
    mark_seen,
    mark_valid_rows,
    measure_likeness,
    measure_price_ratio,
    resample_columns,
    sort_rows,
    to_rows,
)
from zuno.trading.measure.data_quality import complete_at, find_row_fault
from zuno.trading.model.market import (
    HOUR_MS,
    Candle,
    Series,
    Timeframe,
    basis,
    candles,
    funding,
    open_interest,
)
from zuno.trading.ports.series import Columns

AT = 1_704_067_200_000
NOW = Millis(AT + 400 * HOUR_MS)
H1 = candles("binance", "BTCUSDT", Timeframe.H1)
KINDS: list[Series[Any]] = [H1, funding("okx", "X"), open_interest("okx", "X"), basis("okx", "X")]
ODD = st.sampled_from([0.0, -0.0, -1.0, 1e-19, 1e-10, 1e18, 1.1e18, math.nan, math.inf, 8.0, 100.0])
NUMBER = ODD | st.floats(50, 150)
TIMES = st.integers(-3, 403).map(lambda hour: AT + hour * HOUR_MS) | st.sampled_from([AT + 1, -(10**13), 10**13])


def columns(series: Series[Any], rows: Sequence[Any]) -> Columns:
    table = np.array([row[1:] for row in rows], dtype=np.float64).reshape(-1, WIDTH[series.row])
    return Columns(series, np.array([row[0] for row in rows], dtype=np.int64), tuple(table.T))


LINES: list[Any] = [st.tuples(TIMES, *[NUMBER] * WIDTH[series.row]) for series in KINDS]
LINES[0] |= st.tuples(TIMES, *map(st.just, (100.0, 120.0, 90.0, 110.0, 5.0)), NUMBER)  # mostly a bar that could be
SOME_ROWS = [
    st.tuples(st.just(series), st.lists(line, min_size=1, max_size=8))
    for series, line in zip(KINDS, LINES, strict=True)
]


@given(st.one_of(SOME_ROWS))
def test_a_row_is_sound_in_columns_where_it_is_sound_alone(drawn: tuple[Series[Any], list[Any]]) -> None:
    series, rows = drawn
    given_ = columns(series, rows)
    for good, row in zip(mark_valid_rows(given_, NOW).tolist(), to_rows(given_), strict=True):
        alone = find_row_fault(series, row, NOW) is None and complete_at(series, row) <= NOW
        assert good == alone, row


VOLUMES = st.one_of(
    st.integers(0, 10**12).map(lambda units: units / 10**8),
    st.floats(0, 1e6),
    st.sampled_from([0.1, 0.2, 0.3, 1e15, 1e17, 123456.12345678, 1e-18]),
)


@pytest.mark.slow
@given(
    st.lists(st.tuples(VOLUMES, VOLUMES | st.none()), min_size=30, max_size=60),
    st.sets(st.integers(0, 59), max_size=4),
    st.integers(0, 30),
)
def test_coarser_bars_are_those_single_rows_make(
    volumes: list[tuple[float, float | None]], gone: set[int], start: int
) -> None:
    rows = [
        Candle(Millis(AT + (start + hour) * HOUR_MS), 100.0 + hour, 200.0 + hour, 50.0 - hour / 2, 101.0, volume, taken)
        for hour, (volume, taken) in enumerate(volumes)
        if hour not in gone
    ]
    given_ = columns(H1, rows)
    for timeframe in (Timeframe.H4, Timeframe.D1, Timeframe.W1):
        assert tuple(to_rows(resample_columns(timeframe, given_))) == resample_bars(timeframe, Timeframe.H1, rows)


def hours(closes: list[float], first: int = 0) -> Columns:
    rows = [(AT + (first + hour) * HOUR_MS, c, c, c, c, 1.0, math.nan) for hour, c in enumerate(closes)]
    return columns(H1, rows)


@pytest.mark.parametrize(
    ("closes", "level", "foreign"),
    [
        ([100.0, 130.0, 90.0], None, []),
        ([100.0, 2.0, 100.0], None, [1]),
        ([2.0, 100.0, 100.0], None, [0]),
        ([100.0, 100.0, 2.0, 2.0, 2.0], None, [0, 1]),
        ([100.0, 100.0, 2.0, 2.0, 2.0], 110.0, [2, 3, 4]),
        ([5.0], None, []),
    ],
)
def test_prices_of_another_market(closes: list[float], level: float | None, foreign: list[int]) -> None:
    assert np.flatnonzero(mark_foreign_prices(hours(closes), level)).tolist() == foreign


def test_a_market_may_have_moved_while_nobody_looked() -> None:
    apart = columns(H1, [(AT + day * 24 * HOUR_MS, c, c, c, c, 1.0, math.nan) for day, c in ((0, 5.0), (400, 70.0))])
    assert not mark_foreign_prices(apart, None).any()


def test_how_columns_compare_with_those_that_stand() -> None:
    here, there = hours([1.0, 2.0, 3.0]), hours([1.0, 9.0], first=0)
    new, other = compare_rows(here, there)
    assert (new.tolist(), other.tolist()) == ([False, False, True], [False, True, False])
    assert compare_rows(here, hours([]))[0].all()
    assert measure_price_ratio(here, hours([0.5, 1.0, 1.5])) == 2.0
    assert measure_price_ratio(here, hours([1.0], first=50)) is None


def test_moves_are_compared_and_not_levels() -> None:
    moves = np.random.default_rng(1).normal(0, 0.01, 60)
    closes = 100 * np.exp(np.cumsum(moves))
    here = hours(closes.tolist())
    spoilt = closes.copy()
    spoilt[30] *= 3.5  # one bad bar
    assert measure_likeness(here, here) == pytest.approx(1.0)
    assert measure_likeness(here, hours((closes * 0.003).tolist())) == pytest.approx(1.0)
    assert (measure_likeness(here, hours(spoilt.tolist())) or 0) > 0.95
    assert measure_likeness(here, hours((100 / closes).tolist())) == pytest.approx(-1.0)
    assert measure_likeness(here, hours(closes.tolist(), first=36)) is None  # 23 moves in common
    assert measure_likeness(here, hours([7.0] * 60)) is None


def test_a_clock_that_is_hours_away() -> None:
    closes = (np.random.default_rng(1).random(60) * 50 + 50).tolist()
    assert find_clock_shifts(hours(closes, first=9), hours(closes)) == [9 * HOUR_MS]
    assert find_clock_shifts(hours(closes), hours(closes, first=5)) == [-5 * HOUR_MS]
    assert find_clock_shifts(hours(closes), hours(closes)) == []
    assert find_clock_shifts(hours(closes), hours(closes[::-1])) == []
    assert find_clock_shifts(hours([7.0] * 60, first=40), hours([7.0] * 60)) == []  # it stands still
    assert find_clock_shifts(hours(closes, first=60), hours(closes)) == []


@given(st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=12, unique=True), max_size=6))
def test_times_are_seen_once(blocks: list[list[int]]) -> None:
    seen: dict[Any, Any] = {}
    before: set[int] = set()
    for block in blocks:
        at = sorted(block)
        marked = mark_seen(seen, columns(H1, [(AT + hour * HOUR_MS, *[1.0] * 6) for hour in at]))
        assert marked.tolist() == [hour in before for hour in at]
        before |= set(at)


def test_rows_are_placed_once_in_order_and_repetitions_told() -> None:
    bar = (100.0, 120.0, 90.0, 110.0, 5.0, math.nan)
    rows = [(AT + HOUR_MS, *bar), (AT, *bar), (AT, *bar), (AT, 101.0, *bar[1:]), (AT + 1, *bar)]
    placed = sort_rows(columns(H1, rows), NOW, with_blanks=False)
    assert placed.order.tolist() == [1, 0]
    assert (placed.bad.tolist(), placed.second.tolist(), placed.repeated, placed.blank) == ([4], [3], 1, 0)
    levels = columns(open_interest("okx", "X"), [(AT, 1.0), (AT + 1, math.nan), (AT + 2, -1.0)])
    placed = sort_rows(levels, NOW, with_blanks=True)
    assert (placed.order.tolist(), placed.bad.tolist(), placed.blank) == ([0], [2], 1)
