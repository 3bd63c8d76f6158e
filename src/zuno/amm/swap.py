"""One step of a swap inside one stretch of constant liquidity, rounded against the trader as v4 does."""

from zuno.amm.fees import PIPS
from zuno.amm.integers import MAX_UINT160, MAX_UINT256, ceil_div
from zuno.amm.liquidity import amount0_rounding_down, amount0_rounding_up, amount1_rounding_down, amount1_rounding_up
from zuno.kernel.errors import InvalidPriceOrLiquidity, NotEnoughLiquidity, PriceOverflow, SafeCastOverflow

Step = tuple[int, int, int, int]
"""Price reached, amount in, amount out, fee. A bare tuple: a swap builds one for every tick it passes."""


def price_after_input(sqrt_price_x96: int, liquidity: int, amount_in: int, zero_for_one: bool) -> int:
    """The price once this input is in, rounded so that it moves too little rather than too far."""
    if sqrt_price_x96 <= 0 or liquidity <= 0:
        raise InvalidPriceOrLiquidity("a step needs a price and liquidity")
    if zero_for_one:
        if amount_in == 0:
            return sqrt_price_x96
        scaled = liquidity << 96
        denominator = scaled + amount_in * sqrt_price_x96
        if denominator <= MAX_UINT256:
            return ceil_div(scaled * sqrt_price_x96, denominator)
        # Where uint256 would overflow the contract falls back to a coarser formula, and so must we.
        return ceil_div(scaled, scaled // sqrt_price_x96 + amount_in)
    after = sqrt_price_x96 + (amount_in << 96) // liquidity
    if after > MAX_UINT160:
        raise SafeCastOverflow("the price after this input does not fit uint160")
    return after


def price_after_output(sqrt_price_x96: int, liquidity: int, amount_out: int, zero_for_one: bool) -> int:
    """The price once this output is out, rounded so that it moves too far rather than too little."""
    if sqrt_price_x96 <= 0 or liquidity <= 0:
        raise InvalidPriceOrLiquidity("a step needs a price and liquidity")
    if zero_for_one:
        drop = ceil_div(amount_out << 96, liquidity)
        if drop >= sqrt_price_x96:
            raise NotEnoughLiquidity(f"the liquidity cannot pay {amount_out} of token 1")
        return sqrt_price_x96 - drop
    if amount_out == 0:
        return sqrt_price_x96
    scaled = liquidity << 96
    denominator = scaled - amount_out * sqrt_price_x96
    if denominator <= 0:
        raise PriceOverflow(f"the liquidity cannot pay {amount_out} of token 0")
    after = ceil_div(scaled * sqrt_price_x96, denominator)
    if after > MAX_UINT160:
        raise SafeCastOverflow("the price after this output does not fit uint160")
    return after


def step_exact_input(
    sqrt_price_x96: int, target_x96: int, liquidity: int, amount_left: int, fee: int, zero_for_one: bool
) -> Step:
    """Spend at most `amount_left`, fee included, without passing the target price."""
    spendable = amount_left * (PIPS - fee) // PIPS
    if zero_for_one:
        amount_in = amount0_rounding_up(target_x96, sqrt_price_x96, liquidity)
    else:
        amount_in = amount1_rounding_up(sqrt_price_x96, target_x96, liquidity)
    if spendable >= amount_in:
        reached = target_x96
        # At a fee of 100 % nothing is spendable, so the target can be reached for nothing only.
        fee_amount = 0 if fee == PIPS else ceil_div(amount_in * fee, PIPS - fee)
    else:
        reached = price_after_input(sqrt_price_x96, liquidity, spendable, zero_for_one)
        amount_in = spendable
        # The input is used up: what rounding left over belongs to the fee.
        fee_amount = amount_left - spendable
    if zero_for_one:
        amount_out = amount1_rounding_down(reached, sqrt_price_x96, liquidity)
    else:
        amount_out = amount0_rounding_down(sqrt_price_x96, reached, liquidity)
    return reached, amount_in, amount_out, fee_amount


def step_exact_output(
    sqrt_price_x96: int, target_x96: int, liquidity: int, amount_left: int, fee: int, zero_for_one: bool
) -> Step:
    """Pay out at most `amount_left` without passing the target price; the fee is below 100 %."""
    if zero_for_one:
        amount_out = amount1_rounding_down(target_x96, sqrt_price_x96, liquidity)
    else:
        amount_out = amount0_rounding_down(sqrt_price_x96, target_x96, liquidity)
    if amount_left >= amount_out:
        reached = target_x96
    else:
        reached = price_after_output(sqrt_price_x96, liquidity, amount_left, zero_for_one)
        amount_out = amount_left
    if zero_for_one:
        amount_in = amount0_rounding_up(reached, sqrt_price_x96, liquidity)
    else:
        amount_in = amount1_rounding_up(sqrt_price_x96, reached, liquidity)
    return reached, amount_in, amount_out, ceil_div(amount_in * fee, PIPS - fee)
