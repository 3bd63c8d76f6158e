"""Bars as columns: the shape every rule over prices computes in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from zuno.domain.trading import Candle, Timeframe

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
        return self._cut(slice(0, int(np.searchsorted(self.at, at - self.timeframe.millis, side="right"))))

    def last(self, count: int) -> Bars:
        return self._cut(slice(max(0, len(self) - count), None))

    def _cut(self, part: slice) -> Bars:
        columns = (self.open, self.high, self.low, self.close, self.volume, self.taker_buy)
        return Bars(self.timeframe, self.at[part], *(column[part] for column in columns))


def bars(timeframe: Timeframe, candles: Sequence[Candle]) -> Bars:
    """The columns of these candles. `ValueError` when they are not in order."""
    first, *rest = zip(*candles, strict=True) if candles else ((),) * 7
    at = np.array(first, dtype=np.int64)
    columns = (np.array(column, dtype=np.float64) for column in rest)  # what is not said is not a number
    if np.any(np.diff(at) <= 0):
        raise ValueError("bars must be strictly increasing in time")
    return Bars(timeframe, at, *columns)
