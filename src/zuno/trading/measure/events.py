"""What happened within the last hour and must matter: shocks, liquidation cascades, true breakouts.

A shock is a move over h minutes of at least max(floor, 3 · ATR14(1h) · √(h/60)). It stays the only one until sixty
minutes were seen since the last that passed, or the price has gone a further full threshold, that of the hour."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from math import sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from zuno.kernel.clock import iso
from zuno.kernel.units import Millis
from zuno.trading.measure.bars import Bars, Floats
from zuno.trading.measure.indicators import atr
from zuno.trading.measure.structure import PriceDirection
from zuno.trading.measure.triage import Label, Spike
from zuno.trading.model.known import Known, Missing, NotRecorded
from zuno.trading.model.market import HOUR_MS, MINUTE_MS, Side

FLOORS: Final = ((1, 0.01), (5, 0.015), (15, 0.02), (60, 0.03))
"""Minutes, and the least move over them that is a shock."""
ATRS: Final = 3
ATR_BARS: Final = 14
QUIET_MINUTES: Final = 60


@dataclass(frozen=True, slots=True)
class Move:
    minutes: int
    share: float
    """Signed: −0.03 is a fall of three per cent."""
    threshold: float
    """The share it had to reach."""


@dataclass(frozen=True, slots=True)
class Shock:
    at: Millis
    """When the minute that passed closed."""
    price: float
    moves: tuple[Move, ...]
    """All that passed then, the shortest first."""
    full: float
    """The share of the price that makes a further event."""
    further: bool
    """It follows an earlier one by a further full threshold, not after quiet."""

    @property
    def up(self) -> bool:
        return self.moves[0].share > 0


@dataclass(frozen=True, slots=True)
class ShockScan:
    shocks: tuple[Shock, ...]
    minutes: int
    unjudged: int
    """Minutes of which not every move could be judged: the first hour, and what a gap leaves open, or a start."""


@dataclass(frozen=True, slots=True, eq=False)
class _Moves:
    """By horizon (rows) and bar (columns): the move, its threshold, and whether it passed. NaN: not known."""

    spans: tuple[int, ...]
    share: Floats
    threshold: Floats

    @property
    def over_threshold(self) -> NDArray[np.bool_]:
        return np.abs(self.share) >= self.threshold

    @property
    def is_judged(self) -> NDArray[np.bool_]:
        return np.asarray(np.isfinite(self.share + self.threshold).all(axis=0))


def scan_shocks(bars: Bars, hours: Bars, as_of: Millis, since: Millis | None = None) -> Known[ShockScan]:
    """Shocks of these 1m bars, each judged with what was known at its minute; 1h bars give moves of an hour alone.
    Moves to or from a missing bar are not judged. `since`: report only what began after it."""
    bars, hours = bars.upto(as_of), hours.upto(as_of)
    if flaw := _find_unfit_reason(bars, hours, as_of):
        return Missing(flaw)
    atr = _atr_at(bars, hours)
    if np.isnan(atr[-1]):
        return Missing(f"no ATR is known: {ATR_BARS + 1} hours up to two hours before the last bar are needed")
    moves = _moves(bars, atr)
    events = tuple(_events(bars, atr, moves))
    step = bars.timeframe.millis
    minutes = step // MINUTE_MS
    if since is None:
        return ShockScan(events, len(bars) * minutes, int((~moves.is_judged).sum()) * minutes)
    span, judged = (as_of - since) // MINUTE_MS, int((moves.is_judged & (bars.at + step > since)).sum()) * minutes
    return ShockScan(tuple(event for event in events if event.at > since), span, max(0, span - judged))


def _find_unfit_reason(bars: Bars, hours: Bars, as_of: Millis) -> str | None:
    step = bars.timeframe.millis
    unit = "minute" if step == MINUTE_MS else "hour"
    if not len(bars):
        return f"no closed {unit} is known"
    if as_of - (int(bars.at[-1]) + step) > 2 * step:
        return f"the last closed {unit} ended more than two {unit}s ago"
    if len(hours) <= ATR_BARS:
        return f"{len(hours)} closed hours are known, {ATR_BARS + 1} are needed for an ATR"
    prices = np.concatenate((hours.high, hours.low, hours.close, bars.close))
    if not np.all(np.isfinite(prices)) or np.any(prices <= 0) or np.any(hours.high < hours.low):
        return "a bar has a price that is none"
    return None


def _atr_at(bars: Bars, hours: Bars) -> Floats:
    """ATR14 of the last hour that had closed when each bar did; NaN where none had, or none lately."""
    hourly_atr = atr(hours.high, hours.low, hours.close, ATR_BARS)
    ends = bars.at + bars.timeframe.millis
    place = np.searchsorted(hours.at, ends - HOUR_MS, side="right") - 1
    fresh = (place >= 0) & (ends - (hours.at[place] + HOUR_MS) <= 2 * HOUR_MS)
    return np.where(fresh, hourly_atr[place], np.nan)


def _moves(bars: Bars, atr: Floats) -> _Moves:
    """Over every horizon that is no shorter than a bar."""
    floors = [(span, floor) for span, floor in FLOORS if span * MINUTE_MS >= bars.timeframe.millis]
    share, threshold = np.full((2, len(floors), len(bars)), np.nan)
    for row, (span, floor) in enumerate(floors):
        before = bars.at - span * MINUTE_MS
        place = np.searchsorted(bars.at, before)
        known = bars.at[place] == before
        start = np.where(known, bars.close[place], np.nan)
        share[row] = (bars.close - start) / start
        threshold[row] = np.maximum(floor, ATRS * sqrt(span / 60) * atr / start)
    return _Moves(tuple(span for span, _ in floors), share, threshold)


def _events(bars: Bars, atr: Floats, moves: _Moves) -> Iterator[Shock]:
    over_threshold = moves.over_threshold
    step = bars.timeframe.millis
    last: Shock | None = None
    before = 0
    for place in np.flatnonzero(over_threshold.any(axis=0)).tolist():
        again = last is not None and (place - before) * step <= QUIET_MINUTES * MINUTE_MS
        at, price = Millis(int(bars.at[place]) + step), float(bars.close[place])
        if last is None or not again or abs(price - last.price) / last.price >= last.full:
            full = max(FLOORS[-1][1], ATRS * float(atr[place]) / price)
            passed = tuple(
                Move(span, float(moves.share[row, place]), float(moves.threshold[row, place]))
                for row, span in enumerate(moves.spans)
                if over_threshold[row, place]
            )
            last = Shock(at, price, passed, full, again)
            yield last
        before = place


MATTERS_MS: Final = HOUR_MS
"""How long an event keeps the desk from opening against it."""


class EventKind(StrEnum):
    SHOCK = "shock"
    LIQUIDATION_CASCADE = "liquidation_cascade"
    TRUE_BREAKOUT = "true_breakout"


@dataclass(frozen=True, slots=True)
class MarketEvent:
    kind: EventKind
    way: PriceDirection
    at: Millis
    said: str

    @property
    def name(self) -> str:
        return f"{self.kind} {self.way}"


@dataclass(frozen=True, slots=True)
class RecentEvents:
    """The events of the last hour, and why one may have been overlooked, if it may."""

    events: tuple[MarketEvent, ...]
    unknown: tuple[tuple[PriceDirection | None, str], ...] = ()
    """Which way it would have gone (None: either) and the reason."""

    def against(self, side: Side) -> Known[MarketEvent | None]:
        """The shock or cascade against a side; None where there was none, missing where it is not known."""
        way = PriceDirection.DOWN if side is Side.LONG else PriceDirection.UP
        hits = [event for event in self.events if event.way is way and event.kind is not EventKind.TRUE_BREAKOUT]
        if hits:
            return max(hits, key=lambda event: event.at)
        return next((Missing(reason) for missed, reason in self.unknown if missed in (None, way)), None)


def find_recent_events(spike: Known[Spike], watch: Known[ShockScan], as_of: Millis) -> RecentEvents:
    """Feeds that this home never recorded are not judged rather than missing."""
    events: list[MarketEvent] = []
    unknown: list[tuple[PriceDirection | None, str]] = []
    if isinstance(spike, Missing):
        unknown.append((None, f"spikes: {spike.reason}"))
    elif spike.is_spike and spike.way is not None:
        interest, end = spike.open_interest, Millis(spike.at + HOUR_MS)
        if spike.label is not None and as_of - end <= MATTERS_MS:
            events.append(MarketEvent(EventKind(spike.label), spike.way, end, _describe_spike(spike, spike.label)))
        elif isinstance(interest, Missing) and not isinstance(interest, NotRecorded):
            unknown.append((spike.way, f"whether a spike {spike.way} was a cascade is not known: {interest.reason}"))
    if isinstance(watch, Missing):
        unknown.append((None, f"shocks: {watch.reason}"))
        return RecentEvents(tuple(events), tuple(unknown))
    for shock in watch.shocks:
        if as_of - shock.at < MATTERS_MS:
            widest = max(shock.moves, key=lambda move: abs(move.share))
            moved = f"{100 * widest.share:+.2f} % within {widest.minutes} min"
            text = f"{moved} at {iso(shock.at)}, from {100 * widest.threshold:.2f} % on a shock"
            way = PriceDirection.UP if shock.up else PriceDirection.DOWN
            events.append(MarketEvent(EventKind.SHOCK, way, shock.at, text))
    return RecentEvents(tuple(events), tuple(unknown))


def _describe_spike(spike: Spike, label: Label) -> str:
    left = "rose" if label is Label.TRUE_BREAKOUT else "fell"
    share = 0.0 if isinstance(spike.open_interest, Missing) else spike.open_interest.share
    return (
        f"the price moved {100 * spike.moved:+.2f} % in three hours on {spike.volume_ratio:.1f}× the usual volume, and "
        f"open interest {left} by {100 * abs(share):.2f} %"
    )
