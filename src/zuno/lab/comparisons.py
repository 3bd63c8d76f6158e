"""What may be said of many comparisons at once, and of a rate that was counted."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Final

from zuno.lab.model import RateView

DEVIATIONS: Final = 1.959963984540054
"""Of the normal distribution: between them and zero lie 95 %."""
PLACES: Final = 6


def correct_p_values(values: Sequence[float]) -> tuple[float, ...]:
    """Holm's correction: held against 5 %, the chance of even one false finding among all of these is at most 5 %."""
    found = [1.0] * len(values)
    highest = 0.0
    for rank, place in enumerate(sorted(range(len(values)), key=lambda place: values[place])):
        highest = max(highest, min(1.0, (len(values) - rank) * values[place]))
        found[place] = highest
    return tuple(found)


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
