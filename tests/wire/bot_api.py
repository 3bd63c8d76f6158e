"""A small Bot API on loopback: takes `sendMessage` as Telegram does, and fails in every way a service can."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.wire.model_server import Answer, Heard, cut, endless, hang_up, http, never, serving

TOKEN = "123456:AAexam-token_of-a-bot"
CHAT = "-1001234567890"


def taken(heard: Heard) -> bytes:
    """A message that arrived."""
    return http(200, {"ok": True, "result": {"message_id": 1, "chat": {"id": int(CHAT)}, "text": heard.body["text"]}})


def refused(code: int, description: str = "Bad Request: can't parse entities", **parameters: Any) -> bytes:
    told = {"parameters": parameters} if parameters else {}
    return http(code, {"ok": False, "error_code": code, "description": description, **told})


async def drip(writer: asyncio.StreamWriter) -> None:
    """A byte now and then, for ever: no single wait is long."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n")
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.05)


FAULTS: dict[str, Answer] = {
    "drip": drip,
    "429": refused(429, "Too Many Requests: retry after 7", retry_after=7),
    "500": http(500, b"<html>oops</html>", "text/html"),
    "502": http(502, b""),
    "redirect": http(302, b"", extra="location: http://127.0.0.1:1/elsewhere\r\n"),
    "hang": never,
    "cut": cut,
    "hang up": hang_up,
    "endless": endless,
    "bad json": http(200, b'{"ok": tr'),
    "not an object": http(200, b"[true]"),
    "deep json": http(200, b"[" * 30_000),
    "a portal's page": http(200, b"<html>Please log in</html>", "text/html"),
    "not ok": http(200, {"ok": False}),
}
"""Faults that may pass."""


@dataclass
class Bot:
    """Answers by `mood`; keeps the texts that arrived."""

    url: str = ""
    mood: Answer | None = None
    """None: every message is taken."""
    arrived: list[str] = field(default_factory=list)
    heard: list[Heard] = field(default_factory=list)

    def answer(self, heard: Heard) -> Answer:
        self.heard.append(heard)
        if heard.path != f"/bot{TOKEN}/sendMessage":
            return refused(404, "Not Found")
        if self.mood is not None:
            return self.mood
        self.arrived.append(heard.body["text"])
        return taken(heard)


@asynccontextmanager
async def bot_api() -> AsyncIterator[Bot]:
    bot = Bot()
    async with serving(bot.answer) as server:
        bot.url = server.origin
        yield bot
