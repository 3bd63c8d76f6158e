"""The notifier port: send an alert to the owner."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Severity(StrEnum):
    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


@dataclass(frozen=True, slots=True)
class Notice:
    """What the owner should know, in plain text."""

    title: str
    severity: Severity
    chain: str
    wallet: str | None
    """In full; a notifier shortens it as its readers need."""
    position: str | None
    condition: str
    reason: str
    reference: str
    """The alert's id, by which it is acknowledged."""


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
    """Retrying will not help. `all`: nothing can be sent until a setting is fixed."""

    reason: str
    all: bool


SendResult = Sent | RetryLater | Undeliverable


class Notifier(Protocol):
    """Promises to try once, within bounded time, and to say what came of it; nothing is raised for a service's faults.

    `Sent` means that the service has it. After `RetryLater` it may have it all the same (the answer was lost): whoever
    tries again must accept a second copy.
    """

    async def send(self, notice: Notice) -> SendResult: ...

    async def close(self) -> None: ...
