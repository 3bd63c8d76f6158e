"""Rows of one series as columns: which of them a market can have made, what bars they make, and whose prices they are.

The same rules as `data_quality` and `bars` have for single rows, for millions of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from zuno.kernel.units import Millis
from zuno.trading.measure.bars import bars_per_bar, timeframe_of, total
from zuno.trading.measure.data_quality import EARLIEST, INTERVAL_HOURS, LATEST, LEAST_AMOUNT, LEAST_PRICE, MOST
from zuno.trading.model.market import DAY_MS, HOUR_MS, Candle, Funding, Level, MarkAndIndex, Series, Timeframe
from zuno.trading.ports.series import Columns

Mask: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]
WIDTH: Final[Mapping[type[Any], int]] = {Candle: 6, Funding: 2, Level: 1, MarkAndIndex: 2}
"""How many numbers a row has beside its time."""
LEAP: Final = 4.0
"""No market here has moved by that factor from one bar to the next; prices of another symbol have."""
NEAR: Final = 90 * DAY_MS
"""Bars further apart than that are not held against each other."""
SAME_PRICE: Final = 0.02
"""Closes of two venues differ by less."""
_ENOUGH: Final = 24
"""So many bars, or different closes, tell something."""
MOST_SHIFT: Final = 14
"""Hours that a local clock is away from UTC at most."""
_SCALE: Final = 1e8
_EXACT: Final = 2.0**53
_DIGITS: Final = 1e15
"""Decimals of so many digits are spelled as they were written."""


def to_rows(columns: Columns) -> list[Any]:
    """The rows these columns are of."""
    kind = columns.series.row
    numbers = [column.tolist() for column in columns.values]
    if kind is Candle:  # what buyers took is the one number a row may lack
        numbers[5] = [None if number != number else number for number in numbers[5]]
    return list(map(kind, columns.at.tolist(), *numbers))


def take_rows(columns: Columns, chosen: Any) -> Columns:
    return Columns(columns.series, columns.at[chosen], tuple(column[chosen] for column in columns.values))


def complete_times(series: Series[Any], at: NDArray[np.int64]) -> NDArray[np.int64]:
    """From when somebody who watched could know each row."""
    return at + timeframe_of(series).millis if series.row is Candle else at


def mark_valid_rows(columns: Columns, now: Millis, parts: int = 1) -> Mask:
    """Which rows a market can have made, and were complete by now. `parts`: how many candles make one of the series."""
    at, end = columns.at, columns.at
    judged = (at >= EARLIEST) & (at < LATEST) & _JUDGES[columns.series.row](columns)
    if columns.series.row is Candle:
        timeframe = timeframe_of(columns.series)
        end = at + timeframe.millis // parts
        judged &= (at - timeframe.floor(0)) % (timeframe.millis // parts) == 0
    return np.asarray(judged & (end <= now), dtype=bool)


def _mark_valid_candles(columns: Columns) -> Any:
    opened, high, low, close, volume, taken = columns.values
    return (
        (low >= LEAST_PRICE) & (low <= opened) & (opened <= high) & (low <= close) & (close <= high) & (high <= MOST)
        & _mark_valid_amounts(volume) & (np.isnan(taken) | ((taken >= 0.0) & (taken <= volume)))
    )  # fmt: skip


def _mark_valid_funding(columns: Columns) -> Any:
    rate, hours = columns.values
    least, most = INTERVAL_HOURS
    return (np.abs(rate) <= MOST) & (hours >= least) & (hours <= most)


def _mark_valid_marks(columns: Columns) -> Any:
    mark, spot = columns.values
    return (mark >= LEAST_PRICE) & (mark <= MOST) & (spot >= LEAST_PRICE) & (spot <= MOST)


def _mark_valid_amounts(values: Floats) -> Any:
    return (values == 0.0) | ((values >= LEAST_AMOUNT) & (values <= MOST))


_JUDGES: Final[Mapping[type[Any], Callable[[Columns], Any]]] = {
    Candle: _mark_valid_candles,
    Funding: _mark_valid_funding,
    Level: lambda columns: _mark_valid_amounts(columns.values[0]),
    MarkAndIndex: _mark_valid_marks,
}


@dataclass(frozen=True, slots=True, eq=False)
class ComparedRows:
    """Rows held against those that stand."""

    new: Mask
    other: Mask
    """Other numbers stand there."""


def compare_rows(columns: Columns, standing: Columns) -> ComparedRows:
    """Both strictly increasing in time."""
    if not len(standing):
        return ComparedRows(np.ones(len(columns), dtype=bool), np.zeros(len(columns), dtype=bool))
    place = np.minimum(np.searchsorted(standing.at, columns.at), len(standing) - 1)
    here = standing.at[place] == columns.at
    same = here.copy()
    for mine, theirs in zip(columns.values, standing.values, strict=True):
        there = theirs[place]
        same &= (mine == there) | (np.isnan(mine) & np.isnan(there))
    return ComparedRows(~here, here & ~same)


@dataclass(frozen=True, slots=True, eq=False)
class SortedRows:
    """Rows of a file, sorted out: each is in one of these places or was a repetition."""

    order: NDArray[np.int64]
    """Where the sound ones stand, oldest first, each time once."""
    bad: NDArray[np.int64]
    second: NDArray[np.int64]
    """Rows of a time that an earlier line gave other numbers."""
    repeated: int
    blank: int


def sort_rows(columns: Columns, now: Millis, *, with_blanks: bool, parts: int = 1) -> SortedRows:
    """`with_blanks`: a row whose number is not said is none, and not bad. `parts`: as `mark_valid_rows` has it."""
    whole = mark_valid_rows(columns, now, parts)
    blank = np.isnan(columns.values[0]) if with_blanks else np.zeros(len(columns), dtype=bool)
    bad = np.flatnonzero(~whole & ~blank)
    order = np.flatnonzero(whole)
    at = columns.at[order]
    if len(order) and np.any(np.diff(at) <= 0):
        order = order[np.argsort(at, kind="stable")]
    at = columns.at[order]
    again = np.flatnonzero(np.diff(at, prepend=at[:1] - 1) == 0)
    if not len(again):
        return SortedRows(order, bad, order[:0], 0, int(blank.sum()))
    first = order[np.searchsorted(at, at[again])]
    same = np.ones(len(again), dtype=bool)
    for column in columns.values:
        mine, theirs = column[order[again]], column[first]
        same &= (mine == theirs) | (np.isnan(mine) & np.isnan(theirs))
    second = np.sort(order[again[~same]])
    return SortedRows(np.delete(order, again), bad, second, int(same.sum()), int(blank.sum()))


def mark_seen(seen: dict[Series[Any], NDArray[np.int64]], columns: Columns) -> Mask:
    """Which times were marked before; all of them are afterwards. Kept as stretches: a long file costs little."""
    before = seen.get(columns.series)
    step = timeframe_of(columns.series).millis if columns.series.row is Candle else 0
    edges = np.flatnonzero(np.diff(columns.at) != step) if step else np.arange(len(columns) - 1)
    starts, ends = columns.at[np.concatenate(([0], edges + 1))], columns.at[np.append(edges, len(columns) - 1)]
    stretches = np.column_stack((starts, ends))
    if before is None:
        seen[columns.series] = stretches
        return np.zeros(len(columns), dtype=bool)
    place = np.searchsorted(before[:, 0], columns.at, side="right") - 1
    marked = (place >= 0) & (columns.at <= before[np.maximum(place, 0), 1])
    seen[columns.series] = _join_spans(np.vstack((before, stretches)), step)
    return np.asarray(marked, dtype=bool)


def _join_spans(spans: NDArray[np.int64], step: int) -> NDArray[np.int64]:
    """Stretches that touch or overlap as one, in order."""
    spans = spans[np.argsort(spans[:, 0], kind="stable")]
    reach = np.maximum.accumulate(spans[:, 1])
    starts = np.concatenate(([True], spans[1:, 0] > reach[:-1] + step))
    firsts = np.flatnonzero(starts)
    return np.column_stack((spans[firsts, 0], np.append(reach[firsts[1:] - 1], reach[-1])))


# -- coarser bars


def resample_columns(coarse: Timeframe, columns: Columns, parts: int | None = None) -> Columns:
    """The coarse bars whose every part is here, as `bars.resample_bars` makes them. `parts`: how many bars make one,
    where the series does not say it."""
    size = parts or bars_per_bar(coarse, timeframe_of(columns.series))
    series = Series(columns.series.feed, columns.series.venue, _renamed(columns.series.name, coarse), Candle)
    shift = coarse.floor(0)
    bucket = (columns.at - shift) // coarse.millis
    starts = np.flatnonzero(np.diff(bucket, prepend=np.iinfo(np.int64).min))
    counts = np.diff(starts, append=len(bucket))
    whole = counts == size
    inside = take_rows(columns, np.repeat(whole, counts))
    opened, high, low, close, volume, taken = (column.reshape(-1, size) for column in inside.values)
    values = (opened[:, 0], high.max(axis=1), low.min(axis=1), close[:, -1], _sums(volume), _sums(taken))
    return Columns(series, bucket[starts[whole]] * coarse.millis + shift, values)


def build_bars(columns: Columns, parts: int) -> tuple[Columns, NDArray[np.int64], NDArray[np.int64]]:
    """Bars of a series from `parts` each, in order of time: those whose every part is here, where the first part of
    each stands, and how many parts the bar of each row has."""
    timeframe = timeframe_of(columns.series)
    bucket = (columns.at - timeframe.floor(0)) // timeframe.millis
    _, starts, inside, counts = np.unique(bucket, return_index=True, return_inverse=True, return_counts=True)
    return resample_columns(timeframe, columns, parts), starts[counts == parts], counts[inside]


def _renamed(name: str, timeframe: Timeframe) -> str:
    return f"{name.rpartition('/')[0]}/{timeframe}"


def _sums(volumes: Floats) -> Floats:
    """The exact sum of the decimals in each line, rounded once; NaN where one is not said."""
    scaled = np.rint(volumes * _SCALE)
    sums = scaled.sum(axis=1)
    # Whole numbers below 2⁵³ add up exactly in whatever order, and one division rounds once.
    quick = (sums < _EXACT) & np.all((scaled / _SCALE == volumes) & (scaled < _DIGITS), axis=1)
    found: Floats = sums / _SCALE
    for line in np.flatnonzero(~quick):
        found[line] = np.nan if np.isnan(volumes[line]).any() else total(volumes[line].tolist())
    return found


# -- whose prices they are


def mark_foreign_prices(columns: Columns, level: float | None) -> Mask:
    """Which candles, in order of time, are priced like another market: stretches that lie a `LEAP` away from the ones
    around them. Of several levels the one nearest to `level` is the market's own, without it the one most rows have."""
    close = columns.values[3]
    none = np.zeros(len(close), dtype=bool)
    if len(close) < 2:
        return none
    logs = np.log(close)
    leaps = np.flatnonzero((np.abs(np.diff(logs)) > np.log(LEAP)) & (np.diff(columns.at) <= NEAR))
    if not len(leaps):
        return none
    edges = np.concatenate(([0], leaps + 1, [len(close)]))
    means = np.array([float(np.median(logs[low:high])) for low, high in pairwise(edges)])
    sizes = np.diff(edges)
    anchor = np.log(level) if level is not None else means[int(np.argmax(sizes))]
    return np.repeat(np.abs(means - anchor) > np.log(LEAP) / 2, sizes)


def measure_price_ratio(columns: Columns, standing: Columns) -> float | None:
    """How many times dearer these closes are than those that stand at the same times; None where none do."""
    mine, theirs = _meet(columns.at, standing.at)
    return float(np.median(columns.values[3][mine] / standing.values[3][theirs])) if len(mine) else None


def _meet(left: NDArray[np.int64], right: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where both, in order, have the same times."""
    if not len(right):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    place = np.minimum(np.searchsorted(right, left), len(right) - 1)
    both = np.flatnonzero(right[place] == left)
    return both, place[both]


def find_clock_shift(columns: Columns, standing: Columns) -> int | None:
    """By how many hours these candles lie later than the same ones that stand: a local clock. None where they agree as
    they are, or at no shift, or where too few stand at the same times to tell."""
    mine, _ = _meet(columns.at, standing.at)
    if len(np.unique(columns.values[3][mine])) < _ENOUGH or _share_that_agrees(columns, standing, 0) > 0.5:
        return None
    best = max(range(-MOST_SHIFT, MOST_SHIFT + 1), key=lambda hours: _share_that_agrees(columns, standing, hours))
    return best if best and _share_that_agrees(columns, standing, best) > 0.9 else None


def _share_that_agrees(columns: Columns, standing: Columns, hours: int) -> float:
    mine, theirs = _meet(columns.at - hours * HOUR_MS, standing.at)
    if len(mine) < _ENOUGH:
        return 0.0
    return float(np.mean(np.abs(columns.values[3][mine] / standing.values[3][theirs] - 1.0) < 1e-5))
