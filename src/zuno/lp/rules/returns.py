"""Hourly log returns as whole numbers of 1e-9, because sums of integers are the same on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import sqrt
from typing import Final

NANO: Final = 10**9


def nano_returns(returns: Sequence[float]) -> tuple[int, ...]:
    """Log returns in whole 1e-9; what a machine's logarithm does in its last digit is rounded away."""
    return tuple(round(value * NANO) for value in returns)


def variance_24h(returns: Sequence[float], window_hours: int) -> float | None:
    """σ² per day from the hourly returns of the window the fees were measured over; None when it is not covered.

    Fees of a calm week against the variance of a wild month would compare two different markets.
    """
    values = nano_returns(returns[-window_hours:])
    count = len(values)
    if count < max(window_hours, 2):
        return None
    squares = count * sum(value * value for value in values) - sum(values) ** 2
    return float(Fraction(24 * squares, count * (count - 1) * NANO**2))


def rolling_vol_bps(returns: Sequence[float], window_hours: int = 24) -> tuple[float, ...]:
    """Realised volatility, in bps per day, of every `window_hours` in a row; the newest stands last."""
    values = nano_returns(returns)
    total = sum(values[:window_hours])
    squares = sum(value * value for value in values[:window_hours])
    vols: list[float] = []
    for end in range(window_hours, len(values) + 1):
        # Sums of integers slide without drifting, as sums of floats would not.
        variance = (window_hours * squares - total * total) / (window_hours * (window_hours - 1))
        vols.append(1e4 * sqrt(variance * 24) / NANO)
        if end < len(values):
            new, old = values[end], values[end - window_hours]
            total += new - old
            squares += new * new - old * old
    return tuple(vols)
