"""The prices that were measured, as a menu, and the zones where different kinds of them meet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from zuno.kernel.units import Millis
from zuno.trading.measure.indicators import IndicatorValues
from zuno.trading.measure.portable import GAUGE_DIGITS, RATIO_PLACES, places
from zuno.trading.measure.structure import Extreme, Fibonacci, Gap, Pivot, PriceDirection, TrendLine, select_pivots
from zuno.trading.model.chart import VolumeProfile
from zuno.trading.model.market import Timeframe

ZONE_WIDTH: Final = 0.25
"""Of the ATR: levels no further apart than this meet."""
NEWEST: Final = 5
"""Pivots of each kind, and open gaps of each way, that the menu shows."""


class LevelKind(StrEnum):
    PIVOT = "pivot"
    FIBONACCI = "fibonacci"
    GAP = "gap"
    LINE = "line"
    AVERAGE = "average"
    BAND = "band"
    CLOUD = "cloud"
    VWAP = "vwap"
    PROFILE = "profile"


@dataclass(frozen=True, slots=True)
class PriceLevel:
    id: str
    """The timeframe and what it is: `4h.pivot_high_1` is the newest; nothing else in a menu has it."""
    kind: LevelKind
    price: float
    since: Millis
    """From when on it could be known at this price; what moves with every bar, since the last one closed."""


@dataclass(frozen=True, slots=True)
class LevelZone:
    """Levels of at least two kinds within a quarter of an ATR."""

    low: float
    high: float
    kinds: tuple[LevelKind, ...]
    levels: tuple[str, ...]
    """Their ids, by price."""


@dataclass(frozen=True, slots=True)
class AnchoredVwap:
    """The volume-weighted price since a confirmed pivot."""

    pivot: Pivot
    price: float


@dataclass(frozen=True, slots=True)
class Measured:
    """Everything levels are read from, as of one bar's close."""

    timeframe: Timeframe
    now: Millis
    readings: IndicatorValues
    pivots: tuple[Pivot, ...]
    fibonacci: Fibonacci | None
    gaps: tuple[Gap, ...]
    lines: tuple[TrendLine, ...]
    profile: VolumeProfile | None
    anchored: tuple[AnchoredVwap, ...]


def list_levels(measured: Measured) -> tuple[PriceLevel, ...]:
    """The menu, by price and then by name, each to the digits a gauge is kept to: a price that was computed in two ways
    is one. What is not above zero is none."""
    found = (*_turns(measured), *_gaps(measured), *_lines(measured), *_indicator_levels(measured))
    decimals = places(measured.readings.close, GAUGE_DIGITS)
    named = (
        PriceLevel(f"{measured.timeframe}.{name}", kind, round(price, decimals), since)
        for name, kind, price, since in found
        if price > 0
    )
    return tuple(sorted(named, key=lambda level: (level.price, level.id)))


def find_zones(menu: Sequence[PriceLevel], atr: float | None) -> tuple[LevelZone, ...]:
    """By price. The one where most kinds meet is taken first, of those the narrowest, then the lowest; no level is in
    two. None without an ATR, or with one of zero."""
    if not atr:
        return ()
    left = sorted(menu, key=lambda level: (level.price, level.id))
    zones_from = [_best_zone(left, start, atr) for start in range(len(left))]
    ranks = [zone.rank for zone in zones_from]
    found: list[LevelZone] = []
    while (best := max(ranks, default=_NO_ZONE.rank))[0] > 1:
        start = ranks.index(best)
        end = start + zones_from[start].size
        group = left[start:end]
        kinds = tuple(sorted({level.kind for level in group}))
        found.append(LevelZone(group[0].price, group[-1].price, kinds, tuple(level.id for level in group)))
        del left[start:end], zones_from[start:end], ranks[start:end]
        for before in range(start - 1, -1, -1):  # those that may have reached into what was taken
            zones_from[before] = _best_zone(left, before, atr)
            ranks[before] = zones_from[before].rank
            if group[0].price - left[before].price > 2 * ZONE_WIDTH * atr:
                break
    return tuple(sorted(found, key=lambda zone: zone.low))


_Found = tuple[str, LevelKind, float, Millis]


def _turns(measured: Measured) -> Iterator[_Found]:
    for extreme in Extreme:
        newest = select_pivots(extreme, measured.pivots)[::-1][:NEWEST]
        for place, pivot in enumerate(newest, 1):
            yield f"pivot_{extreme}_{place}", LevelKind.PIVOT, pivot.price, pivot.known_at
    if (swing := measured.fibonacci) is not None:
        for name, ratios in (("fib", swing.retracements), ("fib_ext", swing.extensions)):
            for each in ratios:
                yield f"{name}_{each.ratio * 1_000:.0f}", LevelKind.FIBONACCI, each.price, swing.known_at


def _gaps(measured: Measured) -> Iterator[_Found]:
    for way in PriceDirection:
        newest = [gap for gap in reversed(measured.gaps) if gap.way is way and gap.filled_at is None][:NEWEST]
        for place, gap in enumerate(newest, 1):
            yield f"gap_{way}_{place}_low", LevelKind.GAP, gap.low, gap.known_at
            yield f"gap_{way}_{place}_high", LevelKind.GAP, gap.high, gap.known_at


def _lines(measured: Measured) -> Iterator[_Found]:
    """The newest of each kind that still stands, where it is now."""
    for extreme, name in ((Extreme.HIGH, "resistance"), (Extreme.LOW, "support")):
        standing = [line for line in measured.lines if line.extreme is extreme and line.broken_at is None]
        for line in standing[-1:]:
            # A bar's price belongs to when it opened, as the pivots' do.
            yield f"line_{name}", LevelKind.LINE, line.price_at(measured.readings.at), measured.now


def _indicator_levels(measured: Measured) -> Iterator[_Found]:
    now, seen = measured.now, measured.readings
    for kind, names in _READ.items():
        for name in names:
            if (price := getattr(seen, name)) is not None:
                yield name, kind, price, now
    for each in measured.anchored:
        yield f"vwap_since_{each.pivot.extreme}", LevelKind.VWAP, each.price, now
    if (profile := measured.profile) is not None:
        for name in ("poc", "value_low", "value_high"):
            yield name, LevelKind.PROFILE, getattr(profile, name), now


class _Zone(NamedTuple):
    """The best zone that begins at a level: how many kinds meet in it and how narrow it is, in ATR below zero; how many
    levels it has."""

    rank: tuple[int, float]
    size: int


_NO_ZONE: Final = _Zone((0, 0.0), 0)


def _best_zone(left: Sequence[PriceLevel], start: int, atr: float) -> _Zone:
    best, low = _NO_ZONE, left[start].price
    kinds = {left[start].kind}
    met = 1
    for end in range(start + 1, len(left)):
        width = round((left[end].price - low) / atr, RATIO_PLACES)
        if width > ZONE_WIDTH:
            break
        kinds.add(left[end].kind)
        if len(kinds) > met:  # levels come by price: a wider one is better by its kinds alone
            met = len(kinds)
            best = _Zone((met, -width), end + 1 - start)
    return best


_READ: Final = {
    LevelKind.AVERAGE: ("ema9", "ema21", "ema50", "ema200"),
    LevelKind.BAND: ("bb_upper", "bb_middle", "bb_lower", "keltner_upper", "keltner_lower", "supertrend"),
    LevelKind.CLOUD: ("tenkan", "kijun", "span_a", "span_b"),
    LevelKind.VWAP: ("vwap",),
}
