"""What a perpetual's holders pay, how many they are and which way they lean. Rates are fractions of the notional for
one interval; one beyond `PLAUSIBLE_RATE` is of another unit and missing, never clipped."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum, inf, isfinite
from operator import attrgetter
from typing import Final, TypeVar

from zuno.kernel.units import Millis
from zuno.trading.measure.data_quality import LEEWAY
from zuno.trading.model.known import Known, Missing
from zuno.trading.model.market import DAY_MS, HOUR_MS, STALE_AFTER, Feed, Funding, Level, MarkAndIndex, Row

R = TypeVar("R", bound=Row)
PLAUSIBLE_RATE: Final = 0.003
NORMAL_HOURS: Final = 8
"""Rates of venues with other intervals are compared as if each were paid so often."""
MEAN_DAYS: Final = 7
LEAST_MEAN_HOURS: Final = 120
"""Hours of the seven days whose rate must be known before a mean speaks for them."""
RANK_DAYS: Final = 7
LEAST_RANK_HOURS: Final = 120
"""Hours of the week that must be known before a basis or a ratio of accounts has a rank."""
_moment = attrgetter("at")
_FRESH_MS: Final = STALE_AFTER[Feed.OPEN_INTEREST] * 1_000


@dataclass(frozen=True, slots=True)
class FundingFigures:
    """One rate, and what it amounts to. Fractions, not percentages."""

    at: Millis
    rate: float
    interval_hours: float
    per_8h: float


@dataclass(frozen=True, slots=True)
class MeanFunding:
    """What was paid on average, each hour counting alike."""

    per_8h: float
    used: int
    dropped: int
    """Rates of the time that could not be believed."""
    hours: float
    """How much of the time the rates that were used were paid for."""


@dataclass(frozen=True, slots=True)
class OpenInterestChange:
    """How open interest changed between two moments, over the venues that were there at both."""

    share: float
    """Of what was open at the start: 0.01 is one per cent more."""
    start: float
    end: float
    """Base units, both over the same venues."""
    venues: tuple[str, ...]
    dropped: tuple[tuple[str, str], ...]


def funding_figures(row: Funding) -> Known[FundingFigures]:
    """The rate, also as if it were paid every eight hours."""
    if flaw := _implausible(row):
        return Missing(flaw)
    per_8h = row.rate * NORMAL_HOURS / row.interval_hours
    return FundingFigures(row.at, row.rate, row.interval_hours, per_8h)


def mean_funding(rows: Sequence[Funding], as_of: Millis) -> Known[MeanFunding]:
    """The mean of the rates settled in the seven days up to `as_of`; an hour that two rates cover counts once."""
    lately = {row.at: row for row in rows if as_of - MEAN_DAYS * DAY_MS < row.at <= as_of}.values()
    believed = [row for row in lately if _implausible(row) is None]
    used: list[Funding] = []
    for row in sorted(believed, key=_moment):
        if not used or row.at - row.interval_hours * HOUR_MS >= used[-1].at - LEEWAY:
            used.append(row)
    hours = fsum(row.interval_hours for row in used)
    if hours < LEAST_MEAN_HOURS:
        return Missing(
            f"settled rates of {hours:g} hours of the last {MEAN_DAYS} days are known, {LEAST_MEAN_HOURS} are needed "
            f"({len(lately) - len(believed)} could not be believed)"
        )
    paid = fsum(row.rate for row in used)
    return MeanFunding(paid / hours * NORMAL_HOURS, len(used), len(lately) - len(believed), hours)


def open_interest_change(
    by_venue: Mapping[str, Sequence[Level]], start: Millis, end: Millis
) -> Known[OpenInterestChange]:
    """The change between two moments, over venues that have a reading in the ten minutes before both."""
    ends: dict[str, tuple[float, float]] = {}
    dropped: list[tuple[str, str]] = []
    for venue, rows in sorted(by_venue.items()):
        ordered = sorted(rows, key=_moment)
        first, last = _open_at(ordered, start), _open_at(ordered, end)
        if isinstance(first, Missing):
            dropped.append((venue, f"at the start, {first.reason}"))
        elif isinstance(last, Missing):
            dropped.append((venue, f"at the end, {last.reason}"))
        else:
            ends[venue] = (first, last)
    if not ends:
        reasons = "; ".join(f"{venue}: {why}" for venue, why in dropped)
        return Missing(f"no venue's open interest is known at both ends ({reasons or 'no venue was asked'})")
    before, after = fsum(pair[0] for pair in ends.values()), fsum(pair[1] for pair in ends.values())
    return OpenInterestChange((after - before) / before, before, after, tuple(ends), tuple(dropped))


def basis_bps(row: MarkAndIndex) -> Known[float]:
    """How far the perpetual's mark stands above its index, in basis points."""
    if not (0 < row.mark < inf and 0 < row.spot < inf):
        return Missing(f"a mark of {row.mark} over an index of {row.spot} is no pair of prices")
    return (row.mark - row.spot) / row.spot * 1e4


def long_share(row: Level) -> Known[float]:
    """The share of accounts that are long, from the venue's longs for each short."""
    if not 0 <= row.value < inf:
        return Missing(f"{row.value} longs for each short is no ratio")
    return row.value / (1 + row.value)


def rank_among_hours(points: Sequence[tuple[Millis, float]]) -> Known[float]:
    """The newest's rank among last week's hourly readings: 0 below all, 1 above all; ties count half."""
    ordered = sorted(points)
    if not ordered:
        return Missing("nothing was read")
    at, now = ordered[-1]
    hourly = {moment // HOUR_MS: value for moment, value in ordered if at - RANK_DAYS * DAY_MS <= moment}
    hourly.pop(at // HOUR_MS)
    if len(hourly) < LEAST_RANK_HOURS:
        return Missing(f"{len(hourly)} hours of the week before are known, {LEAST_RANK_HOURS} are needed for a rank")
    below = sum(value < now for value in hourly.values())
    equal = sum(value == now for value in hourly.values())
    return (below + equal / 2) / len(hourly)


def thin_to_hours(rows: Sequence[R], as_of: Millis) -> tuple[R, ...]:
    """All rows of the last day, and before it the last row of each hour: enough for a rank."""
    kept = {row.at // HOUR_MS if row.at < as_of - DAY_MS else row.at: row for row in rows}
    return tuple(kept.values())


def _implausible(row: Funding) -> str | None:
    if not 0 < row.interval_hours <= 24:
        return f"an interval of {row.interval_hours} hours is none a venue has"
    if not isfinite(row.rate):
        return f"a rate of {row.rate} is not a number"
    if abs(row.rate) > PLAUSIBLE_RATE:
        return f"a rate of {row.rate:g} is beyond {PLAUSIBLE_RATE} and implausible: perhaps a percentage"
    return None


def _open_at(rows: Sequence[Level], at: Millis) -> Known[float]:
    """Of rows in their order; of two at one moment, the first."""
    place = bisect_right(rows, at, key=_moment)
    if not place:
        return Missing("nothing was read")
    newest = rows[bisect_left(rows, rows[place - 1].at, key=_moment)]
    if at - newest.at > _FRESH_MS:
        return Missing(f"the last reading is {(at - newest.at) // 1_000} s old, more than {_FRESH_MS // 1_000}")
    if not 0 < newest.value < inf:
        return Missing(f"{newest.value} base units is no open interest")
    return newest.value
