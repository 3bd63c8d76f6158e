"""Through which pool of the pair a plan swaps: its own, or another that pays more by more than its gas."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from zuno.amm.model import PoolKey, PoolState
from zuno.kernel.errors import Unavailable
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Address
from zuno.lp.plan.calls import is_flipped
from zuno.lp.plan.inventory import Quote, QuoteSwap, estimate, market_without_us

MOST_IMPACT: Final = Fraction(1, 100)
"""Of a routed swap, beside fees and slippage: the policy holds it to the price of the pool that is minted into."""
MOST_FEE: Final = 10_000
"""Of a pool to route through, in pips: whoever owns one of 90 % would take what is swapped there."""


@dataclass(frozen=True, slots=True)
class SwapRoute:
    """A pool that a swap may go through. Quotes are the other way round where its currencies are, and leave the price
    of the plan's own pool where it is."""

    key: PoolKey
    quote: QuoteSwap


def build_route(pool: PoolState, through: PoolState, quote: QuoteSwap | None = None) -> SwapRoute:
    """A route for plans of `pool`. Without a `quote` it is estimated from the liquidity at the price."""
    flipped, ask = is_flipped(through.key, _pair(pool.key)), quote or estimate(market_without_us(through))

    def quote_route(zero_for_one: bool, amount_in: int) -> Quote:
        return replace(ask(zero_for_one != flipped, amount_in), sqrt_price_after_x96=pool.sqrt_price_x96)

    return SwapRoute(through.key, quote_route)


def may_route(key: PoolKey, other: PoolKey, wrapper: Address | None) -> bool:
    """Whether plans of a pool may swap through another: it trades the same pair, where the native coin and its wrapper
    count as one, without a hook and for a common fee."""
    first, second = ({NATIVE if each == wrapper else each for each in _pair(pool)} for pool in (key, other))
    return first == second and len(first) == 2 and not other.has_hooks and other.fee <= MOST_FEE


def choose_route(
    own: QuoteSwap, routes: Sequence[tuple[SwapRoute, Fraction]], zero_for_one: bool, amount_in: int
) -> SwapRoute | None:
    """The route that pays most after what its gas costs beyond a swap in the own pool, in base units of what is paid;
    None where the own pool pays as much. One that would not fill the swap is left out."""
    best, most = None, Fraction(own(zero_for_one, amount_in).amount_out)
    for route, gas in routes:
        try:
            quoted = route.quote(zero_for_one, amount_in)
        except Unavailable:  # the swap leaves the ticks that were read
            continue
        if quoted.amount_in == amount_in and quoted.amount_out - gas > most:
            best, most = route, quoted.amount_out - gas
    return best


def _pair(key: PoolKey) -> tuple[Address, Address]:
    return key.currency0, key.currency1
