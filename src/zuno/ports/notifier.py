"""Telling the owner something, wherever they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from zuno.domain.alerts import Severity


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
    """It arrived."""


@dataclass(frozen=True, slots=True)
class Later:
    """It may arrive another time; `wait` is what the service asked for, if it did."""

    reason: str
    wait: float | None = None


@dataclass(frozen=True, slots=True)
class Never:
    """It will not arrive however often it is tried. `all`: nor will any other, until a setting is mended."""

    reason: str
    all: bool


Delivery = Sent | Later | Never


class Notifier(Protocol):
    """Promises to try once, within bounded time, and to say what came of it; nothing is raised for a service's faults.

    `Sent` means that the service has it. After `Later` it may have it all the same (the answer was lost): whoever
    tries again must accept a second copy.
    """

    async def send(self, notice: Notice) -> Delivery: ...

    async def close(self) -> None: ...
