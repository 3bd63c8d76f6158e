"""Windows that slide over a column: each value from its own window, so that nothing drifts and nothing lingers."""

from __future__ import annotations

import math

import numpy as np
import talib

from zuno.core.bars import Floats


def rolling_sum(values: Floats, window: int) -> Floats:
    """The sum of each value and the `window − 1` before it; NaN until there are so many.

    Summed anew in every window, by doubling: a running sum keeps what its old values rounded to, and a window of zeros
    would not sum to zero.
    """
    count = len(values) - window + 1
    if count <= 0:
        return np.full(len(values), np.nan)
    total = np.zeros(count)
    block, size, start = values, 1, 0
    while size <= window:
        if window & size:
            total += block[start : start + count]
            start += size
        block = block[:-size] + block[size:]
        size *= 2
    return np.concatenate((np.full(window - 1, np.nan), total))


def highest(values: Floats, window: int) -> Floats:
    return talib.MAX(values, window)


def lowest(values: Floats, window: int) -> Floats:
    return talib.MIN(values, window)


def delayed(values: Floats, by: int) -> Floats:
    """Each value as it stood so many rows before."""
    count = min(by, len(values))
    return np.concatenate((np.full(count, np.nan), values[: len(values) - count]))


def ratio(over: Floats, under: Floats) -> Floats:
    """NaN where there is nothing to divide by."""
    out = np.full(len(over), np.nan)
    np.divide(over, under, out=out, where=under != 0)
    return out


def typical(high: Floats, low: Floats, close: Floats) -> Floats:
    return (high + low + close) / 3


def unit_of(prices: Floats) -> float:
    """The power of two next to the first price. ta-lib takes what is below 1e-14 for nothing, whatever the price; in
    these units that is nothing. Dividing by a power of two loses no digit."""
    return math.ldexp(1.0, math.frexp(float(prices[0]))[1]) if len(prices) else 1.0
