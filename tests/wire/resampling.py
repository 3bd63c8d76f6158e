"""Coarse bars from fine ones, row by row: what the desk's columns are compared with."""

from collections.abc import Iterable
from itertools import groupby

from zuno.trading.measure.bars import aggregate, bars_per_bar
from zuno.trading.model.market import Candle, Timeframe


def resample_bars(coarse: Timeframe, fine: Timeframe, bars: Iterable[Candle]) -> tuple[Candle, ...]:
    """The coarse bars whose every part is here; the bars come oldest first, each once."""
    buckets = ((at, list(group)) for at, group in groupby(bars, key=lambda bar: coarse.floor(bar.at)))
    return tuple(aggregate(at, group) for at, group in buckets if len(group) == bars_per_bar(coarse, fine))
