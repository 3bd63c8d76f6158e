"""What a short perpetual of a range's volatile token costs and pays, along the stress paths.

The short is as large as what the range holds of the token, and is set again where it is off by a tenth of the most the
range is counted to hold. Whoever watches does not wait for the hour to end: a step of d within an hour is d²/band of
turnover, as of a walk that is followed all the time. Like fees and LVR both are counted at today's price: what the
token gains or loses stands in neither, for the range has it as the short loses or gains it.
"""

from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from zuno.amm.integers import Q96
from zuno.amm.model import PoolState
from zuno.lp.model.ballot import Hedge, HedgeTerms
from zuno.lp.rules.stress import PATHS, Barriers, StressPaths

BAND: Final = Fraction(1, 10)
"""Of the most the range is counted to hold: at half of it hedging costs half as much again, and is no better."""
WHOLE: Final = 1 << 15
"""Shares of the most are counted in parts of this, whose square fits 32 bits."""
_STEP_BITS: Final = 10
"""Between two prices lie at most so many powers of two of steps, each a power of two of nano."""
_EXACT: Final = Context(prec=40)
_NANO: Final = Decimal("1e-9")


def is_off(held: Decimal, wanted: Decimal, most: Decimal) -> bool:
    """Whether a short is set again. One that is to end always is."""
    return (not wanted and bool(held)) or abs(wanted - held) * BAND.denominator >= most * BAND.numerator > 0


@dataclass(frozen=True, slots=True, eq=False)
class HedgePaths:
    """A short along each path, as shares of `most` in parts of `WHOLE`."""

    most: Fraction
    """Of the volatile token, per unit of L/√P (token0) or L·√P (token1): all the range can hold, but no more than the
    whole position is worth of it today. A full range could hold any amount."""
    start: int
    turnover: tuple[int, ...]
    """Traded after the beginning, by path."""
    short_hours: tuple[int, ...]
    """Sold short at the end of each hour, added up."""


@lru_cache(maxsize=64)
def follow_range(paths: StressPaths, edges: Barriers, side: Literal[0, 1]) -> HedgePaths:
    """Integers along the paths, and a table of exact roots: every machine sets the same shorts."""
    low = max(edges.lower, min(0, int(paths.lows.min())))
    high = max(low + 1, min(edges.upper, max(1, int(paths.highs.max()))))
    step = max(0, (high - low).bit_length() - _STEP_BITS)
    most, table = _tabulate(edges, low, high, step, side)
    places = np.clip(paths.sums.astype(np.int64), low, high)
    places -= low
    places >>= step
    start = int(table[(min(max(0, low), high) - low) >> step])
    held = table.take(places)
    steps = np.empty_like(held)
    steps[0] = held[0] - start
    np.subtract(held[1:], held[:-1], out=steps[1:])
    steps *= steps
    turnover = steps.sum(axis=0, dtype=np.int64) * BAND.denominator // (BAND.numerator * WHOLE)
    return HedgePaths(most, start, tuple(turnover.tolist()), tuple(held.sum(axis=0, dtype=np.int64).tolist()))


def _tabulate(
    edges: Barriers, low: int, high: int, bits: int, side: Literal[0, 1]
) -> tuple[Fraction, NDArray[np.int32]]:
    """The most that is held, and what is held at prices from `low` to `high`; as √P over today's."""
    with localcontext(_EXACT):

        def root(nano: int) -> Decimal:
            return (Decimal(nano) * _NANO / 2).exp()

        lower, upper = root(edges.lower), root(edges.upper)
        here = min(max(Decimal(1), lower), upper)
        whole = 1 / lower - 1 / upper if side == 0 else upper - lower
        most = min(whole, (1 / here - 1 / upper) + (here - lower))
        step = root(1 << bits)
        if side == 0:
            place, step, edge = 1 / root(low), 1 / step, 1 / upper
        else:
            place, edge = root(low), lower
        unit, shares = WHOLE / most, list[int]()
        for _ in range(((high - low) >> bits) + 1):
            shares.append(max(0, int((place - edge) * unit)))
            place *= step
        return Fraction(most), np.array(shares, dtype=np.int32)


def score_hedge(terms: HedgeTerms, followed: HedgePaths, liquidity: int, amount: int, pool: PoolState) -> Hedge:
    """The short beside liquidity that holds `amount` of the token; re-sets and funding as means of the paths."""
    root, side = Fraction(pool.sqrt_price_x96, Q96), terms.side
    most = followed.most * liquidity * (1 / root if side == 0 else root)
    worth = most * (pool.price if side == 0 else 1)
    kept = bool(terms.held) and not is_off(Decimal(terms.held), Decimal(amount), Decimal(round(most)))
    begun = 0 if kept else abs(amount - terms.held)
    return Hedge(
        market=terms.market,
        side=side,
        amount=amount,
        most=round(most),
        begin_token1=terms.cost * begun * (pool.price if side == 0 else 1),
        reset_token1=terms.cost * worth / WHOLE,
        funding_hour_token1=terms.funding_hour * worth / WHOLE,
        mean_turnover=Fraction(sum(followed.turnover), PATHS),
        mean_short_hours=Fraction(sum(followed.short_hours), PATHS),
    )
