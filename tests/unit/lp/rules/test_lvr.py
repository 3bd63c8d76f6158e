"""Realised LVR is what rebalancing would have kept: never negative, bounded by the range, the formula when small."""

from __future__ import annotations

from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zuno.amm.ticks import sqrt_price_at_tick
from zuno.lp.rules.lvr import lvr_token1, rebalancing_gain_token1

ticks = st.integers(-20_000, 20_000)


@given(st.integers(-200, 199), st.integers(1, 200), ticks, ticks)
def test_it_is_never_negative_and_nothing_outside(low: int, width: int, start: int, end: int) -> None:
    lower, upper = 60 * low, 60 * (low + width)
    edges = (sqrt_price_at_tick(lower), sqrt_price_at_tick(upper))
    gain = rebalancing_gain_token1(10**18, edges, sqrt_price_at_tick(start), sqrt_price_at_tick(end))
    assert gain >= 0
    if max(start, end) < lower or min(start, end) >= upper:
        assert gain == pytest.approx(0, abs=10**18 * 1e-9)


def test_a_small_step_costs_what_the_formula_says() -> None:
    edges = (sqrt_price_at_tick(-6000), sqrt_price_at_tick(6000))
    before, after = sqrt_price_at_tick(0), sqrt_price_at_tick(20)
    variance = (2 * log(after / before)) ** 2
    assert rebalancing_gain_token1(10**18, edges, before, after) == pytest.approx(
        lvr_token1(10**18, before, variance), rel=0.01
    )


def test_a_step_far_beyond_the_edge_costs_no_more_than_the_step_to_it_on_the_way_down() -> None:
    """Below the range all is token0 in both portfolios but for what was sold on the way: the loss grows with the fall
    of what the curve bought too early, and stays far under the formula's square of the whole move."""
    edges = (sqrt_price_at_tick(-100), sqrt_price_at_tick(1000))
    start, far = sqrt_price_at_tick(0), sqrt_price_at_tick(-6000)
    whole = lvr_token1(10**18, start, (2 * log(far / start)) ** 2)
    assert 0 < rebalancing_gain_token1(10**18, edges, start, far) < 0.1 * whole
