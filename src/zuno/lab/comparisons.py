"""Intervals of sums and rates, and corrections for many comparisons, the same digits on every machine.

Sums are resampled in blocks. Amounts are whole numbers of a small unit (cents, millionths of a dollar): their sums have
no last bit to differ in.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import fsum, sqrt
from typing import Any, Final

import numpy as np
from numpy.random import PCG64, Generator
from numpy.typing import NDArray

from zuno.lab.model import RateView
from zuno.lp.model.cover import student_share, student_t

DEVIATIONS: Final = 1.959963984540054
"""Of the normal distribution: between them and zero lie 95 %."""
POWER_Z: Final = 1.96 + 0.84
"""Standard errors an edge needs to be found at 5 % in four of five studies."""
PLACES: Final = 6


def correct_p_values(values: Sequence[float]) -> tuple[float, ...]:
    """Holm's correction: held against 5 %, the chance of even one false finding among all of these is at most 5 %."""
    corrected = [1.0] * len(values)
    highest = 0.0
    for rank, place in enumerate(sorted(range(len(values)), key=lambda place: values[place])):
        highest = max(highest, min(1.0, (len(values) - rank) * values[place]))
        corrected[place] = highest
    return tuple(corrected)


def rate_interval(count: int, total: int) -> tuple[float, float] | None:
    """Wilson's 95 % interval of a rate; None where nothing was counted."""
    if not total:
        return None
    square = DEVIATIONS * DEVIATIONS
    middle = (count + square / 2) / (total + square)
    half = DEVIATIONS / (total + square) * sqrt(count * (total - count) / total + square / 4)
    low = 0.0 if count == 0 else middle - half
    high = 1.0 if count == total else middle + half
    return round(max(0.0, low), PLACES), round(min(1.0, high), PLACES)


def measure_rate(count: int, total: int) -> RateView:
    rate = round(count / total, PLACES) if total else None
    return RateView(count=count, total=total, rate=rate, ci95=rate_interval(count, total))


DRAWS: Final = 2_000
SEED: Final = 0
LEAST_BLOCKS: Final = 5
"""Of which an interval is made; with fewer there is none."""


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """The sum of the first series less that of the second, in the unit they came in."""

    difference: int
    low: int
    high: int
    """The middle 95 % of what it could have been."""
    p: float
    """Two-sided: how often a difference at least so large comes where there is none."""


@dataclass(frozen=True, slots=True)
class Estimate:
    value: float
    low: float
    high: float
    """The middle 95 % of what it could have been, by Student's t."""
    smallest: float
    """What four of five such studies would find."""
    p: float
    """Two-sided: how often a value so far from zero comes where there is nothing."""


def estimate_total(days: Sequence[int]) -> Estimate | None:
    """The sum of days, each of which may hang on the one before; None of too few."""
    count = len(days)
    if count < LEAST_BLOCKS:
        return None
    mean = sum(days) / count
    rests = [day - mean for day in days]
    squares, neighbours = fsum(rest * rest for rest in rests), fsum(a * b for a, b in pairwise(rests))
    return _estimate(sum(days), sqrt(count / (count - 1) * max(squares, squares + neighbours)), count - 1)


def estimate_mean(episodes: Sequence[int], phases: int) -> Estimate | None:
    """The mean of episodes so long that only every `phases`-th begins after the end of another: as many rows of them
    that do not overlap. The rows tell nearly the same story: their mean has the error of one of them. None where a row
    has too few; what is left after whole rows is not used."""
    count = len(episodes) // phases
    if count < LEAST_BLOCKS:
        return None
    rows = [episodes[phase : count * phases : phases] for phase in range(phases)]
    means = [sum(row) / count for row in rows]
    squares = fsum((value - mean) ** 2 for row, mean in zip(rows, means, strict=True) for value in row)
    return _estimate(fsum(means) / phases, sqrt(squares / phases / (count - 1) / count), count - 1)


def _estimate(value: float, error: float, degrees: int) -> Estimate:
    reach, power = student_t(0.975, degrees), student_t(0.8, degrees)
    p = 1 - student_share(abs(value) / error, degrees) if error else float(not value)
    return Estimate(value, value - reach * error, value + reach * error, (reach + power) * error, round(p, PLACES))


def interval_of_sum(changes: Sequence[int], block: int) -> tuple[int, int] | None:
    """The middle 95 % of what these changes could have added up to, their order kept within circular blocks."""
    sums = draw_sums(changes, block)
    return None if sums is None else _middle(sums)


def compare_pairs(first: Sequence[int], second: Sequence[int], block: int) -> PairedComparison | None:
    """Compare two arms over the same bars or episodes. Both are resampled together, so that common moves cancel."""
    changes = [left - right for left, right in zip(first, second, strict=True)]
    sums = draw_sums(changes, block)
    if sums is None:
        return None
    difference = sum(changes)
    extreme = int(np.count_nonzero(np.abs(sums - difference) >= abs(difference)))
    return PairedComparison(difference, *_middle(sums), round((1 + extreme) / (1 + DRAWS), 6))


def gain_chance(changes: Sequence[int], block: int) -> float | None:
    """One-sided: how often a sum at least so high comes where the changes have no mean. Below 0.05 it is a gain."""
    sums = draw_sums(changes, block)
    if sums is None:
        return None
    gain = sum(changes)
    return round((1 + int(np.count_nonzero(sums - gain >= gain))) / (1 + DRAWS), 6)


SHARPE_UNIT: Final = 10**7
"""Returns are resampled in whole units of 1e-7: sums of their squares stay exact for centuries of days."""


def draw_sharpes(returns: Sequence[float], block: int, bars_per_year: float) -> NDArray[np.float64] | None:
    """Sharpe ratios a year of circular blocks drawn at random; None of too few. Series as long are drawn alike."""
    units = [round(value * SHARPE_UNIT) for value in returns]
    sums, squares = draw_sums(units, block), draw_sums([unit * unit for unit in units], block)
    if sums is None or squares is None:
        return None
    count, total = len(units), sums.astype(np.float64)
    variance = np.maximum(squares - total * total / count, 0.0) * count * count / (count - 1)
    flat = variance == 0.0
    return np.where(flat, 0.0, total / np.sqrt(np.where(flat, 1.0, variance))) * sqrt(bars_per_year)


def middle_of(draws: NDArray[np.float64]) -> tuple[float, float]:
    """Between which 95 % of the draws lie."""
    low, high = _middle(draws)
    return round(low, PLACES), round(high, PLACES)


def draw_sums(changes: Sequence[int], block: int) -> NDArray[np.int64] | None:
    """What as many changes add up to when circular blocks of them are drawn at random; None of too few."""
    values = np.array(changes, dtype=np.int64)
    count = len(values)
    if count < LEAST_BLOCKS * block:
        return None
    blocks = -(-count // block)
    starts = Generator(PCG64(SEED)).integers(0, count, (DRAWS, blocks))
    running = np.concatenate(([0], np.cumsum(np.concatenate((values, values[:block])))))
    whole = running[starts + block] - running[starts]
    last = count - (blocks - 1) * block
    sums: NDArray[np.int64] = whole[:, :-1].sum(axis=1) + running[starts[:, -1] + last] - running[starts[:, -1]]
    return sums


def _middle(draws: NDArray[Any]) -> tuple[Any, Any]:
    low, high = np.sort(draws)[[DRAWS // 40, -1 - DRAWS // 40]].tolist()
    return low, high
