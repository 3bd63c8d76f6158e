"""Sums of forced and large trades by the time they happened: lower bounds, for a venue pushes at most one order a
second. A minute without an event is a zero only where every stream was proven alive."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import accumulate
from math import fsum, inf
from operator import itemgetter
from typing import Final

from zuno.kernel.statistics import percentile
from zuno.kernel.units import Millis
from zuno.trading.model.known import Known, Missing
from zuno.trading.model.market import HOUR_MS, MINUTE_MS, Heartbeat, Heartbeats, Side, TapeEvent

LOWER_BOUND: Final = "lower bound"
WHALE_USD: Final = 100_000.0
HIGH_PERCENT: Final = 95
CALIBRATED_HOURS: Final = 7 * 24
HISTORY_HOURS: Final = 90 * 24
"""Hours of its own past that an hour is held against, at most."""
_MINUTES: Final = HOUR_MS // MINUTE_MS
_time_of: Final = itemgetter(0)


@dataclass(frozen=True, slots=True)
class Stream:
    """What one venue's stream of one symbol carried, in whatever order, and the minutes it was proven alive in."""

    venue: str
    strikes: Sequence[TapeEvent]
    alive: Sequence[Heartbeat]


@dataclass(frozen=True, slots=True)
class TapeTotals:
    """What happened in [since, until), and how much of that time was heard."""

    since: Millis
    until: Millis
    long_usd: Known[float]
    short_usd: Known[float]
    """Liquidations: of longs, of shorts. Trades: taken by buyers, by sellers."""
    minutes: int
    heard: int
    """Minutes in which every stream was proven alive."""
    events: int

    @property
    def complete(self) -> bool:
        return self.heard == self.minutes

    def usd(self, side: Side) -> Known[float]:
        return self.long_usd if side is Side.LONG else self.short_usd


@dataclass(frozen=True, slots=True)
class SideHour:
    """One side's last hour, held against its own past."""

    side: Side
    usd: float
    label: str
    complete: bool
    high: Known[float]
    """The 95th percentile of its own hours, where at least seven days of them were heard."""
    hours: int


@dataclass(frozen=True, slots=True)
class WhaleFlow:
    """Large trades: what buyers took less what sellers took."""

    bought_usd: Known[float]
    sold_usd: Known[float]
    """A side nobody was heard on is zero only when every minute was heard."""
    trades: int
    complete: bool

    @property
    def net_usd(self) -> Known[float]:
        if isinstance(self.bought_usd, Missing):
            return self.bought_usd
        return self.sold_usd if isinstance(self.sold_usd, Missing) else self.bought_usd - self.sold_usd


def whale_flow(streams: Sequence[Stream], until: Millis, *spans: int) -> list[Known[WhaleFlow]]:
    """Trades of $100k and more in each span up to `until`."""
    large = TapeMinutes(
        [replace(stream, strikes=[row for row in stream.strikes if row.usd >= WHALE_USD]) for stream in streams]
    )
    return [
        WhaleFlow(totals.long_usd, totals.short_usd, totals.events, totals.complete)
        if totals.events or totals.complete
        else Missing(_unheard(totals.heard, totals.minutes))
        for totals in (large.tally(Millis(until - span), until) for span in spans)
    ]


_Stretch = tuple[int, int]
"""Minutes in a row: the first, and the one behind the last."""


def _minutes_alive(alive: Sequence[Heartbeat]) -> list[_Stretch]:
    """In order, none beside another."""
    stretches: list[_Stretch] = []
    for first, count in sorted(Heartbeats.of(alive).runs):
        start, end = first // MINUTE_MS, first // MINUTE_MS + count
        if stretches and start <= stretches[-1][1]:
            start, end = stretches[-1][0], max(stretches.pop()[1], end)
        stretches.append((start, end))
    return stretches


def _overlaps(first: Sequence[_Stretch], second: Sequence[_Stretch]) -> list[_Stretch]:
    stretches: list[_Stretch] = []
    left, right = 0, 0
    while left < len(first) and right < len(second):
        start, end = max(first[left][0], second[right][0]), min(first[left][1], second[right][1])
        stretches += [(start, end)] if start < end else []
        left, right = (left + 1, right) if first[left][1] <= second[right][1] else (left, right + 1)
    return stretches


class TapeMinutes:
    """Streams sorted into minutes once, for as many sums as are asked."""

    def __init__(self, streams: Sequence[Stream]) -> None:
        self._streams = len(streams)
        proven = [_minutes_alive(stream.alive) for stream in streams]
        self._alive = reduce(_overlaps, proven) if proven else []
        self._starts = [start for start, _ in self._alive]
        self._alive_before = list(accumulate((end - start for start, end in self._alive), initial=0))
        events = [row for stream in streams for row in valid_unique_events(stream.strikes)]
        events.sort(key=_time_of)
        self._minutes: dict[Side, list[int]] = {}
        self._usd: dict[Side, list[float]] = {}
        for side in Side:
            self._minutes[side] = [row[0] // MINUTE_MS for row in events if row[1] == side]
            self._usd[side] = [row[4] for row in events if row[1] == side]

    def tally(self, since: Millis, until: Millis) -> TapeTotals:
        """The sums of a time. Whole minutes: both ends are moved back to where their minute began."""
        first, end = since // MINUTE_MS, until // MINUTE_MS
        heard = self._count_alive(first, end)
        long, short = (
            self._usd[side][bisect_left(self._minutes[side], first) : bisect_left(self._minutes[side], end)]
            for side in (Side.LONG, Side.SHORT)
        )
        longs, shorts = (self._sum(usd, heard, end - first) for usd in (long, short))
        return TapeTotals(since, until, longs, shorts, end - first, heard, len(long) + len(short))

    def last_hour(self, side: Side, as_of: Millis) -> Known[SideHour]:
        """The sixty whole minutes up to `as_of` against earlier separate hours that were heard completely."""
        since = Millis(as_of // MINUTE_MS * MINUTE_MS - HOUR_MS)
        now = self.tally(since, Millis(since + HOUR_MS)).usd(side)
        if isinstance(now, Missing):
            return now
        past = self.hours_before(since, side)
        short = Missing(f"{len(past)} hours of its own were heard, {CALIBRATED_HOURS} are needed")
        high = percentile(past, HIGH_PERCENT) if len(past) >= CALIBRATED_HOURS else short
        return SideHour(side, now, LOWER_BOUND, self.whole(since), high, len(past))

    def whole(self, since: Millis) -> bool:
        """Whether the hour from there was heard to the last minute."""
        first = since // MINUTE_MS
        return self._count_alive(first, first + _MINUTES) == _MINUTES

    def hours_before(self, end: Millis, side: Side) -> list[float]:
        """What each hour back from there summed up to, the nearest first, where it was heard whole."""
        if not self._alive:
            return []
        oldest = max(self._alive[0][0] * MINUTE_MS, end - HISTORY_HOURS * HOUR_MS)
        ends = [moment // MINUTE_MS for moment in range(end, oldest - 1, -HOUR_MS)]
        alive = list(map(self._count_before, ends))
        minutes, usd = self._minutes[side], self._usd[side]
        places = [bisect_left(minutes, minute) for minute in ends]
        return [
            fsum(usd[places[hour + 1] : places[hour]])
            for hour in range(len(ends) - 1)
            if alive[hour] - alive[hour + 1] == _MINUTES
        ]

    def _count_alive(self, first: int, end: int) -> int:
        return max(0, self._count_before(end) - self._count_before(first))

    def _count_before(self, minute: int) -> int:
        place = bisect_left(self._starts, minute)
        if not place:
            return 0
        start, end = self._alive[place - 1]
        return self._alive_before[place - 1] + min(minute, end) - start

    def _sum(self, usd: Sequence[float], heard: int, minutes: int) -> Known[float]:
        if not usd and heard < minutes:
            return Missing(_unheard(heard, minutes) if self._streams else "no stream was listened to")
        return fsum(usd)


def valid_unique_events(strikes: Sequence[TapeEvent]) -> Sequence[TapeEvent]:
    """Each event once; what no trade can be is not one."""
    if not strikes:
        return ()
    times, _, *amounts, names = zip(*strikes, strict=True)
    # The sum of a column with a NaN is NaN, and fails; one of huge numbers may be infinite: then row by row.
    sound = all(min(column) > 0 and sum(column) < inf for column in amounts)
    if sound and len(set(zip(times, names, strict=True))) == len(strikes):
        return strikes  # the rule
    events: dict[tuple[int, str], TapeEvent] = {}
    for row in strikes:
        if 0 < row.price < inf and 0 < row.quantity < inf and 0 < row.usd < inf:
            events.setdefault((row.at, row.id), row)
    return list(events.values())


def _unheard(heard: int, minutes: int) -> str:
    return f"silence, but the stream was proven alive in {heard} of {minutes} minutes only: zero is not known"
