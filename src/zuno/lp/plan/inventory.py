"""What the owner's tokens buy: liquidity that survives the worst price in bounds, after a swap where one is needed."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, isqrt
from typing import Final

from zuno.amm.fees import PIPS, protocol_fee_of_direction, swap_fee
from zuno.amm.integers import MAX_UINT128
from zuno.amm.liquidity import amounts_for_liquidity, liquidity_for_amount0, liquidity_for_amount1
from zuno.amm.model import Depth, LpPosition, PoolState, Range, price_of
from zuno.amm.pool import Pool, Slot0
from zuno.amm.swap import step_exact_input
from zuno.amm.ticks import MAX_SQRT_PRICE, MAX_TICK, MIN_SQRT_PRICE, MIN_TICK, cached_sqrt_price_at_tick
from zuno.kernel.errors import SafeCastOverflow, Unavailable
from zuno.lp.model.ballot import Deposit, PrepSwap
from zuno.lp.model.plan import BPS, Leftover

SLIPPAGE_BPS: Final = 50

# Halvings of the amount to swap: 2^-24 of the capital is dust.
_HALVINGS: Final = 24

_LOWEST: Final = MIN_SQRT_PRICE + 1
_HIGHEST: Final = MAX_SQRT_PRICE - 1


@dataclass(frozen=True, slots=True)
class SwapMarket:
    """The pool we would swap against: its price, and the liquidity there without ours."""

    sqrt_price_x96: int
    liquidity: int
    fee_zero_for_one: int
    fee_one_for_zero: int


@dataclass(frozen=True, slots=True)
class Quote:
    """What a swap takes and gives, in base units, and where it leaves the price."""

    amount_in: int
    amount_out: int
    fee_in: int
    sqrt_price_after_x96: int


QuoteSwap = Callable[[bool, int], Quote]
"""(zero_for_one, amount_in) → Quote."""


def burn_proceeds(position: LpPosition) -> tuple[int, int]:
    """What a full burn pays: principal and fees."""
    return position.amount0 + position.fees0, position.amount1 + position.fees1


def worth_token1(amount0: int, amount1: int, sqrt_price_x96: int) -> Fraction:
    """Both tokens in base units of token1."""
    return amount0 * price_of(sqrt_price_x96) + amount1


def others_liquidity(pool: PoolState, position: LpPosition | None) -> int:
    """In-range liquidity that is not ours."""
    ours = position.liquidity if position is not None and position.in_range else 0
    return pool.liquidity - ours


def market_without_us(pool: PoolState, position: LpPosition | None = None) -> SwapMarket:
    """The post-burn pool. Quoted before the burn, our own liquidity would flatter the price."""
    down, up = (swap_fee(protocol_fee_of_direction(pool.protocol_fee, zero), pool.lp_fee) for zero in (True, False))
    return SwapMarket(pool.sqrt_price_x96, others_liquidity(pool, position), down, up)


def estimate(market: SwapMarket) -> QuoteSwap:
    """Quotes as if the liquidity at the price went on for ever; right while no initialised tick is crossed."""

    def quote(zero_for_one: bool, amount_in: int) -> Quote:
        fee = market.fee_zero_for_one if zero_for_one else market.fee_one_for_zero
        price, limit = market.sqrt_price_x96, _LOWEST if zero_for_one else _HIGHEST
        reached, spent, received, fee_in = step_exact_input(
            price, limit, market.liquidity, amount_in, min(fee, PIPS), zero_for_one
        )
        return Quote(spent + fee_in, received, fee_in, reached)

    return quote


def exact_quotes(pool: Pool) -> QuoteSwap:
    """Quotes of our exact pool, which is left as it was; give it without our liquidity."""

    def quote(zero_for_one: bool, amount_in: int) -> Quote:
        tried = pool.copy()
        result = tried.swap(zero_for_one, -amount_in, _LOWEST if zero_for_one else _HIGHEST)
        spent, received = (-result.amount0, result.amount1) if zero_for_one else (-result.amount1, result.amount0)
        return Quote(spent, received, result.fee_amount, tried.slot0.sqrt_price_x96)

    return quote


def fit(sqrt_price_x96: int, band: Range, have0: int, have1: int, slippage_bps: int = SLIPPAGE_BPS) -> Deposit:
    """The most liquidity these amounts can mint wherever in the bounds the price then is; the rest is left over."""
    limits = _limits(sqrt_price_x96, band, have0, have1, slippage_bps)
    liquidity = min(limit for limit in limits if limit is not None)
    taken0, taken1 = amounts_for_liquidity(sqrt_price_x96, *band.edges_x96, liquidity, round_up=True)
    return Deposit(liquidity, taken0, taken1, have0 - taken0, have1 - taken1)


def plan_swap_and_deposit(
    market: SwapMarket,
    band: Range,
    have0: int,
    have1: int,
    *,
    may_swap: bool,
    room_bps: int = 0,
    slippage_bps: int = SLIPPAGE_BPS,
    exact: QuoteSwap | None = None,
) -> Deposit:
    """`fit`, after a swap where one is allowed and more than the slippage bound would lie idle. `room_bps` is left by a
    mint that the wallet pays for; `exact` quotes are used where the estimate misses."""
    price = market.sqrt_price_x96
    plain = fit(price, band, have0, have1, room_bps)
    if not may_swap or _idle_share(price, band, have0, have1) * BPS <= slippage_bps:
        return plain
    if market.liquidity <= 0:
        return replace(plain, notes=(ALONE_NOTE,))
    if slippage_bps == 0:
        return replace(plain, notes=(NO_ROOM_NOTE,))
    zero_for_one = _too_much_token0(price, band, have0, have1)
    swapped = _swap_to_fit(market, zero_for_one, band, have0, have1, exact)
    if swapped is None:
        return plain
    after0, after1 = _after(swapped, zero_for_one, have0, have1)
    minted = fit(swapped.sqrt_price_after_x96, band, after0, after1, 0)
    if minted.liquidity <= plain.liquidity:
        return replace(plain, notes=(COSTLY_NOTE,))  # dust, or a pool too shallow
    fee_back = market.fee_one_for_zero if zero_for_one else market.fee_zero_for_one
    guard, _ = size_guard(swapped.sqrt_price_after_x96, zero_for_one, swapped.amount_out, fee_back, slippage_bps)
    if guard * GUARD_LIMIT > min_swap_output(swapped.amount_out, slippage_bps):
        return replace(plain, notes=(UNGUARDED_NOTE,))
    prep = _prep(swapped, zero_for_one, price, exact is not None)
    return Deposit(minted.liquidity, minted.amount0, minted.amount1, minted.left0, minted.left1, prep)


ALONE_NOTE: Final = "the pool has no liquidity but ours to swap against"
COSTLY_NOTE: Final = "a swap would cost more than it puts to work"
NO_ROOM_NOTE: Final = "a slippage bound of 0 leaves a swap no room, not even for rounding"
UNGUARDED_NOTE: Final = "the swap is so small in these tokens' units that holding its price would cost over 1 % of it"

_GUARD_PART: Final = 10_000
GUARD_LIMIT: Final = 100
"""What is swapped back to hold the price is at most one part in so many of what the swap pays."""


def size_guard(
    sqrt_price_after_x96: int, zero_for_one: bool, amount_out: int, fee_back: int, slippage_bps: int
) -> tuple[int, int]:
    """What is swapped back after a swap in this direction in order to hold the price, and what that pays."""
    price = price_of(sqrt_price_after_x96)
    rate = (1 / price if zero_for_one else price) * (PIPS - fee_back) / PIPS
    if rate == 0:  # the fee takes it all
        return amount_out, 0
    amount_in = max(amount_out // _GUARD_PART, min_quotable_input(rate, slippage_bps))
    return amount_in, int(amount_in * rate)


def min_quotable_input(rate: Fraction, slippage_bps: int) -> int:
    """An input so large that one unit more or less, on either side, is at most a fifth of the slippage bound."""
    units = ceil(Fraction(5 * BPS, slippage_bps))
    return max(units, ceil(units / rate))


def min_swap_output(amount_out: int, slippage_bps: int) -> int:
    """What a swap must pay, of what it was quoted; never nothing, which would be no bound at all."""
    return max(1, amount_out * (BPS - slippage_bps) // BPS)


def leftover_of(
    planned: Deposit, sqrt_price_x96: int, slippage_bps: int = SLIPPAGE_BPS, *, from_credit: bool = False
) -> Leftover:
    """What a deposit leaves in the wallet, and why. `from_credit`: all is put in at the price it meets."""
    whole = (planned.amount0 + planned.left0, planned.amount1 + planned.left1)
    price = sqrt_price_x96 if planned.prep is None else planned.prep.sqrt_price_after_x96
    left = Leftover(planned.left0, planned.left1, *whole, price, "")
    percent, much = f"{slippage_bps / 100:g} %", left.share * BPS > slippage_bps
    if planned.notes:
        why = planned.notes[0]
    elif from_credit or planned.prep is not None:
        why = "the range takes the pair in its own ratio"
        why += "" if much or planned.prep is None else ", and the swap is sized on a quote"
    elif much:
        why = f"the range takes the pair in its own ratio, with room for the price to move by {percent}"
    else:
        why = f"less than {percent} of it is left over, too little for a swap"
    return replace(left, why=why)


def _swap_to_fit(
    market: SwapMarket, zero_for_one: bool, band: Range, have0: int, have1: int, exact: QuoteSwap | None
) -> Quote | None:
    """The swap after which both tokens go in; None where there is too little to swap."""
    rough = estimate(market)
    amount_in = _amount_to_swap(rough, zero_for_one, band, have0, have1)
    if amount_in == 0:
        return None
    if exact is None:
        return rough(zero_for_one, amount_in)
    swapped = exact(zero_for_one, amount_in)
    after = _after(swapped, zero_for_one, have0, have1)
    if _idle_share(swapped.sqrt_price_after_x96, band, *after) * BPS <= 1:
        return swapped
    return exact(zero_for_one, _amount_to_swap(exact, zero_for_one, band, have0, have1))


def _limits(
    sqrt_price_x96: int, band: Range, have0: int, have1: int, slippage_bps: int
) -> tuple[int | None, int | None]:
    """Liquidity that token0 and token1 each allow; None where that token is not needed at all. A mint needs most token0
    at the lowest price in bounds and most token1 at the highest one."""
    lower, upper = band.edges_x96
    low, high = price_bounds(sqrt_price_x96, slippage_bps)
    from0 = cap_liquidity(liquidity_for_amount0, max(low, lower), upper, have0) if low < upper else None
    from1 = cap_liquidity(liquidity_for_amount1, lower, min(high, upper), have1) if high > lower else None
    return from0, from1


def cap_liquidity(liquidity_for: Callable[[int, int, int], int], lower: int, upper: int, amount: int) -> int:
    """A hair's breadth from the edge next to nothing is needed, and any amount pays for more than uint128 can hold."""
    try:
        return liquidity_for(lower, upper, amount)
    except SafeCastOverflow:
        return MAX_UINT128


def _too_much_token0(sqrt_price_x96: int, band: Range, have0: int, have1: int) -> bool:
    from0, from1 = _limits(sqrt_price_x96, band, have0, have1, 0)
    return from0 is None or (from1 is not None and from0 > from1)


def price_bounds(sqrt_price_x96: int, slippage_bps: int) -> tuple[int, int]:
    """The lowest and the highest square-root price at which a mint must still go through."""
    square = sqrt_price_x96 * sqrt_price_x96
    low = isqrt(square * (BPS - slippage_bps) // BPS)
    high = isqrt(-(-square * (BPS + slippage_bps) // BPS) - 1) + 1
    return max(low, MIN_SQRT_PRICE), min(high, MAX_SQRT_PRICE)


def _idle_share(sqrt_price_x96: int, band: Range, have0: int, have1: int) -> Fraction:
    total = worth_token1(have0, have1, sqrt_price_x96)
    if total == 0:
        return Fraction(0)
    best = fit(sqrt_price_x96, band, have0, have1, 0)
    return worth_token1(best.left0, best.left1, sqrt_price_x96) / total


def _amount_to_swap(quote: QuoteSwap, zero_for_one: bool, band: Range, have0: int, have1: int) -> int:
    """The least input after which the token we had too much of is no longer in excess."""
    low, high = 0, have0 if zero_for_one else have1
    for _ in range(_HALVINGS):
        middle = (low + high + 1) // 2
        if middle in (low, high):
            break
        swapped = quote(zero_for_one, middle)
        after = _after(swapped, zero_for_one, have0, have1)
        if _too_much_token0(swapped.sqrt_price_after_x96, band, *after) == zero_for_one:
            low = middle
        else:
            high = middle
    return high


def _after(swapped: Quote, zero_for_one: bool, have0: int, have1: int) -> tuple[int, int]:
    if zero_for_one:
        return have0 - swapped.amount_in, have1 + swapped.amount_out
    return have0 + swapped.amount_out, have1 - swapped.amount_in


def quote_swap(market: SwapMarket, zero_for_one: bool, amount_in: int) -> PrepSwap:
    """An estimate of one swap."""
    return _prep(estimate(market)(zero_for_one, amount_in), zero_for_one, market.sqrt_price_x96, False)


def _prep(swapped: Quote, zero_for_one: bool, sqrt_price_x96: int, exact: bool) -> PrepSwap:
    price = price_of(sqrt_price_x96)
    rate_in, rate_out = (price, Fraction(1)) if zero_for_one else (Fraction(1), price)
    fee = swapped.fee_in * rate_in
    return PrepSwap(
        zero_for_one=zero_for_one,
        amount_in=swapped.amount_in,
        amount_out=swapped.amount_out,
        fee_in=swapped.fee_in,
        fee_token1=fee,
        impact_token1=swapped.amount_in * rate_in - fee - swapped.amount_out * rate_out,
        sqrt_price_after_x96=swapped.sqrt_price_after_x96,
        exact=exact,
    )


def quotes(depth: Depth, without: LpPosition | None = None) -> QuoteSwap:
    """Quotes of the pool as it is, or as it will be once this position is burnt; hooks are not asked. A swap that ends
    inside the known ticks met nothing unknown on its way; one that does not is `Unavailable`."""
    exact = exact_quotes(_pool(depth, without))
    known = depth.known
    low = cached_sqrt_price_at_tick(max(known.lower, MIN_TICK))
    high = cached_sqrt_price_at_tick(min(known.upper, MAX_TICK))

    def quote(zero_for_one: bool, amount_in: int) -> Quote:
        result = exact(zero_for_one, amount_in)
        # The lower end was looked at, the upper one was not: a price that stands on it may have met something there.
        if not low <= result.sqrt_price_after_x96 < high:
            raise Unavailable(
                f"A swap of {amount_in} base units leaves the ticks that were read ({known.lower} to {known.upper}): "
                "swap less."
            )
        return result

    return quote


def _pool(depth: Depth, without: LpPosition | None) -> Pool:
    """Our exact pool with these ticks. What fees and positions it remembers does not change what a swap pays."""
    pool = depth.pool
    net, liquidity = dict(depth.net), int(pool.liquidity)
    if without is not None and without.liquidity:
        _take_out(net, depth, without)
        if without.range.contains(pool.tick):
            liquidity -= without.liquidity
    slot0 = Slot0(pool.sqrt_price_x96, pool.tick, pool.protocol_fee, pool.lp_fee)
    return Pool.from_depth(pool.key.fee, pool.key.tick_spacing, slot0, liquidity, net)


def _take_out(net: dict[int, int], depth: Depth, position: LpPosition) -> None:
    """A burn removes the liquidity from both edges, and an edge without other liquidity from the bitmap. Where others'
    net on an edge is zero, a swap across it may be quoted a wei or two off."""
    for tick, change in ((position.range.lower, position.liquidity), (position.range.upper, -position.liquidity)):
        if not depth.known.contains(tick):
            continue
        if tick not in net:
            raise Unavailable(f"Position {position.id} does not stand in the pool as it was read: read both again.")
        net[tick] -= change
        if not net[tick]:
            del net[tick]
