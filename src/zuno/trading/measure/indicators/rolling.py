"""Windows that slide over a column: each value from its own window, so that nothing drifts and nothing lingers."""

from __future__ import annotations

import numpy as np
import talib

from zuno.trading.measure.bars import Floats


def rolling_sum(values: Floats, window: int) -> Floats:
    """The sum of each value and the `window − 1` before it; NaN until there are so many.

    Summed anew in every window, by doubling: a running sum keeps what its old values rounded to, and a window of zeros
    would not sum to zero.
    """
    out = np.full(len(values), np.nan)
    total = out[window - 1 :]
    if not len(total):
        return out
    total[:] = 0.0
    block, size, start = values, 1, 0
    while size <= window:
        if window & size:
            total += block[start : start + len(total)]
            start += size
        block = block[:-size] + block[size:] if 2 * size <= window else block
        size *= 2
    return out


def highest(values: Floats, window: int) -> Floats:
    return talib.MAX(values, window)


def lowest(values: Floats, window: int) -> Floats:
    return talib.MIN(values, window)


def lag(values: Floats, by: int) -> Floats:
    """Each value as it stood so many rows before."""
    count = min(by, len(values))
    return np.concatenate((np.full(count, np.nan), values[: len(values) - count]))


def ratio(over: Floats, under: Floats) -> Floats:
    """A share of a whole; NaN where the whole is nothing, and so its share."""
    with np.errstate(invalid="ignore"):
        return over / under


def typical(high: Floats, low: Floats, close: Floats) -> Floats:
    """What a bar's price is when it has to be one: the mean of the three."""
    return talib.TYPPRICE(high, low, close)
