"""The chat store as one SQLite file in the home."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from zuno.adapters.sqlite_file import SqliteFile
from zuno.kernel.chat import ChatButton, Confirmation, RunningRequest
from zuno.kernel.units import Millis

T = TypeVar("T")
KEPT: Final = {"updates": 100_000, "buttons": 100_000, "confirmations": 1_000, "requests": 1_000}
_TIDY_EVERY: Final = 1_000
_SCHEMA: Final = (
    "CREATE TABLE IF NOT EXISTS updates (number INTEGER PRIMARY KEY, bot INTEGER, id INTEGER, UNIQUE (bot, id))",
    "CREATE TABLE IF NOT EXISTS buttons (number INTEGER PRIMARY KEY, key TEXT UNIQUE, words TEXT, chat INTEGER)",
    """CREATE TABLE IF NOT EXISTS confirmations (
        number INTEGER PRIMARY KEY, key TEXT UNIQUE, user INTEGER, chat INTEGER, message INTEGER, action TEXT,
        digest TEXT, code TEXT, expires INTEGER, taken INTEGER NOT NULL DEFAULT 0)""",
    """CREATE TABLE IF NOT EXISTS requests (
        number INTEGER PRIMARY KEY, key TEXT UNIQUE, user INTEGER, chat INTEGER, text TEXT)""",
)
_COLUMNS: Final = "key, user, chat, message, action, digest, code, expires"


class SqliteChatStore:
    """`telegram.db` of a home (0600). The file is made by the first write."""

    def __init__(self, home: Path) -> None:
        self._file = SqliteFile(home / "telegram.db", _prepare, "delete it: old buttons then answer no more.")
        self._writes = 0

    async def claim_update(self, bot: int, update: int) -> bool:
        def claim(connection: sqlite3.Connection) -> bool:
            added = connection.execute("INSERT OR IGNORE INTO updates (bot, id) VALUES (?, ?)", (bot, update))
            return added.rowcount == 1

        return await self._write(claim)

    async def put_buttons(self, buttons: Mapping[str, ChatButton]) -> None:
        rows = [(key, button.words, button.chat) for key, button in buttons.items()]

        def put(connection: sqlite3.Connection) -> None:
            connection.executemany("INSERT OR REPLACE INTO buttons (key, words, chat) VALUES (?, ?, ?)", rows)

        if rows:
            await self._write(put)

    async def find_button(self, key: str) -> ChatButton | None:
        rows = await self._select("SELECT words, chat FROM buttons WHERE key = ?", (key,))
        return ChatButton(*rows[0]) if rows else None

    async def put_confirmation(self, confirmation: Confirmation) -> None:
        def put(connection: sqlite3.Connection) -> None:
            connection.execute(
                f"""INSERT INTO confirmations ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
                    ON CONFLICT (key) DO UPDATE SET user = excluded.user, chat = excluded.chat,
                        message = excluded.message, action = excluded.action, digest = excluded.digest,
                        code = excluded.code, expires = excluded.expires
                    WHERE taken = 0""",
                _row(confirmation),
            )

        await self._write(put)

    async def find_confirmation(self, key: str) -> Confirmation | None:
        rows = await self._select(f"SELECT {_COLUMNS} FROM confirmations WHERE key = ? AND taken = 0", (key,))
        return _confirmation(rows[0]) if rows else None

    async def list_confirmations(self, user: int, chat: int) -> tuple[Confirmation, ...]:
        rows = await self._select(
            f"""SELECT {_COLUMNS} FROM confirmations WHERE user = ? AND chat = ? AND taken = 0
                ORDER BY number DESC""",
            (user, chat),
        )
        return tuple(map(_confirmation, rows))

    async def take_confirmation(self, key: str) -> Confirmation | None:
        def take(connection: sqlite3.Connection) -> Confirmation | None:
            rows = connection.execute(
                f"UPDATE confirmations SET taken = 1 WHERE key = ? AND taken = 0 RETURNING {_COLUMNS}", (key,)
            ).fetchall()
            return _confirmation(rows[0]) if rows else None

        return await self._write(take)

    async def begin_request(self, request: RunningRequest) -> None:
        row = (request.key, request.user, request.chat, request.text)

        def begin(connection: sqlite3.Connection) -> None:
            connection.execute("INSERT OR REPLACE INTO requests (key, user, chat, text) VALUES (?, ?, ?, ?)", row)

        await self._write(begin)

    async def end_request(self, key: str) -> None:
        def end(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM requests WHERE key = ?", (key,))

        await self._write(end)

    async def take_unended_requests(self) -> tuple[RunningRequest, ...]:
        def take(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
            rows = connection.execute("SELECT key, user, chat, text FROM requests ORDER BY number").fetchall()
            connection.execute("DELETE FROM requests")
            return rows

        return tuple(RunningRequest(*row) for row in await self._write(take))

    async def close(self) -> None:
        self._file.close()

    async def _select(self, query: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        found = await asyncio.to_thread(
            self._file.read, lambda connection: connection.execute(query, values).fetchall()
        )
        return found or []

    async def _write(self, act: Callable[[sqlite3.Connection], T]) -> T:
        self._writes += 1
        tidy = self._writes % _TIDY_EVERY == 0

        def write(connection: sqlite3.Connection) -> T:
            if tidy:
                _tidy(connection)
            return act(connection)

        return await asyncio.to_thread(self._file.write, write)


def _prepare(connection: sqlite3.Connection) -> None:
    for statement in _SCHEMA:
        connection.execute(statement)


def _tidy(connection: sqlite3.Connection) -> None:
    for table, kept in KEPT.items():
        connection.execute(f"DELETE FROM {table} WHERE number <= (SELECT MAX(number) FROM {table}) - ?", (kept,))


def _row(confirmation: Confirmation) -> tuple[object, ...]:
    return (
        confirmation.key,
        confirmation.user,
        confirmation.chat,
        confirmation.message,
        confirmation.action,
        confirmation.digest,
        confirmation.code,
        confirmation.expires,
    )


def _confirmation(row: tuple[Any, ...]) -> Confirmation:
    key, user, chat, message, action, digest, code, expires = row
    return Confirmation(key, user, chat, message, action, digest, code, Millis(expires))
