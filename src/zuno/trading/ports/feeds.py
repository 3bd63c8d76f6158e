"""Reading the trading desk's market: one port per kind of feed, the same promises recorded and live.

All of them: `Unavailable` when the venue does not answer, limits us or does not know the symbol; `Malformed` when it
answers something else than its documentation says (a field that is gone, a page of HTML, a unit that cannot be).
Nothing found is an empty answer; not knowing is an error. Rows come oldest first, each key once, inside the time asked
for, both ends included; a long answer is fetched page by page and a page that stops half way is an error, not an end.
"""

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from zuno.kernel.units import Millis
from zuno.trading.model import market


class VenueFeed(Protocol):
    @property
    def venue(self) -> str: ...


class CandleFeed(VenueFeed, Protocol):
    """Promises closed bars only: a bar is closed when the *venue's* clock is past its end."""

    async def candles(
        self, symbol: str, timeframe: market.Timeframe, since: Millis, until: Millis
    ) -> Sequence[market.Candle]:
        """Bars that opened in that time. Where a venue makes no bar without a trade, none is invented."""


class DerivativesFeed(VenueFeed, Protocol):
    """A venue's perpetual: rates as fractions for the venue's own interval, open interest in base units."""

    async def funding(self, symbol: str, since: Millis, until: Millis) -> Sequence[market.Funding]: ...
    async def funding_next(self, symbol: str) -> market.Funding: ...
    async def open_interest(self, symbol: str, since: Millis, until: Millis) -> Sequence[market.Level]: ...
    async def long_short(self, symbol: str, since: Millis, until: Millis) -> Sequence[market.Level]: ...
    async def basis(self, symbol: str) -> market.MarkAndIndex: ...


class BookFeed(VenueFeed, Protocol):
    """Promises a book as the venue has it now, not crossed, best first."""

    async def book(self, symbol: str, depth: int) -> market.Book: ...


class TapeFeed(VenueFeed, Protocol):
    """A venue's stream: forced and large trades, and an `Alive` for each minute it carried data or answered a ping all
    through. It ends with `Unavailable` when the connection is lost; the listener connects again."""

    def listen(
        self, symbols: Sequence[str]
    ) -> AsyncGenerator[
        tuple[market.Series[market.TapeEvent], market.TapeEvent]
        | tuple[market.Series[market.Heartbeat], market.Heartbeat]
    ]: ...


class OptionsFeed(VenueFeed, Protocol):
    """Promises every listed option of a currency with its expiry, joined from the venue's own lists."""

    async def chain(self, currency: str) -> market.OptionChain: ...

    async def dvol(self, currency: str, since: Millis, until: Millis) -> Sequence[market.Level]:
        """Hourly closes of the venue's index of implied volatility."""


class MacroFeed(VenueFeed, Protocol):
    """Promises printed figures with the time the world could first know them; a day without a print has none."""

    @property
    def figures(self) -> Sequence[str]: ...
    async def prints(self, figure: str, since: Millis, until: Millis) -> Sequence[market.MacroRelease]: ...


class LevelFeed(VenueFeed, Protocol):
    """Promises one published number over time: an index of mood, an exchange rate."""

    async def levels(self, name: str, since: Millis, until: Millis) -> Sequence[market.Level]: ...


class TextFeed(VenueFeed, Protocol):
    """Promises words with their channel and time, cut to a stated length and cleaned of control characters."""

    @property
    def feed(self) -> market.Feed: ...
    async def texts(self, about: str, since: Millis, until: Millis) -> Sequence[market.Text]: ...
