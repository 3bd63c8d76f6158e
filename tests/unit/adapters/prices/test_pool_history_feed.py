"""A pool as a price feed: decimals both ways, hours without swaps, and the edges of the window."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zuno.adapters.prices.feeds import PoolHistory
from zuno.amm.model import Block, PoolKey, PoolState
from zuno.kernel.errors import Broken, Malformed, NotFound, PoolNotInitialized, Unavailable, ZunoError
from zuno.kernel.text import Token
from zuno.kernel.units import Address, HexId, Liquidity, Pips, Seconds, SqrtPriceX96, Tick
from zuno.lp.model.chains import ETH
from zuno.lp.model.history import PricedBlock
from zuno.lp.model.market import HOUR, Pair
from zuno.lp.ports.chain import Chain

POOL = HexId("0x" + "ab" * 32)
WETH = Token(Address("0x" + "0e" * 20), "WETH", 18, verified=True)
USDC = Token(Address("0x" + "0c" * 20), "USDC", 6, verified=True)
NINE = 491_000 * HOUR
NOW = Seconds(NINE + 1000)
ETH_USDC = Pair("ETH", "USDC")
Q96 = 1 << 96


def block(at: int) -> Block:
    return Block(at // 12, HexId("0x" + "22" * 32), Seconds(at))


def swap(at: int, sqrt_price: int = Q96) -> PricedBlock:
    return PricedBlock(block(at), SqrtPriceX96(sqrt_price))


class OnePool(Chain):
    """A chain of one pool that notes what it was asked."""

    def __init__(self, *path: PricedBlock, token0: Token = ETH, token1: Token = USDC, head: int = NOW) -> None:
        self.path, self.token0, self.token1 = path, token0, token1
        self.block = block(head)
        self.refusal: ZunoError | None = None
        self.since: list[Seconds] = []

    async def head(self) -> Block:
        return self.block

    async def pool(self, pool_id: HexId) -> PoolState:
        assert pool_id == POOL
        if self.refusal:
            raise self.refusal
        key = PoolKey(self.token0.address, self.token1.address, Pips(500), 10)
        price = self.path[-1].sqrt_price_x96 if self.path else SqrtPriceX96(Q96)
        return PoolState(
            POOL, key, self.token0, self.token1, price, Tick(0), 0, Pips(500), Liquidity(1), 0, 0, self.block
        )

    async def price_path(self, pool_id: HexId, since: Seconds, step: int = 3600) -> tuple[PricedBlock, ...]:
        self.since.append(since)
        return tuple(priced for priced in self.path if priced.block.timestamp >= since)


async def closes(chain: OnePool, hours: int, pair: Pair = ETH_USDC, now: Seconds = NOW) -> dict[int, Fraction]:
    fact = await PoolHistory(chain, POOL).history(pair, hours, now)
    assert len(fact.value.points) + fact.value.gaps == hours
    return {(NINE - point.at) // HOUR: point.price for point in fact.value.points}


async def test_the_price_is_in_whole_tokens_whatever_their_decimals() -> None:
    # √P = 2⁹⁶/10⁵ is 1e-10 base units of USDC for a wei: 100 USDC for an ETH.
    assert await closes(OnePool(swap(NINE - 60, Q96 // 10**5)), 1) == {
        0: Fraction((Q96 // 10**5) ** 2, 1 << 192) * 10**12
    }
    (price,) = (await closes(OnePool(swap(NINE - 60, Q96 // 10**5)), 1)).values()
    assert abs(price - 100) < Fraction(1, 10**20)


async def test_a_pool_that_holds_the_pair_the_other_way_round_gives_the_reciprocal() -> None:
    usdc_first = OnePool(swap(NINE - 60, Q96 * 10**5), token0=USDC, token1=WETH)
    assert await closes(usdc_first, 1) == {0: 100}
    assert await closes(usdc_first, 1, Pair("USDC", "WETH")) == {0: Fraction(1, 100)}


async def test_weth_counts_as_eth_and_eth_as_weth() -> None:
    for native in (ETH, WETH):
        chain = OnePool(swap(NINE - 60, Q96 // 10**5), token0=native)
        assert await closes(chain, 1, Pair("ETH", "USDC")) == await closes(chain, 1, Pair("WETH", "USDC"))


async def test_in_a_pool_of_eth_and_weth_the_exact_names_tell_the_legs_apart() -> None:
    chain = OnePool(swap(NINE - 60, 2 * Q96), token1=WETH)
    assert await closes(chain, 1, Pair("ETH", "WETH")) == {0: 4}
    assert await closes(chain, 1, Pair("WETH", "ETH")) == {0: Fraction(1, 4)}


async def test_an_hour_without_a_swap_repeats_the_last_close_and_is_counted() -> None:
    chain = OnePool(swap(NINE - 5 * HOUR + 10, Q96), swap(NINE - HOUR + 10, 2 * Q96), token1=replace(USDC, decimals=18))
    fact = await PoolHistory(chain, POOL).history(ETH_USDC, 5, NOW)
    assert [point.price for point in fact.value.points] == [1, 1, 1, 1, 4]
    assert "3 of 5 hours" in fact.notes[0]
    assert fact.value.gaps == 0


@pytest.mark.parametrize("into_the_hour", [0, 1, HOUR - 1])
async def test_a_pool_that_trades_every_hour_needs_no_note(into_the_hour: int) -> None:
    chain = OnePool(*(swap(NINE - hour * HOUR + into_the_hour) for hour in range(5, 0, -1)))
    assert (await PoolHistory(chain, POOL).history(ETH_USDC, 5, NOW)).notes == ()


async def test_before_the_first_known_swap_there_is_nothing() -> None:
    assert set(await closes(OnePool(swap(NINE - 3 * HOUR - 1)), 10)) == {0, 1, 2, 3}


async def test_a_swap_in_the_second_an_hour_ends_belongs_to_the_next() -> None:
    chain = OnePool(swap(NINE - HOUR - 1, Q96), swap(NINE - HOUR, 2 * Q96), token1=replace(USDC, decimals=18))
    assert await closes(chain, 2) == {1: 1, 0: 4}


async def test_the_running_hours_swaps_are_in_no_close() -> None:
    chain = OnePool(swap(NINE - 60, Q96), swap(NINE + 60, 5 * Q96), token1=replace(USDC, decimals=18))
    assert await closes(chain, 1) == {0: 1}


async def test_a_price_is_not_carried_past_the_head_of_the_chain() -> None:
    chain = OnePool(swap(NINE - 5 * HOUR), head=NINE - 3 * HOUR + 5)
    fact = await PoolHistory(chain, POOL).history(ETH_USDC, 5, NOW)
    assert (fact.as_of, fact.value.gaps) == (NINE - 3 * HOUR, 3)
    assert fact.stale


async def test_a_chain_ahead_of_the_callers_clock_shows_nothing_of_what_is_to_come() -> None:
    chain = OnePool(
        swap(NINE - 60, Q96), swap(NINE + HOUR, 3 * Q96), head=NINE + 9 * HOUR, token1=replace(USDC, decimals=18)
    )
    assert await closes(chain, 3) == {0: 1}


async def test_asks_the_chain_for_the_window_and_the_hour_before_its_first_close() -> None:
    chain = OnePool(swap(NINE - 60))
    await closes(chain, 24)
    assert chain.since == [NINE - 24 * HOUR]


async def test_no_swap_at_all_is_unavailable() -> None:
    with pytest.raises(Unavailable, match=r"hourly.*ETH/USDC"):
        await closes(OnePool(), 24)


@pytest.mark.parametrize("refusal", [NotFound("No such pool."), PoolNotInitialized("No price yet.")])
async def test_a_pool_that_is_not_there_cannot_price(refusal: ZunoError) -> None:
    chain = OnePool()
    chain.refusal = refusal
    feed = PoolHistory(chain, POOL)
    with pytest.raises(Unavailable, match=str(refusal)) as raised:
        await feed.history(ETH_USDC, 24, NOW)
    assert raised.value.__cause__ is refusal
    with pytest.raises(Unavailable, match=str(refusal)):
        await feed.spot(ETH_USDC, NOW)


@pytest.mark.parametrize("trouble", [Unavailable("away"), Malformed("odd"), Broken("books")])
async def test_other_troubles_of_the_chain_pass_unchanged(trouble: ZunoError) -> None:
    chain = OnePool()
    chain.refusal = trouble
    with pytest.raises(type(trouble)) as raised:
        await PoolHistory(chain, POOL).history(ETH_USDC, 24, NOW)
    assert raised.value is trouble


async def test_a_history_out_of_order_is_malformed() -> None:
    with pytest.raises(Malformed, match="order"):
        await closes(OnePool(swap(NINE - 60), swap(NINE - 120)), 24)


async def test_spot_is_the_pools_own_price_dated_by_its_block() -> None:
    fact = await PoolHistory(OnePool(swap(NINE, Q96 * 10**5), token0=USDC, token1=WETH), POOL).spot(
        ETH_USDC, Seconds(NOW + 30)
    )
    assert (fact.value, fact.source, fact.as_of, fact.age) == (100, "pool price", NOW, 30)


@pytest.mark.slow
@given(
    swaps=st.lists(st.tuples(st.integers(-30 * HOUR, 2 * HOUR), st.integers(1 << 32, 1 << 159)), max_size=40),
    hours=st.integers(1, 40),
    lag=st.integers(0, 4 * HOUR),
)
async def test_each_close_is_the_price_after_the_last_swap_before_it(
    swaps: list[tuple[int, int]], hours: int, lag: int
) -> None:
    swaps = sorted({NINE + offset: sqrt_price for offset, sqrt_price in swaps}.items())
    chain = OnePool(*(swap(at, sqrt_price) for at, sqrt_price in swaps), head=NOW - lag)
    expected = {}
    for back in range(hours):
        end = NINE - back * HOUR
        before = [sqrt_price for at, sqrt_price in swaps if NINE - hours * HOUR <= at < end]
        if before and end <= NOW - lag:
            expected[back] = Fraction(before[-1] ** 2 * 10**12, 1 << 192)
    if expected:
        assert await closes(chain, hours) == expected
    else:
        with pytest.raises(Unavailable):
            await closes(chain, hours)
