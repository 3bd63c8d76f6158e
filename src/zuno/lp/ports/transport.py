"""Carrying bytes between peers. Whether they are believed is decided above."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from zuno.lp.model.debate import Role


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
    """Bytes that arrived, and who sent them as far as the transport itself can tell."""

    data: bytes
    sender: Role | None = None
    """The role whose endpoint they came from; None where the transport does not know its senders."""


class Transport(Protocol):
    """Promises, for every adapter:

    - Bytes from one role's endpoint to another's, whole, unchanged and at most once each time they are sent.
    - Nothing else: they may be lost, late, or overtake each other, and nobody is told.
    - `send` ends within seconds. `Unavailable` when the other side cannot be reached or did not take them in time: they
      may have arrived all the same. `Refused` for more than `limit` bytes, before anything is sent. `Malformed` where
      what answers is no such transport at all.
    - `receive` waits. What comes from an endpoint that is none of the table's is dropped and counted, never returned.
    - Closing ends every wait with `Unavailable`; closing twice is harmless.
    """

    @property
    def limit(self) -> int:
        """The largest message it carries."""
        ...

    async def send(self, to: Role, data: bytes) -> None: ...

    async def receive(self, role: Role) -> ReceivedMessage:
        """The next message for a role; an endpoint of one role alone answers for no other."""
        ...

    async def close(self) -> None: ...
