"""A pool's liquidity as a distribution over price."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from zuno.amm.model import Depth
from zuno.lp.service.to_views import key_view, price_text, price_unit, tick_prices
from zuno.lp.service.views import LiquidityBandView, LiquidityView

REACH: Final = 6_932
"""Ticks to each side of the price: from half of it to twice."""


def list_bands(depth: Depth) -> Iterator[tuple[int, int, int]]:
    """Lower tick, upper tick and liquidity between neighbouring initialised ticks around the price."""
    pool = depth.pool
    low = max(int(depth.known.lower), pool.tick - REACH)
    high = min(int(depth.known.upper), pool.tick + REACH)
    liquidity = int(pool.liquidity) - sum(net for tick, net in depth.net.items() if low < tick <= pool.tick)
    lower = low
    for upper in (*(tick for tick in sorted(depth.net) if low < tick < high), high):
        yield lower, upper, liquidity
        liquidity += depth.net.get(upper, 0)
        lower = upper


def liquidity_view(chain: str, depth: Depth) -> LiquidityView:
    pool = depth.pool
    bands = []
    for lower, upper, liquidity in list_bands(depth):
        price_lower, price_upper = tick_prices(pool, lower, upper)
        bands.append(
            LiquidityBandView(
                tick_lower=lower,
                tick_upper=upper,
                price_lower=price_lower,
                price_upper=price_upper,
                liquidity=str(liquidity),
            )
        )
    return LiquidityView(
        chain=chain,
        block=pool.block.number,
        timestamp=pool.block.timestamp,
        pool=key_view(pool.key, pool.token0, pool.token1),
        price=price_text(pool.sqrt_price_x96, pool.token0, pool.token1),
        price_unit=price_unit(pool.token0, pool.token1),
        tick=pool.tick,
        bands=tuple(bands),
    )
