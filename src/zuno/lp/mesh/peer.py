"""A peer: a role that answers messages with messages and knows only those it was sent."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from zuno.lp.mesh.envelope import Envelope
from zuno.lp.model.debate import Payload, Role, Thought


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """Something to be said to someone; ids, time and signature are the transport's business."""

    to: Role
    payload: Payload


Think = Callable[[Thought], Awaitable[None]]
"""Sends the owner a thought as it comes; it may get lost."""


class Peer(Protocol):
    """Promises to answer a message from the message alone (and what it names by hash), the same way each time."""

    @property
    def role(self) -> Role: ...
    async def handle(self, envelope: Envelope, think: Think) -> Sequence[OutgoingMessage]: ...
