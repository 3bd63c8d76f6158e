"""From a venue into the store: whom a series is asked of, how often and how far back. What is owed is asked for and
written oldest first, so that a process that ends is followed up from its last row; repeating is harmless."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, TypeAlias, TypeVar

from zuno.kernel.errors import Broken, Unavailable, Unreachable, ZunoError
from zuno.kernel.text import plain_text
from zuno.kernel.units import Millis, Seconds
from zuno.markets.feeds import QUIET, ROWS
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol
from zuno.trading.measure.data_quality import LEEWAY, complete_at, find_row_fault
from zuno.trading.model import market
from zuno.trading.model.wanted import neighbour_series, wanted_series
from zuno.trading.ports import feeds
from zuno.trading.ports.series import Batch, SeriesStore

DEPTH: Final = 1_000
MOST_AHEAD: Final = 60 * market.SECOND_MS
"""How far a venue's clock may be ahead of ours before its word is not taken."""
STREAMED: Final = frozenset({market.Feed.LIQUIDATIONS, market.Feed.WHALES})
PAGE_BARS: Final = 10_000
"""Bars asked for at once, and written at once."""
FINE_DAYS: Final = 2
"""Venues tell open interest and ratios in points of five minutes for so many days, and in hours for more."""
_NEXT: Final = "/next"

F = TypeVar("F")
AnySeries: TypeAlias = market.Series[Any]
Hole: TypeAlias = tuple[Millis, Millis]
"""Its first moment and its last."""


@dataclass(frozen=True, slots=True)
class PollSchedule:
    """How often a series is asked for, in seconds, and how far back a first answer reaches, in milliseconds."""

    period: float
    reach: int


_SCHEDULES: Final[Mapping[market.Feed, PollSchedule]] = {
    market.Feed.FUNDING: PollSchedule(300, 180 * market.DAY_MS),
    market.Feed.OPEN_INTEREST: PollSchedule(60, 30 * market.DAY_MS),
    market.Feed.LONG_SHORT: PollSchedule(60, FINE_DAYS * market.DAY_MS),
    market.Feed.BASIS: PollSchedule(60, 0),
    market.Feed.BOOK: PollSchedule(9, 0),  # more than five in a minute, and none older than ten seconds
    market.Feed.OPTIONS: PollSchedule(600, 0),
    market.Feed.DVOL: PollSchedule(300, 31 * market.DAY_MS),
    market.Feed.MACRO: PollSchedule(3_600, 120 * market.DAY_MS),
    market.Feed.FEAR_GREED: PollSchedule(3_600, 31 * market.DAY_MS),
    market.Feed.NARRATIVE: PollSchedule(6 * 3_600, market.HOUR_MS),
    market.Feed.NEWS: PollSchedule(600, market.DAY_MS),
    market.Feed.RATES: PollSchedule(60, market.DAY_MS),
}
_BARS: Final[Mapping[market.Timeframe, int]] = {
    market.Timeframe.M1: 7 * 24 * 60,
    market.Timeframe.H1: 200 * 24,
    market.Timeframe.H4: 1_100,
    market.Timeframe.D1: 1_100,
    market.Timeframe.W1: 521,
}
_MAX_GAP: Final[Mapping[market.Feed, int]] = {
    market.Feed.FUNDING: 8 * market.HOUR_MS,
    market.Feed.OPEN_INTEREST: market.HOUR_MS,
    market.Feed.LONG_SHORT: market.HOUR_MS,
    market.Feed.RATES: market.HOUR_MS,
    market.Feed.DVOL: market.HOUR_MS,
    market.Feed.FEAR_GREED: market.DAY_MS,
}
"""Neighbours further from each other than this have lost something in between."""
LISTED_SINCE: Final = Millis(1_704_067_200_000)
"""2024: since before it every venue has had what the desk wants of it. Of an earlier time it may have nothing."""
SETTLING: Final = 10 * market.SECOND_MS
"""A bar that closed less than this before now is not owed yet."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Feeds by the name of their venue. `closed`: venues nobody can ask as things are set, and why."""

    candles: Mapping[str, feeds.CandleFeed] = field(default_factory=dict)
    derivatives: Mapping[str, feeds.DerivativesFeed] = field(default_factory=dict)
    books: Mapping[str, feeds.BookFeed] = field(default_factory=dict)
    options: Mapping[str, feeds.OptionsFeed] = field(default_factory=dict)
    macro: Mapping[str, feeds.MacroFeed] = field(default_factory=dict)
    levels: Mapping[str, feeds.LevelFeed] = field(default_factory=dict)
    texts: Mapping[str, feeds.TextFeed] = field(default_factory=dict)
    tapes: Mapping[str, feeds.TapeFeed] = field(default_factory=dict)
    closed: Mapping[str, str] = field(default_factory=dict)

    async def ask_within(self, patience: float, series: AnySeries, since: Millis, until: Millis) -> Sequence[Any]:
        """`Unavailable` where the answer takes longer."""
        try:
            async with asyncio.timeout(patience):
                return await self.ask(series, since, until)
        except TimeoutError:
            raise Unavailable(f"{series.venue} did not answer within {patience:g} s") from None

    async def ask(self, series: AnySeries, since: Millis, until: Millis) -> Sequence[Any]:
        """Rows of that time; what a venue tells of now alone is one row of now."""
        name = series.name
        if (why := self.closed.get(series.venue)) is not None:
            raise Unavailable(why)
        match series.feed:
            case market.Feed.CANDLES:
                symbol, _, timeframe = name.rpartition("/")
                return await _of(self.candles, series).candles(symbol, market.Timeframe(timeframe), since, until)
            case market.Feed.FUNDING if name.endswith(_NEXT):
                return [await _of(self.derivatives, series).funding_next(name.removesuffix(_NEXT))]
            case market.Feed.FUNDING:
                return await _of(self.derivatives, series).funding(name, since, until)
            case market.Feed.OPEN_INTEREST:
                return await _of(self.derivatives, series).open_interest(name, since, until)
            case market.Feed.LONG_SHORT:
                return await _of(self.derivatives, series).long_short(name, since, until)
            case market.Feed.BASIS:
                return [await _of(self.derivatives, series).basis(name)]
            case market.Feed.BOOK:
                return [await _of(self.books, series).book(name, DEPTH)]
            case market.Feed.OPTIONS:
                return [await _of(self.options, series).chain(name)]
            case market.Feed.DVOL:
                return await _of(self.options, series).dvol(name, since, until)
            case market.Feed.MACRO:
                return await _of(self.macro, series).prints(name, since, until)
            case market.Feed.FEAR_GREED | market.Feed.RATES:
                return await _of(self.levels, series).levels(name, since, until)
            case market.Feed.NARRATIVE | market.Feed.NEWS:
                return await _of(self.texts, series).texts(name, since, until)
            case market.Feed.LIQUIDATIONS | market.Feed.WHALES:
                raise Unavailable(f"{series} is a stream: it is heard, not asked for")


def _of(feeds: Mapping[str, F], series: AnySeries) -> F:
    if series.venue not in feeds:
        raise Unavailable(f"Nobody is known who tells {series}")
    return feeds[series.venue]


def is_streamed(series: AnySeries) -> bool:
    return series.feed in STREAMED


def is_snapshot_only(series: AnySeries) -> bool:
    """Whether a venue gives only the current value: what was missed cannot be asked for later."""
    return is_streamed(series) or poll_schedule_of(series).reach == 0


def poll_schedule_of(series: AnySeries) -> PollSchedule:
    if series.feed is market.Feed.CANDLES:
        timeframe = market.timeframe_of(series)
        period = min(timeframe.millis, market.HOUR_MS) / market.SECOND_MS
        return PollSchedule(period, _BARS[timeframe] * timeframe.millis)
    if series.name.endswith(_NEXT):
        return PollSchedule(_SCHEDULES[market.Feed.BASIS].period, 0)
    return _SCHEDULES[series.feed]


def fresh_for(series: AnySeries) -> Seconds:
    """How long ago its source may have answered last."""
    if series.feed is market.Feed.CANDLES:
        return Seconds(market.STALE_BARS * market.timeframe_of(series).millis // market.SECOND_MS)
    return market.STALE_AFTER[series.feed]


def kept_since(series: AnySeries, now: Millis) -> Millis:
    """Before this moment the venue has nothing of it any more."""
    row = ROWS.get(series.venue)
    days = None if row is None else row.kept_days.get(series.feed)
    return Millis(0) if days is None else Millis(now - days * market.DAY_MS)


def find_missing(series: AnySeries, moments: Sequence[int], since: int, until: int) -> list[Hole]:
    """The spans of [since, until] that lack rows, oldest first. `moments`: times of the rows that are here. Of texts
    and prints all is asked for again."""
    apart = _expected_gap(series)
    if apart is None or not moments:
        return [(Millis(since), Millis(until))]
    edges = (since - 1, *moments, until + 1)
    return [(Millis(before + 1), Millis(after - 1)) for before, after in pairwise(edges) if after - before > apart]


def find_missing_spans(series: AnySeries, moments: Sequence[int], since: int, until: int, now: Millis) -> list[Hole]:
    """What a venue was asked for and did not give, each span up to the next row. `moments`: times of the rows that are
    here. Before the first row there may have been no market. Where no bar is made without a trade nothing is owed, nor
    of texts, prints and what is kept for less than a day: they have no schedule."""
    apart = _expected_gap(series)
    if apart is None or series.venue in QUIET or kept_since(series, now) == now:
        return []
    if series.row is market.Candle:
        timeframe = market.timeframe_of(series)
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


def _expected_gap(series: AnySeries) -> int | None:
    if series.row is market.Candle:
        return market.timeframe_of(series).millis
    apart = _MAX_GAP.get(series.feed)
    return None if apart is None else apart + LEEWAY


def split_into_pages(series: AnySeries, since: Millis, until: Millis) -> Iterator[Hole]:
    """That time in parts that are asked for and written one after the other, oldest first."""
    if series.feed in (market.Feed.OPEN_INTEREST, market.Feed.LONG_SHORT):
        near = until - FINE_DAYS * market.DAY_MS
        if since < near:
            yield since, Millis(near - 1)
        yield Millis(max(since, near)), until
        return
    span = PAGE_BARS * market.timeframe_of(series).millis if series.row is market.Candle else until - since + 1
    for start in range(since, until + 1, max(span, 1)):
        yield Millis(start), Millis(min(until, start + span - 1))


def date_batch(series: AnySeries, rows: Sequence[Any], now: Millis) -> Batch[Any]:
    """Rows with the time they reached us, or the venue's own where its clock is ahead of ours."""
    # Daily prints are stamped with the day they describe; they become known the next morning.
    if not rows or series.row is market.MacroRelease:
        return Batch(series, rows, now)
    latest = max(complete_at(series, row) for row in rows)
    if latest - now > MOST_AHEAD:
        raise Unavailable(
            f"{series.venue} is {(latest - now) // market.SECOND_MS} s ahead of this machine's clock and at most "
            f"{MOST_AHEAD // market.SECOND_MS} s are taken; set the clock"
        )
    return Batch(series, rows, Millis(max(now, latest)))


Keep: TypeAlias = Callable[[Batch[Any]], Awaitable[None]]
Now: TypeAlias = Callable[[], Millis]

PATIENCE: Final = 120.0
"""Seconds one question may take, all its pages together."""
LIVE_SECONDS: Final = 30.0
"""What somebody who looks at the desk is kept waiting for all venues together."""
LAST_SECONDS: Final = 10.0
"""And after that for those whose word grows old within a minute."""
NEWS_AGAIN: Final = market.HOUR_MS
"""How far before the newest post of any channel posts are asked for again."""
MOST_HOLES: Final = 20
MOST_TRIES: Final = 3
_LONGEST_CLAUSE: Final = 300
_LOG: Final = logging.getLogger(__name__)
_BEGINNING, _EVER = Millis(0), Millis(2**62)


class Intake:
    """Tracks how far each series has come; one visit at a time of each."""

    def __init__(
        self, sources: Sources, store: SeriesStore, keep: Keep, now: Now, *, patience: float = PATIENCE
    ) -> None:
        self._sources = sources
        self._store = store
        self._keep = keep
        self._now = now
        self._patience = patience
        self._frontier: dict[AnySeries, Millis] = {}
        self._holes: dict[AnySeries, list[Hole]] = {}
        self._tries: Counter[tuple[AnySeries, Hole]] = Counter()
        self.given_up: dict[AnySeries, list[Hole]] = {}
        """What an earlier life left out and no venue tells any more, each from its beginning to what comes after."""
        self.set_aside: dict[AnySeries, str] = {}
        """What no market can have made of the last that was told of a series; the store keeps it aside."""
        self.latest = _BEGINNING
        """From when the newest of what came in is known."""

    async def visit(self, series: AnySeries) -> None:
        """Ask for all that is owed of a series, and keep it. A paid search with a young answer is not repeated."""
        self.set_aside.pop(series, None)
        if series.feed is market.Feed.NARRATIVE and await self._is_young(series):
            return
        await self._stretch(series, *await self._tail(series))
        await self._fill(series)

    @property
    def closed(self) -> Mapping[str, str]:
        """Venues nobody can ask as things are set, and why."""
        return self._sources.closed

    def newest(self, series: AnySeries) -> Millis | None:
        """The time of the last row that is here, as far as somebody looked."""
        return self._frontier.get(series)

    async def _is_young(self, series: AnySeries) -> bool:
        old = Millis(self._now() - round(poll_schedule_of(series).period * market.SECOND_MS))
        recent = await self._store.read(series, Millis(old + 1), _EVER, _EVER, newest=1)
        if recent:
            self._frontier[series] = recent[-1].at
        return bool(recent)

    async def _stretch(self, series: AnySeries, since: Millis, until: Millis) -> None:
        for low, high in split_into_pages(series, since, until):
            await self._page(series, low, high)

    async def _page(self, series: AnySeries, since: Millis, until: Millis) -> None:
        rows = await self._sources.ask_within(self._patience, series, since, until)
        if not rows:
            return
        batch = date_batch(series, rows, self._now())
        await self._keep(batch)
        if faults := [fault for row in rows if (fault := find_row_fault(series, row, batch.known)) is not None]:
            self.set_aside[series] = f"{len(faults)} of {len(rows)} rows it told cannot be: {faults[0]}"
        last = max(row.at for row in rows)
        self._frontier[series] = max(last, self._frontier.get(series, last))
        self.latest = max(self.latest, batch.known or _BEGINNING)

    async def _tail(self, series: AnySeries) -> tuple[Millis, Millis]:
        """From the last row to now. That row is asked for again: a venue may have mended it."""
        now = self._now()
        if is_snapshot_only(series):
            return now, now
        oldest = Millis(max(now - poll_schedule_of(series).reach, kept_since(series, now)))
        if series.row is market.MacroRelease or series.feed is market.Feed.NARRATIVE:
            return oldest, now  # what was printed may be revised for months
        if series not in self._frontier and (rows := await self._store.read(series, oldest, now, _EVER)):
            self._frontier[series] = rows[-1].at
            if series.feed is not market.Feed.NEWS:
                holes = find_missing(series, [row.at for row in rows], oldest, rows[-1].at)
                # Many small holes are asked for as one large one.
                self._holes[series] = holes if len(holes) <= MOST_HOLES else [(holes[0][0], holes[-1][1])]
        known = self._frontier.get(series, oldest)
        if series.feed is market.Feed.NEWS:  # of several channels, of which one may be behind the others
            known = Millis(known - NEWS_AGAIN)
        return max(oldest, known), now

    async def _fill(self, series: AnySeries) -> None:
        """Ask for holes that an earlier process left; after some tries they are given up and reported."""
        holes = self._holes.get(series, [])
        while holes:
            try:
                await self._stretch(series, *holes[0])
            except ZunoError:
                self._tries[series, holes[0]] += 1
                if self._tries[series, holes[0]] >= MOST_TRIES:
                    since, until = hole = holes.pop(0)
                    self._give_up(series, await self._remaining_holes(series, hole) or [(since, Millis(until + 1))])
                raise
            self._give_up(series, await self._remaining_holes(series, holes.pop(0)))

    async def _remaining_holes(self, series: AnySeries, hole: Hole) -> list[Hole]:
        """What is owed of it still."""
        since, until = hole
        rows = await self._store.read(series, Millis(since - 1), Millis(until + 1), _EVER)
        return find_missing_spans(series, [row.at for row in rows], since, until, self._now())

    def _give_up(self, series: AnySeries, left: list[Hole]) -> None:
        if left:
            self.given_up.setdefault(series, []).extend(left)

    async def refresh_market(
        self, symbol: Symbol, markets: Iterable[Symbol] = DEFAULT_SYMBOLS
    ) -> tuple[Millis, Mapping[str, str]]:
        """Ask every source once: the moment from which all is known, and failures by series. `markets`: what the desk
        trades or holds; the marks of all are asked for. `Unavailable` if nobody answered."""
        wanted = (*wanted_series(symbol), *neighbour_series(symbol, markets))
        series = [each for each in wanted if not is_streamed(each)]
        moment, failures = await self.refresh(series)
        asked = [each for each in series if each.venue not in self.closed]
        if asked and all(str(each) in failures for each in asked):
            raise Unavailable(f"live: no venue answered: {_join_venues(silent_venues(asked, failures))}.")
        return moment, failures | await self._find_unheard(symbol, moment)

    async def refresh(self, series: Sequence[AnySeries]) -> tuple[Millis, dict[str, str]]:
        """The same of these series alone. Those that go stale within a minute are asked last, and age no further."""
        brief = [each for each in series if fresh_for(each) * market.SECOND_MS < market.MINUTE_MS]
        unreached: dict[str, str] = {}
        patient = [each for each in series if each not in brief]
        failures = await self._visit_all(patient, LIVE_SECONDS, unreached)
        if any(str(each) not in failures for each in patient):
            unreached.clear()
        failures |= await self._visit_all(brief, LAST_SECONDS, unreached)
        return Millis(max(self._now(), self.latest)), failures

    async def _visit_all(self, series: Sequence[AnySeries], within: float, unreached: dict[str, str]) -> dict[str, str]:
        """Failures by series. `unreached`: venues that could not be connected; where none can, waiting stops."""
        if not series:
            return {}
        clock = asyncio.get_running_loop().time
        venues = {each.venue for each in series} - self.closed.keys()
        until = clock() + within
        tasks = {asyncio.create_task(self._try_visit(each, unreached)): each for each in series}
        waiting = set(tasks)
        try:
            while waiting and clock() < until and not (venues and venues <= unreached.keys()):
                done, waiting = await asyncio.wait(
                    waiting, timeout=until - clock(), return_when=asyncio.FIRST_COMPLETED
                )
                for task in done:
                    if not task.result():
                        venues.clear()  # somebody answered: there is a network
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
        late = f"it did not answer within {within:g} s"
        failures = {str(each): unreached.get(each.venue, late) for task, each in tasks.items() if task.cancelled()}
        failures |= {str(each): self.set_aside[each] for each in series if each in self.set_aside}
        return failures | {str(tasks[task]): why for task in tasks if not task.cancelled() and (why := task.result())}

    async def _try_visit(self, series: AnySeries, unreached: dict[str, str]) -> str:
        """Why it failed; empty where it did not."""
        try:
            await self.visit(series)
        except Broken:
            raise
        except ZunoError as error:
            if isinstance(error, Unreachable):
                unreached[series.venue] = clause(error)
            return clause(error)
        except Exception as bug:  # one source's bug must not silence the others
            return describe_bug(bug, series)
        return ""

    async def _find_unheard(self, symbol: Symbol, moment: Millis) -> dict[str, str]:
        """Streams that nobody is listening to."""
        silent: dict[str, str] = {}
        for series in wanted_series(symbol):
            if is_streamed(series):
                heard = market.alive(series.feed, series.venue, symbol)
                recent = Millis(moment - 3 * market.MINUTE_MS)
                if not await self._store.read(heard, recent, moment, moment, newest=1):
                    silent[str(series)] = "a stream is heard only while `zuno data collect` runs"
        return silent


def clause(error: ZunoError) -> str:
    """An error as part of a sentence; it may hold a venue's own words."""
    return plain_text(str(error), _LONGEST_CLAUSE).rstrip(".")


def describe_bug(bug: Exception, what: object) -> str:
    """Our own bug about one source; the traceback is in the log."""
    _LOG.error("%s failed", what, exc_info=bug)
    return f"Zuno has a bug ({type(bug).__name__})"


def _join_venues(silent: Mapping[str, str]) -> str:
    reasons: dict[str, list[str]] = {}
    for venue, why in silent.items():
        named = why.lower().startswith(f"{venue.lower()} ")
        reasons.setdefault(why[len(venue) + 1 :] if named else why, []).append(venue)
    return "; ".join(f"{', '.join(venues)} ({why})" for why, venues in reasons.items())


def silent_venues(series: Sequence[AnySeries], failures: Mapping[str, str]) -> dict[str, str]:
    """The venues of which nothing came, and why; a stream is heard, not asked for."""
    asked: dict[str, list[str | None]] = {}
    for each in series:
        if not is_streamed(each):
            asked.setdefault(each.venue, []).append(failures.get(str(each)))
    return {venue: reasons[0] for venue, reasons in asked.items() if reasons[0] is not None and None not in reasons}
