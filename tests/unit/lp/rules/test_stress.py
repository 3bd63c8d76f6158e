"""Stress: closed forms, a slow twin that counts path by path, laws, golden integers and a real month."""

from __future__ import annotations

import csv
import gzip
import math
import re
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.paths import REAL_MINUTES
from zuno.amm.model import Range
from zuno.amm.ticks import sqrt_price_at_tick
from zuno.kernel.errors import Unavailable
from zuno.kernel.units import Tick
from zuno.lp.model.ballot import RiskProfile
from zuno.lp.rules.hedging import follow_range
from zuno.lp.rules.limits import LIMITS
from zuno.lp.rules.stress import (
    HORIZON_HOURS,
    PATHS,
    Barriers,
    StressPaths,
    barriers,
    draw_paths,
    stress,
    survives_hours,
    time_in_range,
)

SIGMA_HOUR = 0.0463 / math.sqrt(24)
"""463 bps a day."""


def normal_returns(count: int = 720, disorder: int = 7) -> list[float]:
    """The quantiles of a normal distribution in a fixed disorder: their variance is that of the distribution."""
    quantiles = [NormalDist(0, SIGMA_HOUR).inv_cdf((rank + 0.5) / count) for rank in range(count)]
    order = np.argsort(np.random.PCG64(disorder).random_raw(count))
    return [quantiles[index] for index in order]


@lru_cache(maxsize=1)
def normal_paths() -> StressPaths:
    return draw_paths(normal_returns())


def around(down: float, up: float) -> Barriers:
    """Edges by log distance from the price."""
    return Barriers(round(-down * 1e9), round(up * 1e9), True)


def percent(half_width: float) -> Barriers:
    return Barriers(round(math.log(1 - half_width) * 1e9), round(math.log(1 + half_width) * 1e9), True)


def mean_exit(paths: StressPaths, edges: Barriers) -> float:
    stayed = (paths.highs < edges.upper - paths.inward) & (paths.lows >= edges.lower + paths.inward)
    assert not stayed[-1].any()
    return float(stayed.sum() / PATHS + 1)


def by_hand(returns: list[int], edges: Barriers, multiple: int, inward: float) -> tuple[int, int, int, int, int]:
    """Path by path and hour by hour: median, p10, exits before 24 h, hours in range, those of the first day."""
    mean = round(Fraction(sum(returns), len(returns)))
    words = np.random.PCG64(0).random_raw(14 * PATHS)
    exits, inside, first_day = [], 0, 0
    for path in range(PATHS):
        total, left = 0, HORIZON_HOURS + 1
        for hour in range(HORIZON_HOURS):
            start = int(words[hour // 24 * PATHS + path]) % len(returns)
            total += multiple * (returns[(start + hour % 24) % len(returns)] - mean)
            if edges.lower <= total < edges.upper:
                inside += 1
                first_day += hour < 24
            if left > HORIZON_HOURS and (
                total >= edges.upper - multiple * inward or total < edges.lower + multiple * inward
            ):
                left = hour + 1
        exits.append(left)
    exits.sort()
    median, tenth = (min(exits[place - 1], HORIZON_HOURS) for place in (PATHS // 2, PATHS // 10))
    return median, tenth, sum(hour < 24 for hour in exits), inside, first_day


@pytest.mark.soak(every=2)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "edges"),
    [(720, around(0.03, 0.05)), (100, around(0.5, 0.4))],
    ids=["off centre", "few returns, hardly ever left"],
)
def test_agrees_with_counting_path_by_path(count: int, edges: Barriers) -> None:
    returns = normal_returns(count)
    paths, nano = draw_paths(returns), [round(value * 1e9) for value in returns]
    for point in stress(paths, edges):
        median, tenth, early, inside, first_day = by_hand(nano, edges, point.multiple, paths.inward)
        assert (point.median_hours, point.p10_hours) == (median, tenth)
        assert point.p_exit_24h == Fraction(early, PATHS)
        assert point.in_range_share == Fraction(inside, PATHS * HORIZON_HOURS)
        assert point.in_range_share_24h == Fraction(first_day, PATHS * 24)


@pytest.mark.slow
def test_the_mean_exit_of_a_driftless_diffusion() -> None:
    # One disorder of 720 returns is a little mean-reverting or trending by chance; ten are hardly.
    many = [draw_paths(normal_returns(disorder=one), seed=one) for one in range(10)]
    for down, up in [(0.05, 0.05), (0.03, 0.07), (0.08, 0.02), (0.04, 0.04)]:
        mean = sum(mean_exit(paths, around(down, up)) for paths in many) / len(many)
        assert mean == pytest.approx(down * up / SIGMA_HOUR**2, rel=0.05)


@pytest.mark.parametrize("half", [0.03, 0.04, 0.05, 0.06])
def test_the_median_is_about_three_quarters_of_the_mean_at_the_centre(half: float) -> None:
    expected = 0.757 * half * half / SIGMA_HOUR**2
    assert stress(normal_paths(), around(half, half)).x1.median_hours == pytest.approx(expected, rel=0.08, abs=1)


def test_without_moving_the_barriers_in_buffers_would_be_overstated() -> None:
    paths, half = normal_paths(), 0.02
    assert paths.inward == pytest.approx(0.5826 * SIGMA_HOUR * 1e9, rel=0.01)
    true_median = 0.757 * half * half / SIGMA_HOUR**2
    naive = replace(paths, inward=0, notes=())
    assert stress(paths, around(half, half)).x1.median_hours == pytest.approx(true_median, abs=1)
    assert stress(naive, around(half, half)).x1.median_hours > true_median + 1


def test_golden_integers() -> None:
    """Any machine, any day: a change here is a change of every plan ever hashed."""
    points = [
        (
            point.median_hours,
            point.p10_hours,
            int(point.p_exit_24h * PATHS),
            int(point.in_range_share * PATHS * HORIZON_HOURS),
            int(point.in_range_share_24h * PATHS * 24),
        )
        for point in stress(normal_paths(), around(0.05, 0.05))
    ]
    assert points == GOLDEN_POINTS
    paths = normal_paths()
    assert (paths.inward, int(paths.highs[-1].sum()), int(paths.lows[-1].sum())) == GOLDEN_PATHS


GOLDEN_POINTS = [(21, 8, 560, 130912, 20825), (5, 2, 985, 70884, 14070), (2, 1, 1000, 48379, 10285)]
GOLDEN_PATHS = (5504983, 131520144463, -137243230438)

distance = st.integers(1, 400_000_000)


@pytest.mark.slow
@given(distance, distance, distance, distance)
def test_a_wider_range_never_lasts_shorter(down: int, up: int, more_down: int, more_up: int) -> None:
    narrow = stress(normal_paths(), Barriers(-down, up, True))
    wide = stress(normal_paths(), Barriers(-down - more_down, up + more_up, True))
    for thin, thick in zip(narrow, wide, strict=True):
        assert thin.median_hours <= thick.median_hours
        assert thin.p10_hours <= thick.p10_hours
        assert thin.p_exit_24h >= thick.p_exit_24h
        assert thin.in_range_share <= thick.in_range_share
        assert thin.in_range_share_24h <= thick.in_range_share_24h


@given(distance, distance)
def test_a_wilder_market_never_makes_it_last_longer(down: int, up: int) -> None:
    for calm, wild in pairwise(stress(normal_paths(), Barriers(-down, up, True))):
        assert calm.median_hours >= wild.median_hours
        assert calm.p10_hours >= wild.p10_hours
        assert calm.p_exit_24h <= wild.p_exit_24h
        assert calm.in_range_share >= wild.in_range_share


@given(distance, distance, st.integers(1, 3), st.fractions(0, 400))
def test_lasts_is_the_median_in_one_look(down: int, up: int, multiple: int, hours: Fraction) -> None:
    edges = Barriers(-down, up, True)
    point = list(stress(normal_paths(), edges))[multiple - 1]
    assert survives_hours(normal_paths(), edges, multiple, hours) == (point.median_hours >= hours)


@given(distance, distance)
def test_shares_and_hours_stay_in_their_bounds(down: int, up: int) -> None:
    for point in stress(normal_paths(), Barriers(-down, up, True)):
        assert 0 <= point.p10_hours <= point.median_hours <= HORIZON_HOURS
        assert 0 <= point.in_range_share <= 1
        assert (point.p_exit_24h >= Fraction(1, 2)) == (point.median_hours < 24)
        assert not point.censored or point.median_hours == HORIZON_HOURS


@pytest.mark.parametrize("scale", [2, 3, 10])
def test_units_do_not_matter(scale: int) -> None:
    returns, edges = normal_returns(), around(0.04, 0.05)
    scaled = Barriers(edges.lower * scale, edges.upper * scale, True)
    assert stress(draw_paths([value * scale for value in returns]), scaled) == stress(draw_paths(returns), edges)


def test_twice_the_multiple_is_twice_the_returns() -> None:
    returns, edges = normal_returns(), around(0.06, 0.05)
    doubled = stress(draw_paths([2 * value for value in returns]), edges).x1
    assert (doubled.median_hours, doubled.p_exit_24h) == (
        stress(draw_paths(returns), edges).x2.median_hours,
        stress(draw_paths(returns), edges).x2.p_exit_24h,
    )


def test_a_pair_turned_round_is_the_mirror_image() -> None:
    returns, edges = normal_returns(300), around(0.02, 0.06)
    mirrored = Barriers(1 - edges.upper, 1 - edges.lower, True)  # the edge itself changes sides
    turned = draw_paths([-value for value in returns])
    assert stress(turned, mirrored).x1 == stress(draw_paths(returns), edges).x1
    assert stress(turned, edges).x1 != stress(draw_paths(returns), edges).x1


def test_a_trend_in_the_past_is_not_carried_into_the_future() -> None:
    returns, edges = normal_returns(), around(0.05, 0.05)
    drifting = [value + 0.001 for value in returns]
    assert stress(draw_paths(drifting), edges) == stress(draw_paths(returns), edges)


def test_a_price_outside_has_no_time_left_but_may_come_back() -> None:
    outside = Barriers(10_000_000, 100_000_000, False)
    for point in stress(normal_paths(), outside):
        assert (point.median_hours, point.p10_hours, point.p_exit_24h, point.censored) == (0, 0, 1, False)
        assert 0 < point.in_range_share < Fraction(1, 2)
    assert not survives_hours(normal_paths(), outside, 1, Fraction(1))


def test_outside_is_outside_even_where_nothing_moves() -> None:
    flat = draw_paths([0.0] * 200)
    assert stress(flat, Barriers(0, 100, True)).x1.censored
    assert stress(flat, Barriers(0, 100, False)).x1.median_hours == 0, "the pool's tick is already below the edge"


def test_a_range_owns_its_lower_edge_and_not_its_upper_one() -> None:
    steps = draw_paths([0.001, -0.001] * 12)  # every sum is −1, 0 or 1 thousandth
    edge = 1_000_000 + steps.inward
    assert stress(steps, Barriers(-edge, 10**9, True)).x1.censored
    assert stress(steps, Barriers(-(10**9), edge, True)).x1.median_hours == 1
    assert stress(steps, Barriers(-(10**9), edge + 1, True)).x1.censored


def test_a_range_inside_the_blind_spot_of_an_hour_has_no_time_left() -> None:
    edges = Barriers(-normal_paths().inward, normal_paths().inward, True)
    assert stress(normal_paths(), edges).x1.median_hours == 0


def test_what_is_never_left_is_censored() -> None:
    for point in stress(normal_paths(), around(9, 9)):
        assert (point.median_hours, point.censored, point.in_range_share) == (HORIZON_HOURS, True, 1)
    flat = stress(draw_paths([0.0] * 200), around(0.001, 0.001))
    assert flat.x3.censored
    assert flat.expected_hours_in_range == HORIZON_HOURS


def test_only_the_last_month_counts_and_a_short_past_is_labelled() -> None:
    returns = normal_returns()
    assert draw_paths([0.5, -0.5, *returns]) is draw_paths(returns)
    assert draw_paths(returns[:168]).notes == ()
    assert [re.findall(r"\d+", note) for note in draw_paths(returns[:167]).notes] == [["167", "168"]]
    assert stress(draw_paths(returns[:167]), around(1, 1)).notes == draw_paths(returns[:167]).notes
    with pytest.raises(Unavailable, match="23 hourly"):
        draw_paths(returns[:23])


def test_paths_are_drawn_once_and_cannot_be_changed() -> None:
    assert draw_paths(normal_returns()) is normal_paths()
    with pytest.raises(ValueError, match="read-only"):
        normal_paths().highs[0, 0] = 0
    assert not np.array_equal(draw_paths(normal_returns(), seed=1).highs, normal_paths().highs)


@given(st.integers(-200_000, 200_000), st.integers(-5_000, 5_000), st.integers(1, 5_000))
def test_barriers_are_the_log_distance_to_the_edges(tick: int, below: int, width: int) -> None:
    band = Range(Tick(tick + below), Tick(tick + below + width))
    edges = barriers(band, sqrt_price_at_tick(tick), tick)
    assert edges.lower == pytest.approx(below * math.log(1.0001) * 1e9, abs=2)
    assert edges.upper == pytest.approx((below + width) * math.log(1.0001) * 1e9, abs=2)
    assert edges.inside == (below <= 0 < below + width)


def test_the_pools_tick_decides_on_the_edge() -> None:
    band, price = Range(Tick(0), Tick(60)), sqrt_price_at_tick(0)
    assert barriers(band, price, 0).inside
    assert not barriers(band, price, -1).inside, "stopped here on the way down, the pool is already below"
    assert not barriers(band, sqrt_price_at_tick(60), 60).inside


@lru_cache(maxsize=1)
def real_paths() -> StressPaths:
    if not REAL_MINUTES.is_dir():
        pytest.skip("the minute rows of a real pool are not on this machine")
    closes: dict[str, int] = {}
    for day in sorted(REAL_MINUTES.glob("*.csv.gz")):
        with gzip.open(day, "rt", encoding="ascii") as rows:
            closes.update((row["timestamp"][:13], int(row["closeTick"])) for row in csv.DictReader(rows))
    ticks = [closes[hour] for hour in sorted(closes)]
    # Token0 is USDC there: the price of ether runs against the tick.
    return draw_paths([(earlier - later) * math.log(1.0001) for earlier, later in pairwise(ticks)])


@pytest.mark.slow
def test_a_real_month_two_and_five_percent() -> None:
    """Minute by minute the true medians are 3.9 and 23.7 hours."""
    paths = real_paths()
    assert paths.returns == 22 * 24 - 1
    assert stress(paths, percent(0.02)).x1.median_hours == 4
    assert stress(paths, percent(0.05)).x1.median_hours == 24
    naive = replace(paths, inward=0, notes=())
    assert stress(naive, percent(0.02)).x1.median_hours in (7, 8)


@pytest.mark.parametrize(
    ("profile", "expected"),
    [(RiskProfile.CONSERVATIVE, 6.0), (RiskProfile.BALANCED, 5.0), (RiskProfile.AGGRESSIVE, 3.7)],
)
def test_a_real_month_first_accepted_half_width(profile: RiskProfile, expected: float) -> None:
    paths, limits = real_paths(), LIMITS[profile]

    def clears(half: float) -> bool:
        edges = percent(half)
        return survives_hours(paths, edges, 1, limits.floor_1x_hours) and survives_hours(
            paths, edges, 2, limits.floor_2x_hours
        )

    first = next(step / 100 for step in range(100, 1000) if clears(step / 10_000))
    assert first == pytest.approx(expected, abs=0.1)


@pytest.mark.parametrize("edge", [10**6, 10**8, 2**31 - 1, 2**31, 10**12])
def test_sums_in_half_the_memory_say_what_wide_ones_say(edge: int) -> None:
    paths, edges = normal_paths(), Barriers(-edge, edge // 2, True)
    wide = replace(paths, **{name: getattr(paths, name).astype(np.int64) for name in ("highs", "lows", "sums")})
    assert paths.sums.dtype == np.int32
    assert stress(paths, edges) == stress(wide, edges)
    assert time_in_range(paths, edges, 0.5) == time_in_range(wide, edges, 0.5)
    short, long = (follow_range(one, edges, 0) for one in (paths, wide))
    assert (short.most, short.start, short.turnover) == (long.most, long.start, long.turnover)


def test_a_market_too_wild_for_half_the_memory_loses_nothing() -> None:
    paths = draw_paths([0.2 if hour // 24 % 2 else -0.2 for hour in range(720)])
    assert paths.sums.dtype == np.int64
    assert int(np.abs(paths.sums).max()) > 2**31
    assert np.array_equal(paths.highs, np.maximum.accumulate(paths.sums))


@pytest.mark.parametrize("elasticity", [0.0, 0.31, 0.5, 1.0, 1.7])
@pytest.mark.parametrize("count", [24, 720])
def test_days_weigh_what_exact_powers_say(elasticity: float, count: int) -> None:
    """Decimal powers, day by day, are what a processor's own must come to."""
    paths = draw_paths(normal_returns(count, disorder=count), variance=0.002)
    edges = Barriers(-(10**12), 10**12, True)
    sums: NDArray[np.int64] = paths.sums.astype(np.int64)
    hourly = np.diff(sums, axis=0, prepend=0) >> 7
    moved = (hourly * hourly).reshape(14, 24, PATHS).sum(axis=1)
    power = {size: Decimal(size) ** Decimal(str(elasticity)) for size in set(moved.ravel().tolist())}
    total = sum(power[size] for size in moved.ravel().tolist())
    weights = {size: round(amount * Decimal(10**6 * moved.size) / total) for size, amount in power.items()}
    hours = [24 * sum(weights[size] for size in path) for path in moved.T.tolist()]
    assert list(time_in_range(paths, edges, elasticity).hours) == hours
