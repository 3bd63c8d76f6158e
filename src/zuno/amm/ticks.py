"""Ticks and square-root prices, because the chain counts in Q64.96 and people think in prices."""

from functools import lru_cache
from math import floor, log
from typing import Final

from zuno.amm.integers import MAX_UINT256
from zuno.kernel.errors import InvalidSqrtPrice, InvalidTick, TickSpacingTooLarge, TickSpacingTooSmall

MIN_TICK: Final = -887272
MAX_TICK: Final = 887272
MIN_TICK_SPACING: Final = 1
MAX_TICK_SPACING: Final = 32767
MIN_SQRT_PRICE: Final = 4295128739
MAX_SQRT_PRICE: Final = 1461446703485210103287273052203988822378723970342

# 2^128 / sqrt(1.0001)^(2^i): one factor for every bit of |tick|.
_FACTORS: Final = (
    0xFFFCB933BD6FAD37AA2D162D1A594001,
    0xFFF97272373D413259A46990580E213A,
    0xFFF2E50F5F656932EF12357CF3C7FDCC,
    0xFFE5CACA7E10E4E61C3624EAA0941CD0,
    0xFFCB9843D60F6159C9DB58835C926644,
    0xFF973B41FA98C081472E6896DFB254C0,
    0xFF2EA16466C96A3843EC78B326B52861,
    0xFE5DEE046A99A2A811C461F1969C3053,
    0xFCBE86C7900A88AEDCFFC83B479AA3A4,
    0xF987A7253AC413176F2B074CF7815E54,
    0xF3392B0822B70005940C7A398E4B70F3,
    0xE7159475A2C29B7443B29C7FA6E889D9,
    0xD097F3BDFD2022B8845AD8F792AA5825,
    0xA9F746462D870FDF8A65DC1F90E061E5,
    0x70D869A156D2A1B890BB3DF62BAF32F7,
    0x31BE135F97D08FD981231505542FCFA6,
    0x9AA508B5B7A84E1C677DE54F3E99BC9,
    0x5D6AF8DEDB81196699C329225EE604,
    0x2216E584F5FA1EA926041BEDFE98,
    0x48A170391F7DC42444E8FA2,
)

_LOW_BITS: Final = 10
_LOW_MASK: Final = (1 << _LOW_BITS) - 1


def _products_of_low_factors() -> tuple[int, ...]:
    # The contract truncates after every factor, lowest bit first. A product may therefore be tabulated for
    # the low bits only: a table of the high bits would truncate in another order and be off by one.
    products = [1 << 128]
    for factor in _FACTORS[:_LOW_BITS]:
        products += [product * factor >> 128 for product in products]
    return tuple(products)


_LOW_PRODUCTS: Final = _products_of_low_factors()
_HIGH_FACTORS: Final = tuple((1 << bit, _FACTORS[bit]) for bit in range(_LOW_BITS, len(_FACTORS)))


def sqrt_price_at_tick(tick: int) -> int:
    """sqrt(1.0001^tick) as Q64.96, equal to the contract's to the last bit."""
    distance = abs(tick)
    if distance > MAX_TICK:
        raise InvalidTick(f"tick {tick} lies beyond ±{MAX_TICK}")
    ratio = _LOW_PRODUCTS[distance & _LOW_MASK]
    for bit, factor in _HIGH_FACTORS:
        if distance < bit:
            break
        if distance & bit:
            ratio = ratio * factor >> 128
    if tick > 0:
        ratio = MAX_UINT256 // ratio
    return (ratio + 0xFFFFFFFF) >> 32


# A swap asks for the same few boundaries again and again; 2^14 of them are about 2 MB.
cached_sqrt_price_at_tick = lru_cache(maxsize=1 << 14)(sqrt_price_at_tick)

_TICKS_PER_LOG: Final = 2 / log(1.0001)
_LOG_Q96: Final = 96 * log(2)

# How far the float estimate of a tick is trusted. A 160-bit logarithm is good to 1e-9 ticks; what is not
# is the boundary it is compared with: rounded up to an integer no smaller than 2^32, it may sit 5e-6 ticks
# above the true power of 1.0001. Nearer than this to a boundary the integers decide.
_DOUBT: Final = 1e-4


def tick_at_sqrt_price(sqrt_price_x96: int) -> int:
    """The greatest tick whose price is not above this one; MAX_SQRT_PRICE itself is refused, as on chain."""
    if not MIN_SQRT_PRICE <= sqrt_price_x96 < MAX_SQRT_PRICE:
        raise InvalidSqrtPrice(f"sqrt price {sqrt_price_x96} is not in [{MIN_SQRT_PRICE}, {MAX_SQRT_PRICE})")
    estimate = (log(sqrt_price_x96) - _LOG_Q96) * _TICKS_PER_LOG
    tick = floor(estimate)
    if _DOUBT < estimate - tick < 1 - _DOUBT:
        return tick
    boundary = round(estimate)
    return boundary if sqrt_price_at_tick(boundary) <= sqrt_price_x96 else boundary - 1


def check_tick_spacing(tick_spacing: int) -> None:
    if tick_spacing > MAX_TICK_SPACING:
        raise TickSpacingTooLarge(f"tick spacing {tick_spacing} is above {MAX_TICK_SPACING}")
    if tick_spacing < MIN_TICK_SPACING:
        raise TickSpacingTooSmall(f"tick spacing {tick_spacing} is below {MIN_TICK_SPACING}")


def max_usable_tick(tick_spacing: int) -> int:
    """The highest tick a position may end at."""
    check_tick_spacing(tick_spacing)
    return MAX_TICK // tick_spacing * tick_spacing


def min_usable_tick(tick_spacing: int) -> int:
    """The lowest tick a position may start at: rounded toward zero, hence the mirror of the highest."""
    return -max_usable_tick(tick_spacing)


def floor_to_spacing(tick: int, tick_spacing: int) -> int:
    check_tick_spacing(tick_spacing)
    return tick // tick_spacing * tick_spacing


def ceil_to_spacing(tick: int, tick_spacing: int) -> int:
    check_tick_spacing(tick_spacing)
    return -(-tick // tick_spacing) * tick_spacing
