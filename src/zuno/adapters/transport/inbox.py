"""The inbox of a network transport, bounded and closable; and the transport within one process."""

import asyncio
from collections import defaultdict, deque
from typing import Final

from zuno.kernel.errors import Refused, Unavailable
from zuno.lp.model.debate import Role
from zuno.lp.ports.transport import NodeHealth, ReceivedMessage

MOST: Final = 256
MOST_BYTES: Final = 64 * 1024 * 1024
CLOSED: Final = "This transport is closed."


class Inbox:
    """First in, first out. When full, `room` waits, and so do senders."""

    def __init__(self, most: int = MOST, most_bytes: int = MOST_BYTES) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._messages: deque[ReceivedMessage] = deque()
        self._bytes = 0
        self._end: Exception | None = None
        self._changed = asyncio.Event()

    @property
    def is_closed(self) -> bool:
        return self._end is not None

    def put(self, received: ReceivedMessage) -> None:
        """Add a message of any size: `room` checks the bounds before it is fetched."""
        self._messages.append(received)
        self._bytes += len(received.data)
        self._wake()

    async def room(self) -> None:
        while self._end is None and (len(self._messages) >= self._most or self._bytes >= self._most_bytes):
            await self._changed.wait()
        self._unless_closed()

    async def take(self) -> ReceivedMessage:
        while self._end is None and not self._messages:
            await self._changed.wait()
        self._unless_closed()
        received = self._messages.popleft()
        self._bytes -= len(received.data)
        self._wake()
        return received

    def close(self, why: Exception | None = None) -> None:
        """Ends every wait, now and later; `why`: the carrier's failure."""
        self._end = self._end or why or Unavailable(CLOSED)
        self._messages.clear()
        self._wake()

    def end_with(self, task: asyncio.Task[None]) -> None:
        """A carrier's task that ends by itself is a bug that the receiver has to see."""
        bug = None if task.cancelled() else task.exception()
        if isinstance(bug, Exception):
            self.close(bug)

    def _unless_closed(self) -> None:
        if self._end is not None:
            raise self._end

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


LIMIT = 16 * 1024 * 1024


class InProcess:
    """Nothing is lost or reordered; messages are bytes as in any transport."""

    limit = LIMIT
    node: NodeHealth | None = None
    strangers = 0

    def __init__(self) -> None:
        self._inboxes: defaultdict[Role, Inbox] = defaultdict(Inbox)
        self._closed = False

    async def send(self, to: Role, data: bytes) -> None:
        if len(data) > LIMIT:
            raise Refused(f"A message of {len(data)} bytes is over the limit of {LIMIT}.")
        self._unless_closed()
        self._inboxes[to].put(ReceivedMessage(data))

    async def receive(self, role: Role) -> ReceivedMessage:
        self._unless_closed()
        return await self._inboxes[role].take()

    async def close(self) -> None:
        self._closed = True
        for inbox in self._inboxes.values():
            inbox.close()

    def _unless_closed(self) -> None:
        if self._closed:
            raise Unavailable(CLOSED)
