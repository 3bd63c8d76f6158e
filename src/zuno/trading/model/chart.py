"""The numbers of a chart, to be passed beside its image: whoever looks at it need not guess at any of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from zuno.kernel.units import Millis
from zuno.kernel.wire import Wire
from zuno.trading.model.market import Mode, Symbol, Timeframe

WIDTH: Final = 1_232


HEIGHT: Final = 952
"""Pixels. A vision model scales down what is larger than it sees, and small print is gone. Claude sees 1,568 patches of
28 × 28 pixels and no side beyond 1,568; Gemini 3 gives an image 1,120 tokens, of larger patches. This is 44 × 34
patches: under both, so that what is painted is what is seen, and wide enough for three pixels to each of 260 bars."""


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
class Blank:
    """Something that would be drawn, and why it is not."""

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
    NOW = "now"


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
class Slant:
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
    """`observed`, `modelled` or `observed and modelled`."""
    note: str
    edges: tuple[float, ...]
    """Of the rows: one more than there are."""
    columns: tuple[tuple[float, ...], ...]
    """Dollars, one column for each bar."""
    observed: tuple[bool, ...]
    """Columns of dollars that were forced out; the others are of those that stand to be, by a model."""
    heard: tuple[bool, ...]
    """Columns in which a zero is a zero."""
    standing: tuple[float, ...]
    """Dollars that stand to be forced out as of the newest bar, by the model, row by row."""


@dataclass(frozen=True, slots=True)
class PricePanel:
    axis: Axis
    candles: Candles
    curves: tuple[Curve, ...]
    marks: tuple[Mark, ...]
    zones: tuple[GapZone, ...]
    slants: tuple[Slant, ...]
    swing: Slant | None
    """What the Fibonacci levels divide."""
    profile: VolumeProfile | Blank
    heat: Heat | Blank
    left_out: int
    """Levels in view that had no room."""
    absent: tuple[Blank, ...]
    """Curves and levels that would be here and are not."""


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
    """Where each bar stands."""
    width: int
    """How many places there are."""
    times: tuple[Tick, ...]
    title: str
    notes: tuple[str, ...]
    price: PricePanel | Blank
    panels: tuple[Panel | Blank, ...]


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


class AxisNumbers(Wire):
    low: float
    high: float
    scale: str
    """`log`: equal distances are equal ratios."""


class LastBar(Wire):
    at: int
    """When it opened, in Unix milliseconds."""
    open: float
    high: float
    low: float
    close: float


class DrawnLevel(Wire):
    """A price that is drawn and labelled: a horizontal line, or where a curve or a slanting line stands now."""

    id: str
    kind: str
    label: str
    price: float


class ProfileNumbers(Wire):
    """Volume by price of the bars that are drawn."""

    low: float
    high: float
    poc: float
    value_low: float
    value_high: float


class HeatCell(Wire):
    low: float
    high: float
    usd: float


class HeatNumbers(Wire):
    origin: str
    """`observed`, `modelled` or `observed and modelled`."""
    note: str
    observed_bars: int
    observed_from: int | None
    """When the first bar opened that shows what was forced out, in Unix milliseconds; the bars that are not observed
    show what stands to be, by a model."""
    newest: str
    """What the newest bar is: `observed` or `modelled`."""
    largest: tuple[HeatCell, ...]
    """Of the newest bar, the largest first."""
    standing: tuple[HeatCell, ...]
    """What stands to be forced out as of the newest bar, by the model alone, the largest first."""


class PriceNumbers(Wire):
    axis: AxisNumbers
    last: LastBar
    levels: tuple[DrawnLevel, ...]
    """Everything that is labelled, by price."""
    left_out: int
    """Pivots and gaps in view that had no room."""
    profile: ProfileNumbers | None
    heat: HeatNumbers | None


class PanelNumbers(Wire):
    name: str
    title: str
    axis: AxisNumbers
    last: float
    unit: str
    note: str


class AbsentPart(Wire):
    what: str
    why: str


class ChartNumbers(Wire):
    symbol: str
    mode: str
    timeframe: str
    as_of: int
    origin: str
    synthetic: bool
    width_px: int
    height_px: int
    first: int | None
    """When the first bar opened, in Unix milliseconds."""
    bars: int
    places: int
    """Buckets of time from the first to the newest that could have closed; fewer bars than this means holes."""
    notes: tuple[str, ...]
    price: PriceNumbers | None
    panels: tuple[PanelNumbers, ...]
    absent: tuple[AbsentPart, ...]


def numbers(picture: Picture) -> ChartNumbers:
    """Of exactly what is drawn."""
    return ChartNumbers(
        symbol=picture.symbol,
        mode=picture.mode,
        timeframe=picture.timeframe,
        as_of=picture.as_of,
        origin=picture.origin,
        synthetic=picture.synthetic,
        width_px=WIDTH,
        height_px=HEIGHT,
        first=picture.first,
        bars=len(picture.places),
        places=picture.width,
        notes=picture.notes,
        price=None if isinstance(picture.price, Blank) else _price(picture, picture.price),
        panels=tuple(
            PanelNumbers.model_validate(panel, from_attributes=True)
            for panel in picture.panels
            if isinstance(panel, Panel)
        ),
        absent=tuple(AbsentPart(what=blank.title, why=blank.why) for blank in _blanks(picture)),
    )


def _price(picture: Picture, panel: PricePanel) -> PriceNumbers:
    candles, profile = panel.candles, panel.profile
    newest = (picture.first or 0) + picture.places[-1] * picture.timeframe.millis
    bar = LastBar(at=newest, open=candles.open[-1], high=candles.high[-1], low=candles.low[-1], close=candles.close[-1])
    drawn = sorted(_levels(panel), key=lambda level: (level.price, level.id))
    return PriceNumbers(
        axis=AxisNumbers.model_validate(panel.axis, from_attributes=True),
        last=bar,
        levels=tuple(drawn),
        left_out=panel.left_out,
        profile=ProfileNumbers.model_validate(profile, from_attributes=True)
        if isinstance(profile, VolumeProfile)
        else None,
        heat=_heat(picture, panel.heat) if isinstance(panel.heat, Heat) else None,
    )


def _levels(panel: PricePanel) -> Iterator[DrawnLevel]:
    for mark in panel.marks:
        yield DrawnLevel.model_validate(mark, from_attributes=True)
    for slant in panel.slants:
        yield DrawnLevel(id=slant.id, kind="line", label=slant.label, price=slant.price)
    for curve in panel.curves:
        yield DrawnLevel(id=curve.id, kind=_kind(curve), label=curve.label, price=curve.last)


def _kind(curve: Curve) -> str:
    """As the menu of levels calls it."""
    return "average" if curve.kind == "ema200" else "vwap"


def _heat(picture: Picture, heat: Heat) -> HeatNumbers:
    opened = ((picture.first or 0) + place * picture.timeframe.millis for place in picture.places)
    return HeatNumbers(
        origin=heat.origin,
        note=heat.note,
        observed_bars=sum(heat.observed),
        observed_from=next((at for at, observed in zip(opened, heat.observed, strict=True) if observed), None),
        newest="observed" if heat.observed[-1] else "modelled",
        largest=_largest(heat.edges, heat.columns[-1]),
        standing=_largest(heat.edges, heat.standing),
    )


def _largest(edges: Sequence[float], column: Sequence[float]) -> tuple[HeatCell, ...]:
    cells = zip(edges, edges[1:], column, strict=False)
    found = sorted((cell for cell in cells if cell[2] > 0), key=lambda cell: (-cell[2], cell[0]))[:HOTTEST]
    return tuple(HeatCell(low=low, high=high, usd=usd) for low, high, usd in found)


def _blanks(picture: Picture) -> Iterator[Blank]:
    if isinstance(picture.price, Blank):
        yield picture.price
    else:
        yield from picture.price.absent
        yield from (part for part in (picture.price.profile, picture.price.heat) if isinstance(part, Blank))
    yield from (panel for panel in picture.panels if isinstance(panel, Blank))
