"""What happened within the last hour and must matter: shocks, liquidation cascades, true breakouts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from zuno.kernel.clock import iso
from zuno.kernel.units import Millis
from zuno.trading.measure.shock import Shock, ShockScan
from zuno.trading.measure.structure.pivots import PriceDirection
from zuno.trading.measure.triage import Label, Spike
from zuno.trading.model.known import Known, Missing, NotRecorded
from zuno.trading.model.market import HOUR_MS, Side

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
    """When it was seen."""
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
        """The shock or cascade that ran against a side; None where there was none, missing where nobody can say."""
        way = PriceDirection.DOWN if side is Side.LONG else PriceDirection.UP
        hits = [event for event in self.events if event.way is way and event.kind is not EventKind.TRUE_BREAKOUT]
        if hits:
            return max(hits, key=lambda event: event.at)
        return next((Missing(reason) for missed, reason in self.unknown if missed in (None, way)), None)


def find_recent_events(spike: Known[Spike], watch: Known[ShockScan], as_of: Millis) -> RecentEvents:
    """A feed that this home never recorded is not missing: what it would have shown is not judged."""
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
    else:
        events += [_shock_event(shock) for shock in watch.shocks if as_of - shock.at < MATTERS_MS]
    return RecentEvents(tuple(events), tuple(unknown))


def _describe_spike(spike: Spike, label: Label) -> str:
    left = "rose" if label is Label.TRUE_BREAKOUT else "fell"
    share = 0.0 if isinstance(spike.open_interest, Missing) else spike.open_interest.share
    return (
        f"the price moved {100 * spike.moved:+.2f} % in three hours on {spike.volume_ratio:.1f}× the usual volume, and "
        f"open interest {left} by {100 * abs(share):.2f} %"
    )


def _shock_event(shock: Shock) -> MarketEvent:
    widest = max(shock.moves, key=lambda move: abs(move.share))
    moved = f"{100 * widest.share:+.2f} % within {widest.minutes} min"
    said = f"{moved} at {iso(shock.at)}, from {100 * widest.threshold:.2f} % on a shock"
    return MarketEvent(EventKind.SHOCK, PriceDirection.UP if shock.up else PriceDirection.DOWN, shock.at, said)
