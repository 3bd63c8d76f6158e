"""`cash-carry`: long spot and short perpetual of one venue while funding pays for it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from zuno.trading.measure.portable import RATIO_PLACES
from zuno.trading.model.sleeves import CASH_CARRY
from zuno.trading.strategies.port import DAYS_PER_YEAR, CoreStrategy, DayColumns, Floats, format_share
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
class CashCarry(CoreStrategy):
    """Weight 0.75/N for each leg, on above 5 % of funding a year and off below 1 %; N counts the markets with spot and
    with known funding. Missing funding switches it off."""

    name: str = CASH_CARRY
    rule: str = (
        "long spot and short perpetual of one venue, 75 % of the capital a leg; on when seven days of funding pay more "
        "than 5 % a year, off below 1 %"
    )
    cost: float = 0.0015
    legs: int = 2

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

    def explain(self, columns: DayColumns, weights: Sequence[float]) -> Iterator[str]:
        rates, known = measure_funding(columns)
        for place, weight in enumerate(weights):
            days, paid = known[place, -1], f"funding of {FUNDING_DAYS} days at {100 * rates[place, -1]:.1f} % a year"
            if not columns.spot[place]:
                yield "its venue has no spot market of it"
            elif not columns.closed[place, -1]:
                yield explain_unlisted(columns, place, 1)
            elif days < LEAST_KNOWN:
                yield f"funding is known for {days} of the last {FUNDING_DAYS} days: nothing is held without it"
            elif weight:
                yield f"{paid}: long spot and short perpetual, {100 * weight:.1f} % of the sleeve each"
            else:
                yield f"{paid}: it opens above {format_share(ON_ABOVE)}"


def measure_funding(columns: DayColumns) -> tuple[Floats, NDArray[np.int64]]:
    """The mean funding of the last seven days as a rate a year, and of how many days it is known."""
    paid = np.where(np.isnan(columns.funding), 0.0, columns.funding)
    total, known = np.zeros(paid.shape), np.zeros(paid.shape, dtype=np.int64)
    for lag in range(FUNDING_DAYS):
        end = max(0, paid.shape[1] - lag)
        total[:, lag:] += paid[:, :end]
        known[:, lag:] += ~np.isnan(columns.funding[:, :end])
    return np.round(total / np.maximum(1, known) * DAYS_PER_YEAR, RATIO_PLACES), known
