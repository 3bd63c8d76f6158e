"""Hourly returns and realised volatility of a pair, from its hourly closes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import sqrt
from typing import Final

from zuno.kernel.errors import Unavailable
from zuno.lp.model.market import HOUR, PriceSeries

LEAST_RETURNS = 24
"""A volatility per day needs at least a day of hourly returns."""

HOURS_PER_DAY = 24
_LN2 = 0.6931471805599453
_FAR = 0.1716
"""Where a ratio is √2: its half is nearer to 1."""
_ATANH = tuple(1 / odd for odd in range(23, 0, -2))


@dataclass(frozen=True, slots=True)
class RealizedVol:
    """Basis points per day, and what they rest on."""

    bps: float
    returns: int
    gaps: int
    """Hours of the window without a close, as the feed counted them."""


def hourly_returns(series: PriceSeries) -> tuple[float, ...]:
    """The log returns between closes exactly one hour apart, oldest first; what spans a gap is left out."""
    for earlier, later in pairwise(series.points):
        if later.at - earlier.at < HOUR:
            raise ValueError(f"{series.pair}: closes at {earlier.at} and {later.at} are not an hour apart")
    return tuple(
        log_ratio(later.price, earlier.price)
        for earlier, later in pairwise(series.points)
        if later.at - earlier.at == HOUR
    )


def realized_vol_bps(series: PriceSeries) -> RealizedVol:
    """`1e4 · σ_hour · √24`, σ being the sample standard deviation of the hourly log returns about their mean.
    `Unavailable` with fewer than `LEAST_RETURNS`: a number from too little data is an invented number."""
    returns = hourly_returns(series)
    count = len(returns)
    if count < LEAST_RETURNS:
        needed = f"{LEAST_RETURNS} are needed for a volatility"
        raise Unavailable(f"{series.pair}: {count} hourly returns are known, {needed}")
    mean = math.fsum(returns) / count
    variance = math.fsum((value - mean) ** 2 for value in returns) / (count - 1)
    return RealizedVol(1e4 * math.sqrt(variance * HOURS_PER_DAY), count, series.gaps)


def log_ratio(over: Fraction, under: Fraction) -> float:
    """Natural logarithm of an exact ratio, the same bits on every machine, which `math.log` does not promise: powers of
    two first, then twice the series of atanh((a − b)/(a + b))."""
    above, below = over.numerator * under.denominator, over.denominator * under.numerator
    twos = above.bit_length() - below.bit_length()
    above, below = above << max(0, -twos), below << max(0, twos)
    share = (above - below) / (above + below)
    if abs(share) > _FAR:
        above, below, twos = (above, 2 * below, twos + 1) if share > 0 else (2 * above, below, twos - 1)
        share = (above - below) / (above + below)
    square, series = share * share, 0.0
    for factor in _ATANH:
        series = series * square + factor
    return twos * _LN2 + 2 * share * series


NANO: Final = 10**9


def nano_returns(returns: Sequence[float]) -> tuple[int, ...]:
    """Log returns in whole 1e-9: sums of integers are the same on every machine, sums of floats are not."""
    return tuple(round(value * NANO) for value in returns)


def variance_24h(returns: Sequence[float], window_hours: int) -> float | None:
    """σ² per day from the hourly returns of the window the fees were measured over; None when it is not covered. Fees
    of a calm week against the variance of a wild month would compare two different markets."""
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
