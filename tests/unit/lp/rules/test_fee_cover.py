"""Fee cover and its error: golden figures, and that the interval covers what it says."""

import math
import random

import pytest

from zuno.lp.rules.fee_cover import FeeCover, PoolDay, measure_fee_cover, student_t


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
