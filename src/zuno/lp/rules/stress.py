"""How long a range would last: the pair's own past, shuffled in days, walked a thousand times.

Integers all the way, in 1e-9 of log price, so that every machine draws the same paths and counts the same exits.
Scaling a path by the multiple scales its sums, so one set of paths serves every candidate at every multiple:
what a multiple changes is the barrier.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil, isqrt
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from zuno.amm.integers import Q96
from zuno.amm.model import Range
from zuno.kernel.errors import Unavailable
from zuno.lp.model.ballot import Stress, StressPoint
from zuno.lp.rules.volatility import NANO, nano_returns

HISTORY_HOURS: Final = 720
LEAST_HISTORY: Final = 168
"""Fewer returns than this are used, and said."""
BLOCK_HOURS: Final = 24
"""Returns are drawn a day at a time, so that a day keeps its own clustering."""
PATHS: Final = 1_000
HORIZON_HOURS: Final = 336
DAY_HOURS: Final = 24

# Watching once an hour misses the excursions in between; moving the barriers in by this much of an hour's
# deviation makes up for it.
_INWARD: Final = (5_826, 10_000)

# Returns are squared in steps of 2^7 nano, which hold the wildest hour a context may have 336 times over.
_SQUARE_BITS: Final = 7
SQUARE: Final = Fraction(4**_SQUARE_BITS, NANO**2)

_WILDEST: Final = 10 * NANO

_BLOCKS: Final = HORIZON_HOURS // BLOCK_HOURS
_EXACT: Final = Context(prec=40)
_WEIGHING: Final = Context(prec=18)
_UNSURE: Final = 1e-12
"""Of a weight: far more than what two processors' powers may differ by."""
PPM: Final = 10**6
# ln(1.0001) in 1e-27: a tick index times this is good to far less than a nano.
_LN_TICK_E27: Final = int(_EXACT.scaleb(_EXACT.ln(Decimal("1.0001")), 27))


Sums: TypeAlias = NDArray[np.int32] | NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class StressPaths:
    """One set of paths. Hours run down the rows, paths across the columns; the arrays are read-only."""

    highs: Sums
    """Highest sum of returns so far."""
    lows: Sums
    sums: Sums
    """Sum of returns at the end of each hour."""
    inward: int
    """How far the barriers move in, at 1×."""
    returns: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Barriers:
    """The edges of a range as seen from the price, in 1e-9 of log price."""

    lower: int
    upper: int
    inside: bool
    """The price starts in the range."""


def draw_paths(returns: Sequence[float], *, seed: int = 0, variance: float | None = None) -> StressPaths:
    """The path set of a pair's last 720 hourly log returns, oldest first, in token1 per token0; the same returns give
    the same set. `variance`: of a day, to which they are scaled."""
    nano = nano_returns(returns[-HISTORY_HOURS:])
    return _draw(nano if variance is None else _scale(nano, variance), seed)


@lru_cache(maxsize=8)
def _scale(returns: tuple[int, ...], variance: float) -> tuple[int, ...]:
    """Their squares about the mean, a day's together, come to the variance."""
    count = len(returns)
    squares = count * sum(value * value for value in returns) - sum(returns) ** 2
    if not squares:
        return returns
    times = isqrt(int(Fraction(variance) * NANO**4 * count * (count - 1) / (DAY_HOURS * squares)))
    return tuple(max(-_WILDEST, min(_WILDEST, _divide_to_even(value * times, NANO))) for value in returns)


def _divide_to_even(value: int, by: int) -> int:
    whole, rest = divmod(value, by)
    return whole + (2 * rest > by or (2 * rest == by and whole % 2))


@lru_cache(maxsize=8)
def _draw(returns: tuple[int, ...], seed: int) -> StressPaths:
    count = len(returns)
    if count < BLOCK_HOURS:
        raise Unavailable(f"{count} hourly returns are known, a stress test draws days of {BLOCK_HOURS}")
    total = sum(returns)
    mean = round(Fraction(total, count))
    squares = count * sum(value * value for value in returns) - total * total
    numerator, denominator = _INWARD
    inward = isqrt(numerator**2 * squares // (denominator**2 * count * (count - 1)))

    # The past wraps round, so that its first and last days are drawn as often as the others.
    past = np.array([value - mean for value in (*returns, *returns[: BLOCK_HOURS - 1])], dtype=np.int64)
    days: Sums = np.cumsum(np.lib.stride_tricks.sliding_window_view(past, BLOCK_HOURS).T, axis=0)
    if int(np.abs(days).max()) * _BLOCKS < 2**31:  # no path gets further, so half the memory will do
        days = days.astype(np.int32)
    # Raw words of the generator: numpy promises them for ever, its bounded integers only for a version.
    words = np.random.PCG64(seed).random_raw(_BLOCKS * PATHS)
    starts = (words % np.uint64(count)).astype(np.int64).reshape(_BLOCKS, PATHS)

    by_day = np.empty((_BLOCKS, BLOCK_HOURS, PATHS), dtype=days.dtype)
    for block in range(_BLOCKS):
        np.take(days, starts[block], axis=1, out=by_day[block], mode="clip")
        if block:
            by_day[block] += by_day[block - 1, -1]
    sums = by_day.reshape(HORIZON_HOURS, PATHS)
    highs, lows = np.empty_like(sums), np.empty_like(sums)
    highs[0] = lows[0] = sums[0]
    # Row by row this takes a fifth of what ufunc.accumulate does, which walks the columns.
    for hour in range(1, HORIZON_HOURS):
        np.maximum(highs[hour - 1], sums[hour], out=highs[hour])
        np.minimum(lows[hour - 1], sums[hour], out=lows[hour])
    for array in (highs, lows, sums):
        array.flags.writeable = False
    notes = () if count >= LEAST_HISTORY else (f"stress rests on {count} hourly returns, {LEAST_HISTORY} are wanted",)
    return StressPaths(highs, lows, sums, inward, count, notes)


def barriers(band: Range, sqrt_price_x96: int, tick: int) -> Barriers:
    """The range's edges relative to the price. `tick` is the pool's own, which alone decides what is inside."""
    here = _nano_log_price(sqrt_price_x96)
    return Barriers(_nano_log_tick(band.lower) - here, _nano_log_tick(band.upper) - here, band.contains(tick))


@lru_cache(maxsize=32)
def stress(paths: StressPaths, edges: Barriers) -> Stress:
    """The range at 1×, 2× and 3×; the last few are kept, for everybody at the desk recomputes them."""
    x1, x2, x3 = (_point(paths, edges, multiple) for multiple in (1, 2, 3))
    return Stress(x1, x2, x3, HORIZON_HOURS, paths.notes)


def survives_hours(paths: StressPaths, edges: Barriers, multiple: int, hours: Fraction) -> bool:
    """The buffer at this multiple is at least `hours`: one look where the whole stress takes dozens."""
    if hours <= 0:
        return True
    return hours <= HORIZON_HOURS and 2 * _left_by(paths, edges, multiple, ceil(hours) - 1) < PATHS


def _point(paths: StressPaths, edges: Barriers, multiple: int) -> StressPoint:
    inside = _inside(paths, edges, multiple)
    median = _hour_when(paths, edges, multiple, PATHS // 2)
    return StressPoint(
        multiple=multiple,
        median_hours=median,
        p10_hours=_hour_when(paths, edges, multiple, PATHS // 10),
        p_exit_24h=Fraction(_left_by(paths, edges, multiple, DAY_HOURS - 1), PATHS),
        in_range_share=Fraction(int(np.count_nonzero(inside)), PATHS * HORIZON_HOURS),
        in_range_share_24h=Fraction(int(np.count_nonzero(inside[:DAY_HOURS])), PATHS * DAY_HOURS),
        censored=_left_by(paths, edges, multiple, HORIZON_HOURS) < PATHS // 2,
    )


def _hour_when(paths: StressPaths, edges: Barriers, multiple: int, wanted: int) -> int:
    """The first hour by which `wanted` paths have left, or the horizon."""
    return bisect_left(range(HORIZON_HOURS), wanted, key=lambda hour: _left_by(paths, edges, multiple, hour))


def _left_by(paths: StressPaths, edges: Barriers, multiple: int, hour: int) -> int:
    """How many paths have left by the end of this hour. At hour 0 it is all or none."""
    # m·sum ≥ upper − m·inward, solved for the sum so that the paths stay as they are. Down, only below counts:
    # a range owns its lower edge.
    up = -(-edges.upper // multiple) - paths.inward
    down = -(-edges.lower // multiple) + paths.inward
    if not edges.inside or not down <= 0 < up:
        return PATHS
    if hour == 0:
        return 0
    stayed = np.count_nonzero((paths.highs[hour - 1] < up) & (paths.lows[hour - 1] >= down))
    return PATHS - int(stayed)


@lru_cache(maxsize=16)
def _inside(paths: StressPaths, edges: Barriers, multiple: int) -> NDArray[np.bool_]:
    """Whether a path is in range at the end of an hour, by the true edges."""
    lower, upper = (-(-edge // multiple) for edge in (edges.lower, edges.upper))
    inside = np.empty(paths.sums.shape, dtype=np.bool_)
    for day in range(0, HORIZON_HOURS, BLOCK_HOURS):  # a day's sums are read from memory once
        sums, stays = paths.sums[day : day + BLOCK_HOURS], inside[day : day + BLOCK_HOURS]
        np.greater_equal(sums, lower, out=stays)
        stays &= sums < upper
    inside.flags.writeable = False
    return inside


@lru_cache(maxsize=32)
def hours_in_range(paths: StressPaths, edges: Barriers) -> tuple[int, ...]:
    """By the end of each hour, what all paths together have spent in range."""
    return tuple(np.cumsum(_inside(paths, edges, 1).sum(axis=1)).tolist())


def path_quantiles(paths: StressPaths, ranks: Sequence[int], step: int) -> list[tuple[int, ...]]:
    """After each `step` hours, the sums of returns at these ranks of a thousand paths, at 1×."""
    ordered = np.sort(paths.sums[step - 1 :: step], axis=1)
    return [tuple(row) for row in ordered[:, list(ranks)].tolist()]


@dataclass(frozen=True, slots=True)
class TimeInRange:
    """What each path spends in a range, in the order of the paths."""

    hours: tuple[int, ...]
    """In 1e-6; an hour of a day that pays more than others counts for more."""
    squares: tuple[int, ...]
    """Of its hourly returns while in range, in `SQUARE`."""


def time_in_range(paths: StressPaths, edges: Barriers, elasticity: float = 0.0) -> TimeInRange:
    """Path by path, at the market's own volatility. A day's fees rise with its variance by `elasticity`; on the mean of
    all days they are what they were."""
    inside = _inside(paths, edges, 1)
    squares = np.einsum("hp,hp->p", _squared_steps(paths), inside)
    days = np.add.reduce(inside.reshape(_BLOCKS, BLOCK_HOURS, PATHS), axis=1, dtype=np.uint8)
    hours = days * _weigh_days(paths, elasticity)
    return TimeInRange(tuple(hours.sum(axis=0).tolist()), tuple(squares.tolist()))


@lru_cache(maxsize=8)
def _squared_steps(paths: StressPaths) -> NDArray[np.int64]:
    steps = np.empty(paths.sums.shape, dtype=np.int64)
    steps[0] = paths.sums[0]
    np.subtract(paths.sums[1:], paths.sums[:-1], out=steps[1:])
    steps >>= _SQUARE_BITS
    steps *= steps
    steps.flags.writeable = False
    return steps


@lru_cache(maxsize=8)
def _weigh_days(paths: StressPaths, elasticity: float) -> NDArray[np.int64]:
    """What each day of each path pays, in 1e-6 of the mean day: the same on every processor."""
    moved = _squared_steps(paths).reshape(_BLOCKS, BLOCK_HOURS, PATHS).sum(axis=1)
    sizes, places, times = np.unique(moved, return_inverse=True, return_counts=True)
    with np.errstate(divide="ignore"):
        close = np.where(sizes > 0, sizes.astype(np.float64) ** elasticity, float(not elasticity))
    total = float(times @ close)
    close *= PPM * moved.size / total if total else 0.0
    weights = np.rint(close).astype(np.int64)
    if np.any(np.abs(close - np.floor(close) - 0.5) < _UNSURE * np.maximum(close, 1.0)):
        weights = _weigh_exactly(sizes.tolist(), times.tolist(), elasticity)
    weights.flags.writeable = False
    return weights[places].reshape(moved.shape)


def _weigh_exactly(sizes: Sequence[int], times: Sequence[int], elasticity: float) -> NDArray[np.int64]:
    """Where a processor's own power, of which the last bits differ, might be rounded to the other side."""
    power = Decimal(str(elasticity))
    powers = [_WEIGHING.power(size, power) if size else Decimal(not elasticity) for size in map(Decimal, sizes)]
    total = sum(Decimal(count) * size for count, size in zip(times, powers, strict=True))
    scale = Decimal(PPM * sum(times)) / total if total else Decimal(0)
    return np.array([round(size * scale) for size in powers], dtype=np.int64)


def _nano_log_tick(tick: int) -> int:
    return round(Fraction(tick * _LN_TICK_E27, 10**18))


@lru_cache(maxsize=64)
def _nano_log_price(sqrt_price_x96: int) -> int:
    """2·ln(√P) in 1e-9, by decimal arithmetic: a correctly rounded logarithm, unlike the machine's own."""
    ratio = _EXACT.divide(Decimal(sqrt_price_x96), Decimal(Q96))
    return int(_EXACT.scaleb(2 * _EXACT.ln(ratio), 9).to_integral_value(context=_EXACT))
