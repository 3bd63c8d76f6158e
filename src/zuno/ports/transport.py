"""Carrying messages between peers. Whether they are believed is decided above."""

from __future__ import annotations

from typing import Protocol

from zuno.messages.debate import Role


class Transport(Protocol):
    """Promises bytes from one role to another, at most once, in order between two roles of one process.

    `Unavailable` when the other side cannot be reached; a message that was sent may still be lost.
    """

    async def send(self, to: Role, data: bytes) -> None: ...

    async def receive(self, role: Role) -> bytes:
        """The next message for a role, waiting for it."""
        ...

    async def close(self) -> None: ...
