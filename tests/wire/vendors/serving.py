"""A vendor on loopback: paths and what they answer, and every way in which that can go wrong."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.wire.model_server import Answer, Heard, http, serving

Query = Mapping[str, str]
Route = Callable[[Query], Any]
"""A document, or bytes that are the whole response."""


def said(document: Any, status: int = 200, extra: str = "") -> bytes:
    return http(status, json.dumps(document).encode(), extra=extra)


@dataclass
class Vendor:
    """Answers by path; `change` may alter a document before it is sent, `mood` replaces every answer."""

    routes: Mapping[str, Route]
    change: Callable[[str, Any], Any] = lambda path, document: document
    mood: Answer | None = None
    next: list[Answer] = field(default_factory=list)
    """Answers to the requests that come next, before all else."""
    url: str = ""
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)

    def answer(self, heard: Heard) -> Answer:
        parts = urlsplit(heard.path)
        path, query = unquote(parts.path), dict(parse_qsl(parts.query))
        self.asked.append((path, query))
        self.headers.append(heard.headers)
        self.bodies.append(heard.body)
        if self.next:
            return self.next.pop(0)
        if self.mood is not None:
            return self.mood
        if path not in self.routes:
            return said({"error": "no such path"}, 404)
        document = self.routes[path](heard.body if isinstance(heard.body, dict) and not query else query)
        return document if isinstance(document, bytes) else said(self.change(path, document))


@asynccontextmanager
async def vendor(routes: Mapping[str, Route]) -> AsyncIterator[Vendor]:
    """An answer that has no end is ended with the vendor: who answers is held until then, for nobody else does."""
    here = Vendor(routes)
    answering: set[asyncio.Task[Any]] = set()

    def answer(heard: Heard) -> Answer:
        found = here.answer(heard)
        if isinstance(found, bytes):
            return found

        async def held(writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            answering.add(task)
            await found(writer)

        return held

    async with serving(answer) as server:
        here.url = server.origin
        try:
            yield here
        finally:
            for task in answering:
                task.cancel()
            await asyncio.gather(*answering, return_exceptions=True)


# -- one field renamed: what a vendor may do any day


Place = str | int


def fields(document: Any) -> Iterator[Place]:
    """Every name in a document, and every place in a row of bare values, each once."""
    seen: dict[Place, None] = {}

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            for name, inner in value.items():
                seen[name] = None
                walk(inner)
        elif isinstance(value, list):
            for place, inner in enumerate(value):
                if isinstance(inner, (dict, list)):
                    walk(inner)
                else:
                    seen[place] = None

    walk(document)
    return iter(seen)


def without(document: Any, name: Place) -> Any:
    """The same document with that name another one, or that place of every row of bare values null."""
    changed = copy.deepcopy(document)

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            for inner in value.values():
                walk(inner)
            if name in value and isinstance(name, str):
                value[name + "Renamed"] = value.pop(name)
        elif isinstance(value, list):
            for place, inner in enumerate(value):
                if isinstance(inner, (dict, list)):
                    walk(inner)
                elif place == name:
                    value[place] = None

    walk(changed)
    return changed
