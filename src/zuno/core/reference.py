"""How far a pool's price is from what the rest of the world pays: too far, and nobody acts on it."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from zuno.domain.pool import PoolState, whole_price

REFERENCE_LIMIT: Final = Fraction(1, 100)
"""A pool price further than this from the reference is nobody's ground to act on."""


def reference_gap(pool: PoolState, spot: Fraction) -> Fraction:
    """As a share of the reference, which is quoted the way people quote the pair."""
    return abs(whole_price(pool.sqrt_price_x96, pool.token0, pool.token1) / spot - 1)
