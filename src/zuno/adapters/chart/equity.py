"""The picture of an account's performance: equity above, drawdown below, on one time axis."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Final

import numpy as np

from zuno.adapters.chart.canvas import (
    ACROSS,
    BLACK,
    BLUE,
    FAINT,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILLION,
    ChartCanvas,
)
from zuno.adapters.chart.frames import LAST, LEFT, PanelFrame
from zuno.trading.measure.bars import Floats
from zuno.trading.model.chart import HEIGHT, EquityChart
from zuno.trading.rules.equity_lines import DESK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BOTTOM: Final = 30
FALL_HEIGHT: Final = 230
GAP: Final = 34
TOP: Final = 102
MARK: Final = 3.5
LABEL: Final = 16
COLOURS: Final = (GREEN, ORANGE, PURPLE, SKY)
"""Of the lines beside the desk's."""


class EquityRenderer:
    def __init__(self, chart: EquityChart) -> None:
        self._canvas = ChartCanvas()
        self._chart = chart
        self._falls = PanelFrame(BOTTOM, FALL_HEIGHT, chart.drawdown_axis)
        above = BOTTOM + FALL_HEIGHT + GAP
        self._equity = PanelFrame(above, HEIGHT - TOP - above, chart.equity_axis)

    def draw(self) -> Figure:
        self._canvas.header(self._chart, HEIGHT - 37)
        self._canvas.text(8, HEIGHT - 55, self._chart.period, self._canvas.fonts.plain, BLACK)
        self._canvas.text(8, HEIGHT - 73, self._chart.legend[:ACROSS], self._canvas.fonts.plain, BLACK)
        for frame in (self._equity, self._falls):
            self._canvas.axis(frame)
            for tick in self._chart.times:
                x = float(_across(np.array([tick.at]))[0])
                self._canvas.lines([[(x, frame.bottom), (x, frame.top)]], FAINT, 1.0)
                if frame is self._falls:
                    self._canvas.text(x, 14, tick.label, self._canvas.fonts.plain, BLACK, "center")
        self._draw_falls()
        self._draw_equity()
        for frame, title in (
            (self._equity, "equity, USD (squares: trades closed, blue won, orange lost)"),
            (self._falls, "drawdown, % of the peak"),
        ):
            self._canvas.border(LEFT + 0.5, frame.bottom + 0.5, LAST + 0.5, frame.top + 0.5)
            self._canvas.text(LEFT + 2, frame.top + 11, title, self._canvas.fonts.bold, BLACK)
        middle = self._equity.bottom + self._equity.height / 2
        self._canvas.watermark((LEFT + LAST) / 2, middle, self._chart.watermark)
        return self._canvas.figure

    def _draw_equity(self) -> None:
        chart, frame = self._chart, self._equity
        start = np.floor(frame.at(chart.equity[0])) + 0.5
        self._canvas.lines([[(LEFT, start), (LAST, start)]], GREY, 1.0, (0, (6, 3)))
        x, y = _across(np.array(chart.places)), frame.y(np.array(chart.equity))
        for (_, worth), colour in zip(chart.beside, cycle(COLOURS), strict=False):
            self._canvas.line(x, frame.y(np.array(worth)), colour, 1.4, frame)
        self._canvas.line(x, y, BLACK, 1.8, frame)
        for won, colour in ((True, BLUE), (False, VERMILLION)):
            marks = [mark for mark in chart.closes if mark.won is won]
            at, height = _across(np.array([mark.place for mark in marks])), np.array([mark.equity for mark in marks])
            tall = frame.y(height) if len(marks) else height
            self._canvas.boxes(at - MARK, tall - MARK, at + MARK, tall + MARK, colour)
        name = f"{DESK} " if chart.beside else ""
        labels = [(f"{name}${chart.equity[-1]:,.2f}", chart.equity[-1], BLACK)]
        labels += [
            (f"{other} ${worth[-1]:,.2f}", worth[-1], colour)
            for (other, worth), colour in zip(chart.beside, cycle(COLOURS), strict=False)
        ]
        labels.append((f"${chart.equity[0]:,.2f} at the start", chart.equity[0], BLACK))
        self._label_ends(frame, labels)

    def _draw_falls(self) -> None:
        chart, frame = self._chart, self._falls
        falls = np.array([np.nan if value is None else value for value in chart.drawdown])
        x, y = _across(np.array(chart.places)), frame.y(falls)
        self._canvas.area(x, y, frame.at(0.0), VERMILLION, alpha=0.35)
        self._canvas.line(x, y, VERMILLION, 1.2, frame)
        deepest = min((value for value in chart.drawdown if value is not None), default=None)
        if deepest is not None:
            self._label_ends(frame, [(f"{deepest:.2f} % at worst", deepest, BLACK)])

    def _label_ends(self, frame: PanelFrame, labels: Sequence[tuple[str, float, str]]) -> None:
        """Beside the panel, each at its value or as near as the others leave room, from the highest down."""
        free = float(frame.top)
        for rank, (text, value, colour) in enumerate(sorted(labels, key=lambda label: -label[1])):
            below = LABEL * (len(labels) - 1 - rank)  # the others need room too
            y = min(free, max(frame.at(value), frame.bottom + below))
            self._canvas.text(LAST + 8, y, text, self._canvas.fonts.bold, colour)
            free = y - LABEL


def _across(places: Floats) -> Floats:
    return np.asarray(LEFT + places * (LAST - LEFT))
