"""The collector: asks every venue at the pace its word grows old, listens to the streams, and keeps what they say.

Each series has a task of its own, so that nobody is asked twice at once and nobody waits for another; what fails is
left alone for longer and longer, never for more than five minutes. Rows of streams wait in a queue that has an end:
where the store is slow, the stream waits. A minute of a stream is proven by its own feed alone.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from zuno.kernel.backoff import SPREAD, Backoff
from zuno.kernel.errors import Broken, Unavailable, ZunoError
from zuno.kernel.lock import ProcessLock, hold
from zuno.kernel.units import Millis
from zuno.kernel.view import ForeignText, VerdictView, View
from zuno.markets.feeds import name_at, tape_feeds
from zuno.markets.market import Symbol
from zuno.present.document import Document, Tone, document, table
from zuno.present.values import foreign
from zuno.trading.data import intake
from zuno.trading.model.known import derive
from zuno.trading.model.market import HOUR_MS, SECOND_MS, Candle, Feed, Heartbeat, Series, timeframe_of
from zuno.trading.model.wanted import wanted_series
from zuno.trading.ports.feeds import TapeFeed
from zuno.trading.ports.series import Batch, SeriesStore
from zuno.trading.service.data import MOST_NAMED, format_minute, format_spans

Sleep: TypeAlias = Callable[[float], Awaitable[None]]
Chance: TypeAlias = Callable[[], float]
"""A number from 0 to 1."""

SETTLED: Final = 2.0
"""Seconds a venue is given to make up a bar after its end."""
LONGEST_BACKOFF: Final = 300.0
SILENCE: Final = 150.0
"""Seconds without a word or a proven minute, after which a stream is taken for lost."""
TOLD_EVERY: Final = 60.0
MOST_WAITING: Final = 5_000
"""Batches between venues and store."""
MOST_AT_ONCE: Final = 2_000
LONGEST_WRITE_PAUSE: Final = 5.0
_SOURCE_BACKOFF: Final = Backoff(1.0, LONGEST_BACKOFF, SPREAD)
_WRITE_BACKOFF: Final = Backoff(0.5, LONGEST_WRITE_PAUSE)


class FailingView(View):
    series: str
    since: int
    """Unix milliseconds."""
    why: ForeignText


class StreamView(View):
    venue: str
    heard: bool
    since: int
    """Since when it is heard, or not."""
    proven: int | None
    """The last minute it was proven alive in."""
    why: ForeignText


class _SeriesView(View):
    at: int
    series: int
    failing: tuple[FailingView, ...]
    unasked: dict[str, ForeignText]
    """Venues nobody can ask as things are set, and why."""
    given_up: dict[str, ForeignText]
    """Series of which something is missing that no venue tells any more, and where."""
    rows: int
    """New rows since the start."""


class CollectView(_SeriesView):
    fresh: int
    """Series whose source answered within the time it may grow old in."""
    waiting_for: tuple[str, ...]
    """Series that are not fresh and did not fail either: their first answer is still to come."""
    streams: tuple[StreamView, ...]
    unwritten: int
    store: ForeignText
    """What keeps the store from being written, if anything does."""

    def write_line(self) -> str:
        heard = [stream for stream in self.streams if stream.heard]
        parts = [
            f"{self.fresh} of {self.series} series fresh",
            f"{len(heard)} of {len(self.streams)} streams heard",
            f"{self.rows:,} new rows",
        ]
        parts += [f"{self.unwritten} unwritten"] if self.unwritten else []
        parts += [f"the store: {self.store}"] if self.store else []
        parts += [
            f"the stream of {stream.venue} since {_clock(stream.since)}: {stream.why}"
            for stream in self.streams
            if not stream.heard
        ]
        named = self.failing[:MOST_NAMED]
        parts += [f"{series.series} fails since {_clock(series.since)}: {series.why}" for series in named]
        if len(self.failing) > MOST_NAMED:
            parts.append(f"{len(self.failing) - MOST_NAMED} more fail")
        if self.waiting_for:
            parts.append(f"{len(self.waiting_for)} are waited for")
        parts += [f"{series} is given up {where}" for series, where in self.given_up.items()]
        return f"{_clock(self.at)} UTC  {'; '.join(parts)}"


def _clock(at: int) -> str:
    return format_minute(at // 1_000 * 1_000)


class RoundView(_SeriesView, VerdictView):
    """One round of everything. `ok`: everybody who could be asked answered; else exit code 4."""

    answered: int
    said: str
    notes: tuple[str, ...] = ()

    def to_document(self) -> Document:
        rows = ((failing.series, foreign(failing.why, Tone.BAD)) for failing in self.failing)
        unasked = (foreign(f"{venue} is not asked: {why}") for venue, why in self.unasked.items())
        given_up = (foreign(f"{series} is given up {where}") for series, where in self.given_up.items())
        failing = table(("series", "why"), rows) if self.failing else None
        return document(self.said, failing, notes=(*unasked, *given_up, *self.notes))


class CollectedView(View):
    rows: int
    said: str

    def to_document(self) -> Document:
        return document(self.said)


# -- between venues and store


@dataclass(slots=True)
class _PendingBatch:
    """A batch that somebody waits for, or a single row of a stream."""

    series: Series[Any]
    rows: Sequence[Any]
    known: Millis | None = None
    done: asyncio.Future[None] | None = None


class BatchWriter:
    """Writes what comes in, many batches in one go. A store that is away is tried again and again; nothing is dropped,
    and whoever brings more waits."""

    def __init__(self, store: SeriesStore, now: intake.Now, sleep: Sleep, *, most: int = MOST_WAITING) -> None:
        self._store = store
        self._now = now
        self._sleep = sleep
        self._queue: asyncio.Queue[_PendingBatch | None] = asyncio.Queue(most)
        self._ending = False
        self.trouble = ""
        self.rows = 0

    @property
    def waiting(self) -> int:
        return self._queue.qsize()

    async def keep(self, batch: Batch[Any]) -> None:
        """Returns when it is safe."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        await self._queue.put(_PendingBatch(batch.series, batch.rows, batch.known, done))
        await done

    async def take(self, series: Series[Any], row: Any) -> None:
        """Returns when there is room for it."""
        await self._queue.put(_PendingBatch(series, (row,)))

    def end(self) -> None:
        """Nothing more will come: `run` returns when all is written."""
        self._ending = True
        with suppress(asyncio.QueueFull):
            self._queue.put_nowait(None)  # wakes a scribe who has nothing to do

    async def run(self) -> None:
        """`Unavailable` when something is left that the store does not take in the end."""
        while not (self._ending and self._queue.empty()):
            pending = [await self._queue.get()]
            while len(pending) < MOST_AT_ONCE and not self._queue.empty():
                pending.append(self._queue.get_nowait())
            await self._write([batch for batch in pending if batch is not None])

    async def _write(self, pending: Sequence[_PendingBatch]) -> None:
        batches = [Batch(batch.series, batch.rows, batch.known) for batch in pending if batch.done is not None]
        streamed, now = dict[Series[Any], list[Any]](), self._now()
        for batch in pending:
            if batch.done is None:
                streamed.setdefault(batch.series, []).extend(batch.rows)
        batches += [Batch(series, rows, now) for series, rows in streamed.items()]
        self.rows += await self._write_batches(batches)
        for batch in pending:
            if batch.done is not None and not batch.done.done():  # whoever asked may be gone
                batch.done.set_result(None)

    async def _write_batches(self, batches: Sequence[Batch[Any]]) -> int:
        tries = 0
        while True:
            try:
                written = await self._store.write(batches)
                self.trouble = ""
                return written.new
            except Unavailable as error:
                self.trouble = intake.clause(error)
                if self._ending:
                    rows = sum(len(batch.rows) for batch in batches)
                    raise Unavailable(f"{rows} rows could not be written: {self.trouble}.") from error
            tries += 1
            await self._sleep(_WRITE_BACKOFF.delay(tries))


# -- the worker


@dataclass(slots=True)
class _PollState:
    series: Series[Any]
    answered: Millis | None = None
    failing_since: Millis | None = None
    failures: int = 0
    why: str = ""
    late: int = 0
    """How often in a row the bar that should be there was not."""

    @property
    def was_asked(self) -> bool:
        return self.answered is not None or self.failing_since is not None


@dataclass(slots=True)
class _StreamState:
    feed: TapeFeed
    since: Millis
    heard: bool = False
    proven: Millis | None = None
    failures: int = 0
    why: str = "it was not heard yet"


class Collector:
    """One at a time per store."""

    def __init__(
        self,
        *,
        sources: intake.Sources,
        store: SeriesStore,
        seat: ProcessLock,
        symbols: Sequence[Symbol],
        now: intake.Now,
        sleep: Sleep,
        chance: Chance,
        held: Callable[[], Awaitable[Sequence[Symbol]]] | None = None,
    ) -> None:
        """`held`: symbols that are collected beside these, for something of them is held."""
        self._sources = sources
        self._seat = seat
        self._symbols = tuple(symbols)
        self._held = held
        self._now = now
        self._sleep = sleep
        self._chance = chance
        self._writer = BatchWriter(store, now, sleep)
        self._intake = intake.Intake(sources, store, self._writer.keep, now, patience=intake.PATIENCE)
        self._everybody_visited = asyncio.Event()
        self._plan()

    def _plan(self) -> None:
        """Who is asked and who is listened to."""
        wanted = dict.fromkeys(series for symbol in self._symbols for series in wanted_series(symbol))
        closed, tapes = self._sources.closed, self._sources.tapes
        self._polls = [_PollState(each) for each in wanted if not intake.is_streamed(each) and each.venue not in closed]
        heard = {venue for symbol in self._symbols for venue in tape_feeds(symbol)}
        self._streams = [_StreamState(feed, self._now()) for venue, feed in tapes.items() if venue in heard]

    async def _add_held(self) -> None:
        held = () if self._held is None else await self._held()
        if new := [symbol for symbol in held if symbol not in self._symbols]:
            self._symbols = tuple(dict.fromkeys((*self._symbols, *new)))
            self._plan()

    async def once(self) -> RoundView:
        """Everybody is asked once, and what they say is kept."""
        with hold(self._seat):
            await self._add_held()
            visits = [asyncio.ensure_future(self._visit(poll)) for poll in self._polls]
            await self._until(asyncio.gather(*visits), visits)
        return self._round()

    async def run(self, hear: Callable[[CollectView], None], stop: asyncio.Event) -> CollectedView:
        """Until `stop`; what came in by then is written first."""
        with hold(self._seat):
            await self._add_held()
            endless = [self._tell(hear), *map(self._poll, self._polls), *map(self._listen, self._streams)]
            tasks: list[asyncio.Future[Any]] = [asyncio.ensure_future(task) for task in (stop.wait(), *endless)]
            first = asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            await self._until(asyncio.ensure_future(first), tasks)
        rows = self._writer.rows
        return CollectedView(rows=rows, said=f"The collector ended; it kept {rows:,} new rows, and all are written.")

    async def _until(self, end: asyncio.Future[Any], tasks: Sequence[asyncio.Future[Any]]) -> None:
        """Work until the end comes, or one of us cannot go on; then let go of everything and write what is left."""
        writing = asyncio.create_task(self._writer.run())
        try:
            await asyncio.wait({end, writing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (end, *tasks):
                task.cancel()
            ends = await asyncio.gather(end, *tasks, return_exceptions=True)
            self._writer.end()
        await writing
        if fault := next((ended for ended in ends if isinstance(ended, Exception)), None):
            raise fault

    # -- asking

    async def _poll(self, poll: _PollState) -> None:
        while True:
            began = self._now()
            await self._visit(poll)
            await self._sleep(self._pause(poll, began))

    async def _visit(self, poll: _PollState) -> None:
        why = await self._failure(self._intake.visit(poll.series), str(poll.series))
        if why is None:
            poll.answered, poll.failing_since, poll.failures, poll.why = self._now(), None, 0, ""
        else:
            poll.failing_since = poll.failing_since or self._now()
            poll.failures, poll.why = poll.failures + 1, why
        if all(poll.was_asked for poll in self._polls):
            self._everybody_visited.set()

    async def _failure(self, work: Awaitable[None], what: str) -> str | None:
        """Why it failed, or None. A store that is damaged is nobody else's failure."""
        try:
            await work
        except Broken:
            raise
        except TimeoutError:
            return f"nothing was heard for {SILENCE:g} s"
        except ZunoError as error:
            return intake.clause(error)
        except Exception as bug:  # one source's bug must not silence the others
            return intake.describe_bug(bug, what)
        return None

    def _pause(self, poll: _PollState, began: Millis) -> float:
        """Seconds until it is asked again."""
        if poll.failures:
            return self._backoff(poll.failures)
        now = self._now()
        if poll.series.row is Candle:
            return self._to_next_bar(poll, now)
        period = intake.poll_schedule_of(poll.series).period
        if poll.series.feed is Feed.NARRATIVE and (newest := self._intake.newest(poll.series)) is not None:
            left = period - (now - newest) / SECOND_MS  # whoever asked for it, it may have been before us
            return left if 0 < left < period else period
        return max(0.0, min(period, period - (now - began) / SECOND_MS))

    def _to_next_bar(self, poll: _PollState, now: Millis) -> float:
        """Just after the next close; sooner where the bar that closed last is not there yet, by the venue's clock."""
        timeframe = timeframe_of(poll.series)
        newest, closed = self._intake.newest(poll.series), timeframe.floor(now) - timeframe.millis
        poll.late = poll.late + 1 if newest is None or newest < closed else 0
        step = min(timeframe.millis, HOUR_MS)  # longer bars are looked at every hour: nobody trusts a clock for a week
        wait = (now // step * step + step - now) / SECOND_MS + SETTLED + self._chance()
        return min(wait, self._backoff(poll.late + 1)) if poll.late else wait

    def _backoff(self, failures: int) -> float:
        return _SOURCE_BACKOFF.delay(failures, self._chance())

    # -- listening

    async def _listen(self, state: _StreamState) -> None:
        while True:
            why = await self._failure(self._hear(state), f"the stream of {state.feed.venue}")
            if state.heard or not state.failures:
                state.since = self._now()
            state.heard, state.failures, state.why = False, state.failures + 1, why or "it ended"
            await self._sleep(self._backoff(state.failures))

    async def _hear(self, state: _StreamState) -> None:
        venue = state.feed.venue
        names = [name_at(venue, symbol) for symbol in self._symbols if venue in tape_feeds(symbol)]
        async with aclosing(state.feed.listen(names)) as stream:
            while True:
                async with asyncio.timeout(SILENCE):
                    item = await anext(stream, None)
                if item is None:
                    return
                series, row = item
                if not state.heard:
                    state.heard, state.since, state.why = True, self._now(), ""
                if isinstance(row, Heartbeat):
                    state.proven, state.failures = row.at, 0
                await self._writer.take(series, row)

    # -- telling

    async def _tell(self, hear: Callable[[CollectView], None]) -> None:
        """When everybody has been asked once, and then once a minute."""
        first = [asyncio.ensure_future(wait) for wait in (self._everybody_visited.wait(), self._sleep(TOLD_EVERY))]
        try:
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in first:
                task.cancel()
        while True:
            hear(self.status())
            await self._sleep(TOLD_EVERY)

    def status(self) -> CollectView:
        now = self._now()
        fresh = [
            poll
            for poll in self._polls
            if poll.answered is not None and now - poll.answered <= intake.fresh_for(poll.series) * SECOND_MS
        ]
        return CollectView(
            **self._look(now),
            fresh=len(fresh),
            waiting_for=tuple(str(poll.series) for poll in self._polls if poll not in fresh and not poll.failures),
            streams=tuple(derive(StreamView, state, venue=state.feed.venue) for state in self._streams),
            unwritten=self._writer.waiting,
            store=self._writer.trouble,
        )

    def _look(self, now: Millis) -> dict[str, Any]:
        return {
            "at": now,
            "series": len(self._polls),
            "failing": tuple(
                FailingView(series=str(poll.series), since=poll.failing_since, why=poll.why)
                for poll in self._polls
                if poll.failing_since is not None
            ),
            "unasked": dict(self._sources.closed),
            "given_up": {str(series): format_spans(holes) for series, holes in self._intake.given_up.items()},
            "rows": self._writer.rows,
        }

    def _round(self) -> RoundView:
        known = self._look(self._now())
        answered = len(self._polls) - len(known["failing"])
        return RoundView(
            **known,
            ok=not known["failing"],
            answered=answered,
            said=f"{answered} of {len(self._polls)} series answered; {self._writer.rows:,} new rows are kept.",
            notes=("streams are heard by a collector that stays: run it without --once",),
        )
