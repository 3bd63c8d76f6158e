"""From a venue into the store: what is owed of a series is asked for, oldest first, and kept before more is asked.

Rows are written in the order of time, so that whatever ends a process leaves the beginning of what was owed and never
its end alone: the next one goes on from the last row. Repeating is harmless, for the store keeps each row once.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from zuno.kernel.errors import Broken, Unavailable, Unreachable, ZunoError
from zuno.kernel.text import plain_text
from zuno.kernel.units import Millis
from zuno.trading.data.sources import (
    Sources,
    date_batch,
    find_missing,
    find_missing_spans,
    fresh_for,
    is_snapshot_only,
    is_streamed,
    kept_since,
    poll_schedule_of,
    split_into_pages,
)
from zuno.trading.measure.data_quality import find_row_fault
from zuno.trading.model.market import HOUR_MS, MINUTE_MS, SECOND_MS, Feed, MacroRelease, Series, Symbol, alive
from zuno.trading.model.venues import neighbour_series, wanted_series
from zuno.trading.ports.series import Batch, SeriesStore

Keep: TypeAlias = Callable[[Batch[Any]], Awaitable[None]]
"""Writes a batch and returns when it is safe."""
Now: TypeAlias = Callable[[], Millis]
Hole: TypeAlias = tuple[Millis, Millis]

PATIENCE: Final = 120.0
"""Seconds one question may take, all its pages together."""
LIVE_SECONDS: Final = 30.0
"""What somebody who looks at the desk is kept waiting for all venues together."""
LAST_SECONDS: Final = 10.0
"""And after that for those whose word grows old within a minute."""
NEWS_AGAIN: Final = HOUR_MS
"""How far before the newest post of any channel posts are asked for again."""
MOST_HOLES: Final = 20
MOST_TRIES: Final = 3
_LONGEST_CLAUSE: Final = 300
_LOG: Final = logging.getLogger(__name__)
_BEGINNING, _EVER = Millis(0), Millis(2**62)


class Intake:
    """Knows of each series how far it has come; one visit at a time of each."""

    def __init__(
        self, sources: Sources, store: SeriesStore, keep: Keep, now: Now, *, patience: float = PATIENCE
    ) -> None:
        self._sources = sources
        self._store = store
        self._keep = keep
        self._now = now
        self._patience = patience
        self._frontier: dict[Series[Any], Millis] = {}
        self._holes: dict[Series[Any], list[Hole]] = {}
        self._tries: Counter[tuple[Series[Any], Hole]] = Counter()
        self.given_up: dict[Series[Any], list[Hole]] = {}
        """What an earlier life left out and no venue tells any more, each from its beginning to what comes after."""
        self.set_aside: dict[Series[Any], str] = {}
        """What no market can have made of the last that was told of a series; the store keeps it aside."""
        self.latest = _BEGINNING
        """From when the newest of what came in is known."""

    async def visit(self, series: Series[Any]) -> None:
        """Ask for all that is owed of a series, and keep it. A search costs money: it is not asked again, whoever
        asked, while its last answer is young."""
        self.set_aside.pop(series, None)
        if series.feed is Feed.NARRATIVE and await self._is_young(series):
            return
        await self._stretch(series, *await self._tail(series))
        await self._fill(series)

    @property
    def closed(self) -> Mapping[str, str]:
        """Venues nobody can ask as things are set, and why."""
        return self._sources.closed

    def newest(self, series: Series[Any]) -> Millis | None:
        """The time of the last row that is here, as far as somebody looked."""
        return self._frontier.get(series)

    async def _is_young(self, series: Series[Any]) -> bool:
        old = Millis(self._now() - round(poll_schedule_of(series).period * SECOND_MS))
        found = await self._store.read(series, Millis(old + 1), _EVER, _EVER, newest=1)
        if found:
            self._frontier[series] = found[-1].at
        return bool(found)

    async def _stretch(self, series: Series[Any], since: Millis, until: Millis) -> None:
        for low, high in split_into_pages(series, since, until):
            await self._page(series, low, high)

    async def _page(self, series: Series[Any], since: Millis, until: Millis) -> None:
        try:
            async with asyncio.timeout(self._patience):
                rows = await self._sources.ask(series, since, until)
        except TimeoutError:
            raise Unavailable(f"{series.venue} did not answer within {self._patience:g} s") from None
        if not rows:
            return
        batch = date_batch(series, rows, self._now())
        await self._keep(batch)
        if faults := [fault for row in rows if (fault := find_row_fault(series, row, batch.known)) is not None]:
            self.set_aside[series] = f"{len(faults)} of {len(rows)} rows it told cannot be: {faults[0]}"
        last = max(row.at for row in rows)
        self._frontier[series] = max(last, self._frontier.get(series, last))
        self.latest = max(self.latest, batch.known or _BEGINNING)

    async def _tail(self, series: Series[Any]) -> tuple[Millis, Millis]:
        """From the last row to now. That row is asked for again: a venue may have mended it."""
        now = self._now()
        if is_snapshot_only(series):
            return now, now
        oldest = Millis(max(now - poll_schedule_of(series).reach, kept_since(series, now)))
        if series.row is MacroRelease or series.feed is Feed.NARRATIVE:  # what was printed may be revised for months
            return oldest, now
        if series not in self._frontier and (found := await self._store.read(series, oldest, now, _EVER)):
            self._frontier[series] = found[-1].at
            if series.feed is not Feed.NEWS:
                self._holes[series] = _few(find_missing(series, [row.at for row in found], oldest, found[-1].at))
        known = self._frontier.get(series, oldest)
        if series.feed is Feed.NEWS:  # of several channels, of which one may be behind the others
            known = Millis(known - NEWS_AGAIN)
        return max(oldest, known), now

    async def _fill(self, series: Series[Any]) -> None:
        """What an earlier life left out. A venue may never have had it: after some tries it is let be, and told."""
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

    async def _remaining_holes(self, series: Series[Any], hole: Hole) -> list[Hole]:
        """What is owed of it still."""
        since, until = hole
        found = await self._store.read(series, Millis(since - 1), Millis(until + 1), _EVER)
        return find_missing_spans(series, [row.at for row in found], since, until, self._now())

    def _give_up(self, series: Series[Any], left: list[Hole]) -> None:
        if left:
            self.given_up.setdefault(series, []).extend(left)


def _few(holes: list[Hole]) -> list[Hole]:
    """Many small holes are asked for as one large one."""
    return holes if len(holes) <= MOST_HOLES else [(holes[0][0], holes[-1][1])]


def clause(error: ZunoError) -> str:
    """An error inside a sentence; part of it may be a venue's own words."""
    return plain_text(str(error), _LONGEST_CLAUSE).rstrip(".")


def describe_bug(bug: Exception, what: object) -> str:
    """Our own mistake about one source; where it lies is in the log."""
    _LOG.error("%s failed", what, exc_info=bug)
    return f"Zuno has a bug ({type(bug).__name__})"


async def refresh_market(
    intake: Intake, store: SeriesStore, symbol: Symbol, now: Now, *, within: float = LIVE_SECONDS
) -> tuple[Millis, Mapping[str, str]]:
    """Ask everybody once: the moment from which all of it is known, and who failed, and why. `Unavailable` where nobody
    answered at all."""
    series = [each for each in (*wanted_series(symbol), *neighbour_series(symbol)) if not is_streamed(each)]
    moment, failures = await refresh_series(intake, series, now, within=within)
    asked = [each for each in series if each.venue not in intake.closed]
    if asked and all(str(each) in failures for each in asked):
        raise Unavailable(f"live: no venue answered: {_join_venues(silent_venues(asked, failures))}.")
    return moment, failures | await _unheard(store, symbol, moment)


def _join_venues(silent: Mapping[str, str]) -> str:
    """By their reasons, each told once."""
    reasons: dict[str, list[str]] = {}
    for venue, why in silent.items():
        named = why.lower().startswith(f"{venue.lower()} ")
        reasons.setdefault(why[len(venue) + 1 :] if named else why, []).append(venue)
    return "; ".join(f"{', '.join(venues)} ({why})" for why, venues in reasons.items())


def silent_venues(series: Sequence[Series[Any]], failures: Mapping[str, str]) -> dict[str, str]:
    """The venues of which nothing came, and why; a stream is heard, not asked for."""
    asked: dict[str, list[Series[Any]]] = {}
    for each in series:
        if not is_streamed(each):
            asked.setdefault(each.venue, []).append(each)
    return {
        venue: failures[str(theirs[0])]
        for venue, theirs in asked.items()
        if all(str(each) in failures for each in theirs)
    }


async def refresh_series(
    intake: Intake, series: Sequence[Series[Any]], now: Now, *, within: float = LIVE_SECONDS
) -> tuple[Millis, dict[str, str]]:
    """The same of these series alone. All are asked at the same time, but for those whose word grows old within a
    minute: they are asked when the others have answered or failed, so that nobody's slowness makes them old."""
    brief = [each for each in series if fresh_for(each) * SECOND_MS < MINUTE_MS]
    unreached: dict[str, str] = {}
    patient = [each for each in series if each not in brief]
    failures = await _visit_all(intake, patient, within, unreached)
    if any(str(each) not in failures for each in patient):
        unreached.clear()
    failures |= await _visit_all(intake, brief, LAST_SECONDS, unreached)
    return Millis(max(now(), intake.latest)), failures


async def _visit_all(
    intake: Intake, series: Sequence[Series[Any]], within: float, unreached: dict[str, str]
) -> dict[str, str]:
    """Who of these failed, and why. `unreached`: venues to which no connection came about, and why; once there is none
    to any venue, there is no network, and nobody is waited for."""
    if not series:
        return {}
    clock = asyncio.get_running_loop().time
    venues = {each.venue for each in series} - intake.closed.keys()
    until = clock() + within
    tasks = {asyncio.create_task(_visit(intake, each, unreached)): each for each in series}
    waiting = set(tasks)
    try:
        while waiting and clock() < until and not (venues and venues <= unreached.keys()):
            done, waiting = await asyncio.wait(waiting, timeout=until - clock(), return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                if not task.result():
                    venues.clear()  # somebody answered: there is a network
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    late = f"it did not answer within {within:g} s"
    failures = {str(each): unreached.get(each.venue, late) for task, each in tasks.items() if task.cancelled()}
    failures |= {str(each): intake.set_aside[each] for each in series if each in intake.set_aside}
    return failures | {str(tasks[task]): why for task in tasks if not task.cancelled() and (why := task.result())}


async def _visit(intake: Intake, series: Series[Any], unreached: dict[str, str]) -> str:
    """Why it failed, or nothing."""
    try:
        await intake.visit(series)
    except Broken:
        raise
    except ZunoError as error:
        if isinstance(error, Unreachable):
            unreached[series.venue] = clause(error)
        return clause(error)
    except Exception as bug:  # one source's bug must not silence the others
        return describe_bug(bug, series)
    return ""


async def _unheard(store: SeriesStore, symbol: Symbol, moment: Millis) -> dict[str, str]:
    """Streams cannot be asked; whoever does not listen all the time knows nothing of them."""
    found: dict[str, str] = {}
    for series in wanted_series(symbol):
        if is_streamed(series):
            heard = alive(series.feed, series.venue, symbol)
            recent = Millis(moment - 3 * MINUTE_MS)
            if not await store.read(heard, recent, moment, moment, newest=1):
                found[str(series)] = "a stream is heard only while `zuno data collect` runs"
    return found
