"""What the monitor has to say: alerts that last as long as their cause, and the events of each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum

from zuno.kernel.errors import UsageError
from zuno.kernel.notify import Severity
from zuno.kernel.text import plain_text
from zuno.kernel.units import Address, Seconds

_ALERT_ID = re.compile(r"alert_[0-9a-f]{12}")
_RULE_ID = re.compile(r"rule_[0-9a-f]{12}")


class Condition(StrEnum):
    """What is wrong, mildest first; then what an owner may ask to be told."""

    NEAR_EDGE = "near_edge"
    UNREACHABLE = "unreachable"
    OUT_OF_RANGE = "out_of_range"
    PRICE_ABOVE = "price_above"
    PRICE_BELOW = "price_below"
    FEES_ABOVE = "fees_above"

    @property
    def asked_for(self) -> bool:
        """The owner set it with a level: it is told once, and again only after it has cleared."""
        return self in {Condition.PRICE_ABOVE, Condition.PRICE_BELOW, Condition.FEES_ABOVE}

    @property
    def severity(self) -> Severity:
        if self is Condition.FEES_ABOVE:
            return Severity.INFO
        return Severity.CRITICAL if self is Condition.OUT_OF_RANGE else Severity.WARNING

    def worse_than(self, other: Condition) -> bool:
        return self is Condition.OUT_OF_RANGE and other is not Condition.OUT_OF_RANGE


class AlertEventKind(StrEnum):
    RAISED = "raised"
    WORSENED = "worsened"
    EASED = "eased"
    REMINDED = "reminded"
    RECOVERED = "recovered"
    ENDED = "ended"
    """Its subject is gone: burnt, transferred, emptied or no longer watched."""
    ACKNOWLEDGED = "acknowledged"
    SNOOZED = "snoozed"

    @property
    def over(self) -> bool:
        return self in {AlertEventKind.RECOVERED, AlertEventKind.ENDED}


@dataclass(frozen=True, slots=True)
class Subject:
    """What an alert is about: a wallet's position, or (without one) a chain."""

    chain: str
    wallet: Address | None = None
    position: int | None = None
    rule: str | None = None
    """The owner's rule that it is about; None: the range."""

    def describe(self) -> dict[str, str | None]:
        position = None if self.position is None else str(self.position)
        return {"chain": self.chain, "wallet": self.wallet, "position": position}


@dataclass(frozen=True, slots=True)
class AlertRule:
    id: str
    chain: str
    wallet: Address
    position: int
    condition: Condition
    level: Decimal
    """Whole quote tokens: of the price, or of the uncollected fees."""
    unit: str
    made_at: Seconds

    def __post_init__(self) -> None:
        if not _RULE_ID.fullmatch(self.id) or not self.condition.asked_for or not self.level > 0:
            raise ValueError("no rule: an id is rule_ and 12 hex digits, and a level is above zero")

    @property
    def subject(self) -> Subject:
        return Subject(self.chain, self.wallet, self.position, self.id)


@dataclass(frozen=True, slots=True)
class Alert:
    """One episode: from the moment something is wrong until it no longer is."""

    id: str
    subject: Subject
    condition: Condition
    reason: str
    raised_at: Seconds
    told: Condition
    """The condition of the last notification or acknowledgement."""
    told_at: Seconds
    eased_at: Seconds | None = None
    acknowledged_at: Seconds | None = None
    snoozed_until: Seconds | None = None

    def __post_init__(self) -> None:
        if not _ALERT_ID.fullmatch(self.id):
            raise ValueError("an alert's id is alert_ and 12 hex digits")


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to an alert, for good. `said`: the owner is notified of it."""

    alert: str
    at: Seconds
    happening: AlertEventKind
    subject: Subject
    condition: Condition
    reason: str
    said: bool = True
    number: int = 0
    """Its place in the book; 0 until it has one."""

    @property
    def severity(self) -> Severity:
        return Severity.INFO if self.happening.over else self.condition.severity


@dataclass(frozen=True, slots=True)
class ChainHealth:
    failures: int = 0
    """Looks in a row that failed."""
    read_at: Seconds | None = None
    block_time: Seconds | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class AlertBook:
    """Everything the monitor remembers: alerts that are on, the newest events, and how far those were passed on."""

    active: tuple[Alert, ...] = ()
    events: tuple[Event, ...] = ()
    """By number, the newest last."""
    chains: Mapping[str, ChainHealth] = field(default_factory=dict)
    last_number: int = 0
    journaled: int = 0
    """The number up to which events are in the journal."""
    pushed: int = 0
    """The number up to which events are in the outbox, or were nobody's to deliver."""
    dropped: int = 0
    """Events that had to be let go before they reached the outbox."""
    looked_at: Seconds | None = None
    rules: tuple[AlertRule, ...] = ()
    """What the owner asked to be told, in the order asked."""


def alert_id(text: str) -> str:
    if not _ALERT_ID.fullmatch(text.strip()):
        raise UsageError(f"{plain_text(text, 40)!r} is not an alert; an alert's id is alert_ and 12 hex digits.")
    return text.strip()


def rule_id(text: str) -> str:
    if not _RULE_ID.fullmatch(text.strip()):
        raise UsageError(f"{plain_text(text, 40)!r} is not an alert rule; a rule's id is rule_ and 12 hex digits.")
    return text.strip()
