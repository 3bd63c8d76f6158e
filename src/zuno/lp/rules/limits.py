"""Limits by risk profile: the least time in range under stress, and the most gas against the fees of a day."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Final, Literal

from zuno.amm.model import PoolState, whole_price
from zuno.kernel.errors import Refused
from zuno.kernel.text import Token, is_stable
from zuno.lp.model.ballot import RiskProfile

MOST_PROPOSED: Final = 5
"""Ranges of one proposal, by rule and by model."""


@dataclass(frozen=True, slots=True)
class ProfileLimits:
    floor_1x_hours: Fraction
    floor_2x_hours: Fraction
    gas_yield_ceiling: Fraction
    """Gas cost over expected 24 h fees."""


# A 2× floor of a quarter of the 1× floor would say nothing new: exit times shrink with the square of the
# multiple. These are under a quarter, so that a range can fail the 1× floor and pass the 2× one.
LIMITS: Final[Mapping[RiskProfile, ProfileLimits]] = MappingProxyType(
    {
        RiskProfile.CONSERVATIVE: ProfileLimits(Fraction(36), Fraction(6), Fraction("1.2")),
        RiskProfile.BALANCED: ProfileLimits(Fraction(24), Fraction(4), Fraction("1.6")),
        RiskProfile.AGGRESSIVE: ProfileLimits(Fraction(14), Fraction("2.5"), Fraction("2.4")),
    }
)

REFERENCE_LIMIT: Final = Fraction(1, 100)
"""No plan acts on a pool whose price is further than this from the reference price."""

CRASH_LIMIT: Final = Fraction(5, 100)
"""The same for an exit whose mandate allows it in a crash."""


def reference_gap(pool: PoolState, spot: Fraction) -> Fraction:
    """As a share of the reference, which is quoted the way people quote the pair."""
    return abs(whole_price(pool.sqrt_price_x96, pool.token0, pool.token1) / spot - 1)


def find_volatile_side(token0: Token, token1: Token) -> Literal[0, 1]:
    """Which token a hedge sells. `Refused` where it is not one of them."""
    stable = (is_stable(token0), is_stable(token1))
    names = f"{token0.display_name} and {token1.display_name}"
    if stable == (True, True):
        raise Refused(f"{names} are both dollars: there is nothing to hedge.")
    if stable == (False, False):
        raise Refused(f"{names} both move against the dollar: hedging them takes two shorts, and Zuno keeps one.")
    return 0 if stable[1] else 1
