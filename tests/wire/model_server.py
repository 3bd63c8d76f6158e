"""A local server that speaks, byte by byte, what a model's service might: the vendors' own forms and worse."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.policy import HTTP
from typing import Any


@dataclass(frozen=True)
class Heard:
    """One request as it came over the wire."""

    path: str
    headers: dict[str, str]
    body: Any


Answer = bytes | Callable[[asyncio.StreamWriter], Awaitable[None]]
Answering = Callable[[Heard], Answer]


@dataclass
class ModelServer:
    """Answers every request by `answering`; keeps what it heard."""

    answering: Answering
    heard: list[Heard] = field(default_factory=list)
    origin: str = ""
    _talks: set[asyncio.Task[Any]] = field(default_factory=set)
    """Nobody else keeps one that waits for ever once its client has gone."""

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = asyncio.current_task()
        assert talk is not None
        self._talks.add(talk)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                first, *lines = head.decode().strip().split("\r\n")
                headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                heard = Heard(first.split(" ")[1], headers, read_body(headers.get("content-type", ""), body))
                self.heard.append(heard)
                answer = self.answering(heard)
                if isinstance(answer, bytes):
                    writer.write(answer)
                    await writer.drain()
                else:
                    await answer(writer)
                    break
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._talks.discard(talk)
            writer.close()

    async def end_talks(self) -> None:
        talks = list(self._talks)
        for talk in talks:
            talk.cancel()
        await asyncio.gather(*talks, return_exceptions=True)


def read_body(content_type: str, body: bytes) -> Any:
    """A JSON document, or the fields of a form by name, files as bytes."""
    if not content_type.startswith("multipart/form-data"):
        return json.loads(body) if body else None
    form = message_from_bytes(f"content-type: {content_type}\r\n\r\n".encode() + body, policy=HTTP)
    fields = {str(part.get_param("name", header="content-disposition")): part for part in form.iter_parts()}
    return {
        name: content if part.get_filename() is not None else content.decode()
        for name, part in fields.items()
        if isinstance(content := part.get_payload(decode=True), bytes)
    }


@asynccontextmanager
async def serving(answering: Answering) -> AsyncIterator[ModelServer]:
    server = ModelServer(answering)
    listening = await asyncio.start_server(server._serve, "127.0.0.1", 0)
    server.origin = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listening.close()
        await server.end_talks()


def http(status: int, body: bytes | dict[str, Any], content_type: str = "application/json", extra: str = "") -> bytes:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"HTTP/1.1 {status} X\r\ncontent-type: {content_type}\r\ncontent-length: {len(content)}\r\n{extra}\r\n"
    return head.encode() + content


def chat(text: str | None, usage: tuple[int, int] | None = (100, 50), finish: str = "stop", **message: Any) -> bytes:
    """A chat completion as OpenAI and its imitators send it."""
    document: dict[str, Any] = {
        "id": "c1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "some-model",
        "choices": [
            {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text, **message}}
        ],
    }
    if usage is not None:
        document["usage"] = {
            "prompt_tokens": usage[0],
            "completion_tokens": usage[1],
            "total_tokens": sum(usage),
        }
    return http(200, document)


def anthropic(text: str, usage: tuple[int, int] = (100, 50), stop: str = "end_turn") -> bytes:
    content = [{"type": "text", "text": text}] if text else []
    return http(
        200,
        {
            "id": "m1",
            "type": "message",
            "role": "assistant",
            "model": "some-model",
            "content": content,
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": {"input_tokens": usage[0], "output_tokens": usage[1]},
        },
    )


def gemini(text: str, usage: tuple[int, int] = (100, 50), finish: str = "STOP") -> bytes:
    content = {"role": "model", "parts": [{"text": text}]} if text else {}
    return http(
        200,
        {
            "candidates": [{"content": content, "finishReason": finish, "index": 0}],
            "usageMetadata": {
                "promptTokenCount": usage[0],
                "candidatesTokenCount": usage[1],
                "totalTokenCount": sum(usage),
            },
            "modelVersion": "some-model",
        },
    )


async def never(writer: asyncio.StreamWriter) -> None:
    """Hold the line and say nothing."""
    await asyncio.Event().wait()


async def cut(writer: asyncio.StreamWriter) -> None:
    """Promise a hundred bytes and hang up after ten."""
    writer.write(b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"id": "c1')
    await writer.drain()
    writer.transport.abort()


async def hang_up(writer: asyncio.StreamWriter) -> None:
    """Not even a status line."""
    writer.transport.abort()


async def endless(writer: asyncio.StreamWriter) -> None:
    """Chunks of text for as long as anyone listens."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"10000\r\n" + b" " * 65536 + b"\r\n")
        await writer.drain()
