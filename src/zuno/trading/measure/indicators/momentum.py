"""Which way prices push, and how hard: RSI, StochRSI, MACD, ADX and the averages they are read against."""

from __future__ import annotations

from typing import Final

import numpy as np
import talib

from zuno.trading.measure.bars import Floats
from zuno.trading.measure.indicators.rolling import highest, lowest

RSI_BARS: Final = 14
STOCH_BARS: Final = 14
STOCH_SMOOTHING: Final = 3
MACD_BARS: Final = (12, 26, 9)
ADX_BARS: Final = 14
_ROUNDING: Final = 1e-9
"""An RSI that stays as it is still trembles in its last digits: a range of no more than this is none."""


def ema(close: Floats, bars: int) -> Floats:
    """Exponential average with weight 2/(bars + 1), begun at the plain mean of the first `bars` closes."""
    return talib.EMA(close, bars)


def rsi(close: Floats) -> Floats:
    """Wilder's, 14 bars: 100 · gains / (gains + losses). It stays as it is while nothing moves;
    where nothing has moved since the first bar it is 50, for neither side has pushed."""
    out = talib.RSI(close, RSI_BARS)
    moved = close != close[:1]
    out[RSI_BARS : moved.argmax() if moved.any() else None] = 50.0
    return out


def stoch_rsi(strength: Floats) -> tuple[Floats, Floats]:
    """StochRSI 14/14/3/3 of an RSI: where it stands in its range of 14 bars, smoothed by the mean of 3 (%K), and that
    once more (%D). Unknown where the RSI had no range. (ta-lib's own STOCHRSI has one smoothing less.)"""
    low, span = lowest(strength, STOCH_BARS), highest(strength, STOCH_BARS)
    span -= low
    span[~(span > _ROUNDING)] = np.nan
    raw = np.subtract(strength, low, out=low)
    raw /= span
    raw *= 100
    k = _mean_of_three(raw)
    return k, _mean_of_three(k)


def macd(close: Floats) -> tuple[Floats, Floats, Floats]:
    """Line (EMA12 − EMA26), its signal (EMA9 of the line) and the histogram (line − signal).

    As ta-lib does it, the fast average begins where the slow one does; from the 34th bar on all three are known.
    """
    return talib.MACD(close, *MACD_BARS)


def adx(high: Floats, low: Floats, close: Floats) -> Floats:
    """Wilder's, 14 bars: how much of the movement had a direction, 0–100. A market that never had one is at 0, and a
    bar without any leaves it as it is."""
    return talib.ADX(high, low, close, ADX_BARS)


def _mean_of_three(values: Floats) -> Floats:
    out = np.full(len(values), np.nan)
    sums = np.add(values[2:], values[1:-1], out=out[2:])
    sums += values[:-2]
    sums /= STOCH_SMOOTHING
    return out
