"""The figures of a window: fees as attribution finds them, rates by their formula, time and worth by the clock."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pytest

from tests.unit.lp.rules.test_whatif import BLOCK, ETH, RANGE, USD, pool_at, position_of
from zuno.amm.model import Block
from zuno.amm.ticks import sqrt_price_at_tick
from zuno.kernel.units import HexId, Liquidity, Seconds, SqrtPriceX96, Tick
from zuno.lp.model.history import PricedBlock
from zuno.lp.ports.samples import PoolSample
from zuno.lp.rules.lvr import rebalancing_gain_token1
from zuno.lp.rules.portfolio import annual_rate, fees_from_samples, figures_of_window

HOUR = 3_600
POSITION = position_of(pool_at(0), (ETH, USD))


def block(hour: int) -> Block:
    return replace(BLOCK, number=hour, timestamp=Seconds(hour * HOUR))


def path(*ticks: int) -> list[PricedBlock]:
    return [PricedBlock(block(hour), SqrtPriceX96(sqrt_price_at_tick(tick))) for hour, tick in enumerate(ticks)]


def test_a_rate_is_the_gain_by_worth_and_time() -> None:
    assert annual_rate(Fraction(2), Fraction(100), 86_400) == Fraction(2 * 365, 100)
    assert annual_rate(Fraction(1), Fraction(100), 365 * 86_400) == Fraction(1, 100)
    assert annual_rate(Fraction(1), Fraction(0), 86_400) is None
    assert annual_rate(Fraction(1), Fraction(1), 0) is None


def test_time_in_range_is_counted_by_the_clock() -> None:
    outside = RANGE.upper + 60
    figures = figures_of_window(POSITION, (0, 0), path(0, 0, outside, outside, outside), "test")
    assert figures is not None
    assert figures.seconds == 4 * HOUR
    assert figures.in_range == Fraction(3, 8)  # a whole hour, half of one, and none


def test_worth_is_the_mean_over_the_window_and_fees_are_at_todays_price() -> None:
    still = figures_of_window(POSITION, (10, 20), path(0, 0, 0), "test")
    assert still is not None
    assert still.mean_worth == pytest.approx(POSITION.amount0 + POSITION.amount1, rel=1e-9)
    assert still.fees == 30
    assert still.lvr == 0
    assert still.lineage == (POSITION.id,)


def test_lvr_is_the_sum_over_the_steps() -> None:
    ticks = (0, 300, -200, 2_000, 100)
    figures = figures_of_window(POSITION, (0, 0), path(*ticks), "test")
    edges = sqrt_price_at_tick(RANGE.lower), sqrt_price_at_tick(RANGE.upper)
    steps = pairwise(map(sqrt_price_at_tick, ticks))
    wanted = sum(rebalancing_gain_token1(POSITION.liquidity, edges, *step) for step in steps)
    assert figures is not None
    assert float(figures.lvr) == pytest.approx(wanted)
    assert wanted > 0


def test_the_same_window_told_the_other_way_round_has_the_same_rates() -> None:
    """Which token is the quote changes the unit; with a price of one at the end, not the figure."""
    flipped = position_of(pool_at(0), (USD, ETH))
    ours, theirs = (figures_of_window(held, (7, 7), path(0, 40, 0), "test") for held in (POSITION, flipped))
    assert ours is not None
    assert theirs is not None
    assert (ours.fees, ours.in_range) == (theirs.fees, theirs.in_range)
    assert float(ours.lvr) == pytest.approx(float(theirs.lvr), rel=0.01)


@pytest.mark.parametrize("points", [path(), path(0)], ids=["nothing", "one price"])
def test_no_time_no_figures(points: list[PricedBlock]) -> None:
    assert figures_of_window(POSITION, (0, 0), points, "test") is None


def sample(hour: int, tick: int, growth: int) -> PoolSample:
    price = SqrtPriceX96(sqrt_price_at_tick(tick))
    return PoolSample("base", HexId("0x0"), block(hour), price, Tick(tick), Liquidity(1), growth, 2 * growth)


def test_fees_from_samples_count_growth_inside_the_range() -> None:
    unit = (1 << 128) // 10**15
    outside = RANGE.lower - 10
    kept = [sample(0, 0, 0), sample(1, 5, unit), sample(2, outside, 3 * unit), sample(3, outside, 9 * unit)]
    fees = fees_from_samples(kept, POSITION)
    expected = POSITION.liquidity // 10**15 * (1 + 1)  # a whole hour, half of the next, nothing outside
    assert fees == (pytest.approx(expected, abs=2), pytest.approx(2 * expected, abs=2))
