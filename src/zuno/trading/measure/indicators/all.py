"""Every gauge of a market's bars at once: as columns beside the bars, and as the last values of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from math import isfinite
from typing import Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from zuno.kernel.units import Millis
from zuno.trading.measure.bars import LOOKBACK, Bars, Floats
from zuno.trading.measure.bars import bars as bars_of
from zuno.trading.measure.indicators import momentum, volatility_bands
from zuno.trading.measure.indicators import volume as flows
from zuno.trading.measure.portable import GAUGE_DIGITS, RATIO_PLACES, places
from zuno.trading.model.market import Candle, Timeframe

T = TypeVar("T")
_NO_PRICE: Final = frozenset("rsi stoch_rsi_k stoch_rsi_d adx bb_width squeeze supertrend_side mfi cmf obv cvd".split())


@dataclass(frozen=True, slots=True, eq=False)
class Indicators(Generic[T]):
    rsi: T
    stoch_rsi_k: T
    stoch_rsi_d: T
    macd: T
    macd_signal: T
    macd_histogram: T
    adx: T
    ema9: T
    ema21: T
    ema50: T
    ema200: T
    atr: T
    bb_upper: T
    bb_middle: T
    bb_lower: T
    bb_width: T
    """(upper − lower) / middle."""
    keltner_upper: T
    keltner_middle: T
    keltner_lower: T
    squeeze: T
    """1 or 0."""
    supertrend: T
    supertrend_side: T
    """1 when the price is above its line, −1 when below."""
    tenkan: T
    kijun: T
    span_a: T
    span_b: T
    lead_a: T
    lead_b: T
    chikou: T
    mfi: T
    cmf: T
    obv: T
    vwap: T
    cvd: T


@dataclass(frozen=True, slots=True, eq=False)
class IndicatorSeries(Indicators[Floats]):
    """One value a bar; NaN where it cannot be known yet. No row depends on a later one."""

    def last(self, count: int) -> IndicatorSeries:
        """The rows of the last bars: gauges are computed over all and cut afterwards."""
        return IndicatorSeries(*(getattr(self, each.name)[-count:] if count else np.empty(0) for each in fields(self)))


@dataclass(frozen=True, slots=True, kw_only=True)
class IndicatorValues(Indicators[float | None]):
    """The last value of every column, to the digits it is kept to; None where it cannot be known."""

    at: Millis
    """When the last bar opened."""
    bars: int
    """How many these rest on."""
    missing: int
    """Buckets between the first and the last of them that have no bar."""
    unsound: int
    """Bars that no market can have made, left out."""
    close: float
    squeeze: bool | None
    supertrend_side: int | None


INDICATOR_NAMES: Final = tuple(each.name for each in fields(Indicators))


def compute_indicators(bars: Bars) -> IndicatorSeries:
    """All gauges over all these bars, which must be sound. Give `bars.last(LOOKBACK)` for the desk's own figures:
    what is smoothed depends on where it starts."""
    if not len(bars):
        return IndicatorSeries(*(np.empty(0) for _ in fields(IndicatorSeries)))
    high, low, close, volume = bars.high, bars.low, bars.close, bars.volume
    strength = momentum.rsi(close)
    stoch_k, stoch_d = momentum.stoch_rsi(strength)
    macd, macd_signal, macd_histogram = momentum.macd(close)
    bands, channel = volatility_bands.bollinger(close), volatility_bands.keltner(high, low, close)
    trend, side = volatility_bands.supertrend(high, low, close)
    cloud = volatility_bands.ichimoku(high, low, close)
    return IndicatorSeries(
        rsi=strength,
        stoch_rsi_k=stoch_k,
        stoch_rsi_d=stoch_d,
        macd=macd,
        macd_signal=macd_signal,
        macd_histogram=macd_histogram,
        adx=momentum.adx(high, low, close),
        ema9=momentum.ema(close, 9),
        ema21=momentum.ema(close, 21),
        ema50=momentum.ema(close, 50),
        ema200=momentum.ema(close, 200),
        atr=volatility_bands.atr(high, low, close),
        bb_upper=bands.upper,
        bb_middle=bands.middle,
        bb_lower=bands.lower,
        bb_width=(bands.upper - bands.lower) / bands.middle,
        keltner_upper=channel.upper,
        keltner_middle=channel.middle,
        keltner_lower=channel.lower,
        squeeze=volatility_bands.squeeze(bands, channel),
        supertrend=trend,
        supertrend_side=side,
        tenkan=cloud.tenkan,
        kijun=cloud.kijun,
        span_a=cloud.span_a,
        span_b=cloud.span_b,
        lead_a=cloud.lead_a,
        lead_b=cloud.lead_b,
        chikou=cloud.chikou,
        mfi=flows.mfi(high, low, close, volume),
        cmf=flows.cmf(high, low, close, volume),
        obv=flows.obv(close, volume),
        vwap=flows.vwap(bars),
        cvd=flows.cvd(bars),
    )


def compute_last_indicators(bars: Bars) -> IndicatorValues | None:
    """Where every gauge stands at the last bar, from the last `LOOKBACK`; None when there is no bar to read."""
    clean = drop_invalid_bars(bars)
    window = clean.last(LOOKBACK)
    if not len(window):
        return None
    return take_last_indicators(window, compute_indicators(window), unsound=len(bars) - len(clean))


def take_last_indicators(bars: Bars, indicators: IndicatorSeries, unsound: int = 0) -> IndicatorValues:
    """The last row of these columns, for whoever has them already."""
    return round_indicators(bars, [float(getattr(indicators, name)[-1]) for name in INDICATOR_NAMES], unsound)


def round_indicators(bars: Bars, row: Sequence[float], unsound: int = 0) -> IndicatorValues:
    """The last row of every column, in their order, to the digits each is kept to."""
    close = float(bars.close[-1])
    decimals = places(close, GAUGE_DIGITS)
    kept = {
        name: round(value, RATIO_PLACES if name in _NO_PRICE else decimals) if isfinite(value) else None
        for name, value in zip(INDICATOR_NAMES, row, strict=True)
    }
    squeezed, side = kept.pop("squeeze"), kept.pop("supertrend_side")
    at = int(bars.at[-1])
    return IndicatorValues(
        at=Millis(at),
        bars=len(bars),
        missing=(at - int(bars.at[0])) // bars.timeframe.millis + 1 - len(bars),
        unsound=unsound,
        close=close,
        squeeze=None if squeezed is None else squeezed == 1,
        supertrend_side=None if side is None else int(side),
        **kept,
    )


def drop_invalid_bars(bars: Bars) -> Bars:
    """The bars a market can have made: prices above zero, low ≤ open and close ≤ high, volume at least zero and at
    least what its takers bought. What is left out is simply not there, as if it had never been given."""
    good = mark_valid_bars(bars)
    if np.all(good):
        return bars
    kept = (bars.open, bars.high, bars.low, bars.close, bars.volume, bars.taker_buy)
    return Bars(bars.timeframe, bars.at[good], *(column[good] for column in kept))


def mark_valid_bars(bars: Bars) -> NDArray[np.bool_]:
    """Which of the bars these are."""
    prices = np.stack((bars.open, bars.high, bars.low, bars.close))
    good = np.all(np.isfinite(prices) & (prices > 0), axis=0) & np.isfinite(bars.volume) & (bars.volume >= 0)
    good &= (bars.low <= np.minimum(bars.open, bars.close)) & (np.maximum(bars.open, bars.close) <= bars.high)
    good &= np.isnan(bars.taker_buy) | ((bars.taker_buy >= 0) & (bars.taker_buy <= bars.volume * (1 + 1e-9)))
    return np.asarray(good)


SPARE: Final = 100
"""Bars beyond the lookback that are looked at: so many may be unsound or not closed yet."""


def take_newest_valid_bars(timeframe: Timeframe, rows: Sequence[Candle], as_of: int) -> Bars:
    """The last `LOOKBACK` bars that had closed by then and that a market can have made. Of a long past only the end is
    looked at, where that is enough."""
    for given in (rows[-LOOKBACK - SPARE :], rows):
        window = drop_invalid_bars(bars_of(timeframe, given).upto(as_of)).last(LOOKBACK)
        if len(window) == LOOKBACK or len(given) == len(rows):
            break
    return window
