"""Which pool pays, and why one cannot be ranked.

The best of k pools none of which pays looks good by chance: a pool pays where the low end of its fee cover is above 1
at the quantile 1 − 0.10/k. Money is counted for a range of ±5 % that is in range all the time.
"""

from collections.abc import Sequence
from math import fsum, sqrt
from typing import Final, NamedTuple

from zuno.amm.model import PoolState
from zuno.lp.model.cover import FeeCover, PoolDay, RankFault
from zuno.lp.rules.fee_cover import measure_fee_cover

FALSE_NAMES: Final = 0.10
"""How often a ranking of pools none of which pays may name one, if their errors were as Student's."""
WEEK_DAYS: Final = 7
COVER_DAYS: Final = 14
WINDOW_DAYS: Final = 30
RANGE_PERCENT: Final = 5
WORTH: Final = 2 * (1 - 1 / sqrt(1 + RANGE_PERCENT / 100))
"""Of a unit of liquidity in that range, in √P of token1."""
_DECIMALS: Final = range(2, 25)
"""What tokens have; a contract that does not say counts as 0."""
_TAKES_SHARE: Final = 0b1111
"""Flags in a hook's address: it may change what a swap or a provider of liquidity pays or gets."""


class PastDay(NamedTuple):
    """A finished day of a pool: fees and LVR of a unit of liquidity, and √P; in token1."""

    fees: float
    lvr: float
    root: float


def find_fault(pool: PoolState, days: Sequence[PastDay]) -> RankFault | None:
    if pool.key.dynamic_fee:
        return RankFault.DYNAMIC_FEE
    if int(pool.key.hooks, 16) & _TAKES_SHARE:
        return RankFault.HOOK
    if not all(token.decimals in _DECIMALS for token in (pool.token0, pool.token1)):
        return RankFault.DECIMALS
    if not pool.liquidity:
        return RankFault.NO_LIQUIDITY
    if len(days) < COVER_DAYS:
        return RankFault.FEW_DAYS
    return None if all(day.fees for day in days[-COVER_DAYS:]) else RankFault.NO_SWAPS


def measure_cover(days: Sequence[PastDay]) -> FeeCover | None:
    return measure_fee_cover([PoolDay(at, day.fees, day.lvr) for at, day in enumerate(days[-COVER_DAYS:])])


def pays(cover: FeeCover, ranked: int) -> bool:
    return cover.find_low(1 - FALSE_NAMES / ranked) > 1


def share_out(days: Sequence[PastDay], count: int) -> tuple[float | None, float | None]:
    """Fees and LVR of so many last days as shares of what is in range; None: fewer are known."""
    last = days[-count:]
    if len(last) < count:
        return None, None
    return fsum(day.fees / day.root for day in last) / WORTH, fsum(day.lvr / day.root for day in last) / WORTH
