"""How far prices reach: ATR, the bands drawn with it, Bollinger's, the squeeze between them, Supertrend, Ichimoku."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
import talib

from zuno.trading.measure.bars import Floats
from zuno.trading.measure.indicators.momentum import ema
from zuno.trading.measure.indicators.rolling import highest, lag, lowest, rolling_sum, row_blocks

ATR_BARS: Final = 14
BOLLINGER: Final = (20, 2.0)
KELTNER: Final = (20, 1.5)
SUPERTREND: Final = (10, 3.0)
TENKAN: Final = 9
KIJUN: Final = 26
SENKOU_B: Final = 52
SHIFT: Final = 26
"""Bars the cloud stands ahead of what it is computed from, and chikou behind."""
_SLACK: Final = 1e-12
"""Of the price: what rounding may put between two bands that are the same."""


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    upper: Floats
    middle: Floats
    lower: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Ichimoku:
    """Every row holds what was known when its bar closed."""

    tenkan: Floats
    kijun: Floats
    span_a: Floats
    """The cloud over this bar: computed 26 bars before it."""
    span_b: Floats
    lead_a: Floats
    """The cloud that will stand over the bar 26 ahead."""
    lead_b: Floats
    chikou: Floats
    """This bar's close, to be drawn 26 bars back: kept where it is known, and unknown while there is no such bar."""


def atr(high: Floats, low: Floats, close: Floats, bars: int = ATR_BARS) -> Floats:
    """Wilder's average of the true range; the first bar has none, for nothing closed before it."""
    return talib.ATR(high, low, close, bars)


def bollinger(close: Floats) -> Band:
    """The mean of 20 closes, and twice their (population) deviation either side. (ta-lib takes the square of the mean
    from the mean of the squares, which leaves half the digits.)"""
    window, width = BOLLINGER
    middle = rolling_sum(close, window)
    middle /= window
    upper, lower = np.full(len(close), np.nan), np.full(len(close), np.nan)
    before = window - 1
    for rows in row_blocks(len(close) - before):
        start, stop = rows.start + before, rows.stop + before
        mean, squares, apart = middle[start:stop], np.zeros(stop - start), np.empty(stop - start)
        for back in range(window):
            np.subtract(close[start - back : stop - back], mean, out=apart)
            squares += np.square(apart, out=apart)
        spread = width * np.sqrt(squares / window)
        np.add(mean, spread, out=upper[start:stop])
        np.subtract(mean, spread, out=lower[start:stop])
    return Band(upper, middle, lower)


def keltner(high: Floats, low: Floats, close: Floats) -> Band:
    """EMA20, and 1.5 times the ATR of 20 bars either side."""
    window, width = KELTNER
    middle = ema(close, window)
    spread = width * atr(high, low, close, window)
    return Band(middle + spread, middle, middle - spread)


def squeeze(inner: Band, outer: Band) -> Floats:
    """1 where Bollinger's bands lie inside Keltner's, else 0; in a market that stands still both are one line: 1."""
    slack = _SLACK * inner.middle
    inside = (inner.upper <= outer.upper + slack) & (inner.lower >= outer.lower - slack)
    return np.where(np.isnan(inner.upper) | np.isnan(outer.upper), np.nan, inside.astype(np.float64))


def supertrend(high: Floats, low: Floats, close: Floats) -> tuple[Floats, Floats]:
    """Supertrend 10×3: the line, and which side the price is on (1 above it, −1 below).

    Bands of 3 ATR10 about the bar's middle, each only ever drawn nearer until a close has gone through it. It begins
    above the line when the first close that has an ATR is not below its bar's middle.
    """
    bars, width = SUPERTREND
    spread = width * atr(high, low, close, bars)
    middle = (high + low) / 2
    line, sides = np.full(len(close), np.nan), np.full(len(close), np.nan)
    known = np.flatnonzero(~np.isnan(spread))
    if not len(known):
        return line, sides
    start = int(known[0])
    rows = zip(*((column[start:]).tolist() for column in (middle + spread, middle - spread, close)), strict=True)
    found = _ratchet(rows, up=bool(close[start] >= middle[start]))
    line[start:] = [price for price, _ in found]
    sides[start:] = [side for _, side in found]
    return line, sides


def newest_supertrends(high: Floats, low: Floats, close: Floats, spread: Floats) -> tuple[Floats, Floats]:
    """The last values of `supertrend` for many windows of one length at once, each a column; `spread`: their ATR10 by
    the width, known of every row."""
    middle = (high + low) / 2
    uppers, lowers = middle + spread, middle - spread
    many = close.shape[1]
    up = close[0] >= middle[0]
    ceiling, floor, before = np.full(many, math.inf), np.full(many, -math.inf), np.full(many, math.nan)
    for upper, lower, now in zip(uppers, lowers, close, strict=True):
        np.copyto(ceiling, upper, where=(upper < ceiling) | (before > ceiling))
        np.copyto(floor, lower, where=(lower > floor) | (before < floor))
        up = np.where(up, now >= floor, now > ceiling)
        before = now
    return np.where(up, floor, ceiling), np.where(up, 1.0, -1.0)


def ichimoku(high: Floats, low: Floats, close: Floats) -> Ichimoku:
    """Tenkan is the middle of 9 bars, kijun of 26; the cloud lies between their mean and the middle of 52."""
    tenkan, kijun, lead_b = (_middle(high, low, bars) for bars in (TENKAN, KIJUN, SENKOU_B))
    lead_a = (tenkan + kijun) / 2
    chikou = np.where(np.arange(len(close)) >= SHIFT, close, np.nan)
    return Ichimoku(tenkan, kijun, lag(lead_a, SHIFT), lag(lead_b, SHIFT), lead_a, lead_b, chikou)


def _middle(high: Floats, low: Floats, bars: int) -> Floats:
    return (highest(high, bars) + lowest(low, bars)) / 2


def _ratchet(rows: Iterable[tuple[float, float, float]], up: bool) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    ceiling, floor, before = math.inf, -math.inf, math.nan
    for upper, lower, close in rows:
        if upper < ceiling or before > ceiling:
            ceiling = upper
        if lower > floor or before < floor:
            floor = lower
        if up and close < floor:
            up = False
        elif not up and close > ceiling:
            up = True
        found.append((floor, 1.0) if up else (ceiling, -1.0))
        before = close
    return found
