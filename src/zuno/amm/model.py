"""Pools, ranges and positions as they were at one block."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isqrt

from zuno.amm.fees import DYNAMIC_FEE_FLAG
from zuno.amm.ticks import cached_sqrt_price_at_tick
from zuno.kernel.text import Token, base_and_quote
from zuno.kernel.units import Address, Amount, HexId, Liquidity, Pips, Seconds, SqrtPriceX96, Tick

NO_HOOKS: Address = Address("0x" + "00" * 20)
Q192 = 1 << 192


@dataclass(frozen=True, slots=True)
class Block:
    number: int
    hash: HexId
    timestamp: Seconds


@dataclass(frozen=True, slots=True)
class PoolKey:
    """The five fields that are a v4 pool's identity."""

    currency0: Address
    currency1: Address
    fee: Pips
    tick_spacing: int
    hooks: Address = NO_HOOKS

    @property
    def order(self) -> tuple[int, int, int, int, int]:
        """How pools are listed wherever they come from: by currencies as the contracts sort them, then by fee."""
        return (int(self.currency0, 16), int(self.currency1, 16), self.fee, self.tick_spacing, int(self.hooks, 16))

    @property
    def dynamic_fee(self) -> bool:
        return self.fee == DYNAMIC_FEE_FLAG

    @property
    def has_hooks(self) -> bool:
        return self.hooks != NO_HOOKS


@dataclass(frozen=True, slots=True)
class Range:
    """A position's ticks; the upper one is outside."""

    lower: Tick
    upper: Tick

    def contains(self, tick: int) -> bool:
        return self.lower <= tick < self.upper

    @property
    def width(self) -> int:
        return self.upper - self.lower

    @property
    def edges_x96(self) -> tuple[int, int]:
        """The contracts' square-root prices of both ends."""
        return cached_sqrt_price_at_tick(self.lower), cached_sqrt_price_at_tick(self.upper)


@dataclass(frozen=True, slots=True)
class PoolState:
    id: HexId
    key: PoolKey
    token0: Token
    token1: Token
    sqrt_price_x96: SqrtPriceX96
    tick: Tick
    protocol_fee: int
    """Packed as on chain: the low 12 bits for zero-for-one, the next 12 for one-for-zero."""
    lp_fee: Pips
    liquidity: Liquidity
    fee_growth_global0_x128: int
    fee_growth_global1_x128: int
    block: Block

    @property
    def price(self) -> Fraction:
        """Base units of token1 for one base unit of token0, exactly."""
        return price_of(self.sqrt_price_x96)


@dataclass(frozen=True, slots=True)
class Depth:
    """A pool with its liquidity around the price: what a swap walks through."""

    pool: PoolState
    known: Range
    """Ticks outside were not looked at: what a swap finds there is not known."""
    net: Mapping[int, int]
    """By initialised tick in `known`, the liquidity that enters where the price crosses it upwards."""


@dataclass(frozen=True, slots=True)
class LpPosition:
    """A liquidity position at one block, worth exactly what a full burn would pay."""

    id: int
    chain: str
    owner: Address
    pool: PoolState
    range: Range
    liquidity: Liquidity
    amount0: Amount
    amount1: Amount
    fees0: Amount
    fees1: Amount
    subscribed: bool = False

    @property
    def in_range(self) -> bool:
        return self.range.contains(self.pool.tick)

    @property
    def block(self) -> Block:
        return self.pool.block


@lru_cache(maxsize=1 << 10)
def price_of(sqrt_price_x96: int) -> Fraction:
    """The exact price token1/token0 in base units behind a square-root price."""
    return Fraction(sqrt_price_x96 * sqrt_price_x96, Q192)


def whole_token1_price(sqrt_price_x96: int, token0: Token, token1: Token) -> Fraction:
    return price_of(sqrt_price_x96) * Fraction(10**token0.decimals, 10**token1.decimals)


@lru_cache(maxsize=1 << 10)
def whole_price(sqrt_price_x96: int, token0: Token, token1: Token) -> Fraction:
    """Whole quote tokens for one whole base token, the way people quote the pair."""
    price = whole_token1_price(sqrt_price_x96, token0, token1)
    base, _ = base_and_quote(token0, token1)
    return price if base is token0 else 1 / price


def sqrt_price_for(price: Fraction, token0: Token, token1: Token) -> int:
    """The inverse of `whole_price`, rounded down to what Q64.96 can hold."""
    base, _ = base_and_quote(token0, token1)
    token1_price = price if base is token0 else 1 / price
    square = token1_price * Fraction(10**token1.decimals, 10**token0.decimals) * Q192
    return isqrt(square.numerator // square.denominator)


def quote_worth(
    amount0: Fraction | int, amount1: Fraction | int, sqrt_price_x96: int, token0: Token, token1: Token
) -> Fraction:
    """Base units of the quote token that both amounts are worth at this price."""
    price, (_, quote) = price_of(sqrt_price_x96), base_and_quote(token0, token1)
    return amount0 * price + amount1 if quote is token1 else amount0 + amount1 / price
