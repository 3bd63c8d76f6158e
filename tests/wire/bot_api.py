"""A small Bot API on loopback: takes messages and photos as Telegram does, and fails in every way a service can."""

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
    return http(200, {"ok": True, "result": {"message_id": 1, "chat": {"id": int(CHAT)}, "text": message_text(heard)}})


def message_text(heard: Heard) -> str:
    return str(heard.body.get("text", heard.body.get("caption")))


def asks_silence(heard: Heard) -> bool:
    """A form says it in words."""
    return heard.body.get("disable_notification") in {True, "true"}


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
    **{f"a portal's {code}": http(code, b"<html>Please log in</html>", "text/html") for code in (400, 401, 403, 404)},
    "not ok": http(200, {"ok": False}),
}
"""Faults that may pass."""


@dataclass
class Bot:
    """Answers by `mood`; keeps the texts that arrived."""

    url: str = ""
    mood: Answer | None = None
    """None: every message is taken."""
    reply: Answer | None = None
    """Of a message that is taken; None: that it was."""
    photo_mood: Answer | None = None
    """Of photos alone."""
    arrived: list[str] = field(default_factory=list)
    heard: list[Heard] = field(default_factory=list)

    def answer(self, heard: Heard) -> Answer:
        self.heard.append(heard)
        photo = heard.path == f"/bot{TOKEN}/sendPhoto"
        if not photo and heard.path != f"/bot{TOKEN}/sendMessage":
            return refused(404, "Not Found")
        if photo and self.photo_mood is not None:
            return self.photo_mood
        if self.mood is not None:
            return self.mood
        self.arrived.append(message_text(heard))
        return taken(heard) if self.reply is None else self.reply


@asynccontextmanager
async def bot_api() -> AsyncIterator[Bot]:
    bot = Bot()
    async with serving(bot.answer) as server:
        bot.url = server.origin
        yield bot
