"""How fast the gauges are beside bare ta-lib, on the same 100,000 bars: `python benchmarks/indicators.py`.

Prints one JSON line per figure and ends with 1 when a bar is missed. The subset is all that ta-lib computes too: RSI,
StochRSI, MACD, ADX, ATR, Bollinger, the four EMAs, MFI and OBV.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from resource import RUSAGE_SELF, getrusage
from time import perf_counter

import numpy as np
import talib

from benchmarks.figure import report
from zuno.trading.measure.bars import LOOKBACK, Bars
from zuno.trading.measure.frames import measure_structure_of_window
from zuno.trading.measure.indicators import (
    adx,
    atr,
    bollinger,
    compute_indicators,
    ema,
    macd,
    mfi,
    obv,
    rsi,
    stoch_rsi,
)
from zuno.trading.model.market import HOUR_MS, Timeframe

BARS = 100_000
REPEATS = 40
SPANS = (9, 21, 50, 200)


def market(count: int) -> Bars:
    dice = np.random.default_rng(1)
    close = 30_000 * np.exp(np.cumsum(dice.normal(0, 0.005, count)))
    opened = np.concatenate((close[:1], close[:-1]))
    high = np.maximum(opened, close) * (1 + np.abs(dice.normal(0, 0.002, count)))
    low = np.minimum(opened, close) * (1 - np.abs(dice.normal(0, 0.002, count)))
    volume = dice.lognormal(3, 1, count)
    return Bars(Timeframe.H1, np.arange(count) * HOUR_MS, opened, high, low, close, volume, volume * dice.random(count))


def ours(bars: Bars) -> None:
    high, low, close, volume = bars.high, bars.low, bars.close, bars.volume
    stoch_rsi(rsi(close))
    macd(close)
    adx(high, low, close)
    atr(high, low, close)
    bollinger(close)
    for span in SPANS:
        ema(close, span)
    mfi(high, low, close, volume)
    obv(close, volume)


def bare(bars: Bars) -> None:
    high, low, close, volume = bars.high, bars.low, bars.close, bars.volume
    talib.RSI(close, 14)
    _, k = talib.STOCHRSI(close, 14, 14, 3)
    talib.SMA(k, 3)
    talib.MACD(close, 12, 26, 9)
    talib.ADX(high, low, close, 14)
    talib.ATR(high, low, close, 14)
    talib.BBANDS(close, 20, 2.0, 2.0)
    for span in SPANS:
        talib.EMA(close, span)
    talib.MFI(high, low, close, volume, 14)
    talib.OBV(close, volume)


def best_times(*jobs: Callable[[], object]) -> list[float]:
    """Milliseconds of each job, the best of many turns; the jobs take turns, so a busy machine hits all."""
    best = [float("inf")] * len(jobs)
    gc.disable()
    try:
        for _ in range(REPEATS):
            for place, job in enumerate(jobs):
                start = perf_counter()
                job()
                best[place] = min(best[place], (perf_counter() - start) * 1e3)
    finally:
        gc.enable()
    return best


def page_faults(job: Callable[[], object]) -> int:
    """Pages of fresh memory that a turn of the job touched: what they cost differs from machine to machine more than
    arithmetic does."""
    before = getrusage(RUSAGE_SELF).ru_minflt
    job()
    return getrusage(RUSAGE_SELF).ru_minflt - before


def main() -> int:
    many = market(BARS)
    window = many.last(LOOKBACK)
    mine, theirs, every, last, shape = best_times(
        lambda: ours(many),
        lambda: bare(many),
        lambda: compute_indicators(many),
        lambda: compute_indicators(window),
        lambda: measure_structure_of_window(window, compute_indicators(window), 5),
    )
    passed = report(
        "indicators that ta-lib has too, 100,000 bars",
        mine,
        "ms",
        theirs,
        "ta-lib called bare",
        2.0,
        every_column_ms=round(every, 2),
        every_column_of_1000_bars_ms=round(last, 3),
        structure_of_1000_bars_ms=round(shape, 3),
        page_faults=page_faults(lambda: ours(many)),
        page_faults_of_talib=page_faults(lambda: bare(many)),
    )
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
