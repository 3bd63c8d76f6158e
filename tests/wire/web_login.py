"""A page served in a thread of this process, and how a script shows its login there."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2

from zuno.doors.web_door import WebEventView
from zuno.wiring import Application
from zuno.wiring.web import build_logins

API = "/api/v1"


def create_login(home: Path) -> dict[str, str]:
    """The headers of a script that may act."""
    return {"Authorization": f"Bearer {build_logins(home).create_token('script', 'act').token}"}


@dataclass
class ServedPage:
    zuno: Application
    door: Any
    host: str
    port: int
    headers: dict[str, str]
    loop: asyncio.AbstractEventLoop
    """Of the services."""

    def client(self, **named: Any) -> httpx2.Client:
        return httpx2.Client(base_url=f"http://{self.host}:{self.port}", headers=self.headers, timeout=120, **named)


@contextmanager
def serve_page(zuno: Application) -> Iterator[ServedPage]:
    loop, stop, ready = asyncio.new_event_loop(), asyncio.Event(), threading.Event()
    heard: list[WebEventView] = []
    door = zuno.web("127.0.0.1", 0)

    def hear(event: WebEventView) -> None:
        heard.append(event)
        if event.event == "serving":
            ready.set()

    async def run() -> None:
        try:
            await door.run(hear, stop)
        finally:
            ready.set()
            await zuno.close()

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),), daemon=True)
    thread.start()
    assert ready.wait(60)
    link = next(event.url for event in heard if event.url)
    parts = urlsplit(link)
    try:
        yield ServedPage(zuno, door, str(parts.hostname), int(parts.port or 0), create_login(zuno._settings.home), loop)
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(60)
        loop.close()
