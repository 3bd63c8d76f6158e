"""Fair-value gaps: prices that a bar jumped so fast that its neighbours do not touch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zuno.kernel.units import Millis
from zuno.trading.measure.bars import Bars, Floats
from zuno.trading.measure.structure.pivots import PriceDirection, close_times, find_first_hits


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
    found = [
        *_gaps(bars, ends, PriceDirection.UP, up, bars.high[up], bars.low[up + 2]),
        *_gaps(bars, ends, PriceDirection.DOWN, down, bars.high[down + 2], bars.low[down]),
    ]
    return tuple(sorted(found, key=lambda gap: gap.at))


def _gaps(
    bars: Bars, ends: Sequence[Millis], way: PriceDirection, rows: NDArray[np.intp], lows: Floats, highs: Floats
) -> Iterator[Gap]:
    through = bars.low <= lows[:, None] if way is PriceDirection.UP else bars.high >= highs[:, None]
    filled = find_first_hits(through, rows + 3)
    opened = bars.at[rows + 1].tolist()
    for row, low, high, at, fill in zip(rows.tolist(), lows.tolist(), highs.tolist(), opened, filled, strict=True):
        yield Gap(way, low, high, at, ends[row + 2], None if fill is None else ends[fill])
