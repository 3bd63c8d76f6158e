"""The page's application on a home, asked without a socket; its services on a loop of their own, as in `zuno web`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

from fastapi import FastAPI

from zuno.doors.web.access import Access
from zuno.doors.web.app import WebBackends, create_app
from zuno.doors.web.events import EventFeed
from zuno.doors.web.metrics import Metrics
from zuno.doors.web.services import Services
from zuno.doors.web.stops import Stop, StopDesk, Tell
from zuno.kernel.units import Millis
from zuno.wiring import Application, open_zuno
from zuno.wiring.web import find_docs

T = TypeVar("T")
TOKEN = "ab" * 32
NOW = 1_800_000_000_000
HOST = "127.0.0.1:8420"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@dataclass
class Clocks:
    """Both stand still until a test moves them."""

    millis: int = NOW
    seconds: float = 0.0


@dataclass
class PageApp:
    app: FastAPI
    feed: EventFeed
    services: Services
    zuno: Application
    access: Access
    clocks: Clocks
    loop: asyncio.AbstractEventLoop

    def ask(self, question: Callable[[Application], Awaitable[T]]) -> T:
        """Ask the services on their own loop, from a test."""

        async def look() -> T:
            return await question(self.zuno)

        return asyncio.run_coroutine_threadsafe(look(), self.loop).result(120)


@dataclass
class InlineHelper:
    """Stops on the services' own loop, without a process."""

    desk: StopDesk
    loop: asyncio.AbstractEventLoop

    def start(self) -> None: ...

    async def ask(self, asked: Stop, tell: Tell = lambda line: None) -> Any:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self.desk.handle(asked, tell), self.loop))

    def stop(self) -> None: ...


def build_access(clocks: Clocks, token: str = TOKEN) -> Access:
    return Access(token, lambda: Millis(clocks.millis), lambda: clocks.seconds, lambda count: b"\x07" * count)


@contextmanager
def open_page_app(home: Path) -> Iterator[PageApp]:
    zuno, clocks, loop = open_zuno(str(home)), Clocks(), asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        access, services = build_access(clocks), Services(zuno, loop)
        feed, drawn = EventFeed(services), iter(range(1_000_000))
        on = WebBackends(
            access=access,
            now=lambda: Millis(clocks.millis),
            chance=lambda count: next(drawn).to_bytes(count, "big"),
            metrics=Metrics(lambda: clocks.seconds),
            version="0",
            kill_lock=zuno.kill_lock,
            helper=InlineHelper(StopDesk(zuno), loop),
            docs=find_docs(),
        )
        yield PageApp(create_app(services, on, feed), feed, services, zuno, access, clocks, loop)
    finally:
        asyncio.run_coroutine_threadsafe(zuno.close(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
        loop.close()
