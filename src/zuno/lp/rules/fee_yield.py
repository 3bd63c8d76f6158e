"""What a range would earn: measured fee growth, shared out over the liquidity that would be there."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import sqrt
from typing import Final

from zuno.amm.fees import PIPS, protocol_fee_of_direction, swap_fee
from zuno.amm.integers import MAX_UINT256, Q128
from zuno.amm.model import Block, PoolState, price_of
from zuno.lp.model.debate import FeeWindow
from zuno.lp.model.history import GrowthSample, PricedBlock, SwapEvent
from zuno.lp.ports.samples import PoolSample
from zuno.lp.rules.stress import HORIZON_HOURS

HOUR: Final = 3_600
DAY: Final = 24 * HOUR
WEEK: Final = 7 * DAY
FORTNIGHT: Final = 14 * DAY


def sample_of(pool: PoolState | PoolSample) -> GrowthSample:
    return GrowthSample(
        pool.block.timestamp, pool.fee_growth_global0_x128, pool.fee_growth_global1_x128, pool.sqrt_price_x96
    )


def fee_window(then: GrowthSample, now: GrowthSample, label: str) -> FeeWindow:
    """The growth between two samples, which may have wrapped round 2^256."""
    return FeeWindow(
        (now.growth0_x128 - then.growth0_x128) & MAX_UINT256,
        (now.growth1_x128 - then.growth1_x128) & MAX_UINT256,
        now.at - then.at,
        label,
    )


def reach_of(wanted: int) -> int:
    """How far from the wanted moment a sample of our own may lie, in seconds: 21 h of 7 d or more, 3 h of 24 h."""
    return min(wanted, WEEK) // 8


def find_sample(samples: Sequence[GrowthSample], at: int, reach: int) -> GrowthSample | None:
    fitting = [sample for sample in samples if abs(sample.at - at) <= reach]
    return min(fitting, key=lambda sample: (abs(sample.at - at), sample.at), default=None)


def growth_of_swaps(swaps: Sequence[SwapEvent], pool: PoolState) -> tuple[int, int, int]:
    """What the swaps after the first added to the fee growth of both tokens, and how many were uneven: those that ended
    in other liquidity than the swap before share their fees by the mean of both. Donations are not seen."""
    growth = [0, 0]
    uneven = 0
    for before, swap in pairwise(swaps):
        zero_for_one = swap.amount0 > 0
        paid = swap.amount0 if zero_for_one else swap.amount1
        fee = max(0, paid) * (swap.fee - _protocol_pips(pool, swap.fee, zero_for_one)) // PIPS
        ends = [liquidity for liquidity in (before.liquidity, swap.liquidity) if liquidity]
        uneven += before.liquidity != swap.liquidity
        if ends:
            growth[not zero_for_one] += sum(fee * Q128 // liquidity for liquidity in ends) // len(ends)
    return growth[0], growth[1], uneven


def mark_growth(
    pool: PoolState, swaps: Sequence[SwapEvent], after: Sequence[PricedBlock], marks: Sequence[Block]
) -> tuple[GrowthSample, ...]:
    """The growth since the first swap, at its block and at each of the later `marks`. `after`: of each swap its block
    and the price it left."""
    numbers = [priced.block.number for priced in after]
    samples = [GrowthSample(after[0].block.timestamp, 0, 0, after[0].sqrt_price_x96)]
    for mark in marks:
        if mark.number > numbers[0]:
            place = bisect_right(numbers, mark.number)
            growth0, growth1, _ = growth_of_swaps(swaps[:place], pool)
            samples.append(GrowthSample(mark.timestamp, growth0, growth1, after[place - 1].sqrt_price_x96))
    return tuple(samples)


def _protocol_pips(pool: PoolState, fee: int, zero_for_one: bool) -> int:
    """The protocol's share of a swap's fee: what the pool's own does not explain. Of two shares with the same fee,
    today's, else the larger, so that a provider is never promised what the protocol took."""
    today = protocol_fee_of_direction(pool.protocol_fee, zero_for_one)
    if pool.key.dynamic_fee:
        return min(fee, today)
    lp_fee = int(pool.key.fee)
    if lp_fee >= PIPS or fee <= lp_fee:
        return 0
    near = (fee - lp_fee) * PIPS // (PIPS - lp_fee)
    fitting = [pips for pips in (near - 1, near, near + 1) if swap_fee(pips, lp_fee) == fee]
    return today if today in fitting else max(fitting, default=near)


LEAST_COVERED: Final = Fraction(3, 4)
"""Of a window, the share that swaps must reach back over: a pool younger than that has earned in less time."""


def fees_hour_token1(
    window: FeeWindow | None, *, sqrt_price_x96: int, liquidity: int, pool_liquidity: int, others_liquidity: int
) -> Fraction | None:
    """Expected fees of an hour in range, in base units of token1 at today's price; None if the growth is unknown. With
    us the fees are shared by `others_liquidity + liquidity` instead of `pool_liquidity`."""
    if window is None:
        return None
    if liquidity == 0:
        return Fraction(0)
    if pool_liquidity <= 0:
        # Growth per unit of liquidity was measured, but of which liquidity is no longer known.
        return None
    per_unit = (window.growth0_x128 * price_of(sqrt_price_x96) + window.growth1_x128) / Q128
    diluted = Fraction(pool_liquidity, others_liquidity + liquidity)
    return per_unit * liquidity * diluted * Fraction(HOUR, window.seconds)


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
    """`hourly_yield`, `hourly_lvr`: as shares of what is in the position. Waiting T hours costs net yield × fees per
    hour × T ÷ 2 an hour, beside gas ÷ T; the least is at T = √(2 × gas ÷ (net yield × fees per hour))."""
    fees_per_hour, net = worth * hourly_yield, hourly_yield - hourly_lvr
    best = None
    if fees_per_hour > 0 and net > 0:
        interval = sqrt(2 * gas / (net * fees_per_hour))
        best = max(0.0, interval - float(owed / fees_per_hour))
    earned = goes_in * net
    return Compounding(goes_in, gas, fees_per_hour, worth * net, gas / earned if earned > 0 else None, best)
