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
    """What the position earns, LVR apart."""
    net_per_hour: Fraction
    """The same after LVR."""
    break_even_hours: Fraction | None
    """After which what went in has earned the gas back, LVR paid; None where LVR takes all it earns."""
    best_in_hours: float | None
    """From now, when waiting costs as much as another transaction: 0 is now."""

    @property
    def pays(self) -> bool:
        return self.break_even_hours is not None and self.break_even_hours <= HORIZON_HOURS


def weigh_compounding(
    goes_in: Fraction, owed: Fraction, gas: Fraction, worth: Fraction, hourly_yield: Fraction, hourly_lvr: Fraction
) -> Compounding:
    """`hourly_yield`, `hourly_lvr`: fees and LVR of an hour as shares of what is in the position.

    Fees come in at the yield; put back they earn it less LVR. Fees that wait earn nothing: at an interval of T hours
    that costs net yield × fees per hour × T ÷ 2 an hour, beside gas ÷ T. The sum is least at
    T = √(2 × gas ÷ (net yield × fees per hour)).
    """
    fees_per_hour, net = worth * hourly_yield, hourly_yield - hourly_lvr
    best = None
    if fees_per_hour > 0 and net > 0:
        interval = sqrt(2 * gas / (net * fees_per_hour))
        best = max(0.0, interval - float(owed / fees_per_hour))
    earned = goes_in * net
    return Compounding(goes_in, gas, fees_per_hour, worth * net, gas / earned if earned > 0 else None, best)
