"""Reading markets: prices, gas and the native currency's price, each a dated fact with a source."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from zuno.kernel.units import Seconds
from zuno.lp.model.chains import ChainInfo
from zuno.lp.model.hedges import PerpetualQuote
from zuno.lp.model.market import Fact, GasQuote, Pair, PricePath, PriceSeries


class PriceFeed(Protocol):
    """Promises prices of exactly the pair asked for (the ratio of both legs), never a guess.

    - `now` is the caller's clock (a chain's head may be it); nothing later than it is used.
    - `Unavailable` when the source does not answer or does not know the pair; `Malformed` when it answers nonsense.
    - The pair turned round is the exact reciprocal.
    """

    @property
    def source(self) -> str:
        """Who answers, in a word or two."""

    async def history(self, pair: Pair, hours: int, now: Seconds) -> Fact[PriceSeries]:
        """The closes of the last `hours` whole hours that ended by `now`, oldest first.

        A missing hour, wherever in the window, is counted in `gaps`: points + gaps = hours. No close at all
        is `Unavailable`. `as_of` is the time of the last close.
        """

    async def spot(self, pair: Pair, now: Seconds) -> Fact[Fraction]:
        """The newest price known by `now`: whole quote tokens for one whole base token."""


class PathFeed(Protocol):
    """Promises the price that arbitrage follows, never the pool's own; otherwise as `PriceFeed`."""

    async def path(self, pair: Pair, since: Seconds, now: Seconds) -> Fact[PricePath]:
        """Its way from `since`, or from the first price that is known after it, to `now`."""


class GasFeed(Protocol):
    """Promises the price of a unit of gas, EIP-1559 parts apart, with the rollup's data fee where there is one.
    `Unavailable` and `Malformed` as above; where the data fee should be known and is not, a note says so."""

    async def gas(self, now: Seconds) -> Fact[GasQuote]: ...


class NativeFeed(Protocol):
    """Promises what one whole unit of the chain's own currency costs in whole `quote` tokens."""

    async def native(self, quote: str, now: Seconds) -> Fact[Fraction]: ...


class PerpetualFeed(Protocol):
    """Promises what a coin can be sold short by for positions of a chain. `Refused` where it cannot, with the reason;
    `Unavailable` where its cost or funding is not known."""

    async def quote(self, coin: str, chain: ChainInfo) -> PerpetualQuote: ...


@dataclass(frozen=True, slots=True)
class Feeds:
    """The market ports of one pool."""

    prices: PriceFeed
    gas: GasFeed
    native: NativeFeed
    reference: PathFeed | None = None
    """None: there is no price but the pool's own."""
    perpetual: PerpetualFeed | None = None
    """None: nothing can be sold short here."""
