"""Alerts in one small JSON file, replaced whole; a damaged one is never replaced silently."""

import asyncio
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final, TypeVar

from pydantic import TypeAdapter

from zuno.adapters.file_lock import WAIT_SECONDS, LockedFile
from zuno.kernel.errors import Broken
from zuno.lp.model.alerts import AlertBook

T = TypeVar("T")
FORMAT: Final = 1
_MOST_BYTES: Final = 64 * 1024 * 1024


class AlertsFile:
    """`alerts.json` in a home, with `alerts.lock` beside it."""

    def __init__(self, home: Path, patience: float = WAIT_SECONDS) -> None:
        self._path = home / "alerts.json"
        self._file = LockedFile(self._path, patience)

    async def book(self) -> AlertBook:
        return self._parse(await asyncio.to_thread(self._file.read))

    async def change(self, make: Callable[[AlertBook], tuple[AlertBook, T]]) -> T:
        def rewrite(content: bytes | None) -> tuple[bytes | None, T]:
            before = self._parse(content)
            after, answer = make(before)
            return content if after == before else _write(after), answer

        return await asyncio.to_thread(self._file.change, rewrite)

    def _parse(self, content: bytes | None) -> AlertBook:
        try:
            return AlertBook() if content is None else _book(content)
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise Broken(
                f"{self._path} is damaged; move it away to start with no alerts, or restore it from a copy."
            ) from error


def _write(book: AlertBook) -> bytes:
    document = {"format": FORMAT, "book": _form().dump_python(book, mode="json")}
    return json.dumps(document, separators=(",", ":")).encode()


@cache
def _form() -> TypeAdapter[AlertBook]:
    return TypeAdapter(AlertBook)


def _book(data: bytes) -> AlertBook:
    if len(data) > _MOST_BYTES:
        raise ValueError("too large for a book of alerts")
    document = json.loads(data)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError("unknown format")
    return _form().validate_python(document["book"])
