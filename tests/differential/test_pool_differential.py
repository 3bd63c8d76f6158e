"""Our pool and the real PoolManager live the same random lives and must agree after every step.

A failure names its world and seed; run it alone with `pytest -k 'word-edges-7'`.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.differential.onchain.scenarios import WORLDS, Life, Step, World
from tests.differential.onchain.v4 import V4, PoolOnChain, Refused
from zuno.amm.pool import Pool, PositionKey, TickInfo
from zuno.kernel.errors import PoolRefusal

SEEDS_PER_WORLD = 16
NO_TICK = TickInfo(0, 0, 0, 0)


def outcome_on_chain(pool: PoolOnChain, step: Step, **options: bool) -> Any:
    try:
        return getattr(pool, step.method)(*step.arguments, **options)
    except Refused as refusal:
        return f"refused: {refusal}"


def outcome_of_ours(pool: Pool, step: Step) -> Any:
    before = pool.copy()
    try:
        result = getattr(pool, step.method)(*step.arguments)
    except PoolRefusal as refusal:
        assert pool == before, "a refusal left a trace"
        return f"refused: {type(refusal).__name__}"
    if step.method == "modify_liquidity":
        owner, lower, upper, _, salt = step.arguments
        assert (result.fees0, result.fees1) == before.fees_owed(owner, lower, upper, salt)
    return None if result is None else (result.amount0, result.amount1)


def compare_states(ours: Pool, theirs: PoolOnChain, seen: set[PositionKey]) -> None:
    """Every word the contract keeps for this pool that a step of this scenario can have touched."""
    spacing = ours.tick_spacing
    ticks = {tick for key in seen for tick in (key.tick_lower, key.tick_upper)}
    words: dict[int, int] = {tick // spacing >> 8: 0 for tick in ticks}
    for tick in ours.ticks:
        words[tick // spacing >> 8] |= 1 << (tick // spacing & 0xFF)
    read = theirs.read(ticks, words, seen)
    for name in ("slot0", "liquidity", "fee_growth_global0_x128", "fee_growth_global1_x128"):
        assert getattr(ours, name) == getattr(read, name), name
    assert (ours.protocol_fees_accrued0, ours.protocol_fees_accrued1) == (
        read.protocol_fees_accrued0,
        read.protocol_fees_accrued1,
    )
    assert {tick: ours.ticks.get(tick, NO_TICK) for tick in ticks} == read.ticks
    assert {key: ours.position(*key) for key in seen} == read.positions
    assert words == read.words


def compare_fees_owed(ours: Pool, theirs: PoolOnChain, position: PositionKey) -> None:
    collect = Step("modify_liquidity", (position.owner, position.tick_lower, position.tick_upper, 0, position.salt))
    expected = outcome_of_ours(ours.copy(), collect)
    assert expected == outcome_on_chain(theirs, collect, keep=False)
    if isinstance(expected, tuple):
        assert ours.fees_owed(*position) == expected


def _mark_of(seed: int) -> tuple[pytest.MarkDecorator, ...]:
    """An eighth of the seeds after every edit, half of them before a merge, all of them in soak."""
    if seed % 2:
        return (pytest.mark.soak,)
    return (pytest.mark.slow,) if seed % 8 else ()


@pytest.mark.soak(every=4)
@pytest.mark.parametrize(
    ("world", "seed"),
    [
        pytest.param(world, seed, id=f"{world.name}-{seed}", marks=_mark_of(seed))
        for world in WORLDS
        for seed in range(SEEDS_PER_WORLD)
    ],
)
def test_a_pool_lives_the_same_life_as_the_contract(v4: V4, world: World, seed: int) -> None:
    life = Life(world, seed, v4.owners)
    dice = random.Random(seed)
    ours = Pool.initialize(world.fee, world.tick_spacing, life.start_price)
    theirs = v4.open_pool(world.fee, world.tick_spacing, life.start_price, dynamic=bool(world.lp_fee))
    seen: set[PositionKey] = set()
    for number, step in enumerate(life.steps(ours)):
        try:
            assert outcome_of_ours(ours, step) == outcome_on_chain(theirs, step)
            seen |= ours.positions.keys()
            compare_states(ours, theirs, seen)
            if seen:
                compare_fees_owed(ours, theirs, dice.choice(sorted(seen)))
        except AssertionError as difference:
            pytest.fail(f"world {world.name}, seed {seed}, step {number} {step}: {difference}")


@pytest.mark.parametrize("seed", range(4))
def test_a_donation_grows_the_fees_that_the_contract_grows(v4: V4, seed: int) -> None:
    world = WORLDS[seed % len(WORLDS)]
    life = Life(world, seed, v4.owners)
    dice = random.Random(seed)
    ours = Pool.initialize(world.fee, world.tick_spacing, life.start_price)
    theirs = v4.open_pool(world.fee, world.tick_spacing, life.start_price, dynamic=bool(world.lp_fee))
    refused = 0
    for number, step in enumerate(life.steps(ours)):
        assert outcome_of_ours(ours, step) == outcome_on_chain(theirs, step)
        sizes = [0, 1, 10**6, 10**24, (1 << 127) - 1, 1 << 127]
        donation = Step("donate", (dice.choice(sizes[:4] if number % 4 else sizes), dice.choice(sizes[:4])))
        said = outcome_of_ours(ours, donation)
        assert said == outcome_on_chain(theirs, donation)
        refused += said is not None
        compare_states(ours, theirs, set(ours.positions))
    assert refused, "neither an empty pool nor an amount too large was tried"
