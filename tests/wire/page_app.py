"""The page's application on a home, asked without a socket; its services on a loop of their own, as in `zuno web`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

from fastapi import FastAPI

from zuno.adapters.file_lock import LockedFile
from zuno.doors.docs_site import find_docs
from zuno.doors.web.access import Access
from zuno.doors.web.app import WebBackends, create_app
from zuno.doors.web.events import EventFeed
from zuno.doors.web.metrics import Metrics
from zuno.doors.web.routes.system import has_real_money
from zuno.doors.web.services import Services
from zuno.doors.web.stops import Stop, StopDesk, Tell
from zuno.doors.web_logins import Factors, LoginBook, Logins, LoginScope, WebLoginView, hash_secret
from zuno.kernel.public_site import PublicSite
from zuno.kernel.units import Millis
from zuno.wiring import Application, open_zuno
from zuno.wiring.web import FACTORS_FILE, LOGINS_FILE, list_faults

T = TypeVar("T")
TOKEN = "ab" * 32
NOW = 1_800_000_000_000
HOST = "127.0.0.1:8420"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
COOKIE = "zuno_test"


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
    logins: Logins
    clocks: Clocks
    loop: asyncio.AbstractEventLoop

    def ask(self, question: Callable[[Application], Awaitable[T]]) -> T:
        """Ask the services on their own loop, from a test."""

        async def look() -> T:
            return await question(self.zuno)

        return asyncio.run_coroutine_threadsafe(look(), self.loop).result(120)


def build_logins(home: Path, clocks: Clocks) -> Logins:
    """Of a home where scripts know `TOKEN`."""
    file, numbers = home / LOGINS_FILE, count()
    if not file.exists():
        token = WebLoginView(kind="token", name="script", scope="act", made=clocks.millis, seen=clocks.millis)
        file.write_text(LoginBook(url=f"http://{HOST}/", logins={hash_secret(TOKEN): token}).model_dump_json())
    clock, chance = lambda: Millis(clocks.millis), lambda size: next(numbers).to_bytes(size, "big")
    return Logins(LockedFile(file), Factors(LockedFile(home / FACTORS_FILE), clock, chance), clock, chance)


def build_access(logins: Logins, clocks: Clocks, *, real_money: bool = False, site: PublicSite | None = None) -> Access:
    return Access(logins, COOKIE, lambda: clocks.seconds, real_money=real_money, site=site)


def log_in(logins: Logins, scope: LoginScope = "act") -> tuple[str, dict[str, str]]:
    """The cookie and the header of a browser that opened a link."""
    given = logins.log_in(logins.link(scope).url.partition("#login=")[2])
    assert given is not None
    return f"{COOKIE}={given[0]}", {"X-Zuno-Session": given[1]}


@dataclass
class InlineHelper:
    """Stops on the services' own loop, without a process."""

    desk: StopDesk
    loop: asyncio.AbstractEventLoop

    def start(self) -> None: ...

    async def ask(self, asked: Stop, tell: Tell = lambda line: None) -> Any:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self.desk.handle(asked, tell), self.loop))

    def stop(self) -> None: ...


@contextmanager
def open_page_app(home: Path, site: PublicSite | None = None) -> Iterator[PageApp]:
    zuno, clocks, loop = open_zuno(str(home)), Clocks(), asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        logins, services = build_logins(home, clocks), Services(zuno, loop)
        access = build_access(logins, clocks, real_money=has_real_money(zuno.config()), site=site)
        feed, drawn = EventFeed(services), iter(range(1_000_000))
        on = WebBackends(
            access=access,
            now=lambda: Millis(clocks.millis),
            chance=lambda count: next(drawn).to_bytes(count, "big"),
            metrics=Metrics(lambda: clocks.seconds),
            version="0",
            kill_lock=zuno.kill_lock,
            helper=InlineHelper(StopDesk(zuno), loop),
            list_faults=partial(list_faults, home, zuno._probe_journal, zuno.kill_lock),
            docs=find_docs(),
        )
        yield PageApp(create_app(services, on, feed), feed, services, zuno, access, logins, clocks, loop)
    finally:
        asyncio.run_coroutine_threadsafe(zuno.close(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
        loop.close()
