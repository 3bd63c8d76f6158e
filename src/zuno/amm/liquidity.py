"""Liquidity and the tokens behind it, with the rounding in the name: one wei the wrong way reverts a mint."""

from zuno.amm.integers import MAX_UINT128, Q96, to_uint128
from zuno.amm.ticks import MAX_TICK, MIN_TICK, check_tick_spacing
from zuno.kernel.errors import InvalidPrice, SafeCastOverflow, TicksMisordered


def amount0_rounding_down(sqrt_lower_x96: int, sqrt_upper_x96: int, liquidity: int) -> int:
    """Token 0 that leaves the pool when this liquidity moves between the two ordered prices."""
    if sqrt_lower_x96 <= 0:
        raise InvalidPrice("a square-root price must be positive")
    # The contract divides by the two prices one after the other; for one rounding direction that is the
    # same number as dividing once by their product.
    return (liquidity * (sqrt_upper_x96 - sqrt_lower_x96) << 96) // (sqrt_upper_x96 * sqrt_lower_x96)


def amount0_rounding_up(sqrt_lower_x96: int, sqrt_upper_x96: int, liquidity: int) -> int:
    """Token 0 owed to the pool when this liquidity moves between the two ordered prices."""
    if sqrt_lower_x96 <= 0:
        raise InvalidPrice("a square-root price must be positive")
    return -((liquidity * (sqrt_lower_x96 - sqrt_upper_x96) << 96) // (sqrt_upper_x96 * sqrt_lower_x96))


def amount1_rounding_down(sqrt_lower_x96: int, sqrt_upper_x96: int, liquidity: int) -> int:
    """Token 1 that leaves the pool when this liquidity moves between the two ordered prices."""
    return liquidity * (sqrt_upper_x96 - sqrt_lower_x96) >> 96


def amount1_rounding_up(sqrt_lower_x96: int, sqrt_upper_x96: int, liquidity: int) -> int:
    """Token 1 owed to the pool when this liquidity moves between the two ordered prices."""
    return -(liquidity * (sqrt_lower_x96 - sqrt_upper_x96) >> 96)


def amounts_for_liquidity(
    sqrt_price_x96: int, sqrt_lower_x96: int, sqrt_upper_x96: int, liquidity: int, *, round_up: bool
) -> tuple[int, int]:
    """Both tokens behind a range at this price: rounded up to mint it, down when it is burned."""
    if sqrt_lower_x96 > sqrt_upper_x96:
        sqrt_lower_x96, sqrt_upper_x96 = sqrt_upper_x96, sqrt_lower_x96
    within = min(max(sqrt_price_x96, sqrt_lower_x96), sqrt_upper_x96)
    if round_up:
        return (
            amount0_rounding_up(within, sqrt_upper_x96, liquidity),
            amount1_rounding_up(sqrt_lower_x96, within, liquidity),
        )
    return (
        amount0_rounding_down(within, sqrt_upper_x96, liquidity),
        amount1_rounding_down(sqrt_lower_x96, within, liquidity),
    )


def liquidity_for_amount0(sqrt_lower_x96: int, sqrt_upper_x96: int, amount0: int) -> int:
    """Liquidity that this much token 0 pays for, rounded down in two places as the periphery does."""
    return to_uint128(amount0 * (sqrt_lower_x96 * sqrt_upper_x96 >> 96) // (sqrt_upper_x96 - sqrt_lower_x96))


def liquidity_for_amount1(sqrt_lower_x96: int, sqrt_upper_x96: int, amount1: int) -> int:
    """Liquidity that this much token 1 pays for, rounded down."""
    return to_uint128(amount1 * Q96 // (sqrt_upper_x96 - sqrt_lower_x96))


def liquidity_for_amounts(
    sqrt_price_x96: int, sqrt_lower_x96: int, sqrt_upper_x96: int, amount0: int, amount1: int
) -> int:
    """The most liquidity both amounts can pay for at this price, rounded down."""
    if amount0 < 0 or amount1 < 0:
        raise SafeCastOverflow("an amount to deposit cannot be negative")
    if sqrt_lower_x96 > sqrt_upper_x96:
        sqrt_lower_x96, sqrt_upper_x96 = sqrt_upper_x96, sqrt_lower_x96
    if sqrt_lower_x96 == sqrt_upper_x96:
        raise TicksMisordered("an empty range holds no liquidity")
    if sqrt_price_x96 <= sqrt_lower_x96:
        return liquidity_for_amount0(sqrt_lower_x96, sqrt_upper_x96, amount0)
    if sqrt_price_x96 < sqrt_upper_x96:
        return min(
            liquidity_for_amount0(sqrt_price_x96, sqrt_upper_x96, amount0),
            liquidity_for_amount1(sqrt_lower_x96, sqrt_price_x96, amount1),
        )
    return liquidity_for_amount1(sqrt_lower_x96, sqrt_upper_x96, amount1)


def max_liquidity_per_tick(tick_spacing: int) -> int:
    """A tick's share of uint128, so that no price can gather more liquidity than fits."""
    check_tick_spacing(tick_spacing)
    # v4 counts the lowest word down to floor(MIN_TICK / spacing), one tick below the lowest usable one.
    ticks = MAX_TICK // tick_spacing - MIN_TICK // tick_spacing + 1
    return MAX_UINT128 // ticks
