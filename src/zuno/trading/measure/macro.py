"""The economy as it was known at a moment: the last print of each figure, and the slope of the curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Final

from zuno.kernel.units import Millis
from zuno.trading.model.known import Known, Missing
from zuno.trading.model.market import DAY_MS, STALE_AFTER, Feed, MacroRelease

CADENCE_DAYS: Final[Mapping[str, int]] = {"CPIAUCSL": 31, "FEDFUNDS": 31, "DTWEXBGS": 7, "DCOILWTICO": 7}
"""How often a figure is released that is not released every working day: it may be so much older."""
PRINTS: Final = 5
"""Prints a change of the slope is taken over."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A figure's last print, as of a moment."""

    last: MacroRelease


@dataclass(frozen=True, slots=True)
class Slope:
    """The ten-year yield less the two-year yield, in percentage points, on the last day that has both."""

    at: Millis
    value: float
    change: Known[float]
    """Against five prints earlier."""


def last_print(figure: str, prints: Sequence[MacroRelease], as_of: Millis) -> Known[Reading]:
    known = _known_by(prints, as_of)
    if not known:
        return Missing(f"no print of {figure} was known")
    latest = known[max(known)]
    late = _late(figure, latest, as_of)
    return Reading(latest) if late is None else Missing(late)


def slope(two_years: Sequence[MacroRelease], ten_years: Sequence[MacroRelease], as_of: Millis) -> Known[Slope]:
    """2s10s from the days on which both were printed: one day's two against another day's ten is no slope."""
    short, long = _known_by(two_years, as_of), _known_by(ten_years, as_of)
    days = sorted(short.keys() & long.keys())
    if not days:
        return Missing("no day is known on which both the two-year and the ten-year yield were printed")
    for figure, print_ in (("DGS2", short[days[-1]]), ("DGS10", long[days[-1]])):
        if late := _late(figure, print_, as_of):
            return Missing(late)
    values = [long[day].value - short[day].value for day in days]
    change: Known[float] = Missing(f"{len(days)} days with both yields are known, {PRINTS + 1} are needed")
    if len(days) > PRINTS:
        change = values[-1] - values[-1 - PRINTS]
    return Slope(days[-1], values[-1], change)


def _late(figure: str, last: MacroRelease, as_of: Millis) -> str | None:
    """Whether nothing was released for five days, or for so long after the next was due."""
    limit = CADENCE_DAYS.get(figure, 0) * DAY_MS + STALE_AFTER[Feed.MACRO] * 1_000
    age = as_of - last.released
    return (
        None
        if age <= limit
        else f"the last {figure} was released {age // DAY_MS} days ago, more than {limit // DAY_MS}"
    )


def _known_by(prints: Sequence[MacroRelease], as_of: Millis) -> dict[Millis, MacroRelease]:
    """By day, the newest release the world knew. One that is no number was never a print."""
    known: dict[Millis, MacroRelease] = {}
    for row in sorted(prints, key=lambda row: row.released):
        if row.released <= as_of and isfinite(row.value):
            known[row.at] = row
    return known
