"""A venue's websocket on loopback: says what it is told to, and is lost when it is told to be."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from websockets.asyncio.server import ServerConnection, serve

Play = Callable[[ServerConnection], Awaitable[None]]
"""What happens on one connection; when it returns, the connection is closed."""


@dataclass
class Venue:
    url: str = ""
    paths: list[str] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)


@asynccontextmanager
async def streaming(play: Play) -> AsyncIterator[Venue]:
    venue = Venue()

    async def serving(socket: ServerConnection) -> None:
        assert socket.request is not None
        venue.paths.append(socket.request.path)
        await play(socket)

    async with serve(serving, "127.0.0.1", 0, close_timeout=0.1) as server:
        venue.url = f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"
        yield venue
