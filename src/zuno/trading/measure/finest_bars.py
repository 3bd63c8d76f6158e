"""One line of bars from several timeframes: the finest that were kept of each stretch, coarser ones in their gaps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from zuno.kernel.units import Millis
from zuno.trading.model.market import Candle, Timeframe


class SpanBar(NamedTuple):
    """A bar with both ends of its time."""

    start: Millis
    end: Millis
    open: float
    high: float
    low: float
    close: float


def select_finest_bars(rows: Sequence[tuple[Timeframe, Sequence[Candle]]], *, live: bool = False) -> list[SpanBar]:
    """Given finest first. A bar is taken where finer ones do not cover the whole of its time: what happened in their
    gaps is in it. Live, where finer ones may still come, it is taken where there are none. Not in order of time."""
    found: list[SpanBar] = []
    covered: dict[int, int] = {}
    for timeframe, bars in rows:
        span = timeframe.millis
        sums: dict[int, int] = {}
        for start, covers in covered.items():
            whole = timeframe.floor(Millis(start))
            sums[whole] = sums.get(whole, 0) + covers
        for row in bars:
            if sums.get(row.at, 0) < (1 if live else span):
                found.append(SpanBar(row.at, Millis(row.at + span), row.open, row.high, row.low, row.close))
                sums[row.at] = span
        covered = sums
    return found
