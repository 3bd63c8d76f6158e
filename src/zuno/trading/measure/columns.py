"""Rows of one series as columns: which of them a market can have made, what bars they make, and whose prices they are,
by the rules of `data_quality` and `bars`."""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from zuno.kernel.units import Millis
from zuno.trading.measure.bars import bars_per_bar, total
from zuno.trading.measure.data_quality import (
    EARLIEST,
    INTERVAL_HOURS,
    LATEST,
    LEAST_AMOUNT,
    LEAST_PRICE,
    LEEWAY,
    MOST,
    print_interval,
)
from zuno.trading.model import market
from zuno.trading.ports.series import Columns

Mask: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]
WIDTH: Final[Mapping[type[Any], int]] = {market.Candle: 6, market.Funding: 2, market.Level: 1, market.MarkAndIndex: 2}
"""How many numbers a row has beside its time."""
LEAP: Final = 4.0
"""No market here has moved by that factor from one bar to the next; prices of another symbol have."""
NEAR: Final = 90 * market.DAY_MS
"""Bars further apart than that are not held against each other."""
SAME_PRICE: Final = 0.02
"""Closes of two venues differ by less."""
# Closes of one coin at two venues move more alike than the first: 0.995 and more over 2,000 hours of BTC and ETH, where
# no two of ten coins come above 0.91. Below the second, over many rows, they are not the same coin's.
SAME_MOVES, OTHER_MOVES, MANY = 0.99, 0.9, 200
ENOUGH: Final = 24
"""So many bars tell something; no market is without any volume for so long."""
_STRETCH, _MOST_STRETCHES = 48, 60
"""Rows that are held against a clock together, for summer time begins and ends, and how many stretches of them."""
_VARIED: Final = 8
"""So many different numbers in a stretch do not agree by chance."""
_EVEN_ROWS: Final = 3
"""So many gaps of one length are an interval."""
QUARTER_MS: Final = market.HOUR_MS // 4
MOST_SHIFT: Final = 14 * market.HOUR_MS
"""How far a local clock is away from UTC at most; some are by quarters of an hour."""
_UNNOTED: Final = ((0.0, inf),) * 6
"""2017 to 2022 of coins that were noted later."""
_BOUNDS: Final[Mapping[str, tuple[tuple[float, float], ...]]] = {
    "BTCUSDT": ((2_919, 19_710), (3_172, 17_070), (3_366, 13_961), (4_063, 29_190), (29_015, 68_715), (15_638, 47_958),
                (16_504, 44_572), (38_769, 108_220), (74_781, 111_756)),
    "ETHUSDT": ((199, 851), (82, 1_431), (103, 358), (96, 755), (721, 4_852), (903, 3_874), (1_193, 2_435),
                (2_170, 4_087), (1_418, 3_713)),
    "SOLUSDT": (*_UNNOTED, (9.719, 123.8), (79.37, 263.1), (97.08, 286.1)),
    "XRPUSDT": (*_UNNOTED, (0.3248, 0.843), (0.3978, 2.856), (1.655, 3.379)),
    "BNBUSDT": (*_UNNOTED, (203.6, 350.2), (288.3, 784.8), (517.9, 742.7)),
    "DOGEUSDT": (*_UNNOTED, (0.05747, 0.1048), (0.07577, 0.4756), (0.1315, 0.4304)),
    "ADAUSDT": (*_UNNOTED, (0.2379, 0.6762), (0.2863, 1.3), (0.516, 1.157)),
    "LINKUSDT": (*_UNNOTED, (4.971, 17.54), (8.292, 30.36), (10.2, 27.0)),
    "LTCUSDT": (*_UNNOTED, (58.09, 113.6), (50.99, 144.0), (63.75, 140.1)),
    "TRXUSDT": (*_UNNOTED, (0.05025, 0.1106), (0.1015, 0.4335), (0.2049, 0.2944)),
}  # fmt: skip
"""Lowest and highest hourly close by year, 2017 to 2025-06-30: spot, from late 2019 the default venue's perpetual."""
_NOTED_SINCE: Final = 1_502_928_000_000
_SCALES: Final = (1e8, 1e4, 1.0)
"""Digits behind the point of what is added up: the more units a market trades, the fewer."""
_EXACT: Final = 2.0**53
_DIGITS: Final = 1e15
"""Decimals of so many digits are spelled as they were written."""


def to_rows(columns: Columns) -> list[Any]:
    kind = columns.series.row
    numbers = [column.tolist() for column in columns.values]
    if kind is market.Candle:  # what buyers took is the one number a row may lack
        numbers[5] = [None if number != number else number for number in numbers[5]]
    return list(map(kind, columns.at.tolist(), *numbers))


def to_columns(series: market.Series[Any], rows: Sequence[Any]) -> Columns:
    """The columns of rows that have nothing but numbers."""
    table = np.array(rows, dtype=np.float64).reshape(-1, len(series.row._fields)).T
    return Columns(series, table[0].astype(np.int64), tuple(table[1:]))


def take_rows(columns: Columns, chosen: Any) -> Columns:
    return Columns(columns.series, columns.at[chosen], tuple(column[chosen] for column in columns.values))


def complete_times(series: market.Series[Any], at: NDArray[np.int64]) -> NDArray[np.int64]:
    """From when each row could be known."""
    return at + market.timeframe_of(series).millis if series.row is market.Candle else at


def mark_valid_rows(columns: Columns, now: Millis, parts: int = 1) -> Mask:
    """Which rows a market can have made, and were complete by now. `parts`: how many candles make one of the series."""
    at, end = columns.at, columns.at
    judged = (at >= EARLIEST) & (at < LATEST) & _JUDGES[columns.series.row](columns)
    if columns.series.row is market.Candle:
        timeframe = market.timeframe_of(columns.series)
        end = at + timeframe.millis // parts
        judged &= (at - timeframe.floor(0)) % (timeframe.millis // parts) == 0
    return np.asarray(judged & (end <= now), dtype=bool)


def _mark_valid_candles(columns: Columns) -> Any:
    opened, high, low, close, volume, taken = columns.values
    return (
        (low >= LEAST_PRICE) & (low <= opened) & (opened <= high) & (low <= close) & (close <= high) & (high <= MOST)
        & _mark_valid_amounts(volume) & (np.isnan(taken) | ((taken >= 0.0) & (taken <= volume)))
    )  # fmt: skip


def _mark_within(columns: Columns, *bounds: tuple[float, float]) -> Any:
    parts = [(column >= low) & (column <= high) for column, (low, high) in zip(columns.values, bounds, strict=True)]
    return np.all(parts, axis=0)


def _mark_valid_amounts(values: Floats) -> Any:
    return (values == 0.0) | ((values >= LEAST_AMOUNT) & (values <= MOST))


_JUDGES: Final[Mapping[type[Any], Callable[[Columns], Any]]] = {
    market.Candle: _mark_valid_candles,
    market.Funding: lambda columns: _mark_within(columns, (-MOST, MOST), INTERVAL_HOURS),
    market.Level: lambda columns: _mark_valid_amounts(columns.values[0]),
    market.MarkAndIndex: lambda columns: _mark_within(columns, (LEAST_PRICE, MOST), (LEAST_PRICE, MOST)),
}


def compare_rows(columns: Columns, standing: Columns) -> tuple[Mask, Mask]:
    """Which rows are new, and where other numbers stand; both strictly increasing in time."""
    if not len(standing):
        return np.ones(len(columns), dtype=bool), np.zeros(len(columns), dtype=bool)
    place = np.minimum(np.searchsorted(standing.at, columns.at), len(standing) - 1)
    here = standing.at[place] == columns.at
    return ~here, here & ~_mark_same(columns.values, [column[place] for column in standing.values])


def _mark_same(values: Sequence[Floats], others: Sequence[Floats]) -> Mask:
    """Where all numbers of two rows are equal; what neither says is."""
    pairs = zip(values, others, strict=True)
    same = [(mine == theirs) | (np.isnan(mine) & np.isnan(theirs)) for mine, theirs in pairs]
    return np.asarray(np.all(same, axis=0))


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
    same = _mark_same(*([column[places] for column in columns.values] for places in (order[again], first)))
    second = np.sort(order[again[~same]])
    return SortedRows(np.delete(order, again), bad, second, int(same.sum()), int(blank.sum()))


def mark_seen(seen: dict[market.Series[Any], list[NDArray[np.int64]]], columns: Columns) -> Mask:
    """Which times were marked before; all of them are afterwards."""
    blocks = seen.setdefault(columns.series, [])
    marked = np.zeros(len(columns), dtype=bool)
    for times in blocks:
        if times[0] <= columns.at[-1] and columns.at[0] <= times[-1]:
            marked |= np.isin(columns.at, times, assume_unique=True)
    blocks.append(columns.at)
    return marked


# -- coarser bars


def resample_columns(coarse: market.Timeframe, columns: Columns, parts: int | None = None) -> Columns:
    """The coarse bars whose every part is here. `parts`: how many bars make one, where the series does not tell."""
    size = parts or bars_per_bar(coarse, market.timeframe_of(columns.series))
    series = replace(columns.series, name=_renamed(columns.series.name, coarse))
    shift = coarse.floor(0)
    bucket = (columns.at - shift) // coarse.millis
    starts = np.flatnonzero(np.diff(bucket, prepend=np.iinfo(np.int64).min))
    counts = np.diff(starts, append=len(bucket))
    whole = counts == size
    inside = take_rows(columns, np.repeat(whole, counts))
    opened, high, low, close, volume, taken = (column.reshape(-1, size) for column in inside.values)
    values = (opened[:, 0], high.max(axis=1), low.min(axis=1), close[:, -1], _sums(volume), _sums(taken))
    return Columns(series, bucket[starts[whole]] * coarse.millis + shift, values)


def take_hour_closes(columns: Columns) -> Columns:
    """Minutes that end an hour, at the hour's time: they close as it does."""
    hours = replace(columns.series, name=_renamed(columns.series.name, market.Timeframe.H1))
    last = take_rows(columns, (columns.at + market.Timeframe.M1.millis) % market.HOUR_MS == 0)
    return Columns(hours, last.at + market.Timeframe.M1.millis - market.HOUR_MS, last.values)


def build_bars(columns: Columns, parts: int) -> tuple[Columns, NDArray[np.int64], NDArray[np.int64]]:
    """Bars of `parts` complete rows, the place of each first part, and how many parts each row's bar has."""
    timeframe = market.timeframe_of(columns.series)
    bucket = (columns.at - timeframe.floor(0)) // timeframe.millis
    _, starts, inside, counts = np.unique(bucket, return_index=True, return_inverse=True, return_counts=True)
    return resample_columns(timeframe, columns, parts), starts[counts == parts], counts[inside]


def _renamed(name: str, timeframe: market.Timeframe) -> str:
    return f"{name.rpartition('/')[0]}/{timeframe}"


def _sums(volumes: Floats) -> Floats:
    """The exact sum of the decimals in each line, rounded once; NaN where one is not said."""
    totals = np.full(len(volumes), np.nan)
    left = np.flatnonzero(~np.isnan(volumes).any(axis=1))
    for scale in _SCALES:
        scaled = np.rint(volumes[left] * scale)
        sums = scaled.sum(axis=1)
        # Whole numbers below 2⁵³ add up exactly in whatever order, and one division rounds once.
        quick = (sums < _EXACT) & np.all((scaled / scale == volumes[left]) & (scaled < _DIGITS), axis=1)
        totals[left[quick]] = sums[quick] / scale
        left = left[~quick]
    for line in left:
        totals[line] = total(volumes[line].tolist())
    return totals


# -- whose prices they are


def mark_foreign_prices(columns: Columns, level: float | None) -> Mask:
    """Which candles are priced like another market: stretches a `LEAP` away from their neighbours. The market's own
    level is the one nearest to `level`, else the one that most rows have."""
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


def measure_likeness(columns: Columns, standing: Columns, least: int = ENOUGH) -> float | None:
    """Return how alike these closes move and those that stand: 1 for the same market, whatever the level. None where
    fewer than `least` moves are common, or where either does not move."""
    mine, theirs = _meet(columns.at, standing.at)
    if len(mine) <= least:
        return None

    here, there = _bound_moves(columns.values[3][mine]), _bound_moves(standing.values[3][theirs])
    spread = float(np.sqrt(here @ here) * np.sqrt(there @ there))
    return float(here @ there) / spread if spread else None


def _bound_moves(closes: Floats) -> Floats:
    """Return relative moves from row to row; none counts as more than five usual ones, so that one bad row hides
    nothing."""
    moves = np.diff(np.log(closes))
    most = 5.0 * float(np.median(np.abs(moves[moves != 0]))) if moves.any() else 0.0
    return np.clip(moves, -most, most)


def _meet(left: NDArray[np.int64], right: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where both, in order, have the same times."""
    if not len(right):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    place = np.minimum(np.searchsorted(right, left), len(right) - 1)
    both = np.flatnonzero(right[place] == left)
    return both, place[both]


def measure_unlikely_closes(columns: Columns) -> float | None:
    """The share of closes below half or above twice the noted range of their year; the bounds double with each year
    after the last noted one, up to sixteenfold. None where nothing is noted."""
    closes, noted = _BOUNDS.get(columns.series.name.rpartition("/")[0]), columns.at >= _NOTED_SINCE
    if closes is None or not noted.any():
        return None
    years = columns.at[noted].astype("datetime64[ms]").astype("datetime64[Y]").astype(np.int64) - (2017 - 1970)
    width = 2.0 ** np.clip(years - len(closes) + 2, 1, 4)
    low, high = np.array(closes)[np.minimum(years, len(closes) - 1)].T
    close = columns.values[3][noted]
    return float(np.mean((close < low / width) | (close > high * width)))


def find_clock_shifts(columns: Columns, standing: Columns) -> list[int]:
    """Milliseconds by which stretches lie later than stored rows, as on a local clock: two with summer time."""
    if not len(standing):
        return []
    near = np.flatnonzero(np.abs(np.clip(columns.at, *standing.at[[0, -1]]) - columns.at) <= MOST_SHIFT)
    parts = [take_rows(columns, near[low : low + _STRETCH]) for low in range(0, len(near), _STRETCH)]
    doubtful = [part for part in parts if np.dot(_count_agreeing(part, standing, 0), (2, -1)) <= 0]
    clocks, shifts = range(-MOST_SHIFT, MOST_SHIFT + 1, QUARTER_MS), set()
    for part in doubtful[:: len(doubtful) // _MOST_STRETCHES + 1]:
        agreeing, met, shift = max((*_count_agreeing(part, standing, shift), shift) for shift in clocks)
        if agreeing >= max(ENOUGH, 0.9 * met) and len(np.unique(_level(part))) >= _VARIED:
            shifts.add(shift)
    return sorted(shifts)


def _count_agreeing(columns: Columns, standing: Columns, shift: int) -> tuple[int, int]:
    """How many rows stand that much earlier with the same number, and with whichever."""
    mine, theirs = _meet(columns.at - shift, standing.at)
    same = np.isclose(_level(columns)[mine], _level(standing)[theirs], rtol=1e-5, atol=0)
    return int(same.sum()), len(mine)


def _level(columns: Columns) -> Floats:
    """A close, a rate, a level."""
    return columns.values[3 if columns.series.row is market.Candle else 0]


# -- one row for each interval


def find_late_clocks(at: NDArray[np.int64], step: Any) -> list[int]:
    """Offsets from the UTC times at which a row is due every `step`, where at least a tenth of the rows share them."""
    late = (at + LEEWAY) % step
    late = np.where(2 * late > step, late - step, late) - LEEWAY
    shifts, counts = np.unique(np.rint(late / QUARTER_MS).astype(np.int64) * QUARTER_MS, return_counts=True)
    return [shift for shift in shifts[counts >= max(3, len(at) / 10)].tolist() if 0 < abs(shift) <= MOST_SHIFT]


def interval_widths(columns: Columns) -> NDArray[np.int64]:
    """How long the interval is that ends with each row, in milliseconds."""
    interval = print_interval(columns.series)
    return np.full(len(columns), interval) if interval else np.rint(columns.values[1] * market.HOUR_MS).astype(np.int64)


def narrow_intervals(columns: Columns) -> Columns:
    """Funding whose rows come evenly, several on end, closer than their interval: it was paid more often then. Two
    files' rows in one alternate instead."""
    hours = np.diff(columns.at, prepend=columns.at[:1]) / market.HOUR_MS
    even = np.concatenate(([True], np.abs(np.diff(hours)) * market.HOUR_MS <= LEEWAY))
    run = np.cumsum(~even)
    rates, given = columns.values
    shorter = (hours > 0.9) & (hours < given - LEEWAY / market.HOUR_MS) & (np.bincount(run)[run] >= _EVEN_ROWS)
    return Columns(columns.series, columns.at, (rates, np.where(shorter, np.rint(hours), given)))


def measure_overlaps(columns: Columns, standing: Columns) -> tuple[Columns, list[int]]:
    """The rows that lie at the store's own times (venues stamp a print moments apart), and how far each lies beside
    another row of its interval, 0 where there is none."""
    ends, widths, times, beside = standing.at.tolist(), interval_widths(standing).tolist(), list[int](), list[int]()
    for end, span in zip(columns.at.tolist(), interval_widths(columns).tolist(), strict=True):
        place = bisect_left(ends, end - LEEWAY)
        known = place < len(ends) and ends[place] <= end + LEEWAY and widths[place] == span
        behind = place > 0 and ends[place - 1] > end - span + LEEWAY
        ahead = place < len(ends) and ends[place] - widths[place] + LEEWAY < end
        near = [other - end for other in ends[max(place - 1, 0) : place + 1]] if (behind or ahead) and not known else []
        again = known and end != ends[place] and ends[place] in times[-1:]
        times.append(ends[place] if known else end)
        beside.append((-min(near, key=abs) or 1) if near else int(again))
        if not known and not near:
            ends.insert(place, end)
            widths.insert(place, span)
    return Columns(columns.series, np.array(times, dtype=np.int64), columns.values), beside
