"""Peers in one process: a queue for each role."""

from __future__ import annotations

import asyncio
from collections import defaultdict

from zuno.kernel.errors import Refused, Unavailable
from zuno.lp.model.debate import Role
from zuno.lp.ports.transport import NodeHealth, ReceivedMessage

LIMIT = 16 * 1024 * 1024
_END = None


class InProcess:
    """Nothing is lost and nothing is reordered; the messages are bytes all the same."""

    limit = LIMIT
    node: NodeHealth | None = None
    strangers = 0

    def __init__(self) -> None:
        self._inboxes: defaultdict[Role, asyncio.Queue[bytes | None]] = defaultdict(asyncio.Queue)
        self._closed = False

    async def send(self, to: Role, data: bytes) -> None:
        if len(data) > LIMIT:
            raise Refused(f"A message of {len(data)} bytes is over the limit of {LIMIT}.")
        if self._closed:
            raise Unavailable("This transport is closed.")
        self._inboxes[to].put_nowait(data)

    async def receive(self, role: Role) -> ReceivedMessage:
        data = None if self._closed else await self._inboxes[role].get()
        if data is _END:
            self._inboxes[role].put_nowait(_END)  # whoever else waits here is told as well
            raise Unavailable("This transport is closed.")
        return ReceivedMessage(data)

    async def close(self) -> None:
        self._closed = True
        for inbox in self._inboxes.values():
            inbox.put_nowait(_END)
