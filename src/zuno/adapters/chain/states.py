"""Pools, positions and their changes in the desk's types, out of v4's own numbers: the same for every chain."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeAlias

from zuno.amm.liquidity import amounts_for_liquidity
from zuno.amm.model import Block, LpPosition, PoolKey, PoolState, Range
from zuno.amm.pool import PositionInfo, Slot0
from zuno.amm.ticks import cached_sqrt_price_at_tick
from zuno.kernel.text import Token
from zuno.kernel.units import Address, Amount, HexId, Liquidity, Pips, SqrtPriceX96, Tick, Wei
from zuno.lp.model.history import PositionEvent, PositionSnapshot

Two: TypeAlias = tuple[int, int]
"""A figure of token0 and one of token1."""


@dataclass(frozen=True, slots=True)
class Share:
    """A record's positions among all of the wallet's that a transaction touched."""

    ours: Collection[int]
    everyone: Collection[int]

    def of(self, amount: int) -> int:
        """Equal parts that add up to the whole, whichever record asks."""
        order = sorted(self.everyone)
        parts = [amount * (at + 1) // len(order) - amount * at // len(order) for at in range(len(order))]
        return sum(part for token, part in zip(order, parts, strict=True) if token in self.ours)


def amounts_held(sqrt_price_x96: int, held: Range, liquidity: int, *, round_up: bool = False) -> Two:
    """What liquidity in a range is worth at a price, without fees."""
    lower, upper = cached_sqrt_price_at_tick(held.lower), cached_sqrt_price_at_tick(held.upper)
    return amounts_for_liquidity(sqrt_price_x96, lower, upper, liquidity, round_up=round_up)


def build_pool_state(
    pool_id: HexId, key: PoolKey, tokens: tuple[Token, Token], slot0: Slot0, liquidity: int, growth: Two, block: Block
) -> PoolState:
    price, tick, fee = SqrtPriceX96(slot0.sqrt_price_x96), Tick(slot0.tick), Pips(slot0.lp_fee)
    return PoolState(pool_id, key, *tokens, price, tick, slot0.protocol_fee, fee, Liquidity(liquidity), *growth, block)


def build_position(
    id: int, chain: str, owner: Address, pool: PoolState, held: Range, liquidity: int, amounts: Two, fees: Two,
    subscribed: bool = False,
) -> LpPosition:  # fmt: skip
    principal = Amount(amounts[0]), Amount(amounts[1])
    earned = Amount(fees[0]), Amount(fees[1])
    return LpPosition(id, chain, owner, pool, held, Liquidity(liquidity), *principal, *earned, subscribed)


def build_snapshot(
    id: int, held: Range, block: Block, sqrt_price_x96: int, info: PositionInfo, worth: Two, inside: Two
) -> PositionSnapshot:
    liquidity, growth0, growth1 = info
    price = SqrtPriceX96(sqrt_price_x96)
    return PositionSnapshot(id, held, block, price, Liquidity(liquidity), *worth, *inside, growth0, growth1)


def build_event(
    id: int, held: Range, block: Block, tx: HexId, sqrt_price_x96: int, delta: int, after: PositionInfo, paid: Two,
    gas: Wei = Wei(0), gas_paid: Wei | None = None,
) -> PositionEvent:  # fmt: skip
    liquidity, growth0, growth1 = after
    price, left = SqrtPriceX96(sqrt_price_x96), Liquidity(liquidity)
    return PositionEvent(id, held, block, tx, price, delta, left, *paid, growth0, growth1, gas, gas_paid)
