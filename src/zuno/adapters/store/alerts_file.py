"""Alerts in one small JSON file, replaced whole; a damaged one is never replaced silently."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal, TypeVar

from pydantic import TypeAdapter

from zuno.adapters.file_lock import WAIT_SECONDS, LockedFile
from zuno.kernel.errors import Broken
from zuno.lp.model.alerts import AlertBook

T = TypeVar("T")
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
            return content if after == before else _form().dump_json(_Document(1, after), ensure_ascii=True), answer

        return await asyncio.to_thread(self._file.change, rewrite)

    def _parse(self, content: bytes | None) -> AlertBook:
        try:
            if content is not None and len(content) > _MOST_BYTES:
                raise ValueError("too large for a book of alerts")
            return AlertBook() if content is None else _form().validate_json(content).book
        except ValueError as error:
            raise Broken(
                f"{self._path} is damaged; move it away to start with no alerts, or restore it from a copy."
            ) from error


@dataclass(frozen=True, slots=True)
class _Document:
    format: Literal[1]
    book: AlertBook


@cache
def _form() -> TypeAdapter[_Document]:
    return TypeAdapter(_Document)
