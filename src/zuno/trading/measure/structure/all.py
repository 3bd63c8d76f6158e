"""The whole shape of a market's bars in one reading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan

import numpy as np

from zuno.trading.measure.bars import LOOKBACK, Bars
from zuno.trading.measure.indicators.all import IndicatorSeries, columns, readings_of, sound
from zuno.trading.measure.indicators.profile import volume_profile
from zuno.trading.measure.indicators.volatility_bands import atr
from zuno.trading.measure.indicators.volume import newest_anchored_vwaps, taker_delta
from zuno.trading.measure.portable import RATIO_PLACES, log
from zuno.trading.measure.structure.gaps import Gap, fair_value_gaps
from zuno.trading.measure.structure.levels import AnchoredVwap, LevelZone, Measured, PriceLevel, levels, zones
from zuno.trading.measure.structure.lines import Divergence, TrendLine, divergences, trend_lines
from zuno.trading.measure.structure.pivots import Extreme, Pivot, Way, close_times, of, pivots
from zuno.trading.measure.structure.swings import Break, Fibonacci, Swing, breaks, fibonacci, swings, trend
from zuno.trading.model.chart import VolumeProfile


@dataclass(frozen=True, slots=True)
class Structure:
    """As of the last bar's close. Everything that carries a `known_at` was the same from then on; what happened to it
    later carries its own moment."""

    pivots: tuple[Pivot, ...]
    swings: tuple[Swing, ...]
    breaks: tuple[Break, ...]
    trend: Way | None
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


def structure(bars: Bars, shoulder: int) -> Structure | None:
    """Of the last `LOOKBACK` sound bars, with pivots of that shoulder; None when there is no bar."""
    window = sound(bars).last(LOOKBACK)
    return structure_of(window, columns(window), shoulder) if len(window) else None


def structure_of(bars: Bars, gauges: IndicatorSeries, shoulder: int) -> Structure:
    """The same of exactly these sound bars, for whoever has their columns already."""
    turns = pivots(bars, shoulder)
    broken = breaks(bars, turns)
    now = readings_of(bars, gauges)
    measured = Measured(
        timeframe=bars.timeframe,
        now=close_times(bars)[-1],
        readings=now,
        pivots=turns,
        fibonacci=fibonacci(turns),
        gaps=fair_value_gaps(bars),
        lines=trend_lines(bars, turns),
        profile=volume_profile(bars),
        anchored=anchor_vwaps(bars, turns),
    )
    menu = levels(measured)
    return Structure(
        pivots=turns,
        swings=swings(turns),
        breaks=broken,
        trend=trend(broken),
        gaps=measured.gaps,
        fibonacci=measured.fibonacci,
        lines=measured.lines,
        divergences=divergences(bars, turns, gauges.rsi, taker_delta(bars)),
        profile=measured.profile,
        anchored=measured.anchored,
        levels=menu,
        zones=zones(menu, now.atr),
        log_atr=_measure_log_atr(bars),
    )


def _measure_log_atr(bars: Bars) -> float | None:
    reach = float(atr(log(bars.high), log(bars.low), log(bars.close))[-1])
    return None if np.isnan(reach) else round(reach, RATIO_PLACES)


def anchor_vwaps(bars: Bars, turns: Sequence[Pivot]) -> tuple[AnchoredVwap, ...]:
    """Since the newest confirmed high and since the newest low; unknown without any volume since."""
    anchors = [pivot for extreme in Extreme for pivot in of(extreme, turns)[-1:]]
    prices = zip(anchors, newest_anchored_vwaps(bars, [pivot.at for pivot in anchors]), strict=True)
    return tuple(AnchoredVwap(pivot, price) for pivot, price in prices if not isnan(price))
