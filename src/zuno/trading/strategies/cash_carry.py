"""`cash-carry`: long spot and short perpetual of one venue while funding pays for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from zuno.trading.measure.portable import RATIO_PLACES
from zuno.trading.model.sleeves import CASH_CARRY
from zuno.trading.strategies.port import (
    DAYS_PER_YEAR,
    DayColumns,
    Floats,
    StrategyView,
    TargetWeight,
    align_days,
    format_share,
)
from zuno.trading.strategies.trend import explain_unlisted

FUNDING_DAYS: Final = 7
LEAST_KNOWN: Final = 6
"""Of the last seven days: the print of midnight may be on its way."""
ON_ABOVE: Final = 0.05
OFF_BELOW: Final = 0.01
"""Mean funding, a year."""
LEG: Final = 0.75
"""Of the capital, for each leg of all markets together; the rest is margin."""


@dataclass(frozen=True, slots=True)
class CashCarry:
    """Weight 0.75/N for each leg, on above 5 % of funding a year and off below 1 %; N counts the markets with spot and
    with known funding. Missing funding switches it off."""

    name: str = CASH_CARRY
    rule: str = (
        "long spot and short perpetual of one venue, 75 % of the capital a leg; on when seven days of funding pay more "
        "than 5 % a year, off below 1 %"
    )
    legs: int = 2
    cost: float = 0.0015

    def weigh_days(self, columns: DayColumns) -> Floats:
        rate, _ = measure_funding(columns)
        listed = self.list_markets(columns)
        signal = np.where(~listed, -1, np.where(rate > ON_ABOVE, 1, np.where(rate < OFF_BELOW, -1, 0)))
        days = np.arange(signal.shape[1])
        latest = np.maximum.accumulate(np.where(signal != 0, days, -1), axis=1)
        on = (latest >= 0) & (np.take_along_axis(signal, np.maximum(latest, 0), axis=1) > 0)
        return np.asarray(on * (LEG / np.maximum(1, listed.sum(axis=0))))

    def list_markets(self, columns: DayColumns) -> NDArray[np.bool_]:
        _, known = measure_funding(columns)
        return np.asarray((columns.closed > 0) & (known >= LEAST_KNOWN) & columns.spot[:, None])

    def earn(self, columns: DayColumns) -> Floats:
        return np.where(np.isnan(columns.funding), 0.0, columns.funding)

    def targets(self, view: StrategyView) -> Mapping[str, TargetWeight]:
        columns = align_days(view)
        if not columns.days.size:
            return {name: TargetWeight(0.0, "no closed day is known") for name in columns.names}
        weights = self.weigh_days(columns)[:, -1].tolist()
        return {
            name: TargetWeight(weight, self._explain(columns, place, weight))
            for place, (name, weight) in enumerate(zip(columns.names, weights, strict=True))
        }

    def _explain(self, columns: DayColumns, place: int, weight: float) -> str:
        rate, known = measure_funding(columns)
        if not columns.spot[place]:
            return "its venue has no spot market of it"
        if not columns.closed[place, -1]:
            return explain_unlisted(columns, place, 1)
        if known[place, -1] < LEAST_KNOWN:
            return (
                f"funding is known for {known[place, -1]} of the last {FUNDING_DAYS} days: nothing is held without it"
            )
        paid = f"funding of {FUNDING_DAYS} days at {100 * rate[place, -1]:.1f} % a year"
        if weight:
            return f"{paid}: long spot and short perpetual, {100 * weight:.1f} % of the sleeve each"
        return f"{paid}: it opens above {format_share(ON_ABOVE)}"


def measure_funding(columns: DayColumns) -> tuple[Floats, NDArray[np.int64]]:
    """The mean funding of the last seven days as a rate a year, and of how many days it is known."""
    paid = np.where(np.isnan(columns.funding), 0.0, columns.funding)
    total, known = np.zeros(paid.shape), np.zeros(paid.shape, dtype=np.int64)
    for lag in range(FUNDING_DAYS):
        end = max(0, paid.shape[1] - lag)
        total[:, lag:] += paid[:, :end]
        known[:, lag:] += ~np.isnan(columns.funding[:, :end])
    return np.round(total / np.maximum(1, known) * DAYS_PER_YEAR, RATIO_PLACES), known
