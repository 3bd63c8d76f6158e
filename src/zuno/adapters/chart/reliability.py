"""The picture of agents' calibration: small panels, each with its diagonal."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt
from typing import TYPE_CHECKING, Final

import numpy as np

from zuno.adapters.chart.canvas import BLACK, BLUE, FAINT, GREEN, GREY, ORANGE, PURPLE, VERMILLION, WHITE, ChartCanvas
from zuno.trading.model.chart import HEIGHT, WIDTH, ReliabilityChart, ReliabilityPanel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEFT: Final = 44
RIGHT: Final = 16
BOTTOM: Final = 46
TOP: Final = 92
GAP: Final = 56
"""Between panels, for the numbers of their axes."""
HEAD: Final = 40
"""Above a panel, for its title."""
LETTER: Final = 8.6
"""Pixels of a capital letter."""
TICKS: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
SMALLEST: Final = 3.0
LARGEST: Final = 9.0
"""Half a side of a mark: by the root of how many claims it stands for."""
_COLOURS: Final = {
    "BULL_MOMENTUM": BLUE,
    "BEAR_MOMENTUM": VERMILLION,
    "RANGE_BOUND": GREEN,
    "VOLATILITY_PANIC": PURPLE,
    "SIDEWAYS_ACCUMULATION": ORANGE,
}


@dataclass(frozen=True, slots=True)
class _Square:
    """Where a panel stands, from 0 to 1 either way."""

    left: float
    bottom: float
    width: float
    height: float

    def x(self, share: float) -> float:
        return self.left + share * self.width

    def y(self, share: float) -> float:
        return self.bottom + share * self.height


class ReliabilityRenderer:
    def __init__(self, chart: ReliabilityChart) -> None:
        self._canvas = ChartCanvas()
        self._chart = chart

    def draw(self) -> Figure:
        self._header()
        for panel, square in zip(self._chart.panels, _place_panels(len(self._chart.panels)), strict=True):
            self._draw_panel(panel, square)
        self._canvas.watermark(WIDTH / 2, HEIGHT / 2, self._chart.watermark)
        return self._canvas.figure

    def _header(self) -> None:
        chart, fonts = self._chart, self._canvas.fonts
        self._canvas.header(chart, HEIGHT - 15)
        x = 8.0
        seen = {regime for panel in chart.panels for regime, _ in panel.regimes}
        for regime, colour in _COLOURS.items():
            if regime in seen:
                self._mark(x + 5, HEIGHT - 56, SMALLEST + 2, colour)
                self._canvas.text(x + 14, HEIGHT - 56, regime, fonts.plain, BLACK)
                x += 30 + LETTER * len(regime)
        self._mark(x + 5, HEIGHT - 56, SMALLEST + 2, BLACK)
        self._canvas.text(x + 14, HEIGHT - 56, "all regimes (beside it: how many)", fonts.plain, BLACK)

    def _draw_panel(self, panel: ReliabilityPanel, square: _Square) -> None:
        fonts, canvas = self._canvas.fonts, self._canvas
        for tick in TICKS:
            x, y = square.x(tick), square.y(tick)
            canvas.lines([[(x, square.y(0)), (x, square.y(1))], [(square.x(0), y), (square.x(1), y)]], FAINT, 1.0)
            canvas.text(x, square.bottom - 10, f"{tick:g}", fonts.plain, BLACK, "center")
            canvas.text(square.left - 5, y, f"{tick:g}", fonts.plain, BLACK, "right")
        left, right, low, high = square.x(0), square.x(1), square.y(0), square.y(1)
        canvas.border(left, low, right, high)
        canvas.text(left, high + 29, panel.title, fonts.bold, BLACK)
        canvas.text(left, high + 13, panel.figures, fonts.plain, BLACK)
        canvas.lines([[(left, low), (right, high)]], GREY, 1.0, (0, (6, 3)))
        for regime, points in panel.regimes:
            for point in points:
                side, colour = min(LARGEST, SMALLEST + sqrt(point.n)), _COLOURS.get(regime, GREY)
                self._mark(square.x(point.claimed), square.y(point.came), side, colour)
        joined = [(square.x(point.claimed), square.y(point.came)) for point in panel.points]
        canvas.lines([joined] if len(joined) > 1 else [], BLACK, 1.6)
        for point in panel.points:
            x, y = square.x(point.claimed), square.y(point.came)
            self._mark(x, y, SMALLEST, BLACK)
            beside = y + 9 if y + 18 < high else y - 10  # not into the figures above the panel
            canvas.text(x + 7, beside, f"{point.n}", fonts.plain, BLACK)

    def _mark(self, x: float, y: float, side: float, colour: str) -> None:
        self._canvas.boxes(
            np.array([x - side]), np.array([y - side]), np.array([x + side]), np.array([y + side]), colour, WHITE
        )


def _place_panels(count: int) -> list[_Square]:
    """Row by row from the top, in as many columns as make them nearly square."""
    if not count:
        return []
    columns = 1 if count == 1 else 2 if count <= 4 else 3 if count <= 9 else 4
    rows = ceil(count / columns)
    width = (WIDTH - LEFT - RIGHT - (columns - 1) * GAP) / columns
    height = (HEIGHT - TOP - BOTTOM - (rows - 1) * GAP) / rows - HEAD
    places = [divmod(number, columns) for number in range(count)]
    return [
        _Square(LEFT + column * (width + GAP), BOTTOM + (rows - 1 - row) * (height + GAP + HEAD), width, height)
        for row, column in places
    ]
