"""The journal in one SQLite file: the default, nothing to install, safe against kill -9 and power cuts."""

import os
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any, Final, Literal
from zlib import compress

from zuno.adapters.sqlite_file import MAY_PASS, translate_sqlite
from zuno.adapters.store.table_store import Archive, HeadFile, TableStore
from zuno.journal.blocks import unpack
from zuno.journal.port import DamagedRow, Row
from zuno.kernel.errors import Broken, Unavailable

_SCHEMA = (
    """CREATE TABLE IF NOT EXISTS entries (
        seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, request_id TEXT, kind TEXT NOT NULL,
        body BLOB NOT NULL, hash TEXT NOT NULL, signature TEXT NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS entries_by_request ON entries (request_id, seq)",
    "CREATE INDEX IF NOT EXISTS entries_by_kind ON entries (kind, seq)",
    "CREATE TABLE IF NOT EXISTS bundles (hash TEXT PRIMARY KEY, content BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS blocks (id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, content BLOB NOT NULL)",
)
_MUST_WRITE = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY}
_COLUMNS = "seq, at, request_id, kind, body, hash, signature"
_PACKED: Final = b"\0packed\n"
_LARGE_BODY: Final = 2_000
_AT_ONCE: Final = 500  # values of one query
_SPARE: Final = 0.1  # share of free pages from which a file is written anew


def open_sqlite(home: Path) -> TableStore:
    """The journal of a home: `journal.db`, with `journal.head` and `journal.lock` beside it."""
    return TableStore(SqliteTables(home / "journal.db"), HeadFile(home, "journal"), open_archive(home))


def open_archive(home: Path) -> Archive:
    return Archive(home / "archive", lambda path: SqliteTables(path, log="DELETE"))  # no files beside an archive file


class SqliteTables:
    """Opened when first needed; the file is created by the first write alone."""

    name = ""

    def __init__(self, path: Path, log: Literal["WAL", "DELETE"] = "WAL") -> None:
        self._path = path
        self._log = log
        self._reading: sqlite3.Connection | None = None
        self._writing: sqlite3.Connection | None = None

    def exists(self) -> bool:
        try:
            return self._path.stat().st_size > 0
        except (FileNotFoundError, NotADirectoryError):
            return False

    def insert(self, *rows: Row) -> None:
        with self._translate_errors():
            connection = self._writer()
            try:
                with _transaction(connection):
                    connection.executemany(
                        f"INSERT INTO entries ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)",
                        (astuple(replace(row, body=_pack_body(row.body))) for row in rows),
                    )
            except sqlite3.IntegrityError as error:
                raise Broken(f"Entry {rows[0].seq} is in the journal already.") from error

    def page(
        self, after: int | None, upto: int | None, request_id: str | None, kind: str | None, limit: int, newest: bool
    ) -> list[Row | DamagedRow]:
        # A request has few entries and a kind has many: the plus keeps SQLite from going through all of a kind. Of many
        # requests it goes through what is new of the kind.
        several = request_id is not None and request_id.endswith("*")
        of_request = f"{'+' * bool(several and after)}request_id {'GLOB' if several else '='} ?"
        of_kind = "kind = ?" if request_id is None or (several and after) else "+kind = ?"
        limits = {"seq > ?": after or None, "seq <= ?": upto, of_request: request_id, of_kind: kind}
        chosen = {clause: value for clause, value in limits.items() if value is not None}
        where = f"WHERE {' AND '.join(chosen)}" if chosen else ""
        order = "DESC" if newest else "ASC"
        rows = self._select(
            f"SELECT {_COLUMNS} FROM entries {where} ORDER BY seq {order} LIMIT ?", (*chosen.values(), limit)
        )
        return [_row(row) for row in rows]

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._translate_errors(), _transaction(self._writer()):
            yield

    def store(self, stored: Mapping[str, bytes]) -> None:
        self._writer().executemany("INSERT OR REPLACE INTO bundles (hash, content) VALUES (?, ?)", stored.items())

    def put_blocks(self, pieces: Mapping[bytes, bytes]) -> dict[bytes, int]:
        known = dict(self._select_each("hash, id FROM blocks WHERE hash", pieces))
        new = pieces.keys() - known.keys()
        packed = [(name, compress(piece)) for name, piece in pieces.items() if name in new]
        self._writer().executemany("INSERT INTO blocks (hash, content) VALUES (?, ?)", packed)
        return {**known, **dict(self._select_each("hash, id FROM blocks WHERE hash", new))}

    def blocks(self, ids: Collection[int]) -> dict[int, bytes]:
        rows = self._select_each("id, content FROM blocks WHERE id", ids)
        pieces = {number: unpack(packed) for number, packed in rows if isinstance(packed, bytes)}
        return {number: piece for number, piece in pieces.items() if piece is not None}

    def shrink(self, used: Collection[int]) -> None:
        with self.transaction():
            unused = [(number,) for (number,) in self._select("SELECT id FROM blocks", ()) if number not in used]
            self._writer().executemany("DELETE FROM blocks WHERE id = ?", unused)
        with self._translate_errors():
            (free,), (pages,) = (self._writer().execute(f"PRAGMA {n}_count").fetchone() for n in ("freelist", "page"))
            if free > _SPARE * pages:
                self._writer().execute("VACUUM")
            self._writer().execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _select_each(self, query: str, values: Collection[Any]) -> list[tuple[Any, ...]]:
        given = list(values)
        parts = (given[start : start + _AT_ONCE] for start in range(0, len(given), _AT_ONCE))
        return [
            row for some in parts for row in self._select(f"SELECT {query} IN (?{',?' * (len(some) - 1)})", tuple(some))
        ]

    def find_stored(self, name: str) -> bytes | None:
        rows = self._select("SELECT content FROM bundles WHERE hash = ?", (name,))
        if not rows:
            return None
        content = rows[0][0]
        return content if isinstance(content, bytes) else str(content).encode("utf-8", "surrogateescape")

    def bundle_names(self, after: str | None, limit: int) -> list[str]:
        where, values = ("", ()) if after is None else ("WHERE hash > ?", (after,))
        rows = self._select(f"SELECT hash FROM bundles {where} ORDER BY hash LIMIT ?", (*values, limit))
        return [str(row[0]) for row in rows]

    def inspect(self) -> str | None:
        problems = [str(row[0]) for row in self._select("PRAGMA integrity_check(1)", ())]
        return None if problems in ([], ["ok"]) else f"{self._path.name} is damaged ({problems[0]})"

    def close(self) -> None:
        for connection in (self._reading, self._writing):
            if connection is not None:
                connection.close()
        self._reading = self._writing = None

    def _select(self, query: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        if not self.exists():
            if self._reading is not None or self._writing is not None:
                raise Unavailable(f"{self._path.name} is not there any more.")
            return []
        with self._translate_errors():
            reader = self._reader()
            try:
                return reader.execute(query, values).fetchall()
            except sqlite3.OperationalError as error:
                if "no such table" in str(error):
                    return []
                raise
            finally:
                if reader not in (self._reading, self._writing):
                    reader.close()

    def _reader(self) -> sqlite3.Connection:
        if self._writing is not None:
            return self._writing
        if self._reading is not None:
            return self._reading
        connection = self._connect("ro")
        try:
            connection.execute("PRAGMA schema_version").fetchone()
        except sqlite3.OperationalError as error:
            connection.close()
            # Beside a file it reads SQLite keeps one of its own, and here none can be made.
            code = error.sqlite_errorcode & 0xFF
            if not os.access(self._path.parent, os.W_OK, effective_ids=True):
                log = self._path.with_name(f"{self._path.name}-wal")
                unwritten = not log.exists() or log.stat().st_size == 0
                if code not in MAY_PASS or not unwritten:
                    raise
                connection = self._connect("ro&immutable=1")  # nobody writes either
            elif code in _MUST_WRITE:
                return self._connect_alone()
            else:
                raise
        self._reading = connection
        return connection

    def _connect_alone(self) -> sqlite3.Connection:
        """On a full disk: an exclusive connection needs no file beside it. And where a process was killed amid a write
        to an archive file: this one undoes its half. For one read."""
        connection = self._connect("rw")
        try:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("PRAGMA schema_version").fetchone()
        except BaseException:
            connection.close()
            raise
        return connection

    def _writer(self) -> sqlite3.Connection:
        if self._writing is None:
            connection = self._connect("rwc")
            try:
                connection.execute(f"PRAGMA journal_mode = {self._log}")
                connection.execute("PRAGMA synchronous = FULL")  # WAL alone would let a power cut take the last commits
                with _transaction(connection):
                    for statement in _SCHEMA:
                        connection.execute(statement)
            except BaseException:
                connection.close()
                raise
            self._writing = connection
            with suppress(OSError):  # somebody else's file, or a folder that forbids it: the home itself is 0700
                self._path.chmod(0o600)
        return self._writing

    def _connect(self, mode: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{self._path.absolute().as_uri()}?mode={mode}", uri=True, timeout=30, isolation_level=None
        )
        # A damaged text must reach the one who checks it, not fail on the way.
        connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
        return connection

    def _translate_errors(self) -> AbstractContextManager[None]:
        return translate_sqlite(self._path, "put it back from a backup.")


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _pack_body(body: bytes) -> bytes:
    """A large body spills onto pages of its own; packed it mostly does not. Hash and signature are the whole body's."""
    return _PACKED + compress(body) if len(body) > _LARGE_BODY or body.startswith(_PACKED) else body


def _row(raw: tuple[Any, ...]) -> Row | DamagedRow:
    seq, at, request_id, kind, body, name, signature = raw
    if isinstance(body, bytes) and body.startswith(_PACKED):
        body = unpack(body.removeprefix(_PACKED))
    if not isinstance(body, bytes):
        return DamagedRow(seq, "its body is not bytes")
    if not isinstance(at, int) or not isinstance(kind, str) or not isinstance(request_id, str | None):
        return DamagedRow(seq, "a column holds a value of another type")
    if not isinstance(name, str) or not isinstance(signature, str):
        return DamagedRow(seq, "its hash or signature is not text")
    return Row(seq, at, request_id, kind, body, name, signature)
