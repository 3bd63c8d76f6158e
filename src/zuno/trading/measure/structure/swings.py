"""Which way a market steps: its swings named against the last ones, and the closes that broke them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import Final

from zuno.kernel.units import Millis
from zuno.trading.measure.bars import Bars
from zuno.trading.measure.structure.pivots import Extreme, Pivot, PriceDirection, build_zigzag, close_times

RETRACEMENTS: Final = (0.236, 0.382, 0.5, 0.618, 0.786)
EXTENSIONS: Final = (1.272, 1.618)


class SwingKind(StrEnum):
    HIGHER_HIGH = "HH"
    LOWER_HIGH = "LH"
    HIGHER_LOW = "HL"
    LOWER_LOW = "LL"


@dataclass(frozen=True, slots=True)
class Swing:
    pivot: Pivot
    step: SwingKind | None
    """Against the last pivot of its kind: a high that is not higher is lower, a low that is not lower is higher. None
    for the first of a kind."""


class BreakKind(StrEnum):
    BOS = "BOS"
    """Break of structure: the trend goes on, or begins."""
    CHOCH = "CHoCH"
    """Change of character: the first break against the trend, which turns with it."""


@dataclass(frozen=True, slots=True)
class Break:
    """A close beyond the last pivot that was known before its bar. No pivot breaks twice."""

    kind: BreakKind
    way: PriceDirection
    pivot: Pivot
    at: Millis
    """When the bar that broke it opened."""
    known_at: Millis
    """When it closed."""


@dataclass(frozen=True, slots=True)
class Ratio:
    ratio: float
    price: float


@dataclass(frozen=True, slots=True)
class Fibonacci:
    """The last confirmed swing, divided: retracements counted back from its end, extensions on from its start."""

    start: Pivot
    end: Pivot
    known_at: Millis
    retracements: tuple[Ratio, ...]
    extensions: tuple[Ratio, ...]


def find_swings(turns: Sequence[Pivot]) -> tuple[Swing, ...]:
    last: dict[Extreme, Pivot] = {}
    found: list[Swing] = []
    for pivot in turns:
        before = last.get(pivot.extreme)
        found.append(Swing(pivot, None if before is None else _STEPS[pivot.extreme, pivot.tops(before)]))
        last[pivot.extreme] = pivot
    return tuple(found)


def find_breaks(bars: Bars, turns: Sequence[Pivot]) -> tuple[Break, ...]:
    """Oldest first. The first of all begins the trend and is a BOS."""
    waiting = sorted(turns, key=lambda pivot: pivot.known_at, reverse=True)
    high: Pivot | None = None
    low: Pivot | None = None
    top, bottom = inf, -inf
    known = waiting[-1].known_at if waiting else inf
    found: list[Break] = []
    for at, end, close in zip(bars.at.tolist(), close_times(bars), bars.close.tolist(), strict=True):
        if close > top and high is not None:
            found.append(_break(found, PriceDirection.UP, high, at, end))
            high, top = None, inf
        if close < bottom and low is not None:
            found.append(_break(found, PriceDirection.DOWN, low, at, end))
            low, bottom = None, -inf
        while known <= end:
            pivot = waiting.pop()
            known = waiting[-1].known_at if waiting else inf
            if pivot.extreme is Extreme.HIGH:
                high, top = pivot, pivot.price
            else:
                low, bottom = pivot, pivot.price
    return tuple(found)


def _break(found: Sequence[Break], way: PriceDirection, pivot: Pivot, at: Millis, end: Millis) -> Break:
    kind = BreakKind.CHOCH if found and found[-1].way is not way else BreakKind.BOS
    return Break(kind, way, pivot, at, end)


def find_trend(broken: Sequence[Break]) -> PriceDirection | None:
    """The way of the last break; None before the first."""
    return broken[-1].way if broken else None


def measure_fibonacci(turns: Sequence[Pivot]) -> Fibonacci | None:
    """Of the last two turns of the zigzag; None before there are two."""
    ends = build_zigzag(turns, 2)
    if len(ends) < 2:
        return None
    start, end = ends
    span = end.price - start.price
    return Fibonacci(
        start,
        end,
        end.known_at,
        tuple(Ratio(ratio, end.price - ratio * span) for ratio in RETRACEMENTS),
        tuple(Ratio(ratio, start.price + ratio * span) for ratio in EXTENSIONS),
    )


_STEPS: Final[Mapping[tuple[Extreme, bool], SwingKind]] = {
    (Extreme.HIGH, True): SwingKind.HIGHER_HIGH,
    (Extreme.HIGH, False): SwingKind.LOWER_HIGH,
    (Extreme.LOW, True): SwingKind.LOWER_LOW,
    (Extreme.LOW, False): SwingKind.HIGHER_LOW,
}
