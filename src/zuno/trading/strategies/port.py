"""What a strategy is asked and answers: what was known by a moment, and a target weight for each market.

Whatever depends on the path (a band, a switch, the drawdown scaler) is folded from the history in the view and stored
nowhere: the same function backtests, shadows and trades. A view therefore reaches back to the first day there is.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from zuno.trading.measure.portable import round_digits
from zuno.trading.model.market import DAY_MS, HOUR_MS, Funding

LONGEST_GAP_DAYS: Final = 7
"""Days without a bar that a market may have: until then its last close stands. After more it counts as delisted, and
its closed days are counted anew."""
DAYS_PER_YEAR: Final = 365
WEIGHT_PLACES: Final = 12
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class MarketHistory:
    """One market's closed UTC days, oldest first."""

    name: str
    days: tuple[int, ...]
    """When each day began, in Unix milliseconds; days without a bar are left out."""
    closes: tuple[float, ...]
    funding: Mapping[int, float] = field(default_factory=dict)
    """By a day's begin: what a long paid over that day, a fraction of the notional; unknown days are left out."""
    spot: bool = True
    """Whether it can be bought without leverage at its venue."""


@dataclass(frozen=True, slots=True)
class StrategyView:
    """What was known by `at`, in Unix milliseconds."""

    at: int
    markets: Mapping[str, MarketHistory]


@dataclass(frozen=True, slots=True)
class TargetWeight:
    weight: float
    """A fraction of the sleeve's capital; of a position with two legs that of each leg."""
    why: str
    """One sentence for the owner."""


@dataclass(frozen=True, slots=True, eq=False)
class DayColumns:
    """Histories side by side: a row for each market, a column for each day from the first to the last that was over."""

    names: tuple[str, ...]
    days: NDArray[np.int64]
    closes: Floats
    """The last close that was known; 0 before the first."""
    closed: NDArray[np.int64]
    """Closed days up to then without a gap of more than a week; 0 for a market that has no bars any more."""
    funding: Floats
    """NaN where it is not known."""
    spot: NDArray[np.bool_]

    def measure_moves(self) -> Floats:
        """What each market gained on each day; 0 without a close before it."""
        moves = np.zeros_like(self.closes)
        known = self.closes[:, :-1] > 0
        moves[:, 1:] = np.where(known, self.closes[:, 1:] / np.where(known, self.closes[:, :-1], 1.0) - 1, 0.0)
        return moves


@dataclass(frozen=True, slots=True)
class CoreStrategy:
    """A pure function of the view, for one day or for all. It knows no venue, no clock and no other sleeve."""

    name: str
    rule: str
    """In one sentence."""
    cost: float
    """Of a change of a weight by 1: fees and slippage, a fraction."""
    legs: int = 1
    """Two: a weight is held long and short at once, and earns funding alone."""

    def weigh_days(self, columns: DayColumns) -> Floats:
        """Targets at the end of each day: a row for each market, a column for each day."""
        raise NotImplementedError

    def list_markets(self, columns: DayColumns) -> NDArray[np.bool_]:
        """Which markets share the capital at the end of each day."""
        raise NotImplementedError

    def earn(self, columns: DayColumns) -> Floats:
        """What a weight of 1 earns on each day, costs aside."""
        raise NotImplementedError

    def explain(self, columns: DayColumns, weights: Sequence[float]) -> Iterable[str]:
        """Why each market has its weight at the end of the last day."""
        raise NotImplementedError

    def targets(self, view: StrategyView) -> dict[str, TargetWeight]:
        """A target for every market of the view; one that is left out of the strategy has weight 0 and says why."""
        columns = align_days(view)
        if not columns.days.size:
            return {name: TargetWeight(0.0, "no closed day is known") for name in columns.names}
        weights = self.weigh_days(columns)[:, -1].tolist()
        return dict(zip(columns.names, map(TargetWeight, weights, self.explain(columns, weights)), strict=True))


def align_days(view: StrategyView) -> DayColumns:
    """The view's histories up to the last day that was over at its moment; whatever is later is left out."""
    last = view.at // DAY_MS - 1
    first = min((history.days[0] // DAY_MS for history in view.markets.values() if history.days), default=last + 1)
    count, several = max(0, last - first + 1), len(view.markets)
    closes, funding = np.zeros((several, count)), np.full((several, count), np.nan)
    closed = np.zeros((several, count), dtype=np.int64)
    for row, history in enumerate(view.markets.values()):
        places = np.array(history.days, dtype=np.int64) // DAY_MS - first
        inside = places < count
        closed[row], source = _count_closed(places[inside], count)
        if inside.any():
            known = np.array(history.closes)[inside]
            closes[row] = np.where(source < 0, 0.0, known[np.maximum(source, 0)])
        for day, paid in history.funding.items():
            if 0 <= (place := day // DAY_MS - first) < count:
                funding[row, place] = paid
    return DayColumns(
        names=tuple(view.markets),
        days=(first + np.arange(count, dtype=np.int64)) * DAY_MS,
        closes=closes,
        closed=closed,
        funding=funding,
        spot=np.array([history.spot for history in view.markets.values()], dtype=np.bool_),
    )


def _count_closed(places: NDArray[np.int64], count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Closed days of the present stretch at each day, and which of the given days is the last one known there."""
    source = np.full(count, -1, dtype=np.int64)
    if not len(places):
        return np.zeros(count, dtype=np.int64), source
    order = np.arange(len(places))
    broken = np.diff(places, prepend=places[0]) > LONGEST_GAP_DAYS + 1
    rank = order - np.maximum.accumulate(np.where(broken, order, 0)) + 1
    source[places] = order
    source = np.maximum.accumulate(source)
    age = np.arange(count) - places[np.maximum(source, 0)]
    return np.where((source >= 0) & (age <= LONGEST_GAP_DAYS), rank[np.maximum(source, 0)], 0), source


def build_history(
    name: str, bars: Iterable[tuple[int, float]], prints: Iterable[Funding] = (), *, spot: bool = True
) -> MarketHistory:
    """A history of bars of at most a day, `(opened at, close)` oldest first, and of funding prints. A day's close is
    that of its last bar; its funding is known where prints cover all of it."""
    closes: dict[int, float] = {}
    for at, close in bars:
        closes[at - at % DAY_MS] = round_digits(close)
    paid: dict[int, list[Funding]] = {}
    for row in prints:  # a print is of the interval that ends with it, and comes some milliseconds late
        day = row.at - HOUR_MS // 2
        paid.setdefault(day - day % DAY_MS, []).append(row)
    funding = {
        day: round_digits(sum(row.rate for row in rows))
        for day, rows in paid.items()
        if sum(row.interval_hours for row in rows) * HOUR_MS >= DAY_MS
    }
    return MarketHistory(name, tuple(closes), tuple(closes.values()), funding, spot)


def format_share(share: float) -> str:
    return f"{100 * share:.0f} %"
