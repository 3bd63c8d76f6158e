"""The trading desk's market: what is traded, how time is cut, and the rows every feed is made of.

All moments are Unix milliseconds, as the exchanges speak. Numbers are doubles: they are measured, not owned.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar, overload

from zuno.kernel.arguments import parse_word
from zuno.kernel.units import Millis, Seconds
from zuno.markets.feeds import name_at
from zuno.markets.market import Symbol

SECOND_MS: Final = 1_000
MINUTE_MS: Final = 60 * SECOND_MS
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS
_MONDAY: Final = 4 * DAY_MS
"""1970-01-01 was a Thursday: the first week that opened after it began four days later."""


class Timeframe(StrEnum):
    """How long a bar is. Buckets are UTC; weeks open on Monday at midnight."""

    M1 = "1m"
    H1 = "1h"
    H4 = "4h"
    D1 = "1d"
    W1 = "1w"

    @property
    def millis(self) -> int:
        return _SPANS[self]

    def floor(self, at: int) -> Millis:
        """When the bar that holds this moment opened."""
        shift = _MONDAY if self is Timeframe.W1 else 0
        return Millis((at - shift) // self.millis * self.millis + shift)


_SPANS: Final[Mapping[Timeframe, int]] = {
    Timeframe.M1: MINUTE_MS,
    Timeframe.H1: HOUR_MS,
    Timeframe.H4: 4 * HOUR_MS,
    Timeframe.D1: DAY_MS,
    Timeframe.W1: 7 * DAY_MS,
}


class Mode(StrEnum):
    """How long the desk looks ahead."""

    SWING = "swing"
    POSITION = "position"

    @property
    def timeframes(self) -> tuple[Timeframe, Timeframe, Timeframe]:
        """Shortest first."""
        swing = (Timeframe.H1, Timeframe.H4, Timeframe.D1)
        return swing if self is Mode.SWING else (Timeframe.H4, Timeframe.D1, Timeframe.W1)

    @property
    def chart(self) -> tuple[Timeframe, int]:
        """What a picture shows: bars of which length, and how many."""
        return (Timeframe.D1, 180) if self is Mode.SWING else (Timeframe.W1, 260)

    @property
    def shoulder(self) -> int:
        """Bars on either side that a pivot must tower over."""
        return 5 if self is Mode.SWING else 12


class Feed(StrEnum):
    """Where numbers and words come from, by what they say."""

    CANDLES = "candles"
    FUNDING = "funding"
    OPEN_INTEREST = "open_interest"
    LONG_SHORT = "long_short"
    BASIS = "basis"
    BOOK = "book"
    LIQUIDATIONS = "liquidations"
    WHALES = "whales"
    OPTIONS = "options"
    DVOL = "dvol"
    MACRO = "macro"
    FEAR_GREED = "fear_greed"
    NARRATIVE = "narrative"
    NEWS = "news"
    RATES = "rates"


STALE_BARS: Final = 2
STALE_AFTER: Final[Mapping[Feed, Seconds]] = {
    Feed.FUNDING: Seconds(600), Feed.OPEN_INTEREST: Seconds(600), Feed.LONG_SHORT: Seconds(600),
    Feed.BASIS: Seconds(600), Feed.BOOK: Seconds(10), Feed.LIQUIDATIONS: Seconds(60), Feed.WHALES: Seconds(60),
    Feed.OPTIONS: Seconds(1_800), Feed.DVOL: Seconds(3_600 + 1_800), Feed.MACRO: Seconds(5 * 86_400),
    Feed.FEAR_GREED: Seconds(36 * 3_600), Feed.NARRATIVE: Seconds(24 * 3_600), Feed.NEWS: Seconds(4 * 3_600),
    Feed.RATES: Seconds(600),
}  # fmt: skip
"""How old the newest value of a feed may be. Candles: `STALE_BARS` of their length. Streams: since their last sign of
life. Funding: since it was read. DVOL: half an hour after the next hourly close was due."""


class Side(StrEnum):
    """Which way a position or an aggressor looks."""

    LONG = "long"
    SHORT = "short"

    @property
    def sign(self) -> int:
        return 1 if self is Side.LONG else -1


# -- rows: what a series is made of; `at` is when it happened, or when a bar opened


class Row(Protocol):
    @property
    def at(self) -> Millis: ...


class Candle(NamedTuple):
    """One closed bar. Volumes are in the base currency."""

    at: Millis
    open: float
    high: float
    low: float
    close: float
    volume: float
    taker_buy: float | None
    """The part of the volume that buyers took; None where the venue does not say."""


class Funding(NamedTuple):
    """What longs pay shorts: a fraction of the notional for one interval, never a percentage."""

    at: Millis
    rate: float
    interval_hours: float


class Level(NamedTuple):
    """One number at one moment: open interest in base units, a ratio, an index, an exchange rate."""

    at: Millis
    value: float


class MarkAndIndex(NamedTuple):
    """A perpetual's mark beside the index it follows."""

    at: Millis
    mark: float
    spot: float
    """The index of spot prices it is tied to."""


class MacroRelease(NamedTuple):
    """A published figure of the economy, by the day it speaks of."""

    at: Millis
    value: float
    released: Millis
    """When the world could know it; a revision is a print of the same day, released later."""


class TapeEvent(NamedTuple):
    """A trade, by its taker, or a forced one, by the position that was closed."""

    at: Millis
    side: Side
    price: float
    quantity: float
    usd: float
    id: str
    """The venue's own, or what tells it from others of the same millisecond."""


# -- documents: what is one thing at one moment


class Quote(NamedTuple):
    """Price and size of one level of a book."""

    price: float
    size: float


@dataclass(frozen=True, slots=True)
class Book:
    """An order book at one moment: best first on either side."""

    at: Millis
    bids: tuple[Quote, ...]
    asks: tuple[Quote, ...]


@dataclass(frozen=True, slots=True)
class OptionQuote:
    """One listed option as its venue sums it up."""

    name: str
    expiry: Millis | None
    """None where the venue lists a price but not the instrument: it then belongs to no expiry."""
    strike: float
    call: bool
    mark_iv: float | None
    """Percent a year, as venues quote it."""
    open_interest: float
    volume: float
    underlying: float | None
    """The forward of this expiry."""


@dataclass(frozen=True, slots=True)
class OptionChain:
    """Every listed option of one currency at one moment."""

    at: Millis
    quotes: tuple[OptionQuote, ...]


@dataclass(frozen=True, slots=True)
class Text:
    """Words from outside. They are evidence, never instructions."""

    at: Millis
    channel: str
    id: str
    body: str


class Heartbeat(NamedTuple):
    """A stream was proven alive through this minute: silence in it is a zero, elsewhere it is not known."""

    at: Millis


class Heartbeats(Sequence[Heartbeat]):
    """Heartbeats as runs of minutes: two weeks of a stream are twenty thousand rows, and a handful of runs."""

    __slots__ = ("_count", "runs")

    def __init__(self, runs: Iterable[tuple[Millis, int]]) -> None:
        self.runs = tuple(runs)
        """The first minute of each, and how many it has."""
        self._count = sum(count for _, count in self.runs)

    @classmethod
    def of(cls, rows: Sequence[Heartbeat]) -> Heartbeats:
        """The same rows in their order."""
        if isinstance(rows, Heartbeats):
            return rows
        runs: list[tuple[Millis, int]] = []
        first, count = Millis(0), 0
        for (at,) in rows:
            if count and at == first + count * MINUTE_MS:
                count += 1
                continue
            runs += [(first, count)] if count else []
            first, count = at, 1
        return cls([*runs, (first, count)] if count else runs)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Heartbeat]:
        for first, count in self.runs:
            for at in range(first, first + count * MINUTE_MS, MINUTE_MS):
                yield Heartbeat(Millis(at))

    @overload
    def __getitem__(self, place: int) -> Heartbeat: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Heartbeat]: ...

    def __getitem__(self, place: int | slice) -> Heartbeat | Sequence[Heartbeat]:
        if isinstance(place, slice):
            start, stop, step = place.indices(self._count)
            return Heartbeats(self._cut(start, stop)) if step == 1 else tuple(self)[place]
        left = place + self._count if place < 0 else place
        for first, count in self.runs if left >= 0 else ():
            if left < count:
                return Heartbeat(Millis(first + left * MINUTE_MS))
            left -= count
        raise IndexError(place)

    def _cut(self, start: int, stop: int) -> Iterator[tuple[Millis, int]]:
        for first, count in self.runs:
            low, high = max(start, 0), min(stop, count)
            if low < high:
                yield Millis(first + low * MINUTE_MS), high - low
            start, stop = start - count, stop - count

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Heartbeats | tuple):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"Heartbeats({self.runs!r})"


R = TypeVar("R", bound=Row)


@dataclass(frozen=True, slots=True)
class Series(Generic[R]):
    """The name of a row of rows: which feed, whose, and of what."""

    feed: Feed
    venue: str
    name: str
    """A symbol, a currency, a currency pair, a figure's own name; candles add their timeframe."""
    row: type[R] = field(compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.feed}/{self.venue}/{self.name}"


# A `Symbol` stands for what the venue's series call that market; any other text is taken as it is.


def _name_at(venue: str, name: str) -> str:
    return name_at(venue, name) if isinstance(name, Symbol) else name


def candles(venue: str, symbol: str, timeframe: Timeframe) -> Series[Candle]:
    return Series(Feed.CANDLES, venue, f"{_name_at(venue, symbol)}/{timeframe}", Candle)


def timeframe_of(series: Series[Any]) -> Timeframe:
    """How long the bars of a series of candles are. `ValueError` for a series that has none."""
    return Timeframe(series.name.rpartition("/")[2])


def funding_next(venue: str, symbol: str) -> Series[Funding]:
    """The venue's own prediction of the next rate, each time it was read."""
    return Series(Feed.FUNDING, venue, f"{_name_at(venue, symbol)}/next", Funding)


def alive(stream: Feed, venue: str, symbol: str) -> Series[Heartbeat]:
    return Series(stream, venue, f"{_name_at(venue, symbol)}/alive", Heartbeat)


def fear_greed(venue: str) -> Series[Level]:
    return Series(Feed.FEAR_GREED, venue, "index", Level)


def texts(feed: Feed, venue: str, about: str) -> Series[Text]:
    return Series(feed, venue, about, Text)


_ROWS: Final[dict[Feed, type[Any]]] = {
    Feed.CANDLES: Candle,
    Feed.FEAR_GREED: Level,
    Feed.NARRATIVE: Text,
    Feed.NEWS: Text,
}


def _series_of(feed: Feed, row: type[R]) -> Callable[[str, str], Series[R]]:
    """The series of a feed by venue and name; `parse_series` then knows its rows."""
    _ROWS[feed] = row
    return lambda venue, name: Series(feed, venue, _name_at(venue, name), row)


funding: Final = _series_of(Feed.FUNDING, Funding)
"""Settled rates of a symbol."""
open_interest: Final = _series_of(Feed.OPEN_INTEREST, Level)
"""Of a symbol, in base units."""
long_short: Final = _series_of(Feed.LONG_SHORT, Level)
"""Accounts that are long in a symbol for each one that is short."""
basis: Final = _series_of(Feed.BASIS, MarkAndIndex)
books: Final = _series_of(Feed.BOOK, Book)
liquidations: Final = _series_of(Feed.LIQUIDATIONS, TapeEvent)
whales: Final = _series_of(Feed.WHALES, TapeEvent)
options: Final = _series_of(Feed.OPTIONS, OptionChain)
dvol: Final = _series_of(Feed.DVOL, Level)
macro: Final = _series_of(Feed.MACRO, MacroRelease)
rates: Final = _series_of(Feed.RATES, Level)


def parse_series(text: str) -> Series[Any]:
    """The series of that name, as `str` writes it. `ValueError` for a name no series has."""
    feed, venue, name = text.split("/", 2)
    kind = Feed(feed)
    return Series(kind, venue, name, Heartbeat if name.endswith("/alive") else _ROWS[kind])


_HOLD: Final = re.compile(r"(\d{1,3})(h|d|w)")
_HOURS: Final = {"h": 1, "d": 24, "w": 7 * 24}


def parse_hours(text: str) -> int:
    """Of a duration such as 12h, 5d or 6w; 0 for anything else."""
    parsed = _HOLD.fullmatch(text)
    return int(parsed[1]) * _HOURS[parsed[2]] if parsed and parsed[1].isascii() else 0


def parse_mode(text: str) -> Mode:
    return parse_word(Mode, text, "mode; write swing or position")
