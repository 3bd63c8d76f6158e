"""The debate's tilt of the core: what it says of a day, what that was worth on the next, and its weight."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from zuno.trading.measure.portable import NANO, RATIO_PLACES
from zuno.trading.model.market import DAY_MS
from zuno.trading.model.tilts import TiltScored
from zuno.trading.strategies.port import DAYS_PER_YEAR, Floats, StrategyView, align_days
from zuno.trading.strategies.trend import measure_trend

FULL_EDGE: Final = 0.20
"""Points of probability over the fair rate at which a cycle says all it can."""
RESIDUAL_DAYS: Final = 180
MEAN_DAYS: Final = 365
LEAST_DAYS: Final = 60
PRIOR_DAYS: Final = 120
ERRORS: Final = 1.64
FULL_SLOPE: Final = 0.10
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class DayTilt:
    """What a day's cycles said of a market, before expectancy, vetoes and the risk officer."""

    day: int
    """When it began, in Unix milliseconds."""
    market: str
    tilt: float
    """τ: −1 to +1."""


class TiltScore(TiltScored):
    residuals: dict[str, float]
    """τ̃ of the last day, by market: what was said beyond the core's own trend."""

    def multiplier(self, market: str) -> float:
        """Of the core's weight on the day that follows; 1 where nothing was said."""
        return min(1.5, max(0.5, 1 + 0.5 * self.weight * self.residuals.get(market, 0.0)))


def measure_tilt(cycles: Iterable[tuple[int, float, float]]) -> float | None:
    """τ of a day and market from `(side, p, f)` of each cycle whose Judge answered: +1 long, −1 short, 0 hold."""
    views = [side * min(1.0, max(-1.0, (p - fair) / FULL_EDGE)) for side, p, fair in cycles]
    return round(fsum(views) / len(views), RATIO_PLACES) if views else None


def score_tilts(tilts: Sequence[DayTilt], view: StrategyView) -> TiltScore:
    """Score what was known by the view's moment: τ of a day against the market's move of the next one that is over."""
    columns = align_days(view)
    trend = measure_trend(columns)
    said, nano = np.zeros(columns.closes.shape, dtype=np.bool_), np.zeros(columns.closes.shape, dtype=np.int64)
    rows = {name: row for row, name in enumerate(columns.names)}
    for tilt in tilts:
        place = (tilt.day - int(columns.days[0])) // DAY_MS if columns.days.size else -1
        if tilt.market in rows and 0 <= place < columns.days.size:
            said[rows[tilt.market], place], nano[rows[tilt.market], place] = True, round(tilt.tilt * NANO)
    said &= trend.listed
    residuals = _remove_core(said, nano, trend.up.astype(np.int64))
    last = {name: float(residuals[row, -1]) for name, row in rows.items() if said.size and said[row, -1]}
    moving = trend.listed & (trend.volatility > 0)
    daily = np.where(moving, trend.volatility, 1.0) / sqrt(DAYS_PER_YEAR)
    surprises = _measure_surprises(columns.measure_moves(), daily, moving)
    moved, by_day, squares = said & moving, list[float](), list[float]()
    for day in np.flatnonzero(moved[:, :-1].any(axis=0)).tolist() if said.size else []:
        spoken = np.flatnonzero(moved[:, day])
        by_day.append(fsum(float(residuals[row, day]) * float(surprises[row, day]) for row in spoken))
        squares += [float(residuals[row, day]) ** 2 for row in spoken]
    total, count = fsum(squares), len(by_day)
    if not total:
        return TiltScore(beta=None, se=None, weight=0.0, days=count, residuals=last)
    beta, error = fsum(by_day) / total, sqrt(fsum(each * each for each in by_day)) / total
    weight = count / (count + PRIOR_DAYS) * min(1.0, max(0.0, (beta - ERRORS * error) / FULL_SLOPE))
    return TiltScore(
        beta=round(beta, RATIO_PLACES),
        se=round(error, RATIO_PLACES),
        weight=round(weight, RATIO_PLACES) if count >= LEAST_DAYS else 0.0,
        days=count,
        residuals=last,
    )


def _remove_core(said: NDArray[np.bool_], nano: Ints, up: Ints) -> Floats:
    """τ less what the core's own trend and a constant explain of it, by the market's last 180 days. Sums are of whole
    numbers, so that an echo of the core leaves exactly nothing."""
    up, nano = up * said, nano * said
    count, of_up, of_tilt, squares, products = (
        _sum_trailing(each, RESIDUAL_DAYS) for each in (said.astype(np.int64), up, nano, up * up, up * nano)
    )
    spread = count * squares - of_up * of_up
    slope = np.where(spread > 0, (count * products - of_up * of_tilt) / np.maximum(1, spread), 0.0)
    rest = nano - (of_tilt + slope * (count * up - of_up)) / np.maximum(1, count)
    return np.asarray(np.round(np.where(said, rest / NANO, 0.0), RATIO_PLACES - 1))


def _measure_surprises(moves: Floats, daily: Floats, known: NDArray[np.bool_]) -> Floats:
    """z of each day: the next day's move over the day's volatility, less its mean of the year before."""
    raw = np.zeros(moves.shape, dtype=np.int64)
    raw[:, :-1] = np.rint(np.where(known[:, :-1], moves[:, 1:] / daily[:, :-1], 0.0) * NANO)
    # The day's own move is in tomorrow's z: the mean ends with the one before.
    before, counted = np.zeros_like(raw), np.zeros_like(raw)
    before[:, 1:] = _sum_trailing(raw, MEAN_DAYS)[:, :-1]
    counted[:, 1:] = _sum_trailing(known.astype(np.int64), MEAN_DAYS)[:, :-1]
    return np.asarray(np.round((raw - before / np.maximum(1, counted)) / NANO, RATIO_PLACES))


def _sum_trailing(values: Ints, days: int) -> Ints:
    """Of each day and those before it, so many in all."""
    sums = np.cumsum(values, axis=1)
    sums[:, days:] -= np.cumsum(values, axis=1)[:, :-days]
    return sums
