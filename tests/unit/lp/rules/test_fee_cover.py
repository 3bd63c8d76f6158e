"""Fee cover and its error: golden figures, and that the interval covers what it says."""

import csv
import gzip
import math
import random
from collections import defaultdict
from datetime import UTC, datetime
from fractions import Fraction
from itertools import pairwise

import pytest

from tests.paths import REAL_EVENTS, REAL_MINUTES
from zuno.adapters.imports.pool_minutes import read_pool_minutes
from zuno.amm.integers import Q96
from zuno.amm.model import price_of
from zuno.amm.ticks import sqrt_price_at_tick
from zuno.lp.rules.fee_cover import (
    FeeCover,
    LogPrice,
    PoolDay,
    choose_minutes,
    log_of,
    measure_day,
    measure_elasticity,
    measure_fee_cover,
    measure_variances,
    student_t,
)
from zuno.lp.rules.fee_yield import DAY


@pytest.mark.parametrize(
    ("quantile", "degrees", "expected"),
    [
        (0.90, 1, 3.077684),
        (0.90, 6, 1.439756),
        (0.90, 13, 1.350171),
        (0.975, 5, 2.570582),
        (0.975, 30, 2.042272),
        (0.9995, 13, 4.220832),
        (0.95, 2, 2.919986),
        (0.975, 200, 1.971896),
        (0.5, 4, 0.0),
    ],
)
def test_students_quantiles_are_the_tables(quantile: float, degrees: int, expected: float) -> None:
    assert student_t(quantile, degrees) == pytest.approx(expected, abs=2e-6)


def test_a_cover_of_four_days_by_hand() -> None:
    """ΣF 10, ΣV 8, Q 1.25; e = (0.75, −0.75, 0.5, −0.5): neighbours that swing do not help."""
    days = [PoolDay(n, fees, lvr) for n, (fees, lvr) in enumerate([(2, 1), (3, 3), (3, 2), (2, 2)])]
    rests = [fees - 1.25 * lvr for fees, lvr in [(2, 1), (3, 3), (3, 2), (2, 2)]]
    error = math.sqrt(4 / 3 * sum(rest * rest for rest in rests)) / 10
    found = measure_fee_cover(days)
    assert isinstance(found, FeeCover)
    assert (found.ratio, found.days) == (1.25, 4)
    assert found.error == pytest.approx(error, abs=1e-9)
    assert found.low == pytest.approx(1.25 * math.exp(-1.637744 * error), abs=1e-6)
    assert found.high == pytest.approx(1.25 * math.exp(1.637744 * error), abs=1e-6)
    assert measure_fee_cover(days[::-1]) == found


def test_days_that_follow_each_other_widen_the_error() -> None:
    swinging = [PoolDay(n, 10 + (-1) ** n, 10) for n in range(14)]
    lasting = [PoolDay(n, 11 if n < 7 else 9, 10) for n in range(14)]
    wide, narrow = measure_fee_cover(lasting), measure_fee_cover(swinging)
    assert wide is not None
    assert narrow is not None
    assert wide.error > 1.3 * narrow.error


@pytest.mark.parametrize("days", [[], [(1, 1)], [(0, 1), (0, 1)], [(1, 0), (1, 0)]])
def test_what_cannot_be_held_against_anything_has_no_cover(days: list[tuple[float, float]]) -> None:
    assert measure_fee_cover([PoolDay(n, fees, lvr) for n, (fees, lvr) in enumerate(days)]) is None


def test_the_interval_covers_four_of_five() -> None:
    draw, inside, worlds = random.Random(7), 0, 2_000
    for _ in range(worlds):
        found = measure_fee_cover([PoolDay(n, draw.lognormvariate(0, 0.3), 1.0) for n in range(14)])
        assert found is not None
        inside += found.low <= math.exp(0.045) <= found.high
    assert 0.76 <= inside / worlds <= 0.84


def test_of_many_pools_none_of_which_pays_few_are_named() -> None:
    """200 pools: the plain lower end names one in nearly every ranking, the corrected one in few."""
    draw, plain, corrected, rankings, pools = random.Random(3), 0, 0, 60, 200
    for _ in range(rankings):
        covers = [
            measure_fee_cover([PoolDay(n, draw.lognormvariate(-0.045, 0.3), 1.0) for n in range(14)])
            for _ in range(pools)
        ]
        plain += any(cover is not None and cover.low > 1 for cover in covers)
        corrected += any(cover is not None and cover.find_low(1 - 0.10 / pools) > 1 for cover in covers)
    assert plain / rankings > 0.95
    assert corrected / rankings < 0.35


def _cover_of(path: list[LogPrice], fees: dict[int, float], minutes: int) -> tuple[FeeCover, list[PoolDay]]:
    """By the UTC days of a record and what it has of the first and last, fees per unit of liquidity as given."""
    days = sorted(fees)
    edges = [max(path[0][0], min(day * DAY, path[-1][0])) for day in (*days, days[-1] + 1)]
    variances = measure_variances(path, edges, minutes)
    middles = [[math.exp(log / 2e9) for at, log in path if start <= at < end] for start, end in pairwise(edges)]
    rows = [
        PoolDay(day, fees[day], sum(middle) / len(middle) * variance / 4)
        for day, middle, variance in zip(days, middles, variances, strict=True)
        if variance is not None
    ]
    found = measure_fee_cover(rows)
    assert found is not None
    return found, rows


def test_a_real_pool_by_the_minute_is_read_at_five_minutes() -> None:
    if not REAL_MINUTES.is_dir():
        pytest.skip("the minute rows of a real pool are not on this machine")
    path, fees = list[LogPrice](), defaultdict[int, float](float)
    for row in read_pool_minutes(REAL_MINUTES).minutes:
        price = price_of(sqrt_price_at_tick(row.close_tick))
        path.append((row.at // 1_000 + 60, log_of(price)))
        if row.liquidity:
            fees[row.at // 86_400_000] += 0.0005 * (row.in0 * float(price) + row.in1) / row.liquidity
    edges = [day * DAY for day in (*sorted(fees), max(fees) + 1)]
    assert choose_minutes(path, edges, 500) == 5
    found, days = _cover_of(path, fees, 5)
    assert found.ratio == pytest.approx(0.79, abs=0.02)
    assert (found.low, found.high) == (pytest.approx(0.765, abs=0.01), pytest.approx(0.823, abs=0.01))
    assert measure_elasticity(days) == pytest.approx(0.89, abs=0.04)


def test_a_real_pool_by_its_events_is_read_at_an_hour() -> None:
    if not REAL_EVENTS.exists():
        pytest.skip("the events of a real pool are not on this machine")
    path, fees = list[LogPrice](), defaultdict[int, float](float)
    before = 0
    with gzip.open(REAL_EVENTS, "rt") as file:
        for row in csv.DictReader(file):
            if row["kind"] != "swap":
                continue
            at = int(datetime.fromisoformat(row["time"]).replace(tzinfo=UTC).timestamp())
            root = int(row["sqrt_price_x96"])
            path.append((at, log_of(price_of(root))))
            if before:
                apart = (
                    abs(root - before) / Q96
                    if root > before
                    else float(price_of(root)) * Q96 * abs(1 / root - 1 / before)
                )
                fees[at // DAY] += 0.0005 / 0.9995 * apart
            before = root
    edges = [day * DAY for day in (*sorted(fees), max(fees) + 1)]
    assert choose_minutes(path, edges, 500) == 60
    measured = [_cover_of(path, fees, minutes)[0].ratio for minutes in (1, 5, 30, 60)]
    assert measured == pytest.approx([1.69, 1.30, 1.03, 0.98], abs=0.03)


def test_a_walk_is_measured_at_any_span_and_two_moves_within_one_both_count() -> None:
    draw, path, at, log = random.Random(5), list[LogPrice](), 0, 0
    for at in range(0, 14 * DAY + 1, 60):
        path.append((at, log))
        log += round(draw.gauss(0, 1e9 * 0.04 / math.sqrt(1_440)))
    edges = [day * DAY for day in range(15)]
    for minutes, off in ((5, 0.05), (60, 0.15)):
        found = [variance for variance in measure_variances(path, edges, minutes) if variance is not None]
        assert sum(found) / 14 == pytest.approx(0.04**2, rel=off)
    assert choose_minutes(path, edges, 100) == 5
    assert choose_minutes(path, edges, 500) == 15
    assert choose_minutes(path, edges, 10_000) is None
    there_and_back = [(0, 0), (3_000, 80_000_000), (4_500, 0)]
    assert measure_variances(there_and_back, (0, DAY), 5) == (pytest.approx(2 * 0.08**2, rel=0.01),)
    assert measure_variances(there_and_back, (0, DAY), 240)[0] == pytest.approx(0.08**2 / 8, rel=0.2)
    assert measure_variances([], (0, DAY), 5) == (None,)
    assert choose_minutes([], (0, DAY), 500) is None


def test_a_day_is_priced_between_its_ends() -> None:
    day = measure_day(3, 2**127, 2**128, Q96, 3 * Q96, 0.01)
    assert day == PoolDay(3, 0.5 * 4 + 1, 2 * 0.01 / 4)


@pytest.mark.parametrize(("power", "expected"), [(0.7, 0.7), (0.2, 0.5), (1.4, 1.0)])
def test_elasticity_is_the_slope_of_the_days_within_its_bounds(power: float, expected: float) -> None:
    days = [PoolDay(n, 3 * (n + 1) ** power, n + 1) for n in range(14)]
    assert measure_elasticity(days) == expected
    assert measure_elasticity(days[:13]) == 0.75
    assert measure_elasticity([*days[:13], PoolDay(13, 0.0, 1.0)]) == 0.75
    assert measure_elasticity([PoolDay(n, n + 1, 2.0) for n in range(20)]) == 0.75


def test_the_logarithm_of_a_price() -> None:
    assert log_of(Fraction(1)) == 0
    assert log_of(Fraction(10**18)) == round(18e9 * math.log(10))
