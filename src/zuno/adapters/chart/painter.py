"""Draws charts with matplotlib's figure and artists alone; nothing is kept between pictures.

Everything a user's matplotlibrc could change is set here and the fonts are matplotlib's own files, so equal charts are
equal bytes. Colours are Okabe and Ito's, which colour-blind people can tell apart; a rise is hollow or pale where a
fall is full, and kinds of lines differ in their dashes.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from io import BytesIO
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from zuno.adapters.chart.canvas import (
    BLACK,
    BLUE,
    FAINT,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILLION,
    WHITE,
    ChartCanvas,
)
from zuno.adapters.chart.equity import EquityRenderer
from zuno.adapters.chart.frames import (
    LAST,
    LEFT,
    POOLS,
    PROFILE,
    BarLayout,
    PanelFrame,
    layout_bars,
    rows,
    spread_labels,
)
from zuno.adapters.chart.reliability import ReliabilityRenderer
from zuno.trading.measure.bars import Floats
from zuno.trading.model.chart import (
    HEIGHT,
    WIDTH,
    CurveKind,
    EquityChart,
    Heat,
    MarkKind,
    MissingPanel,
    Panel,
    PanelShape,
    Picture,
    PricePanel,
    ReliabilityChart,
    TradePlan,
    VolumeProfile,
    price_text,
    short_text,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SLANT_POINTS: Final = 64
FULL_SHADE: Final = 0.95
"""Of a heat map's cells of one kind that hold something: what is beyond is no darker, so that a few do not pale the
rest."""
ACROSS: Final = 190
"""Letters that a line from edge to edge has room for."""
STRIP: Final = 16
"""Pixels of a panel that its title has to itself."""
APART: Final = 14.5
"""Pixels from one label to the next."""
PALE_BLUE: Final = "#8fc3e3"
POOL: Final = "#707070"
MODELLED, OBSERVED = (176, 176, 176), (242, 218, 70)
"""Most liquidations of each kind; none is white."""
_CURVES: Final = {
    CurveKind.EMA200: (BLACK, 2.0),
    CurveKind.DAY_VWAP: (BLACK, 1.5),
    CurveKind.VWAP_SINCE_HIGH: (PURPLE, 2.0),
    CurveKind.VWAP_SINCE_LOW: (GREEN, 2.0),
}
_MARKS: Final[dict[MarkKind, tuple[str, Any]]] = {
    MarkKind.PIVOT: (GREY, (0, (6, 3))),
    MarkKind.FIBONACCI: (GREEN, (0, (1.5, 2.5))),
    MarkKind.GAP: (BLUE, (0, ())),
    MarkKind.PROFILE: (ORANGE, (0, (9, 2, 2, 2))),
    MarkKind.POOL: (POOL, (0, (1, 4))),
    MarkKind.NOW: (BLACK, (0, (1, 1))),
    MarkKind.ENTRY: (BLACK, (0, ())),
    MarkKind.STOP: (VERMILLION, (0, ())),
    MarkKind.TARGET: (BLUE, (0, ())),
    MarkKind.LIQUIDATION: (PURPLE, (0, (4, 2))),
}
_BOLD: Final = frozenset({MarkKind.NOW, MarkKind.ENTRY, MarkKind.STOP, MarkKind.TARGET, MarkKind.LIQUIDATION})
_PAINTING: Final = threading.Lock()
"""matplotlib's styles belong to the process: one picture at a time."""


class MatplotlibPainter:
    media_type = "image/png"

    async def paint(self, picture: Picture) -> bytes:
        return await asyncio.to_thread(paint_png, picture)

    async def paint_equity(self, chart: EquityChart) -> bytes:
        return await asyncio.to_thread(_to_png, lambda: EquityRenderer(chart).draw())

    async def paint_reliability(self, chart: ReliabilityChart) -> bytes:
        return await asyncio.to_thread(_to_png, lambda: ReliabilityRenderer(chart).draw())


def paint_png(picture: Picture) -> bytes:
    return _to_png(lambda: ChartRenderer(picture).draw())


def _to_png(draw: Callable[[], Figure]) -> bytes:
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    out = BytesIO()
    with _PAINTING, matplotlib.rc_context(_unusual()):
        canvas: Any = FigureCanvasAgg(draw())
        canvas.print_png(out, metadata={"Software": None})
    return out.getvalue()


def _unusual() -> dict[Any, Any]:
    """The styles of this process that are not matplotlib's own, with matplotlib's values."""
    from matplotlib import rcParams, rcParamsDefault

    named = (name for name in rcParamsDefault if not name.startswith(("backend", "interactive", "toolbar")))
    return {name: rcParamsDefault[name] for name in named if rcParams[name] != rcParamsDefault[name]}


class ChartRenderer:
    def __init__(self, picture: Picture) -> None:
        self._canvas = ChartCanvas()
        self._picture = picture
        self._layout = layout_bars(picture.width)
        self._places = np.array(picture.places, dtype=float)
        self._middle = self._layout.middle(self._places)

    def draw(self) -> Figure:
        picture = self._picture
        (bottom, height), *below = rows(len(picture.panels))
        self._header()
        if isinstance(picture.price, MissingPanel):
            self._blank(picture.price, bottom, height)
        else:
            frame = PanelFrame(bottom, height, picture.price.axis)
            if isinstance(picture.price.heat, Heat):
                self._heat(picture.price.heat, frame)
            self._dates(below[-1][0] if below else bottom, bottom + height)
            self._price(picture.price, frame)
        for panel, (low, tall) in zip(picture.panels, below, strict=True):
            if isinstance(panel, MissingPanel):
                self._blank(panel, low, tall)
            else:
                self._panel(panel, PanelFrame(low, tall - STRIP, panel.axis))
        self._canvas.watermark(WIDTH / 2 - 60, bottom + height / 2, picture.watermark)
        return self._canvas.figure

    # -- around the panels

    def _header(self) -> None:
        picture, fonts = self._picture, self._canvas.fonts
        self._canvas.text(8, HEIGHT - 15, picture.title, fonts.title, BLACK)
        colour = VERMILLION if picture.watermark else GREY
        self._canvas.text(WIDTH - 8, HEIGHT - 15, picture.origin, fonts.title, colour, "right")
        trade = None if isinstance(picture.price, MissingPanel) else picture.price.trade
        if trade is None:
            self._canvas.text(8, HEIGHT - 35, _key(self._layout), fonts.plain, BLACK)
        else:
            self._canvas.text(8, HEIGHT - 35, _shorten(trade.card, ACROSS), fonts.bold, BLACK)
        self._canvas.text(8, HEIGHT - 52, _shorten(_heat_caption(picture.price), ACROSS), fonts.plain, BLACK)
        warnings = " · ".join(filter(None, (*picture.notes, _absences(picture.price))))
        self._canvas.text(8, HEIGHT - 69, _shorten(warnings, ACROSS), fonts.plain, VERMILLION)

    def _dates(self, bottom: int, top: int) -> None:
        for tick in self._picture.times:
            x = float(self._layout.middle(np.array([tick.at]))[0])
            self._canvas.lines([[(x, bottom), (x, top)]], FAINT, 1.0)
            self._canvas.text(x, 12, tick.label, self._canvas.fonts.plain, BLACK, "center")

    def _blank(self, blank: MissingPanel, bottom: int, height: int) -> None:
        self._border(bottom, height)
        self._canvas.text(LEFT + 6, bottom + height - 9, blank.title, self._canvas.fonts.bold, BLACK)
        lines = wrap(f"absent: {blank.why}", 110)[: 3 if height < 200 else 6]
        for place, line in enumerate(lines):
            y = bottom + height / 2 + ((len(lines) - 1) / 2 - place) * 16
            self._canvas.text((LEFT + LAST) / 2, y - 6, line, self._canvas.fonts.plain, VERMILLION, "center")

    def _border(self, bottom: int, height: int) -> None:
        self._canvas.border(LEFT + 0.5, bottom + 0.5, LAST + 0.5, bottom + height + 0.5)

    # -- the price

    def _price(self, panel: PricePanel, frame: PanelFrame) -> None:
        self._canvas.axis(frame)
        if isinstance(panel.heat, Heat):
            self._unheard(panel.heat, frame)
        self._zones(panel, frame)
        if isinstance(panel.heat, Heat):
            self._pools(panel.heat, frame)
        if isinstance(panel.profile, VolumeProfile):
            self._profile(panel.profile, frame)
        if panel.trade is not None:
            self._trade(panel.trade, frame)
        self._levels(panel, frame)
        self._candles(panel, frame)
        self._curves(panel, frame)
        self._border(frame.bottom, frame.height)
        self._labels(panel, frame)

    def _heat(self, heat: Heat, frame: PanelFrame) -> None:
        """An image of the bars' own pixels; a place without a bar stays white."""
        left, right = int(np.ceil(self._layout.left)), LAST - PROFILE
        colours = _heat_colours(np.array(heat.columns).T, np.array(heat.forced).T)
        table = np.full((colours.shape[0] + 2, self._picture.width + 1, 3), 255.0)
        table[1:-1, np.array(self._picture.places, dtype=int)] = colours
        middles: Floats = np.arange(frame.bottom, frame.top, dtype=np.float64) + 0.5
        row = np.searchsorted(np.array(heat.edges), frame.values(middles), side="right")
        column = ((np.arange(left, right) + 0.5 - self._layout.left) / self._layout.pitch).astype(int)
        image = table[row[:, None], np.clip(column, 0, self._picture.width)[None, :]]
        self._canvas.image(image.astype(np.uint8), left, frame.bottom)

    def _unheard(self, heat: Heat, frame: PanelFrame) -> None:
        deaf = self._middle[~np.array(heat.heard, dtype=bool)]
        half, foot = self._layout.pitch / 2, np.full(len(deaf), float(frame.bottom))
        self._canvas.boxes(deaf - half, foot, deaf + half, foot + 5, PURPLE)

    def _zones(self, panel: PricePanel, frame: PanelFrame) -> None:
        x = self._layout.middle(np.array([zone.since for zone in panel.zones]))
        low, high = (frame.y(np.array([getattr(zone, side) for zone in panel.zones])) for side in ("low", "high"))
        self._canvas.boxes(x, low, np.full(len(x), float(LAST)), high, SKY, alpha=0.30)

    def _pools(self, heat: Heat, frame: PanelFrame) -> None:
        """The liquidation pools that stand now, right of the last bar: the longer, the larger."""
        edges, usd = np.array(heat.edges), np.array(heat.standing)
        if not usd.max():
            return
        heights = np.clip(np.round(frame.y(edges)), frame.bottom, frame.top)
        low, high = heights[:-1] + 1, heights[1:]
        far = np.round((POOLS - 2) * usd / usd.max())
        held = (far > 0) & (high > low)
        left = np.full(int(held.sum()), float(LAST - PROFILE + 1))
        self._canvas.boxes(left, low[held], left + far[held], high[held], POOL)

    def _profile(self, profile: VolumeProfile, frame: PanelFrame) -> None:
        edges = np.linspace(profile.low, profile.high, len(profile.volumes) + 1)
        volumes, middle = np.array(profile.volumes), (edges[1:] + edges[:-1]) / 2
        heights = np.round(frame.y(edges))
        low, high = heights[:-1] + 1, np.maximum(heights[1:], heights[:-1] + 2)
        left = LAST - (PROFILE - POOLS - 4) * volumes / volumes.max()
        inside = (middle >= profile.value_low) & (middle <= profile.value_high)
        for held, colour in ((inside, SKY), (~inside, "#c9e4f6")):
            right = np.full(int(held.sum()), float(LAST))
            self._canvas.boxes(left[held], low[held], right, high[held], colour)

    def _trade(self, trade: TradePlan, frame: PanelFrame) -> None:
        """From the entry to the target and to the stop, ahead of the last bar."""
        left = float(np.ceil(self._middle[-1] + self._layout.pitch / 2))
        for price, colour in ((trade.target, BLUE), (trade.stop, VERMILLION)):
            low, high = sorted((frame.at(trade.entry), frame.at(price)))
            x0, y0, x1, y1 = (np.array([end]) for end in (left, low, float(LAST - PROFILE), high))
            self._canvas.boxes(x0, y0, x1, y1, colour, alpha=0.22)

    def _levels(self, panel: PricePanel, frame: PanelFrame) -> None:
        for kind, (colour, dashes) in _MARKS.items():
            marks = [mark for mark in panel.marks if mark.kind is kind]
            starts = self._layout.middle(np.array([mark.since for mark in marks]))
            heights = np.floor(frame.y(np.array([mark.price for mark in marks]))) + 0.5
            segments = [[(x, y), (LAST, y)] for x, y in zip(starts, heights, strict=True)]
            self._canvas.lines(segments, colour, 1.4 if kind in _BOLD else 1.0, dashes)
        slants = [*panel.slants, *([panel.swing] if panel.swing else [])]
        for slant in slants:
            # Straight in the price, and so bent where equal distances are equal ratios.
            x, prices = np.linspace(slant.start, slant.end, SLANT_POINTS).T
            y = frame.y(prices)
            style = (GREEN, 1.2, (0, (1.5, 2.5))) if slant is panel.swing else (VERMILLION, 1.6, (0, (10, 3)))
            self._canvas.line(self._layout.middle(x), y, style[0], style[1], frame, style[2])

    def _candles(self, panel: PricePanel, frame: PanelFrame) -> None:
        bars = panel.candles
        opened, high, low, close = (np.array(column) for column in (bars.open, bars.high, bars.low, bars.close))
        rising = close >= opened
        foot, head = np.floor(frame.y(np.minimum(opened, close))), np.floor(frame.y(np.maximum(opened, close)))
        head = np.maximum(head, foot + 1)
        for some, colour in ((rising, BLUE), (~rising, VERMILLION)):
            wicks = zip(self._middle[some], frame.y(low[some]), frame.y(high[some]), strict=True)
            self._canvas.lines([[(x, y0), (x, max(y1, y0 + 1))] for x, y0, y1 in wicks], colour, 1.0)
            self._bodies(some, foot[some], head[some] + 1, rose=some is rising)

    def _bodies(self, some: NDArray[np.bool_], low: Floats, high: Floats, *, rose: bool) -> None:
        left, right = self._middle[some] - self._layout.body / 2, self._middle[some] + self._layout.body / 2
        if rose and self._layout.hollow:
            self._canvas.boxes(left + 0.5, low + 0.5, right - 0.5, high - 0.5, WHITE, edge=BLUE)
        else:
            self._canvas.boxes(left, low, right, high, PALE_BLUE if rose else VERMILLION)

    def _curves(self, panel: PricePanel, frame: PanelFrame) -> None:
        for curve in panel.curves:
            colour, wide = _CURVES[curve.kind]
            heights = frame.y(_numbers(curve.values))
            if curve.kind is CurveKind.DAY_VWAP:
                half = max(1.5, self._layout.pitch / 2)
                known = zip(self._middle, heights, strict=True)
                self._canvas.lines([[(x - half, y), (x + half, y)] for x, y in known if np.isfinite(y)], colour, wide)
            else:
                self._canvas.line(*self._over_places(heights), colour, wide, frame)

    def _labels(self, panel: PricePanel, frame: PanelFrame) -> None:
        """Price and name of everything that has one price now, right of the panel, each joined to its height; beyond
        the panel to its edge, with an arrow."""
        labels = [(mark.price, mark.label, _MARKS[mark.kind][0], mark.kind in _BOLD) for mark in panel.marks]
        labels += [(slant.price, slant.label, VERMILLION, True) for slant in panel.slants]
        labels += [(curve.last, curve.label, _CURVES[curve.kind][0], True) for curve in panel.curves]
        heights = [frame.at(price) if price > 0 else float(frame.bottom) for price, *_ in labels]
        inside = [min(max(height, float(frame.bottom)), float(frame.top)) for height in heights]
        places = spread_labels(inside, APART, frame.bottom + 7, frame.top - 7)
        for (price, name, colour, bold), height, edge, y in zip(labels, heights, inside, places, strict=True):
            beyond = " ↑" if height > frame.top else " ↓" if height < frame.bottom else ""
            font = self._canvas.fonts.bold if bold else self._canvas.fonts.plain
            self._canvas.lines([[(LAST + 1, edge), (LAST + 4, edge), (LAST + 12, y)]], colour, 1.0)
            self._canvas.lines([[(LAST + 12, y), (LAST + 21, y)]], colour, 3.0 if bold else 1.5)
            self._canvas.text(LAST + 24, y, f"{price_text(price)} {name}{beyond}", font, BLACK)

    # -- below it

    def _panel(self, panel: Panel, frame: PanelFrame) -> None:
        self._canvas.axis(frame)
        values = _numbers(panel.values)
        if panel.shape is PanelShape.LINE:
            self._canvas.line(*self._over_places(frame.y(values)), BLACK, 1.6, frame)
            x, y = _alone(*self._over_places(frame.y(values)))
            self._canvas.boxes(x - 2.5, y - 2.5, x + 2.5, y + 2.5, BLACK)
        else:
            self._columns(values, np.array(panel.rising, dtype=np.bool_), frame)
        self._border(frame.bottom, frame.height + STRIP)
        self._canvas.text(LEFT + 6, frame.top + 7, panel.title, self._canvas.fonts.bold, BLACK)
        self._canvas.text(
            LAST + 8, frame.top + 7, f"last {short_text(panel.last)} {panel.unit}", self._canvas.fonts.bold, BLACK
        )
        for place, line in enumerate(wrap(panel.note, 27)[:4]):
            self._canvas.text(LAST + 8, frame.top - 10 - 15 * place, line, self._canvas.fonts.plain, VERMILLION)

    def _columns(self, values: Floats, rising: NDArray[np.bool_], frame: PanelFrame) -> None:
        zero = np.floor(frame.at(0.0))
        for some in (rising, ~rising):
            held = some & np.isfinite(values)
            ends = np.floor(frame.y(values[held]))
            low = np.minimum(ends, zero)
            self._bodies(held, low, np.maximum(np.maximum(ends, zero), low + 1), rose=some is rising)
        self._canvas.lines([[(LEFT, zero + 0.5), (LAST, zero + 0.5)]], GREY, 1.0)

    def _over_places(self, heights: Floats) -> tuple[Floats, Floats]:
        """One point for each slot; NaN where there is no bar, so that a line breaks there."""
        whole = np.full(self._picture.width, np.nan)
        whole[self._places.astype(int)] = heights
        return self._layout.middle(np.arange(self._picture.width, dtype=float)), whole


def _key(layout: BarLayout) -> str:
    rise = "hollow blue" if layout.hollow else "pale blue"
    return (
        f"bars: {rise} rose, full orange fell; short black dashes: day VWAP · "
        "right edge: pools that stand now (half-life 3 days), volume by price, darker in its value area"
    )


def _heat_colours(pools: Floats, forced: Floats) -> Floats:
    """The colour of each cell; each kind is scaled on its own, and forced trades lie on top."""
    colours = np.full((*pools.shape, 3), 255.0)
    for usd, colour in ((pools, MODELLED), (forced, OBSERVED)):
        dense = np.sort(usd[usd > 0])
        if len(dense):
            shade = np.sqrt(np.minimum(usd / dense[int(FULL_SHADE * (len(dense) - 1))], 1.0))[:, :, None]
            colours = colours + shade * (np.array(colour) - colours)
    return colours


def _heat_caption(price: PricePanel | MissingPanel) -> str:
    if isinstance(price, MissingPanel) or isinstance(price.heat, MissingPanel):
        return ""
    heat = price.heat
    kinds = (("yellow OBSERVED", any(heat.observed)), ("grey MODELLED", True))
    deaf = "" if all(heat.heard) else "; purple foot: not heard whole"
    return f"liquidations, {', '.join(kind for kind, so in kinds if so)}: {heat.note}{deaf}"


def _absences(price: PricePanel | MissingPanel) -> str:
    if isinstance(price, MissingPanel):
        return ""
    parts = (*price.absent, price.profile, price.heat)
    reasons = " · ".join(f"{part.title}: {part.why}" for part in parts if isinstance(part, MissingPanel))
    return f"absent: {reasons}" if reasons else ""


def _numbers(values: Sequence[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], dtype=float)


def _alone(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Points without a neighbour: no line goes through them."""
    known = np.concatenate(([False], np.isfinite(y), [False]))
    held = known[1:-1] & ~known[:-2] & ~known[2:]
    return x[held], y[held]


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
