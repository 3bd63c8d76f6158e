"""The structure of a market's bars: pivots, swings, breaks, Fibonacci levels, fair-value gaps, lines, divergences.

A pivot is known only once the bars of its right shoulder have closed; everything carries the moment it was known at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from zuno.kernel.units import Millis
from zuno.trading.measure.bars import Bars, Floats


class PriceDirection(StrEnum):
    UP = "up"
    DOWN = "down"

    @property
    def sign(self) -> Literal[-1, 1]:
        return 1 if self is PriceDirection.UP else -1


class Extreme(StrEnum):
    HIGH = "high"
    LOW = "low"

    @property
    def away(self) -> PriceDirection:
        """Where the price goes that turns there."""
        return PriceDirection.DOWN if self is Extreme.HIGH else PriceDirection.UP


@dataclass(frozen=True, slots=True)
class Pivot:
    extreme: Extreme
    at: Millis
    """When its bar opened."""
    price: float
    known_at: Millis
    """When the last bar of its right shoulder closed."""

    def tops(self, other: Pivot) -> bool:
        """Further out than another of its kind."""
        return self.price > other.price if self.extreme is Extreme.HIGH else self.price < other.price


def close_times(bars: Bars) -> list[Millis]:
    ends: list[Millis] = (bars.at + bars.timeframe.millis).tolist()
    return ends


def find_first_hits(hits: NDArray[np.bool_], since: NDArray[np.intp]) -> list[int | None]:
    """Of each line of hits, a column for every bar, the first bar that is one, counted from the line's own start."""
    late = hits & (np.arange(hits.shape[1]) >= since[:, None])
    rows = late.argmax(axis=1)
    reached = late[np.arange(len(rows)), rows]
    return [row if hit else None for row, hit in zip(rows.tolist(), reached.tolist(), strict=True)]


def find_pivots(bars: Bars, shoulder: int) -> tuple[Pivot, ...]:
    """Oldest first; a bar that is both is a high first. A high is above each of the `shoulder` bars before it and not
    below any of those after: of equal highs the first counts, and a flat market has none."""
    times, ends = bars.at.tolist(), close_times(bars)
    pivots = [
        (row, Pivot(extreme, times[row], float(price), ends[row + shoulder]))
        for extreme, prices, reach in ((Extreme.HIGH, bars.high, bars.high), (Extreme.LOW, bars.low, -bars.low))
        for row, price in ((row, prices[row]) for row in _find_local_extremes(reach, shoulder).tolist())
    ]
    return tuple(pivot for _, pivot in sorted(pivots, key=lambda each: each[0]))


def build_zigzag(turns: Sequence[Pivot], newest: int) -> tuple[Pivot, ...]:
    """Alternating highs and lows, of a run the first most extreme. `newest`: how many of the last."""
    kept: list[Pivot] = []
    for pivot in _last_runs(turns, newest):
        if not kept or kept[-1].extreme is not pivot.extreme:
            kept.append(pivot)
        elif pivot.tops(kept[-1]):
            kept[-1] = pivot
    return tuple(kept)


def _last_runs(turns: Sequence[Pivot], count: int) -> Sequence[Pivot]:
    """Those that belong to the last so many runs of a kind."""
    runs = 1
    for place in range(len(turns) - 1, 0, -1):
        if turns[place].extreme is not turns[place - 1].extreme:
            if runs == count:
                return turns[place:]
            runs += 1
    return turns


def select_pivots(extreme: Extreme, turns: Sequence[Pivot]) -> list[Pivot]:
    return [pivot for pivot in turns if pivot.extreme is extreme]


def _find_local_extremes(reach: Floats, shoulder: int) -> NDArray[np.intp]:
    count = len(reach) - 2 * shoulder
    if count <= 0:
        return np.empty(0, dtype=np.intp)
    middle = reach[shoulder : shoulder + count]
    good = np.ones(count, dtype=np.bool_)
    for step in range(1, shoulder + 1):
        good &= middle > reach[shoulder - step : shoulder - step + count]
        good &= middle >= reach[shoulder + step : shoulder + step + count]
    return np.flatnonzero(good) + shoulder


RETRACEMENTS: Final = (0.236, 0.382, 0.5, 0.618, 0.786)
EXTENSIONS: Final = (1.272, 1.618)


class SwingKind(StrEnum):
    HIGHER_HIGH = "HH"
    LOWER_HIGH = "LH"
    HIGHER_LOW = "HL"
    LOWER_LOW = "LL"


@dataclass(frozen=True, slots=True)
class Swing:
    pivot: Pivot
    step: SwingKind | None
    """Against the last pivot of its kind: not higher is lower, not lower is higher. None for the first of a kind."""


class BreakKind(StrEnum):
    BOS = "BOS"
    """Break of structure: the trend goes on, or begins."""
    CHOCH = "CHoCH"
    """Change of character: the first break against the trend, which turns with it."""


@dataclass(frozen=True, slots=True)
class Break:
    """A close beyond the last pivot that was known before its bar. No pivot breaks twice."""

    kind: BreakKind
    way: PriceDirection
    pivot: Pivot
    at: Millis
    """When the bar that broke it opened."""
    known_at: Millis


@dataclass(frozen=True, slots=True)
class Ratio:
    ratio: float
    price: float


@dataclass(frozen=True, slots=True)
class Fibonacci:
    """The last confirmed swing, divided: retracements counted back from its end, extensions on from its start."""

    start: Pivot
    end: Pivot
    known_at: Millis
    retracements: tuple[Ratio, ...]
    extensions: tuple[Ratio, ...]


def find_swings(turns: Sequence[Pivot]) -> tuple[Swing, ...]:
    last: dict[Extreme, Pivot] = {}
    swings: list[Swing] = []
    for pivot in turns:
        before = last.get(pivot.extreme)
        swings.append(Swing(pivot, None if before is None else _STEPS[pivot.extreme, pivot.tops(before)]))
        last[pivot.extreme] = pivot
    return tuple(swings)


def find_breaks(bars: Bars, turns: Sequence[Pivot]) -> tuple[Break, ...]:
    """Oldest first. The first of all begins the trend and is a BOS."""
    waiting = sorted(turns, key=lambda pivot: pivot.known_at, reverse=True)
    high: Pivot | None = None
    low: Pivot | None = None
    top, bottom = inf, -inf
    known = waiting[-1].known_at if waiting else inf
    breaks: list[Break] = []
    for at, end, close in zip(bars.at.tolist(), close_times(bars), bars.close.tolist(), strict=True):
        if close > top and high is not None:
            breaks.append(_break(breaks, PriceDirection.UP, high, at, end))
            high, top = None, inf
        if close < bottom and low is not None:
            breaks.append(_break(breaks, PriceDirection.DOWN, low, at, end))
            low, bottom = None, -inf
        while known <= end:
            pivot = waiting.pop()
            known = waiting[-1].known_at if waiting else inf
            if pivot.extreme is Extreme.HIGH:
                high, top = pivot, pivot.price
            else:
                low, bottom = pivot, pivot.price
    return tuple(breaks)


def _break(breaks: Sequence[Break], way: PriceDirection, pivot: Pivot, at: Millis, end: Millis) -> Break:
    kind = BreakKind.CHOCH if breaks and breaks[-1].way is not way else BreakKind.BOS
    return Break(kind, way, pivot, at, end)


def measure_fibonacci(turns: Sequence[Pivot]) -> Fibonacci | None:
    """Of the last two turns of the zigzag; None before there are two."""
    ends = build_zigzag(turns, 2)
    if len(ends) < 2:
        return None
    start, end = ends
    span = end.price - start.price
    return Fibonacci(
        start,
        end,
        end.known_at,
        tuple(Ratio(ratio, end.price - ratio * span) for ratio in RETRACEMENTS),
        tuple(Ratio(ratio, start.price + ratio * span) for ratio in EXTENSIONS),
    )


_STEPS: Final[Mapping[tuple[Extreme, bool], SwingKind]] = {
    (Extreme.HIGH, True): SwingKind.HIGHER_HIGH,
    (Extreme.HIGH, False): SwingKind.LOWER_HIGH,
    (Extreme.LOW, True): SwingKind.LOWER_LOW,
    (Extreme.LOW, False): SwingKind.HIGHER_LOW,
}


@dataclass(frozen=True, slots=True)
class Gap:
    """Between the bar before and the bar after; an upward one lies under the price that left it."""

    way: PriceDirection
    low: float
    high: float
    at: Millis
    """When the bar that jumped opened."""
    known_at: Millis
    """When the bar after it closed."""
    filled_at: Millis | None
    """When the first bar that traded through all of it since closed."""


def find_fair_value_gaps(bars: Bars) -> tuple[Gap, ...]:
    """Oldest first. Three bars in a row: where one is missing between them, what was traded there is not known."""
    if len(bars) < 3:
        return ()
    beside = bars.at[2:] - bars.at[:-2] == 2 * bars.timeframe.millis
    up = np.flatnonzero(beside & (bars.low[2:] > bars.high[:-2]))
    down = np.flatnonzero(beside & (bars.high[2:] < bars.low[:-2]))
    ends = close_times(bars)
    gaps = [
        *_gaps(bars, ends, PriceDirection.UP, up, bars.high[up], bars.low[up + 2]),
        *_gaps(bars, ends, PriceDirection.DOWN, down, bars.high[down + 2], bars.low[down]),
    ]
    return tuple(sorted(gaps, key=lambda gap: gap.at))


def _gaps(
    bars: Bars, ends: Sequence[Millis], way: PriceDirection, rows: NDArray[np.intp], lows: Floats, highs: Floats
) -> Iterator[Gap]:
    through = bars.low <= lows[:, None] if way is PriceDirection.UP else bars.high >= highs[:, None]
    filled = find_first_hits(through, rows + 3)
    opened = bars.at[rows + 1].tolist()
    for row, low, high, at, fill in zip(rows.tolist(), lows.tolist(), highs.tolist(), opened, filled, strict=True):
        yield Gap(way, low, high, at, ends[row + 2], None if fill is None else ends[fill])


_ROUNDING: Final = 1e-9
"""Of a price, of a gauge's whole movement: what is no more than this is nothing."""


@dataclass(frozen=True, slots=True)
class TrendLine:
    """Straight through two neighbouring pivots of a kind: over highs a resistance, under lows a support."""

    extreme: Extreme
    first: Pivot
    second: Pivot
    known_at: Millis
    broken_at: Millis | None
    """When the first bar that ended beyond it closed."""

    def price_at(self, at: int) -> float:
        slope = (self.second.price - self.first.price) / (self.second.at - self.first.at)
        return self.first.price + slope * (at - self.first.at)


class DivergenceSource(StrEnum):
    RSI = "rsi"
    CVD = "cvd"


@dataclass(frozen=True, slots=True)
class Divergence:
    """Two neighbouring pivots of a kind between which price and gauge went opposite ways."""

    gauge: DivergenceSource
    way: PriceDirection
    """Where it points: down from highs, up from lows."""
    hidden: bool
    """The gauge went further out and the price did not: the trend resting, not tiring."""
    first: Pivot
    second: Pivot
    known_at: Millis


def find_trend_lines(bars: Bars, turns: Sequence[Pivot]) -> tuple[TrendLine, ...]:
    """Oldest first. Two pivots make none when a close between them, or before the second was known, lies beyond it."""
    lines = [line for extreme in Extreme for line in _lines(bars, select_pivots(extreme, turns))]
    return tuple(sorted(lines, key=lambda line: line.known_at))


def list_neighbours(bars: Bars, turns: Sequence[Pivot]) -> Iterator[tuple[Pivot, Pivot, int, int]]:
    """Every two pivots of a kind that follow each other, and their rows; highs first."""
    for extreme in Extreme:
        same = select_pivots(extreme, turns)
        rows: list[int] = np.searchsorted(bars.at, [pivot.at for pivot in same]).tolist()
        yield from zip(same, same[1:], rows, rows[1:], strict=False)


def find_divergences(
    pairs: Sequence[tuple[Pivot, Pivot, int, int]], strength: Floats, taken: Floats
) -> tuple[Divergence, ...]:
    """Of RSI and takers' balance between neighbours, in their order; none where a needed value is unknown."""
    starts, stops = (np.array([pair[end] for pair in pairs], dtype=np.intp) for end in (2, 3))
    moved = np.array([second.price - first.price for first, second, _, _ in pairs])
    known = np.nan_to_num(taken)
    sums = (strength, np.cumsum(known), np.cumsum(np.abs(known)), np.cumsum(np.isnan(taken)))
    stronger, bought, churn, unknown = (column[stops] - column[starts] for column in sums)
    tired = (np.abs(stronger) > _ROUNDING * 100) & (moved * stronger < 0)
    against = (unknown == 0) & (np.abs(bought) > _ROUNDING * churn) & (moved * bought < 0)
    divergences: list[Divergence] = []
    for place in np.flatnonzero(tired | against).tolist():
        first, second, _, _ = pairs[place]
        divergences += [
            Divergence(gauge, second.extreme.away, not second.tops(first), first, second, second.known_at)
            for gauge, apart in ((DivergenceSource.RSI, tired), (DivergenceSource.CVD, against))
            if apart[place]
        ]
    return tuple(divergences)


def _lines(bars: Bars, same: Sequence[Pivot]) -> Iterator[TrendLine]:
    """Through each two of these pivots of a kind that follow each other."""
    if len(same) < 2:
        return
    prices, times = np.array([pivot.price for pivot in same]), np.array([pivot.at for pivot in same])
    slopes, first = np.diff(prices) / np.diff(times), prices[:-1, None]
    over = bars.close - (first + slopes[:, None] * (bars.at - times[:-1, None]))
    slack = _ROUNDING * first
    beyond = over > slack if same[0].extreme is Extreme.HIGH else over < -slack
    ends = close_times(bars)
    rows = find_first_hits(beyond, np.searchsorted(bars.at, times[:-1]))
    for before, after, row in zip(same, same[1:], rows, strict=False):
        broken = None if row is None else ends[row]
        if broken is None or broken > after.known_at:
            yield TrendLine(before.extreme, before, after, after.known_at, broken)
