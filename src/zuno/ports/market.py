"""Reading markets: prices, gas and the native currency's price, each a dated fact with a source."""

from __future__ import annotations

from typing import Protocol

from zuno.domain.market import Fact, GasQuote, Pair, PriceSeries
from zuno.domain.units import Seconds


class PriceFeed(Protocol):
    """Promises hourly closes of exactly the pair asked for (the ratio of both legs), oldest first.

    - Never invents a point: a missing hour is counted in `gaps`.
    - `Unavailable` when the source does not answer or does not know the pair; `Malformed` when it answers nonsense.
    - `as_of` of the fact is the time of its last point; `now` is the caller's clock (a chain's head may be it).
    """

    @property
    def source(self) -> str: ...

    async def history(self, pair: Pair, hours: int, now: Seconds) -> Fact[PriceSeries]: ...


class GasFeed(Protocol):
    """Promises the price of a unit of gas, EIP-1559 parts apart, with the rollup's data fee where there is one."""

    async def gas(self, now: Seconds) -> Fact[GasQuote]: ...
