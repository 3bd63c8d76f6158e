"""What the chain's own currency is worth, so that gas can be told in the tokens of a position."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from zuno.adapters.prices.legs import unwrapped
from zuno.kernel.units import Seconds
from zuno.lp.model.market import Fact, Pair
from zuno.lp.ports.market import PriceFeed

NATIVE_LIMIT = Seconds(600)


class NativePrice:
    """The newest price of the native currency that `feed` knows: a price service's, a pool's, or a seed."""

    def __init__(self, feed: PriceFeed, *, symbol: str = "ETH", limit: Seconds = NATIVE_LIMIT) -> None:
        self._feed = feed
        self._symbol = symbol
        self._limit = limit

    async def native(self, quote: str, now: Seconds) -> Fact[Fraction]:
        if unwrapped(quote) == unwrapped(self._symbol):
            return Fact(Fraction(1), "same currency", now, now, self._limit)
        return replace(await self._feed.spot(Pair(self._symbol, quote), now), limit=self._limit)
