"""Bars out of finer bars, by event time."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from operator import add
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.resampling import resample_bars
from zuno.kernel.units import Millis
from zuno.trading.measure.bars import aggregate, bars_inside, bars_per_bar, total
from zuno.trading.measure.data_quality import describe_disagreement, find_row_fault
from zuno.trading.model.market import DAY_MS, MINUTE_MS, Candle, Timeframe, candles, funding, timeframe_of

MIDNIGHT = Millis(1_767_225_600_000)
"""2026-01-01, a Thursday."""
MONDAY = Millis(1_766_966_400_000)
"""2025-12-29."""


def bar(at: int, price: float, volume: float = 1.0, taken: float | None = 0.5) -> Candle:
    return Candle(Millis(at), price, price + 2, price - 2, price + 1, volume, taken)


@given(st.lists(st.integers(0, 10**9), max_size=60))
def test_volumes_are_added_as_the_decimals_a_venue_prints(lots: list[int]) -> None:
    assert total(lot / 1000 for lot in lots) == sum(lots) / 1000


@given(st.lists(st.floats(0, 1e12), max_size=20))
def test_a_sum_is_exact_but_for_one_rounding(volumes: list[float]) -> None:
    exact = sum((Fraction(repr(volume)) for volume in volumes), Fraction(0))
    assert total(volumes) == float(exact)


def test_a_sum_that_floats_get_wrong() -> None:
    assert reduce(add, [0.1] * 10) != 1.0  # as `sum` did before Python 3.12
    assert total([0.1] * 10) == 1.0


@pytest.mark.slow
@given(st.randoms(use_true_random=False))
def test_hours_made_of_minutes_make_what_the_minutes_make(chance: Random) -> None:
    lots = [chance.randint(0, 10 ** chance.randint(0, 8)) for _ in range(240)]
    minutes = [
        bar(MIDNIGHT + n * MINUTE_MS, chance.randint(1_000, 10**7) / 100, lot / 1000, lot // 3 / 1000)
        for n, lot in enumerate(lots)
    ]
    hours = resample_bars(Timeframe.H1, Timeframe.M1, minutes)
    assert len(hours) == 4
    assert resample_bars(Timeframe.H4, Timeframe.H1, hours) == resample_bars(Timeframe.H4, Timeframe.M1, minutes)
    assert all(find_row_fault(candles("binance", "BTCUSDT", Timeframe.H1), hour, None) is None for hour in hours)


def test_a_bar_of_bars() -> None:
    first, second = bar(MIDNIGHT, 100.0, 0.1, 0.05), bar(MIDNIGHT + MINUTE_MS, 90.0, 0.2, 0.1)
    assert aggregate(MIDNIGHT, (first, second)) == Candle(MIDNIGHT, 100.0, 102.0, 88.0, 91.0, 0.3, 0.15)
    unsaid = second._replace(taker_buy=None)
    assert aggregate(MIDNIGHT, (first, unsaid)).taker_buy is None


def test_only_whole_bars_are_made_and_weeks_open_on_monday() -> None:
    days = [bar(MONDAY + n * DAY_MS, 100.0 + n) for n in range(-1, 13)]
    weeks = resample_bars(Timeframe.W1, Timeframe.D1, days)
    assert [week.at for week in weeks] == [MONDAY]  # the one before has a day, the one after six
    assert (weeks[0].open, weeks[0].close) == (100.0, 107.0)
    assert resample_bars(Timeframe.W1, Timeframe.D1, days[:3] + days[4:8]) == ()


def test_the_parts_of_a_bar() -> None:
    minutes = [bar(MIDNIGHT + n * MINUTE_MS, 100.0) for n in (-1, 0, 59, 60)]
    found = bars_inside(Timeframe.H1, MIDNIGHT, minutes)
    assert [one.at for one in found] == [MIDNIGHT, MIDNIGHT + 59 * MINUTE_MS]
    assert (bars_per_bar(Timeframe.H1, Timeframe.M1), bars_per_bar(Timeframe.W1, Timeframe.D1)) == (60, 7)


def test_how_long_the_bars_of_a_series_are() -> None:
    assert timeframe_of(candles("binance", "BTCUSDT", Timeframe.H4)) is Timeframe.H4
    with pytest.raises(ValueError, match="BTCUSDT"):
        timeframe_of(funding("binance", "BTCUSDT"))


# -- whether a coarse bar is what its parts make


WHOLE = Candle(MIDNIGHT, 100.0, 110.0, 90.0, 105.0, 1_000.0, 400.0)


@pytest.mark.parametrize("field", ["open", "high", "low", "close"])
def test_prices_must_be_equal(field: str) -> None:
    said = describe_disagreement(WHOLE._replace(**{field: getattr(WHOLE, field) + 1e-9}), WHOLE, 60)
    assert said is not None
    assert said.startswith(field)


@pytest.mark.parametrize("field", ["volume", "taker_buy"])
def test_volumes_may_differ_by_rounding_alone(field: str) -> None:
    value = getattr(WHOLE, field)
    assert describe_disagreement(WHOLE._replace(**{field: value * (1 + 100 * 2**-53)}), WHOLE, 60) is None
    assert describe_disagreement(WHOLE._replace(**{field: value * (1 + 140 * 2**-53)}), WHOLE, 60) is not None
    assert describe_disagreement(WHOLE._replace(**{field: value - 0.001}), WHOLE, 60) is not None


def test_what_one_of_them_does_not_say_is_no_disagreement() -> None:
    assert describe_disagreement(WHOLE._replace(taker_buy=None), WHOLE, 60) is None
    assert describe_disagreement(WHOLE, WHOLE._replace(taker_buy=None), 60) is None


@given(st.lists(st.floats(0, 1e9, allow_subnormal=False), min_size=1, max_size=60))
def test_no_order_of_adding_is_a_flaw(volumes: list[float]) -> None:
    minutes = [bar(MIDNIGHT + n * MINUTE_MS, 100.0, volume, None) for n, volume in enumerate(volumes)]
    whole = aggregate(MIDNIGHT, minutes)
    for order in (volumes, volumes[::-1], sorted(volumes)):
        assert describe_disagreement(whole._replace(volume=sum(order)), whole, len(volumes)) is None
