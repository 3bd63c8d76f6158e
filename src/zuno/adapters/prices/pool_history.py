"""A pool as its own price feed: what its swaps left behind, for when no price service answers."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

from zuno.adapters.prices.hourly import HISTORY_LIMIT, SPOT_LIMIT, history_fact, is_inverse, window
from zuno.amm.model import PoolState, whole_token1_price
from zuno.kernel.errors import Malformed, Refused, Unavailable
from zuno.kernel.units import HexId, Seconds, SqrtPriceX96
from zuno.lp.model.history import PricedBlock
from zuno.lp.model.market import HOUR, Fact, Pair, PriceSeries
from zuno.lp.ports.chain import Chain


class PoolHistory:
    """Hourly closes of one pool.

    The close of an hour is the price after the last swap before its end. Between swaps an AMM's price stands still,
    so an hour without a swap repeats the last close: that is knowledge, not a guess, and a note counts such hours.
    Before the first swap of the window nothing is known, and after the chain's head nothing has happened yet:
    both are gaps.
    """

    source = "pool swaps"

    def __init__(self, chain: Chain, pool_id: HexId) -> None:
        self._chain = chain
        self._pool_id = pool_id

    async def history(self, pair: Pair, hours: int, now: Seconds) -> Fact[PriceSeries]:
        wanted = window(hours, now)
        try:
            pool = await self._chain.pool(self._pool_id)
            inverse = is_inverse(pair, _pair_of(pool), self.source)
            head = await self._chain.head()
            path = await self._chain.price_path(self._pool_id, Seconds(wanted[0] - HOUR))
        except Refused as refusal:  # a pool that is unknown or has no price cannot know the pair's
            raise Unavailable(f"{self.source}: {refusal}") from refusal
        if any(priced.sqrt_price_x96 <= 0 for priced in path):
            raise Malformed(f"The pool's {pair} history holds a price that is not above zero")
        if any(b.block.timestamp < a.block.timestamp for a, b in pairwise(path)):
            raise Malformed(f"The pool's {pair} history is not in order of time")
        ended = [close for close in wanted if close <= head.timestamp]
        closes, quiet = _closes(path, ended)
        notes = (f"{quiet} of {len(closes)} hours had no swap: the price stood still",) if quiet else ()
        priced = {close: _whole_price(sqrt_price, pool, inverse) for close, sqrt_price in closes.items()}
        return history_fact(priced, pair, hours, now, self.source, HISTORY_LIMIT, notes)

    async def spot(self, pair: Pair, now: Seconds) -> Fact[Fraction]:
        try:
            pool = await self._chain.pool(self._pool_id)
        except Refused as refusal:
            raise Unavailable(f"{self.source}: {refusal}") from refusal
        inverse = is_inverse(pair, _pair_of(pool), self.source)
        if pool.sqrt_price_x96 <= 0:
            raise Malformed(f"The pool has no {pair} price")
        price = _whole_price(pool.sqrt_price_x96, pool, inverse)
        return Fact(price, "pool price", pool.block.timestamp, now, SPOT_LIMIT)


def _pair_of(pool: PoolState) -> Pair:
    """By symbol where we named the token ourselves, else by address; a wrapper keeps its own name beside ether's."""
    base, quote = (token.symbol if token.verified else token.address for token in (pool.token0, pool.token1))
    return Pair(base, quote)


def _closes(path: tuple[PricedBlock, ...], ended: list[int]) -> tuple[dict[int, SqrtPriceX96], int]:
    """The price at each of the `ended` hours once one is known, and how many of those hours had no swap.

    An hour is [start, end): a swap in the very second it ends belongs to the next one.
    """
    closes: dict[int, SqrtPriceX96] = {}
    quiet = 0
    swaps = iter(path)
    upcoming = next(swaps, None)
    latest: PricedBlock | None = None
    for close in ended:
        while upcoming is not None and upcoming.block.timestamp < close:
            latest, upcoming = upcoming, next(swaps, None)
        if latest is not None:
            closes[close] = latest.sqrt_price_x96
            quiet += latest.block.timestamp < close - HOUR
    return closes, quiet


def _whole_price(sqrt_price: SqrtPriceX96, pool: PoolState, inverse: bool) -> Fraction:
    """Whole token1 for one whole token0, or the other way round."""
    price = whole_token1_price(sqrt_price, pool.token0, pool.token1)
    return 1 / price if inverse else price
