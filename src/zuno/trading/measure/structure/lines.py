"""Trend lines through confirmed pivots, and the places where a gauge did not go along with the price."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from zuno.kernel.units import Millis
from zuno.trading.measure.bars import Bars, Floats
from zuno.trading.measure.structure.pivots import (
    Extreme,
    Pivot,
    PriceDirection,
    close_times,
    find_first_hits,
    find_pivot_rows,
    select_pivots,
)

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


class DivergenceSource(StrEnum):
    RSI = "rsi"
    CVD = "cvd"


@dataclass(frozen=True, slots=True)
class Divergence:
    """Two neighbouring pivots of a kind between which price and gauge went opposite ways."""

    gauge: DivergenceSource
    way: PriceDirection
    """Where it points: down from highs, up from lows."""
    hidden: bool
    """The gauge went further out and the price did not: the trend resting, not tiring."""
    first: Pivot
    second: Pivot
    known_at: Millis


def find_trend_lines(bars: Bars, turns: Sequence[Pivot]) -> tuple[TrendLine, ...]:
    """Oldest first. Two pivots make none when a close between them, or before the second was known, lies beyond it."""
    found = [line for extreme in Extreme for line in _lines(bars, select_pivots(extreme, turns))]
    return tuple(sorted(found, key=lambda line: line.known_at))


def find_divergences(bars: Bars, turns: Sequence[Pivot], strength: Floats, taken: Floats) -> tuple[Divergence, ...]:
    """Oldest first: of the RSI column, and of what takers bought less what they sold, bar by bar. Where either is not
    known at both ends and, for the takers, all between, there is none."""
    pairs = list(list_neighbours(bars, turns))
    if not pairs:
        return ()
    starts, stops = np.array([start for *_, start, _ in pairs]), np.array([stop for *_, stop in pairs])
    moved = np.array([second.price - first.price for first, second, _, _ in pairs])
    apart = mark_divergent_moves(moved, strength[stops] - strength[starts]).tolist()
    taken_apart = TakerSums(taken).move_apart(moved, starts, stops).tolist()
    found: list[Divergence] = []
    for (first, second, _, _), rsi, cvd in zip(pairs, apart, taken_apart, strict=True):
        found += [make_divergence(DivergenceSource.RSI, first, second)] if rsi else []
        found += [make_divergence(DivergenceSource.CVD, first, second)] if cvd else []
    return tuple(sorted(found, key=lambda each: each.known_at))


def list_neighbours(bars: Bars, turns: Sequence[Pivot]) -> Iterator[tuple[Pivot, Pivot, int, int]]:
    """Every two pivots of a kind that follow each other, and their rows; highs first."""
    for extreme in Extreme:
        same = select_pivots(extreme, turns)
        rows = find_pivot_rows(bars, same)
        yield from zip(same, same[1:], rows, rows[1:], strict=False)


def mark_divergent_moves(moved: Floats, strength: Floats) -> NDArray[np.bool_]:
    """Where price and RSI went opposite ways between two pivots, by how far each went."""
    return np.asarray((np.abs(strength) > _ROUNDING * 100) & (moved * strength < 0))


class TakerSums:
    """What takers bought less what they sold, added up from the first of these bars."""

    def __init__(self, taken: Floats) -> None:
        known = np.nan_to_num(taken)
        self._balance = np.cumsum(known)
        self._churn = np.cumsum(np.abs(known))
        self._unknown = np.cumsum(np.isnan(taken))

    def move_apart(self, moved: Floats, starts: NDArray[np.intp], stops: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Where it went the other way than the price did, and every bar between is told."""
        move = self._balance[stops] - self._balance[starts]
        churn = self._churn[stops] - self._churn[starts]
        told = self._unknown[stops] == self._unknown[starts]
        return np.asarray(told & (np.abs(move) > _ROUNDING * churn) & (moved * move < 0))


def make_divergence(gauge: DivergenceSource, first: Pivot, second: Pivot) -> Divergence:
    way = PriceDirection.DOWN if second.extreme is Extreme.HIGH else PriceDirection.UP
    return Divergence(gauge, way, not second.tops(first), first, second, second.known_at)


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
    rows = find_first_hits(beyond, np.searchsorted(bars.at, times[:-1]))
    for before, after, row in zip(same, same[1:], rows, strict=False):
        broken = None if row is None else ends[row]
        if broken is None or broken > after.known_at:
            yield TrendLine(before.extreme, before, after, after.known_at, broken)
