"""How much liquidity is safe to ask for: enough tokens at every price inside the bounds, not only at this one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from zuno.amm.integers import MAX_UINT128
from zuno.amm.liquidity import amounts_for_liquidity, liquidity_for_amount0, liquidity_for_amount1
from zuno.amm.model import LpPosition, PoolState, Range
from zuno.kernel.errors import Refused
from zuno.kernel.text import format_units
from zuno.lp.model.ballot import Deposit
from zuno.lp.plan.inventory import cap_liquidity, fit, price_bounds, worth_token1

# A burn rounds down and a mint rounds up: between two prices where the tokens suffice, up to two units may be missing.
_ROUNDING: Final = 2


@dataclass(frozen=True, slots=True)
class Sizing:
    """Liquidity to mint, and the most of each token it costs inside the bounds: the price band, as a mint sees it."""

    liquidity: int
    most0: int
    most1: int


def size_mint(sqrt_price_x96: int, band: Range, have0: int, have1: int, slippage_bps: int) -> Sizing:
    """What these amounts mint wherever in the bounds the price is by then."""
    return _capped_at(
        sqrt_price_x96, band, fit(sqrt_price_x96, band, have0, have1, slippage_bps).liquidity, slippage_bps
    )


def check_tokens_used(pool: PoolState, band: Range, named: Mapping[int, int]) -> None:
    """`Refused` where at the pool's price nothing of a token that was named would go into the range. `named` is what
    was named of each side of the pool, in base units."""
    lower, upper = band.edges_x96
    tokens, price = (pool.token0, pool.token1), pool.price
    for side, amount in named.items():
        if pool.sqrt_price_x96 > lower if side else pool.sqrt_price_x96 < upper:
            continue
        token, other = tokens[side], tokens[1 - side]
        worth = int(amount / price if side else amount * price)
        raise Refused(
            f"Of {format_units(amount, token.decimals)} {token.symbol} nothing would go in: the price is outside ticks "
            f"{band.lower} to {band.upper}, where only {other.symbol} goes in. The same worth of it is "
            f"{format_units(worth, other.decimals)} {other.symbol}; name {other.symbol} alone."
        )


def fix_capital(
    position: LpPosition, named: Mapping[int, int], holdings: tuple[int, int], slippage_bps: int
) -> tuple[int, int]:
    """The most an addition may bring of both tokens: what was named, and of a token that was not, what goes with it.

    What goes with it is counted at the worst price in the bounds, and is never more than there is of it in the wallet
    and in uncollected fees. Where that is too little for half of what was named, it is `Refused`.
    """
    pool, band = position.pool, position.range
    check_tokens_used(pool, band, named)
    ready = (holdings[0] + position.fees0, holdings[1] + position.fees1)
    limit = size_mint(pool.sqrt_price_x96, band, named.get(0, MAX_UINT128), named.get(1, MAX_UINT128), slippage_bps)
    capital = (named.get(0, min(ready[0], limit.most0)), named.get(1, min(ready[1], limit.most1)))
    size = size_mint(pool.sqrt_price_x96, band, *capital, slippage_bps)
    for side, amount in named.items():
        goes_in, tokens = (size.most0, size.most1)[side], (pool.token0, pool.token1)
        if goes_in * 2 < amount:
            token, other = tokens[side], tokens[1 - side]
            raise Refused(
                f"Of {format_units(amount, token.decimals)} {token.symbol} at most "
                f"{format_units(goes_in, token.decimals)} would go in: "
                f"there are {format_units(capital[1 - side], other.decimals)} {other.symbol} to go with it."
            )
    return capital


def size_mint_from_burn(position: LpPosition, band: Range, slippage_bps: int) -> Sizing:
    """What a burned position mints in the same transaction, out of its own proceeds at every price in the bounds.

    The proceeds move with the price as the costs do, so the two are compared at the same price: a narrow range that
    becomes a wide one loses a token faster than the new range stops needing it. Between two edges the difference of
    the two only rises or only falls, so that looking at the edges is looking everywhere.
    """
    sqrt_price = position.pool.sqrt_price_x96
    lower, upper = band.edges_x96
    allowed = [MAX_UINT128]
    for price in _corners(price_bounds(sqrt_price, slippage_bps), (*band.edges_x96, *position.range.edges_x96)):
        paid0, paid1 = amounts_for_liquidity(price, *position.range.edges_x96, position.liquidity, round_up=False)
        have0, have1 = (max(0, paid - _ROUNDING) for paid in (paid0 + position.fees0, paid1 + position.fees1))
        if price < upper:
            allowed.append(cap_liquidity(liquidity_for_amount0, max(price, lower), upper, have0))
        if price > lower:
            allowed.append(cap_liquidity(liquidity_for_amount1, lower, min(price, upper), have1))
    return _capped_at(sqrt_price, band, min(allowed), slippage_bps)


def least_principal(position: LpPosition, liquidity: int, slippage_bps: int) -> tuple[int, int]:
    """What taking out this liquidity pays at the worst price in the bounds for each token, fees apart."""
    low, high = price_bounds(position.pool.sqrt_price_x96, slippage_bps)
    band = position.range.edges_x96
    return (
        amounts_for_liquidity(high, *band, liquidity, round_up=False)[0],
        amounts_for_liquidity(low, *band, liquidity, round_up=False)[1],
    )


def weigh_exit(position: LpPosition, liquidity: int, slippage_bps: int, reference_x96: int) -> tuple[int, int]:
    """What taking out this liquidity pays at the pool's price, and at the worst price that its minimums let through;
    fees included, in token1 at the reference. Counted at a price, liquidity pays least where the pool is at it."""
    now, fees = position.pool.sqrt_price_x96, (position.fees0, position.fees1)
    low, high = price_bounds(now, slippage_bps)
    worth, worst = (
        int(worth_token1(paid[0] + fees[0], paid[1] + fees[1], reference_x96))
        for price in (now, min(max(reference_x96, low), high))
        for paid in [amounts_for_liquidity(price, *position.range.edges_x96, liquidity, round_up=False)]
    )
    return worth, worst


def most_proceeds(position: LpPosition, slippage_bps: int) -> tuple[int, int]:
    """What burning the position pays at the best price in the bounds for each token, fees included."""
    low, high = price_bounds(position.pool.sqrt_price_x96, slippage_bps)
    band = position.range.edges_x96
    return (
        amounts_for_liquidity(low, *band, position.liquidity, round_up=False)[0] + position.fees0,
        amounts_for_liquidity(high, *band, position.liquidity, round_up=False)[1] + position.fees1,
    )


def _capped_at(sqrt_price_x96: int, band: Range, liquidity: int, slippage_bps: int) -> Sizing:
    if liquidity <= 0:
        raise Refused(
            f"these tokens mint no liquidity in ticks {band.lower} to {band.upper} that would survive a move of "
            f"{slippage_bps} bps"
        )
    return Sizing(liquidity, *most_cost(sqrt_price_x96, band, liquidity, slippage_bps))


def most_cost(sqrt_price_x96: int, band: Range, liquidity: int, slippage_bps: int) -> tuple[int, int]:
    """What so much liquidity costs of each token at the worst price in the bounds."""
    low, high = price_bounds(sqrt_price_x96, slippage_bps)
    return (
        amounts_for_liquidity(low, *band.edges_x96, liquidity, round_up=True)[0],
        amounts_for_liquidity(high, *band.edges_x96, liquidity, round_up=True)[1],
    )


def _corners(bounds: tuple[int, int], prices: tuple[int, ...]) -> Iterator[int]:
    low, high = bounds
    yield from (low, high)
    yield from (price for price in prices if low < price < high)


EDGE_NOTE: Final = "the old range ends within the bounds, so that the mint is sized for every price in them"


def size_after_burn(planned: Deposit, position: LpPosition, band: Range, have: tuple[int, int], bps: int) -> Deposit:
    """A deposit without a swap: of fixed size unless the burn holds the price, nothing where no mint survives."""
    if burn_holds_price(position, bps):
        return planned
    try:
        liquidity = size_mint_from_burn(position, band, bps).liquidity
    except Refused:
        liquidity = 0
    needed = amounts_for_liquidity(position.pool.sqrt_price_x96, *band.edges_x96, liquidity, round_up=True)
    in0, in1 = map(min, needed, have)  # rounded up, it may be a unit more than there is
    return Deposit(liquidity, in0, in1, have[0] - in0, have[1] - in1, notes=(*planned.notes, EDGE_NOTE))


def most_used(pool: PoolState, band: Range, have: tuple[int, int], slippage_bps: int) -> tuple[int, int]:
    """The most of each token the range takes within the bounds: token0 at the lowest price, token1 at the highest."""
    low, high = price_bounds(pool.sqrt_price_x96, slippage_bps)
    return min(have[0], fit(low, band, *have, 0).amount0), min(have[1], fit(high, band, *have, 0).amount1)


def burn_holds_price(position: LpPosition, slippage_bps: int) -> bool:
    """Whether a burn's minima revert at all prices outside the bounds: the range covers them, neither is nothing."""
    low, high = price_bounds(position.pool.sqrt_price_x96, slippage_bps)
    lower, upper = position.range.edges_x96
    return lower < low and high < upper and min(least_principal(position, position.liquidity, slippage_bps)) > 0
