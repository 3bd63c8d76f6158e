"""Recorded minutes on the integer pool: the record's prices and fees, our own arithmetic, and nothing of the future."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest

from tests.paths import REAL_MINUTES
from tests.wire.earned_fees import earn_fees
from tests.wire.pool_minutes import TICK, draw_minutes
from zuno.adapters.chain.recorded.world import USDC_WETH, RecordedChain, RecordedWorld, fixed_gas
from zuno.adapters.imports.pool_minutes import read_pool_minutes
from zuno.amm.model import Range
from zuno.amm.ticks import sqrt_price_at_tick
from zuno.kernel.errors import NotFound, Refused, Unavailable
from zuno.kernel.units import HexId, Seconds, Tick, Wei
from zuno.lab.lp.fast import to_columns
from zuno.lp.model.minutes import PoolMinutes
from zuno.lp.rules.attribution import attribute

GAS = Wei(10**13)


def open_world(recorded: PoolMinutes, lower: int = TICK - 600, upper: int = TICK + 600) -> RecordedWorld:
    world = RecordedWorld(USDC_WETH, recorded, 5_000 * 10**6, 3 * 10**18)
    world.open_position(Range(Tick(lower // 10 * 10), Tick(upper // 10 * 10)), GAS)
    return world


def play_all(world: RecordedWorld) -> None:
    world.play_until(Seconds(world.minutes[-1].at // 1000 + 60))


def test_prices_are_the_records() -> None:
    recorded = draw_minutes(40)
    world = open_world(recorded)
    for row in recorded.minutes:
        world.play_until(Seconds(row.at // 1000 + 59))
        assert len(world.marks) == (row.at - recorded.minutes[0].at) // 60_000, "a minute was played before it was over"
        world.play_until(Seconds(row.at // 1000 + 60))
        assert world.state().sqrt_price_x96 == sqrt_price_at_tick(row.close_tick)
    assert world.at_end


@pytest.mark.slow
@pytest.mark.parametrize("reach", [20, 60, 300])
def test_exact_and_fast_agree(reach: int) -> None:
    recorded = draw_minutes(600, seed=reach, step=12)
    world = open_world(recorded, TICK - reach, TICK + reach)
    held, liquidity = world.range, world.position("recorded").liquidity
    assert held is not None
    play_all(world)
    exact, fast = world.position("recorded"), earn_fees(to_columns(recorded), held, liquidity, 500)
    assert exact.fees0 == pytest.approx(fast.fees0, rel=1e-5)
    assert exact.fees1 == pytest.approx(fast.fees1, rel=1e-5)
    assert exact.fees0 > 0 < exact.fees1


@pytest.mark.slow
def test_exact_and_fast_agree_on_real_days() -> None:
    if not REAL_MINUTES.is_dir():
        pytest.skip("the minute rows of a real pool are not on this machine")
    recorded = read_pool_minutes(REAL_MINUTES / "2022-07-19.csv.gz")
    world = RecordedWorld(USDC_WETH, recorded, 5_000 * 10**6, 3 * 10**18)
    tick = recorded.minutes[0].open_tick // 10 * 10
    world.open_position(Range(Tick(tick - 100), Tick(tick + 50)), GAS)
    held, liquidity = world.range, world.position("recorded").liquidity
    assert held is not None
    play_all(world)
    exact, fast = world.position("recorded"), earn_fees(to_columns(recorded), held, liquidity, 500)
    assert exact.fees0 == pytest.approx(fast.fees0, rel=1e-3)
    assert exact.fees1 == pytest.approx(fast.fees1, rel=1e-3)


@pytest.mark.slow
def test_every_unit_is_explained_through_rebalances() -> None:
    recorded = draw_minutes(300, seed=5, step=15)
    world = open_world(recorded, TICK - 40, TICK + 40)
    first = recorded.minutes[0].at // 1000
    for minute, shift in ((60, -30), (150, 0), (200, 60)):
        world.play_until(Seconds(first + 60 * minute))
        world.close_position(GAS)
        tick = world.state().tick // 10 * 10
        world.open_position(Range(Tick(tick - 50 + shift), Tick(tick + 60 + shift)), GAS)
    play_all(world)
    explained = attribute(world.history())
    assert explained.exact
    assert explained.in_token0.fees > 0 < explained.in_token0.swap_cost
    assert explained.gas_wei == 7 * GAS
    world.close_position(GAS)
    assert attribute(world.history()).exact
    assert min(world.balances) > 0


def test_the_wallet_never_pays_more_than_it_has() -> None:
    world = RecordedWorld(USDC_WETH, draw_minutes(3), 1, 1)
    with pytest.raises(Refused):
        world.open_position(Range(Tick(TICK // 10 * 10 - 50), Tick(TICK // 10 * 10 + 50)), GAS)
    with pytest.raises(Refused):
        world.close_position(GAS)
    rich = open_world(draw_minutes(3))
    with pytest.raises(Refused):
        rich.open_position(Range(Tick(TICK // 10 * 10 - 50), Tick(TICK // 10 * 10 + 50)), GAS)
    assert min(rich.balances) >= 0


def test_almost_everything_is_put_to_work() -> None:
    world = open_world(draw_minutes(3))
    price = world.state().price
    idle = world.balances[0] + world.balances[1] / price
    assert idle / (5_000 * 10**6 + 3 * 10**18 / price) < Fraction(1, 10_000)


def test_a_minute_without_liquidity_pays_nothing() -> None:
    recorded = draw_minutes(2)
    empty = PoolMinutes((recorded.minutes[0], replace(recorded.minutes[1], liquidity=0)), recorded.repairs)
    world = open_world(empty)
    world.play_until(Seconds(empty.minutes[0].at // 1000 + 60))
    before = world.position("recorded")
    play_all(world)
    after = world.position("recorded")
    assert (after.fees0, after.fees1) == (before.fees0, before.fees1)


def empty_pool(minutes: int = 3) -> PoolMinutes:
    recorded = draw_minutes(minutes)
    return replace(recorded, minutes=tuple(replace(row, liquidity=0) for row in recorded.minutes))


def test_in_a_pool_without_liquidity_nothing_is_swapped() -> None:
    world = open_world(empty_pool())
    assert [type(event).__name__ for event in world.events] == ["PositionEvent"]
    assert world.state().tick == world.minutes[0].open_tick
    play_all(world)
    assert attribute(world.history()).exact


def test_what_is_refused_leaves_no_trace() -> None:
    """Not even its gas: a transaction that fails its simulation is never sent."""
    world = RecordedWorld(USDC_WETH, empty_pool(), 0, 3 * 10**18)
    held = Range(Tick(TICK // 10 * 10 - 50), Tick(TICK // 10 * 10 + 50))
    before = (world.balances, world.head, world.state(), [*world.events])
    with pytest.raises(Refused):
        world.open_position(held, GAS)  # it needs both tokens, and nobody sells any
    assert (world.balances, world.head, world.state(), world.events) == before
    world.balances = (5_000 * 10**6, 3 * 10**18)
    world.open_position(held, GAS)
    standing = (world.balances, world.range, world.worth(), [*world.events])
    with pytest.raises(Refused):
        world.close_position(Wei(world.worth()[1] + 1))
    assert (world.balances, world.range, world.worth(), world.events) == standing


async def test_the_chain_knows_the_past_and_not_the_future() -> None:
    recorded = draw_minutes(180)
    world = open_world(recorded)
    chain = RecordedChain(world, fixed_gas(Decimal(1)))
    first = recorded.minutes[0].at // 1000
    world.play_until(Seconds(first + 7_200))
    assert (await chain.head()).timestamp == first + 7_200
    path = await chain.price_path(world.pool_id, Seconds(first))
    assert [priced.sqrt_price_x96 for priced in path] == [
        sqrt_price_at_tick(recorded.minutes[minute].close_tick) for minute in (59, 119)
    ]
    past = await chain.pool_at(world.pool_id, Seconds(first + 3_600))
    assert past.sqrt_price_x96 == path[0].sqrt_price_x96
    assert past.fee_growth_global0_x128 < (await chain.pool(world.pool_id)).fee_growth_global0_x128
    with pytest.raises(Unavailable):
        await chain.pool_at(world.pool_id, Seconds(first))
    with pytest.raises(NotFound):
        await chain.pool(HexId("0x" + "00" * 32))
    assert (await chain.positions([1, 2])).missing[0].id == 2
