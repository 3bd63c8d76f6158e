"""The pool: the one mutable object of this package.

Every operation computes its result first and writes it last, so a refusal changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import index
from types import MappingProxyType
from typing import Final, NamedTuple, Self

from zuno.amm import fees
from zuno.amm.integers import MAX_INT128, MAX_UINT256, MIN_INT128, to_int128, to_int256, to_uint128, to_uint256
from zuno.amm.liquidity import amounts_for_liquidity, max_liquidity_per_tick
from zuno.amm.swap import step_exact_input, step_exact_output
from zuno.amm.ticks import (
    MAX_SQRT_PRICE,
    MAX_TICK,
    MIN_SQRT_PRICE,
    MIN_TICK,
    cached_sqrt_price_at_tick,
    check_tick_spacing,
    tick_at_sqrt_price,
)
from zuno.kernel import errors
from zuno.kernel.errors import TickMisaligned

# These values are named tuples rather than dataclasses: swaps build them by the million, and a frozen
# dataclass takes three times as long to build.


class Slot0(NamedTuple):
    """The pool's price and fees; `protocol_fee` packs both directions, twelve bits each."""

    sqrt_price_x96: int
    tick: int
    protocol_fee: int
    lp_fee: int


class TickInfo(NamedTuple):
    liquidity_gross: int
    liquidity_net: int
    fee_growth_outside0_x128: int
    fee_growth_outside1_x128: int


class PositionKey(NamedTuple):
    """What makes two positions the same: the owner is lower case and 20 bytes long."""

    owner: str
    tick_lower: int
    tick_upper: int
    salt: int


class PositionInfo(NamedTuple):
    """What a position remembers since it was last touched."""

    liquidity: int
    fee_growth_inside0_last_x128: int
    fee_growth_inside1_last_x128: int


class LiquidityChange(NamedTuple):
    """What a mint, burn or collect moved, for the caller: paid in is negative, fees are in the amounts."""

    amount0: int
    amount1: int
    fees0: int
    fees1: int


class SwapResult(NamedTuple):
    """What a swap moved, seen by the caller: paid in is negative. Both fees are in the input token."""

    amount0: int
    amount1: int
    fee_amount: int
    """All fees paid, the protocol's share included."""
    protocol_fee_amount: int
    ticks_crossed: int


_UNTOUCHED_TICK: Final = TickInfo(0, 0, 0, 0)
_UNTOUCHED_POSITION: Final = PositionInfo(0, 0, 0)
_ADDRESS: Final = re.compile(r"0[xX][0-9a-fA-F]{1,40}")


@dataclass(slots=True, repr=False)
class Pool:
    """One v4 pool without its hooks, equal to the contract's to the last wei.

    The plain attributes are the contract's own storage; read them freely, change them through the methods. Pools are
    equal by state and change in place, hence have no hash.
    """

    fee: int
    """The fee of the pool's key: pips, or the dynamic-fee flag."""
    tick_spacing: int
    slot0: Slot0
    liquidity: int = 0
    fee_growth_global0_x128: int = 0
    fee_growth_global1_x128: int = 0
    protocol_fees_accrued0: int = 0
    protocol_fees_accrued1: int = 0
    _ticks: dict[int, TickInfo] = field(default_factory=dict)
    _words: TickWords = field(default_factory=dict)
    _positions: dict[PositionKey, PositionInfo] = field(default_factory=dict)

    @classmethod
    def initialize(cls, fee: int, tick_spacing: int, sqrt_price_x96: int) -> Self:
        fee, tick_spacing, sqrt_price_x96 = index(fee), index(tick_spacing), index(sqrt_price_x96)
        check_tick_spacing(tick_spacing)
        lp_fee = fees.initial_lp_fee(fee)
        return cls(fee, tick_spacing, Slot0(sqrt_price_x96, tick_at_sqrt_price(sqrt_price_x96), 0, lp_fee))

    @property
    def ticks(self) -> Mapping[int, TickInfo]:
        """The initialised ticks, in no particular order; a live, read-only view."""
        return MappingProxyType(self._ticks)

    @property
    def positions(self) -> Mapping[PositionKey, PositionInfo]:
        """Every position ever minted, as the contract keeps it: a burned one stays, with no liquidity."""
        return MappingProxyType(self._positions)

    def position(self, owner: str, tick_lower: int, tick_upper: int, salt: int) -> PositionInfo:
        """One position; all zeros when it was never minted."""
        return self._positions.get(_position_key(owner, tick_lower, tick_upper, salt), _UNTOUCHED_POSITION)

    def fee_growth_inside(self, tick_lower: int, tick_upper: int) -> tuple[int, int]:
        """Fee growth inside a range, modulo 2^256, of both tokens."""
        lower = self._ticks.get(tick_lower, _UNTOUCHED_TICK)
        upper = self._ticks.get(tick_upper, _UNTOUCHED_TICK)
        return self._growth_between(tick_lower, lower, tick_upper, upper)

    def fees_owed(self, owner: str, tick_lower: int, tick_upper: int, salt: int) -> tuple[int, int]:
        """What a collect would pay this position now."""
        info = self.position(owner, tick_lower, tick_upper, salt)
        inside0, inside1 = self.fee_growth_inside(tick_lower, tick_upper)
        return (
            fees.earned_rounding_down(inside0, info.fee_growth_inside0_last_x128, info.liquidity),
            fees.earned_rounding_down(inside1, info.fee_growth_inside1_last_x128, info.liquidity),
        )

    def set_protocol_fee(self, zero_for_one: int, one_for_zero: int) -> None:
        packed = fees.pack_protocol_fee(index(zero_for_one), index(one_for_zero))
        self.slot0 = self.slot0._replace(protocol_fee=packed)

    def set_lp_fee(self, lp_fee: int) -> None:
        """Set the LP fee of a dynamic-fee pool, as its hook would."""
        lp_fee = index(lp_fee)
        if self.fee != fees.DYNAMIC_FEE_FLAG:
            raise errors.UnauthorizedDynamicLPFeeUpdate(f"the pool's fee is fixed at {self.fee} pips")
        fees.check_lp_fee(lp_fee)
        self.slot0 = self.slot0._replace(lp_fee=lp_fee)

    def modify_liquidity(
        self, owner: str, tick_lower: int, tick_upper: int, liquidity_delta: int, salt: int
    ) -> LiquidityChange:
        """Mint (delta above zero), burn (below) or collect (zero); each of them pays out the fees owed."""
        delta = to_int128(index(liquidity_delta))
        key = _position_key(owner, tick_lower, tick_upper, salt)
        _, tick_lower, tick_upper, _ = key
        _check_range(tick_lower, tick_upper)

        before_lower = self._ticks.get(tick_lower, _UNTOUCHED_TICK)
        before_upper = self._ticks.get(tick_upper, _UNTOUCHED_TICK)
        lower, upper = before_lower, before_upper
        if delta:
            lower = self._tick_with(tick_lower, before_lower, delta, net_delta=delta)
            upper = self._tick_with(tick_upper, before_upper, delta, net_delta=-delta)
        if delta > 0:
            limit = max_liquidity_per_tick(self.tick_spacing)
            for tick, info in ((tick_lower, lower), (tick_upper, upper)):
                if info.liquidity_gross > limit:
                    raise errors.TickLiquidityOverflow(f"tick {tick} would carry more than {limit}")
        flips_lower = bool(before_lower.liquidity_gross) != bool(lower.liquidity_gross)
        flips_upper = bool(before_upper.liquidity_gross) != bool(upper.liquidity_gross)
        if flips_lower:
            check_aligned(tick_lower, self.tick_spacing)
        if flips_upper:
            check_aligned(tick_upper, self.tick_spacing)

        position = self._positions.get(key, _UNTOUCHED_POSITION)
        if not delta and not position.liquidity:
            raise errors.CannotUpdateEmptyPosition("the position has no liquidity to collect for")
        position_liquidity = to_uint128(position.liquidity + delta)
        inside0, inside1 = self._growth_between(tick_lower, lower, tick_upper, upper)
        fees0 = to_int128(fees.earned_rounding_down(inside0, position.fee_growth_inside0_last_x128, position.liquidity))
        fees1 = to_int128(fees.earned_rounding_down(inside1, position.fee_growth_inside1_last_x128, position.liquidity))
        principal0, principal1 = self._principal(tick_lower, tick_upper, delta)
        change = LiquidityChange(
            to_int128(to_int128(principal0) + fees0), to_int128(to_int128(principal1) + fees1), fees0, fees1
        )
        in_range = tick_lower <= self.slot0.tick < tick_upper
        liquidity = to_uint128(self.liquidity + delta) if in_range else self.liquidity

        # Nothing below this line can be refused.
        if delta:
            self._write_tick(tick_lower, lower, flips_lower)
            self._write_tick(tick_upper, upper, flips_upper)
            self.liquidity = liquidity
        self._positions[key] = PositionInfo(position_liquidity, inside0, inside1)
        return change

    def swap(self, zero_for_one: bool, amount_specified: int, sqrt_price_limit_x96: int) -> SwapResult:
        """Swap until the amount is used up or the limit is met; an amount below zero is exact input."""
        amount, limit = to_int256(index(amount_specified)), index(sqrt_price_limit_x96)
        zero_for_one = bool(zero_for_one)
        if not amount:
            raise errors.SwapAmountCannotBeZero("a swap needs an amount")
        price, tick, packed_protocol_fee, lp_fee = self.slot0
        protocol_fee = fees.protocol_fee_of_direction(packed_protocol_fee, zero_for_one)
        fee = fees.swap_fee(protocol_fee, lp_fee) if protocol_fee else lp_fee
        if fee >= fees.PIPS and amount > 0:
            raise errors.InvalidFeeForExactOut("the whole input would go to the fee")
        _check_price_limit(zero_for_one, price, limit)

        exact_input = amount < 0
        left = abs(amount)
        paid = received = fee_total = to_protocol = 0
        liquidity = self.liquidity
        if zero_for_one:
            growth, growth_of_output = self.fee_growth_global0_x128, self.fee_growth_global1_x128
        else:
            growth, growth_of_output = self.fee_growth_global1_x128, self.fee_growth_global0_x128
        crossed: dict[int, TickInfo] = {}
        words, spacing = self._words, self.tick_spacing
        advance = step_exact_input if exact_input else step_exact_output
        find_pause = next_tick_at_or_below if zero_for_one else next_tick_above

        while left and price != limit:
            pause, initialized = find_pause(words, tick, spacing)
            # The bitmap knows nothing of the lowest and the highest tick.
            pause = MIN_TICK if pause < MIN_TICK else MAX_TICK if pause > MAX_TICK else pause
            boundary = cached_sqrt_price_at_tick(pause)
            target = limit if (boundary < limit) == zero_for_one else boundary
            start = price
            if liquidity:
                price, amount_in, amount_out, fee_amount = advance(price, target, liquidity, left, fee, zero_for_one)
                spent = amount_in + fee_amount
                left -= spent if exact_input else amount_out
                paid += spent
                received += amount_out
                fee_total += fee_amount
                if protocol_fee:
                    # Without an LP fee the protocol takes the whole of it, rounding included.
                    share = fee_amount if not lp_fee else spent * protocol_fee // fees.PIPS
                    to_protocol += share
                    fee_amount -= share
                growth = (growth + (fee_amount << 128) // liquidity) & MAX_UINT256
            else:
                price = target  # nothing to trade with: the price falls through for free

            if price == boundary:
                if initialized:
                    gross, net, outside0, outside1 = self._ticks[pause]
                    growth0, growth1 = (growth, growth_of_output) if zero_for_one else (growth_of_output, growth)
                    crossed[pause] = TickInfo(
                        gross, net, (growth0 - outside0) & MAX_UINT256, (growth1 - outside1) & MAX_UINT256
                    )
                    liquidity = to_uint128(liquidity - net if zero_for_one else liquidity + net)
                # Stopped exactly here on the way down, the pool is already below the tick it stands on.
                tick = pause - 1 if zero_for_one else pause
            elif price != start:
                tick = tick_at_sqrt_price(price)

        if paid > -MIN_INT128 or received > MAX_INT128:
            raise errors.SafeCastOverflow("the amounts of this swap do not fit int128")

        # Nothing below this line can be refused.
        self.slot0 = Slot0(price, tick, packed_protocol_fee, lp_fee)
        self.liquidity = liquidity
        self._ticks.update(crossed)
        if zero_for_one:
            self.fee_growth_global0_x128 = growth
            self.protocol_fees_accrued0 += to_protocol
            return SwapResult(-paid, received, fee_total, to_protocol, len(crossed))
        self.fee_growth_global1_x128 = growth
        self.protocol_fees_accrued1 += to_protocol
        return SwapResult(received, -paid, fee_total, to_protocol, len(crossed))

    def donate(self, amount0: int, amount1: int) -> None:
        """Give both amounts to the liquidity in range; what does not divide by it stays in the pool."""
        amount0, amount1 = to_uint256(index(amount0)), to_uint256(index(amount1))
        if not self.liquidity:
            raise errors.NoLiquidityToReceiveFees("no liquidity is in range to receive a donation")
        growth0 = (to_int128(amount0) << 128) // self.liquidity
        growth1 = (to_int128(amount1) << 128) // self.liquidity
        self.fee_growth_global0_x128 = (self.fee_growth_global0_x128 + growth0) & MAX_UINT256
        self.fee_growth_global1_x128 = (self.fee_growth_global1_x128 + growth1) & MAX_UINT256

    def copy(self) -> Self:
        """An independent pool in the same state, to try something on."""
        return type(self)(
            self.fee,
            self.tick_spacing,
            self.slot0,
            self.liquidity,
            self.fee_growth_global0_x128,
            self.fee_growth_global1_x128,
            self.protocol_fees_accrued0,
            self.protocol_fees_accrued1,
            self._ticks.copy(),
            self._words.copy(),
            self._positions.copy(),
        )

    def __repr__(self) -> str:
        return (
            f"Pool(fee={self.fee}, tick_spacing={self.tick_spacing}, {self.slot0}, "
            f"liquidity={self.liquidity}, ticks={len(self._ticks)}, positions={len(self._positions)})"
        )

    @classmethod
    def from_depth(cls, fee: int, tick_spacing: int, slot0: Slot0, liquidity: int, net: Mapping[int, int]) -> Self:
        """A pool with this net liquidity by tick, which remembers no fees and no positions; `Malformed` where no pool
        can be like that."""
        try:
            pool = cls.initialize(fee, tick_spacing, slot0.sqrt_price_x96)
            fees.check_lp_fee(slot0.lp_fee)
            fees.pack_protocol_fee(slot0.protocol_fee & 0xFFF, slot0.protocol_fee >> 12)
            if pool.slot0.tick - slot0.tick not in (0, 1):
                raise ValueError(f"tick {slot0.tick} does not belong to price {slot0.sqrt_price_x96}")
            pool.slot0, pool.liquidity = slot0, to_uint128(liquidity)
            for tick, change in sorted(net.items()):
                pool._ticks[tick] = TickInfo(to_uint128(abs(change)), to_int128(change), 0, 0)
            pool._words = build_words(pool._ticks, tick_spacing)
        except (ValueError, errors.PoolRefusal, errors.UsageError) as error:
            raise errors.Malformed(f"not the state of a pool: {error}") from error
        return pool

    def _growth_between(self, tick_lower: int, lower: TickInfo, tick_upper: int, upper: TickInfo) -> tuple[int, int]:
        tick, global0, global1 = self.slot0.tick, self.fee_growth_global0_x128, self.fee_growth_global1_x128
        below0, below1 = lower.fee_growth_outside0_x128, lower.fee_growth_outside1_x128
        above0, above1 = upper.fee_growth_outside0_x128, upper.fee_growth_outside1_x128
        return (
            fees.growth_inside(tick, tick_lower, tick_upper, global0, below0, above0),
            fees.growth_inside(tick, tick_lower, tick_upper, global1, below1, above1),
        )

    def _tick_with(self, tick: int, info: TickInfo, delta: int, *, net_delta: int) -> TickInfo:
        gross = to_uint128(info.liquidity_gross + delta)
        net = info.liquidity_net + net_delta
        if not MIN_INT128 <= net <= MAX_INT128:
            # Reached before the limit per tick is looked at, and the contract has no name for it.
            raise errors.Panic(f"net liquidity of tick {tick} does not fit int128")
        outside0, outside1 = info.fee_growth_outside0_x128, info.fee_growth_outside1_x128
        if not info.liquidity_gross and tick <= self.slot0.tick:
            # A new tick takes all growth so far to lie below it.
            outside0, outside1 = self.fee_growth_global0_x128, self.fee_growth_global1_x128
        return TickInfo(gross, net, outside0, outside1)

    def _principal(self, tick_lower: int, tick_upper: int, delta: int) -> tuple[int, int]:
        if not delta:
            return 0, 0
        amount0, amount1 = amounts_for_liquidity(
            self.slot0.sqrt_price_x96,
            cached_sqrt_price_at_tick(tick_lower),
            cached_sqrt_price_at_tick(tick_upper),
            abs(delta),
            round_up=delta > 0,
        )
        return (-amount0, -amount1) if delta > 0 else (amount0, amount1)

    def _write_tick(self, tick: int, info: TickInfo, flipped: bool) -> None:
        if info.liquidity_gross:
            self._ticks[tick] = info
        else:
            del self._ticks[tick]
        if flipped:
            flip_tick(self._words, tick, self.tick_spacing)


def _position_key(owner: str, tick_lower: int, tick_upper: int, salt: int) -> PositionKey:
    if not _ADDRESS.fullmatch(owner):
        raise errors.UsageError(f"{owner!r} is not an address: 0x and up to 40 hex digits")
    return PositionKey(
        "0x" + owner[2:].lower().rjust(40, "0"), index(tick_lower), index(tick_upper), to_uint256(index(salt))
    )


def _check_range(tick_lower: int, tick_upper: int) -> None:
    if tick_lower >= tick_upper:
        raise errors.TicksMisordered(f"lower tick {tick_lower} is not below upper tick {tick_upper}")
    if tick_lower < MIN_TICK:
        raise errors.TickLowerOutOfBounds(f"lower tick {tick_lower} is below {MIN_TICK}")
    if tick_upper > MAX_TICK:
        raise errors.TickUpperOutOfBounds(f"upper tick {tick_upper} is above {MAX_TICK}")


def _check_price_limit(zero_for_one: bool, price: int, limit: int) -> None:
    if limit >= price if zero_for_one else limit <= price:
        raise errors.PriceLimitAlreadyExceeded(f"price {price} is already past the limit {limit}")
    if not MIN_SQRT_PRICE < limit < MAX_SQRT_PRICE:
        raise errors.PriceLimitOutOfBounds(f"price limit {limit} is not inside ({MIN_SQRT_PRICE}, {MAX_SQRT_PRICE})")


TickWords = dict[int, int]
"""Which ticks are initialised, in words of 256: a swap must pause at a word's edge exactly where v4 does. Every pause
rounds the amounts once more, so a quicker search would be wrong by some wei."""


def check_aligned(tick: int, tick_spacing: int) -> None:
    """Refuse a tick that is not a multiple of the spacing."""
    if tick % tick_spacing:
        raise TickMisaligned(f"tick {tick} is not a multiple of {tick_spacing}")


def flip_tick(words: TickWords, tick: int, tick_spacing: int) -> None:
    """Turn one aligned tick on or off; an empty word takes no room."""
    compressed = tick // tick_spacing
    position = compressed >> 8
    word = words.get(position, 0) ^ 1 << (compressed & 0xFF)
    if word:
        words[position] = word
    else:
        del words[position]


def build_words(ticks: Iterable[int], tick_spacing: int) -> TickWords:
    words: TickWords = {}
    for tick in ticks:
        check_aligned(tick, tick_spacing)
        flip_tick(words, tick, tick_spacing)
    return words


def next_tick_at_or_below(words: TickWords, tick: int, tick_spacing: int) -> tuple[int, bool]:
    """Where a falling price pauses next, and whether that tick is initialised."""
    compressed = tick // tick_spacing
    position = compressed >> 8
    word = words.get(position)
    if word is not None:
        candidates = word & ((2 << (compressed & 0xFF)) - 1)
        if candidates:
            return ((position << 8) + candidates.bit_length() - 1) * tick_spacing, True
    return (position << 8) * tick_spacing, False


def next_tick_above(words: TickWords, tick: int, tick_spacing: int) -> tuple[int, bool]:
    """Where a rising price pauses next, and whether that tick is initialised."""
    compressed = tick // tick_spacing + 1
    position = compressed >> 8
    word = words.get(position)
    if word is not None:
        candidates = word >> (compressed & 0xFF)
        if candidates:
            return (compressed + (candidates & -candidates).bit_length() - 1) * tick_spacing, True
    return (position << 8 | 0xFF) * tick_spacing, False
