"""Draw lines, boxes, text and images on a matplotlib figure, in pixels from the lower left, each above the last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from zuno.adapters.chart.frames import LAST, LEFT, PanelFrame
from zuno.trading.measure.bars import Floats
from zuno.trading.model.chart import HEIGHT, WIDTH, AccountChart

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.font_manager import FontProperties

DPI: Final = 100
PIXEL: Final = 72 / DPI
"""A pixel in points, in which matplotlib counts line widths and letters."""
ACROSS: Final = 160
"""Letters that a line has room for."""
SMALL, LARGE, HUGE = 12.0, 15.0, 88.0
WHITE, BLACK, GREY, FAINT = "#ffffff", "#000000", "#5f5f5f", "#e3e3e3"
ORANGE, SKY, GREEN = "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILLION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"


@dataclass(frozen=True, slots=True)
class Fonts:
    plain: FontProperties
    bold: FontProperties
    title: FontProperties
    mark: FontProperties
    known: frozenset[int]
    """Characters that the fonts have; others would be drawn as a box."""

    def readable(self, text: str) -> str:
        return "".join(char if ord(char) in self.known else "?" for char in text)


@cache
def fonts() -> Fonts:
    import matplotlib
    from matplotlib.font_manager import FontProperties, get_font

    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    plain, bold = folder / "DejaVuSans.ttf", folder / "DejaVuSans-Bold.ttf"
    known = get_font(str(plain)).get_charmap().keys() & get_font(str(bold)).get_charmap().keys()
    return Fonts(
        FontProperties(fname=str(plain), size=SMALL * PIXEL),
        FontProperties(fname=str(bold), size=SMALL * PIXEL),
        FontProperties(fname=str(bold), size=LARGE * PIXEL),
        FontProperties(fname=str(bold), size=HUGE * PIXEL),
        frozenset(known),
    )


class ChartCanvas:
    """Draws on one figure of `WIDTH` × `HEIGHT` pixels."""

    def __init__(self) -> None:
        from matplotlib.figure import Figure

        self.figure = Figure((WIDTH / DPI, HEIGHT / DPI), dpi=DPI, facecolor=WHITE)
        self._layer = 0
        self.fonts = fonts()

    def axis(self, frame: PanelFrame) -> None:
        """Lines across a panel, and those of its numbers that do not touch its ends."""
        heights = np.floor(frame.y(np.array([tick.at for tick in frame.axis.ticks]))) + 0.5
        self.lines([[(LEFT, y), (LAST, y)] for y in heights], FAINT, 1.0)
        for tick, y in zip(frame.axis.ticks, heights, strict=True):
            if frame.bottom + 4 < y < frame.top - 4:
                self.text(LEFT - 5, y, tick.label, self.fonts.plain, BLACK, "right")

    def border(self, left: float, low: float, right: float, high: float) -> None:
        self.lines([[(left, low), (right, low), (right, high), (left, high), (left, low)]], GREY, 1.0)

    def watermark(self, x: float, y: float, text: str) -> None:
        self.text(x, y, text, self.fonts.mark, BLACK, "center", alpha=0.10)

    def image(self, pixels: NDArray[np.uint8], left: int, bottom: int) -> None:
        """Lowest row first."""
        self._layer += 1
        self.figure.figimage(pixels, left, bottom, origin="lower", zorder=self._layer)

    def line(self, x: Floats, y: Floats, colour: str, wide: float, frame: PanelFrame, dashes: Any = (0, ())) -> None:
        from matplotlib.lines import Line2D
        from matplotlib.transforms import Bbox

        line = Line2D(x, y, color=colour, linewidth=wide * PIXEL, linestyle=dashes)
        self._add(line)
        line.set_clip_box(Bbox.from_extents(LEFT, frame.bottom, LAST, frame.top))

    def lines(self, segments: Sequence[Any], colour: str, wide: float, dashes: Any = (0, ())) -> None:
        from matplotlib.collections import LineCollection

        if len(segments):
            self._add(LineCollection(segments, colors=colour, linewidths=wide * PIXEL, linestyles=[dashes]))

    def boxes(
        self,
        left: Floats,
        low: Floats,
        right: Floats,
        high: Floats,
        fill: str,
        edge: str | None = None,
        alpha: float | None = None,
    ) -> None:
        from matplotlib.collections import PolyCollection

        if len(left):
            corners = np.stack([left, low, left, high, right, high, right, low], axis=1).reshape(-1, 4, 2)
            boxes = PolyCollection(list(corners), facecolors=fill, edgecolors=edge or "none", alpha=alpha)
            boxes.set(antialiased=edge is not None, linewidth=PIXEL if edge else 0.0)
            self._add(boxes)

    def area(self, x: Floats, y: Floats, base: float, fill: str, alpha: float) -> None:
        """Between a line and a height; open where the line is."""
        from matplotlib.collections import PolyCollection

        # One shape for each stretch: two that meet within a pixel would paint it twice.
        known = np.flatnonzero(np.isfinite(y))
        stretches = np.split(known, np.flatnonzero(np.diff(known) > 1) + 1)
        shapes = [
            np.stack([x[[part[0], *part, part[-1]]], [base, *y[part], base]], axis=1)
            for part in stretches
            if len(part) > 1
        ]
        if shapes:
            areas = PolyCollection(shapes, facecolors=fill, edgecolors="none", alpha=alpha)
            areas.set(antialiased=False, linewidth=0.0)
            self._add(areas)

    def header(self, chart: AccountChart, origin_y: float) -> None:
        """Whose account it is, of which market, and its figures."""
        colour = VERMILLION if chart.watermark or chart.label == "LIVE" else GREY
        self.text(8, HEIGHT - 15, f"{chart.label} · {chart.title}"[:ACROSS], self.fonts.title, BLACK)
        self.text(WIDTH - 8, origin_y, chart.origin[:60], self.fonts.title, colour, "right")
        self.text(8, HEIGHT - 37, chart.figures[:ACROSS], self.fonts.bold, BLACK)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        font: FontProperties,
        colour: str,
        side: str = "left",
        alpha: float | None = None,
    ) -> None:
        from matplotlib.text import Text

        if not text:
            return
        written = Text(x, y, self.fonts.readable(text), fontproperties=font, color=colour, alpha=alpha)
        written.set(horizontalalignment=side, verticalalignment="center_baseline", parse_math=False)
        self._add(written)

    def _add(self, artist: Artist) -> None:
        from matplotlib.transforms import IdentityTransform

        self._layer += 1
        # Pixels are chosen here: matplotlib would move what stands in the middle of one to the next.
        artist.set(transform=IdentityTransform(), zorder=self._layer, snap=False)
        self.figure.add_artist(artist)
