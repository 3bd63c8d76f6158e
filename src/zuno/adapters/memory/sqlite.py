"""The default index: words in SQLite's FTS5, int8 vectors beside them, ranked from a copy of the vectors in memory."""

import asyncio
import sqlite3
import threading
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from zuno.adapters.file_lock import WAIT_SECONDS, FileLock
from zuno.adapters.memory.table import MemoryTable, VectorIndex, drop_repeats, identify, keep_new
from zuno.adapters.sqlite_file import SqliteFile, create_tables
from zuno.kernel.errors import Broken
from zuno.trading.measure.similarity import list_terms
from zuno.trading.model.memory import MemoryRecord, Recalled, RecallQuery
from zuno.trading.ports.recall import Embedder

T = TypeVar("T")
VERSION: Final = "2"
_REMEDY: Final = "the next evaluation builds it anew from the journal."
_WORDS_KEPT: Final = 256
_LOOKED_UP: Final = 500
"""Ids asked for at once."""
_SCHEMA: Final = (
    "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    """CREATE TABLE IF NOT EXISTS memories (
        number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, channel TEXT NOT NULL, origin TEXT NOT NULL,
        symbol TEXT, at INTEGER NOT NULL, digest BLOB NOT NULL, vector BLOB NOT NULL, checksum INTEGER NOT NULL)""",
    "CREATE TABLE IF NOT EXISTS removed (id TEXT PRIMARY KEY) WITHOUT ROWID",
    # Words only: a memory's text is in the journal.
    """CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(
        text, content='', columnsize=0, detail=none,
        tokenize="unicode61 remove_diacritics 0 categories 'L* N* M* Co' tokenchars '.,'")""",
)


@dataclass(slots=True)
class _Copy:
    """The rows of the file that are in memory, as of one generation."""

    generation: str
    table: MemoryTable
    numbers: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Of the rows, in their order."""
    masks: dict[str, NDArray[np.uint8]] = field(default_factory=dict)
    """Word to which memories hold it; a shorter one has not been looked up in the newest."""

    @property
    def last(self) -> int:
        return int(self.numbers[-1]) if len(self.numbers) else 0


class SqliteMemoryIndex(VectorIndex):
    """One file. Vectors of another embedder are `Broken`: the index is rebuilt, they are never mixed."""

    name = "sqlite"

    def __init__(self, path: Path, embedder: Embedder) -> None:
        self._path = path
        self._embedder = embedder
        self._file = SqliteFile(path, create_tables(_SCHEMA), _REMEDY)
        self._opened: int | None = None
        """The file's inode: another process may have put a new one in place of a damaged one."""
        self._copy: _Copy | None = None
        self._lock = threading.RLock()

    async def add(self, records: Sequence[MemoryRecord]) -> None:
        if not (new := await asyncio.to_thread(self._find_new, records)):
            return
        vectors = await self._embedder.embed([record.text for record in new])
        vector_of = {record.id: vector for record, vector in zip(new, vectors, strict=True)}
        await asyncio.to_thread(self._write, lambda connection: self._insert(connection, new, vector_of))

    async def _find(self, query: RecallQuery, vector: bytes) -> tuple[Recalled, ...]:
        def act(connection: sqlite3.Connection) -> tuple[Recalled, ...]:
            copy = self._refresh(connection)
            return copy.table.rank(query, vector, lambda word: _find_word(connection, copy, word))

        return await asyncio.to_thread(self._read, act) or ()

    async def remove(self, id: str) -> None:
        def act(connection: sqlite3.Connection) -> None:
            connection.execute("INSERT OR IGNORE INTO removed VALUES (?)", (id,))
            if connection.execute("DELETE FROM memories WHERE id = ?", (id,)).rowcount:
                connection.execute("INSERT OR REPLACE INTO meta VALUES ('generation', ?)", (uuid4().hex,))

        await asyncio.to_thread(self._write, act)

    async def ids(self) -> frozenset[str]:
        """`Broken` for damaged vectors too: the caller rebuilds."""

        def act(connection: sqlite3.Connection) -> frozenset[str]:
            return frozenset(self._refresh(connection).table.ids)

        return await asyncio.to_thread(self._read, act) or frozenset()

    async def rebuild(self, records: Sequence[MemoryRecord], removed: Collection[str] = ()) -> None:
        vectors = await self._embedder.embed([record.text for record in records])
        vector_of = {record.id: vector for record, vector in zip(records, vectors, strict=True)}

        def act(connection: sqlite3.Connection) -> None:
            if (damage := connection.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
                raise Broken(f"{self._path} is damaged ({damage}).")
            for table in ("meta", "memories", "removed"):
                connection.execute(f"DELETE FROM {table}")
            connection.execute("DROP TABLE words")
            create_tables(_SCHEMA)(connection)
            connection.executemany("INSERT INTO removed VALUES (?)", [(id,) for id in set(removed)])
            self._insert(connection, drop_repeats(records), vector_of)

        def rebuild() -> None:
            with FileLock(self._path.with_suffix(".lock"), timeout=WAIT_SECONDS):
                try:
                    self._write(act)
                except Broken:
                    self._discard()
                    self._write(act)

        await asyncio.to_thread(rebuild)

    def close(self) -> None:
        with self._lock:
            self._file.close()
            self._opened = self._copy = None

    def _find_new(self, records: Sequence[MemoryRecord]) -> list[MemoryRecord]:
        offered = drop_repeats(records)

        def act(connection: sqlite3.Connection) -> list[MemoryRecord]:
            self._check(connection)
            return _keep_new(connection, offered)

        new = self._read(act)
        return offered if new is None else new

    def _insert(
        self, connection: sqlite3.Connection, records: Sequence[MemoryRecord], vector_of: Mapping[str, bytes]
    ) -> None:
        if any(len(vector) != self._embedder.dimension for vector in vector_of.values()):
            raise Broken(f"{self._embedder.name} gave a vector that has not {self._embedder.dimension} numbers.")
        self._check(connection)
        made = (("version", VERSION), ("embedder", self._made_by()), ("generation", uuid4().hex))
        connection.executemany("INSERT OR IGNORE INTO meta VALUES (?, ?)", made)
        before = connection.execute("SELECT coalesce(max(seq), 0) FROM sqlite_sequence").fetchone()[0]
        new = list(enumerate(_keep_new(connection, records), before + 1))
        rows = (
            (number, record.id, record.channel.value, record.origin, record.symbol, record.at, _digest(record))
            for number, record in new
        )
        memories = ((*row, vector_of[row[1]], zlib.crc32(vector_of[row[1]])) for row in rows)
        connection.executemany("INSERT INTO memories VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", memories)
        texts = ((number, " ".join(list_terms(record.text))) for number, record in new)
        connection.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", texts)

    def _made_by(self) -> str:
        return f"{self._embedder.name}, {self._embedder.dimension}"

    def _check(self, connection: sqlite3.Connection) -> None:
        meta = dict(connection.execute("SELECT name, value FROM meta WHERE name IN ('version', 'embedder')"))
        if meta and meta != {"version": VERSION, "embedder": self._made_by()}:
            made = f"{meta.get('embedder', 'an unknown embedding')} (format {meta.get('version', '?')})"
            raise Broken(f"{self._path} was made with {made}, not with {self._made_by()}; {_REMEDY}")

    def _refresh(self, connection: sqlite3.Connection) -> _Copy:
        """The copy with what was added since; a new one where something was removed."""
        self._check(connection)
        row = connection.execute("SELECT value FROM meta WHERE name = 'generation'").fetchone()
        generation = row[0] if row else ""
        if self._copy is None or self._copy.generation != generation:
            self._copy = _Copy(generation, MemoryTable(self._embedder.dimension))
        copy = self._copy
        rows = connection.execute(
            "SELECT number, checksum, id, channel, origin, symbol, at, vector FROM memories WHERE number > ?"
            " ORDER BY number",
            (copy.last,),
        ).fetchall()
        if not rows:
            return copy
        if any(len(row[-1]) != self._embedder.dimension or zlib.crc32(row[-1]) != row[1] for row in rows):
            raise Broken(f"{self._path} holds damaged vectors; {_REMEDY}")
        copy.table.extend([row[2:] for row in rows])
        copy.numbers = np.concatenate([copy.numbers, np.array([row[0] for row in rows], dtype=np.int64)])
        return copy

    def _read(self, act: Callable[[sqlite3.Connection], T]) -> T | None:
        with self._lock:
            self._follow_file()
            return self._file.read(act)

    def _write(self, act: Callable[[sqlite3.Connection], T]) -> T:
        with self._lock:
            self._follow_file()
            return self._file.write(act)

    def _follow_file(self) -> None:
        try:
            inode = self._path.stat().st_ino
        except OSError:
            inode = None
        if inode != self._opened:
            self.close()
            self._opened = inode

    def _discard(self) -> None:
        """Delete the file: it can be rebuilt from the journal."""
        self.close()
        for suffix in ("", "-wal", "-shm"):
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)


def _keep_new(connection: sqlite3.Connection, records: Sequence[MemoryRecord]) -> list[MemoryRecord]:
    known: dict[str, bytes | None] = {}
    for start in range(0, len(records), _LOOKED_UP):
        ids = [record.id for record in records[start : start + _LOOKED_UP]]
        marks = ", ".join("?" * len(ids))
        known.update(connection.execute(f"SELECT id, digest FROM memories WHERE id IN ({marks})", ids))
        known.update((id, None) for (id,) in connection.execute(f"SELECT id FROM removed WHERE id IN ({marks})", ids))
    return keep_new(records, known, _digest)


def _digest(record: MemoryRecord) -> bytes:
    return bytes.fromhex(identify(record))


def _find_word(connection: sqlite3.Connection, copy: _Copy, word: str) -> NDArray[np.uint8]:
    """1 for each memory that holds the word; of what was looked up before only the newest rows are asked for."""
    count = len(copy.numbers)
    old = copy.masks.pop(word, None)
    if old is None or len(old) < count:
        since = 0 if old is None or not len(old) else int(copy.numbers[len(old) - 1])
        rows = connection.execute(
            "SELECT rowid FROM words WHERE words MATCH ? AND rowid > ?", (f'"{word}"', since)
        ).fetchall()
        mask = np.zeros(count, dtype=np.uint8)
        if old is not None:
            mask[: len(old)] = old
        numbers = np.fromiter((number for (number,) in rows), dtype=np.int64, count=len(rows))
        places = np.minimum(np.searchsorted(copy.numbers, numbers), count - 1)
        mask[places[copy.numbers[places] == numbers]] = 1
        old = mask
    copy.masks[word] = old
    if len(copy.masks) > _WORDS_KEPT:
        del copy.masks[next(iter(copy.masks))]
    return old
