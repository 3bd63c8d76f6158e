"""Trend lines through confirmed pivots, and the places where a gauge did not go along with the price."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from zuno.kernel.units import Millis
from zuno.trading.measure.bars import Bars, Floats
from zuno.trading.measure.structure.pivots import Extreme, Pivot, Way, close_times, first_rows, of, rows_of

_ROUNDING: Final = 1e-9
"""Of a price, of a gauge's whole movement: what is no more than this is nothing."""


@dataclass(frozen=True, slots=True)
class TrendLine:
    """Straight through two neighbouring pivots of a kind: over highs a resistance, under lows a support."""

    extreme: Extreme
    first: Pivot
    second: Pivot
    known_at: Millis
    broken_at: Millis | None
    """When the first bar that ended beyond it closed."""

    def price_at(self, at: int) -> float:
        slope = (self.second.price - self.first.price) / (self.second.at - self.first.at)
        return self.first.price + slope * (at - self.first.at)


class Gauge(StrEnum):
    RSI = "rsi"
    CVD = "cvd"


@dataclass(frozen=True, slots=True)
class Divergence:
    """Two neighbouring pivots of a kind between which price and gauge went opposite ways."""

    gauge: Gauge
    way: Way
    """Where it points: down from highs, up from lows."""
    hidden: bool
    """The gauge went further out and the price did not: the trend resting, not tiring."""
    first: Pivot
    second: Pivot
    known_at: Millis


def trend_lines(bars: Bars, turns: Sequence[Pivot]) -> tuple[TrendLine, ...]:
    """Oldest first. Two pivots make none when a close between them, or before the second was known, lies beyond it."""
    found = [line for extreme in Extreme for line in _lines(bars, of(extreme, turns))]
    return tuple(sorted(found, key=lambda line: line.known_at))


def divergences(bars: Bars, turns: Sequence[Pivot], strength: Floats, taken: Floats) -> tuple[Divergence, ...]:
    """Oldest first: of the RSI column, and of what takers bought less what they sold, bar by bar. Where either is not
    known at both ends and, for the takers, all between, there is none."""
    rsi, balance, churn = strength.tolist(), _running_sum(taken), _running_sum(np.abs(taken))
    unknown = np.cumsum(np.isnan(taken)).tolist()
    found: list[Divergence] = []
    for first, second, start, end in _neighbours(bars, turns):
        if abs(move := rsi[end] - rsi[start]) > _ROUNDING * 100:
            found.extend(_diverging(Gauge.RSI, first, second, move))
        told = unknown[end] == unknown[start]
        if told and abs(move := balance[end] - balance[start]) > _ROUNDING * (churn[end] - churn[start]):
            found.extend(_diverging(Gauge.CVD, first, second, move))
    return tuple(sorted(found, key=lambda each: each.known_at))


def _neighbours(bars: Bars, turns: Sequence[Pivot]) -> Iterator[tuple[Pivot, Pivot, int, int]]:
    """Every two pivots of a kind that follow each other, and their rows."""
    for extreme in Extreme:
        same = of(extreme, turns)
        rows = rows_of(bars, same)
        yield from zip(same, same[1:], rows, rows[1:], strict=False)


def _lines(bars: Bars, same: Sequence[Pivot]) -> Iterator[TrendLine]:
    """Through each two of these pivots of a kind that follow each other."""
    if len(same) < 2:
        return
    prices, times = np.array([pivot.price for pivot in same]), np.array([pivot.at for pivot in same])
    slopes, first = np.diff(prices) / np.diff(times), prices[:-1, None]
    over = bars.close - (first + slopes[:, None] * (bars.at - times[:-1, None]))
    slack = _ROUNDING * first
    beyond = over > slack if same[0].extreme is Extreme.HIGH else over < -slack
    ends = close_times(bars)
    rows = first_rows(beyond, np.searchsorted(bars.at, times[:-1]))
    for before, after, row in zip(same, same[1:], rows, strict=False):
        broken = None if row is None else ends[row]
        if broken is None or broken > after.known_at:
            yield TrendLine(before.extreme, before, after, after.known_at, broken)


def _diverging(gauge: Gauge, first: Pivot, second: Pivot, move: float) -> Iterator[Divergence]:
    if (second.price - first.price) * move < 0:
        way = Way.DOWN if second.extreme is Extreme.HIGH else Way.UP
        yield Divergence(gauge, way, not second.tops(first), first, second, second.known_at)


def _running_sum(values: Floats) -> list[float]:
    added: list[float] = np.cumsum(np.nan_to_num(values)).tolist()
    return added
