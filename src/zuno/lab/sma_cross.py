"""A crossing of two moving averages over a column of closes, all bars at once: a yardstick that traders know.

Long one fixed quantity while the fast average is above the slow one, else flat. Two fill conventions, for two peers:
an order of a bar is filled at that bar's close (vectorbt's `from_signals`), or at the open of the next (backtrader).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Column: TypeAlias = NDArray[np.float64]
Fill: TypeAlias = Literal["close", "next_open"]


@dataclass(frozen=True, slots=True)
class CrossResult:
    final_equity: float
    trades: int
    """Closed ones."""
    fees: float


def moving_average(closes: Column, length: int) -> Column:
    """Of the last `length` closes; NaN before there are so many. One pass: each sum is the last one moved on."""
    found = np.full(len(closes), np.nan)
    if len(closes) >= length:
        sums = np.cumsum(closes)
        found[length - 1] = sums[length - 1]
        np.subtract(sums[length:], sums[:-length], out=found[length:])
        found[length - 1 :] /= length
    return found


def cross_signals(closes: Column, fast: int, slow: int) -> NDArray[np.bool_]:
    """Whether the fast average is above the slow one at each bar; never where one of them is not known."""
    with np.errstate(invalid="ignore"):
        return moving_average(closes, fast) > moving_average(closes, slow)


def run_sma_cross(
    opens: Column,
    closes: Column,
    *,
    fast: int,
    slow: int,
    quantity: float,
    cash: float,
    fee: float,
    fill: Fill,
) -> CrossResult:
    """`fee`: a fraction of each order's value. An order on the last bar that would be filled on the next never is."""
    wanted = cross_signals(closes, fast, slow)
    changed = np.flatnonzero(wanted[1:] != wanted[:-1]) + 1
    if len(wanted) and wanted[0]:
        changed = np.concatenate(([0], changed))
    if fill == "close":
        prices = closes[changed]
    else:
        changed = changed[changed + 1 < len(closes)]
        prices = opens[changed + 1]
    signs = np.where(np.arange(len(prices)) % 2 == 0, -1.0, 1.0)
    flows = signs * prices
    fees = fee * quantity * float(prices.sum())
    held = quantity if len(prices) % 2 else 0.0
    equity = cash + quantity * float(flows.sum()) - fees + held * float(closes[-1]) if len(closes) else cash
    return CrossResult(equity, len(prices) // 2, fees)
