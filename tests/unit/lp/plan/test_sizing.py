"""Liquidity that survives every price in the bounds, and no less of it than that asks for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from zuno.amm.liquidity import amounts_for_liquidity
from zuno.amm.model import LpPosition, PoolState, Range
from zuno.amm.ticks import sqrt_price_at_tick
from zuno.kernel.errors import Refused
from zuno.kernel.units import SqrtPriceX96, Tick
from zuno.lp.plan.inventory import price_bounds
from zuno.lp.plan.sizing import (
    fix_capital,
    least_principal,
    most_proceeds,
    size_mint,
    size_mint_from_burn,
)

CENTRE = -201_000
spacings = st.integers(-60, 60)
bands = (
    st.tuples(spacings, spacings)
    .filter(lambda two: two[0] != two[1])
    .map(lambda two: Range(Tick(CENTRE + 60 * min(two)), Tick(CENTRE + 60 * max(two))))
)
prices = st.tuples(st.integers(-1_500, 1_500), st.integers(0, 10**16)).map(
    lambda at: sqrt_price_at_tick(CENTRE + at[0]) + at[1]
)
inside = st.fractions(0, 1)
slippages = st.integers(0, 300)
fees = st.tuples(st.integers(0, 10**18), st.integers(0, 10**10))


def held_at(scene: Any, price: int, band: Range, liquidity: int, earned: tuple[int, int]) -> LpPosition:
    pool: PoolState = replace(scene.native, sqrt_price_x96=SqrtPriceX96(price))
    position: LpPosition = scene.position_in(pool, band, liquidity, earned)
    return position


@pytest.mark.slow
@given(prices, bands, bands, st.integers(1, 10**18), fees, slippages, inside)
def test_a_burn_pays_for_the_new_range_at_every_price_in_bounds(
    scene: Any,
    price: int,
    old: Range,
    new: Range,
    liquidity: int,
    earned: tuple[int, int],
    slippage: int,
    where: Any,
) -> None:
    position = held_at(scene, price, old, liquidity, earned)
    try:
        size = size_mint_from_burn(position, new, slippage)
    except Refused:
        assume(False)
    low, high = price_bounds(price, slippage)
    at = low + int((high - low) * where)
    paid = amounts_for_liquidity(at, *old.edges_x96, liquidity, round_up=False)
    cost = amounts_for_liquidity(at, *new.edges_x96, size.liquidity, round_up=True)
    left = paid[0] + earned[0] - cost[0], paid[1] + earned[1] - cost[1]
    assert min(left) >= 0
    assert cost[0] <= size.most0
    assert cost[1] <= size.most1
    least, most = least_principal(position, liquidity, slippage), most_proceeds(position, slippage)
    assert least[0] <= paid[0] <= most[0] - earned[0]
    assert least[1] <= paid[1] <= most[1] - earned[1]


@pytest.mark.parametrize(
    ("price", "old", "new", "liquidity", "earned", "slippage", "at"),
    [
        (
            *(3422391524768126752634525, (-201_240, -200_700), (-202_080, -200_340)),
            *(2 * 10**7, (16, 0), 61, 3413820935126892444953835),
        ),
        (
            *(3472896071755770079344446, (-201_120, -200_100), (-201_120, -200_580)),
            *(4 * 10**9, (40, 2), 106, 3486188201721817452025189),
        ),
    ],
)
def test_a_unit_lost_to_rounding_is_never_missing(
    scene: Any,
    price: int,
    old: tuple[int, int],
    new: tuple[int, int],
    liquidity: int,
    earned: tuple[int, int],
    slippage: int,
    at: int,
) -> None:
    """Found by search: between two edges where the tokens suffice to the unit, one is missing."""
    position = held_at(scene, price, scene.ticks(*old), liquidity, earned)
    size = size_mint_from_burn(position, scene.ticks(*new), slippage)
    before: Range = scene.ticks(*old)
    after: Range = scene.ticks(*new)
    paid = amounts_for_liquidity(at, *before.edges_x96, liquidity, round_up=False)
    cost = amounts_for_liquidity(at, *after.edges_x96, size.liquidity, round_up=True)
    assert paid[0] + earned[0] >= cost[0]
    assert paid[1] + earned[1] >= cost[1]


@pytest.mark.slow
@given(prices, bands, bands, st.integers(10**12, 10**18), fees, slippages)
def test_no_more_liquidity_would_have_been_safe(
    scene: Any, price: int, old: Range, new: Range, liquidity: int, earned: tuple[int, int], slippage: int
) -> None:
    position = held_at(scene, price, old, liquidity, earned)
    try:
        size = size_mint_from_burn(position, new, slippage)
    except Refused:
        assume(False)
    more = size.liquidity + size.liquidity // 10**6 + 10**10
    short = False
    for at in (*price_bounds(price, slippage), *old.edges_x96, *new.edges_x96):
        low, high = price_bounds(price, slippage)
        if low <= at <= high:
            paid = amounts_for_liquidity(at, *old.edges_x96, liquidity, round_up=False)
            cost = amounts_for_liquidity(at, *new.edges_x96, more, round_up=True)
            short |= paid[0] + earned[0] - 2 < cost[0] or paid[1] + earned[1] - 2 < cost[1]
    assert short


@pytest.mark.slow
@given(prices, bands, st.integers(10**6, 10**20), st.integers(10**6, 10**12), slippages, inside)
def test_tokens_pay_for_a_range_at_every_price_in_bounds(
    price: int, band: Range, have0: int, have1: int, slippage: int, where: Any
) -> None:
    try:
        size = size_mint(price, band, have0, have1, slippage)
    except Refused:
        assume(False)
    low, high = price_bounds(price, slippage)
    at = low + int((high - low) * where)
    cost = amounts_for_liquidity(at, *band.edges_x96, size.liquidity, round_up=True)
    assert cost[0] <= size.most0 <= have0
    assert cost[1] <= size.most1 <= have1


def test_a_mint_beyond_the_bounds_costs_more_than_its_maxima(scene: Any) -> None:
    price: int = scene.native.sqrt_price_x96
    band: Range = scene.ticks(-201_600, -200_400)
    size = size_mint(price, band, 10**18, 3 * 10**9, 50)
    low, high = price_bounds(price, 51)
    assert amounts_for_liquidity(low, *band.edges_x96, size.liquidity, round_up=True)[0] > size.most0
    assert amounts_for_liquidity(high, *band.edges_x96, size.liquidity, round_up=True)[1] > size.most1


def test_nothing_to_mint_is_refused_by_name(scene: Any) -> None:
    price, above = scene.native.sqrt_price_x96, scene.ticks(-200_400, -199_800)
    with pytest.raises(Refused, match="-200400 to -199800"):
        size_mint(price, above, 0, 10**12, 50)


@given(prices, bands, st.sampled_from([0, 1]), st.integers(10**9, 10**14), fees, st.integers(1, 300))
def test_what_goes_with_a_named_amount_does_not_depend_on_the_wallet(
    scene: Any, price: int, band: Range, side: int, amount: int, earned: tuple[int, int], slippage: int
) -> None:
    """A wallet a thousand times as full brings the same, and brings just enough for all that was named."""
    position = held_at(scene, price, band, 10**15, earned)
    try:
        capital = fix_capital(position, {side: amount}, (10**40, 10**40), slippage)
    except Refused:
        lower, upper = band.edges_x96
        assert price <= lower if side else price >= upper
        return
    assert capital[side] == amount
    assert capital == fix_capital(position, {side: amount}, (10**43, 10**43), slippage)
    size = size_mint(price, band, *capital, slippage)
    fuller = [10**38, 10**38]
    fuller[side] = amount
    assert size.liquidity * (10**9 + 1) >= size_mint(price, band, *fuller, slippage).liquidity * 10**9 - 10**10  # type: ignore[call-arg]
    less = list(capital)
    less[1 - side] = capital[1 - side] * 98 // 100
    if less[1 - side] > 10**6:
        assert size_mint(price, band, *less, slippage).liquidity < size.liquidity  # type: ignore[call-arg]


def test_nothing_of_a_named_token_is_refused_with_what_would_go_in(scene: Any) -> None:
    """Below its range a position takes token0 alone, above it token1 alone."""
    band = scene.ticks(CENTRE - 60, CENTRE + 60)
    below, above = (held_at(scene, sqrt_price_at_tick(CENTRE + off), band, 10**15, (0, 0)) for off in (-600, 600))
    plenty = (10**24, 10**18)
    for position, side, amount in ((below, 1, 10**8), (above, 0, 10**17)):
        for named in ({side: amount}, {0: 10**17, 1: 10**8}):
            with pytest.raises(Refused, match=r"(USDC|ETH) alone") as refused:
                fix_capital(position, named, plenty, 50)
            instead = (position.pool.token0, position.pool.token1)[1 - side]
            assert f"name {instead.symbol} alone" in str(refused.value)
        assert fix_capital(position, {1 - side: amount}, plenty, 50)[side] == 0


def test_what_goes_with_a_named_amount_is_what_there_is(scene: Any) -> None:
    """Fees count; with too little for half of what was named, it is refused."""
    band = scene.ticks(CENTRE - 600, CENTRE + 600)
    position = held_at(scene, sqrt_price_at_tick(CENTRE), band, 10**15, (10**15, 0))
    _, whole = fix_capital(position, {0: 10**18}, (0, 10**18), 50)
    assert fix_capital(position, {0: 10**18}, (0, whole * 2 // 3), 50) == (10**18, whole * 2 // 3)
    with pytest.raises(Refused, match=rf"\bmost\b.*\d {scene.usdc.symbol} "):
        fix_capital(position, {0: 10**18}, (0, whole // 3), 50)
    whole0, _ = fix_capital(position, {1: 10**9}, (10**24, 0), 50)
    assert fix_capital(position, {1: 10**9}, (whole0 - 10**15, 0), 50)[0] == whole0
