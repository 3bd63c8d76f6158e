"""What a chart shows, as plain data: everything a painter draws is here already, and a painter decides nothing.

Bars stand on places, one for each bucket of time from the first to the last; a bucket without a bar is an empty place.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from zuno.domain.trading import Mode, Symbol, Timeframe
from zuno.domain.units import Millis

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
class Zone:
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
class Profile:
    """Volume by price of the bars that are drawn, lowest bin first."""

    low: float
    high: float
    volumes: tuple[float, ...]
    poc: float
    value_low: float
    value_high: float


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
    zones: tuple[Zone, ...]
    slants: tuple[Slant, ...]
    swing: Slant | None
    """What the Fibonacci levels divide."""
    profile: Profile | Blank
    heat: Heat | Blank
    left_out: int
    """Levels in view that had no room."""
    absent: tuple[Blank, ...]
    """Curves and levels that would be here and are not."""


class Shape(StrEnum):
    BARS = "bars"
    LINE = "line"


@dataclass(frozen=True, slots=True)
class Panel:
    name: str
    title: str
    shape: Shape
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
