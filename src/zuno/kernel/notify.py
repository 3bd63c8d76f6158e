"""Pushes to the owner: what a notice holds, the outbox it waits in, and the notifier that sends it."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

from zuno.kernel.units import Seconds


class Severity(StrEnum):
    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class NoticeKind(StrEnum):
    """What a push is about; each kind is switched on, silent or off by itself."""

    ALERT = "alert"
    """A position out of range, near its edge, at the owner's level; a chain that does not answer."""
    PLAN = "plan"
    """An LP plan applied or failed."""
    RULING = "ruling"
    ENTRY = "entry"
    """A trade was opened or topped up, or an entry was refused."""
    FILL = "fill"
    STOP = "stop"
    """A trade ended at its stop."""
    TARGET = "target"
    CLOSE = "close"
    """A trade ended otherwise: hold over, decision, owner, kill switch."""
    LIQUIDATION = "liquidation"
    LOCK = "lock"
    UNLOCK = "unlock"
    MANDATE = "mandate"
    """A mandate ends soon, or has ended."""
    SUMMARY = "summary"
    SERVICE = "service"
    """A part of `zuno serve` died, is back or was given up."""


class NoticeLabel(StrEnum):
    """Whose money and whose prices: on every notice, so that none is mistaken for another."""

    SYNTHETIC = "SYNTHETIC"
    """A local chain, or a paper account on a synthetic or recorded market."""
    PAPER = "PAPER"
    DEMO = "DEMO"
    """An exchange's own test venue."""
    LIVE = "LIVE"


class Fact(NamedTuple):
    """A line of a notice: `net: +12.40 USD`."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Button:
    """An answer offered with a message."""

    label: str
    words: str
    """What pressing it asks, as it would be typed in a chat: `/why run-1`."""


@dataclass(frozen=True, slots=True)
class Notice:
    """What the owner should know, in plain text; a notifier escapes, shortens and lays it out."""

    kind: NoticeKind
    title: str
    severity: Severity
    label: NoticeLabel
    at: Seconds
    """When it happened, not when it is sent."""
    facts: tuple[Fact, ...] = ()
    reason: str = ""
    reference: str = ""
    """The id by which it is asked about: of an alert, a run, a trade, a plan."""
    buttons: tuple[Button, ...] = ()
    picture: bytes | None = field(default=None, repr=False)


class OutboxState(StrEnum):
    WAITING = "waiting"
    DELIVERED = "delivered"
    UNDELIVERABLE = "undeliverable"
    """The service refused it, or too many waited: counted, and not tried again."""
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """A notice in the outbox. A button's callback data is `n<number>.<index>`."""

    number: int
    key: str
    notice: Notice
    state: OutboxState = OutboxState.WAITING


@dataclass(frozen=True, slots=True)
class OutboxStatus:
    waiting: int = 0
    undeliverable: int = 0
    trouble: str = ""
    """Why the last delivery failed; empty once one succeeds."""


class Outbox(Protocol):
    """Promises one ordered queue for all processes of a home:

    - `append` stores a notice once per key, whoever appends it and however often; numbers grow from 1 in that order.
    - What `append` returned of survives the process. A notice waits until it is marked.
    - `find` knows a notice by its number while its buttons may be pressed, delivered or not.
    - At most `MOST_WAITING` wait: beyond that the oldest is undeliverable, and counted.
    - `Unavailable` where it cannot be reached or written: nothing was changed. `Broken` where it cannot be read.
    """

    async def append(self, notice: Notice, key: str) -> int:
        """The number it has, or had from an earlier call with that key."""

    async def next(self) -> OutboxEntry | None:
        """The oldest that waits."""

    async def mark_delivered(self, number: int, at: Seconds) -> None: ...
    async def mark_undeliverable(self, number: int, reason: str, at: Seconds) -> None: ...
    async def mark_skipped(self, number: int, at: Seconds) -> None: ...
    async def record_trouble(self, reason: str) -> None: ...
    async def find(self, number: int) -> OutboxEntry | None: ...

    async def status(self, kind: NoticeKind | None = None) -> OutboxStatus:
        """Of one kind, or of all."""

    async def cursor(self, feed: str) -> str | None:
        """How far a feed has read what it makes notices of; None: it never has."""

    async def move_cursor(self, feed: str, position: str) -> None: ...
    async def close(self) -> None: ...


MOST_WAITING = 10_000
KEPT_SECONDS = 40 * 86_400
"""How long a settled notice can be found by its number."""
PICTURE_SECONDS = 7 * 86_400
"""How long its picture is kept."""


@dataclass(frozen=True, slots=True)
class Sent:
    """The service accepted it."""


@dataclass(frozen=True, slots=True)
class RetryLater:
    """Not sent; try again. `wait`: seconds the service asked for, if it did."""

    reason: str
    wait: float | None = None


@dataclass(frozen=True, slots=True)
class Undeliverable:
    """Retrying will not help. `all`: nothing can be sent until a setting is fixed, here or at the service."""

    reason: str
    all: bool


SendResult = Sent | RetryLater | Undeliverable


class Notifier(Protocol):
    """Promises to try once, within bounded time, and to say what came of it; nothing is raised for a service's faults.

    `Sent` means that the service has it. After `RetryLater` it may have it all the same (the answer was lost): whoever
    tries again must accept a second copy. `silent`: it arrives without a sound.
    """

    async def send(self, entry: OutboxEntry, *, silent: bool = False) -> SendResult: ...
    async def close(self) -> None: ...
