"""The fallback index: one JSON line per memory or `{"removed": ID}`, recalled by age, the most recent first. A last
line that a kill cut short is ignored and cut off by the next writer."""

import asyncio
import heapq
import json
import logging
import os
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
from pydantic import ValidationError

from zuno.adapters.atomic_file import flush_to_disk, read_file, replace_file, translate_write_errors
from zuno.adapters.file_lock import WAIT_SECONDS, FileLock
from zuno.adapters.memory.table import drop_repeats, keep_new
from zuno.kernel.errors import Broken, Unavailable
from zuno.trading.measure.similarity import DECAY, ONE, apply_decay
from zuno.trading.model.memory import MemoryRecord, Recalled, RecallQuery, RecallResult
from zuno.trading.ports.recall import MemoryIndex

MOST_RECENT: Final = 3


@dataclass(slots=True)
class _Lines:
    records: dict[str, MemoryRecord] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    read: int = 0
    """Bytes of whole lines."""


class JsonlMemory:
    """One file, with a lock for writers."""

    name: Final = f"recent{MOST_RECENT}"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines = _Lines()
        self._inode: int | None = None

    async def add(self, records: Sequence[MemoryRecord]) -> None:
        await asyncio.to_thread(self._add, records)

    async def recall(self, query: RecallQuery) -> RecallResult:
        if not query.text.strip():
            return RecallResult(source=self.name, found=())
        lines = await asyncio.to_thread(self._load)
        known = [
            record
            for record in lines.records.values()
            if record.at < query.before and record.origin == query.origin and record.channel in query.channels
            if query.symbol is None or record.symbol == query.symbol
        ]
        newest = heapq.nsmallest(min(MOST_RECENT, query.limit), known, key=lambda record: (-record.at, record.id))
        return RecallResult(source=self.name, found=tuple(_rank_by_age(record, query) for record in newest))

    async def remove(self, id: str) -> None:
        await asyncio.to_thread(self._remove, id)

    async def ids(self) -> frozenset[str]:
        return frozenset((await asyncio.to_thread(self._load)).records)

    async def rebuild(self, records: Sequence[MemoryRecord], removed: Collection[str] = ()) -> None:
        gone = set(removed)
        kept = [record for record in drop_repeats(records) if record.id not in gone]
        lines = [*map(_line, kept), *map(_removal, sorted(gone))]

        def act() -> None:
            with self._lock():
                self._replace(b"".join(lines))

        await asyncio.to_thread(act)

    def _add(self, records: Sequence[MemoryRecord]) -> None:
        with self._lock():
            lines = self._load()
            new = keep_new(records, lines.records | dict.fromkeys(lines.removed))
            if len(new) == 1:
                self._append(_line(new[0]))
            elif new:  # all of them or none
                whole_lines = (read_file(self._path) or b"")[: lines.read]
                self._replace(whole_lines + b"".join(map(_line, new)))

    def _remove(self, id: str) -> None:
        with self._lock():
            if id not in self._load().removed:
                self._append(_removal(id))

    def _load(self) -> _Lines:
        """What the file holds; only what is new in it is read."""
        try:
            with open(self._path, "rb") as file:
                inode = os.fstat(file.fileno()).st_ino
                lines = self._lines if inode == self._inode else _Lines()
                file.seek(lines.read)
                new = file.read()
        except FileNotFoundError:
            self._lines, self._inode = _Lines(), None
            return self._lines
        except OSError as error:
            raise Unavailable(f"{self._path} cannot be read ({error.strerror}).") from error
        self._inode, self._lines = None, _Lines()  # read anew, should a line be damaged
        for line in new[: new.rfind(b"\n") + 1].splitlines(keepends=True):
            _read_line(line, lines, self._path)
        self._lines, self._inode = lines, inode
        return lines

    def _append(self, line: bytes) -> None:
        with translate_write_errors(self._path):
            new = not self._path.exists()
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "r+b") as file:
                file.truncate(self._lines.read)
                file.seek(self._lines.read)
                file.write(line)
                file.flush()
                os.fsync(handle)
            if new:
                flush_to_disk(self._path.parent)

    def _replace(self, content: bytes) -> None:
        with translate_write_errors(self._path):
            replace_file(self._path, content)

    def _lock(self) -> FileLock:
        return FileLock(self._path.with_suffix(".lock"), timeout=WAIT_SECONDS)


def _rank_by_age(record: MemoryRecord, query: RecallQuery) -> Recalled:
    whole, age = np.array([ONE], dtype=np.int32), np.array([query.before - record.at], dtype=np.int64)
    left = int(apply_decay(whole, age, DECAY[record.channel])[0])
    return Recalled(id=record.id, similarity=None, score=left / ONE)


def _line(record: MemoryRecord) -> bytes:
    return record.model_dump_json().encode() + b"\n"


def _removal(id: str) -> bytes:
    return json.dumps({"removed": id}).encode() + b"\n"


def _read_line(line: bytes, lines: _Lines, path: Path) -> None:
    try:
        if line.startswith(b'{"removed"'):
            id = json.loads(line)["removed"]
            lines.removed.add(id)
            lines.records.pop(id, None)
        else:
            record = MemoryRecord.model_validate_json(line)
            if record.id not in lines.removed:
                lines.records[record.id] = record
    except (ValidationError, ValueError, KeyError, TypeError) as error:
        raise Broken(f"{path} has a damaged line; the next evaluation builds it anew from the journal.") from error
    lines.read += len(line)


T = TypeVar("T")
PAUSE: Final = 10
"""A store that failed is not asked for so many times as long as the failure took."""
LONGEST_PAUSE: Final = 60.0
"""Seconds."""
_LOG = logging.getLogger(__name__)


class FallbackIndex:
    """An index that a fallback answers for while it is down. The caller fills it; removals go to both."""

    def __init__(
        self, index: MemoryIndex, fallback: MemoryIndex | None, stopwatch: Callable[[], float] = time.monotonic
    ) -> None:
        self.name = index.name
        self._index = index
        self._fallback = fallback
        self._stopwatch = stopwatch
        self._down: tuple[float, str] | None = None
        """Until when the index is not asked, and why."""

    async def add(self, records: Sequence[MemoryRecord]) -> None:
        await self._ask(lambda: self._index.add(records))

    async def recall(self, query: RecallQuery) -> RecallResult:
        try:
            return await self._ask(lambda: self._index.recall(query))
        except (Unavailable, Broken) as error:
            if self._fallback is None:
                raise
            self._tell("recall by age alone", error)
            recent = await self._fallback.recall(query.model_copy(update={"symbol": query.symbol or query.recent_of}))
            return recent.model_copy(update={"note": f"{self.name}: {error}"})

    async def remove(self, id: str) -> None:
        if self._fallback is not None:
            await self._fallback.remove(id)
        try:
            await self._ask(lambda: self._index.remove(id))
        except (Unavailable, Broken) as error:
            self._tell("not removed", error)

    async def ids(self) -> frozenset[str]:
        return await self._ask(self._index.ids)

    async def rebuild(self, records: Sequence[MemoryRecord], removed: Collection[str] = ()) -> None:
        await self._ask(lambda: self._index.rebuild(records, removed))

    async def _ask(self, act: Callable[[], Awaitable[T]]) -> T:
        started = self._stopwatch()
        if self._down is not None and started < self._down[0]:
            raise Unavailable(self._down[1])
        try:
            answer = await act()
        except Unavailable as error:
            ended = self._stopwatch()
            self._down = (ended + min(LONGEST_PAUSE, PAUSE * (ended - started)), str(error))
            raise
        self._down = None
        return answer

    def _tell(self, what: str, error: Exception) -> None:
        _LOG.warning("%s: %s: %s", self.name, what, error)
