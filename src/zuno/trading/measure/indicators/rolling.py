"""Windows that slide over a column: each value from its own window, so that nothing drifts and nothing lingers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import talib

from zuno.trading.measure.bars import Floats

BLOCK_ROWS: Final = 8_192


def row_blocks(rows: int) -> Iterator[slice]:
    """All rows in turn, few enough at a time that what is computed of them stays in the processor's cache: a fresh
    array of a whole long column costs more in page faults than its arithmetic."""
    return (slice(start, min(start + BLOCK_ROWS, rows)) for start in range(0, rows, BLOCK_ROWS))


def rolling_sum(values: Floats, window: int) -> Floats:
    """The sum of each value and the `window − 1` before it; NaN until there are so many.

    Summed anew in every window, by doubling: a running sum keeps what its old values rounded to, and a window of zeros
    would not sum to zero.
    """
    out = np.full(len(values), np.nan)
    sums = out[window - 1 :]
    for rows in row_blocks(len(sums)):
        total = sums[rows]
        total[:] = 0.0
        block, size, start = values[rows.start : rows.stop + window - 1], 1, 0
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
