"""What is out of the ordinary, by rule and without state: each finding with its numbers, each gap with its reason."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean, stdev
from typing import Final

import numpy as np
import talib

from zuno.kernel.units import Millis
from zuno.trading.measure.bars import LOOKBACK, Bars
from zuno.trading.measure.derivatives import OpenInterestChange, open_interest_change
from zuno.trading.measure.indicators import atr
from zuno.trading.measure.options import PLAUSIBLE_IV
from zuno.trading.measure.portable import RATIO_PLACES
from zuno.trading.measure.structure import PriceDirection
from zuno.trading.measure.tape import HIGH_PERCENT, SideHour
from zuno.trading.model.known import Known, Missing
from zuno.trading.model.market import HOUR_MS, STALE_AFTER, Feed, Level

SPIKE_BARS: Final = 3
SPIKE_RANGE: Final = 1.5
ATR_BARS: Final = 14
RANGE_HISTORY: Final = 168
SPIKE_VOLUME: Final = 2.0
VOLUME_HISTORY: Final = 24
LEAST_BARS: Final = ATR_BARS + RANGE_HISTORY + SPIKE_BARS
CROWD_MOVES: Final = 0.005
"""The share by which open interest must change for a spike to be called a breakout or a cascade."""
CLUSTER_USD: Final = 100_000.0
LEAN: Final = 0.70
PANIC_Z: Final = 2.0
LEAST_DEVIATION: Final = 1.5
"""Points. With `PANIC_Z` it makes sure that a panic is at least three points over the mean."""
LEAST_POINTS: Final = 200
POINTS: Final = 30 * 24
"""Hours of its own past that DVOL is held against, at most."""
INVERSION: Final = 2.0
"""Vol points the week must stand over the month."""


class Rule(StrEnum):
    SPIKE = "spike"
    LIQUIDATION_CLUSTER = "liquidation_cluster"
    MICROSTRUCTURE_IMBALANCE = "microstructure_imbalance"
    OPTIONS_PANIC = "options_panic"


class Label(StrEnum):
    """What a spike is called when open interest says so."""

    TRUE_BREAKOUT = "true_breakout"
    LIQUIDATION_CASCADE = "liquidation_cascade"


@dataclass(frozen=True, slots=True)
class Spike:
    """The last hours' range and volume against what is usual, and whether both are out of it."""

    at: Millis
    """When the last closed hour opened."""
    range_ratio: float
    """Mean true range of the last three hours over the mean ATR14 of the 168 before."""
    volume_ratio: float
    """The last hour's volume over the mean of the 24 before."""
    open_interest: Known[OpenInterestChange]
    """Over the same hour."""
    moved: float = 0.0
    """The price's change over the three hours, as a share."""

    @property
    def way(self) -> PriceDirection | None:
        return PriceDirection.UP if self.moved > 0 else PriceDirection.DOWN if self.moved < 0 else None

    @property
    def is_spike(self) -> bool:
        return self.range_ratio >= SPIKE_RANGE and self.volume_ratio >= SPIKE_VOLUME

    @property
    def label(self) -> Label | None:
        if not self.is_spike or isinstance(self.open_interest, Missing):
            return None
        if self.open_interest.share > CROWD_MOVES:
            return Label.TRUE_BREAKOUT
        return Label.LIQUIDATION_CASCADE if self.open_interest.share < -CROWD_MOVES else None


@dataclass(frozen=True, slots=True)
class VolatilityIndex:
    """DVOL's last hour against its own past."""

    value: float
    mean: float
    deviation: float
    """Of its past hours, and never less than 1.5 points."""
    points: int

    @property
    def z(self) -> float:
        return (self.value - self.mean) / self.deviation


@dataclass(frozen=True, slots=True)
class Evidence:
    spike: Known[Spike]
    liquidations: Sequence[Known[SideHour]]
    imbalance: Known[float]
    dvol: Known[VolatilityIndex]
    term: Known[float]


@dataclass(frozen=True, slots=True)
class Anomaly:
    rule: Rule
    label: Label | None
    said: str
    """The numbers that made it fire, beside their bounds."""

    @property
    def name(self) -> str:
        return self.label or self.rule


@dataclass(frozen=True, slots=True)
class UnjudgedRule:
    """A rule that could not be held against the market, or only in part."""

    rule: Rule
    reason: str


@dataclass(frozen=True, slots=True)
class Triage:
    anomalies: tuple[Anomaly, ...]
    unknown: tuple[UnjudgedRule, ...]


def triage(evidence: Evidence) -> Triage:
    """Every rule, in a fixed order."""
    findings = (
        *_spike(evidence.spike),
        *_clusters(evidence.liquidations),
        *_imbalance(evidence.imbalance),
        *_panic(evidence.dvol, evidence.term),
    )
    return Triage(
        tuple(finding for finding in findings if isinstance(finding, Anomaly)),
        tuple(finding for finding in findings if isinstance(finding, UnjudgedRule)),
    )


def measure_spike(hours: Bars, open_interest: Mapping[str, Sequence[Level]], as_of: Millis) -> Known[Spike]:
    """The last closed 1h bar, by means of the range: a Wilder average would need one hour eight times the usual."""
    closed = hours.upto(as_of).last(LOOKBACK)
    if flaw := _find_unfit_reason(closed, as_of):
        return Missing(flaw)
    ranges = talib.TRANGE(closed.high, closed.low, closed.close)
    usual = atr(closed.high, closed.low, closed.close, ATR_BARS)[-RANGE_HISTORY - SPIKE_BARS : -SPIKE_BARS]
    typical, volume = fmean(usual), fmean(closed.volume[-1 - VOLUME_HISTORY : -1])
    if not typical or not volume:
        return Missing("nothing moved or nothing traded in the hours before: there is no usual to hold against")
    at = Millis(int(closed.at[-1]))
    return Spike(
        at,
        round(fmean(ranges[-SPIKE_BARS:]) / typical, RATIO_PLACES),
        round(float(closed.volume[-1]) / volume, RATIO_PLACES),
        open_interest_change(open_interest, at, Millis(at + HOUR_MS)),
        round(float(closed.close[-1] / closed.close[-1 - SPIKE_BARS]) - 1, RATIO_PLACES),
    )


def measure_dvol(points: Sequence[Level], as_of: Millis) -> Known[VolatilityIndex]:
    """DVOL's newest hour against the hours before it; the last valid reading of each hour."""
    low, high = PLAUSIBLE_IV
    hourly: dict[int, Level] = {}
    for row in sorted(points, key=lambda row: row.at):
        if row.at <= as_of and low <= row.value <= high:
            hourly[row.at // HOUR_MS] = row
    if not hourly:
        return Missing("no DVOL is known")
    newest, limit = hourly.pop(max(hourly)), STALE_AFTER[Feed.DVOL]
    if as_of - newest.at > limit * 1_000:
        return Missing(f"the last DVOL is {(as_of - newest.at) // 1_000} s old, more than {limit}")
    first = newest.at // HOUR_MS - POINTS
    past = [row.value for hour, row in hourly.items() if hour >= first]
    if len(past) < LEAST_POINTS:
        return Missing(f"{len(past)} hours of DVOL are known before the last, {LEAST_POINTS} are needed")
    return VolatilityIndex(newest.value, fmean(past), max(stdev(past), LEAST_DEVIATION), len(past))


def _find_unfit_reason(closed: Bars, as_of: Millis) -> str | None:
    """Why these hours cannot be held against anything, if they cannot."""
    if len(closed) < LEAST_BARS:
        return f"{len(closed)} closed hours are known, {LEAST_BARS} are needed"
    if as_of - (int(closed.at[-1]) + HOUR_MS) > 2 * HOUR_MS:
        return "the last closed hour ended more than two hours ago"
    if np.any(np.diff(closed.at[-1 - SPIKE_BARS :]) != HOUR_MS):
        return f"an hour is missing among the last {SPIKE_BARS + 1}: a range over a gap is not an hour's"
    numbers = np.stack((closed.high, closed.low, closed.close, closed.volume))
    if not np.all(np.isfinite(numbers)) or np.any(numbers[:3] <= 0) or np.any(closed.high < closed.low):
        return "an hour has a price or a volume that is none"
    return "an hour has a negative volume" if np.any(closed.volume < 0) else None


def _spike(spike: Known[Spike]) -> Iterator[Anomaly | UnjudgedRule]:
    if isinstance(spike, Missing):
        yield UnjudgedRule(Rule.SPIKE, spike.reason)
        return
    if not spike.is_spike:
        return
    crowd = spike.open_interest
    moved = crowd.reason if isinstance(crowd, Missing) else f"{100 * crowd.share:+.2f} % ({', '.join(crowd.venues)})"
    yield Anomaly(
        Rule.SPIKE,
        spike.label,
        f"{100 * spike.moved:+.2f} % in {SPIKE_BARS} hours, whose range is {spike.range_ratio:.2f}× the usual "
        f"(from {SPIKE_RANGE}×), the volume {spike.volume_ratio:.2f}× (from {SPIKE_VOLUME}×); open interest: {moved}",
    )


def _clusters(sides: Sequence[Known[SideHour]]) -> Iterator[Anomaly | UnjudgedRule]:
    for hour in sides:
        if isinstance(hour, Missing):
            yield UnjudgedRule(Rule.LIQUIDATION_CLUSTER, hour.reason)
        elif is_cluster(hour):
            if isinstance(hour.high, Missing):
                held = f"uncalibrated: {hour.high.reason}"
            else:
                held = f"the {HIGH_PERCENT}th percentile of its own hours is ${hour.high:,.0f}"
            forced = f"${hour.usd:,.0f} of {hour.side}s were liquidated in an hour"
            text = f"{forced}, over ${CLUSTER_USD:,.0f} ({hour.label}; {held})"
            yield Anomaly(Rule.LIQUIDATION_CLUSTER, None, text)
        elif not hour.complete:
            reason = f"${hour.usd:,.0f} of {hour.side}s liquidated are known of an hour that was not heard whole"
            yield UnjudgedRule(Rule.LIQUIDATION_CLUSTER, reason)


def is_cluster(hour: SideHour) -> bool:
    """Whether a side's hour is out of its own ordinary; over a fixed amount where that is not known."""
    return hour.usd > CLUSTER_USD and (isinstance(hour.high, Missing) or hour.usd >= hour.high)


def _imbalance(imbalance: Known[float]) -> Iterator[Anomaly | UnjudgedRule]:
    if isinstance(imbalance, Missing):
        yield UnjudgedRule(Rule.MICROSTRUCTURE_IMBALANCE, imbalance.reason)
    elif abs(imbalance) > LEAN:
        yield Anomaly(Rule.MICROSTRUCTURE_IMBALANCE, None, f"the book leans {imbalance:+.2f}, beyond {LEAN}")


def _panic(dvol: Known[VolatilityIndex], term: Known[float]) -> Iterator[Anomaly | UnjudgedRule]:
    reasons: list[str] = []
    if not isinstance(dvol, Missing) and dvol.z >= PANIC_Z:
        over = f"{dvol.z:.2f} deviations over its mean of {dvol.mean:.1f}"
        reasons.append(f"DVOL {dvol.value:.1f} is {over} (from {PANIC_Z})")
    if not isinstance(term, Missing) and term > INVERSION:
        reasons.append(f"the week's volatility is {term:.1f} points over the month's, above {INVERSION}")
    if reasons:
        yield Anomaly(Rule.OPTIONS_PANIC, None, "; ".join(reasons))
    else:
        missing = (figure.reason for figure in (dvol, term) if isinstance(figure, Missing))
        yield from (UnjudgedRule(Rule.OPTIONS_PANIC, reason) for reason in missing)
