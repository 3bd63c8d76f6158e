"""Fair-value gaps: prices that a bar jumped so fast that its neighbours do not touch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zuno.kernel.units import Millis
from zuno.trading.measure.bars import Bars
from zuno.trading.measure.structure.pivots import Way, closed_at


@dataclass(frozen=True, slots=True)
class Gap:
    """Between the bar before and the bar after; an upward one lies under the price that left it."""

    way: Way
    low: float
    high: float
    at: Millis
    """When the bar that jumped opened."""
    known_at: Millis
    """When the bar after it closed."""
    filled_at: Millis | None
    """When the first bar that traded through all of it since closed."""


def fair_value_gaps(bars: Bars) -> tuple[Gap, ...]:
    """Oldest first. Three bars in a row: where one is missing between them, what was traded there is not known."""
    if len(bars) < 3:
        return ()
    beside = bars.at[2:] - bars.at[:-2] == 2 * bars.timeframe.millis
    up = np.flatnonzero(beside & (bars.low[2:] > bars.high[:-2]))
    down = np.flatnonzero(beside & (bars.high[2:] < bars.low[:-2]))
    found = [_gap(bars, row, Way.UP) for row in up.tolist()] + [_gap(bars, row, Way.DOWN) for row in down.tolist()]
    return tuple(sorted(found, key=lambda gap: gap.at))


def _gap(bars: Bars, row: int, way: Way) -> Gap:
    if way is Way.UP:
        low, high = float(bars.high[row]), float(bars.low[row + 2])
        through = bars.low[row + 3 :] <= low
    else:
        low, high = float(bars.high[row + 2]), float(bars.low[row])
        through = bars.high[row + 3 :] >= high
    filled = closed_at(bars, row + 3 + int(through.argmax())) if through.any() else None
    return Gap(way, low, high, Millis(int(bars.at[row + 1])), closed_at(bars, row + 2), filled)
