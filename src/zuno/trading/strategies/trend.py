"""`trend`: long what has risen, sized by its volatility. And `vol-hold`, the same without a view of the trend."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from statistics import stdev
from typing import Final

import numpy as np
from numpy.typing import NDArray

from zuno.trading.measure.portable import log, round_digits
from zuno.trading.model import sleeves
from zuno.trading.strategies import port

LOOKBACKS: Final = (10, 20, 30, 60, 90, 120)
"""Days over which a market has risen or has not."""
LEAST_DAYS: Final = LOOKBACKS[-1] + 1
VOLATILITY_DAYS: Final = 30
TARGET_VOLATILITY: Final = 0.30
"""A year, of each market's share of the capital."""
BAND: Final = 0.10
"""Of a market's share: a smaller change of its weight is not made."""


@dataclass(frozen=True, slots=True, eq=False)
class TrendColumns:
    """What the trend of each market is at the end of each day."""

    up: NDArray[np.int8]
    """Of the six lookbacks, over how many it has risen."""
    volatility: port.Floats
    """A year."""
    listed: NDArray[np.bool_]
    """Whether it has the closed days that are needed."""


def measure_trend(columns: port.DayColumns) -> TrendColumns:
    closes = np.where(columns.closes > 0, columns.closes, 1.0)
    up = np.zeros(closes.shape, dtype=np.int8)
    for days in LOOKBACKS:
        up[:, days:] += closes[:, days:] > closes[:, :-days]
    listed = columns.closed >= LEAST_DAYS
    return TrendColumns(up * listed, _measure_volatility(closes), listed)


def _measure_volatility(closes: port.Floats) -> port.Floats:
    """The sample deviation of the last thirty daily log returns, a year; 0 before there are so many."""
    volatility = np.zeros(closes.shape)
    if closes.shape[1] <= VOLATILITY_DAYS:
        return volatility
    logs = log(closes)
    moves = np.diff(logs, axis=1)
    total = logs[:, VOLATILITY_DAYS:] - logs[:, :-VOLATILITY_DAYS]
    apart = _sum_thirty(moves * moves) - total * total / VOLATILITY_DAYS
    volatility[:, VOLATILITY_DAYS:] = np.sqrt(np.maximum(0.0, apart) / (VOLATILITY_DAYS - 1)) * sqrt(port.DAYS_PER_YEAR)
    return volatility


def measure_deviation(closes: Sequence[float]) -> float:
    """Of the last thirty daily log returns; 0 where there are fewer than two."""
    moves = np.diff(log(np.array([close for close in closes[-VOLATILITY_DAYS - 1 :] if close > 0])))
    return round_digits(stdev(moves.tolist())) if len(moves) > 1 else 0.0


def _sum_thirty(values: port.Floats) -> port.Floats:
    """Of each thirty in a row, as 16 + 8 + 4 + 2: few additions, always in the same order."""
    two = values[:, :-1] + values[:, 1:]
    four = two[:, :-2] + two[:, 2:]
    eight = four[:, :-4] + four[:, 4:]
    sixteen = eight[:, :-8] + eight[:, 8:]
    count = values.shape[1] - VOLATILITY_DAYS + 1
    parts = sixteen[:, :count], eight[:, 16 : 16 + count], four[:, 24 : 24 + count], two[:, 28 : 28 + count]
    return np.asarray(((parts[0] + parts[1]) + parts[2]) + parts[3])


def wish_weights(trend: TrendColumns, up: NDArray[np.int8]) -> port.Floats:
    """`min(1, 0.30·m/σ)/N`, before the band."""
    strength = TARGET_VOLATILITY * up / len(LOOKBACKS)
    still = trend.volatility <= 0
    full = np.where(still, np.where(strength > 0, 1.0, 0.0), strength / np.where(still, 1.0, trend.volatility))
    return np.asarray(np.round(np.minimum(1.0, full) * trend.listed / _count_markets(trend.listed), port.WEIGHT_PLACES))


def keep_band(wished: port.Floats, listed: NDArray[np.bool_]) -> port.Floats:
    """Weights that move by more than 0.10/N, or to 0, and stay otherwise."""
    bands = BAND / _count_markets(listed)
    # A loop over ten coins' eight years: whatever can be done outside of it is.
    stretches = list(pairwise([0, *(np.flatnonzero(np.diff(bands)) + 1).tolist(), len(bands)]))
    held = np.zeros_like(wished)
    for place, wishes in enumerate(wished.tolist()):
        weight, weights = 0.0, list[float]()
        keep = weights.append
        for begin, end in stretches:
            band = float(bands[begin])
            low, high = weight - band, weight + band
            for wish in wishes[begin:end]:
                if not low <= wish <= high or not wish:
                    weight, low, high = wish, wish - band, wish + band
                keep(weight)
        held[place] = weights
    return held


def _count_markets(listed: NDArray[np.bool_]) -> NDArray[np.int64]:
    return np.asarray(np.maximum(1, listed.sum(axis=0)))


@dataclass(frozen=True, slots=True)
class Trend(port.CoreStrategy):
    """Long only, daily, over markets with at least 121 closed days."""

    name: str = sleeves.TREND
    rule: str = (
        "long only: the share of six lookbacks (10 to 120 days) over which a market has risen, sized to 30 % of "
        "volatility a year, at most its equal share; a change of less than a tenth of that share is not made"
    )
    cost: float = 0.0009
    by_trend: bool = True
    """False: the weight follows volatility alone."""

    def weigh_days(self, columns: port.DayColumns) -> port.Floats:
        trend = measure_trend(columns)
        return keep_band(self._wish(trend), trend.listed)

    def list_markets(self, columns: port.DayColumns) -> NDArray[np.bool_]:
        return np.asarray(columns.closed >= LEAST_DAYS)

    def earn(self, columns: port.DayColumns) -> port.Floats:
        return columns.measure_moves()

    def explain(self, columns: port.DayColumns, weights: Sequence[float]) -> Iterator[str]:
        trend = measure_trend(columns)
        wished = self._wish(trend)
        for place, weight in enumerate(weights):
            if not trend.listed[place, -1]:
                yield explain_unlisted(columns, place)
                continue
            trends = f"{trend.up[place, -1]} of {len(LOOKBACKS)} trends up, " if self.by_trend else ""
            held, wanted = port.format_share(weight), port.format_share(float(wished[place, -1]))
            band = "" if held == wanted else f", kept: {wanted} is inside the band"
            volatility = port.format_share(float(trend.volatility[place, -1]))
            yield f"{trends}volatility {volatility}: {held} of the sleeve{band}"

    def _wish(self, trend: TrendColumns) -> port.Floats:
        return wish_weights(trend, trend.up if self.by_trend else np.full_like(trend.up, len(LOOKBACKS)))


TREND: Final = Trend()
VOL_HOLD: Final = Trend("vol-hold", by_trend=False)
"""A benchmark, never traded."""


def explain_unlisted(columns: port.DayColumns, place: int, needed: int = LEAST_DAYS) -> str:
    closed = int(columns.closed[place, -1])
    if closed:
        return f"{closed} closed days, {needed} are needed"
    if not columns.closes[place, -1]:
        return "no closed day is known"
    return f"no bar for more than {port.LONGEST_GAP_DAYS} days: delisted, or not recorded"
