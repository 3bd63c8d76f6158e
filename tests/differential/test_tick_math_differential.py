"""Our ticks against TickMath itself."""

from __future__ import annotations

import random

import pytest

from tests.differential.onchain.engines import Engine
from tests.differential.onchain.v4 import Refused, call_data, returned
from zuno.amm.ticks import MAX_SQRT_PRICE, MAX_TICK, MIN_SQRT_PRICE, MIN_TICK, sqrt_price_at_tick, tick_at_sqrt_price
from zuno.kernel.errors import PoolRefusal

CHUNKS = 10
TICKS_PER_CHUNK = 2_100


def edges() -> set[int]:
    """Both ends, zero, and the neighbours of every power of two, where another factor sets in."""
    found = {MIN_TICK, MIN_TICK + 1, MAX_TICK - 1, MAX_TICK, -1, 0, 1}
    for power in (1 << bit for bit in range(20)):
        found |= {sign * (power + near) for sign in (-1, 1) for near in (-1, 0, 1)}
    return {tick for tick in found if MIN_TICK <= tick <= MAX_TICK}


def price_on_chain(engine: Engine, contract: str, tick: int) -> int:
    return int.from_bytes(returned(engine.peek(contract, call_data("getSqrtPriceAtTick", ["int24"], [tick]))), "big")


def tick_on_chain(engine: Engine, contract: str, price: int) -> int:
    reply = engine.peek(contract, call_data("getTickAtSqrtPrice", ["uint160"], [price]))
    return int.from_bytes(returned(reply), "big", signed=True)


def compare(engine: Engine, contract: str, tick: int, offset: int) -> None:
    """Forward at the tick, and back from a price inside it."""
    price = sqrt_price_at_tick(tick)
    assert price == price_on_chain(engine, contract, tick), f"sqrt_price_at_tick({tick})"
    inside = min(max(price + offset, MIN_SQRT_PRICE), MAX_SQRT_PRICE - 1)
    assert tick_at_sqrt_price(inside) == tick_on_chain(engine, contract, inside), f"tick_at_sqrt_price({inside})"


@pytest.mark.soak(every=5)
@pytest.mark.parametrize("seed", range(CHUNKS))
def test_random_ticks_equal_the_contract(engine: Engine, tick_math: str, seed: int) -> None:
    dice = random.Random(seed)
    for tick in dice.sample(range(MIN_TICK, MAX_TICK + 1), TICKS_PER_CHUNK):
        width = sqrt_price_at_tick(tick) // 20_000
        compare(engine, tick_math, tick, dice.choice([0, -1, 1, dice.randint(-width, width)]))


@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_edges_equal_the_contract(engine: Engine, tick_math: str, offset: int) -> None:
    for tick in sorted(edges()):
        compare(engine, tick_math, tick, offset)


@pytest.mark.parametrize("tick", [MIN_TICK - 1, MAX_TICK + 1, -(1 << 23), (1 << 23) - 1])
def test_a_tick_beyond_the_ends_is_refused_alike(engine: Engine, tick_math: str, tick: int) -> None:
    with pytest.raises(Refused) as theirs:
        price_on_chain(engine, tick_math, tick)
    with pytest.raises(PoolRefusal) as ours:
        sqrt_price_at_tick(tick)
    assert type(ours.value).__name__ == str(theirs.value)


@pytest.mark.parametrize("price", [0, MIN_SQRT_PRICE - 1, MAX_SQRT_PRICE, (1 << 160) - 1])
def test_a_price_beyond_the_ends_is_refused_alike(engine: Engine, tick_math: str, price: int) -> None:
    with pytest.raises(Refused) as theirs:
        tick_on_chain(engine, tick_math, price)
    with pytest.raises(PoolRefusal) as ours:
        tick_at_sqrt_price(price)
    assert type(ours.value).__name__ == str(theirs.value)
