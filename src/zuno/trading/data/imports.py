"""Columns of a file into the store: rows no market can have made and prices of another market are set aside, each
place is written once, and coarser bars are made of what is whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from zuno.kernel.errors import Refused
from zuno.kernel.units import Millis
from zuno.markets.feeds import FOREIGN_SPOT, is_perpetual
from zuno.markets.market import Catalogue
from zuno.markets.venues import DEFAULT_VENUE
from zuno.trading.measure import columns as measured
from zuno.trading.measure.data_quality import find_row_fault, print_interval
from zuno.trading.model import market
from zuno.trading.ports.imports import NotNeeded
from zuno.trading.ports.series import Batch, Columns, ColumnStore, ColumnsWritten, Source

COARSER: Final = {
    market.Timeframe.M1: (market.Timeframe.H1,),
    market.Timeframe.H1: (market.Timeframe.H4, market.Timeframe.D1, market.Timeframe.W1),
}
_SAMPLE: Final = 2_000
"""Newest bars that are held against other coins' first."""
_UNLIKELY: Final = 0.1  # the share of closes that is asked about: a few may be a venue's bad minute
_FIRST_BLOCK: Final = 1_230_940_800_000
"""2009-01-03: a bar before it has a time that was read wrongly, or none."""
_WEEK: Final = market.Timeframe.W1
_WINDOW: Final = {market.Timeframe.M1: 26 * _WEEK.millis, market.Timeframe.H1: 520 * _WEEK.millis}
"""How much is made at a time; whole weeks, so that no bar lies in two windows."""
Stretch: TypeAlias = tuple[Millis, Millis, bool]
"""The first and the last row that is new or changed, and whether some are changed."""


@dataclass(slots=True)
class Imported:
    rows: int = 0
    new: int = 0
    changed: int = 0
    repeated: int = 0
    blank: int = 0
    unmade: int = 0
    """Bars a part of which is missing."""
    first: Millis | None = None
    last: Millis | None = None
    set_aside: list[tuple[int, str]] = field(default_factory=list)
    """Lines and reasons."""
    unfinished: int = 0
    """Of these, bars and days that are not over: nobody needs them."""

    def add(self, other: Imported) -> None:
        self.rows += other.rows
        self.new += other.new
        self.changed += other.changed
        self.unmade += other.unmade
        self.first = min(filter(None, (self.first, other.first)), default=None)
        self.last = max(filter(None, (self.last, other.last)), default=None)


@dataclass(slots=True)
class ImportState:
    """One import: what it has written so far."""

    store: ColumnStore
    now: Millis
    confirm: Callable[[str], bool]
    """Asks whether prices that are not likely are taken all the same."""
    confirmed: set[tuple[market.Series[Any], str]] = field(default_factory=set)
    unchecked: set[market.Series[Any]] = field(default_factory=set)
    """Candles that nothing could be held against."""
    seen: dict[market.Series[Any], Any] = field(default_factory=dict)
    """Times that this import has given a row already; what comes later for them does not replace it."""
    prints: dict[market.Series[Any], dict[int, float]] = field(default_factory=dict)
    level: dict[market.Series[Any], float] = field(default_factory=dict)
    """The last close that was written of a series."""
    touched: dict[market.Series[Any], list[Stretch]] = field(default_factory=dict)


async def take_columns(state: ImportState, columns: Columns, lines: Any, file: str, parts: int = 1) -> Imported:
    """Write the valid rows of a block. `Refused` for another market's prices or another clock. `parts`: how many rows
    make one bar; the block is then the whole file."""
    series = columns.series
    if series.row is market.MacroRelease:
        return await _take_prints(state, columns, lines, file)
    if series.row is market.Candle:
        timeframe = market.timeframe_of(series)
        _refuse_clocks(series, measured.find_late_clocks(columns.at - timeframe.floor(0), timeframe.millis // parts))
    placed = measured.sort_rows(columns, state.now, with_blanks=series.row is not market.Candle, parts=parts)
    imported = Imported(repeated=placed.repeated, blank=placed.blank)
    bad = measured.take_rows(columns, placed.bad)
    for row, line in zip(measured.to_rows(bad), lines[placed.bad].tolist(), strict=True):
        imported.set_aside.append((line, _find_fault(series, row, state.now, parts) or _INCOMPLETE))
        imported.unfinished += row.at <= state.now and _find_fault(series, row, None, parts) is None
    imported.set_aside += [(int(lines[place]), _SECOND) for place in placed.second]
    whole, where = measured.take_rows(columns, placed.order), lines[placed.order]
    if series.row is market.Candle and len(whole):
        early = whole.at < _FIRST_BLOCK
        imported.set_aside += [
            (line, "nothing was traded before Bitcoin's first block") for line in where[early].tolist()
        ]
        whole, where = measured.take_rows(whole, ~early), where[~early]
    if series.row is market.Candle and len(whole):
        foreign = measured.mark_foreign_prices(whole, await _level(state, whole))
        imported.set_aside += [
            (int(line), f"close {close:g} is another market's price")
            for line, close in zip(where[foreign].tolist(), whole.values[3][foreign].tolist(), strict=True)
        ]
        whole, where = measured.take_rows(whole, ~foreign), where[~foreign]
        if parts > 1:
            whole, where = _build_bars(whole, where, parts, imported)
        await _check_market(state, whole, file)
    elif len(whole):
        whole = measured.narrow_intervals(whole) if series.row is market.Funding else whole
        standing = await _read_around(state, whole)
        _refuse_clocks(series, measured.find_clock_shifts(whole, standing))
        if print_interval(series) is not None:
            whole, where = _keep_single(whole, where, standing, imported)
    if not len(whole):
        return imported
    before = measured.mark_seen(state.seen, whole)
    written = await state.store.write_columns(whole, Source.IMPORTED, file, state.now, ~before)
    imported.set_aside += [(int(line), _SECOND) for line in where[written.left].tolist()]
    imported.rows = len(whole) - int(written.left.sum())
    imported.new, imported.changed = int(written.new.sum()), int(written.changed.sum())
    imported.first, imported.last = Millis(int(whole.at[0])), Millis(int(whole.at[-1]))
    imported.repeated += int((before & ~written.left).sum())
    _note_touched(state, whole, written)
    if series.row is market.Candle:
        state.level[series] = float(whole.values[3][-1])
    return imported


_INCOMPLETE: Final = "it was not complete when it was imported"
_DOUBLED: Final = "its interval has a row already"
_SECOND: Final = "another row of the same time has other numbers, and came first"


def _find_fault(series: market.Series[Any], row: Any, known: Millis | None, parts: int) -> str | None:
    if parts == 1:
        return find_row_fault(series, row, known)
    timeframe = market.timeframe_of(series)
    fault = find_row_fault(series, row._replace(at=timeframe.floor(row.at)), None)
    length = timeframe.millis // parts
    return fault or (f"no {length // market.MINUTE_MS}m bar opens then" if row.at % length else None)


def _build_bars(columns: Columns, lines: Any, parts: int, imported: Imported) -> tuple[Columns, Any]:
    """The bars whose every part is here, each at the line of its first part; lines of the others are set aside."""
    bars, firsts, counts = measured.build_bars(columns, parts)
    timeframe, lacking = market.timeframe_of(columns.series), counts < parts
    imported.unmade = len(set(map(timeframe.floor, columns.at[lacking].tolist())))
    imported.unfinished += int((columns.at[lacking] >= timeframe.floor(int(columns.at[-1]))).sum())
    imported.set_aside += [
        (line, f"its {timeframe} has {count} of its {parts} bars, and is not made")
        for line, count in zip(lines[lacking].tolist(), counts[lacking].tolist(), strict=True)
    ]
    return bars, lines[firsts]


async def _take_prints(state: ImportState, columns: Columns, lines: Any, file: str) -> Imported:
    """A figure's day is known when it is over."""
    imported, rows = Imported(), []
    given = state.prints.setdefault(columns.series, {})
    standing = await state.store.read(columns.series, Millis(-(2**62)), Millis(2**62), Millis(2**62))
    beside = _measure_beside(columns, measured.to_columns(columns.series, standing))[1]
    numbers = columns.at.tolist(), columns.values[0].tolist(), lines.tolist(), beside
    for at, value, line, gap in zip(*numbers, strict=True):
        row = market.MacroRelease(Millis(at), value, Millis(at + market.DAY_MS))
        if value != value:
            imported.blank += 1
        elif (fault := find_row_fault(columns.series, row, state.now)) or row.released > state.now:
            imported.set_aside.append((line, fault or _INCOMPLETE))
            imported.unfinished += fault is None and at <= state.now
        elif gap:
            imported.set_aside.append((line, _DOUBLED))
        elif at in given:
            if given[at] == value:
                imported.repeated += 1
            else:
                imported.set_aside.append((line, _SECOND))
        else:
            given[at] = value
            rows.append(row)
    done = await state.store.write([Batch(columns.series, rows, None, Source.IMPORTED, file)])
    imported.rows, imported.new, imported.changed = len(rows), done.new, done.changed
    if rows:
        imported.first, imported.last = min(row.at for row in rows), max(row.at for row in rows)
    return imported


# -- one row for each interval, by one clock


def _keep_single(columns: Columns, lines: Any, standing: Columns, imported: Imported) -> tuple[Columns, Any]:
    """Without rows of an interval that has one."""
    columns, beside = _measure_beside(columns, standing)
    imported.set_aside += [(line, _DOUBLED) for line, gap in zip(lines.tolist(), beside, strict=True) if gap]
    single = [not gap for gap in beside]
    return measured.take_rows(columns, single), lines[single]


def _measure_beside(columns: Columns, standing: Columns) -> tuple[Columns, list[int]]:
    """As `measure_overlaps`. `Refused` for a clock that is not UTC, and where most rows lie beside one that is here."""
    series = columns.series
    if series.feed is market.Feed.FUNDING and is_perpetual(series.venue):
        _refuse_clocks(series, measured.find_late_clocks(columns.at, measured.interval_widths(columns)))
    placed, beside = measured.measure_overlaps(columns, standing)
    shifts = Counter(filter(None, beside))
    if 2 * shifts.total() > len(columns):
        raise Refused(
            f"{shifts.total():,} of its {len(columns):,} rows are of intervals that {series} has rows of, most of "
            f"them {round(shifts.most_common(1)[0][0] / market.HOUR_MS, 2):+g} h beside it: no hour is counted twice"
        )
    return placed, beside


def _refuse_clocks(series: market.Series[Any], shifts: Sequence[int]) -> None:
    if shifts:
        offsets = ", ".join(f"{shift / market.HOUR_MS:+g} h" for shift in shifts)
        raise Refused(
            f"Its times look local: its rows lie {offsets} beside those of {series} by UTC; write times in UTC or with "
            "their offset"
        )


async def _read_around(state: ImportState, columns: Columns) -> Columns:
    since, until = Millis(int(columns.at[0]) - market.DAY_MS), Millis(int(columns.at[-1]) + market.DAY_MS)
    return await state.store.read_columns(columns.series, since, until)


# -- whose prices they are


async def _level(state: ImportState, columns: Columns) -> float | None:
    """A close of this market near the first of these, where one is known."""
    known = state.level.get(columns.series)
    if known is not None:
        return known
    first = int(columns.at[0])
    near = await state.store.read_columns(
        columns.series, Millis(first - 7 * market.DAY_MS), Millis(first + 7 * market.DAY_MS)
    )
    return float(near.values[3][-1]) if len(near) else None


async def _check_market(state: ImportState, columns: Columns, file: str) -> None:
    """Hold the closes against those here at the same times, and where there are none against all the symbol had."""
    if not len(columns):
        return
    series = columns.series
    if len(columns) >= measured.ENOUGH and not columns.values[4].any():
        raise NotNeeded(
            "Its volume is 0 throughout: it is a mark, index or premium price, and candles of trades are kept here"
        )
    held = [columns]
    if market.timeframe_of(series) is market.Timeframe.M1:  # hours may be here without their minutes
        held += filter(len, [measured.take_hour_closes(columns)])
    compared = False
    for part in held:
        standing = await _read_around(state, part)
        ratio = measured.measure_price_ratio(part, standing)
        if ratio is not None and not 1 / measured.LEAP < ratio < measured.LEAP:
            raise Refused(f"Its prices are {ratio:.3g} times those of {part.series} here: they are another market's")
        _refuse_clocks(part.series, measured.find_clock_shifts(part, standing))
        _check_moves(state, part, standing, file)
        compared |= ratio is not None
    if not compared:
        for part in held:
            await _check_neighbours(state, part, file)
        _check_bounds(state, columns, file)


def _check_moves(state: ImportState, columns: Columns, standing: Columns, file: str) -> None:
    """Ask before closes are taken that move otherwise than those of the market that are here. Minutes of two venues
    differ by their spreads: their hours are compared."""
    likeness = measured.measure_likeness(columns, standing, least=measured.MANY)
    if (
        likeness is not None
        and likeness < measured.OTHER_MOVES
        and market.timeframe_of(columns.series) is not market.Timeframe.M1
    ):
        _ask(
            state,
            columns.series,
            file,
            f"{file}: its closes do not move as {columns.series} here does (correlation {likeness:.2f}): they may be "
            "another symbol's (`--yes` takes them).",
        )


def _ask(state: ImportState, series: market.Series[Any], file: str, question: str) -> None:
    """Raise `Refused` unless the owner takes the file all the same; asked once a file."""
    if (series, file) not in state.confirmed and not state.confirm(question):
        raise Refused(question)
    state.confirmed.add((series, file))


def _check_bounds(state: ImportState, columns: Columns, file: str) -> None:
    """Ask before closes are taken that are far from what the symbol traded at."""
    series, closes = columns.series, columns.values[3]
    share = measured.measure_unlikely_closes(columns)
    if share is None:
        state.unchecked.add(series)
    elif share > _UNLIKELY:
        _ask(
            state,
            series,
            file,
            f"{file}: {share:.0%} of its closes, from {closes.min():g} to {closes.max():g}, are far from what {series} "
            "traded at in those years; they may be another symbol's or in another unit (`--yes` takes them).",
        )


async def _check_neighbours(state: ImportState, columns: Columns, file: str) -> None:
    """Nothing of the symbol is here for that time: `Refused` where the closes move as another symbol's and have its
    level; asks where they have another level, as in another unit."""
    series = columns.series
    if series.venue == FOREIGN_SPOT:
        return
    others = {
        market.candles(series.venue, coin.symbol, market.timeframe_of(series))
        for coin in Catalogue().list_at(DEFAULT_VENUE)
    }
    length = f"/{market.timeframe_of(series)}"
    others |= {other for other in state.touched if other.venue == series.venue and other.name.endswith(length)}
    for other in others - {series}:
        for part in (measured.take_rows(columns, slice(-_SAMPLE, None)), columns):
            since, until = Millis(int(part.at[0])), Millis(int(part.at[-1]))
            standing = await state.store.read_columns(other, since, until)
            ratio = measured.measure_price_ratio(part, standing)
            if (likeness := measured.measure_likeness(part, standing)) is not None:
                break
        # With too few to see them move only the very same closes tell.
        if ratio != 1.0 if likeness is None else likeness < measured.SAME_MOVES:
            continue

        if ratio is not None and abs(ratio - 1.0) < measured.SAME_PRICE:
            raise Refused(f"Its prices are those of {other}, not of {series}: they move alike ({likeness or 1:.3f})")
        _ask(
            state,
            series,
            file,
            f"{file}: its closes move as those of {other} (correlation {likeness or 1:.3f}) at another level; they may "
            "be that symbol's in another unit (`--yes` takes them).",
        )


# -- coarser bars


async def make_coarser(state: ImportState) -> dict[market.Series[Any], int]:
    """Bars of hours, and of hours the longer ones, where every part is here: how many are new or changed."""
    made: dict[market.Series[Any], int] = {}
    for fine in COARSER:
        for series in [
            series for series in state.touched if series.row is market.Candle and market.timeframe_of(series) is fine
        ]:
            for stretch in _join_stretches(state.touched[series]):
                await _make_stretch(state, series, stretch, made)
    return made


async def _make_stretch(
    state: ImportState, series: market.Series[Any], stretch: Stretch, made: dict[market.Series[Any], int]
) -> None:
    first, last, changed = stretch
    timeframe = market.timeframe_of(series)
    end = _WEEK.floor(last) + _WEEK.millis
    for since in range(_WEEK.floor(first), end, _WINDOW[timeframe]):
        until = min(since + _WINDOW[timeframe], end)
        fine = await state.store.read_columns(series, Millis(since), Millis(until - 1))
        for coarser in COARSER[timeframe]:
            coarse = measured.resample_columns(coarser, fine)
            inside = (coarse.at >= coarser.floor(first)) & (coarse.at <= last)
            coarse = measured.take_rows(coarse, inside & measured.mark_valid_rows(coarse, state.now))
            if not len(coarse):
                continue
            written = await state.store.write_columns(coarse, Source.IMPORTED, f"{timeframe} bars", state.now, changed)
            made[coarse.series] = made.get(coarse.series, 0) + _note_touched(state, coarse, written)


def _note_touched(state: ImportState, columns: Columns, written: ColumnsWritten) -> int:
    """How many rows are new or changed. Their span, or all of it where none is, is kept for coarser bars."""
    put = written.new | written.changed
    at = columns.at[put] if put.any() else columns.at
    stretch = (Millis(int(at[0])), Millis(int(at[-1])), bool(written.changed.any()))
    state.touched.setdefault(columns.series, []).append(stretch)
    return int(put.sum())


def _join_stretches(stretches: Sequence[Stretch]) -> list[Stretch]:
    """Stretches of which weeks touch are gone through together."""
    joined: list[Stretch] = []
    for first, last, changed in sorted(stretches):
        if joined and first <= _WEEK.floor(joined[-1][1]) + 2 * _WEEK.millis:
            before = joined.pop()
            joined.append((before[0], max(before[1], last), before[2] or changed))
        else:
            joined.append((first, last, changed))
    return joined


def parse_importable(text: str) -> market.Series[Any]:
    """The series of that name; `ValueError` for one whose rows no file of numbers holds."""
    series = market.parse_series(text.strip())
    if series.row is market.Candle:
        market.timeframe_of(series)
    if series.feed not in _IMPORTABLE or not series.venue or not series.name or series.name.endswith("/alive"):
        raise ValueError(text)
    return series


_IMPORTABLE: Final = frozenset(
    map(market.Feed, ("candles", "funding", "open_interest", "long_short", "dvol", "fear_greed", "rates", "macro"))
)
