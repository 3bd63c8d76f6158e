"""The whole shape of a market's bars in one reading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan

import numpy as np

from zuno.trading.measure.bars import LOOKBACK, Bars
from zuno.trading.measure.indicators.all import (
    IndicatorSeries,
    compute_indicators,
    drop_invalid_bars,
    take_last_indicators,
)
from zuno.trading.measure.indicators.profile import volume_profile
from zuno.trading.measure.indicators.volatility_bands import atr
from zuno.trading.measure.indicators.volume import newest_anchored_vwaps, taker_delta
from zuno.trading.measure.portable import RATIO_PLACES, log
from zuno.trading.measure.structure.gaps import Gap, find_fair_value_gaps
from zuno.trading.measure.structure.levels import AnchoredVwap, LevelZone, Measured, PriceLevel, find_zones, list_levels
from zuno.trading.measure.structure.lines import Divergence, TrendLine, find_divergences, find_trend_lines
from zuno.trading.measure.structure.pivots import (
    Extreme,
    Pivot,
    PriceDirection,
    close_times,
    find_pivots,
    select_pivots,
)
from zuno.trading.measure.structure.swings import (
    Break,
    Fibonacci,
    Swing,
    find_breaks,
    find_swings,
    find_trend,
    measure_fibonacci,
)
from zuno.trading.model.chart import VolumeProfile


@dataclass(frozen=True, slots=True)
class Structure:
    """As of the last bar's close. Everything that carries a `known_at` was the same from then on; what happened to it
    later carries its own moment."""

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
    """ATR14 of the logarithms of the prices: a measure for shapes that is the same in a rise and in the fall that
    mirrors it, where the ATR in prices counts what was traded higher for more."""


def measure_structure(bars: Bars, shoulder: int) -> Structure | None:
    """Of the last `LOOKBACK` sound bars, with pivots of that shoulder; None when there is no bar."""
    window = drop_invalid_bars(bars).last(LOOKBACK)
    return measure_structure_of_window(window, compute_indicators(window), shoulder) if len(window) else None


def measure_structure_of_window(bars: Bars, indicators: IndicatorSeries, shoulder: int) -> Structure:
    """The same of exactly these sound bars, for whoever has their columns already."""
    turns = find_pivots(bars, shoulder)
    broken = find_breaks(bars, turns)
    now = take_last_indicators(bars, indicators)
    measured = Measured(
        timeframe=bars.timeframe,
        now=close_times(bars)[-1],
        readings=now,
        pivots=turns,
        fibonacci=measure_fibonacci(turns),
        gaps=find_fair_value_gaps(bars),
        lines=find_trend_lines(bars, turns),
        profile=volume_profile(bars),
        anchored=anchor_vwaps(bars, turns),
    )
    menu = list_levels(measured)
    return Structure(
        pivots=turns,
        swings=find_swings(turns),
        breaks=broken,
        trend=find_trend(broken),
        gaps=measured.gaps,
        fibonacci=measured.fibonacci,
        lines=measured.lines,
        divergences=find_divergences(bars, turns, indicators.rsi, taker_delta(bars)),
        profile=measured.profile,
        anchored=measured.anchored,
        levels=menu,
        zones=find_zones(menu, now.atr),
        log_atr=_measure_log_atr(bars),
    )


def _measure_log_atr(bars: Bars) -> float | None:
    reach = float(atr(log(bars.high), log(bars.low), log(bars.close))[-1])
    return None if np.isnan(reach) else round(reach, RATIO_PLACES)


def anchor_vwaps(bars: Bars, turns: Sequence[Pivot]) -> tuple[AnchoredVwap, ...]:
    """Since the newest confirmed high and since the newest low; unknown without any volume since."""
    anchors = [pivot for extreme in Extreme for pivot in select_pivots(extreme, turns)[-1:]]
    prices = zip(anchors, newest_anchored_vwaps(bars, [pivot.at for pivot in anchors]), strict=True)
    return tuple(AnchoredVwap(pivot, price) for pivot, price in prices if not isnan(price))
