"""The picture of an account's performance: equity above, drawdown below, on one time axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from zuno.adapters.chart.canvas import BLACK, BLUE, FAINT, GREY, VERMILLION, ChartCanvas
from zuno.adapters.chart.frames import LAST, LEFT, PanelFrame
from zuno.trading.measure.bars import Floats
from zuno.trading.model.chart import HEIGHT, EquityChart

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BOTTOM: Final = 30
FALL_HEIGHT: Final = 230
GAP: Final = 34
TOP: Final = 84
MARK: Final = 3.5


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
        self._canvas.line(x, y, BLACK, 1.8, frame)
        for won, colour in ((True, BLUE), (False, VERMILLION)):
            marks = [mark for mark in chart.closes if mark.won is won]
            at, height = _across(np.array([mark.place for mark in marks])), np.array([mark.equity for mark in marks])
            tall = frame.y(height) if len(marks) else height
            self._canvas.boxes(at - MARK, tall - MARK, at + MARK, tall + MARK, colour)
        self._label_end(frame, f"${chart.equity[-1]:,.2f}", chart.equity[-1])
        self._label_end(frame, f"${chart.equity[0]:,.2f} at the start", chart.equity[0], away_from=chart.equity[-1])

    def _draw_falls(self) -> None:
        chart, frame = self._chart, self._falls
        falls = np.array([np.nan if value is None else value for value in chart.drawdown])
        x, y = _across(np.array(chart.places)), frame.y(falls)
        self._canvas.area(x, y, frame.at(0.0), VERMILLION, alpha=0.35)
        self._canvas.line(x, y, VERMILLION, 1.2, frame)
        deepest = min((value for value in chart.drawdown if value is not None), default=None)
        if deepest is not None:
            self._label_end(frame, f"{deepest:.2f} % at worst", deepest)

    def _label_end(self, frame: PanelFrame, text: str, value: float, away_from: float | None = None) -> None:
        y = frame.at(value)
        if away_from is not None and abs(y - frame.at(away_from)) < 16:
            y = frame.at(away_from) + (16 if y >= frame.at(away_from) else -16)
        self._canvas.text(LAST + 8, y, text, self._canvas.fonts.bold, BLACK)


def _across(places: Floats) -> Floats:
    return np.asarray(LEFT + places * (LAST - LEFT))
