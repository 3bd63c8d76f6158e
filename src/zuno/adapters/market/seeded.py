"""A given price series, for worlds that have no market: every fact says `seed`, so nobody takes it for one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise

from zuno.adapters.market.hourly import HISTORY_LIMIT, SPOT_LIMIT, history_fact, window
from zuno.adapters.market.legs import turned_round
from zuno.domain.errors import Malformed, Unavailable
from zuno.domain.market import HOUR, Fact, Pair, PricePoint, PriceSeries
from zuno.domain.units import Seconds


class SeededFeed:
    """`points` is asked anew each time, because a simulated world records its reference as it moves.

    It gives hourly closes, oldest first; one more point after the last whole hour may follow: the price right now,
    which `spot` returns and `history` leaves out.
    """

    def __init__(
        self,
        pair: Pair,
        points: Callable[[], Sequence[PricePoint]],
        *,
        limit: Seconds = HISTORY_LIMIT,
        spot_limit: Seconds = SPOT_LIMIT,
    ) -> None:
        self._pair = pair
        self._points = points
        self._limit = limit
        self._spot_limit = spot_limit

    @property
    def source(self) -> str:
        return "seed"

    async def history(self, pair: Pair, hours: int, now: Seconds) -> Fact[PriceSeries]:
        window(hours, now)
        closes: dict[int, Fraction] = {
            point.at: point.price for point in self._known(pair, now) if point.at % HOUR == 0
        }
        return history_fact(closes, pair, hours, now, self.source, self._limit)

    async def spot(self, pair: Pair, now: Seconds) -> Fact[Fraction]:
        known = self._known(pair, now)
        if not known:
            raise Unavailable(f"{self.source} has no price of {pair} by {now}")
        return Fact(known[-1].price, self.source, known[-1].at, now, self._spot_limit)

    def _known(self, pair: Pair, now: Seconds) -> list[PricePoint]:
        """The points dated by `now`, priced the way round that was asked."""
        inverse = turned_round(pair, self._pair, self.source)
        points = self._points()
        if any(point.price <= 0 for point in points):
            raise Malformed(f"The seeded {self._pair} series holds a price that is not above zero")
        if any(later.at <= earlier.at for earlier, later in pairwise(points)):
            raise Malformed(f"The seeded {self._pair} series is not in order of time")
        if any(point.at % HOUR for point in points[:-1]):
            raise Malformed(f"The seeded {self._pair} series has a close that is not on the hour")
        return [
            PricePoint(point.at, 1 / point.price if inverse else point.price) for point in points if point.at <= now
        ]
