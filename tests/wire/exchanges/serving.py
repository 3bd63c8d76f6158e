"""An exchange's HTTP server on loopback: routes by method and path, and every way in which an answer can go wrong."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from zuno.kernel.units import Millis


@dataclass(frozen=True)
class Request:
    """One request as it came over the wire."""

    method: str
    path: str
    raw_query: str
    headers: dict[str, str]
    body: bytes

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(self.raw_query))


@dataclass(frozen=True)
class Answer:
    """A whole response."""

    status: int
    body: bytes
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()


class Declined(Exception):
    """What a handler raises to answer with an error of its exchange."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer


def json_answer(document: Any, status: int = 200, **headers: str) -> Answer:
    pairs = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Answer(status, json.dumps(document).encode(), headers=pairs)


HTML = Answer(200, b"<html><body>Please wait while we check your browser</body></html>", "text/html")
DOWN = Answer(503, b"<html>Service Unavailable</html>", "text/html")
BLOCKED = Answer(451, b'{"code": 0, "msg": "Service unavailable from a restricted location."}')


@dataclass
class Fault:
    """What happens to the requests of a name: `answer` instead of doing anything, or done and the reply lost."""

    name: str
    times: int
    answer: Answer | None
    """None: carried out, and then the connection is cut."""


class Clock:
    """The exchange's own time: the machine's, with as much added as a test likes."""

    def __init__(self) -> None:
        self.ahead = 0
        self.lag = 0
        """Milliseconds for which what is new is not listed."""

    def now(self) -> Millis:
        return Millis(time.time_ns() // 1_000_000 + self.ahead)

    def listed(self) -> Millis:
        """Up to when what was made is shown by look-ups and lists."""
        return Millis(self.now() - self.lag)


Handler = Callable[[Request], Any]
"""A document, or an `Answer`."""


def refuse_path(request: Request) -> Answer:
    return json_answer({"code": -5000, "msg": "Path not found"}, 404)


@dataclass
class FakeServer:
    """Routes, faults, and what was asked."""

    routes: dict[str, Handler]
    clock: Clock
    change: Callable[[str, Any], Any] = lambda name, document: document
    """What is done to a document before it is sent."""
    before: dict[str, Callable[[], None]] = field(default_factory=dict)
    """What happens at the exchange just before the next request of a name arrives."""
    cut: Callable[[Request], bool] = lambda request: False
    """Whether a request is carried out and its reply lost."""
    reading: Callable[[str], AbstractContextManager[None]] = lambda name: nullcontext()
    """What holds while a request of a name is answered."""
    name: Callable[[Request], str] = lambda request: request.name
    """What routes, faults and counts call a request, where its path says too little."""
    faults: list[Fault] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    url: str = ""

    def fail(self, name: str, answer: Answer, times: int = 1) -> None:
        """Answer so instead of carrying requests of that name (`POST /path`, or `*`) out."""
        self.faults.append(Fault(name, times, answer))

    def lose_reply(self, name: str, times: int = 1) -> None:
        """Carry out and say nothing."""
        self.faults.append(Fault(name, times, None))

    def count(self, name: str) -> int:
        return self.asked.count(name)

    def answer(self, request: Request) -> Answer | None:
        name = self.name(request)
        self.asked.append(name)
        fault = next((fault for fault in self.faults if fault.times and fault.name in (name, "*")), None)
        if fault is not None:
            fault.times -= 1
            if fault.answer is not None:
                return fault.answer
        self.before.pop(name, lambda: None)()
        handler = self.routes.get(name, refuse_path)
        lost = fault is not None or self.cut(request)
        try:
            with self.reading(name):
                document = handler(request)
        except Declined as declined:
            document = declined.answer
        found = document if isinstance(document, Answer) else json_answer(self.change(name, document))
        return None if lost else found

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                first, *lines = head.decode().strip().split("\r\n")
                headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                method, target, _ = first.split(" ")
                parts = urlsplit(target)
                answer = self.answer(Request(method, unquote(parts.path), parts.query, headers, body))
                if answer is None:
                    writer.transport.abort()
                    return
                extra = "".join(f"{name}: {value}\r\n" for name, value in answer.headers)
                date = formatdate(self.clock.now() / 1_000, usegmt=True)
                writer.write(
                    f"HTTP/1.1 {answer.status} X\r\ncontent-type: {answer.content_type}\r\ndate: {date}\r\n"
                    f"content-length: {len(answer.body)}\r\n{extra}\r\n".encode()
                    + answer.body
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serve_exchange(server: FakeServer) -> AsyncIterator[FakeServer]:
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listening.close()
