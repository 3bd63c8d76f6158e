"""A chart as data, and the numbers passed beside its image, so that nobody reads a price off pixels."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeAlias

from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.trading.model.bundle import CANDLES_ONLY
from zuno.trading.model.known import pick
from zuno.trading.model.market import Mode, Side, Timeframe
from zuno.trading.model.memory import ReliabilityBin

WIDTH: Final = 1_232
HEIGHT: Final = 952
"""Pixels: 44 × 34 patches of 28 × 28. Vision models scale larger images down (Claude beyond 1,568 patches, Gemini 3 to
1,120 tokens), and small print is lost. Wide enough for three pixels to each of 260 bars."""
Values: TypeAlias = tuple[float | None, ...]
"""One for each bar that is drawn; None where it is not known."""


class Scale(StrEnum):
    LINEAR = "linear"
    LOG = "log"


@dataclass(frozen=True, slots=True)
class Tick:
    at: float
    """On a price or value axis the value, on the time axis the place."""
    label: str


@dataclass(frozen=True, slots=True)
class Axis:
    low: float
    high: float
    scale: Scale
    ticks: tuple[Tick, ...]


@dataclass(frozen=True, slots=True)
class MissingPanel:
    title: str
    why: str


@dataclass(frozen=True, slots=True)
class Candles:
    open: tuple[float, ...]
    high: tuple[float, ...]
    low: tuple[float, ...]
    close: tuple[float, ...]


class CurveKind(StrEnum):
    EMA200 = "ema200"
    DAY_VWAP = "day_vwap"
    VWAP_SINCE_HIGH = "vwap_since_high"
    VWAP_SINCE_LOW = "vwap_since_low"


@dataclass(frozen=True, slots=True)
class Curve:
    id: str
    kind: CurveKind
    label: str
    values: Values
    last: float


class MarkKind(StrEnum):
    """What a horizontal price is."""

    PIVOT = "pivot"
    FIBONACCI = "fibonacci"
    GAP = "gap"
    PROFILE = "profile"
    POOL = "pool"
    NOW = "now"
    ENTRY = "entry"
    STOP = "stop"
    TARGET = "target"
    LIQUIDATION = "liquidation"


@dataclass(frozen=True, slots=True)
class Mark:
    id: str
    kind: MarkKind
    label: str
    price: float
    since: float
    """The place its line begins at."""


@dataclass(frozen=True, slots=True)
class GapZone:
    """An open gap, from the place where it was known."""

    low: float
    high: float
    since: float


@dataclass(frozen=True, slots=True)
class TrendSegment:
    """A straight line over time; `price` is where it ends."""

    id: str
    label: str
    start: tuple[float, float]
    end: tuple[float, float]
    """Place and price."""

    @property
    def price(self) -> float:
        return self.end[1]


@dataclass(frozen=True, slots=True)
class VolumeProfile:
    """Volume by price, lowest bin first. A market that stood at one price has all of it in the first, without width."""

    low: float
    high: float
    volumes: tuple[float, ...]
    poc: float
    """Middle of the bin with the most; of equals, the lowest."""
    value_low: float
    value_high: float
    """Edges of the bins that hold 70 %: grown from the busiest, always by the busier neighbour, of equals the upper."""


@dataclass(frozen=True, slots=True)
class Heat:
    """Liquidations by price (rows, lowest first) and bar."""

    origin: str
    """`modelled` or `observed and modelled`."""
    note: str
    edges: tuple[float, ...]
    """Of the rows: one more than there are."""
    columns: tuple[tuple[float, ...], ...]
    """Pools: dollars that stand to be forced out, by a model, one column for each bar."""
    forced: tuple[tuple[float, ...], ...]
    """Dollars that were forced out and observed, and have not faded by then."""
    observed: tuple[bool, ...]
    heard: tuple[bool, ...]
    """Columns in which silence is a zero."""

    @property
    def standing(self) -> tuple[float, ...]:
        """Pools as of the newest bar, row by row."""
        return self.columns[-1]


@dataclass(frozen=True, slots=True)
class TradePlan:
    """A trade as it is drawn: its levels, and what a trader reads beside them."""

    side: Side
    entry: float
    stop: float
    target: float
    liquidation: float | None
    opened: bool
    """False: a rule turned it into a HOLD."""
    card: str


@dataclass(frozen=True, slots=True)
class PricePanel:
    axis: Axis
    candles: Candles
    curves: tuple[Curve, ...]
    marks: tuple[Mark, ...]
    zones: tuple[GapZone, ...]
    slants: tuple[TrendSegment, ...]
    swing: TrendSegment | None
    profile: VolumeProfile | MissingPanel
    heat: Heat | MissingPanel
    left_out: int
    absent: tuple[MissingPanel, ...]
    """Curves and levels that would be here and are not."""
    trade: TradePlan | None = None


class PanelShape(StrEnum):
    BARS = "bars"
    LINE = "line"


@dataclass(frozen=True, slots=True)
class Panel:
    name: str
    title: str
    shape: PanelShape
    axis: Axis
    values: Values
    rising: tuple[bool, ...]
    """Of bars: which are drawn as rises."""
    last: float
    unit: str
    note: str
    """What a reader must know beside the numbers; may be empty."""


@dataclass(frozen=True, slots=True)
class Picture:
    symbol: Symbol
    mode: Mode
    timeframe: Timeframe
    as_of: Millis
    origin: str
    synthetic: bool
    first: Millis | None
    """When the bar at place 0 opened; None when there is no bar."""
    places: tuple[int, ...]
    width: int
    """How many places there are."""
    times: tuple[Tick, ...]
    title: str
    notes: tuple[str, ...]
    price: PricePanel | MissingPanel
    panels: tuple[Panel | MissingPanel, ...]

    @property
    def watermark(self) -> str:
        """What is written across it: that it is no recorded market; may be empty."""
        return "SYNTHETIC" if self.synthetic else CANDLES_ONLY if self.origin.startswith(CANDLES_ONLY) else ""


@dataclass(frozen=True, slots=True)
class EquityMark:
    place: float
    equity: float
    won: bool


@dataclass(frozen=True, slots=True)
class AccountChart:
    title: str
    label: str
    """PAPER or LIVE."""
    figures: str
    origin: str
    synthetic: bool

    @property
    def watermark(self) -> str:
        return "SYNTHETIC" if self.synthetic else ""


@dataclass(frozen=True, slots=True)
class EquityChart(AccountChart):
    """An account's equity and drawdown. Places are shares of the time from the first point to the last."""

    period: str
    places: tuple[float, ...]
    equity: tuple[float, ...]
    equity_axis: Axis
    drawdown: Values
    """In per cent of the peak, 0 or below."""
    drawdown_axis: Axis
    times: tuple[Tick, ...]
    closes: tuple[EquityMark, ...]
    beside: tuple[tuple[str, tuple[float, ...]], ...] = ()
    """Other equities on the same days, by name."""
    legend: str = ""
    """Return, fall and Sharpe of each line."""


@dataclass(frozen=True, slots=True)
class ReliabilityPanel:
    """One agent. All regimes together are joined by a line; each regime has marks of its own."""

    title: str
    figures: str
    points: tuple[ReliabilityBin, ...]
    regimes: tuple[tuple[str, tuple[ReliabilityBin, ...]], ...]


@dataclass(frozen=True, slots=True)
class ReliabilityChart(AccountChart):
    """What agents claimed against what came; on the diagonal they are equal."""

    panels: tuple[ReliabilityPanel, ...]


def price_text(price: float) -> str:
    """Five digits or more, as prices are quoted."""
    if abs(price) >= 1_000:
        return f"{price:,.0f}"
    return f"{price:,.2f}" if abs(price) >= 1 else f"{price:.4g}"


def short_text(value: float) -> str:
    """Three digits or so, with the usual letters for many zeros."""
    size = abs(value)
    for least, unit, letter in _LETTERS:
        if least <= size < 1e15:
            return f"{value / unit:.3g}{letter}"
    return f"{value:,.0f}" if 1_000 <= size < 1e15 else f"{value:.3g}"


_LETTERS: Final = ((1e12, 1e12, "T"), (1e9, 1e9, "B"), (1e6, 1e6, "M"), (1e4, 1e3, "k"))
HOTTEST: Final = 5


def numbers(picture: Picture) -> dict[str, Any]:
    """The JSON beside the image, of exactly what is drawn. Fewer `bars` than `places` means holes."""
    blanks = [{"what": blank.title, "why": blank.why} for blank in _blanks(picture)]
    return {
        **pick(picture, "symbol", "mode", "timeframe"),
        "asOf": picture.as_of,
        **pick(picture, "origin", "synthetic"),
        "widthPx": WIDTH,
        "heightPx": HEIGHT,
        "first": picture.first,
        "bars": len(picture.places),
        "places": picture.width,
        "notes": picture.notes,
        "price": None if isinstance(picture.price, MissingPanel) else _price(picture, picture.price),
        "panels": tuple(
            pick(panel, "name", "title")
            | {"axis": pick(panel.axis, "low", "high", "scale")}
            | pick(panel, "last", "unit", "note")
            for panel in picture.panels
            if isinstance(panel, Panel)
        ),
        "absent": tuple(blanks),
    }


def _price(picture: Picture, panel: PricePanel) -> dict[str, Any]:
    candles = panel.candles
    last = {name: getattr(candles, name)[-1] for name in ("open", "high", "low", "close")}
    profile, drawn = None, panel.profile
    if isinstance(drawn, VolumeProfile):
        area = {"valueLow": drawn.value_low, "valueHigh": drawn.value_high}
        profile = pick(drawn, "low", "high", "poc") | area
    return {
        "axis": pick(panel.axis, "low", "high", "scale"),
        "last": {"at": (picture.first or 0) + picture.places[-1] * picture.timeframe.millis} | last,
        "levels": tuple(sorted(_levels(panel), key=lambda level: (level["price"], level["id"]))),
        "leftOut": panel.left_out,
        "profile": profile,
        "heat": _heat(picture, panel.heat) if isinstance(panel.heat, Heat) else None,
    }


def _levels(panel: PricePanel) -> Iterator[dict[str, Any]]:
    """Every labelled price: horizontal lines, and where curves and slanting lines stand now."""
    for mark in panel.marks:
        yield pick(mark, "id", "kind", "label", "price")
    for slant in panel.slants:
        yield {"id": slant.id, "kind": "line", "label": slant.label, "price": slant.price}
    for curve in panel.curves:
        kind = "average" if curve.kind is CurveKind.EMA200 else "vwap"
        yield {"id": curve.id, "kind": kind, "label": curve.label, "price": curve.last}


def _heat(picture: Picture, heat: Heat) -> dict[str, Any]:
    opened = ((picture.first or 0) + place * picture.timeframe.millis for place in picture.places)
    return {
        "origin": heat.origin,
        "note": heat.note,
        "observedBars": sum(heat.observed),
        "observedFrom": next((at for at, observed in zip(opened, heat.observed, strict=True) if observed), None),
        "newest": "observed" if heat.observed[-1] else "modelled",
        "forced": _largest(heat.edges, heat.forced[-1]),
        "standing": _largest(heat.edges, heat.standing),
    }


def _largest(edges: Sequence[float], column: Sequence[float]) -> tuple[dict[str, float], ...]:
    cells = zip(edges, edges[1:], column, strict=False)
    largest = sorted((cell for cell in cells if cell[2] > 0), key=lambda cell: (-cell[2], cell[0]))[:HOTTEST]
    return tuple({"low": low, "high": high, "usd": usd} for low, high, usd in largest)


def _blanks(picture: Picture) -> Iterator[MissingPanel]:
    if isinstance(picture.price, MissingPanel):
        yield picture.price
    else:
        yield from picture.price.absent
        yield from (part for part in (picture.price.profile, picture.price.heat) if isinstance(part, MissingPanel))
    yield from (panel for panel in picture.panels if isinstance(panel, MissingPanel))
