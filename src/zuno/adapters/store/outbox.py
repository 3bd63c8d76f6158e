"""The outbox in one SQLite file: notices wait there, in order and once each, until a process sends them."""

import asyncio
import sqlite3
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import TypeAdapter, ValidationError

from zuno.adapters.sqlite_file import SqliteFile, create_tables
from zuno.kernel.errors import Broken
from zuno.kernel.notify import (
    KEPT_SECONDS,
    MOST_WAITING,
    PICTURE_SECONDS,
    Notice,
    NoticeKind,
    OutboxEntry,
    OutboxState,
    OutboxStatus,
)
from zuno.kernel.units import Seconds

T = TypeVar("T")
_SCHEMA: Final = (
    """CREATE TABLE IF NOT EXISTS notices (
        number INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, state TEXT NOT NULL,
        settled_at INTEGER, reason TEXT NOT NULL DEFAULT '', notice TEXT NOT NULL, picture BLOB)""",
    "CREATE INDEX IF NOT EXISTS waiting ON notices (number) WHERE state = 'waiting'",
    "CREATE TABLE IF NOT EXISTS counts (kind TEXT PRIMARY KEY, undeliverable INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS words (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
)
_COLUMNS: Final = "number, key, state, notice, picture"
_TROUBLE: Final = "trouble"
_CURSOR: Final = "cursor:"


class SqliteOutbox:
    """`outbox.db` of a home. The file is made by the first notice; reading makes nothing."""

    def __init__(self, home: Path, *, most_waiting: int = MOST_WAITING) -> None:
        self._file = SqliteFile(
            home / "outbox.db", create_tables(_SCHEMA), "move it away; what waited is lost, later notices are sent."
        )
        self._most_waiting = most_waiting

    async def append(self, notice: Notice, key: str) -> int:
        text = _form().dump_json(replace(notice, picture=None)).decode()

        def write(connection: sqlite3.Connection) -> int:
            row = connection.execute("SELECT number FROM notices WHERE key = ?", (key,)).fetchone()
            if row is not None:
                return int(row[0])
            number = connection.execute(
                "INSERT INTO notices (key, kind, state, notice, picture) VALUES (?, ?, ?, ?, ?)",
                (key, notice.kind, OutboxState.WAITING, text, notice.picture),
            ).lastrowid
            (waiting,) = connection.execute("SELECT COUNT(*) FROM notices WHERE state = 'waiting'").fetchone()
            if waiting > self._most_waiting:
                (oldest,) = connection.execute("SELECT MIN(number) FROM notices WHERE state = 'waiting'").fetchone()
                _settle_one(connection, oldest, OutboxState.UNDELIVERABLE, notice.at, "too many notices waited")
            return int(number or 0)

        return await self._file.run(write)

    async def next(self) -> OutboxEntry | None:
        query = f"SELECT {_COLUMNS} FROM notices WHERE state = 'waiting' ORDER BY number LIMIT 1"
        return self._post(await self._file.fetch(query))

    async def mark_delivered(self, number: int, at: Seconds) -> None:
        await self._settle(number, OutboxState.DELIVERED, at, trouble="")

    async def mark_undeliverable(self, number: int, reason: str, at: Seconds) -> None:
        await self._settle(number, OutboxState.UNDELIVERABLE, at, reason, trouble=reason)

    async def mark_skipped(self, number: int, at: Seconds) -> None:
        await self._settle(number, OutboxState.SKIPPED, at)

    async def record_trouble(self, reason: str) -> None:
        await self._file.run(lambda connection: _set_word(connection, _TROUBLE, reason))

    async def find(self, number: int) -> OutboxEntry | None:
        if not 0 < number < 2**63:
            return None
        return self._post(await self._file.fetch(f"SELECT {_COLUMNS} FROM notices WHERE number = ?", number))

    async def status(self, kind: NoticeKind | None = None) -> OutboxStatus:
        def read(connection: sqlite3.Connection) -> OutboxStatus:
            one_kind, values = ("AND kind = ?", (str(kind),)) if kind is not None else ("", ())
            (waiting,) = connection.execute(
                f"SELECT COUNT(*) FROM notices WHERE state = 'waiting' {one_kind}", values
            ).fetchone()
            (lost,) = connection.execute(
                f"SELECT COALESCE(SUM(undeliverable), 0) FROM counts WHERE 1 = 1 {one_kind}", values
            ).fetchone()
            return OutboxStatus(waiting, lost, _word(connection, _TROUBLE) or "")

        return await asyncio.to_thread(self._file.read, read) or OutboxStatus()

    async def cursor(self, feed: str) -> str | None:
        return await asyncio.to_thread(self._file.read, lambda connection: _word(connection, _CURSOR + feed))

    async def move_cursor(self, feed: str, position: str) -> None:
        await self._file.run(lambda connection: _set_word(connection, _CURSOR + feed, position))

    async def close(self) -> None:
        self._file.close()

    async def _settle(
        self, number: int, state: OutboxState, at: Seconds, reason: str = "", *, trouble: str | None = None
    ) -> None:
        def write(connection: sqlite3.Connection) -> None:
            _settle_one(connection, number, state, at, reason)
            if trouble is not None:
                _set_word(connection, _TROUBLE, trouble)
            _tidy(connection, at)

        await self._file.run(write)

    def _post(self, rows: list[tuple[Any, ...]]) -> OutboxEntry | None:
        if not rows:
            return None
        number, key, state, text, picture = rows[0]
        try:
            notice = replace(_form().validate_json(text), picture=picture)
            return OutboxEntry(number, key, notice, OutboxState(state))
        except (ValidationError, ValueError) as error:
            raise Broken(
                f"{self._file.path} holds what no notice has; move it away, later notices are sent."
            ) from error


@cache
def _form() -> TypeAdapter[Notice]:
    return TypeAdapter(Notice)


def _settle_one(connection: sqlite3.Connection, number: int, state: OutboxState, at: Seconds, reason: str) -> None:
    settled = connection.execute(
        """UPDATE notices SET state = ?, settled_at = ?, reason = ?
        WHERE number = ? AND state = 'waiting' RETURNING kind""",
        (state, at, reason, number),
    ).fetchone()
    if settled is not None and state is OutboxState.UNDELIVERABLE:
        connection.execute(
            """INSERT INTO counts (kind, undeliverable) VALUES (?, 1)
            ON CONFLICT (kind) DO UPDATE SET undeliverable = undeliverable + 1""",
            settled,
        )


def _tidy(connection: sqlite3.Connection, now: Seconds) -> None:
    connection.execute("DELETE FROM notices WHERE state <> 'waiting' AND settled_at < ?", (now - KEPT_SECONDS,))
    connection.execute(
        "UPDATE notices SET picture = NULL WHERE picture IS NOT NULL AND state <> 'waiting' AND settled_at < ?",
        (now - PICTURE_SECONDS,),
    )


def _word(connection: sqlite3.Connection, name: str) -> str | None:
    row = connection.execute("SELECT value FROM words WHERE name = ?", (name,)).fetchone()
    return None if row is None else str(row[0])


def _set_word(connection: sqlite3.Connection, name: str, value: str) -> None:
    connection.execute("INSERT OR REPLACE INTO words (name, value) VALUES (?, ?)", (name, value))
