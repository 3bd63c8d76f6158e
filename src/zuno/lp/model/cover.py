"""Fee cover of a pool as a debate carries it: its days, the answer, its error's quantile; why one has no rank."""

from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from math import atan, exp, pi, sqrt
from typing import Annotated, Final

from pydantic import Field

ONE_SIDED: Final = 0.90
"""Of each end of an interval: 80 % lies between."""
PLACES: Final = 9
"""Decimals that are kept: a processor's last bit is not among them."""


class RankFault(StrEnum):
    """Why a pool is not ranked."""

    DYNAMIC_FEE = "dynamic fee"
    HOOK = "hook may take a share"
    DECIMALS = "odd decimals"
    NO_LIQUIDITY = "no liquidity"
    UNREAD = "could not be read"
    FEW_DAYS = "under 14 days"
    NO_SWAPS = "no swaps for a day"
    NO_REFERENCE = "no reference price"


@dataclass(frozen=True, slots=True)
class PoolDay:
    """What a unit of liquidity in range earned and lost in one day, in token1."""

    day: int
    """Of its end: since 1970, in UTC."""
    fees: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    lvr: Annotated[float, Field(ge=0, allow_inf_nan=False)]


@dataclass(frozen=True, slots=True)
class FeeCover:
    ratio: float
    low: float
    high: float
    days: int
    error: float
    """Of its logarithm."""
    rewarded: Annotated[bool, Field(exclude_if=lambda value: not value)] = False
    """Rewards that the owner named are among the fees."""

    def find_low(self, quantile: float) -> float:
        """The lower end at another quantile: of k pools that were ranked, `1 − 0.10 / k`."""
        return round(self.ratio * exp(-student_t(quantile, self.days - 1) * self.error), PLACES)


@cache
def student_t(quantile: float, degrees: int) -> float:
    """Student's quantile above the middle, to six decimals: 1.44 at 0.90 and 6 degrees of freedom."""
    if not 0.5 <= quantile < 1 or degrees < 1:
        raise ValueError(f"no quantile {quantile} with {degrees} degrees of freedom")
    low, high = 0.0, 1.0
    while student_share(high, degrees) < 2 * quantile - 1:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if student_share(middle, degrees) < 2 * quantile - 1 else (low, middle)
    return round(high, 6)


def student_share(t: float, degrees: int) -> float:
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
