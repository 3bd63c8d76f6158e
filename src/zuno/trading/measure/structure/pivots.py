"""Turning points: bars that tower over their neighbours, known only once the neighbours to the right have closed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from zuno.kernel.units import Millis
from zuno.trading.measure.bars import Bars, Floats


class Extreme(StrEnum):
    HIGH = "high"
    LOW = "low"


class PriceDirection(StrEnum):
    UP = "up"
    DOWN = "down"


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
    found = late[np.arange(len(rows)), rows]
    return [row if hit else None for row, hit in zip(rows.tolist(), found.tolist(), strict=True)]


def find_pivots(bars: Bars, shoulder: int) -> tuple[Pivot, ...]:
    """Oldest first; a bar that is both is a high first.

    A high tops every one of the `shoulder` bars before it and is topped by none of those after: of equal highs side by
    side the first is the one, and a market that stands still has none.
    """
    times, ends = bars.at.tolist(), close_times(bars)
    found = [
        (row, Pivot(extreme, times[row], float(price), ends[row + shoulder]))
        for extreme, prices, reach in ((Extreme.HIGH, bars.high, bars.high), (Extreme.LOW, bars.low, -bars.low))
        for row, price in ((row, prices[row]) for row in _find_local_extremes(reach, shoulder).tolist())
    ]
    return tuple(pivot for _, pivot in sorted(found, key=lambda each: each[0]))


def build_zigzag(turns: Sequence[Pivot], newest: int) -> tuple[Pivot, ...]:
    """Pivots by turns high and low: of several highs in a row the highest, of lows the lowest, of equals the first.
    `newest`: how many of the last."""
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


def find_pivot_rows(bars: Bars, turns: Sequence[Pivot]) -> list[int]:
    found: list[int] = np.searchsorted(bars.at, [pivot.at for pivot in turns]).tolist()
    return found


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
