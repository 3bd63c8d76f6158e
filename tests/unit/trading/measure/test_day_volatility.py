"""How much a day moved, by hand, and where it stands among the days of half a year."""

from __future__ import annotations

from itertools import pairwise
from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from zuno.kernel.units import Millis
from zuno.trading.measure.bars import Bars, bars
from zuno.trading.measure.features import (
    LEAST_VOLATILITY_HISTORY,
    VOLATILITY_HISTORY_HOURS,
    VOLATILITY_HOURS,
    day_volatility,
)
from zuno.trading.model.known import Missing
from zuno.trading.model.market import HOUR_MS, Candle, Timeframe


def hours(closes: list[float], gone: frozenset[int] = frozenset()) -> Bars:
    rows = [
        Candle(Millis(at * HOUR_MS), close, close, close, close, 1.0, None)
        for at, close in enumerate(closes)
        if at not in gone
    ]
    return bars(Timeframe.H1, rows)


def walk(seed: int, count: int) -> list[float]:
    steps = np.random.Generator(np.random.PCG64(seed)).normal(0, 0.01, count)
    return [float(one) for one in 100 * np.exp(np.cumsum(steps))]


def by_hand(closes: list[float]) -> float:
    last = closes[-VOLATILITY_HOURS - 1 :]
    return sqrt(sum(log(after / before) ** 2 for before, after in pairwise(last)))


def test_a_day_is_the_root_of_its_hours_squares() -> None:
    closes = walk(1, VOLATILITY_HOURS + 1)
    found = day_volatility(hours(closes))
    assert not isinstance(found, Missing)
    assert found.value == pytest.approx(by_hand(closes), rel=1e-12)
    assert isinstance(found.rank, Missing)


def test_one_hour_less_is_no_day() -> None:
    found = day_volatility(hours(walk(1, VOLATILITY_HOURS)))
    assert isinstance(found, Missing)
    assert f"{VOLATILITY_HOURS} " in found.reason


def test_a_rank_needs_a_month_and_counts_what_moved_less() -> None:
    closes = walk(2, LEAST_VOLATILITY_HISTORY + VOLATILITY_HOURS + 1)
    found = day_volatility(hours(closes))
    assert not isinstance(found, Missing)
    assert found.days == LEAST_VOLATILITY_HISTORY
    days = [by_hand(closes[: end + 1]) for end in range(VOLATILITY_HOURS, len(closes))]
    assert found.rank == sum(one < days[-1] for one in days[:-1]) / LEAST_VOLATILITY_HISTORY
    short = day_volatility(hours(closes[1:]))
    assert not isinstance(short, Missing)
    assert isinstance(short.rank, Missing)


def test_a_wild_day_stands_above_all_and_a_still_one_below() -> None:
    calm = walk(3, LEAST_VOLATILITY_HISTORY + 2 * VOLATILITY_HOURS)
    wild = [*calm, *(calm[-1] * (1.2 if at % 2 else 0.8) for at in range(VOLATILITY_HOURS))]
    still = [*calm, *([calm[-1]] * VOLATILITY_HOURS)]
    assert day_volatility(hours(wild)).rank == 1.0  # type: ignore[union-attr]
    assert day_volatility(hours(still)).rank == 0.0  # type: ignore[union-attr]


def test_nothing_older_than_half_a_year_counts() -> None:
    closes = walk(4, VOLATILITY_HISTORY_HOURS + VOLATILITY_HOURS + 1)
    wilder = [one * (1.5 if at % 2 else 1.0) for at, one in enumerate(walk(5, 500))]
    scaled = [one * closes[0] / wilder[-1] for one in wilder]
    assert day_volatility(hours([*scaled, *closes])) == day_volatility(hours(closes))


def test_a_day_with_a_hole_is_none() -> None:
    closes = walk(6, LEAST_VOLATILITY_HISTORY + 3 * VOLATILITY_HOURS)
    now = day_volatility(hours(closes, frozenset({len(closes) - 3})))
    assert isinstance(now, Missing)
    assert "missing" in now.reason
    before = day_volatility(hours(closes, frozenset({100})))
    whole = day_volatility(hours(closes))
    assert not isinstance(before, Missing)
    assert not isinstance(whole, Missing)
    assert before.value == whole.value
    assert before.days == whole.days - VOLATILITY_HOURS - 1


@given(st.integers(0, 2**16), st.integers(VOLATILITY_HOURS + 2, 200), st.integers(1, 100))
@settings(max_examples=examples(40), deadline=None)
def test_what_comes_later_changes_nothing_and_the_unit_neither(seed: int, count: int, scale: int) -> None:
    closes = walk(seed, count)
    then = day_volatility(hours(closes[:-1]))
    assert day_volatility(hours(closes).upto((count - 1) * HOUR_MS)) == then
    scaled = day_volatility(hours([one * scale for one in closes[:-1]]))
    assert scaled.value == pytest.approx(then.value, rel=1e-9)  # type: ignore[union-attr]
