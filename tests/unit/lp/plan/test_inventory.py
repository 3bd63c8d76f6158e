"""Inventory: mints that survive the worst price in bounds, swaps that leave no more than dust, on a real pool."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from zuno.amm.liquidity import amounts_for_liquidity
from zuno.amm.model import Block, LpPosition, PoolKey, PoolState, Range
from zuno.amm.pool import Pool
from zuno.amm.ticks import sqrt_price_at_tick
from zuno.kernel.text import NATIVE, Token
from zuno.kernel.units import Address, Amount, HexId, Liquidity, Pips, Seconds, SqrtPriceX96, Tick
from zuno.lp.model.plan import BPS
from zuno.lp.plan.inventory import (
    COSTLY_NOTE,
    Quote,
    SwapMarket,
    burn_proceeds,
    estimate,
    exact_quotes,
    fit,
    leftover_of,
    market_without_us,
    others_liquidity,
    plan_swap_and_deposit,
    price_bounds,
    worth_token1,
)

ETH = Token(NATIVE, "ETH", 18, True)
USDC = Token(Address("0x" + "11" * 20), "USDC", 6, True)
TICK = -201_000
PRICE = sqrt_price_at_tick(TICK)
POOL = PoolState(
    id=HexId("0x" + "ab" * 32),
    key=PoolKey(ETH.address, USDC.address, Pips(3000), 60),
    token0=ETH,
    token1=USDC,
    sqrt_price_x96=SqrtPriceX96(PRICE),
    tick=Tick(TICK),
    protocol_fee=0,
    lp_fee=Pips(3000),
    liquidity=Liquidity(10**18),
    fee_growth_global0_x128=0,
    fee_growth_global1_x128=0,
    block=Block(1, HexId("0x" + "cd" * 32), Seconds(1_700_000_000)),
)
MARKET = market_without_us(POOL)
BAND = Range(Tick(-201_600), Tick(-200_400))

ticks = st.integers(-300_000, 300_000)
amounts = st.integers(0, 10**27)
slippages = st.integers(0, 500)


def position(band: Range, liquidity: int) -> LpPosition:
    edges = (sqrt_price_at_tick(band.lower), sqrt_price_at_tick(band.upper))
    amount0, amount1 = amounts_for_liquidity(PRICE, *edges, liquidity, round_up=False)
    return LpPosition(
        1, "sim", NATIVE, POOL, band, Liquidity(liquidity), Amount(amount0), Amount(amount1), Amount(3), Amount(5)
    )


def test_available_is_principal_and_fees() -> None:
    held = position(BAND, 10**15)
    assert burn_proceeds(held) == (held.amount0 + 3, held.amount1 + 5)


def test_the_pool_without_us() -> None:
    inside, outside = position(BAND, 10**17), position(Range(Tick(0), Tick(60)), 10**17)
    assert others_liquidity(POOL, inside) == 9 * 10**17
    assert others_liquidity(POOL, outside) == others_liquidity(POOL, None) == 10**18
    taxed = replace(POOL, protocol_fee=1000 << 12 | 500)
    market = market_without_us(taxed, inside)
    assert (market.liquidity, market.fee_zero_for_one, market.fee_one_for_zero) == (9 * 10**17, 3499, 3997)


@given(ticks, st.integers(1, 2_000), st.integers(1, 2_000), amounts, amounts, slippages, st.integers(0, 1000))
def test_a_mint_goes_through_at_any_price_in_bounds(
    tick: int, down: int, up: int, have0: int, have1: int, slippage: int, where: int
) -> None:
    price, band = sqrt_price_at_tick(tick), Range(Tick(tick - down), Tick(tick + up))
    put_in = fit(price, band, have0, have1, slippage)
    low, high = price_bounds(price, slippage)
    then = low + (high - low) * where // 1000
    edges = (sqrt_price_at_tick(band.lower), sqrt_price_at_tick(band.upper))
    need0, need1 = amounts_for_liquidity(then, *edges, put_in.liquidity, round_up=True)
    assert need0 <= have0
    assert need1 <= have1


def test_a_mint_sized_to_the_last_wei_is_what_the_bound_protects_from() -> None:
    have = fit(PRICE, BAND, 10**18, 10**18, 0)
    moved = PRICE * 100_010 // 100_000
    edges = (sqrt_price_at_tick(BAND.lower), sqrt_price_at_tick(BAND.upper))
    _, need1 = amounts_for_liquidity(moved, *edges, have.liquidity, round_up=True)
    assert need1 > have.amount1, "2 bp later the mint would need more than it was given"


@given(ticks, st.integers(1, 2_000), st.integers(1, 2_000), amounts, amounts, slippages)
def test_nothing_is_lost(tick: int, down: int, up: int, have0: int, have1: int, slippage: int) -> None:
    band = Range(Tick(tick - down), Tick(tick + up))
    put_in = fit(sqrt_price_at_tick(tick), band, have0, have1, slippage)
    assert (put_in.amount0 + put_in.left0, put_in.amount1 + put_in.left1) == (have0, have1)
    assert min(put_in.left0, put_in.left1, put_in.liquidity) >= 0
    assert put_in.prep is None


@given(ticks, st.integers(60, 2_000), st.integers(10**9, 10**24), st.integers(10**9, 10**24))
def test_two_sided_capital_is_the_least_of_both_sides(tick: int, half: int, have0: int, have1: int) -> None:
    price, band = sqrt_price_at_tick(tick), Range(Tick(tick - half), Tick(tick + half))
    both = fit(price, band, have0, have1).liquidity
    assert both <= fit(price, band, have0, 10**40).liquidity
    assert both <= fit(price, band, 10**40, have1).liquidity
    assert both in (fit(price, band, have0, 10**40).liquidity, fit(price, band, 10**40, have1).liquidity)


def test_one_sided_ranges_need_one_token() -> None:
    above, below = Range(Tick(TICK + 600), Tick(TICK + 1200)), Range(Tick(TICK - 1200), Tick(TICK - 600))
    assert fit(PRICE, above, 10**18, 0).liquidity > 0
    assert fit(PRICE, above, 0, 10**18).liquidity == 0
    assert fit(PRICE, below, 0, 10**9).liquidity > 0
    assert fit(PRICE, below, 10**18, 0).liquidity == 0


@pytest.mark.parametrize("edge", [TICK, TICK + 1])
def test_a_hair_from_the_edge_nothing_overflows(edge: int) -> None:
    band = Range(Tick(edge - 60), Tick(edge))
    assert fit(PRICE, band, 10**30, 10**18, 0).left1 == 0 or edge > TICK


@pytest.mark.parametrize(("have0", "have1", "down"), [(10**18, 0, True), (0, 2 * 10**9, False)])
def test_one_sided_capital_is_swapped_first(have0: int, have1: int, down: bool) -> None:
    put_in = plan_swap_and_deposit(MARKET, BAND, have0, have1, may_swap=True)
    assert put_in.prep is not None
    assert put_in.prep.zero_for_one is down
    # A centred range wants half of each.
    assert put_in.prep.amount_in == pytest.approx((have0 or have1) / 2, rel=0.02)
    assert leftover_of(put_in, PRICE, 50).share < Fraction(1, 10_000)
    spent0, spent1 = (put_in.prep.amount_in, 0) if down else (0, put_in.prep.amount_in)
    got0, got1 = (0, put_in.prep.amount_out) if down else (put_in.prep.amount_out, 0)
    assert put_in.amount0 + put_in.left0 == have0 - spent0 + got0
    assert put_in.amount1 + put_in.left1 == have1 - spent1 + got1


def test_golden_prep_swap() -> None:
    """One ether into ±6 % at 1,867 USDC."""
    put_in = plan_swap_and_deposit(MARKET, BAND, 10**18, 0, may_swap=True)
    prep = put_in.prep
    assert prep is not None
    assert (put_in.liquidity, put_in.amount0, put_in.amount1, put_in.left0, put_in.left1) == GOLDEN_DEPOSIT
    assert (prep.amount_in, prep.amount_out, prep.fee_in) == GOLDEN_SWAP


GOLDEN_DEPOSIT = (729910829835204, 499608159065246252, 931350894, 329, 67)
GOLDEN_SWAP = (500391840934753419, 931350961, 1501175522804261)


def test_what_the_swap_costs_is_what_the_owner_is_short_of_afterwards() -> None:
    put_in = plan_swap_and_deposit(MARKET, BAND, 10**18, 0, may_swap=True)
    assert put_in.prep is not None
    after = worth_token1(put_in.amount0 + put_in.left0, put_in.amount1 + put_in.left1, PRICE)
    lost = worth_token1(10**18, 0, PRICE) - after
    assert put_in.prep.fee_token1 + put_in.prep.impact_token1 == lost
    assert put_in.prep.fee_token1 == put_in.prep.fee_in * POOL.price
    assert put_in.prep.impact_token1 > 0


@given(
    st.integers(1, 10**21),
    st.integers(1, 10**13),
    st.integers(-9, 9),
    st.integers(2, 40),
    st.integers(15, 22),
)
def test_swapping_first_never_deploys_less(have0: int, have1: int, offset: int, spacings: int, depth: int) -> None:
    assume(abs(offset) < spacings)
    band = Range(Tick(TICK // 60 * 60 + 60 * (offset - spacings)), Tick(TICK // 60 * 60 + 60 * (offset + spacings)))
    market = SwapMarket(PRICE, 10**depth, 500, 500)
    plain = plan_swap_and_deposit(market, band, have0, have1, may_swap=False)
    swapped = plan_swap_and_deposit(market, band, have0, have1, may_swap=True)
    assert plain.prep is None
    assert swapped.liquidity > plain.liquidity or replace(swapped, notes=()) == plain


def test_matching_amounts_are_not_swapped() -> None:
    best = fit(PRICE, BAND, 10**18, 10**12, 0)
    assert plan_swap_and_deposit(MARKET, BAND, best.amount0, best.amount1, may_swap=True).prep is None
    assert plan_swap_and_deposit(MARKET, BAND, best.amount0, best.amount1 * 2, may_swap=True).prep is not None


def test_more_than_the_slippage_bound_idle_is_what_calls_for_a_swap() -> None:
    best = fit(PRICE, BAND, 10**18, 10**12, 0)
    capital = worth_token1(best.amount0, best.amount1, PRICE)
    for bps, swaps in [(49, False), (52, True)]:
        extra = int(capital * bps / BPS)
        assert (
            plan_swap_and_deposit(MARKET, BAND, best.amount0, best.amount1 + extra, may_swap=True).prep is not None
        ) is swaps


def test_a_swap_that_eats_more_than_it_puts_to_work_is_not_made() -> None:
    puddle = SwapMarket(PRICE, 10**6, 3000, 3000)
    put_in = plan_swap_and_deposit(puddle, BAND, 10**18, 10**9, may_swap=True)
    assert put_in == replace(fit(PRICE, BAND, 10**18, 10**9, 0), notes=(COSTLY_NOTE,))
    left = leftover_of(put_in, PRICE, 50)
    assert (left.amount0, left.amount1, left.why) == (put_in.left0, put_in.left1, COSTLY_NOTE)
    assert Fraction(3, 10) < left.share < 1


def test_alone_in_the_pool_there_is_nobody_to_swap_with() -> None:
    alone = SwapMarket(PRICE, 0, 3000, 3000)
    put_in = plan_swap_and_deposit(alone, BAND, 10**18, 0, may_swap=True)
    assert (put_in.liquidity, put_in.left0, put_in.prep) == (0, 10**18, None)
    assert ["liquidity" in note for note in put_in.notes] == [True]


def test_nothing_to_deploy_deploys_nothing() -> None:
    put_in = plan_swap_and_deposit(MARKET, BAND, 0, 0, may_swap=True)
    assert (put_in.liquidity, put_in.prep) == (0, None)


def test_outside_the_price_everything_is_swapped() -> None:
    above = Range(Tick(TICK + 6000), Tick(TICK + 12000))
    put_in = plan_swap_and_deposit(MARKET, above, 0, 10**9, may_swap=True)
    assert put_in.prep is not None
    assert (put_in.prep.zero_for_one, put_in.prep.amount_in, put_in.left1) == (False, 10**9, 0)


def real_pool() -> Pool:
    pool = Pool.initialize(3000, 60, PRICE)
    pool.modify_liquidity("0x1", -887220, 887220, 10**17, 0)
    pool.modify_liquidity("0x1", TICK // 60 * 60 - 60, TICK // 60 * 60 + 120, 10**18, 0)
    return pool


def test_the_estimate_is_exact_while_no_tick_is_crossed_and_flatters_after() -> None:
    pool = real_pool()
    before = pool.copy()
    whole, near = exact_quotes(pool), estimate(SwapMarket(PRICE, pool.liquidity, 3000, 3000))
    assert whole(True, 10**17) == near(True, 10**17)
    assert whole(False, 10**8) == near(False, 10**8)
    far = 2 * 10**20
    assert whole(True, far).amount_out < near(True, far).amount_out
    assert pool == before, "asking changes nothing"


def test_an_exact_quote_decides_the_outcome() -> None:
    pool = real_pool()
    market = SwapMarket(PRICE, pool.liquidity, 3000, 3000)
    wide = Range(Tick(TICK // 60 * 60 - 6000), Tick(TICK // 60 * 60 + 6000))
    rough = plan_swap_and_deposit(market, wide, 2 * 10**20, 0, may_swap=True)
    true = plan_swap_and_deposit(market, wide, 2 * 10**20, 0, may_swap=True, exact=exact_quotes(pool))
    assert rough.prep is not None
    assert true.prep is not None
    assert (rough.prep.exact, true.prep.exact) == (False, True)
    assert true.prep.amount_in != rough.prep.amount_in, "where the estimate misses, the amount is found on the pool"
    assert leftover_of(true, PRICE, 50).share < Fraction(1, 10_000)
    assert true.prep.impact_token1 > rough.prep.impact_token1


def test_our_own_liquidity_would_flatter_the_quote() -> None:
    """Half of the pool is ours: with us a swap looks better than it will be once we have left."""
    ours = position(BAND, POOL.liquidity // 2)
    without: Quote = estimate(market_without_us(POOL, ours))(True, 10**18)
    flattered: Quote = estimate(market_without_us(POOL))(True, 10**18)
    assert without.amount_out < flattered.amount_out


@given(st.integers(10**12, 10**45), st.integers(0, 9_999))
def test_price_bounds_hold_the_price_and_the_whole_slippage(price: int, slippage: int) -> None:
    low, high = price_bounds(price, slippage)
    assert low <= price <= high
    assert low**2 * BPS <= price**2 * (BPS - slippage) < (low + 1) ** 2 * BPS
    assert (high - 1) ** 2 * BPS < price**2 * (BPS + slippage) <= high**2 * BPS
    assert price_bounds(price, 0) == (price, price)
