"""Token amounts behind liquidity: formulas against fractions, and who rounding favours."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zuno.amm.liquidity import (
    amount0_rounding_down,
    amount0_rounding_up,
    amount1_rounding_down,
    amount1_rounding_up,
    amounts_for_liquidity,
    liquidity_for_amounts,
    max_liquidity_per_tick,
)
from zuno.amm.ticks import MAX_SQRT_PRICE, MIN_SQRT_PRICE
from zuno.kernel.errors import InvalidPrice, SafeCastOverflow, TicksMisordered

prices = st.integers(MIN_SQRT_PRICE, MAX_SQRT_PRICE)
ranges = st.tuples(prices, prices).filter(lambda pair: pair[0] != pair[1]).map(sorted)
liquidities = st.integers(0, (1 << 128) - 1)
Q96 = 1 << 96


@given(ranges, liquidities)
def test_amounts_are_the_exact_fraction_rounded_as_named(bounds: list[int], liquidity: int) -> None:
    low, high = bounds
    exact0 = Fraction(liquidity * Q96 * (high - low), high * low)
    exact1 = Fraction(liquidity * (high - low), Q96)
    assert amount0_rounding_down(low, high, liquidity) == floor(exact0)
    assert amount0_rounding_up(low, high, liquidity) == ceil(exact0)
    assert amount1_rounding_down(low, high, liquidity) == floor(exact1)
    assert amount1_rounding_up(low, high, liquidity) == ceil(exact1)


@given(ranges, st.integers(0, 1 << 140), st.integers(0, 1 << 140), prices)
def test_liquidity_for_amounts_never_costs_more_than_the_amounts(
    bounds: list[int], amount0: int, amount1: int, price: int
) -> None:
    low, high = bounds
    try:
        liquidity = liquidity_for_amounts(price, low, high, amount0, amount1)
    except SafeCastOverflow:
        return
    cost0, cost1 = amounts_for_liquidity(price, low, high, liquidity, round_up=True)
    assert cost0 <= amount0
    assert cost1 <= amount1


@pytest.mark.slow
@given(ranges, liquidities, prices, st.booleans())
def test_the_order_of_the_bounds_does_not_matter(bounds: list[int], liquidity: int, price: int, up: bool) -> None:
    low, high = bounds
    assert amounts_for_liquidity(price, low, high, liquidity, round_up=up) == amounts_for_liquidity(
        price, high, low, liquidity, round_up=up
    )


@given(ranges, liquidities, prices)
def test_a_range_out_of_the_price_holds_one_token(bounds: list[int], liquidity: int, price: int) -> None:
    low, high = bounds
    amount0, amount1 = amounts_for_liquidity(price, low, high, liquidity, round_up=False)
    if price <= low:
        assert amount1 == 0
    if price >= high:
        assert amount0 == 0


def test_an_empty_range_a_negative_amount_and_a_zero_price_are_refused() -> None:
    with pytest.raises(TicksMisordered):
        liquidity_for_amounts(Q96, Q96, Q96, 1, 1)
    with pytest.raises(SafeCastOverflow):
        liquidity_for_amounts(Q96, Q96 // 2, Q96 * 2, -1, 1)
    with pytest.raises(InvalidPrice):
        amount0_rounding_up(0, Q96, 1)
    with pytest.raises(InvalidPrice):
        amount0_rounding_down(0, Q96, 1)


@pytest.mark.parametrize("spacing", [1, 10, 60, 200, 32_767])
def test_all_ticks_at_their_limit_still_fit_uint128(spacing: int) -> None:
    ticks = 2 * (887_272 // spacing) + 1
    limit = max_liquidity_per_tick(spacing)
    assert limit * ticks < 1 << 128
    # v4 counts one tick too many where the spacing does not divide the range.
    assert limit == ((1 << 128) - 1) // (ticks + (1 if 887_272 % spacing else 0))
