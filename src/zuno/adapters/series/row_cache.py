"""Rows that were read before: a desk asks for the same months at every moment, and for what has come since."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, TypeAlias

from zuno.kernel.units import Millis

MOST_ROWS: Final = 20_000
"""Of one series; more are read each time."""
_time_of = attrgetter("at")


@dataclass(frozen=True, slots=True)
class TableRead:
    """The rows of a time that were known by then, oldest first."""

    since: Millis
    until: Millis
    known_by: Millis
    newest: int | None = None
    """Only so many of the last."""
    besides: tuple[Millis, Millis] | None = None
    """Without those up to the first moment that were known by the second."""


ReadRows: TypeAlias = Callable[[TableRead], list[Any]]


@dataclass(slots=True)
class CachedRows:
    """What stands in the table from `since` to `until` and was known by `known_by`; some rows before may be here."""

    since: Millis
    until: Millis
    known_by: Millis
    reach: int
    """How long the time was that was asked for."""
    rows: list[Any]


class RowCache:
    """Right as long as whoever writes says what it touches, and `check_version` is asked before anything is read."""

    def __init__(self) -> None:
        self._held: dict[int, CachedRows] = {}
        self._whole_days: dict[int, dict[int, Millis]] = {}
        """Of series of minutes: by its first moment a day that has them all, and by when it was known to."""
        self._version: int | None = None

    def check_version(self, version: int) -> None:
        """Of the file, which changes when another process writes."""
        if version != self._version:
            self.clear()
            self._version = version

    def forget(self, series: int, first: int) -> None:
        """Something is written there, at that time or later."""
        self._whole_days.pop(series, None)
        held = self._held.get(series)
        if held is not None and first <= held.until:
            del self._held[series]

    def clear(self) -> None:
        self._held.clear()
        self._whole_days.clear()
        self._version = None

    def keep_whole_day(self, series: int, day: int, known_by: Millis) -> None:
        days = self._whole_days.setdefault(series, {})
        days[day] = min(known_by, days.get(day, known_by))

    def is_whole_day(self, series: int, day: int, known_by: Millis) -> bool:
        known = self._whole_days.get(series, {}).get(day)
        return known is not None and known <= known_by

    def read(self, series: int, asked: TableRead, read_table: ReadRows) -> list[Any]:
        held = self._held.get(series)
        if held is not None and held.until > asked.until and held.known_by == asked.known_by:
            found = _choose_earlier(held, asked)
            if found is not None:
                return found
        if held is not None and held.until <= asked.until and held.known_by <= asked.known_by:
            found = self._extend(held, asked, read_table)
            if found is not None:
                return found
        rows = read_table(asked)
        reach = asked.until - asked.since
        if len(rows) <= MOST_ROWS and (held is None or reach >= held.reach):
            # The first of so many may have others beside it at its moment.
            cut = asked.newest is not None and len(rows) >= asked.newest
            since = Millis(rows[0].at + 1) if cut and rows else asked.since
            self._held[series] = CachedRows(since, asked.until, asked.known_by, reach, rows)
        return rows

    def _extend(self, held: CachedRows, asked: TableRead, read_table: ReadRows) -> list[Any] | None:
        """What was asked for, where what is held and what came since are all of it."""
        rows = held.rows
        if (held.until, held.known_by) != (asked.until, asked.known_by):
            besides = (held.until, held.known_by)
            came = read_table(TableRead(held.since, asked.until, asked.known_by, besides=besides))
            if came and rows and came[0].at <= rows[-1].at:
                return None  # a hole was filled, or several events are of one moment
            rows = rows + came
        chosen = rows[bisect_left(rows, asked.since, key=_time_of) :]
        if asked.since < held.since and (asked.newest is None or len(chosen) < asked.newest):
            return None
        held.until, held.known_by = asked.until, asked.known_by
        held.reach = max(held.reach, asked.until - asked.since)
        oldest = Millis(asked.until - held.reach)
        if oldest > held.since:
            held.since, rows = oldest, rows[bisect_left(rows, oldest, key=_time_of) :]
        held.rows = rows
        return chosen if asked.newest is None else chosen[-asked.newest :]


def _choose_earlier(held: CachedRows, asked: TableRead) -> list[Any] | None:
    """What was asked for, where it ends before what is held, and that is all of it."""
    rows = held.rows
    first = bisect_left(rows, asked.since, key=_time_of)
    chosen = rows[first : bisect_right(rows, asked.until, key=_time_of)]
    if asked.since < held.since and (asked.newest is None or len(chosen) < asked.newest):
        return None
    return chosen if asked.newest is None else chosen[-asked.newest :]
