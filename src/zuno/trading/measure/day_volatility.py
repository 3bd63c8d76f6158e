"""How much the last day moved, beside every day of half a year."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from zuno.trading.measure.bars import Bars
from zuno.trading.measure.indicators.all import drop_invalid_bars
from zuno.trading.measure.indicators.rolling import rolling_sum
from zuno.trading.measure.portable import log
from zuno.trading.model.known import Known, Missing
from zuno.trading.model.market import HOUR_MS

HOURS: Final = 24
HISTORY_HOURS: Final = 180 * 24
LEAST_HISTORY: Final = 30 * 24
"""Days that end at so many different hours make a rank; fewer make an anecdote."""


@dataclass(frozen=True, slots=True)
class DayVolatility:
    """The root of the summed squares of the last 24 hourly log returns, and where that stands."""

    value: float
    """A fraction: 0.03 is a day whose hours add up to three per cent."""
    rank: Known[float]
    """The share of the days of the last 180, one ending with each hour, that moved less: 0.95 is panic's edge."""
    days: int
    """How many such days it was held against."""


def day_volatility(hours: Bars) -> Known[DayVolatility]:
    """Of the newest 1h bar. A day with a missing hour is no day: it is left out, and the newest must be whole."""
    bars = drop_invalid_bars(hours).last(HISTORY_HOURS + HOURS + 1)
    if len(bars) <= HOURS:
        return Missing(f"{len(bars)} closed hours are known, {HOURS + 1} are needed")
    squares = np.square(np.diff(log(bars.close)))
    squares[np.diff(bars.at) != HOUR_MS] = np.nan
    days = np.sqrt(rolling_sum(squares, HOURS)[HOURS - 1 :])
    if np.isnan(days[-1]):
        return Missing(f"an hour is missing among the last {HOURS + 1}")
    past = days[:-1][np.isfinite(days[:-1])]
    rank: Known[float] = Missing(f"{len(past)} whole days are known, {LEAST_HISTORY} are needed for a rank")
    if len(past) >= LEAST_HISTORY:
        rank = float(np.mean(past < days[-1]))
    return DayVolatility(float(days[-1]), rank, len(past))
