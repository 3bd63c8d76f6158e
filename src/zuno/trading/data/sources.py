"""Whom the trading desk asks for a series: the feeds of every venue behind one question, how often and how far back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, TypeVar

from zuno.kernel.errors import Unavailable
from zuno.kernel.units import Millis, Seconds
from zuno.trading.measure.bars import timeframe_of
from zuno.trading.measure.data_quality import LEEWAY, complete_at
from zuno.trading.model.market import (
    DAY_MS,
    HOUR_MS,
    SECOND_MS,
    STALE_AFTER,
    STALE_BARS,
    Candle,
    Feed,
    MacroRelease,
    Series,
    Timeframe,
)
from zuno.trading.model.venues import BINANCE, OKX, UPBIT
from zuno.trading.ports.feeds import (
    BookFeed,
    CandleFeed,
    DerivativesFeed,
    LevelFeed,
    MacroFeed,
    OptionsFeed,
    TapeFeed,
    TextFeed,
)
from zuno.trading.ports.series import Batch

DEPTH: Final = 1_000
MOST_AHEAD: Final = 60 * SECOND_MS
"""How far a venue's clock may be ahead of ours before its word is not taken."""
STREAMED: Final = frozenset({Feed.LIQUIDATIONS, Feed.WHALES})
PAGE_BARS: Final = 10_000
"""Bars asked for at once, and written at once."""
FINE_DAYS: Final = 2
"""Venues tell open interest and ratios in points of five minutes for so many days, and in hours for more."""
_NEXT: Final = "/next"

F = TypeVar("F")


@dataclass(frozen=True, slots=True)
class PollSchedule:
    """How often a series is asked for, in seconds, and how far back a first answer reaches, in milliseconds."""

    period: float
    reach: int


_SCHEDULES: Final[Mapping[Feed, PollSchedule]] = {
    Feed.FUNDING: PollSchedule(300, 180 * DAY_MS),
    Feed.OPEN_INTEREST: PollSchedule(60, 30 * DAY_MS),
    Feed.LONG_SHORT: PollSchedule(60, FINE_DAYS * DAY_MS),
    Feed.BASIS: PollSchedule(60, 0),
    Feed.BOOK: PollSchedule(9, 0),  # more than five in a minute, and none older than ten seconds
    Feed.OPTIONS: PollSchedule(600, 0),
    Feed.DVOL: PollSchedule(300, 31 * DAY_MS),
    Feed.MACRO: PollSchedule(3_600, 120 * DAY_MS),
    Feed.FEAR_GREED: PollSchedule(3_600, 31 * DAY_MS),
    Feed.NARRATIVE: PollSchedule(6 * 3_600, HOUR_MS),
    Feed.NEWS: PollSchedule(600, DAY_MS),
    Feed.RATES: PollSchedule(60, DAY_MS),
}
_BARS: Final[Mapping[Timeframe, int]] = {
    Timeframe.M1: 7 * 24 * 60,
    Timeframe.H1: 200 * 24,
    Timeframe.H4: 1_100,
    Timeframe.D1: 1_100,
    Timeframe.W1: 521,
}
VENUE_RETENTION: Final[Mapping[tuple[Feed, str], int]] = {
    (Feed.OPEN_INTEREST, BINANCE): 29 * DAY_MS,
    (Feed.LONG_SHORT, BINANCE): 29 * DAY_MS,
    (Feed.OPEN_INTEREST, OKX): 29 * DAY_MS,
    (Feed.LONG_SHORT, OKX): 29 * DAY_MS,
    (Feed.FUNDING, OKX): 89 * DAY_MS,
}
"""How long these venues keep it, less a day; the others keep all of it."""
_MAX_GAP: Final[Mapping[Feed, int]] = {
    Feed.FUNDING: 8 * HOUR_MS,
    Feed.OPEN_INTEREST: HOUR_MS,
    Feed.LONG_SHORT: HOUR_MS,
    Feed.RATES: HOUR_MS,
    Feed.DVOL: HOUR_MS,
    Feed.FEAR_GREED: DAY_MS,
}
"""Neighbours further from each other than this have lost something in between."""
LISTED_SINCE: Final = Millis(1_704_067_200_000)
"""2024: since before it every venue has had what the desk wants of it. Of an earlier time it may have nothing."""
SETTLING: Final = 10 * SECOND_MS
"""A bar that closed less than this before now is not owed yet."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Feeds by the name of their venue. `closed`: venues nobody can ask as things are set, and why."""

    candles: Mapping[str, CandleFeed] = field(default_factory=dict)
    derivatives: Mapping[str, DerivativesFeed] = field(default_factory=dict)
    books: Mapping[str, BookFeed] = field(default_factory=dict)
    options: Mapping[str, OptionsFeed] = field(default_factory=dict)
    macro: Mapping[str, MacroFeed] = field(default_factory=dict)
    levels: Mapping[str, LevelFeed] = field(default_factory=dict)
    texts: Mapping[str, TextFeed] = field(default_factory=dict)
    tapes: Mapping[str, TapeFeed] = field(default_factory=dict)
    closed: Mapping[str, str] = field(default_factory=dict)

    async def ask(self, series: Series[Any], since: Millis, until: Millis) -> Sequence[Any]:
        """Rows of that time; what a venue tells of now alone is one row of now."""
        name = series.name
        if (why := self.closed.get(series.venue)) is not None:
            raise Unavailable(why)
        match series.feed:
            case Feed.CANDLES:
                symbol, _, timeframe = name.rpartition("/")
                return await _of(self.candles, series).candles(symbol, Timeframe(timeframe), since, until)
            case Feed.FUNDING if name.endswith(_NEXT):
                return [await _of(self.derivatives, series).funding_next(name.removesuffix(_NEXT))]
            case Feed.FUNDING:
                return await _of(self.derivatives, series).funding(name, since, until)
            case Feed.OPEN_INTEREST:
                return await _of(self.derivatives, series).open_interest(name, since, until)
            case Feed.LONG_SHORT:
                return await _of(self.derivatives, series).long_short(name, since, until)
            case Feed.BASIS:
                return [await _of(self.derivatives, series).basis(name)]
            case Feed.BOOK:
                return [await _of(self.books, series).book(name, DEPTH)]
            case Feed.OPTIONS:
                return [await _of(self.options, series).chain(name)]
            case Feed.DVOL:
                return await _of(self.options, series).dvol(name, since, until)
            case Feed.MACRO:
                return await _of(self.macro, series).prints(name, since, until)
            case Feed.FEAR_GREED | Feed.RATES:
                return await _of(self.levels, series).levels(name, since, until)
            case Feed.NARRATIVE | Feed.NEWS:
                return await _of(self.texts, series).texts(name, since, until)
            case Feed.LIQUIDATIONS | Feed.WHALES:
                raise Unavailable(f"{series} is a stream: it is heard, not asked for")


def _of(feeds: Mapping[str, F], series: Series[Any]) -> F:
    if series.venue not in feeds:
        raise Unavailable(f"Nobody is known who tells {series}")
    return feeds[series.venue]


def is_streamed(series: Series[Any]) -> bool:
    return series.feed in STREAMED


def is_snapshot_only(series: Series[Any]) -> bool:
    """Whether a venue tells it of now alone: what was missed cannot be asked for later."""
    return is_streamed(series) or poll_schedule_of(series).reach == 0


def poll_schedule_of(series: Series[Any]) -> PollSchedule:
    if series.feed is Feed.CANDLES:
        timeframe = timeframe_of(series)
        return PollSchedule(min(timeframe.millis, HOUR_MS) / SECOND_MS, _BARS[timeframe] * timeframe.millis)
    if series.name.endswith(_NEXT):
        return PollSchedule(_SCHEDULES[Feed.BASIS].period, 0)
    return _SCHEDULES[series.feed]


def fresh_for(series: Series[Any]) -> Seconds:
    """How long ago its source may have answered last."""
    if series.feed is Feed.CANDLES:
        return Seconds(STALE_BARS * timeframe_of(series).millis // SECOND_MS)
    return STALE_AFTER[series.feed]


def kept_since(series: Series[Any], now: Millis) -> Millis:
    """Before this moment the venue has nothing of it any more."""
    kept = VENUE_RETENTION.get((series.feed, series.venue))
    return Millis(0) if kept is None else Millis(now - kept)


def find_missing(series: Series[Any], moments: Sequence[int], since: int, until: int) -> list[tuple[Millis, Millis]]:
    """The stretches of [since, until] in which something should be and nothing is, oldest first.

    `moments`: when the rows are that are here, oldest first. Words come when they come and prints are revised: of them
    all is asked for again.
    """
    apart = _expected_gap(series)
    if apart is None or not moments:
        return [(Millis(since), Millis(until))]
    edges = (since - 1, *moments, until + 1)
    return [(Millis(before + 1), Millis(after - 1)) for before, after in pairwise(edges) if after - before > apart]


def find_missing_spans(
    series: Series[Any], moments: Sequence[int], since: int, until: int, now: Millis
) -> list[tuple[Millis, Millis]]:
    """What a venue owes of a time it was asked for and did not tell, each from its beginning to what comes after it.

    `moments`: when the rows are that are here now, oldest first. Before the first there may have been no market, but
    not of late. Where nobody trades on Upbit it makes no bar, and words and prints come when they come: they owe
    nothing.
    """
    apart = _expected_gap(series)
    if apart is None or series.venue == UPBIT:
        return []
    if series.row is Candle:
        timeframe = timeframe_of(series)
        last = min(until, timeframe.floor(now - SETTLING) - 1)
        due, after = timeframe.floor(last) >= since, timeframe.millis
    else:
        last = min(until, now - apart - 1)
        due, after = last - since > apart, 0
    if not moments:
        return [(Millis(since), Millis(last + 1))] if due else []
    began = Millis(max(since, LISTED_SINCE))
    before = [(began, Millis(moments[0]))] if moments[0] - began >= apart else []
    holes = find_missing(series, moments, moments[0], last)
    return [*before, *((Millis(low - 1 + after), Millis(high + 1)) for low, high in holes)]


def _expected_gap(series: Series[Any]) -> int | None:
    if series.row is Candle:
        return timeframe_of(series).millis
    apart = _MAX_GAP.get(series.feed)
    return None if apart is None else apart + LEEWAY


def split_into_pages(series: Series[Any], since: Millis, until: Millis) -> Iterator[tuple[Millis, Millis]]:
    """That time in parts that are asked for and written one after the other, oldest first."""
    if series.feed in (Feed.OPEN_INTEREST, Feed.LONG_SHORT):
        near = until - FINE_DAYS * DAY_MS
        if since < near:
            yield since, Millis(near - 1)
        yield Millis(max(since, near)), until
        return
    span = PAGE_BARS * timeframe_of(series).millis if series.row is Candle else until - since + 1
    for start in range(since, until + 1, max(span, 1)):
        yield Millis(start), Millis(min(until, start + span - 1))


def date_batch(series: Series[Any], rows: Sequence[Any], now: Millis) -> Batch[Any]:
    """Rows as they came in at a moment. Where the venue's clock is ahead of ours, they are known from its own."""
    if not rows or series.row is MacroRelease:  # a print may be told before the day it counts from
        return Batch(series, rows, now)
    latest = max(complete_at(series, row) for row in rows)
    if latest - now > MOST_AHEAD:
        raise Unavailable(
            f"{series.venue} is {(latest - now) // SECOND_MS} s ahead of this machine's clock and at most "
            f"{MOST_AHEAD // SECOND_MS} s are taken; set the clock"
        )
    return Batch(series, rows, Millis(max(now, latest)))
