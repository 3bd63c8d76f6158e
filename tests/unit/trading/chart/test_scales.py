"""Axes and their labels: everything in view, ticks that are round, dates that are right."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from zuno.kernel.units import Millis
from zuno.trading.chart.scales import PRICE_TICKS, TIME_TICKS, VALUE_TICKS, price_axis, time_ticks, value_axis
from zuno.trading.model.chart import Scale, price_text, short_text
from zuno.trading.model.market import DAY_MS, Timeframe

prices = st.floats(1e-6, 1e9)


def at(text: str) -> Millis:
    return Millis(int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1_000))


@given(prices, prices)
@example(1.0000000000000002e-06, 1e-06)
def test_a_price_axis_holds_its_prices_and_stays_above_zero(one: float, two: float) -> None:
    low, high = sorted((one, two))
    axis = price_axis(low, high)
    assert 0 < axis.low < low
    assert axis.high > high
    assert (axis.scale is Scale.LOG) == (high >= 3 * low)
    assert 1 <= len(axis.ticks) <= 3 * PRICE_TICKS
    assert all(axis.low <= tick.at <= axis.high for tick in axis.ticks)
    assert len({tick.label for tick in axis.ticks}) == len(axis.ticks)


@given(st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=20), st.booleans())
def test_a_value_axis_holds_its_values(values: list[float], from_zero: bool) -> None:
    axis = value_axis(values, from_zero=from_zero)
    assert axis.low < min(values) <= max(values) < axis.high
    assert not from_zero or axis.low < 0 < axis.high
    assert len(axis.ticks) <= VALUE_TICKS + 1


@pytest.mark.parametrize("values", [[1.7e308], [-1e308, 1e308], [math.nan, 1.0], [1.0, math.inf]])
def test_what_is_no_range_has_no_axis(values: list[float]) -> None:
    with pytest.raises(ValueError, match="axis"):
        value_axis(values, from_zero=True)


@pytest.mark.parametrize(("low", "high"), [(1.0, math.inf), (5e-324, 1e18), (1.0, math.nan)])
def test_what_is_no_range_of_prices_has_no_axis(low: float, high: float) -> None:
    with pytest.raises(ValueError, match="axis"):
        price_axis(low, high)


def test_three_times_the_lowest_price_is_drawn_in_ratios() -> None:
    assert price_axis(1.0, 3.0).scale is Scale.LOG
    assert price_axis(1.0, 2.999).scale is Scale.LINEAR


def test_ticks_are_round() -> None:
    assert [tick.label for tick in price_axis(32_000, 58_000).ticks][:3] == ["32,500", "35,000", "37,500"]
    assert [tick.label for tick in price_axis(20_000, 95_000).ticks] == [
        "20,000", "30,000", "40,000", "50,000", "70,000", "100,000",
    ]  # fmt: skip
    assert [tick.label for tick in price_axis(1_244.0, 1_245.0).ticks][:3] == ["1,244.0", "1,244.1", "1,244.2"]
    assert [tick.label for tick in price_axis(10, 100_000).ticks][:4] == ["10", "20", "50", "100"]
    assert [tick.label for tick in value_axis([0.0, 0.04], from_zero=True).ticks] == ["0", "0.02", "0.04"]
    assert [tick.label for tick in value_axis([-1e6, 5e5], from_zero=True).ticks] == ["-1M", "-500k", "0", "500k"]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (0.0, "0"),
        (12.0, "12"),
        (0.00012, "0.00012"),
        (-6157.4, "-6,157"),
        (9_999.0, "9,999"),
        (10_000.0, "10k"),
        (12_345.0, "12.3k"),
        (5.65e6, "5.65M"),
        (2e9, "2B"),
        (3e12, "3T"),
        (1e15, "1e+15"),
    ],
)
def test_short_numbers(value: float, told: str) -> None:
    assert short_text(value) == told


@pytest.mark.parametrize(
    ("value", "told"), [(94_120.4, "94,120"), (999.5, "999.50"), (1.0, "1.00"), (0.12345, "0.1235")]
)
def test_prices_as_they_are_quoted(value: float, told: str) -> None:
    assert price_text(value) == told


def test_dates_stand_where_they_begin() -> None:
    half = time_ticks(at("2025-07-05"), 180, Timeframe.D1)
    assert [tick.label for tick in half] == ["Aug", "Sep", "Oct", "Nov", "Dec"]
    assert half[0].at == 27
    assert [t.label for t in time_ticks(at("2025-12-01"), 40, Timeframe.D1)] == [
        "Dec 1", "Dec 8", "Dec 15", "Dec 22", "Dec 29", "Jan 5",
    ]  # fmt: skip
    assert [t.label for t in time_ticks(at("2025-12-30"), 4, Timeframe.D1)] == ["Dec 30", "Dec 31", "Jan 1", "Jan 2"]
    assert [t.label for t in time_ticks(at("2025-12-31"), 1, Timeframe.D1)] == ["2025-12-31"]
    years = time_ticks(at("2021-01-04"), 260, Timeframe.W1)
    assert [tick.label for tick in years][:3] == ["Jul", "2022", "Jul"]


@given(st.integers(0, 20_000), st.integers(1, 5_000), st.sampled_from([Timeframe.D1, Timeframe.W1]))
def test_dates_are_few_in_order_and_inside(day: int, width: int, timeframe: Timeframe) -> None:
    ticks = time_ticks(Millis(day * DAY_MS), width, timeframe)
    assert 1 <= len(ticks) <= TIME_TICKS
    assert all(0 <= tick.at <= width - 1 for tick in ticks)
    assert [tick.at for tick in ticks] == sorted({tick.at for tick in ticks})
