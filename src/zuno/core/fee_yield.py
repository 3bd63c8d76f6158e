"""What a range would earn: measured fee growth, shared out over the liquidity that would be there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from zuno.core.amm.integers import MAX_UINT256, Q128
from zuno.domain.pool import price_of
from zuno.domain.units import Seconds

DAY: Final = 86_400
WEEK: Final = 7 * DAY


@dataclass(frozen=True, slots=True)
class GrowthSample:
    """A pool's fee growth at a moment."""

    at: Seconds
    growth0_x128: int
    growth1_x128: int


@dataclass(frozen=True, slots=True)
class FeeWindow:
    """Fees per unit of in-range liquidity over one window."""

    growth0_x128: int
    growth1_x128: int
    seconds: int
    label: str
    """The window and where it was read: "7 d of our own samples"."""

    def __post_init__(self) -> None:
        if self.seconds <= 0:
            raise ValueError("a fee window has a length")


def fee_window(then: GrowthSample, now: GrowthSample, label: str) -> FeeWindow:
    """The growth between two samples, which may have wrapped round 2^256."""
    return FeeWindow(
        (now.growth0_x128 - then.growth0_x128) & MAX_UINT256,
        (now.growth1_x128 - then.growth1_x128) & MAX_UINT256,
        now.at - then.at,
        label,
    )


def best_window(samples: Sequence[GrowthSample], now: GrowthSample, source: str) -> FeeWindow | None:
    """Seven days if a sample reaches back that far, else one day, else None: no other window is made up.

    The youngest sample at least that old is taken, if it is not older than one more day.
    """
    for wanted, name in ((WEEK, "7 d"), (DAY, "24 h")):
        fitting = [sample for sample in samples if wanted <= now.at - sample.at <= wanted + DAY]
        if fitting:
            return fee_window(max(fitting, key=lambda sample: sample.at), now, f"{name} of {source}")
    return None


def fees24h_token1(
    window: FeeWindow | None,
    *,
    sqrt_price_x96: int,
    liquidity: int,
    pool_liquidity: int,
    others_liquidity: int,
    in_range_share_24h: Fraction,
) -> Fraction | None:
    """Expected fees of the next 24 h, in base units of token1 at today's price; None when the growth is unknown.

    The pool as measured paid `pool_liquidity`; with us there it would pay `others_liquidity + liquidity`, so the
    same fees are shared by more (or, after we leave, by fewer).
    """
    if window is None:
        return None
    if liquidity == 0 or in_range_share_24h == 0:
        return Fraction(0)
    if pool_liquidity <= 0:
        # Growth per unit of liquidity was measured, but of which liquidity cannot be told any more.
        return None
    per_unit = (window.growth0_x128 * price_of(sqrt_price_x96) + window.growth1_x128) / Q128
    diluted = Fraction(pool_liquidity, others_liquidity + liquidity)
    return per_unit * liquidity * diluted * in_range_share_24h * Fraction(DAY, window.seconds)
