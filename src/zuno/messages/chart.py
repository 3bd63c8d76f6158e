"""The numbers of a chart, to be passed beside its image: whoever looks at it need not guess at any of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from zuno.domain.chart import HEIGHT, WIDTH, Blank, Curve, Heat, Panel, Picture, PricePanel, Profile
from zuno.messages.wire import Wire

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
        panels=tuple(_panel(panel) for panel in picture.panels if isinstance(panel, Panel)),
        absent=tuple(AbsentPart(what=blank.title, why=blank.why) for blank in _blanks(picture)),
    )


def _price(picture: Picture, panel: PricePanel) -> PriceNumbers:
    candles, profile = panel.candles, panel.profile
    newest = (picture.first or 0) + picture.places[-1] * picture.timeframe.millis
    bar = LastBar(at=newest, open=candles.open[-1], high=candles.high[-1], low=candles.low[-1], close=candles.close[-1])
    drawn = sorted(_levels(panel), key=lambda level: (level.price, level.id))
    return PriceNumbers(
        axis=AxisNumbers(low=panel.axis.low, high=panel.axis.high, scale=panel.axis.scale),
        last=bar,
        levels=tuple(drawn),
        left_out=panel.left_out,
        profile=_profile(profile) if isinstance(profile, Profile) else None,
        heat=_heat(picture, panel.heat) if isinstance(panel.heat, Heat) else None,
    )


def _levels(panel: PricePanel) -> Iterator[DrawnLevel]:
    for mark in panel.marks:
        yield DrawnLevel(id=mark.id, kind=mark.kind, label=mark.label, price=mark.price)
    for slant in panel.slants:
        yield DrawnLevel(id=slant.id, kind="line", label=slant.label, price=slant.price)
    for curve in panel.curves:
        yield DrawnLevel(id=curve.id, kind=_kind(curve), label=curve.label, price=curve.last)


def _kind(curve: Curve) -> str:
    """As the menu of levels calls it."""
    return "average" if curve.kind == "ema200" else "vwap"


def _profile(profile: Profile) -> ProfileNumbers:
    return ProfileNumbers(
        low=profile.low,
        high=profile.high,
        poc=profile.poc,
        value_low=profile.value_low,
        value_high=profile.value_high,
    )


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


def _panel(panel: Panel) -> PanelNumbers:
    axis = AxisNumbers(low=panel.axis.low, high=panel.axis.high, scale=panel.axis.scale)
    return PanelNumbers(
        name=panel.name, title=panel.title, axis=axis, last=panel.last, unit=panel.unit, note=panel.note
    )


def _blanks(picture: Picture) -> Iterator[Blank]:
    if isinstance(picture.price, Blank):
        yield picture.price
    else:
        yield from picture.price.absent
        yield from (part for part in (picture.price.profile, picture.price.heat) if isinstance(part, Blank))
    yield from (panel for panel in picture.panels if isinstance(panel, Blank))
