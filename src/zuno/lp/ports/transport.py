"""Carrying bytes between peers. Whether they are believed is decided above."""

from dataclasses import dataclass
from typing import Literal, Protocol

from zuno.kernel.wire import Wire
from zuno.lp.model.debate import Role

NodeState = Literal["ok", "not ours", "not AXL", "late"]


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
    """Bytes that arrived, and who sent them as far as the transport itself can tell."""

    data: bytes
    sender: Role | None = None
    """The role whose endpoint they came from; None where the transport does not know its senders."""


class NodeHealth(Wire):
    """How the node that an endpoint goes through answered last. `late`: not in time, or nobody has answered yet."""

    state: NodeState
    why: str = ""
    """What is wrong and what to do about it; empty where it is ok."""


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

    @property
    def node(self) -> NodeHealth | None:
        """None where it needs no node."""

    @property
    def strangers(self) -> int:
        """Messages or calls of senders that are not in the peer table. They are dropped."""

    async def send(self, to: Role, data: bytes) -> None: ...

    async def receive(self, role: Role) -> ReceivedMessage:
        """The next message for a role; an endpoint of one role alone answers for no other."""

    async def close(self) -> None: ...
