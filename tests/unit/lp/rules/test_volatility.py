"""Realised volatility: closed forms, an independent computation, gaps, and a real month."""

from __future__ import annotations

import csv
import gzip
import math
import statistics
from datetime import UTC, datetime
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.paths import REAL_MINUTES
from zuno.kernel.errors import Unavailable
from zuno.kernel.units import Seconds
from zuno.lp.model.market import HOUR, Pair, PricePoint, PriceSeries
from zuno.lp.rules.volatility import LEAST_RETURNS, hourly_returns, realized_vol_bps

ETH_USDC = Pair("ETH", "USDC")

prices = st.builds(Fraction, st.integers(1, 10**12), st.integers(1, 10**12))


def series(prices: dict[int, Fraction], gaps: int = 0) -> PriceSeries:
    """Closes by hour number."""
    points = tuple(PricePoint(Seconds(hour * HOUR), price) for hour, price in sorted(prices.items()))
    return PriceSeries(ETH_USDC, points, gaps)


def test_closed_form_of_a_price_that_alternates_between_two_levels() -> None:
    # 2n returns of ±r about a mean of zero: σ² = 2n·r²/(2n − 1).
    n, high = 50, Fraction(101, 100)
    vol = realized_vol_bps(series({hour: high if hour % 2 else Fraction(1) for hour in range(2 * n + 1)}))
    expected = 1e4 * math.log(1.01) * math.sqrt(2 * n / (2 * n - 1)) * math.sqrt(24)
    assert vol.bps == pytest.approx(expected, rel=1e-12)
    assert (vol.returns, vol.gaps) == (2 * n, 0)


def test_steady_growth_has_no_volatility_because_returns_are_taken_about_their_mean() -> None:
    vol = realized_vol_bps(series({hour: Fraction(1001, 1000) ** hour for hour in range(100)}))
    assert vol.bps == pytest.approx(0, abs=1e-9)


@pytest.mark.slow
@given(st.lists(prices, min_size=LEAST_RETURNS + 1, max_size=60))
def test_agrees_with_the_statistics_module(closes: list[Fraction]) -> None:
    logs = [math.log(float(close)) for close in closes]
    returns = [later - earlier for earlier, later in pairwise(logs)]
    vol = realized_vol_bps(series(dict(enumerate(closes))))
    assert vol.bps == pytest.approx(1e4 * statistics.stdev(returns) * 24**0.5, rel=1e-6, abs=1e-6)


@pytest.mark.slow
@given(st.lists(prices, min_size=LEAST_RETURNS + 1, max_size=40))
def test_a_pair_turned_round_is_exactly_as_volatile(closes: list[Fraction]) -> None:
    there = realized_vol_bps(series(dict(enumerate(closes))))
    back = realized_vol_bps(series({hour: 1 / close for hour, close in enumerate(closes)}))
    assert back.bps == pytest.approx(there.bps, rel=1e-9, abs=1e-9)


@given(st.sets(st.integers(0, 300), min_size=2))
def test_only_neighbouring_hours_make_a_return(hours: set[int]) -> None:
    returns = hourly_returns(series({hour: Fraction(1000 + hour % 7) for hour in hours}))
    assert len(returns) == sum(hour + 1 in hours for hour in hours)


def test_a_jump_over_missing_hours_is_not_an_hourly_return() -> None:
    flat = {hour: Fraction(2000) for hour in range(30)}
    jumped = flat | {hour: Fraction(4000) for hour in range(40, 70)}
    vol = realized_vol_bps(series(jumped, gaps=10))
    assert (vol.bps, vol.returns, vol.gaps) == (0.0, 58, 10)


def test_the_sum_of_returns_is_the_whole_move_however_far_it_goes() -> None:
    far = [Fraction(1), Fraction(2**900), Fraction(1, 2**900), Fraction(3, 2), Fraction(14, 10)]
    returns = hourly_returns(series(dict(enumerate(far))))
    assert math.fsum(returns) == pytest.approx(math.log(1.4), abs=1e-12)


def test_a_tiny_return_keeps_its_digits() -> None:
    tiny = Fraction(1, 10**18)
    (value,) = hourly_returns(series({0: Fraction(1), 1: 1 + tiny}))
    assert value == pytest.approx(1e-18, rel=1e-12, abs=0)


@pytest.mark.parametrize("closes", [0, 1, LEAST_RETURNS])
def test_too_little_data_is_said_not_guessed(closes: int) -> None:
    with pytest.raises(Unavailable, match=rf"{max(0, closes - 1)} hourly.*{LEAST_RETURNS}"):
        realized_vol_bps(series({hour: Fraction(hour + 1) for hour in range(closes)}))


def test_the_least_number_of_returns_suffices() -> None:
    assert realized_vol_bps(series({hour: Fraction(hour + 1) for hour in range(LEAST_RETURNS + 1)})).returns == 24


def test_closes_that_are_not_an_hour_apart_are_our_own_mistake() -> None:
    points = (PricePoint(Seconds(0), Fraction(1)), PricePoint(Seconds(1800), Fraction(1)))
    with pytest.raises(ValueError, match="hour"):
        hourly_returns(PriceSeries(ETH_USDC, points))


@pytest.mark.slow
@pytest.mark.skipif(not REAL_MINUTES.is_dir(), reason="the minute rows of a real pool are not on this machine")
def test_a_real_month_moves_as_much_as_it_did() -> None:
    """USDC/WETH on Polygon, 22 days of July and August 2022, from the pool's own closing ticks: 463 bps a day."""
    closes: dict[int, Fraction] = {}
    for day in sorted(REAL_MINUTES.glob("*.csv.gz")):
        with gzip.open(day, "rt", encoding="ascii") as rows:
            for row in csv.DictReader(rows):
                minute = datetime.fromisoformat(row["timestamp"]).replace(tzinfo=UTC)
                ended = int(minute.timestamp()) // HOUR + 1
                closes[ended] = Fraction(1.0001 ** -float(row["closeTick"]))
    vol = realized_vol_bps(series(closes))
    assert vol.returns == 22 * 24 - 1
    assert 380 < vol.bps < 550
    assert round(vol.bps) == 463
