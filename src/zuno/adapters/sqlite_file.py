"""One SQLite file as our stores use it: opened when first needed, one thread at a time, with our own errors."""

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeVar

from zuno.adapters.atomic_file import build_database_error, translate_write_errors
from zuno.kernel.errors import Broken

T = TypeVar("T")
_PASSING: Final = "BUSY CANTOPEN FULL INTERRUPT IOERR LOCKED NOMEM PERM READONLY"
MAY_PASS: Final[frozenset[int]] = frozenset(getattr(sqlite3, f"SQLITE_{name}") for name in _PASSING.split())
_TRIES: Final = 300
_PAUSE: Final = 0.02


class SqliteFile:
    """The first write makes the file; reading makes nothing. A kill loses no commit, a power cut at most the last."""

    def __init__(self, path: Path, prepare: Callable[[sqlite3.Connection], None], remedy: str) -> None:
        """`prepare` makes the tables that are not there; `remedy`: what a person does about a damaged file."""
        self.path = path
        self._prepare = prepare
        self._remedy = remedy
        self._connection: sqlite3.Connection | None = None
        self._lock = threading.RLock()

    def exists(self) -> bool:
        try:
            return self.path.stat().st_size > 0
        except (FileNotFoundError, NotADirectoryError):
            return False

    def read(self, act: Callable[[sqlite3.Connection], T]) -> T | None:
        """Run `act` in one read transaction; None where there is no file."""
        with self._lock, translate_sqlite(self.path, self._remedy):
            return self._within("BEGIN", act) if self._connection is not None or self.exists() else None

    def write(self, act: Callable[[sqlite3.Connection], T]) -> T:
        """Run `act` in one write transaction, alone among all processes."""
        with self._lock, translate_sqlite(self.path, self._remedy):
            return self._within("BEGIN IMMEDIATE", act)

    async def fetch(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows of a query, in a thread; none where there is no file."""
        return await asyncio.to_thread(self.read, lambda connection: connection.execute(query, values).fetchall()) or []

    async def run(self, act: Callable[[sqlite3.Connection], T]) -> T:
        """`write` in a thread."""
        return await asyncio.to_thread(self.write, act)

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _within(self, begin: str, act: Callable[[sqlite3.Connection], T]) -> T:
        if self._connection is None:
            self._connection = self._open()
        with self._connection as connection:
            connection.execute(begin)
            return act(connection)

    def _open(self) -> sqlite3.Connection:
        with translate_write_errors(self.path.parent):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        connection = sqlite3.connect(self.path, timeout=30, isolation_level=None, check_same_thread=False)
        try:
            _log_ahead(connection)
            connection.execute("PRAGMA synchronous = NORMAL")
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        with suppress(OSError):
            self.path.chmod(0o600)
        return connection


@contextmanager
def translate_sqlite(path: Path, remedy: str) -> Iterator[None]:
    """Busy, full and unreachable are `Unavailable` or `DiskFull`; the rest is `Broken`."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", None)
        if code is None:
            raise  # the module's own complaint about our call: a bug
        if code & 0xFF in MAY_PASS:
            raise build_database_error(path, error) from error
        raise Broken(f"{path} is damaged ({error}); {remedy}") from error


def create_tables(schema: Sequence[str]) -> Callable[[sqlite3.Connection], None]:
    def prepare(connection: sqlite3.Connection) -> None:
        for statement in schema:
            connection.execute(statement)

    return prepare


def _log_ahead(connection: sqlite3.Connection) -> None:
    """Switch to WAL, again while busy: SQLite does not wait for this one."""
    for _ in range(_TRIES):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
        time.sleep(_PAUSE)
    connection.execute("PRAGMA journal_mode = WAL")
