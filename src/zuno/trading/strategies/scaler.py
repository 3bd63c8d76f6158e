"""From a strategy's weight to the one that is traded: drawdown scaler, the debate's tilt, the cap, the least trade."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from zuno.trading.measure.portable import RATIO_PLACES
from zuno.trading.strategies.port import WEIGHT_PLACES, CoreStrategy, Floats, StrategyView, align_days

HIGH_DAYS: Final = 365
NOTHING_AT: Final = 0.30
"""Fall from the year's high at which a sleeve holds nothing."""
SPAN: Final = 0.15
STEP: Final = 0.10


def scale_by_drawdown(equity: Sequence[float]) -> list[float]:
    """K at the end of each day, from a sleeve's shadow: its daily equity as it would be without the scaler. K is
    `clamp((0.30 − d)/0.15, 0, 1)`, d the fall from the highest of the last 365 days; it moves by more than 0.10, or to
    0 or 1. A shadow that is worth nothing has fallen by all of it."""
    highs: deque[tuple[int, float]] = deque()
    scales, scale = [], 1.0
    for day, worth in enumerate(equity):
        while highs and highs[-1][1] <= worth:
            highs.pop()
        highs.append((day, worth))
        if highs[0][0] <= day - HIGH_DAYS:
            highs.popleft()
        fall = round(1 - worth / highs[0][1], RATIO_PLACES) if highs[0][1] > 0 else 1.0
        wish = min(1.0, max(0.0, (NOTHING_AT - fall) / SPAN))
        if wish in (0.0, 1.0) or abs(wish - scale) > STEP:
            scale = wish
        scales.append(scale)
    return scales


@dataclass(frozen=True, slots=True, eq=False)
class DailyPath:
    """What a strategy returned on each day by what it held the evening before."""

    returns: Floats
    """Net of costs."""
    traded: Floats
    """Of the capital."""

    def scale(self) -> Floats:
        return np.array(scale_by_drawdown(np.cumprod(1 + self.returns).tolist()))


def simulate(weights: Floats, earned: Floats, cost: float) -> DailyPath:
    """Weights of an evening earn the next day; their change is paid for on that day."""
    held = np.zeros_like(weights)
    held[:, 1:] = weights[:, :-1]
    traded = sum_rows(np.abs(np.diff(held, axis=1, prepend=0.0)))
    return DailyPath(sum_rows(held * earned) - cost * traded, traded)


def sum_rows(values: Floats) -> Floats:
    """Markets are added one after the other: the same bits on every machine."""
    total = np.zeros(values.shape[1])
    for row in values:
        total += row
    return total


@dataclass(frozen=True, slots=True)
class SizedTarget:
    """What a sleeve is to hold of a market, and how it came about."""

    weight: float
    """Of the sleeve's capital."""
    scale: float
    """K of the drawdown scaler."""
    why: str


def size_targets(
    strategy: CoreStrategy, view: StrategyView, tilts: Mapping[str, float] | None = None
) -> dict[str, SizedTarget]:
    """A strategy's targets by the view: weight, band, K by the strategy's shadow, tilt, and the cap of 1/N on spot.
    `tilts`: multipliers by market, which act on strategies of one leg alone."""
    columns = align_days(view)
    targets = strategy.targets(view)
    scale, count = 1.0, 0
    if columns.days.size:
        scale = float(simulate(strategy.weigh_days(columns), strategy.earn(columns), strategy.cost).scale()[-1])
        count = int(strategy.list_markets(columns)[:, -1].sum())
    sized = {}
    for name, target in targets.items():
        alone = strategy.legs == 1
        tilt = (tilts or {}).get(name, 1.0) if alone else 1.0
        cap = 1 / count if count and alone and view.markets[name].spot else None
        sized[name] = SizedTarget(adjust_weight(target.weight, scale, tilt, cap), scale, target.why)
    return sized


def adjust_weight(weight: float, scale: float, tilt: float = 1.0, cap: float | None = None) -> float:
    """A weight behind its band times K, times the tilt, and at most the cap: 1/N on spot."""
    adjusted = weight * scale * tilt
    return round(adjusted if cap is None else min(adjusted, cap), WEIGHT_PLACES)


def explain_least_trade(difference: float, least: float, lot: float) -> str | None:
    """Why a difference to what is held, in dollars, is no order: it is below the venue's least notional or one lot,
    both in dollars. None where it can be traded."""
    if not difference:
        return None
    size = abs(difference)
    if size < lot:
        return f"${size:,.2f} is less than one lot, ${lot:,.2f}"
    return f"${size:,.2f} is below the venue's least order of ${least:,.2f}" if size < least else None
