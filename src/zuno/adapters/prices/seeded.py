"""A given price series, for worlds that have no market: every fact says `seed`, so nobody takes it for one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise

from zuno.adapters.prices.hourly import HISTORY_LIMIT, SPOT_LIMIT, history_fact, is_inverse
from zuno.kernel.errors import Malformed, Unavailable
from zuno.kernel.units import Seconds
from zuno.lp.model.market import HOUR, Fact, Pair, PriceSeries

Record = tuple[Seconds, Fraction]
"""When, and what one whole base token cost in whole quote tokens."""


class SeededFeed:
    """`records` is asked anew each time, because a simulated world writes its reference down as it moves.

    The close of an hour is the last record in it, the hour's own end included. An hour without a record is a gap:
    unlike a pool's price, a reference says nothing about the time it does not mention.
    """

    source = "seed"

    def __init__(
        self, pair: Pair, records: Callable[[], Sequence[Record]], *, spot_limit: Seconds = SPOT_LIMIT
    ) -> None:
        self._pair = pair
        self._records = records
        self._spot_limit = spot_limit

    async def history(self, pair: Pair, hours: int, now: Seconds) -> Fact[PriceSeries]:
        closes = {
            -(-at // HOUR) * HOUR: price for at, price in self._records_by(pair, now)
        }  # ends round up; the last stays
        return history_fact(closes, pair, hours, now, self.source, HISTORY_LIMIT)

    async def spot(self, pair: Pair, now: Seconds) -> Fact[Fraction]:
        known = self._records_by(pair, now)
        if not known:
            raise Unavailable(f"{self.source} has no price of {pair} by {now}")
        as_of, price = known[-1]
        return Fact(price, self.source, as_of, now, self._spot_limit)

    def _records_by(self, pair: Pair, now: Seconds) -> list[Record]:
        """The records dated by `now`, priced the way round that was asked."""
        inverse = is_inverse(pair, self._pair, self.source)
        records = self._records()
        if any(price.numerator <= 0 for _, price in records):
            raise Malformed(f"The seeded {self._pair} series holds a price that is not above zero")
        if any(later <= earlier for (earlier, _), (later, _) in pairwise(records)):
            raise Malformed(f"The seeded {self._pair} series is not in order of time")
        return [(at, 1 / price if inverse else price) for at, price in records if at <= now]
