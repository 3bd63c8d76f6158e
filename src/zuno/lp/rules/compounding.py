"""Whether fees are worth putting back into their position, and when it pays best. Statistics, not balances."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

from zuno.lp.rules.stress import HORIZON_HOURS


@dataclass(frozen=True, slots=True)
class Compounding:
    """Gas against what the fees would earn in the position; money in one currency."""

    goes_in: Fraction
    """Of the fees owed, what the range takes at this price."""
    gas: Fraction
    fees_per_hour: Fraction
    """What the position earns."""
    break_even_hours: Fraction | None
    """After which what went in has earned the gas back; None where it earns nothing."""
    best_in_hours: float | None
    """From now, when waiting costs as much as another transaction: 0 is now."""

    @property
    def pays(self) -> bool:
        return self.break_even_hours is not None and self.break_even_hours <= HORIZON_HOURS


def weigh_compounding(
    goes_in: Fraction, owed: Fraction, gas: Fraction, worth: Fraction, hourly_yield: Fraction
) -> Compounding:
    """`hourly_yield`: fees for an hour as a share of what is in the position.

    Fees that wait earn nothing: at an interval of T hours that costs yield × fees per hour × T ÷ 2 an hour, beside
    gas ÷ T. The sum is least at T = √(2 × gas ÷ (yield × fees per hour)).
    """
    fees_per_hour = worth * hourly_yield
    earned = goes_in * hourly_yield
    best = None
    if fees_per_hour > 0:
        interval = sqrt(2 * gas / (hourly_yield * fees_per_hour))
        best = max(0.0, interval - float(owed / fees_per_hour))
    return Compounding(goes_in, gas, fees_per_hour, gas / earned if earned > 0 else None, best)
