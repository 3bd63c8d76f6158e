"""One step of a swap: its bounds, its favourites, and the refusals that a whole pool can never reach."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zuno.amm.swap import price_after_input, price_after_output, step_exact_input, step_exact_output
from zuno.amm.ticks import MAX_SQRT_PRICE, MIN_SQRT_PRICE
from zuno.kernel.errors import InvalidPriceOrLiquidity, NotEnoughLiquidity, PriceOverflow, SafeCastOverflow

Q96 = 1 << 96
prices = st.integers(MIN_SQRT_PRICE, MAX_SQRT_PRICE - 1)
liquidities = st.integers(1, (1 << 128) - 1)
amounts = st.integers(1, (1 << 255) - 1)
fees = st.integers(0, 999_999)


@given(prices, prices, liquidities, amounts, st.integers(0, 1_000_000))
def test_exact_input_keeps_its_bounds(price: int, target: int, liquidity: int, amount: int, fee: int) -> None:
    down = target <= price
    reached, amount_in, _, fee_amount = step_exact_input(price, target, liquidity, amount, fee, down)
    assert min(price, target) <= reached <= max(price, target)
    assert amount_in + fee_amount <= amount
    if reached != target:
        assert amount_in + fee_amount == amount


@given(prices, prices, liquidities, amounts, fees)
def test_exact_output_keeps_its_bounds(price: int, target: int, liquidity: int, amount: int, fee: int) -> None:
    down = target <= price
    reached, _, amount_out, _ = step_exact_output(price, target, liquidity, amount, fee, down)
    assert min(price, target) <= reached <= max(price, target)
    assert amount_out <= amount
    if reached != target:
        assert amount_out == amount


@given(prices, liquidities, st.integers(0, (1 << 128) - 1), st.booleans())
def test_input_moves_the_price_too_little_rather_than_too_far(
    price: int, liquidity: int, amount: int, down: bool
) -> None:
    try:
        after = price_after_input(price, liquidity, amount, down)
    except SafeCastOverflow:
        return
    if down:  # exact: L·P / (L + amount·P), compared without dividing
        assert after * ((liquidity << 96) + amount * price) >= (liquidity << 96) * price
        assert after <= price
    else:
        assert (after - price) * liquidity <= amount << 96


@pytest.mark.parametrize("down", [True, False])
def test_a_step_needs_price_and_liquidity(down: bool) -> None:
    for function in (price_after_input, price_after_output):
        for price, liquidity in ((0, 1), (Q96, 0)):
            with pytest.raises(InvalidPriceOrLiquidity):
                function(price, liquidity, 1, down)


def test_more_output_than_there_is_is_refused() -> None:
    with pytest.raises(NotEnoughLiquidity):
        price_after_output(Q96, 10**18, 10**18, True)
    with pytest.raises(PriceOverflow):
        price_after_output(Q96, 10**18, 10**18, False)
    with pytest.raises(SafeCastOverflow):
        price_after_input(Q96, 1, 1 << 128, False)
    with pytest.raises(SafeCastOverflow):
        price_after_output(MAX_SQRT_PRICE, 1 << 100, (1 << 100) * Q96 // MAX_SQRT_PRICE - 1, False)


def test_nothing_moves_nothing() -> None:
    for down in (True, False):
        assert price_after_input(Q96, 10**18, 0, down) == Q96
        assert price_after_output(Q96, 10**18, 0, down) == Q96


@pytest.mark.parametrize("price", [1 << 159, (1 << 159) + 12_345_678_901])
def test_where_uint256_overflows_the_contracts_coarser_formula_is_used(price: int) -> None:
    scaled, amount = 1 << 216, 1 << 100
    assert scaled + amount * price >= 1 << 256
    fine = -(-scaled * price // (scaled + amount * price))
    coarse = -(-scaled // (scaled // price + amount))
    assert price_after_input(price, scaled >> 96, amount, True) == coarse >= fine
