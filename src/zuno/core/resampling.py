"""Bars out of finer bars, by the time things happened.

Prices are copied, never computed. Volumes are added as the decimals they are written in (the shortest spelling of a
double is what its venue printed), exactly, and rounded once at the end. So a venue's own hour is met to the last bit by
its minutes, and a day made of minutes equals one made of hours as long as its volume needs at most 15 digits.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from decimal import Context, Decimal
from itertools import groupby
from typing import Any, Final

from zuno.domain.trading import Candle, Series, Timeframe
from zuno.domain.units import Millis

_EXACT: Final = Context(prec=800)
"""Digits enough for the sum of any doubles."""


def timeframe_of(series: Series[Any]) -> Timeframe:
    """How long the bars of a series of candles are. `ValueError` for a series that has none."""
    return Timeframe(series.name.rpartition("/")[2])


def total(volumes: Iterable[float]) -> float:
    """The exact sum of the decimals these doubles are written as, rounded once."""
    add, sum_ = _EXACT.add, Decimal(0)
    for volume in volumes:
        sum_ = add(sum_, Decimal(repr(float(volume))))
    return float(sum_)


def aggregate(at: Millis, fine: Sequence[Candle]) -> Candle:
    """The one bar these bars make, oldest first. What buyers took is known where every part says it."""
    taken = [bar.taker_buy for bar in fine]
    known = [one for one in taken if one is not None]
    return Candle(
        at,
        fine[0].open,
        max(bar.high for bar in fine),
        min(bar.low for bar in fine),
        fine[-1].close,
        total(bar.volume for bar in fine),
        total(known) if len(known) == len(taken) else None,
    )


def parts(coarse: Timeframe, fine: Timeframe) -> int:
    """How many fine bars a coarse one has."""
    return coarse.millis // fine.millis


def made_of(coarse: Timeframe, at: Millis, bars: Sequence[Candle]) -> Sequence[Candle]:
    """Those of the fine bars, oldest first, that belong to the coarse bar that opened then."""
    first = bisect_left(bars, at, key=_opened)
    return bars[first : bisect_left(bars, at + coarse.millis, first, key=_opened)]


def resampled(coarse: Timeframe, fine: Timeframe, bars: Iterable[Candle]) -> tuple[Candle, ...]:
    """The coarse bars whose every part is here; the bars come oldest first, each once."""
    buckets = ((at, list(group)) for at, group in groupby(bars, key=lambda bar: coarse.floor(bar.at)))
    return tuple(aggregate(at, group) for at, group in buckets if len(group) == parts(coarse, fine))


def _opened(bar: Candle) -> Millis:
    return bar.at
