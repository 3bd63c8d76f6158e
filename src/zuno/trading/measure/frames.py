"""One timeframe of a symbol's own bars, measured: the last values of every indicator and the structure of its bars."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any, TypeVar

import numpy as np

from zuno.kernel.units import Millis
from zuno.trading.measure.bars import LOOKBACK, Bars, Floats, bars
from zuno.trading.measure.indicators import (
    IndicatorSeries,
    IndicatorValues,
    atr,
    compute_indicators,
    drop_invalid_bars,
    newest_anchored_vwaps,
    take_last_indicators,
    take_newest_valid_bars,
    taker_delta,
    volume_profile,
)
from zuno.trading.measure.levels import AnchoredVwap, LevelZone, Measured, PriceLevel, find_zones, list_levels
from zuno.trading.measure.portable import RATIO_PLACES, log
from zuno.trading.measure.structure import (
    Break,
    Divergence,
    Extreme,
    Fibonacci,
    Gap,
    Pivot,
    PriceDirection,
    Swing,
    TrendLine,
    close_times,
    find_breaks,
    find_divergences,
    find_fair_value_gaps,
    find_pivots,
    find_swings,
    find_trend_lines,
    measure_fibonacci,
    select_pivots,
)
from zuno.trading.model.bundle import same_rows
from zuno.trading.model.chart import VolumeProfile
from zuno.trading.model.market import Candle, Symbol, Timeframe


@dataclass(frozen=True, slots=True)
class Structure:
    """As of the last bar's close. What has a `known_at` stays the same from then on."""

    pivots: tuple[Pivot, ...]
    swings: tuple[Swing, ...]
    breaks: tuple[Break, ...]
    trend: PriceDirection | None
    gaps: tuple[Gap, ...]
    fibonacci: Fibonacci | None
    lines: tuple[TrendLine, ...]
    divergences: tuple[Divergence, ...]
    profile: VolumeProfile | None
    anchored: tuple[AnchoredVwap, ...]
    levels: tuple[PriceLevel, ...]
    zones: tuple[LevelZone, ...]
    log_atr: float | None
    """ATR14 of log prices: the same in a rise and in the fall that mirrors it."""


def measure_structure_of_window(bars: Bars, indicators: IndicatorSeries, shoulder: int) -> Structure:
    """Of exactly these sound bars, with pivots of that shoulder. `indicators`: their columns."""
    turns = find_pivots(bars, shoulder)
    return build_structure(
        bars,
        take_last_indicators(bars, indicators),
        (log(bars.high), log(bars.low), log(bars.close)),
        pivots=turns,
        swings=find_swings(turns),
        breaks=find_breaks(bars, turns),
        gaps=find_fair_value_gaps(bars),
        lines=find_trend_lines(bars, turns),
        divergences=find_divergences(bars, turns, indicators.rsi, taker_delta(bars)),
    )


def build_structure(
    bars: Bars,
    readings: IndicatorValues,
    logs: tuple[Floats, Floats, Floats],
    *,
    pivots: tuple[Pivot, ...],
    swings: tuple[Swing, ...],
    breaks: tuple[Break, ...],
    gaps: tuple[Gap, ...],
    lines: tuple[TrendLine, ...],
    divergences: tuple[Divergence, ...],
) -> Structure:
    """The structure of bars whose shapes are found. `logs`: logarithms of their highs, lows and closes."""
    fibonacci, profile, anchored = measure_fibonacci(pivots), volume_profile(bars), anchor_vwaps(bars, pivots)
    now = close_times(bars)[-1]
    menu = list_levels(Measured(bars.timeframe, now, readings, pivots, fibonacci, gaps, lines, profile, anchored))
    reach = float(atr(*logs)[-1])
    return Structure(
        pivots=pivots,
        swings=swings,
        breaks=breaks,
        trend=breaks[-1].way if breaks else None,
        gaps=gaps,
        fibonacci=fibonacci,
        lines=lines,
        divergences=divergences,
        profile=profile,
        anchored=anchored,
        levels=menu,
        zones=find_zones(menu, readings.atr),
        log_atr=None if np.isnan(reach) else round(reach, RATIO_PLACES),
    )


def anchor_vwaps(bars: Bars, turns: Sequence[Pivot]) -> tuple[AnchoredVwap, ...]:
    """Since the newest confirmed high and since the newest low; unknown without any volume since."""
    anchors = [pivot for extreme in Extreme for pivot in select_pivots(extreme, turns)[-1:]]
    prices = zip(anchors, newest_anchored_vwaps(bars, [pivot.at for pivot in anchors]), strict=True)
    return tuple(AnchoredVwap(pivot, price) for pivot, price in prices if not isnan(price))


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Frame:
    timeframe: Timeframe
    readings: IndicatorValues
    structure: Structure


def measure_frame(given: Bars, shoulder: int) -> Frame | None:
    """Of the last `LOOKBACK` sound bars; None when there is none."""
    clean = drop_invalid_bars(given)
    window = clean.last(LOOKBACK)
    if not len(window):
        return None
    indicators = compute_indicators(window)
    seen = take_last_indicators(window, indicators, unsound=len(given) - len(clean))
    return Frame(given.timeframe, seen, measure_structure_of_window(window, indicators, shoulder))


class FrameCache:
    """Bars and frames of each timeframe, reused while the candles are the very same objects."""

    def __init__(self) -> None:
        self._kept: dict[tuple[object, ...], tuple[Sequence[Candle], Any]] = {}

    def read_bars(self, symbol: Symbol, timeframe: Timeframe, rows: Sequence[Candle]) -> Bars:
        return self._read((symbol, timeframe), rows, lambda: bars(timeframe, rows))

    def read_frame(self, symbol: Symbol, timeframe: Timeframe, rows: Sequence[Candle], shoulder: int) -> Frame | None:
        """With pivots of that shoulder; None where no bar can be believed."""
        return self._read(
            (symbol, timeframe, shoulder),
            rows,
            lambda: measure_frame(self.read_bars(symbol, timeframe, rows), shoulder),
        )

    def read_newest(self, symbol: Symbol, timeframe: Timeframe, rows: Sequence[Candle], as_of: Millis) -> Bars:
        """The last `LOOKBACK` sound bars that had closed by then."""
        moment, window = self._read(
            (symbol, timeframe, "newest"), rows, lambda: (as_of, take_newest_valid_bars(timeframe, rows, as_of))
        )
        return window if moment == as_of else take_newest_valid_bars(timeframe, rows, as_of)

    def _read(self, name: tuple[object, ...], rows: Sequence[Candle], measure: Callable[[], T]) -> T:
        """What was measured under that name, or is now."""
        kept = self._kept.get(name)
        if kept is not None and same_rows(kept[0], rows):
            cached: T = kept[1]
            return cached
        measured = measure()
        self._kept[name] = (rows, measured)
        return measured
