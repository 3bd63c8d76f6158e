"""The trading desk's feeds over its own recording: what a venue said, as far as it was known by a moment.

A series that was never recorded is `Unavailable`, as a venue's unknown symbol is; one without rows in the time asked
for is an empty answer.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any, Final, TypeVar

from zuno.adapters.venues.vendor_json import check_uncrossed
from zuno.kernel.errors import Unavailable
from zuno.kernel.units import Millis
from zuno.markets.feeds import ALTERNATIVE, FIGURES
from zuno.trading.model.market import (
    MINUTE_MS,
    Book,
    Candle,
    Feed,
    Funding,
    Heartbeat,
    Level,
    MacroRelease,
    MarkAndIndex,
    OptionChain,
    Row,
    Series,
    TapeEvent,
    Text,
    Timeframe,
    alive,
    basis,
    books,
    candles,
    dvol,
    fear_greed,
    funding,
    funding_next,
    liquidations,
    long_short,
    macro,
    open_interest,
    options,
    rates,
    texts,
    whales,
)
from zuno.trading.ports.series import SeriesStore

BEGINNING: Final = Millis(0)

R = TypeVar("R", bound=Row)
Now = Callable[[], Millis]


class Recording:
    """Rows of a store that were known by `now`."""

    def __init__(self, store: SeriesStore, now: Now) -> None:
        self._store = store
        self.now = now

    async def rows(self, series: Series[R], since: Millis, until: Millis) -> tuple[R, ...]:
        found = await self.some(series, since, until)
        if not found:
            await self.newest(series)  # a series nobody recorded is not an empty one
        return found

    async def some(self, series: Series[R], since: Millis, until: Millis) -> tuple[R, ...]:
        return await self._store.read(series, since, until, self.now())

    async def newest(self, series: Series[R]) -> R:
        now = self.now()
        found = await self._store.read(series, BEGINNING, now, now, newest=1)
        if not found:
            raise Unavailable(f"{series} was not recorded by then; `zuno data status` lists what there is")
        return found[-1]


class RecordedVenue:
    """Whatever one venue says in numbers: candles, derivatives, books, options, exchange rates, its tape."""

    def __init__(self, store: SeriesStore, venue: str, now: Now, *, heard_since: Millis = BEGINNING) -> None:
        self._past = Recording(store, now)
        self.venue = venue
        self._heard_since = heard_since

    async def candles(self, symbol: str, timeframe: Timeframe, since: Millis, until: Millis) -> Sequence[Candle]:
        return await self._past.rows(candles(self.venue, symbol, timeframe), since, until)

    async def funding(self, symbol: str, since: Millis, until: Millis) -> Sequence[Funding]:
        return await self._past.rows(funding(self.venue, symbol), since, until)

    async def funding_next(self, symbol: str) -> Funding:
        return await self._past.newest(funding_next(self.venue, symbol))

    async def open_interest(self, symbol: str, since: Millis, until: Millis) -> Sequence[Level]:
        return await self._past.rows(open_interest(self.venue, symbol), since, until)

    async def long_short(self, symbol: str, since: Millis, until: Millis) -> Sequence[Level]:
        return await self._past.rows(long_short(self.venue, symbol), since, until)

    async def basis(self, symbol: str) -> MarkAndIndex:
        return await self._past.newest(basis(self.venue, symbol))

    async def book(self, symbol: str, depth: int) -> Book:
        book = await self._past.newest(books(self.venue, symbol))
        return check_uncrossed(Book(book.at, book.bids[:depth], book.asks[:depth]), f"the recorded book of {symbol}")

    async def chain(self, currency: str) -> OptionChain:
        return await self._past.newest(options(self.venue, currency))

    async def dvol(self, currency: str, since: Millis, until: Millis) -> Sequence[Level]:
        return await self._past.rows(dvol(self.venue, currency), since, until)

    async def levels(self, name: str, since: Millis, until: Millis) -> Sequence[Level]:
        series = fear_greed(self.venue) if self.venue == ALTERNATIVE else rates(self.venue, name)
        return await self._past.rows(series, since, until)

    async def listen(
        self, symbols: Sequence[str]
    ) -> AsyncGenerator[tuple[Series[TapeEvent], TapeEvent] | tuple[Series[Heartbeat], Heartbeat]]:
        """The tape again from `heard_since`, in the order it came: a minute is proven after its trades. Where the
        recording ends, the stream is lost."""
        heard: list[tuple[int, Series[Any], Any]] = []
        now = self._past.now()
        for series in _tape(self.venue, symbols):
            late = MINUTE_MS if series.row is Heartbeat else 0
            heard += [(row.at + late, series, row) for row in await self._past.some(series, self._heard_since, now)]
        for _, series, row in sorted(heard, key=itemgetter(0)):
            yield series, row
        raise Unavailable(f"The recording of {self.venue}'s tape ends here")


class RecordedFigures:
    """Printed figures of one source, released by then."""

    def __init__(self, store: SeriesStore, venue: str, now: Now) -> None:
        self._past = Recording(store, now)
        self.venue = venue

    @property
    def figures(self) -> Sequence[str]:
        return FIGURES[self.venue]

    async def prints(self, figure: str, since: Millis, until: Millis) -> Sequence[MacroRelease]:
        return await self._past.rows(macro(self.venue, figure), since, until)


class RecordedTexts:
    """Words of one source."""

    def __init__(self, store: SeriesStore, feed: Feed, venue: str, now: Now) -> None:
        self._past = Recording(store, now)
        self.feed = feed
        self.venue = venue

    async def texts(self, about: str, since: Millis, until: Millis) -> Sequence[Text]:
        return await self._past.rows(texts(self.feed, self.venue, about), since, until)


def _tape(venue: str, symbols: Sequence[str]) -> Iterator[Series[Any]]:
    for symbol in symbols:
        yield liquidations(venue, symbol)
        yield alive(Feed.LIQUIDATIONS, venue, symbol)
        yield whales(venue, symbol)
        yield alive(Feed.WHALES, venue, symbol)
