"""Ticks and prices by themselves; equality with the contract is in tests/differential."""

from __future__ import annotations

from decimal import Decimal, localcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import mark_all_but
from zuno.amm import ticks
from zuno.amm.ticks import (
    MAX_SQRT_PRICE,
    MAX_TICK,
    MAX_TICK_SPACING,
    MIN_SQRT_PRICE,
    MIN_TICK,
    ceil_to_spacing,
    floor_to_spacing,
    max_usable_tick,
    min_usable_tick,
    sqrt_price_at_tick,
    tick_at_sqrt_price,
)
from zuno.kernel.errors import InvalidSqrtPrice, InvalidTick, TickSpacingTooLarge, TickSpacingTooSmall

any_tick = st.integers(MIN_TICK, MAX_TICK)
any_spacing = st.integers(1, MAX_TICK_SPACING)
PARTS = 64


@pytest.mark.soak(every=4)
@pytest.mark.slow
@pytest.mark.parametrize("part", mark_all_but(16, range(PARTS), pytest.mark.soak))
def test_every_boundary_goes_there_and_back(part: int) -> None:
    """At its own price a tick begins, one below it the previous tick still lasts, and prices never stand still."""
    share = (MAX_TICK - MIN_TICK) // PARTS + 1
    first = MIN_TICK + part * share
    below = sqrt_price_at_tick(first) - 1
    for tick in range(first, min(first + share, MAX_TICK)):
        price = sqrt_price_at_tick(tick)
        assert price > below
        assert tick_at_sqrt_price(price) == tick
        if tick > MIN_TICK:
            assert tick_at_sqrt_price(price - 1) == tick - 1
        below = price


def test_the_ends() -> None:
    assert sqrt_price_at_tick(MIN_TICK) == MIN_SQRT_PRICE
    assert sqrt_price_at_tick(MAX_TICK) == MAX_SQRT_PRICE
    assert tick_at_sqrt_price(MAX_SQRT_PRICE - 1) == MAX_TICK - 1
    assert sqrt_price_at_tick(0) == 1 << 96


@given(any_tick)
def test_the_price_is_the_power_it_claims_to_be(tick: int) -> None:
    """Against eighty decimal digits: rounded up to an integer, and off by 2^-60 of itself at most."""
    with localcontext() as context:
        context.prec = 80
        exact = (Decimal("1.0001") ** tick).sqrt() * 2**96
        error = sqrt_price_at_tick(tick) - exact
        slack = exact / 2**60
    assert -slack <= error <= 1 + slack


@given(
    st.integers(MIN_SQRT_PRICE, MAX_SQRT_PRICE - 1) | any_tick.filter(lambda t: t < MAX_TICK).map(sqrt_price_at_tick)
)
def test_a_price_lies_inside_its_tick(price: int) -> None:
    tick = tick_at_sqrt_price(price)
    assert sqrt_price_at_tick(tick) <= price < sqrt_price_at_tick(tick + 1)


@given(any_tick)
def test_the_cache_remembers_correctly(tick: int) -> None:
    assert ticks.cached_sqrt_price_at_tick(tick) == sqrt_price_at_tick(tick)


@pytest.mark.parametrize("tick", [MIN_TICK - 1, MAX_TICK + 1, 10**30, -(10**30)])
def test_a_tick_beyond_the_ends_is_refused(tick: int) -> None:
    with pytest.raises(InvalidTick):
        sqrt_price_at_tick(tick)


@pytest.mark.parametrize("price", [-1, 0, MIN_SQRT_PRICE - 1, MAX_SQRT_PRICE, 1 << 300])
def test_a_price_beyond_the_ends_is_refused(price: int) -> None:
    with pytest.raises(InvalidSqrtPrice):
        tick_at_sqrt_price(price)


@given(any_tick, any_spacing)
def test_spacing_rounds_where_it_says(tick: int, spacing: int) -> None:
    floor, ceiling = floor_to_spacing(tick, spacing), ceil_to_spacing(tick, spacing)
    assert floor <= tick <= ceiling
    assert floor % spacing == ceiling % spacing == 0
    assert ceiling - floor == (0 if tick % spacing == 0 else spacing)


@given(any_spacing)
def test_usable_ticks_round_toward_zero(spacing: int) -> None:
    lowest, highest = min_usable_tick(spacing), max_usable_tick(spacing)
    assert lowest == -highest
    assert highest % spacing == 0
    assert highest <= MAX_TICK < highest + spacing


@pytest.mark.parametrize(
    ("spacing", "error"), [(0, TickSpacingTooSmall), (-60, TickSpacingTooSmall), (32_768, TickSpacingTooLarge)]
)
def test_an_impossible_spacing_is_refused(spacing: int, error: type[Exception]) -> None:
    for function in (floor_to_spacing, ceil_to_spacing):
        with pytest.raises(error):
            function(0, spacing)
    for function_of_spacing in (min_usable_tick, max_usable_tick):
        with pytest.raises(error):
            function_of_spacing(spacing)
