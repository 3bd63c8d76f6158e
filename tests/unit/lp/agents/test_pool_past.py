"""A pool's days: those whose variance is known, odd tokens, quiet days, changing fees, and rewards the owner names."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest

from tests.wire.debating import feeds_of_sim, observed
from zuno.adapters.chain.sim.chain import SimChain
from zuno.adapters.chain.sim.world_file import SimFile
from zuno.adapters.chain.world import WALLET
from zuno.amm.integers import Q96, Q128
from zuno.amm.model import Block, PoolKey, PoolState
from zuno.amm.ticks import sqrt_price_at_tick
from zuno.kernel.errors import Unavailable
from zuno.kernel.text import Token
from zuno.kernel.units import Address, HexId, Liquidity, Pips, Seconds, SqrtPriceX96, Tick
from zuno.lp.agents.observe import Observer, Sources
from zuno.lp.agents.pool_past import Growth, Reference, add_rewards, hold_against, read_growth
from zuno.lp.model.debate import PoolFacts
from zuno.lp.model.history import GrowthSample, SwapFees
from zuno.lp.ports.market import Feeds
from zuno.lp.rules.attribution import attribute
from zuno.lp.rules.fee_cover import LogPrice, measure_fee_cover
from zuno.lp.rules.fee_yield import DAY

END = 1_700_000_000
BEGIN = END - 14 * DAY


def pool_of(decimals0: int = 18, decimals1: int = 6, *, tick: int = 0, fee: int = 500) -> PoolState:
    token0 = Token(Address("0x" + "1" * 40), "AAA", decimals0, True)
    token1 = Token(Address("0x" + "2" * 40), "BBB", decimals1, True)
    return PoolState(
        HexId("0x" + "ab" * 32),
        PoolKey(token0.address, token1.address, Pips(fee), 10),
        token0,
        token1,
        SqrtPriceX96(sqrt_price_at_tick(tick)),
        Tick(tick),
        0,
        Pips(0 if fee == 0x800000 else fee),
        Liquidity(10**18),
        0,
        0,
        Block(1, HexId("0x" + "cd" * 32), Seconds(END)),
    )


def growth_of(pool: PoolState, fees: list[int]) -> Growth:
    """Fees of each day per unit of liquidity, X128 of token1."""
    marks = [GrowthSample(Seconds(BEGIN + n * DAY), 0, sum(fees[:n]), pool.sqrt_price_x96) for n in range(15)]
    return Growth(tuple(marks), "14 d", "archive")


def zigzag(size: int = 1_000_000, begin: int = BEGIN) -> list[LogPrice]:
    """A log price that jumps there and back every five minutes."""
    return [(at, size * (at // 300 % 2)) for at in range(begin, END + 1, 300)]


DAILY = 288 * 0.001**2
"""The variance of a day of it."""


@pytest.mark.parametrize(
    ("decimals0", "decimals1", "tick"), [(18, 6, -200_000), (0, 30, 690_000), (30, 0, -690_000), (0, 0, 0)]
)
def test_tokens_of_any_decimals_have_a_cover(decimals0: int, decimals1: int, tick: int) -> None:
    pool = pool_of(decimals0, decimals1, tick=tick)
    lvr = Fraction(pool.sqrt_price_x96, Q96) * Fraction(DAILY) / 4
    growth, cover = hold_against(pool, growth_of(pool, [int(2 * lvr * Q128)] * 14), Reference(zigzag(), "seed"))
    assert (len(cover.days), cover.source, cover.minutes) == (14, "seed", None)
    assert cover.variance == pytest.approx(DAILY, rel=0.01)
    found = measure_fee_cover(cover.days)
    assert found is not None
    assert found.ratio == pytest.approx(2, rel=0.01)
    assert growth.measure().label == "14 d of archive"


def test_only_days_that_the_reference_tells_count_for_fees_too() -> None:
    pool = pool_of()
    full = growth_of(pool, [Q128] * 14)
    late, cover = hold_against(pool, full, Reference(zigzag(begin=BEGIN + 4 * DAY + 3_600), "Binance", 5))
    assert (len(cover.days), late.measure().seconds, late.measure().label) == (10, 10 * DAY, "10 d of archive")
    none, unknown = hold_against(pool, full, Reference([], "Binance", 5))
    assert (unknown.days, unknown.variance, none) == ((), None, full)


def test_a_quiet_day_counts_as_a_day_and_a_dead_pool_has_no_cover() -> None:
    pool = pool_of(fee=100)
    quiet = [(at, log) for at, log in zigzag() if not 5 * DAY <= at - BEGIN <= 6 * DAY]
    _, cover = hold_against(pool, growth_of(pool, [*[Q128] * 5, 0, *[Q128] * 8]), Reference(quiet, "x", own=True))
    assert (len(cover.days), cover.minutes) == (14, 5)
    assert [number for number, day in enumerate(cover.days) if not day.fees and not day.lvr] == [5]
    still = growth_of(pool, [0] * 14)
    _, dead = hold_against(pool, still, Reference([], "the pool's own price", own=True))
    assert (dead.days, dead.variance) == ((), None)
    assert measure_fee_cover(dead.days) is None


def test_without_a_reference_the_fee_says_how_long_a_return_is() -> None:
    walk, log = list[LogPrice](), 0
    for number, at in enumerate(range(BEGIN, END + 1, 300)):
        log += 2_000_000 * (1 if (number * 7_919 + number // 5) % 11 < 5.5 else -1)
        walk.append((at, log))
    spans = []
    for fee in (100, 500, 3_000, 10_000):
        pool = pool_of(fee=fee)
        _, cover = hold_against(pool, growth_of(pool, [Q128] * 14), Reference(walk, "own", own=True))
        spans.append(cover.minutes)
        assert (cover.days == ()) is (cover.minutes is None)
    known = [span or 10_000 for span in spans]
    assert known == sorted(known)
    assert known[0] < known[-1]
    dynamic = replace(pool_of(fee=0x800000), lp_fee=Pips(100))
    _, cover = hold_against(dynamic, growth_of(dynamic, [Q128] * 14), Reference(walk, "own", own=True))
    assert cover.minutes == spans[0], "a changing fee counts as it is now"


def test_rewards_are_fees_of_all_liquidity_in_range_and_say_so() -> None:
    pool = pool_of(18, 6)
    growth = add_rewards(growth_of(pool, [Q128] * 14), pool, Fraction(120))
    window = growth.measure()
    assert window.growth1_x128 - 14 * Q128 == pytest.approx(14 * 120 * 10**6 * Q128 / 10**18, rel=1e-9)
    assert "120 BBB of rewards" in window.label


class SwapsAlone(SimChain):
    """A node without past state, whose pool is no older than `opened_before` seconds."""

    opened_before = 14 * DAY

    async def pool_at(self, pool_id: HexId, moment: Seconds) -> PoolState:
        raise Unavailable("not kept")

    async def swap_fees(self, pool_id: HexId, since: Seconds) -> SwapFees:
        begin = Seconds(max(since, (await self.head()).timestamp - self.opened_before))
        return await super().swap_fees(pool_id, begin)


@pytest.mark.parametrize(
    ("age", "window", "days"),
    [(14 * DAY, "14 d", 14), (11 * DAY, "14 d", 11), (10 * DAY, "7 d", 7), (5 * DAY, "24 h", 1)],
)
async def test_swaps_must_reach_back_over_most_of_the_window(tmp_path: Path, age: int, window: str, days: int) -> None:
    chain = SwapsAlone(SimFile(tmp_path))
    chain.opened_before = age
    whole = SimChain(SimFile(tmp_path))
    for pool in (await chain.pools()).pools:
        growth, state = await read_growth(pool, chain, None), await read_growth(pool, whole, None)
        assert (growth.window, growth.source) == (window, "Swap logs")
        assert days - 1 <= len(growth.marks) - 1 <= days + 1
        assert growth.edges == sorted(set(growth.edges))
        for mark, after in pairwise(growth.marks):
            (there,) = [one for one in state.marks if one.at == after.at]
            assert after.sqrt_price_x96 == there.sqrt_price_x96
            before = [one for one in state.marks if one.at == mark.at]
            if before:
                grown = there.growth0_x128 - before[0].growth0_x128
                assert after.growth0_x128 - mark.growth0_x128 == pytest.approx(grown, rel=0.01)


async def look(chain: SimChain, feeds: Feeds | None = None) -> PoolFacts:
    pool = (await chain.pools()).pools[1]
    sources = Sources((await chain.head()).timestamp)
    observer = Observer(chain, feeds_of_sim(chain))
    return await observer.observe_pool(pool, feeds or observer.feeds_of(chain, pool.id), sources)


async def test_moves_within_an_hour_count_each(tmp_path: Path) -> None:
    """An 8 % fall and a 9 % rise a block later."""
    chain = SimChain(SimFile(tmp_path))
    position = (await chain.owned(WALLET)).ids[0]
    lvr = [attribute(await chain.history(position, None)).lvr_token0]
    variance = []
    for percent in (None, "-8", "9"):
        if percent is not None:
            await chain.move(Decimal(percent))
            lvr.append(attribute(await chain.history(position, None)).lvr_token0)
        cover = (await look(chain)).cover
        assert cover is not None
        assert cover.variance is not None
        variance.append(14 * cover.variance)
    assert variance[1] - variance[0] == pytest.approx(0.0834**2, rel=0.01)
    assert variance[2] - variance[1] == pytest.approx(0.0862**2, rel=0.01)
    assert lvr[0] < lvr[1] < lvr[2]


async def test_the_world_without_its_seed_reads_the_pools_own_price(tmp_path: Path) -> None:
    chain = SimChain(SimFile(tmp_path))
    pool = (await chain.pools()).pools[1]
    feeds = replace(feeds_of_sim(chain)(chain, pool.id), reference=None)
    seeded, own = await look(chain), await look(chain, feeds)
    assert seeded.cover is not None
    assert own.cover is not None
    assert (seeded.cover.source, own.cover.minutes is None) == ("seed", False)
    with_seed, without = measure_fee_cover(seeded.cover.days), measure_fee_cover(own.cover.days)
    assert with_seed is not None
    assert without is not None
    assert without.ratio == pytest.approx(with_seed.ratio, rel=0.1)


async def test_rewards_of_the_settings_are_in_fees_and_cover_and_are_named(tmp_path: Path) -> None:
    chain = SimChain(SimFile(tmp_path))
    poor, feeds_of = (await chain.pools()).pools[0], feeds_of_sim(chain)
    sources = Sources((await chain.head()).timestamp)
    plain, paid = [
        await Observer(chain, feeds_of, rewards=rewards).observe_pool(poor, feeds_of(chain, poor.id), sources)
        for rewards in ({}, {poor.id: Fraction(20_000)})
    ]
    covers = [measure_fee_cover(facts.cover.days) for facts in (plain, paid) if facts.cover is not None]
    assert all(cover is not None for cover in covers)
    assert covers[0].high < 1 < covers[1].ratio  # type: ignore[union-attr]
    assert paid.fees is not None
    assert "rewards" in paid.fees.label
    assert [facts.cover.rewarded for facts in (plain, paid) if facts.cover is not None] == [False, True]


async def test_whoever_reads_a_pool_again_counts_the_same_rewards_over_the_same_time(tmp_path: Path) -> None:
    chain = SimChain(SimFile(tmp_path))
    context = await observed(tmp_path)
    facts = context.scenes[0]
    rewards = {facts.pool.id: Fraction(1_000)}
    week = add_rewards(await read_growth(facts.pool, chain, None, ((7 * DAY, "7 d"),)), facts.pool, Fraction(1_000))
    claimed = context.model_copy(update={"scenes": (facts.model_copy(update={"fees": week.measure()}),)})
    (own,) = await Observer(chain, feeds_of_sim(chain), None, rewards).observe_again(claimed)
    assert own.fees is not None
    assert facts.fees is not None
    assert (own.fees.seconds, own.fees.growth1_x128) == (7 * DAY, week.measure().growth1_x128)
    assert own.fees.seconds < facts.fees.seconds
