"""When a position or a chain deserves a word: raised once, silent while acknowledged, cleared with hysteresis.

What the owner was told last is never milder than what is. Good news within an episode (back inside, still near the
edge) is told once in six hours, so that a price that dances on an edge does not ring at every step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import sha256
from typing import Final

from zuno.domain.alerts import Alert, Condition, Event, Happening, Subject
from zuno.domain.pool import LpPosition
from zuno.domain.units import Address, Seconds

HOUR: Final = 3_600


@dataclass(frozen=True, slots=True)
class Limits:
    """Shares of a range's width in ticks; `warn` below `clear`, or an alert would flap between them."""

    warn_below: Fraction = Fraction(15, 100)
    clear_above: Fraction = Fraction(20, 100)
    remind_after: int = 6 * HOUR
    failures: int = 3
    """Looks in a row that must fail before a chain is called unreachable."""

    def __post_init__(self) -> None:
        if not 0 <= self.warn_below <= self.clear_above < Fraction(1, 2):
            raise ValueError("a warning starts at or below the share where it clears, and that below half the width")
        if self.remind_after <= 0 or self.failures < 1:
            raise ValueError("reminders need a span and failures a count")


LIMITS: Final = Limits()
Judged = tuple[Alert | None, tuple[Event, ...]]
"""The alert that is on afterwards, if any, and what happened."""


def width_left(position: LpPosition) -> Fraction:
    """From the price to the nearer edge as a share of the width; negative outside."""
    tick, span = position.pool.tick, position.range
    return Fraction(min(tick - span.lower, span.upper - tick), span.width)


def judge(
    previous: Alert | None, position: LpPosition, wallet: Address, now: Seconds, limits: Limits = LIMITS
) -> Judged:
    """A position that was really read, held against the alert that is on for it."""
    if not position.liquidity:
        return ended(previous, "it holds no liquidity any more", now)
    subject = Subject(position.chain, wallet, position.id)
    condition = _condition(previous, position, limits)
    return _step(previous, subject, condition, _where(position), now, limits)


def judge_chain(
    previous: Alert | None, chain: str, failures: int, reason: str, now: Seconds, limits: Limits = LIMITS
) -> Judged:
    """A chain after a look at it: `failures` in a row, none if it was read."""
    condition = Condition.UNREACHABLE if failures >= limits.failures else None
    said = f"{failures} looks in a row failed: {reason}" if failures else "the chain answers again"
    return _step(previous, Subject(chain), condition, said, now, limits)


def ended(previous: Alert | None, why: str, now: Seconds) -> Judged:
    """Its subject is no longer there to worry about."""
    if previous is None:
        return None, ()
    return None, (_event(previous, Happening.ENDED, now, why, said=not _asleep(previous, now)),)


def acknowledge(alert: Alert, now: Seconds) -> tuple[Alert, Event]:
    """The owner knows: silence until it recovers or gets worse than it is now."""
    seen = replace(alert, told=alert.condition, told_at=now, acknowledged_at=now, snoozed_until=None)
    return seen, _event(seen, Happening.ACKNOWLEDGED, now, alert.reason, said=False)


def snooze(alert: Alert, until: Seconds, now: Seconds) -> tuple[Alert, Event]:
    """Silence until then, whatever happens; what still is wrong then is told at once."""
    if until <= now:
        raise ValueError("a snooze ends later than it begins")
    seen = replace(alert, told=alert.condition, told_at=now, acknowledged_at=None, snoozed_until=until)
    return seen, _event(seen, Happening.SNOOZED, now, alert.reason, said=False)


def _condition(previous: Alert | None, position: LpPosition, limits: Limits) -> Condition | None:
    if not position.in_range:
        return Condition.OUT_OF_RANGE
    left = width_left(position)
    near = left < limits.warn_below if previous is None else left <= limits.clear_above
    return Condition.NEAR_EDGE if near else None


def _step(
    previous: Alert | None, subject: Subject, condition: Condition | None, reason: str, now: Seconds, limits: Limits
) -> Judged:
    if previous is None:
        return (None, ()) if condition is None else _raised(subject, condition, reason, now)
    if condition is None:
        said = not _asleep(previous, now)
        return None, (_event(previous, Happening.RECOVERED, now, reason, said=said),)
    current = replace(previous, condition=condition, reason=reason)
    happening = _worth_saying(current, now, limits)
    if happening is None:
        return current, ()
    current = replace(
        current,
        told=condition,
        told_at=now,
        eased_at=now if happening is Happening.EASED else current.eased_at,
        acknowledged_at=None if happening is Happening.WORSENED else current.acknowledged_at,
        snoozed_until=None,
    )
    return current, (_event(current, happening, now, reason),)


def _worth_saying(alert: Alert, now: Seconds, limits: Limits) -> Happening | None:
    if _asleep(alert, now):
        return None
    if alert.condition.worse_than(alert.told):
        return Happening.WORSENED
    eased_lately = alert.eased_at is not None and now - alert.eased_at < limits.remind_after
    if alert.told.worse_than(alert.condition) and not eased_lately:
        return Happening.EASED
    if alert.snoozed_until is not None:
        return Happening.REMINDED  # it ran out, and nothing is better
    due = now - alert.told_at >= limits.remind_after and alert.acknowledged_at is None
    return Happening.REMINDED if due else None


def _raised(subject: Subject, condition: Condition, reason: str, now: Seconds) -> Judged:
    alert = Alert(_id_of(subject, now), subject, condition, reason, now, condition, now)
    return alert, (_event(alert, Happening.RAISED, now, reason),)


def _id_of(subject: Subject, now: Seconds) -> str:
    """A subject has one alert at a time, so its name and its moment tell alerts apart."""
    name = f"{subject.chain}|{subject.wallet}|{subject.position}|{now}"
    return f"alert_{sha256(name.encode()).hexdigest()[:12]}"


def _asleep(alert: Alert, now: Seconds) -> bool:
    return alert.snoozed_until is not None and now < alert.snoozed_until


def _event(alert: Alert, happening: Happening, now: Seconds, reason: str, *, said: bool = True) -> Event:
    return Event(alert.id, now, happening, alert.subject, alert.condition, reason, said)


def _where(position: LpPosition) -> str:
    tick, span = position.pool.tick, position.range
    staked = ", staked with a subscriber" if position.subscribed else ""
    if position.in_range:
        share = f"{float(100 * width_left(position)):.1f} % of its width left to the nearer edge"
        return f"{share} (tick {tick} in {span.lower} to {span.upper}){staked}"
    beyond, edge = (span.lower - tick, "lower") if tick < span.lower else (tick - span.upper, "upper")
    share = f"{float(Fraction(100 * beyond, span.width)):.1f} % of its width"
    return f"tick {tick} lies {beyond} ticks ({share}) beyond its {edge} edge, {span.lower} to {span.upper}{staked}"
