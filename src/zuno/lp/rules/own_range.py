"""Puts the owner's range on a pool's tick grid; what looks mistyped is refused, with what may have been meant."""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Final

from zuno.amm import ticks
from zuno.amm.model import PoolState, Range, sqrt_price_for, whole_price
from zuno.kernel.errors import Refused
from zuno.kernel.numbers_text import decimal_text
from zuno.kernel.text import base_and_quote
from zuno.kernel.units import Tick
from zuno.lp.model.debate import OwnRange

FAR: Final = 10
"""A range whose nearer edge is more than this factor above or below the price is refused as a typing mistake."""
_FAR_TICKS: Final = 23_028
"""The same factor in ticks: 1.0001 ** 23_028 is about 10."""
NEAR: Final = 2
"""If the inverse of a refused range comes within this factor of the price, the pair was typed the wrong way round."""


def place_in_pools(own: OwnRange | None, pools: Sequence[PoolState]) -> dict[int, Range]:
    """The owner's range on the grid of every pool that it fits, by index. `Refused` if it fits none."""
    placed: dict[int, Range] = {}
    refusal: Refused | None = None
    if own is None:
        return placed
    for index, pool in enumerate(pools):
        try:
            placed[index] = place_own_range(own, pool)
        except Refused as error:
            refusal = refusal or error
    if refusal is not None and not placed:
        raise refusal
    return placed


def place_own_range(own: OwnRange, pool: PoolState) -> Range:
    """The owner's range, widened to the pool's tick spacing. `Refused` if it lies beyond the pool's ticks, or so far
    from the price that it must be a mistake."""
    spacing = pool.key.tick_spacing
    if own.unit == "ticks":
        low, high = int(own.lower), int(own.upper)
        if low > pool.tick + _FAR_TICKS or high < pool.tick - _FAR_TICKS:
            raise Refused(f"{own} is far from the pool's tick {pool.tick}: is it of another pair?")
    else:
        _check_unit(own, pool)
        ends = sorted(sqrt_price_for(Fraction(edge), pool.token0, pool.token1) for edge in (own.lower, own.upper))
        if not ticks.MIN_SQRT_PRICE <= ends[0] < ends[1] < ticks.MAX_SQRT_PRICE:
            raise Refused(f"{own} is no range of prices that a pool can have.")
        low, high = ticks.tick_at_sqrt_price(ends[0]), ticks.tick_at_sqrt_price(ends[1])
        high += ticks.sqrt_price_at_tick(high) < ends[1]
    lower, upper = ticks.floor_to_spacing(low, spacing), ticks.ceil_to_spacing(high, spacing)
    least, most = ticks.min_usable_tick(spacing), ticks.max_usable_tick(spacing)
    if lower < least or upper > most:
        raise Refused(f"{own} lies beyond the pool's ticks, {least} to {most}.")
    return Range(Tick(lower), Tick(upper))


def _check_unit(own: OwnRange, pool: PoolState) -> None:
    """`Refused` for prices far from the pool's; the refusal proposes their inverse, or the point elsewhere."""
    price = whole_price(pool.sqrt_price_x96, pool.token0, pool.token1)
    lower, upper = Fraction(own.lower), Fraction(own.upper)
    if lower <= FAR * price and upper * FAR >= price:
        return
    base, quote = base_and_quote(pool.token0, pool.token1)
    meant = f"prices here are {quote.display_name} per {base.display_name}, now {decimal_text(price, 6)}"
    if 1 / upper <= NEAR * price and 1 / lower * NEAR >= price:
        turned = f"{decimal_text(1 / upper, 6)} {decimal_text(1 / lower, 6)}"
        raise Refused(f"{own} is the other way round: {meant}; write --range {turned}.")
    power = _nearest_power_of_ten(price / ((lower + upper) / 2))
    scaled = " ".join(f"{edge.scaleb(power).normalize():f}" for edge in (own.lower, own.upper))
    raise Refused(f"{own} is off by decimals: {meant}; did you mean --range {scaled}?")


def _nearest_power_of_ten(ratio: Fraction) -> int:
    shown = Decimal(ratio.numerator) / Decimal(ratio.denominator)
    power = shown.adjusted()
    return power + (shown.scaleb(-power) ** 2 >= 10)
