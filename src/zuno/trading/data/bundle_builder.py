"""A store and a moment → the frozen bundle of one cycle: everything that could be known then, and what could not."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from zuno.kernel.clock import iso
from zuno.kernel.errors import Malformed
from zuno.kernel.text import plain_text
from zuno.kernel.units import Millis, Seconds
from zuno.markets.feeds import QUIET, mark_feed
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol
from zuno.markets.venues import DEFAULT_VENUE
from zuno.trading.measure.data_quality import RowRun, complete_at, count_repeated_rows, find_gap
from zuno.trading.measure.derivatives import RANK_DAYS, thin_to_hours
from zuno.trading.measure.features import CADENCE_DAYS
from zuno.trading.measure.order_book import sample_minute
from zuno.trading.measure.tape import LOWER_BOUND
from zuno.trading.model.account import POSITIONS, PositionsSlot, read_slot
from zuno.trading.model.bundle import SLOTS, Absent, Block, Bundle, Slot
from zuno.trading.model.market import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    SECOND_MS,
    STALE_AFTER,
    STALE_BARS,
    Feed,
    Heartbeat,
    MacroRelease,
    Mode,
    Series,
    Timeframe,
    alive,
    timeframe_of,
)
from zuno.trading.model.wanted import neighbour_series, own_candles, unoffered_series, wanted_series
from zuno.trading.ports.series import RejectedRow, SeriesStore, Slice
from zuno.trading.rules.account import GROUP_DAYS

TAPE_DAYS: Final = 14
"""Twice what a percentile of hourly liquidations needs."""
_FAULT: Final = 120
"""So many letters at most of what is wrong with a row."""
PROVEN_WITHIN: Final = Seconds(5)
"""How long a living stream may take to prove a minute that is over: late trades, the venue's next message, the
write."""
RANKED: Final = (Feed.LONG_SHORT, Feed.BASIS)
"""Held against the hours of their own week, at the venue the desk trades at."""
_STREAMS: Final = (Feed.LIQUIDATIONS, Feed.WHALES)
_BARS: Final[Mapping[Timeframe, int]] = {
    Timeframe.M1: 48 * 60,  # a day of shocks, and a day before them to know which had begun
    Timeframe.H1: 181 * 24,  # a day's volatility is held against half a year of days
    Timeframe.H4: 1_000,
    Timeframe.D1: 1_000,
    Timeframe.W1: 520,
}


@dataclass(frozen=True, slots=True)
class ReadWindow:
    """How far back a feed is read, and how many rows at most."""

    span: int
    newest: int | None = None


_REACH: Final[Mapping[Feed, ReadWindow]] = {
    Feed.FUNDING: ReadWindow(181 * DAY_MS),
    Feed.OPEN_INTEREST: ReadWindow(181 * DAY_MS),
    Feed.LONG_SHORT: ReadWindow(DAY_MS),
    Feed.BASIS: ReadWindow(DAY_MS),
    Feed.BOOK: ReadWindow(
        MINUTE_MS + STALE_AFTER[Feed.BOOK] * SECOND_MS, 16
    ),  # a collector's eight, and whoever looked
    Feed.LIQUIDATIONS: ReadWindow(TAPE_DAYS * DAY_MS),
    Feed.WHALES: ReadWindow(DAY_MS),
    Feed.OPTIONS: ReadWindow(DAY_MS, 1),
    Feed.DVOL: ReadWindow(31 * DAY_MS),
    Feed.MACRO: ReadWindow(120 * DAY_MS),
    Feed.FEAR_GREED: ReadWindow(31 * DAY_MS),
    Feed.NARRATIVE: ReadWindow(7 * DAY_MS, 3),
    Feed.NEWS: ReadWindow(DAY_MS, 40),
    Feed.RATES: ReadWindow(DAY_MS, 24),
}


async def build_bundle(
    store: SeriesStore,
    symbol: Symbol,
    mode: Mode,
    as_of: Millis,
    slots: Sequence[Slot] = (),
    failures: Mapping[str, str] | None = None,
    markets: Sequence[Symbol] = DEFAULT_SYMBOLS,
) -> Bundle:
    """Everything of the store that could be known by then. `failures`: why a source that was asked just now did not
    answer, by series. `markets`: what the desk trades; of each, and of all it holds, the newest mark is read."""
    failed = failures or {}
    blocks: list[Block] = []
    absent: list[Absent] = []
    heard: dict[str, Millis] = {}
    several = sorted(
        wanted_series(symbol), key=lambda series: series.row is not Heartbeat
    )  # who is alive is known before who spoke
    others = [other for other in dict.fromkeys((*markets, *_read_held(slots))) if other is not symbol]
    beside: tuple[Series[Any], ...] = neighbour_series(symbol, others)
    if store.origin.candles_only:  # what is held elsewhere is marked at its last close
        beside += tuple(own_candles(other, Timeframe.H1) for other in others)
    home, held = mark_feed(symbol), {*_read_held(slots)} - {symbol}
    daily = tuple(own_candles(other, Timeframe.D1) for other in others if other in held)  # what moves together
    slices = [_slice(series, as_of, home) for series in several]
    slices += [_slice(series, as_of, home, newest=1) for series in beside]
    slices += [_slice(series, as_of, home, newest=GROUP_DAYS + 2) for series in daily]
    state = await store.read_many(slices, as_of)
    for series, given, asides in zip((*several, *beside, *daily), state.rows, state.asides, strict=True):
        rows = sample_minute(given) if series.feed is Feed.BOOK else given
        rows = thin_to_hours(rows, as_of) if series.feed in RANKED else rows
        last = _last(series, rows, heard)
        if series.row is Heartbeat and last is not None:
            heard[str(series)] = last
        if last is None:
            absent.append(Absent(str(series), _reason(series, asides, failed.get(str(series)), home)))
            continue
        notes = (
            *_notes(series, rows),
            *_set_aside(series, rows, asides),
            *((f"asked now: {failed[str(series)]}",) if str(series) in failed else ()),
        )
        blocks.append(Block(series, rows, last, Seconds(-(-(as_of - last) // SECOND_MS)), _limit(series, rows), notes))
    absent += [Absent(str(series), f"not offered for {symbol.base}") for series in unoffered_series(symbol)]
    named = {slot.name for slot in slots}
    absent += [Absent(name, "none is kept yet") for name in SLOTS if name not in named]
    return Bundle(
        symbol,
        mode,
        as_of,
        state.origin.label,
        tuple(sorted(blocks, key=lambda block: str(block.series))),
        tuple(sorted(absent, key=lambda gone: gone.what)),
        tuple(sorted(slots, key=lambda slot: slot.name)),
    )


def _read_held(slots: Sequence[Slot]) -> Iterator[Symbol]:
    for slot in slots:
        if slot.name == POSITIONS:
            try:
                held = read_slot(PositionsSlot, slot.content, "positions")
            except Malformed:
                return
            yield from (position.symbol for position in held.positions)
            yield from (order.symbol for order in held.pending)
            yield from () if held.others is None else (part.symbol for part in held.others.exposures)


def _slice(series: Series[Any], as_of: Millis, home: str, newest: int | None = None) -> Slice[Any]:
    reach = reach_of(series, home)
    return Slice(series, Millis(as_of - reach.span), as_of, newest or reach.newest)


def reach_of(series: Series[Any], home: str = DEFAULT_VENUE.feed) -> ReadWindow:
    """`home`: the venue whose ratios are ranked."""
    if series.feed in RANKED and series.venue == home:
        return ReadWindow((RANK_DAYS + 1) * DAY_MS)
    if series.feed is Feed.CANDLES:
        timeframe = timeframe_of(series)
        count = 48 if series.venue in QUIET else _BARS[timeframe]
        return ReadWindow((count + 1) * timeframe.millis, count)
    if series.name.endswith("/next"):
        return ReadWindow(DAY_MS)
    return _REACH[series.feed]


def _last(series: Series[Any], rows: Sequence[Any], heard: Mapping[str, Millis]) -> Millis | None:
    """When the newest row was true; a stream counts up to its last sign of life, even without events."""
    newest = [complete_at(series, row) for row in rows[-1:]]
    if series.row is MacroRelease:  # an older day may have been revised last
        newest += [row.released for row in rows]
    if series.feed in _STREAMS and series.row is not Heartbeat:
        sign = heard.get(str(alive(series.feed, series.venue, series.name)))
        newest += [] if sign is None else [sign]
    return max(newest, default=None)


def _limit(series: Series[Any], rows: Sequence[Any]) -> Seconds:
    if series.feed is Feed.CANDLES:
        return Seconds(STALE_BARS * timeframe_of(series).millis // SECOND_MS)
    if series.feed is Feed.FUNDING and not series.name.endswith("/next"):
        return Seconds(int(rows[-1].interval_hours * HOUR_MS) // SECOND_MS + STALE_AFTER[Feed.FUNDING])
    if series.feed is Feed.MACRO:
        return Seconds(CADENCE_DAYS.get(series.name, 0) * DAY_MS // SECOND_MS + STALE_AFTER[Feed.MACRO])
    if series.feed in _STREAMS:
        return Seconds(STALE_AFTER[series.feed] + PROVEN_WITHIN)
    return STALE_AFTER[series.feed]


def _notes(series: Series[Any], rows: Sequence[Any]) -> tuple[str, ...]:
    """What a reader must know beside the numbers."""
    notes: list[str] = []
    if series.feed is Feed.LIQUIDATIONS and series.row is not Heartbeat:
        notes.append(f"sums are a {LOWER_BOUND}: a venue pushes one forced trade a second at most")
    if series.feed is Feed.CANDLES and series.venue not in QUIET:
        timeframe = timeframe_of(series)
        holes = list(_find_gaps(timeframe, rows, 0, len(rows) - 1))
        if holes:
            notes.append(f"{sum(hole.count for hole in holes)} bars are missing in {len(holes)} places")
    if (still := count_repeated_rows(series, rows)) is not None:
        notes.append(f"the last {still} rows are the same: the feed stands still")
    return tuple(notes)


def _find_gaps(timeframe: Timeframe, rows: Sequence[Any], first: int, last: int) -> Iterator[RowRun]:
    """Missing bars between two of these, by halves: none is missing where the span equals the number of bars."""
    before, after = rows[first].at, rows[last].at
    if after - before == (last - first) * timeframe.millis:
        return
    if last - first > 1:
        middle = (first + last) // 2
        yield from _find_gaps(timeframe, rows, first, middle)
        yield from _find_gaps(timeframe, rows, middle, last)
    elif (hole := find_gap(timeframe, before, after)) is not None:
        yield hole


def _reason(series: Series[Any], asides: Sequence[RejectedRow], failure: str | None, home: str) -> str:
    """Why nothing of a series is here."""
    reasons = (*((failure,) if failure else ()), *_set_aside(series, (), asides))
    return "; ".join(reasons) or f"nothing is recorded of {_format_span(reach_of(series, home).span)} before"


def _set_aside(series: Series[Any], rows: Sequence[Any], asides: Sequence[RejectedRow]) -> tuple[str, ...]:
    """Rejected rows within the time of these rows, unless a valid row has their place."""
    if not asides:
        return ()
    shown = {row.at for row in rows}
    missed = [aside for aside in asides if aside.at not in shown and (not rows or aside.at > rows[0].at)]
    if not missed:
        return ()
    fault = plain_text(missed[-1].detail.partition(f": {series.row.__name__}(")[0], _FAULT)
    last = iso(missed[-1].at)
    if len(missed) == 1:
        return (f"1 row at {last} was set aside, no market can have made it: {fault}",)
    return (f"{len(missed)} rows were set aside, no market can have made them; the last at {last}: {fault}",)


def _format_span(span: int) -> str:
    if span >= 2 * DAY_MS:
        return f"the {span // DAY_MS} days"
    return f"the {span // MINUTE_MS} minutes" if span >= 2 * MINUTE_MS else f"the {span // SECOND_MS} seconds"
