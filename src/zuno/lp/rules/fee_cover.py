"""Fee cover: what a pool's fees paid of what arbitrage took, with the error of that answer. It does not depend on the
width of a range, so it says whether to be in a pool at all; a width only says how much of it one takes.

    Q = ΣF / ΣV                     by day: F the fee growth per unit of liquidity, both tokens in token1, V = √P·RV/4
    e_d = F_d − Q·V_d
    s = √(n/(n−1) · max(Σe², Σe² + Σ e_d·e_{d−1})) / ΣF
    Q_low, Q_high = Q · exp(∓t·s)   t: Student's quantile with n − 1 degrees of freedom
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import atan, exp, fsum, pi, sqrt
from typing import Final

ONE_SIDED: Final = 0.90
"""Of each end of an interval: 80 % lies between."""
PLACES: Final = 9
"""Decimals that are kept: a processor's last bit is not among them."""


@dataclass(frozen=True, slots=True)
class PoolDay:
    """What a unit of liquidity in range earned and lost in one day, in token1."""

    day: int
    """Since 1970, in UTC."""
    fees: float
    lvr: float


@dataclass(frozen=True, slots=True)
class FeeCover:
    ratio: float
    low: float
    high: float
    days: int
    error: float
    """Of its logarithm."""

    def find_low(self, quantile: float) -> float:
        """The lower end at another quantile: of k pools that were ranked, `1 − 0.10 / k`."""
        return round(self.ratio * exp(-student_t(quantile, self.days - 1) * self.error), PLACES)


def measure_fee_cover(days: Sequence[PoolDay]) -> FeeCover | None:
    """None: fewer than two days, or no LVR to hold the fees against, or no fees."""
    days = sorted(days, key=lambda day: day.day)
    fees, lvr, count = fsum(day.fees for day in days), fsum(day.lvr for day in days), len(days)
    if count < 2 or fees <= 0 or lvr <= 0:
        return None
    ratio = fees / lvr
    rests = [day.fees - ratio * day.lvr for day in days]
    squares = fsum(rest * rest for rest in rests)
    neighbours = fsum(before * after for before, after in pairwise(rests))
    error = sqrt(count / (count - 1) * max(squares, squares + neighbours)) / fees
    reach = student_t(ONE_SIDED, count - 1) * error
    kept = (round(value, PLACES) for value in (ratio, ratio * exp(-reach), ratio * exp(reach)))
    return FeeCover(*kept, days=count, error=round(error, PLACES))


@cache
def student_t(quantile: float, degrees: int) -> float:
    """Student's quantile above the middle, to six decimals: 1.44 at 0.90 and 6 degrees of freedom."""
    if not 0.5 <= quantile < 1 or degrees < 1:
        raise ValueError(f"no quantile {quantile} with {degrees} degrees of freedom")
    low, high = 0.0, 1.0
    while _between(high, degrees) < 2 * quantile - 1:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _between(middle, degrees) < 2 * quantile - 1 else (low, middle)
    return round(high, 6)


def _between(t: float, degrees: int) -> float:
    """The probability of −t to t, by the finite sum for a whole number of degrees."""
    cosine2 = degrees / (degrees + t * t)
    sine = t / sqrt(degrees + t * t)
    odd = degrees % 2
    term = total = sqrt(cosine2) if odd else 1.0
    for step in range(2 + odd, degrees, 2):
        term *= cosine2 * (step - 1) / step
        total += term
    if not odd:
        return sine * total
    return 2 / pi * (atan(t / sqrt(degrees)) + (sine * total if degrees > 1 else 0.0))
