"""Bars as columns: the shape every rule over prices computes in."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from operator import attrgetter
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from zuno.kernel.units import Millis
from zuno.trading.measure.portable import round_prices
from zuno.trading.model.market import Candle, Timeframe

Floats: TypeAlias = NDArray[np.float64]
LOOKBACK: Final = 1_000
"""Bars an indicator looks back over, or all where fewer exist: a smoothed value depends on where it starts."""


@dataclass(frozen=True, slots=True, eq=False)
class Bars:
    """Closed bars of one length, oldest first, strictly increasing in time. A bar that is missing is not here."""

    timeframe: Timeframe
    at: NDArray[np.int64]
    open: Floats
    high: Floats
    low: Floats
    close: Floats
    volume: Floats
    taker_buy: Floats
    """NaN where the venue does not say."""

    def __len__(self) -> int:
        return len(self.at)

    def upto(self, at: int) -> Bars:
        """The bars that had closed by then."""
        return self.cut(slice(0, int(np.searchsorted(self.at, at - self.timeframe.millis, side="right"))))

    def last(self, count: int) -> Bars:
        return self.cut(slice(max(0, len(self) - count), None))

    def cut(self, part: slice | NDArray[np.bool_]) -> Bars:
        columns = (self.open, self.high, self.low, self.close, self.volume, self.taker_buy)
        return Bars(self.timeframe, self.at[part], *(column[part] for column in columns))


def bars(timeframe: Timeframe, candles: Sequence[Candle]) -> Bars:
    """The columns of these candles, prices to the twelfth digit. `ValueError` when they are not in order."""
    given = exact_bars(timeframe, candles)
    opened, high, low, close = map(round_prices, (given.open, given.high, given.low, given.close))
    return Bars(timeframe, given.at, opened, high, low, close, given.volume, given.taker_buy)


def join_bars(older: Bars, newer: Bars) -> Bars:
    """`ValueError` when they are not in order."""
    if older.at[-1] >= newer.at[0]:
        raise ValueError("bars must be strictly increasing in time")
    names = ("at", "open", "high", "low", "close", "volume", "taker_buy")
    columns = (np.concatenate((getattr(older, name), getattr(newer, name))) for name in names)
    return Bars(older.timeframe, *columns)


def exact_bars(timeframe: Timeframe, candles: Sequence[Candle]) -> Bars:
    """The same with every digit of the prices."""
    first, *rest = zip(*candles, strict=True) if candles else ((),) * 7
    at = np.array(first, dtype=np.int64)
    columns = [np.array(column, dtype=np.float64) for column in rest]  # what is not said is not a number
    if np.any(np.diff(at) <= 0):
        raise ValueError("bars must be strictly increasing in time")
    return Bars(timeframe, at, *columns)


_EXACT: Final = Context(prec=800)
"""Digits enough for the sum of any doubles."""


def total(volumes: Iterable[float]) -> float:
    """The exact sum of the decimals these doubles are written as, rounded once."""
    add, sum_ = _EXACT.add, Decimal(0)
    for volume in volumes:
        sum_ = add(sum_, Decimal(repr(float(volume))))
    return float(sum_)


def aggregate(at: Millis, fine: Sequence[Candle]) -> Candle:
    """The one bar these bars make, oldest first. What buyers took is known where every part says it."""
    taken = [bar.taker_buy for bar in fine]
    known = [volume for volume in taken if volume is not None]
    return Candle(
        at,
        fine[0].open,
        max(bar.high for bar in fine),
        min(bar.low for bar in fine),
        fine[-1].close,
        total(bar.volume for bar in fine),
        total(known) if len(known) == len(taken) else None,
    )


def bars_per_bar(coarse: Timeframe, fine: Timeframe) -> int:
    return coarse.millis // fine.millis


def bars_inside(coarse: Timeframe, at: Millis, bars: Sequence[Candle]) -> Sequence[Candle]:
    """Those of the fine bars, oldest first, that belong to the coarse bar that opened then."""
    first = bisect_left(bars, at, key=attrgetter("at"))
    return bars[first : bisect_left(bars, at + coarse.millis, first, key=attrgetter("at"))]


class SpanBar(NamedTuple):
    start: Millis
    end: Millis
    open: float
    high: float
    low: float
    close: float


def select_finest_bars(rows: Sequence[tuple[Timeframe, Sequence[Candle]]], *, live: bool = False) -> list[SpanBar]:
    """Bars from several timeframes, given finest first: a coarser bar is taken where finer ones do not cover it whole;
    with `live` only where there are none, as finer ones may still come. Not in order of time."""
    chosen: list[SpanBar] = []
    covered: dict[int, int] = {}
    for timeframe, bars in rows:
        span = timeframe.millis
        sums: dict[int, int] = {}
        for start, covers in covered.items():
            whole = timeframe.floor(Millis(start))
            sums[whole] = sums.get(whole, 0) + covers
        for row in bars:
            if sums.get(row.at, 0) < (1 if live else span):
                chosen.append(SpanBar(row.at, Millis(row.at + span), row.open, row.high, row.low, row.close))
                sums[row.at] = span
        covered = sums
    return chosen
