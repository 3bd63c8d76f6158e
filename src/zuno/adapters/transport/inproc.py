"""Peers in one process: a queue for each role."""

from __future__ import annotations

import asyncio
from collections import defaultdict

from zuno.messages.debate import Role


class InProcess:
    """Nothing is lost and nothing is reordered; the messages are bytes all the same."""

    def __init__(self) -> None:
        self._inboxes: defaultdict[Role, asyncio.Queue[bytes]] = defaultdict(asyncio.Queue)

    async def send(self, to: Role, data: bytes) -> None:
        self._inboxes[to].put_nowait(data)

    async def receive(self, role: Role) -> bytes:
        return await self._inboxes[role].get()

    async def close(self) -> None:
        self._inboxes.clear()
