"""Prices and shapes that chart readers know: measured levels as a menu, zones where different kinds of them meet, and
patterns in the turns of a zigzag. Heights are logarithms, so that a mirrored shape is found in the same places."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, NamedTuple

from zuno.kernel.units import Millis
from zuno.trading.measure import structure
from zuno.trading.measure.indicators import IndicatorValues
from zuno.trading.measure.portable import GAUGE_DIGITS, RATIO_PLACES, exp, log, places, round_digits
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

    pivot: structure.Pivot
    price: float


@dataclass(frozen=True, slots=True)
class Structure:
    """As of the last bar's close. What has a `known_at` stays the same from then on."""

    pivots: tuple[structure.Pivot, ...]
    swings: tuple[structure.Swing, ...]
    breaks: tuple[structure.Break, ...]
    trend: structure.PriceDirection | None
    gaps: tuple[structure.Gap, ...]
    fibonacci: structure.Fibonacci | None
    lines: tuple[structure.TrendLine, ...]
    divergences: tuple[structure.Divergence, ...]
    profile: VolumeProfile | None
    anchored: tuple[AnchoredVwap, ...]
    log_atr: float | None
    """ATR14 of log prices: the same in a rise and in the fall that mirrors it."""
    levels: tuple[PriceLevel, ...] = ()
    zones: tuple[LevelZone, ...] = ()


def list_levels(timeframe: Timeframe, readings: IndicatorValues, shape: Structure) -> tuple[PriceLevel, ...]:
    """The menu by price, then name, rounded so that one price computed in two ways is one. Only prices above zero."""
    now = Millis(readings.at + timeframe.millis)
    moving = (*_lines(shape, readings.at), *_indicator_levels(readings, shape))
    candidates = (*_turns(shape), *_gaps(shape), *((*level, now) for level in moving))
    decimals = places(readings.close, GAUGE_DIGITS)
    named = (
        PriceLevel(f"{timeframe}.{name}", kind, round(price, decimals), since)
        for name, kind, price, since in candidates
        if price > 0
    )
    return tuple(sorted(named, key=lambda level: (level.price, level.id)))


def find_zones(menu: Sequence[PriceLevel], atr: float | None) -> tuple[LevelZone, ...]:
    """Zones by price: most kinds first, then the narrowest, then the lowest; no level is in two."""
    if not atr:
        return ()
    left = sorted(menu, key=lambda level: (level.price, level.id))
    zones_from = [_best_zone(left, start, atr) for start in range(len(left))]
    ranks = [zone.rank for zone in zones_from]
    zones: list[LevelZone] = []
    while (best := max(ranks, default=_NO_ZONE.rank))[0] > 1:
        start = ranks.index(best)
        end = start + zones_from[start].size
        group = left[start:end]
        kinds = tuple(sorted({level.kind for level in group}))
        zones.append(LevelZone(group[0].price, group[-1].price, kinds, tuple(level.id for level in group)))
        del left[start:end], zones_from[start:end], ranks[start:end]
        for before in range(start - 1, -1, -1):  # those that may have reached into what was taken
            zones_from[before] = _best_zone(left, before, atr)
            ranks[before] = zones_from[before].rank
            if group[0].price - left[before].price > 2 * ZONE_WIDTH * atr:
                break
    return tuple(sorted(zones, key=lambda zone: zone.low))


def _turns(shape: Structure) -> Iterator[tuple[str, LevelKind, float, Millis]]:
    for extreme in structure.Extreme:
        newest = structure.select_pivots(extreme, shape.pivots)[::-1][:NEWEST]
        for place, pivot in enumerate(newest, 1):
            yield f"pivot_{extreme}_{place}", LevelKind.PIVOT, pivot.price, pivot.known_at
    if (swing := shape.fibonacci) is not None:
        for name, ratios in (("fib", swing.retracements), ("fib_ext", swing.extensions)):
            for each in ratios:
                yield f"{name}_{each.ratio * 1_000:.0f}", LevelKind.FIBONACCI, each.price, swing.known_at


def _gaps(shape: Structure) -> Iterator[tuple[str, LevelKind, float, Millis]]:
    for way in structure.PriceDirection:
        newest = [gap for gap in reversed(shape.gaps) if gap.way is way and gap.filled_at is None][:NEWEST]
        for place, gap in enumerate(newest, 1):
            yield f"gap_{way}_{place}_low", LevelKind.GAP, gap.low, gap.known_at
            yield f"gap_{way}_{place}_high", LevelKind.GAP, gap.high, gap.known_at


def _lines(shape: Structure, at: Millis) -> Iterator[tuple[str, LevelKind, float]]:
    """The newest of each kind that still stands, at the last bar."""
    for extreme, name in ((structure.Extreme.HIGH, "resistance"), (structure.Extreme.LOW, "support")):
        standing = [line for line in shape.lines if line.extreme is extreme and line.broken_at is None]
        for line in standing[-1:]:
            # A bar's price belongs to when it opened, as the pivots' do.
            yield f"line_{name}", LevelKind.LINE, line.price_at(at)


def _indicator_levels(readings: IndicatorValues, shape: Structure) -> Iterator[tuple[str, LevelKind, float]]:
    for kind, names in _READ.items():
        for name in names:
            if (price := getattr(readings, name)) is not None:
                yield name, kind, price
    for each in shape.anchored:
        yield f"vwap_since_{each.pivot.extreme}", LevelKind.VWAP, each.price
    if (profile := shape.profile) is not None:
        for name in ("poc", "value_low", "value_high"):
            yield name, LevelKind.PROFILE, getattr(profile, name)


class _Zone(NamedTuple):
    """The best zone that begins at a level: kinds that meet in it, minus its width in ATR, and its number of levels."""

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


LEVEL: Final = 0.5
"""Of the ATR: turns no further apart are at one height."""
DEPTH: Final = 1.5
"""Of the ATR: how far the market must come back between two tops."""
POLE: Final = 4.0
"""Of the ATR: a move that a flag can hang on."""
SHALLOW: Final = (0.1, 0.5)
"""Of the pole: how much of it a flag may give back."""
PLAYED_OUT: Final = 4.0
"""Of the ATR: a shape whose line lies further away has done what it would."""
_NEWEST: Final = 6
"""Turns that a shape can have: three of a kind, which the others lie between."""


class PatternKind(StrEnum):
    HEAD_AND_SHOULDERS = "H&S"
    INVERSE_HEAD_AND_SHOULDERS = "inv_H&S"
    DOUBLE_TOP = "double_top"
    DOUBLE_BOTTOM = "double_bottom"
    BULL_FLAG = "bull_flag"
    BEAR_FLAG = "bear_flag"
    ASCENDING_TRIANGLE = "ascending_triangle"
    WEDGE = "wedge"
    OTHER = "other"
    """A triangle that does not ascend."""


@dataclass(frozen=True, slots=True)
class Formation:
    shape: PatternKind
    way: structure.PriceDirection | None
    """Where it points; None where it may break either way."""
    line: float
    """The price it turns on: a neckline, the (nearer) side of a triangle, the end of a pole."""
    confirmed: bool


def find_pattern(turns: Sequence[structure.Pivot], close: float, log_atr: float | None) -> Formation | None:
    """The shape of the newest confirmed turns; None where there is none. `log_atr`: the ATR of log prices."""
    if not log_atr or log_atr <= 0:
        return None
    newest = structure.build_zigzag(turns, _NEWEST)
    *heights, here = log([*(end.price for end in newest), close]).tolist()
    ends = [replace(end, price=height) for end, height in zip(newest, heights, strict=True)]
    for find in (_head, _corner, _double, _flag):
        shape = find(ends, here, log_atr)
        if shape is not None and abs(here - shape.line) <= PLAYED_OUT * log_atr:
            return replace(shape, line=round_digits(float(exp(shape.line)), GAUGE_DIGITS))
    return None


def _head(ends: Sequence[structure.Pivot], close: float, atr: float) -> Formation | None:
    """Three of a kind, the middle one furthest out, its neighbours at one height."""
    for extreme in _newest_first(ends):
        same = structure.select_pivots(extreme, ends)[-3:]
        if len(same) < 3:
            continue
        left, head, right = same
        out = -extreme.away.sign
        beyond = min(out * (head.price - left.price), out * (head.price - right.price))
        if beyond < atr or abs(left.price - right.price) > 2 * LEVEL * atr:
            continue
        if between := _between(ends, left, right):
            top = extreme is structure.Extreme.HIGH
            shape = PatternKind.HEAD_AND_SHOULDERS if top else PatternKind.INVERSE_HEAD_AND_SHOULDERS
            return _at(shape, extreme.away, sum(between) / len(between), close)
    return None


def _double(ends: Sequence[structure.Pivot], close: float, atr: float) -> Formation | None:
    for extreme in _newest_first(ends):
        same = structure.select_pivots(extreme, ends)[-2:]
        if len(same) < 2 or abs(same[0].price - same[1].price) > LEVEL * atr:
            continue
        if between := _between(ends, *same):
            top = extreme is structure.Extreme.HIGH
            neck = min(between) if top else max(between)
            if abs(same[1].price - neck) >= DEPTH * atr:
                return _at(PatternKind.DOUBLE_TOP if top else PatternKind.DOUBLE_BOTTOM, extreme.away, neck, close)
    return None


def _between(ends: Sequence[structure.Pivot], first: structure.Pivot, last: structure.Pivot) -> list[float]:
    """Prices of the turns of the other kind between two of a kind."""
    return [end.price for end in ends if end.extreme is not first.extreme and first.at < end.at < last.at]


def _corner(ends: Sequence[structure.Pivot], close: float, atr: float) -> Formation | None:
    """Two highs and two lows that come together: triangles and wedges."""
    highs, lows = (structure.select_pivots(extreme, ends)[-2:] for extreme in structure.Extreme)
    if len(highs) < 2 or len(lows) < 2:
        return None
    top, bottom = highs[1].price - highs[0].price, lows[1].price - lows[0].price
    if highs[1].price - lows[1].price >= highs[0].price - lows[0].price:
        return None
    flat = LEVEL * atr
    if abs(top) <= flat < bottom:
        return _at(PatternKind.ASCENDING_TRIANGLE, structure.PriceDirection.UP, highs[1].price, close)
    if abs(bottom) <= flat and top < -flat:
        return _at(PatternKind.OTHER, structure.PriceDirection.DOWN, lows[1].price, close)
    if top > flat and bottom > flat:
        return _at(PatternKind.WEDGE, structure.PriceDirection.DOWN, lows[1].price, close)
    if top < -flat and bottom < -flat:
        return _at(PatternKind.WEDGE, structure.PriceDirection.UP, highs[1].price, close)
    nearer = min(highs[1].price, lows[1].price, key=lambda side: abs(close - side))
    return Formation(PatternKind.OTHER, None, nearer, False) if top < -flat < flat < bottom else None


def _flag(ends: Sequence[structure.Pivot], close: float, atr: float) -> Formation | None:
    """A long swing of which little was given back since."""
    if len(ends) < 2:
        return None
    foot, tip = ends[-2:]
    pole = tip.price - foot.price
    given = (tip.price - close) / pole if pole else 0.0
    if abs(pole) < POLE * atr or not SHALLOW[0] <= given <= SHALLOW[1]:
        return None
    up = pole > 0
    way = structure.PriceDirection.UP if up else structure.PriceDirection.DOWN
    return Formation(PatternKind.BULL_FLAG if up else PatternKind.BEAR_FLAG, way, tip.price, False)


def _newest_first(ends: Sequence[structure.Pivot]) -> list[structure.Extreme]:
    """Kinds of turns, that of the last first."""
    return sorted(structure.Extreme, key=lambda extreme: extreme is not ends[-1].extreme) if ends else []


def _at(shape: PatternKind, way: structure.PriceDirection, line: float, close: float) -> Formation:
    return Formation(shape, way, line, close > line if way is structure.PriceDirection.UP else close < line)
