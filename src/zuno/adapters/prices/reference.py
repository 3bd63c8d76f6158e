"""A feed whose price right now is somebody else's word: the history is the pool's own, the reference is not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from fractions import Fraction

from zuno.adapters.prices.hourly import SPOT_LIMIT
from zuno.adapters.prices.legs import turned_round
from zuno.kernel.units import Seconds
from zuno.lp.model.market import Fact, Pair, PriceSeries
from zuno.lp.ports.market import PriceFeed


class WithReference:
    """`reference` gives whole quote tokens for one whole base token of `pair`, and is never the pool itself."""

    def __init__(self, feed: PriceFeed, pair: Pair, reference: Callable[[], Awaitable[Fraction]], label: str) -> None:
        self._feed = feed
        self._pair = pair
        self._reference = reference
        self._label = label

    @property
    def source(self) -> str:
        return f"{self._feed.source}, {self._label}"

    async def history(self, pair: Pair, hours: int, now: Seconds) -> Fact[PriceSeries]:
        return await self._feed.history(pair, hours, now)

    async def spot(self, pair: Pair, now: Seconds) -> Fact[Fraction]:
        inverse = turned_round(pair, self._pair, self._label)
        price = await self._reference()
        return Fact(1 / price if inverse else price, self._label, now, now, SPOT_LIMIT)
