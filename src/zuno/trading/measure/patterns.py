"""Shapes that chart readers know by name, found in the turns of a zigzag; each with the way it points.

Heights are logarithms of prices, and the ATR is that of logarithms: a shape and its mirror image, every log return
negated, are then found in the same places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from zuno.trading.measure.portable import GAUGE_DIGITS, exp, log, round_digits
from zuno.trading.measure.structure import Extreme, Pivot, PriceDirection, build_zigzag, select_pivots

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
    way: PriceDirection | None
    """Where it points; None where it may break either way."""
    line: float
    """The price it turns on: a neckline, the side of a triangle (the nearer where it may break either way), the end of
    a pole."""
    confirmed: bool
    """Whether the last close lies beyond that line."""


def find_pattern(turns: Sequence[Pivot], close: float, log_atr: float | None) -> Formation | None:
    """The shape of the newest confirmed turns, the one that takes most of them first; None where there is none, or no
    measure for it. `log_atr`: the ATR of log prices."""
    if not log_atr or log_atr <= 0:
        return None
    newest = build_zigzag(turns, _NEWEST)
    *heights, here = log([*(end.price for end in newest), close]).tolist()
    ends = [replace(end, price=height) for end, height in zip(newest, heights, strict=True)]
    found = (
        _head(ends, here, log_atr),
        _corner(ends, here, log_atr),
        _double(ends, here, log_atr),
        _flag(ends, here, log_atr),
    )
    shape = next((each for each in found if each is not None and abs(here - each.line) <= PLAYED_OUT * log_atr), None)
    return None if shape is None else replace(shape, line=round_digits(float(exp(shape.line)), GAUGE_DIGITS))


def _head(ends: Sequence[Pivot], close: float, atr: float) -> Formation | None:
    """Three of a kind, the middle one furthest out, its neighbours at one height."""
    for extreme in _newest_first(ends):
        same = select_pivots(extreme, ends)[-3:]
        if len(same) < 3:
            continue
        left, head, right = same
        out = 1 if extreme is Extreme.HIGH else -1
        beyond = min(out * (head.price - left.price), out * (head.price - right.price))
        if beyond < atr or abs(left.price - right.price) > 2 * LEVEL * atr:
            continue
        between = [end.price for end in ends if end.extreme is not extreme and left.at < end.at < right.at]
        if between:
            neck = sum(between) / len(between)
            top = extreme is Extreme.HIGH
            shape = PatternKind.HEAD_AND_SHOULDERS if top else PatternKind.INVERSE_HEAD_AND_SHOULDERS
            return _at(shape, PriceDirection.DOWN if top else PriceDirection.UP, neck, close)
    return None


def _double(ends: Sequence[Pivot], close: float, atr: float) -> Formation | None:
    for extreme in _newest_first(ends):
        same = select_pivots(extreme, ends)[-2:]
        if len(same) < 2 or abs(same[0].price - same[1].price) > LEVEL * atr:
            continue
        between = [end.price for end in ends if end.extreme is not extreme and same[0].at < end.at < same[1].at]
        top = extreme is Extreme.HIGH
        if not between:
            continue
        neck = min(between) if top else max(between)
        if abs(same[1].price - neck) < DEPTH * atr:
            continue
        return _at(
            PatternKind.DOUBLE_TOP if top else PatternKind.DOUBLE_BOTTOM,
            PriceDirection.DOWN if top else PriceDirection.UP,
            neck,
            close,
        )
    return None


def _corner(ends: Sequence[Pivot], close: float, atr: float) -> Formation | None:
    """Two highs and two lows that come together: triangles and wedges."""
    highs, lows = select_pivots(Extreme.HIGH, ends)[-2:], select_pivots(Extreme.LOW, ends)[-2:]
    if len(highs) < 2 or len(lows) < 2:
        return None
    top, bottom = highs[1].price - highs[0].price, lows[1].price - lows[0].price
    if highs[1].price - lows[1].price >= highs[0].price - lows[0].price:
        return None
    flat = LEVEL * atr
    if abs(top) <= flat < bottom:
        return _at(PatternKind.ASCENDING_TRIANGLE, PriceDirection.UP, highs[1].price, close)
    if abs(bottom) <= flat and top < -flat:
        return _at(PatternKind.OTHER, PriceDirection.DOWN, lows[1].price, close)
    if top > flat and bottom > flat:
        return _at(PatternKind.WEDGE, PriceDirection.DOWN, lows[1].price, close)
    if top < -flat and bottom < -flat:
        return _at(PatternKind.WEDGE, PriceDirection.UP, highs[1].price, close)
    nearer = min(highs[1].price, lows[1].price, key=lambda side: abs(close - side))
    return Formation(PatternKind.OTHER, None, nearer, False) if top < -flat < flat < bottom else None


def _flag(ends: Sequence[Pivot], close: float, atr: float) -> Formation | None:
    """A long swing of which little was given back since."""
    if len(ends) < 2:
        return None
    foot, tip = ends[-2:]
    pole = tip.price - foot.price
    given = (tip.price - close) / pole if pole else 0.0
    if abs(pole) < POLE * atr or not SHALLOW[0] <= given <= SHALLOW[1]:
        return None
    up = pole > 0
    return Formation(
        PatternKind.BULL_FLAG if up else PatternKind.BEAR_FLAG,
        PriceDirection.UP if up else PriceDirection.DOWN,
        tip.price,
        False,
    )


def _newest_first(ends: Sequence[Pivot]) -> tuple[Extreme, ...]:
    if not ends:
        return ()
    last = ends[-1].extreme
    return (last, Extreme.LOW if last is Extreme.HIGH else Extreme.HIGH)


def _at(shape: PatternKind, way: PriceDirection, line: float, close: float) -> Formation:
    return Formation(shape, way, line, close > line if way is PriceDirection.UP else close < line)
