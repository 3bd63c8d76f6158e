"""Quotes on a part of a pool: equal to the whole pool's, with or without us, or not given at all."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from zuno.amm.fees import DYNAMIC_FEE_FLAG
from zuno.amm.model import Block, Depth, LpPosition, PoolKey, PoolState, Range
from zuno.amm.pool import Pool
from zuno.amm.ticks import MAX_TICK, MIN_TICK, sqrt_price_at_tick
from zuno.kernel.errors import Unavailable
from zuno.kernel.text import NATIVE, Token
from zuno.kernel.units import Address, Amount, HexId, Liquidity, Pips, Seconds, SqrtPriceX96, Tick
from zuno.lp.plan.inventory import exact_quotes, quotes

SPACING = 10
WORD = 256 * SPACING
OWNER = "0x" + "aa" * 20
OURS = 7
EVERYTHING = Range(Tick(MIN_TICK), Tick(MAX_TICK))
TOKENS = (Token(NATIVE, "ETH", 18, True), Token(Address("0x" + "11" * 20), "USDC", 6, True))

edges = st.integers(-600, 600).map(lambda at: at * SPACING)
ranges = st.tuples(edges, edges).filter(lambda both: both[0] != both[1]).map(lambda both: (min(both), max(both)))
liquidities = st.integers(1, 10**24)
amounts = st.integers(1, 10**24)
fees = st.sampled_from([0, 100, 500, 3000, 999_999])
protocol_fees = st.tuples(st.sampled_from([0, 1, 1000]), st.sampled_from([0, 1, 1000]))


@st.composite
def pools(draw: st.DrawFn) -> Pool:
    price = sqrt_price_at_tick(draw(st.integers(-3_000, 3_000))) + draw(st.integers(0, 10**20))
    pool = Pool.initialize(draw(fees), SPACING, price)
    pool.set_protocol_fee(*draw(protocol_fees))
    for salt, (lower, upper) in enumerate(draw(st.lists(ranges, max_size=6)), start=100):
        pool.modify_liquidity(OWNER, lower, upper, draw(liquidities), salt)
    if draw(st.booleans()):  # a price that a swap has left: on a tick, perhaps, and counted as below it
        tick = draw(st.sampled_from(list(pool.ticks) or [0]))
        target = sqrt_price_at_tick(tick)
        if target != pool.slot0.sqrt_price_x96:
            pool.swap(target < pool.slot0.sqrt_price_x96, -(10**38), target)
    return pool


def state_of(pool: Pool) -> PoolState:
    slot0 = pool.slot0
    return PoolState(
        id=HexId("0x" + "ab" * 32),
        key=PoolKey(TOKENS[0].address, TOKENS[1].address, Pips(pool.fee), SPACING),
        token0=TOKENS[0],
        token1=TOKENS[1],
        sqrt_price_x96=SqrtPriceX96(slot0.sqrt_price_x96),
        tick=Tick(slot0.tick),
        protocol_fee=slot0.protocol_fee,
        lp_fee=Pips(slot0.lp_fee),
        liquidity=Liquidity(pool.liquidity),
        fee_growth_global0_x128=pool.fee_growth_global0_x128,
        fee_growth_global1_x128=pool.fee_growth_global1_x128,
        block=Block(1, HexId("0x" + "cd" * 32), Seconds(1_700_000_000)),
    )


def depth_of(pool: Pool, known: Range = EVERYTHING) -> Depth:
    net = {tick: info.liquidity_net for tick, info in pool.ticks.items() if known.contains(tick)}
    return Depth(state_of(pool), known, net)


def position_of(pool: Pool, lower: int, upper: int, liquidity: int) -> LpPosition:
    nothing = Amount(0)
    band = Range(Tick(lower), Tick(upper))
    return LpPosition(
        OURS,
        "sim",
        Address(OWNER),
        state_of(pool),
        band,
        Liquidity(liquidity),
        nothing,
        nothing,
        nothing,
        nothing,
    )


@pytest.mark.slow
@given(pools(), st.booleans(), amounts)
def test_the_whole_pool_is_quoted_as_it_is(pool: Pool, zero_for_one: bool, amount: int) -> None:
    assert quotes(depth_of(pool))(zero_for_one, amount) == exact_quotes(pool)(zero_for_one, amount)


@pytest.mark.slow
@given(pools(), st.integers(0, 4), st.integers(0, 4), st.booleans(), amounts)
def test_a_part_quotes_as_the_whole_or_not_at_all(
    pool: Pool, below: int, above: int, zero_for_one: bool, amount: int
) -> None:
    here = pool.slot0.tick // WORD
    known = Range(Tick((here - below) * WORD), Tick((here + above + 1) * WORD))
    whole = exact_quotes(pool)(zero_for_one, amount)
    low, high = sqrt_price_at_tick(known.lower), sqrt_price_at_tick(known.upper)
    if low <= whole.sqrt_price_after_x96 < high:
        assert quotes(depth_of(pool, known))(zero_for_one, amount) == whole
    else:
        with pytest.raises(Unavailable, match=f"{known.lower} to {known.upper}"):
            quotes(depth_of(pool, known))(zero_for_one, amount)


@pytest.mark.slow
@given(pools(), ranges, liquidities, st.booleans(), amounts)
def test_without_us_it_is_the_pool_after_our_burn(
    pool: Pool, band: tuple[int, int], liquidity: int, zero_for_one: bool, amount: int
) -> None:
    # Where others cancel out on our edge nobody can tell from the net that anyone is there.
    assume(all(pool.ticks[edge].liquidity_net for edge in band if edge in pool.ticks))
    ours = pool.copy()
    ours.modify_liquidity(OWNER, *band, liquidity, OURS)
    burnt = ours.copy()
    burnt.modify_liquidity(OWNER, *band, -liquidity, OURS)
    position = position_of(ours, *band, liquidity)
    assert quotes(depth_of(ours), position)(zero_for_one, amount) == exact_quotes(burnt)(zero_for_one, amount)
    # Edges beyond what was read take nothing out there, and what is known is still right.
    here = ours.slot0.tick // WORD
    known = Range(Tick(here * WORD), Tick((here + 1) * WORD))
    whole = exact_quotes(burnt)(zero_for_one, amount)
    if sqrt_price_at_tick(known.lower) <= whole.sqrt_price_after_x96 < sqrt_price_at_tick(known.upper):
        assert quotes(depth_of(ours, known), position)(zero_for_one, amount) == whole


def example() -> Pool:
    pool = Pool.initialize(3000, SPACING, sqrt_price_at_tick(5))
    pool.modify_liquidity(OWNER, -2_000, 2_000, 10**20, 1)
    pool.modify_liquidity(OWNER, -100, 100, 10**20, OURS)
    return pool


@pytest.mark.parametrize("zero_for_one", [True, False])
def test_a_swap_may_end_on_the_lower_end_of_what_is_known_and_not_on_the_upper(zero_for_one: bool) -> None:
    """The lower tick was looked at; what lies on the upper one is not known, and it would be met there."""
    pool, known = Pool.initialize(0, SPACING, sqrt_price_at_tick(5)), Range(Tick(-WORD), Tick(1_000))
    pool.modify_liquidity(OWNER, -5_000, 5_000, 1 << 96, 1)  # one unit in moves the price by one, upwards
    edge = sqrt_price_at_tick(known.lower if zero_for_one else known.upper)
    moved = pool.copy().swap(zero_for_one, -(10**35), edge)
    amount = -(moved.amount0 if zero_for_one else moved.amount1)
    whole = exact_quotes(pool)(zero_for_one, amount)
    assert (whole.sqrt_price_after_x96, whole.amount_in) == (edge, amount)
    quote = quotes(depth_of(pool, known))
    if zero_for_one:
        assert quote(zero_for_one, amount) == whole
    else:
        with pytest.raises(Unavailable):
            quote(zero_for_one, amount)


def test_where_the_pool_stands_decides_what_ours_is_not_where_it_stood() -> None:
    pool = example()
    position = position_of(pool, -100, 100, 10**20)
    before = replace(position, pool=replace(position.pool, tick=Tick(500)))
    assert quotes(depth_of(pool), before)(True, 10**18) == quotes(depth_of(pool), position)(True, 10**18)


def test_our_own_liquidity_flatters_the_price() -> None:
    pool = example()
    position = position_of(pool, -100, 100, 10**20)
    with_us, without = quotes(depth_of(pool)), quotes(depth_of(pool), position)
    for zero_for_one in (True, False):
        assert without(zero_for_one, 10**18).amount_out < with_us(zero_for_one, 10**18).amount_out


def test_an_empty_position_takes_nothing_out() -> None:
    pool = example()
    empty = position_of(pool, -50, 50, 0)
    assert quotes(depth_of(pool), empty)(True, 10**18) == quotes(depth_of(pool))(True, 10**18)


def test_a_position_that_the_pool_does_not_hold_is_no_position_of_this_moment() -> None:
    pool = example()
    with pytest.raises(Unavailable, match="Position 7"):
        quotes(depth_of(pool), position_of(pool, -50, 50, 10**20))


def test_a_tick_where_as_much_ends_as_begins_still_makes_a_swap_pause() -> None:
    pool = Pool.initialize(3000, SPACING, sqrt_price_at_tick(5))
    pool.modify_liquidity(OWNER, -100, 50, 3 * 10**9, 1)
    pool.modify_liquidity(OWNER, 50, 200, 3 * 10**9, 2)
    depth = depth_of(pool)
    assert depth.net[50] == 0
    without_it = replace(depth, net={tick: net for tick, net in depth.net.items() if tick != 50})
    found = {amount: quotes(depth)(False, amount) for amount in range(10_000_000, 10_000_200)}
    assert all(found[amount] == exact_quotes(pool)(False, amount) for amount in found)
    assert any(found[amount] != quotes(without_it)(False, amount) for amount in found)


def test_a_dynamic_fee_is_the_one_in_slot0() -> None:
    pool = Pool.initialize(DYNAMIC_FEE_FLAG, SPACING, sqrt_price_at_tick(5))
    pool.modify_liquidity(OWNER, -2_000, 2_000, 10**20, 1)
    free = quotes(depth_of(pool))(True, 10**18)
    pool.set_lp_fee(10_000)
    dear = quotes(depth_of(pool))(True, 10**18)
    assert free.fee_in == 0
    assert 10**16 <= dear.fee_in <= 10**16 + 1  # a word of the bitmap is passed on the way
    assert dear == exact_quotes(pool)(True, 10**18)
