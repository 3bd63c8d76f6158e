"""Checkpoints in one SQLite file. It may be lost: the journal alone knows every run."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from zuno.adapters.checkpoints import strict_serializer
from zuno.adapters.full_disk import unanswering
from zuno.kernel.errors import Broken, Unavailable

if TYPE_CHECKING:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


class _Connection(sqlite3.Connection):
    """One that leaves no lock behind: a write that was cut off would stay open after the close for as long as anybody
    holds its cursor, and the run that is resumed would wait for it."""

    def close(self) -> None:
        with suppress(sqlite3.Error):
            self.rollback()
        super().close()


@asynccontextmanager
async def sqlite_checkpoints(path: Path) -> AsyncIterator[AsyncSqliteSaver]:
    """The saver, for one run; made by the first write."""
    import aiosqlite
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    try:
        _look(path)
        async with aiosqlite.connect(path, timeout=30, factory=_Connection) as connection:
            await connection.execute("PRAGMA journal_mode = WAL")
            await connection.execute("PRAGMA synchronous = NORMAL")  # a power cut may take the last: the journal has it
            saver = AsyncSqliteSaver(connection, serde=strict_serializer())
            await saver.setup()
            yield saver
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", None)
        if code is not None and code & 0xFF in _DAMAGE:
            raise Broken(f"{path} is damaged ({error}); remove it, the journal knows every run.") from error
        if code is None:
            raise Unavailable(f"{path} did not answer ({error}).") from error
        raise unanswering(path, error) from error


def _look(path: Path) -> None:
    """A file that cannot be used is found out here: there it would leave a thread behind."""
    with closing(sqlite3.connect(path, timeout=30)) as connection:
        connection.execute("PRAGMA schema_version")
    with suppress(OSError):  # somebody else's file: the home itself is closed to others
        path.chmod(0o600)
