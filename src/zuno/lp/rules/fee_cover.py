"""Fee cover: what a pool's fees paid of what arbitrage took, with the error of that answer. It does not depend on the
width of a range, so it says whether to be in a pool at all; a width only says how much of it one takes.

    Q = ΣF / ΣV                     by day: F the fee growth per unit of liquidity, both tokens in token1, V = √P·RV/4
    e_d = F_d − Q·V_d
    s = √(n/(n−1) · max(Σe², Σe² + Σ e_d·e_{d−1})) / ΣF
    Q_low, Q_high = Q · exp(∓t·s)   t: Student's quantile with n − 1 degrees of freedom

RV is the reference price's, from returns of five minutes. A pool's own price stands idle inside ± its fee, so its short
returns are too small: without a reference, the returns are as short as a deviation of five fees allows.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from math import exp, fsum, sqrt
from typing import Final, TypeAlias

from zuno.amm.fees import PIPS
from zuno.amm.integers import Q96, Q128
from zuno.amm.model import price_of
from zuno.lp.model.cover import ONE_SIDED, PLACES
from zuno.lp.model.cover import FeeCover as FeeCover
from zuno.lp.model.cover import PoolDay as PoolDay
from zuno.lp.model.cover import student_t as student_t
from zuno.lp.rules.volatility import NANO, log_ratio


def measure_fee_cover(days: Sequence[PoolDay], *, rewarded: bool = False) -> FeeCover | None:
    """None: fewer than two days, or no LVR to hold the fees against, or no fees."""
    days = sorted(days, key=lambda day: day.day)
    fees, lvr, count = fsum(day.fees for day in days), fsum(day.lvr for day in days), len(days)
    if count < 2 or fees <= 0 or lvr <= 0:
        return None
    ratio = fees / lvr
    rests = [day.fees - ratio * day.lvr for day in days]
    squares = fsum(rest * rest for rest in rests)
    neighbours = fsum(before * after for before, after in pairwise(rests))
    error = sqrt(count / (count - 1) * max(squares, squares + neighbours)) / fees
    reach = student_t(ONE_SIDED, count - 1) * error
    middle, low, high = (round(value, PLACES) for value in (ratio, ratio * exp(-reach), ratio * exp(reach)))
    return FeeCover(middle, low, high, days=count, error=round(error, PLACES), rewarded=rewarded)


LogPrice: TypeAlias = tuple[int, int]
"""Unix seconds, and the natural logarithm of the price from then on, in 1e-9."""
GRIDS: Final = (5, 15, 30, 60, 120, 240, 480)
"""Minutes that a return may span."""
DEVIATION_IN_FEES: Final = 5
MINUTE: Final = 60


def log_of(price: Fraction) -> int:
    return round(log_ratio(price, Fraction(1)) * NANO)


def measure_variances(path: Sequence[LogPrice], edges: Sequence[int], minutes: int) -> tuple[float | None, ...]:
    """The variance of the log price in each span between two edges (days, mostly), from its returns of so many minutes.
    All grids count, five minutes apart, or one where a return spans five. None: no price of a span is known.
    `path` is in order of time."""
    returns = list(_squared_returns(path, edges, minutes))
    ends, squares = [at for at, _ in returns], [square for _, square in returns]
    variances: list[float | None] = []
    for start, end in pairwise(edges):
        within = squares[bisect_right(ends, start) : bisect_right(ends, end)]
        mean = Fraction(sum(within) * (end - start), max(1, len(within)) * minutes * MINUTE * NANO**2)
        variances.append(float(mean) if within else None)
    return tuple(variances)


def measure_changes(path: Sequence[LogPrice], edges: Sequence[int]) -> tuple[float | None, ...]:
    """The same of a path that is known whole: every change counts, however short."""
    variances: list[float | None] = []
    for start, end in pairwise(edges):
        squares = sum((after[1] - before[1]) ** 2 for before, after in pairwise(path) if start < after[0] <= end)
        known = bool(path) and path[0][0] <= start
        variances.append(float(Fraction(squares, NANO**2)) if known else None)
    return tuple(variances)


def choose_minutes(path: Sequence[LogPrice], edges: Sequence[int], fee_pips: int) -> int | None:
    """How many minutes a return of the pool's own price must span, if any of `GRIDS` is long enough for its fee."""
    for minutes in GRIDS:
        squares = [square for _, square in _squared_returns(path, edges, minutes)]
        if squares and sum(squares) * PIPS**2 >= (DEVIATION_IN_FEES * fee_pips * NANO) ** 2 * len(squares):
            return minutes
    return None


def _squared_returns(path: Sequence[LogPrice], edges: Sequence[int], minutes: int) -> Iterator[tuple[int, int]]:
    """The end of each return between the first and last edge, and its square in 1e-18. A price stands until the next
    one."""
    step = MINUTE if minutes <= GRIDS[0] else GRIDS[0] * MINUTE
    begin = -(-max(edges[0], path[0][0]) // step) * step if path else edges[-1] + 1
    grid, place = list[int](), 0
    for at in range(begin, edges[-1] + 1, step):
        while place + 1 < len(path) and path[place + 1][0] <= at:
            place += 1
        grid.append(path[place][1])
    apart = minutes * MINUTE // step
    for number, (before, after) in enumerate(zip(grid, grid[apart:], strict=False)):
        yield begin + (number + apart) * step, (after - before) ** 2


def measure_day(
    day: int, growth0_x128: int, growth1_x128: int, sqrt_before_x96: int, sqrt_after_x96: int, variance: float
) -> PoolDay:
    """A day by its fee growth, at the price midway between its two ends."""
    middle = (sqrt_before_x96 + sqrt_after_x96) // 2
    fees = (growth0_x128 * price_of(middle) + growth1_x128) / Q128
    return PoolDay(day, float(fees), float(Fraction(middle, Q96) * Fraction(variance) / 4))


ELASTICITY: Final = 0.75
"""Of a day's fees to its variance, where too few days of the pool are known."""
ELASTICITY_DAYS: Final = 14
ELASTICITY_BOUNDS: Final = (0.5, 1.0)


def measure_elasticity(days: Sequence[PoolDay]) -> float:
    """By how many percent a day's fees rise with one percent of its variance, to two decimals."""
    moved = [day for day in days if day.fees > 0 and day.lvr > 0]
    if len(moved) < ELASTICITY_DAYS:
        return ELASTICITY
    logs = [tuple(log_ratio(Fraction(value), Fraction(1)) for value in (day.lvr, day.fees)) for day in moved]
    mean_x, mean_y = (fsum(log[side] for log in logs) / len(logs) for side in (0, 1))
    spread = fsum((x - mean_x) ** 2 for x, _ in logs)
    if not spread:
        return ELASTICITY
    slope = fsum((x - mean_x) * (y - mean_y) for x, y in logs) / spread
    return round(min(max(slope, ELASTICITY_BOUNDS[0]), ELASTICITY_BOUNDS[1]), 2)
