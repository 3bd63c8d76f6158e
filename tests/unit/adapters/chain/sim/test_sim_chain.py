"""The simulated chain behind its socket: one world for each process, with the devnet's clock and prices of gas."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from zuno.adapters.chain.sim.chain import SimChain
from zuno.adapters.chain.sim.world_file import SimFile
from zuno.adapters.chain.world import GENESIS_TIME, HOUR, HOURS, pool_specs
from zuno.kernel.units import Seconds
from zuno.lp.model.history import PositionEvent
from zuno.lp.rules.attribution import attribute

pytestmark = pytest.mark.slow

ENDED = GENESIS_TIME + HOURS * HOUR
WEEK_AGO = Seconds(ENDED - 7 * 24 * HOUR)
POOL = pool_specs()[0].id


@pytest.mark.soak
async def test_another_command_cannot_mix_its_world_into_ours(tmp_path: Path) -> None:
    """The past is played from what was read at opening, even when the file has become another world since."""
    ours, theirs = SimChain(SimFile(tmp_path)), SimChain(SimFile(tmp_path))
    await theirs.move(Decimal(3))
    before = await ours.history(1, WEEK_AGO), await ours.pool_at(POOL, WEEK_AGO), await ours.positions([1])
    await theirs.reset(8)
    after = await ours.history(1, WEEK_AGO), await ours.pool_at(POOL, WEEK_AGO), await ours.positions([1])
    assert after == before
    assert attribute(after[0]).in_token1.residual == 0
    assert await SimChain(SimFile(tmp_path)).pool_at(POOL, WEEK_AGO) != before[1]


async def test_a_moment_after_a_move_is_the_world_with_that_move(tmp_path: Path) -> None:
    chain = SimChain(SimFile(tmp_path))
    moved = await chain.move(Decimal(3))
    await chain.move(Decimal(-1))
    between = await chain.pool_at(POOL, moved.block.timestamp)
    assert between.block == moved.block
    assert between.sqrt_price_x96 != (await chain.pool(POOL)).sqrt_price_x96


async def test_moves_are_kept_one_after_the_other(tmp_path: Path) -> None:
    for percent in ("1", "2", "-4"):
        await SimChain(SimFile(tmp_path)).move(Decimal(percent))
    chain = SimChain(SimFile(tmp_path))
    assert (await chain.head()).timestamp == ENDED + 3 * 12
    assert chain.latest().reference == 10**6 * chain.reference_closes()[-1][1]
    assert len(chain.reference_closes()) == HOURS + 1 + 3


async def test_a_block_takes_twelve_seconds(tmp_path: Path) -> None:
    assert (await SimChain(SimFile(tmp_path)).move(Decimal(1))).block.timestamp == ENDED + 12


async def test_a_mint_costs_what_the_real_contracts_were_measured_to_cost(tmp_path: Path) -> None:
    chain = SimChain(SimFile(tmp_path))
    history, gas = await chain.history(1, None), await chain.gas()
    minted = [event for event in history.events if isinstance(event, PositionEvent)]
    assert [event.gas for event in minted] == [419_478 * gas.price]
    assert gas.price == 2 * 10**9
