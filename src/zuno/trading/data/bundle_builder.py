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
from zuno.trading.measure.data_quality import complete_at, count_repeated_rows, find_gaps
from zuno.trading.measure.derivatives import RANK_DAYS, thin_to_hours
from zuno.trading.measure.features import CADENCE_DAYS
from zuno.trading.measure.order_book import sample_minute
from zuno.trading.measure.tape import LOWER_BOUND
from zuno.trading.model import market
from zuno.trading.model.account import POSITIONS, PositionsSlot, read_slot
from zuno.trading.model.bundle import SLOTS, Absent, Block, Bundle, Slot
from zuno.trading.model.wanted import neighbour_series, own_candles, unoffered_series, wanted_series
from zuno.trading.ports.series import RejectedRow, SeriesStore, Slice
from zuno.trading.rules.account import GROUP_DAYS

TAPE_DAYS: Final = 14
"""Twice what a percentile of hourly liquidations needs."""
_FAULT: Final = 120
"""So many letters at most of what is wrong with a row."""
PROVEN_WITHIN: Final = Seconds(5)
"""How long a living stream may take to prove a minute that is over: late trades, the next message, the write."""
RANKED: Final = (market.Feed.LONG_SHORT, market.Feed.BASIS)
"""Held against the hours of their own week, at the venue the desk trades at."""
_STREAMS: Final = (market.Feed.LIQUIDATIONS, market.Feed.WHALES)
_BARS: Final[Mapping[market.Timeframe, int]] = {
    market.Timeframe.M1: 48 * 60,  # a day of shocks, and a day before them to know which had begun
    market.Timeframe.H1: 181 * 24,  # a day's volatility is held against half a year of days
    market.Timeframe.H4: 1_000,
    market.Timeframe.D1: 1_000,
    market.Timeframe.W1: 520,
}


@dataclass(frozen=True, slots=True)
class ReadWindow:
    """How far back a feed is read, and how many rows at most."""

    span: int
    newest: int | None = None


_REACH: Final[Mapping[market.Feed, ReadWindow]] = {
    market.Feed.FUNDING: ReadWindow(181 * market.DAY_MS),
    market.Feed.OPEN_INTEREST: ReadWindow(181 * market.DAY_MS),
    market.Feed.LONG_SHORT: ReadWindow(market.DAY_MS),
    market.Feed.BASIS: ReadWindow(market.DAY_MS),
    # a collector's eight, and whoever looked
    market.Feed.BOOK: ReadWindow(market.MINUTE_MS + market.STALE_AFTER[market.Feed.BOOK] * market.SECOND_MS, 16),
    market.Feed.LIQUIDATIONS: ReadWindow(TAPE_DAYS * market.DAY_MS),
    market.Feed.WHALES: ReadWindow(market.DAY_MS),
    market.Feed.OPTIONS: ReadWindow(market.DAY_MS, 1),
    market.Feed.DVOL: ReadWindow(31 * market.DAY_MS),
    market.Feed.MACRO: ReadWindow(120 * market.DAY_MS),
    market.Feed.FEAR_GREED: ReadWindow(31 * market.DAY_MS),
    market.Feed.NARRATIVE: ReadWindow(7 * market.DAY_MS, 3),
    market.Feed.NEWS: ReadWindow(market.DAY_MS, 40),
    market.Feed.RATES: ReadWindow(market.DAY_MS, 24),
}


async def build_bundle(
    store: SeriesStore,
    symbol: Symbol,
    mode: market.Mode,
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
    # Who is alive is known before who spoke.
    several = sorted(wanted_series(symbol), key=lambda series: series.row is not market.Heartbeat)
    others = [other for other in dict.fromkeys((*markets, *_read_held(slots))) if other is not symbol]
    beside: tuple[market.Series[Any], ...] = neighbour_series(symbol, others)
    if store.origin.candles_only:  # what is held elsewhere is marked at its last close
        beside += tuple(own_candles(other, market.Timeframe.H1) for other in others)
    home, held = mark_feed(symbol), {*_read_held(slots)} - {symbol}
    daily = tuple(own_candles(other, market.Timeframe.D1) for other in others if other in held)  # what moves together
    slices = [_slice(series, as_of, home) for series in several]
    slices += [_slice(series, as_of, home, newest=1) for series in beside]
    slices += [_slice(series, as_of, home, newest=GROUP_DAYS + 2) for series in daily]
    state = await store.read_many(slices, as_of)
    for series, given, asides in zip((*several, *beside, *daily), state.rows, state.asides, strict=True):
        rows = sample_minute(given) if series.feed is market.Feed.BOOK else given
        rows = thin_to_hours(rows, as_of) if series.feed in RANKED else rows
        last = _last(series, rows, heard)
        if series.row is market.Heartbeat and last is not None:
            heard[str(series)] = last
        if last is None:
            absent.append(Absent(str(series), _reason(series, asides, failed.get(str(series)), home)))
            continue
        notes = (
            *_notes(series, rows),
            *_set_aside(series, rows, asides),
            *((f"asked now: {failed[str(series)]}",) if str(series) in failed else ()),
        )
        age = Seconds(-(-(as_of - last) // market.SECOND_MS))
        blocks.append(Block(series, rows, last, age, _limit(series, rows), notes))
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


def _slice(series: market.Series[Any], as_of: Millis, home: str, newest: int | None = None) -> Slice[Any]:
    reach = reach_of(series, home)
    return Slice(series, Millis(as_of - reach.span), as_of, newest or reach.newest)


def reach_of(series: market.Series[Any], home: str = DEFAULT_VENUE.feed) -> ReadWindow:
    """`home`: the venue whose ratios are ranked."""
    if series.feed in RANKED and series.venue == home:
        return ReadWindow((RANK_DAYS + 1) * market.DAY_MS)
    if series.feed is market.Feed.CANDLES:
        timeframe = market.timeframe_of(series)
        count = 48 if series.venue in QUIET else _BARS[timeframe]
        return ReadWindow((count + 1) * timeframe.millis, count)
    if series.name.endswith("/next"):
        return ReadWindow(market.DAY_MS)
    return _REACH[series.feed]


def _last(series: market.Series[Any], rows: Sequence[Any], heard: Mapping[str, Millis]) -> Millis | None:
    """When the newest row was true; a stream counts up to its last sign of life, even without events."""
    newest = [complete_at(series, row) for row in rows[-1:]]
    if series.row is market.MacroRelease:  # an older day may have been revised last
        newest += [row.released for row in rows]
    if series.feed in _STREAMS and series.row is not market.Heartbeat:
        sign = heard.get(str(market.alive(series.feed, series.venue, series.name)))
        newest += [] if sign is None else [sign]
    return max(newest, default=None)


def _limit(series: market.Series[Any], rows: Sequence[Any]) -> Seconds:
    if series.feed is market.Feed.CANDLES:
        return Seconds(market.STALE_BARS * market.timeframe_of(series).millis // market.SECOND_MS)
    usual = market.STALE_AFTER[series.feed]
    if series.feed is market.Feed.FUNDING and not series.name.endswith("/next"):
        return Seconds(int(rows[-1].interval_hours * market.HOUR_MS) // market.SECOND_MS + usual)
    if series.feed is market.Feed.MACRO:
        return Seconds(CADENCE_DAYS.get(series.name, 0) * market.DAY_MS // market.SECOND_MS + usual)
    return Seconds(usual + PROVEN_WITHIN) if series.feed in _STREAMS else usual


def _notes(series: market.Series[Any], rows: Sequence[Any]) -> tuple[str, ...]:
    notes: list[str] = []
    if series.feed is market.Feed.LIQUIDATIONS and series.row is not market.Heartbeat:
        notes.append(f"sums are a {LOWER_BOUND}: a venue pushes one forced trade a second at most")
    if series.feed is market.Feed.CANDLES and series.venue not in QUIET:
        timeframe, first, last = market.timeframe_of(series), rows[0].at, rows[-1].at
        whole = last - first == (len(rows) - 1) * timeframe.millis
        if holes := [] if whole else find_gaps(timeframe, [row.at for row in rows], first, last):
            notes.append(f"{sum(hole.count for hole in holes)} bars are missing in {len(holes)} places")
    if (still := count_repeated_rows(series, rows)) is not None:
        notes.append(f"the last {still} rows are the same: the feed stands still")
    return tuple(notes)


def _reason(series: market.Series[Any], asides: Sequence[RejectedRow], failure: str | None, home: str) -> str:
    reasons = (*((failure,) if failure else ()), *_set_aside(series, (), asides))
    return "; ".join(reasons) or f"nothing is recorded of {_format_span(reach_of(series, home).span)} before"


def _set_aside(series: market.Series[Any], rows: Sequence[Any], asides: Sequence[RejectedRow]) -> tuple[str, ...]:
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
    for unit, name in ((market.DAY_MS, "days"), (market.MINUTE_MS, "minutes")):
        if span >= 2 * unit:
            return f"the {span // unit} {name}"
    return f"the {span // market.SECOND_MS} seconds"
