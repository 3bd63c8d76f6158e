"""Alerts in one small JSON file: replaced whole, changed by one process at a time, never silently made anew."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final, TypeVar

from pydantic import TypeAdapter

from zuno.adapters.atomic_file import replace_file
from zuno.adapters.file_lock import WAIT_SECONDS, FileLock
from zuno.adapters.full_disk import build_write_error
from zuno.kernel.errors import Broken, Unavailable
from zuno.lp.model.alerts import AlertBook

T = TypeVar("T")
FORMAT: Final = 1
_MOST_BYTES: Final = 64 * 1024 * 1024


class AlertsFile:
    """`alerts.json` in a home, with `alerts.lock` beside it. Reading needs no lock: the file is only ever replaced."""

    def __init__(self, home: Path, patience: float = WAIT_SECONDS) -> None:
        self._path = home / "alerts.json"
        self._lock = home / "alerts.lock"
        self._patience = patience

    async def book(self) -> AlertBook:
        return await asyncio.to_thread(self._load)

    async def change(self, make: Callable[[AlertBook], tuple[AlertBook, T]]) -> T:
        return await asyncio.to_thread(self._change, make)

    def _change(self, make: Callable[[AlertBook], tuple[AlertBook, T]]) -> T:
        with self._lock_file():
            before = self._load()
            after, answer = make(before)
            if after != before:
                self._write(after)
            return answer

    def _load(self) -> AlertBook:
        try:
            with open(self._path, "rb") as file:
                data = file.read(_MOST_BYTES + 1)
        except FileNotFoundError:
            return AlertBook()
        except OSError as error:
            raise Unavailable(f"{self._path} cannot be read ({error.strerror}); mend its permissions.") from error
        try:
            return _book(data)
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise Broken(
                f"{self._path} is damaged; move it away to start with no alerts, or restore it from a copy."
            ) from error

    def _write(self, book: AlertBook) -> None:
        document = {"format": FORMAT, "book": _form().dump_python(book, mode="json")}
        try:
            replace_file(self._path, json.dumps(document, separators=(",", ":")).encode())
        except OSError as error:
            raise build_write_error(self._path, error) from error

    def _lock_file(self) -> FileLock:
        return FileLock(self._lock, timeout=self._patience)


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
