"""What a swap really pays: quotes on the liquidity around the price, to the wei, with our own taken out."""

from __future__ import annotations

from zuno.amm.model import Depth, LpPosition
from zuno.amm.pool import Pool
from zuno.amm.ticks import MAX_TICK, MIN_TICK, cached_sqrt_price_at_tick
from zuno.kernel.errors import Unavailable
from zuno.lp.plan.inventory import Quote, QuoteSwap, exact_quotes


def quotes(depth: Depth, without: LpPosition | None = None) -> QuoteSwap:
    """Quotes of the pool as it is, or as it will be once this position is burnt; hooks are not asked.

    A swap that ends inside the known ticks met nothing unknown on its way; one that does not is `Unavailable`.
    """
    exact = exact_quotes(_pool(depth, without))
    known = depth.known
    low = cached_sqrt_price_at_tick(max(known.lower, MIN_TICK))
    high = cached_sqrt_price_at_tick(min(known.upper, MAX_TICK))

    def quote(zero_for_one: bool, amount_in: int) -> Quote:
        found = exact(zero_for_one, amount_in)
        # The lower end was looked at, the upper one was not: a price that stands on it may have met something there.
        if not low <= found.sqrt_price_after_x96 < high:
            raise Unavailable(
                f"A swap of {amount_in} base units leaves the ticks that were read ({known.lower} to {known.upper}): "
                "swap less."
            )
        return found

    return quote


def _pool(depth: Depth, without: LpPosition | None) -> Pool:
    """Our exact pool with these ticks. What fees and positions it remembers does not change what a swap pays."""
    pool = depth.pool
    net, liquidity = dict(depth.net), int(pool.liquidity)
    if without is not None and without.liquidity:
        _take_out(net, depth, without)
        if without.range.contains(pool.tick):
            liquidity -= without.liquidity
    return Pool.from_state(
        {
            "fee": str(pool.key.fee),
            "tick_spacing": str(pool.key.tick_spacing),
            "slot0": {
                "sqrt_price_x96": str(pool.sqrt_price_x96),
                "tick": str(pool.tick),
                "protocol_fee": str(pool.protocol_fee),
                "lp_fee": str(pool.lp_fee),
            },
            "liquidity": str(liquidity),
            "fee_growth_global0_x128": "0",
            "fee_growth_global1_x128": "0",
            "protocol_fees_accrued0": "0",
            "protocol_fees_accrued1": "0",
            "ticks": [[str(tick), str(abs(change)), str(change), "0", "0"] for tick, change in sorted(net.items())],
            "positions": [],
        }
    )


def _take_out(net: dict[int, int], depth: Depth, position: LpPosition) -> None:
    """A burn takes the liquidity off both edges, and an edge that nobody else stands on out of the bitmap.

    Where others start and end as much on our edge, its net is zero too and the pause there is lost: a swap across it
    may then be quoted a wei or two off.
    """
    for tick, change in ((position.range.lower, position.liquidity), (position.range.upper, -position.liquidity)):
        if not depth.known.contains(tick):
            continue
        if tick not in net:
            raise Unavailable(f"Position {position.id} does not stand in the pool as it was read: read both again.")
        net[tick] -= change
        if not net[tick]:
            del net[tick]
