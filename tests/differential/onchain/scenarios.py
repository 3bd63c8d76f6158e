"""Random lives of a pool: worlds say what is likely in them, a seed says what happens."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from zuno.amm.fees import DYNAMIC_FEE_FLAG
from zuno.amm.liquidity import max_liquidity_per_tick
from zuno.amm.pool import Pool
from zuno.amm.ticks import (
    MAX_SQRT_PRICE,
    MAX_TICK,
    MIN_SQRT_PRICE,
    MIN_TICK,
    floor_to_spacing,
    max_usable_tick,
    min_usable_tick,
    sqrt_price_at_tick,
)

SALTS = (0, 1, (1 << 256) - 1)


@dataclass(frozen=True, slots=True)
class World:
    name: str
    fee: int = 3000
    tick_spacing: int = 60
    start: tuple[int, int] = (-5_000, 5_000)
    """Ticks between which the pool starts."""
    reach: int = 20_000
    """How many ticks a swap without a limit of its own may travel: thousands of empty words teach nothing."""
    width: int = 40
    """Widest range, in spacings."""
    liquidity_bits: tuple[int, int] = (50, 75)
    amount_bits: tuple[int, int] = (20, 70)
    ranges: int = 8
    stack: int = 0
    """Adjacent ranges minted before anything else, so that one swap crosses many ticks."""
    word_edges: bool = False
    """Put ranges on both sides of bitmap word edges."""
    protocol_fee: bool = False
    lp_fee: int = 0
    """LP fee a dynamic pool is given at first."""
    hostile: float = 0.08
    """Share of steps that ought to be refused."""
    steps: int = 30


WORLDS = (
    World("plain"),
    World("protocol-on-0.3%", protocol_fee=True),
    World("protocol-on-1%", fee=10_000, tick_spacing=200, width=12, protocol_fee=True),
    World("protocol-without-lp-fee", fee=0, tick_spacing=10, reach=3_000, protocol_fee=True),
    World("many-crossings", fee=500, tick_spacing=10, reach=4_000, stack=24, ranges=26, amount_bits=(50, 80), steps=46),
    World("narrowest", fee=100, tick_spacing=1, reach=800, width=30, liquidity_bits=(60, 90), amount_bits=(30, 90)),
    World("word-edges", tick_spacing=3, reach=2_500, word_edges=True, liquidity_bits=(40, 60), amount_bits=(20, 60)),
    World("salts", ranges=2, liquidity_bits=(40, 60)),
    World("lowest-prices", tick_spacing=200, start=(MIN_TICK, MIN_TICK + 9_000), amount_bits=(0, 90)),
    World("highest-prices", tick_spacing=200, start=(MAX_TICK - 9_000, MAX_TICK - 1), amount_bits=(0, 90)),
    World("dust", liquidity_bits=(0, 20), amount_bits=(0, 16)),
    World(
        "widest-and-fullest",
        fee=3000,
        tick_spacing=32_767,
        start=(-800_000, 800_000),
        reach=2_000_000,
        width=50,
        liquidity_bits=(90, 124),
        amount_bits=(60, 127),
    ),
    World("growth-wraps", fee=1_000_000, liquidity_bits=(0, 2), amount_bits=(126, 127), ranges=3),
    World("dynamic-fee", fee=DYNAMIC_FEE_FLAG, protocol_fee=True, lp_fee=2_500),
    World("hostile", hostile=0.6, protocol_fee=True),
)


@dataclass(frozen=True, slots=True)
class Step:
    """A method of the pool, and of its twin on chain, with its arguments."""

    method: str
    arguments: tuple[Any, ...]


class Life:
    """The steps of one scenario, each chosen by dice and by the state the pool is in."""

    def __init__(self, world: World, seed: int, owners: tuple[str, str]) -> None:
        self._world = world
        self._dice = random.Random(f"{world.name}/{seed}")
        self._owners = owners
        self.start_tick = self._dice.randint(*world.start)
        price = sqrt_price_at_tick(self.start_tick)
        next_price = sqrt_price_at_tick(self.start_tick + 1)
        self.start_price = self._dice.choice([price, self._dice.randrange(price, next_price)])
        self._lowest = min_usable_tick(world.tick_spacing)
        self._highest = max_usable_tick(world.tick_spacing)
        self._ranges = [self._a_range() for _ in range(world.ranges)]

    def steps(self, pool: Pool) -> Iterator[Step]:
        dice, world = self._dice, self._world
        if world.lp_fee:
            yield Step("set_lp_fee", (world.lp_fee,))
        if world.protocol_fee:
            yield self._protocol_fee()
        if world.stack:
            middle = floor_to_spacing(self.start_tick, world.tick_spacing)
            for place in range(-world.stack // 2, world.stack // 2):
                lower = middle + place * world.tick_spacing
                yield self._mint((lower, lower + world.tick_spacing * dice.randint(1, 3)))
        else:
            yield self._mint(self._around(pool))
        for _ in range(world.steps - world.stack):
            if dice.random() < world.hostile:
                yield self._hostile(pool)
            else:
                yield dice.choices(
                    [
                        self._mint(),
                        self._mint(self._at_the_price(pool)),
                        self._touch(pool),
                        self._swap(pool),
                        self._fee_change(),
                    ],
                    [3, 1, 4, 9, 0.5],
                )[0]

    # --- what can happen

    def _mint(self, ticks: tuple[int, int] | None = None) -> Step:
        lower, upper = ticks or self._dice.choice(self._ranges)
        return self._modify(lower, upper, self._size(self._world.liquidity_bits))

    def _modify(self, lower: int, upper: int, delta: int) -> Step:
        owner, salt = self._dice.choice(self._owners), self._dice.choice(SALTS)
        return Step("modify_liquidity", (owner, lower, upper, delta, salt))

    def _touch(self, pool: Pool) -> Step:
        """Collect from, or burn a part or all of, a live position."""
        live = [(key, info.liquidity) for key, info in pool.positions.items() if info.liquidity]
        if not live:
            return self._mint()
        (owner, lower, upper, salt), liquidity = self._dice.choice(live)
        delta = -self._dice.choice([0, liquidity, liquidity // 2, self._dice.randint(0, liquidity)])
        return Step("modify_liquidity", (owner, lower, upper, delta, salt))

    def _swap(self, pool: Pool) -> Step:
        zero_for_one = self._dice.random() < 0.5
        amount = self._size(self._world.amount_bits) * self._dice.choice([-1, -1, 1])
        return Step("swap", (zero_for_one, amount, self._limit(pool, zero_for_one)))

    def _limit(self, pool: Pool, zero_for_one: bool) -> int:
        """Far away, on a tick exactly (an initialised one or the edge of a word), or anywhere."""
        price, tick, _, _ = pool.slot0
        sign = -1 if zero_for_one else 1
        word = 256 * pool.tick_spacing
        ahead = [other for other in pool.ticks if (other - tick) * sign > 0]
        edge = floor_to_spacing(tick, pool.tick_spacing) // word * word + (0 if zero_for_one else word)
        choice = self._dice.random()
        if choice < 0.15 and ahead:
            target = (
                min(ahead, key=lambda other: abs(other - tick))
                if self._dice.random() < 0.5
                else self._dice.choice(ahead)
            )
        elif choice < 0.25:
            target = edge
        elif choice < 0.4:
            target = tick + sign * self._dice.randint(0, self._world.reach)
        else:
            target = tick + sign * self._world.reach
        limit = sqrt_price_at_tick(min(max(target, MIN_TICK), MAX_TICK))
        limit += self._dice.choice([0, 0, 0, 1, -1])
        if zero_for_one:
            return min(max(limit, MIN_SQRT_PRICE + 1), price - 1)
        return max(min(limit, MAX_SQRT_PRICE - 1), price + 1)

    def _fee_change(self) -> Step:
        if self._world.fee == DYNAMIC_FEE_FLAG and self._dice.random() < 0.5:
            return Step("set_lp_fee", (self._dice.choice([0, 1, 500, 30_000, 999_999, 1_000_000]),))
        return self._protocol_fee() if self._world.protocol_fee else self._mint()

    def _protocol_fee(self) -> Step:
        return Step("set_protocol_fee", tuple(self._dice.choice([0, 1, 250, 999, 1_000]) for _ in range(2)))

    def _hostile(self, pool: Pool) -> Step:
        dice = self._dice
        spacing = pool.tick_spacing
        lower, upper = dice.choice(self._ranges)
        size = self._size(self._world.liquidity_bits)
        most = max_liquidity_per_tick(spacing)
        price = pool.slot0.sqrt_price_x96
        far = {True: MIN_SQRT_PRICE + 1, False: MAX_SQRT_PRICE - 1}
        way = dice.random() < 0.5
        return dice.choice(
            [
                self._modify(upper, lower, size),
                self._modify(lower, lower, size),
                self._modify(MIN_TICK - spacing, upper, size),
                self._modify(lower, MAX_TICK + spacing, size),
                self._modify(lower + dice.randint(1, 40), upper, size),
                self._modify(lower, upper - dice.randint(1, 40), size),
                self._modify(lower, upper, dice.choice([most, most + 1, most - 1, 1 << 126])),
                self._modify(lower, upper, (1 << 127) - 1),
                self._modify(lower, upper, dice.choice([1 << 127, -(1 << 127) - 1, (1 << 255) - 1, -(1 << 255)])),
                self._modify(lower, upper, -(1 << 127)),
                self._modify(lower, upper, -self._size((1, 126))),
                self._modify(lower, upper, 0),
                self._modify(*self._a_range(), 0),
                Step("swap", (way, 0, far[way])),
                Step("swap", (way, -1, price)),
                Step("swap", (way, -1, far[not way])),
                Step("swap", (way, 1, dice.choice([0, MIN_SQRT_PRICE, MAX_SQRT_PRICE, (1 << 160) - 1]))),
                # One more than int128 holds. At exactly 2^127 the pool still says yes and only settling says no.
                Step("swap", (way, -(1 << dice.choice([127, 128, 200])) - 1, self._limit(pool, way))),
                Step("swap", (way, -(1 << 255), self._limit(pool, way))),
                Step("swap", (way, (1 << dice.choice([127, 128, 200, 255])) - 1, self._limit(pool, way))),
                Step("set_protocol_fee", (1_001, 0)),
                Step("set_protocol_fee", (0, 1_001)),
                Step("set_lp_fee", (1_000_001,)),
            ]
        )

    # --- sizes and places

    def _size(self, bits: tuple[int, int]) -> int:
        most = self._dice.randint(*bits)
        return self._dice.randint(1, (1 << most) - 1) if most > 1 else 1

    def _a_range(self) -> tuple[int, int]:
        dice, world = self._dice, self._world
        spacing = world.tick_spacing
        if world.word_edges:
            edge = floor_to_spacing(self.start_tick, spacing) // (256 * spacing) + dice.randint(-2, 2)
            lower = (edge * 256 + dice.choice([-2, -1, 0, 1])) * spacing
            return lower, lower + dice.choice([1, 2, 255, 256, 257]) * spacing
        middle = floor_to_spacing(self.start_tick, spacing) + dice.randint(-world.width, world.width) * spacing
        lower = min(max(middle, self._lowest), self._highest - spacing)
        upper = min(lower + dice.randint(1, world.width) * spacing, self._highest)
        return lower, upper

    def _at_the_price(self, pool: Pool) -> tuple[int, int]:
        """A range that begins or ends where the price stands: its tick may be the pool's own."""
        spacing = pool.tick_spacing
        here = floor_to_spacing(pool.slot0.tick, spacing)
        lower = here - self._dice.choice([0, 0, 1]) * spacing
        lower = min(max(lower, self._lowest), self._highest - spacing)
        return lower, lower + spacing

    def _around(self, pool: Pool) -> tuple[int, int]:
        """A range with the price inside, so that most scenarios begin with something to trade."""
        spacing, half = pool.tick_spacing, self._world.width * pool.tick_spacing
        middle = floor_to_spacing(pool.slot0.tick, spacing)
        lower = min(max(middle - half, self._lowest), self._highest - spacing)
        return lower, max(min(middle + half, self._highest), lower + spacing)
