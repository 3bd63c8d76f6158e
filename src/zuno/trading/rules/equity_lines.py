"""An account's equity beside what it could have been: desk, core and hold on the same days, each from the desk's first
equity on, in dollars."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from math import sqrt
from statistics import fmean, stdev
from typing import Final

from zuno.markets.market import Symbol
from zuno.trading.model.market import DAY_MS
from zuno.trading.model.orders import ZERO
from zuno.trading.model.sleeves import DEBATE, LP_HEDGE
from zuno.trading.rules.performance import EquityPoint, MarkedStep, equity_usd

DESK: Final = "desk"
CORE: Final = "core"
"""Its sleeves without the debate and hedges of liquidity, transfers between sleeves apart."""
HOLD: Final = "hold"
"""The desk's markets at equal weights, set anew each day, without costs."""
LEAST_DAYS: Final = 30


@dataclass(frozen=True, slots=True)
class EquityLine:
    name: str
    points: tuple[EquityPoint, ...]

    @property
    def return_pct(self) -> Decimal | None:
        start = self.points[0].equity
        return (self.points[-1].equity - start) / start * 100 if start > 0 else None

    @property
    def sharpe(self) -> float | None:
        """A year, of daily returns against none; None for fewer than `LEAST_DAYS` of them."""
        days = {(point.at - 1) // DAY_MS: float(point.equity) for point in self.points}
        worth = [days[day] for day in sorted(days)]
        if len(worth) <= LEAST_DAYS or min(worth) <= 0:
            return None
        returns = [after / before - 1 for before, after in pairwise(worth)]
        spread = stdev(returns)
        return fmean(returns) / spread * sqrt(365) if spread > 0 else None


def draw_lines(
    marked: Sequence[MarkedStep], rates: Mapping[str, Decimal], markets: Collection[Symbol], *, by_sleeve: bool = False
) -> tuple[EquityLine, ...]:
    """The desk first; core where it has sleeves; hold where its markets have prices; `by_sleeve`: then each sleeve."""
    if not marked:
        return ()
    lines = [EquityLine(DESK, tuple(EquityPoint(moment.at, moment.equity) for moment in marked))]
    sleeves = dict.fromkeys(money.sleeve for moment in marked for money in moment.step.sleeves)
    if core := [sleeve for sleeve in sleeves if sleeve != LP_HEDGE]:
        lines.append(_draw(CORE, marked, _grow_sleeves(rates, core)))
    if any(symbol in moment.marks for moment in marked for symbol in markets):
        lines.append(_draw(HOLD, marked, _grow_markets(markets)))
    for sleeve in (DEBATE, *sleeves) if by_sleeve else ():
        lines.append(_draw(sleeve, marked, _grow_sleeves(rates, (sleeve,))))
    return tuple(lines)


Grow = Callable[[MarkedStep, MarkedStep], Decimal]
"""What one dollar became from a moment to the next."""


def _draw(name: str, marked: Sequence[MarkedStep], grow: Grow) -> EquityLine:
    points = [EquityPoint(marked[0].at, marked[0].equity)]
    for before, after in pairwise(marked):
        points.append(EquityPoint(after.at, points[-1].equity * grow(before, after)))
    return EquityLine(name, tuple(points))


def _grow_sleeves(rates: Mapping[str, Decimal], sleeves: Collection[str]) -> Grow:
    """As they traded. What was transferred in counts from the moment before, what was transferred out until after."""

    def grow(before: MarkedStep, after: MarkedStep) -> Decimal:
        start = equity_usd(before.step, before.marks, rates, sleeves) or ZERO
        end = equity_usd(after.step, after.marks, rates, sleeves) or ZERO
        given = _capital_usd(after, rates, sleeves) - _capital_usd(before, rates, sleeves)
        start, end = start + max(ZERO, given), end - min(ZERO, given)
        return max(ZERO, end / start) if start > 0 else Decimal(1)

    return grow


def _capital_usd(moment: MarkedStep, rates: Mapping[str, Decimal], sleeves: Collection[str]) -> Decimal:
    """What these were given by the others."""
    given = ZERO
    for money in moment.step.sleeves:
        if money.currency in rates:
            signs = (money.sleeve in sleeves) - (DEBATE in sleeves)  # what another has the debate has not
            given += signs * money.capital / rates[money.currency]
    return given


def _grow_markets(markets: Collection[Symbol]) -> Grow:
    """Of equal weights: what a market of the day's first prices became since, the mean of all."""
    first, today, so_far = dict[Symbol, Decimal](), -1, Decimal(1)

    def grow(before: MarkedStep, after: MarkedStep) -> Decimal:
        nonlocal first, today, so_far
        if today != (day := (after.at - 1) // DAY_MS):
            today, so_far = day, Decimal(1)
            first = {symbol: before.marks[symbol] for symbol in markets if symbol in before.marks}
        grown = [after.marks[symbol] / price for symbol, price in first.items()]
        whole = sum(grown, ZERO) / len(grown) if grown else Decimal(1)
        step, so_far = whole / so_far, whole
        return step

    return grow
