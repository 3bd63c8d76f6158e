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
from zuno.kernel.errors import Refused
from zuno.kernel.text import Token, is_stable
from zuno.lp.model.ballot import Hedge, HedgeTerms
from zuno.lp.rules.stress import PATHS, Barriers, StressPaths

BAND: Final = Fraction(1, 10)
"""Of the most the range is counted to hold: at half of it hedging costs half as much again, and is no better."""
WHOLE: Final = 1 << 20
"""Shares of the most are counted in parts of this."""
_STEPS: Final = 1_024
_EXACT: Final = Context(prec=40)
_NANO: Final = Decimal("1e-9")


def find_volatile_side(token0: Token, token1: Token) -> Literal[0, 1]:
    """Which token a hedge sells. `Refused` where it is not one of them."""
    stable = (is_stable(token0), is_stable(token1))
    names = f"{token0.display_name} and {token1.display_name}"
    if stable == (True, True):
        raise Refused(f"{names} are both dollars: there is nothing to hedge.")
    if stable == (False, False):
        raise Refused(f"{names} both move against the dollar: hedging them takes two shorts, and Zuno keeps one.")
    return 0 if stable[1] else 1


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
    most, table = _tabulate(edges, low, high, side)
    places = np.clip(paths.sums, low, high)
    places -= low
    places *= _STEPS
    places //= high - low
    start = int(table[(min(max(0, low), high) - low) * _STEPS // (high - low)])
    held = table[places]
    steps = np.diff(held, axis=0, prepend=start)
    steps *= steps
    turnover = steps.sum(axis=0) * BAND.denominator // (BAND.numerator * WHOLE)
    return HedgePaths(most, start, tuple(turnover.tolist()), tuple(held.sum(axis=0).tolist()))


def _tabulate(edges: Barriers, low: int, high: int, side: Literal[0, 1]) -> tuple[Fraction, NDArray[np.int64]]:
    """The most that is held, and what is held at prices from `low` to `high`; as √P over today's."""
    with localcontext(_EXACT):

        def root(nano: int) -> Decimal:
            return (Decimal(nano) * _NANO / 2).exp()

        lower, upper = root(edges.lower), root(edges.upper)
        here = min(max(Decimal(1), lower), upper)
        whole = 1 / lower - 1 / upper if side == 0 else upper - lower
        most = min(whole, (1 / here - 1 / upper) + (here - lower))
        price, step, shares = root(low), (Decimal(high - low) * _NANO / (2 * _STEPS)).exp(), list[int]()
        for _ in range(_STEPS + 1):
            held = 1 / price - 1 / upper if side == 0 else price - lower
            shares.append(int(max(Decimal(0), held) * WHOLE / most))
            price *= step
        return Fraction(most), np.array(shares, dtype=np.int64)


def score_hedge(terms: HedgeTerms, followed: HedgePaths, liquidity: int, pool: PoolState) -> Hedge:
    """The short beside this much liquidity, its running cost and its funding as means of the paths."""
    root, side = Fraction(pool.sqrt_price_x96, Q96), terms.side
    most = followed.most * liquidity * (1 / root if side == 0 else root)
    worth = most * (pool.price if side == 0 else 1)
    amount = round(most * followed.start / WHOLE)
    begun = (
        0
        if terms.held and not is_off(Decimal(terms.held), Decimal(amount), Decimal(round(most)))
        else abs(amount - terms.held)
    )
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
