"""Where things are on a chart, in pixels from the lower left: a frame per panel, bars on whole pixels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from zuno.trading.measure.bars import Floats
from zuno.trading.model.chart import HEIGHT, WIDTH, Axis, Scale

LEFT: Final = 60
RIGHT: Final = 212
TOP: Final = 80
BOTTOM: Final = 26
"""Margins: numbers of the axes, labels of the levels, the title, dates."""
PANEL: Final = 84
GAP: Final = 8
PROFILE: Final = 60
"""Kept free to the right of the bars."""
POOLS: Final = 22
"""Of that, for the pools that stand now."""
FEWEST: Final = 40
"""Room for at least so many bars."""
LAST: Final = WIDTH - RIGHT


@dataclass(frozen=True, slots=True)
class BarLayout:
    """Where the first bar begins, how wide its slot and how wide its body is."""

    left: float
    pitch: float
    body: int

    def middle(self, places: Floats) -> Floats:
        """The middle of a pixel, so that a line of one pixel is one pixel."""
        return np.floor(self.left + (places + 0.5) * self.pitch) + 0.5

    @property
    def hollow(self) -> bool:
        """Whether the body is wide enough to be drawn hollow."""
        return self.body >= 3


def layout_bars(places: int) -> BarLayout:
    """Bars end where the profile begins, on a whole number of pixels each where there are four or more."""
    room = LAST - PROFILE - LEFT
    pitch = room / max(places, FEWEST)
    if pitch >= 4:
        pitch = min(float(int(pitch)), 15.0)
    body = max(1, int(pitch * 0.75))
    odd = body - 1 + body % 2 if body > 2 else body  # a wick stands in the middle
    return BarLayout(LAST - PROFILE - max(places, 1) * pitch, pitch, odd)


@dataclass(frozen=True, slots=True)
class PanelFrame:
    """A panel's place from top to bottom, and the range of values it shows."""

    bottom: int
    height: int
    axis: Axis

    @property
    def top(self) -> int:
        return self.bottom + self.height

    def y(self, values: Floats) -> Floats:
        low, high = self._ends()
        return np.asarray(self.bottom + (_straight(self.axis, values) - low) / (high - low) * self.height)

    def at(self, value: float) -> float:
        return float(self.y(np.array([value]))[0])

    def values(self, y: Floats) -> Floats:
        low, high = self._ends()
        values = low + (y - self.bottom) / self.height * (high - low)
        return np.exp(values) if self.axis.scale is Scale.LOG else values

    def _ends(self) -> tuple[float, float]:
        low, high = _straight(self.axis, np.array([self.axis.low, self.axis.high]))
        return float(low), float(high)


def rows(panels: int) -> tuple[tuple[int, int], ...]:
    """Bottom and height of the price and of so many panels below it."""
    below = tuple((BOTTOM + place * (PANEL + GAP), PANEL) for place in reversed(range(panels)))
    bottom = BOTTOM + panels * (PANEL + GAP)
    return ((bottom, HEIGHT - TOP - bottom), *below)


def _straight(axis: Axis, values: Floats) -> Floats:
    return np.log(values) if axis.scale is Scale.LOG else values


def spread_labels(wanted: Sequence[float], apart: float, low: float, high: float) -> list[float]:
    """Places for labels in the order of `wanted`, in [low, high] and at least `apart` from each other where there is
    room. Labels that push each other are centred around the mean of their wanted places."""
    if not wanted:
        return []
    gap = min(apart, (high - low) / max(1, len(wanted) - 1))
    order = sorted(range(len(wanted)), key=lambda place: wanted[place])
    heaps: list[tuple[float, int]] = []  # the sum of what its labels would like its first place to be; how many
    for place in order:
        sum_, count = wanted[place], 1
        while heaps and _start(*heaps[-1], gap, low, high) + heaps[-1][1] * gap > _start(sum_, count, gap, low, high):
            before, many = heaps.pop()
            sum_, count = before + sum_ - count * many * gap, many + count
        heaps.append((sum_, count))
    places: list[float] = []
    for sum_, count in heaps:
        start = _start(sum_, count, gap, low, high)
        places += [start + step * gap for step in range(count)]
    return [at for _, at in sorted(zip(order, places, strict=True))]


def _start(sum_: float, count: int, gap: float, low: float, high: float) -> float:
    return max(low, min(sum_ / count, high - (count - 1) * gap))
