"""Alerts in one small JSON file: replaced whole, changed by one process at a time, never silently made anew."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Final, TypeVar

from pydantic import TypeAdapter

from zuno.adapters.store.seats import FileSeat, taken
from zuno.domain.alerts import AlertBook
from zuno.domain.errors import Broken, Unavailable

T = TypeVar("T")
FORMAT: Final = 1
PATIENCE: Final = 30.0
_PAUSE: Final = 0.005
_MOST_BYTES: Final = 64 * 1024 * 1024


class AlertsFile:
    """`alerts.json` in a home, with `alerts.lock` beside it. Reading needs no lock: the file is only ever replaced."""

    def __init__(self, home: Path, patience: float = PATIENCE) -> None:
        self._path = home / "alerts.json"
        self._lock = home / "alerts.lock"
        self._patience = patience

    async def book(self) -> AlertBook:
        return await asyncio.to_thread(self._read)

    async def change(self, make: Callable[[AlertBook], tuple[AlertBook, T]]) -> T:
        return await asyncio.to_thread(self._change, make)

    def _change(self, make: Callable[[AlertBook], tuple[AlertBook, T]]) -> T:
        with self._alone():
            before = self._read()
            after, answer = make(before)
            if after != before:
                self._write(after)
            return answer

    def _read(self) -> AlertBook:
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
        partial = self._path.with_suffix(".json.partial")
        try:
            handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(document, file, separators=(",", ":"))
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, self._path)
            _remember_name(self._path.parent)
        except OSError as error:
            with suppress(OSError):
                partial.unlink(missing_ok=True)
            raise Unavailable(f"{self._path} cannot be written ({error.strerror}); make room.") from error

    @contextmanager
    def _alone(self) -> Iterator[None]:
        try:
            handle = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise Unavailable(f"{self._lock} cannot be opened ({error.strerror}).") from error
        try:
            self._wait(handle)
            yield
        finally:
            os.close(handle)  # closing is unlocking

    def _wait(self, handle: int) -> None:
        deadline = time.monotonic() + self._patience
        while not taken(handle):
            if time.monotonic() > deadline:
                raise Unavailable(
                    f"Another process holds {self._lock} for more than {self._patience:g} s; find it and end it."
                )
            time.sleep(_PAUSE)


class MonitorSeat(FileSeat):
    """`monitor.lock` in a home."""

    def __init__(self, home: Path) -> None:
        super().__init__(
            home / "monitor.lock",
            "A monitor of this home runs already ({}); `zuno alerts` shows what it saw, and ending it frees the seat.",
        )


def _remember_name(folder: Path) -> None:
    """Without it a power cut may forget the new name."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


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
