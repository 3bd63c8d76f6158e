"""The chat store as one SQLite file in the home."""

import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import astuple
from pathlib import Path
from typing import Any, Final, TypeVar

from zuno.adapters.sqlite_file import SqliteFile, create_tables
from zuno.kernel.chat import ChatButton, Confirmation, RunningRequest

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
        self._file = SqliteFile(
            home / "telegram.db", create_tables(_SCHEMA), "delete it: old buttons then answer no more."
        )
        self._writes = 0

    async def claim_update(self, bot: int, update: int) -> bool:
        query = "INSERT OR IGNORE INTO updates (bot, id) VALUES (?, ?)"
        return await self._write(lambda connection: connection.execute(query, (bot, update)).rowcount == 1)

    async def put_buttons(self, buttons: Mapping[str, ChatButton]) -> None:
        query = "INSERT OR REPLACE INTO buttons (key, words, chat) VALUES (?, ?, ?)"
        rows = [(key, button.words, button.chat) for key, button in buttons.items()]
        if rows:
            await self._write(lambda connection: connection.executemany(query, rows))

    async def find_button(self, key: str) -> ChatButton | None:
        rows = await self._file.fetch("SELECT words, chat FROM buttons WHERE key = ?", key)
        return ChatButton(*rows[0]) if rows else None

    async def put_confirmation(self, confirmation: Confirmation) -> None:
        query = f"""INSERT INTO confirmations ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (key) DO UPDATE SET user = excluded.user, chat = excluded.chat,
                message = excluded.message, action = excluded.action, digest = excluded.digest,
                code = excluded.code, expires = excluded.expires
            WHERE taken = 0"""
        await self._write(lambda connection: connection.execute(query, astuple(confirmation)))

    async def find_confirmation(self, key: str) -> Confirmation | None:
        rows = await self._file.fetch(f"SELECT {_COLUMNS} FROM confirmations WHERE key = ? AND taken = 0", key)
        return Confirmation(*rows[0]) if rows else None

    async def list_confirmations(self, user: int, chat: int) -> tuple[Confirmation, ...]:
        query = f"SELECT {_COLUMNS} FROM confirmations WHERE user = ? AND chat = ? AND taken = 0 ORDER BY number DESC"
        return tuple(Confirmation(*row) for row in await self._file.fetch(query, user, chat))

    async def take_confirmation(self, key: str) -> Confirmation | None:
        query = f"UPDATE confirmations SET taken = 1 WHERE key = ? AND taken = 0 RETURNING {_COLUMNS}"
        rows = await self._write(lambda connection: connection.execute(query, (key,)).fetchall())
        return Confirmation(*rows[0]) if rows else None

    async def begin_request(self, request: RunningRequest) -> None:
        query = "INSERT OR REPLACE INTO requests (key, user, chat, text) VALUES (?, ?, ?, ?)"
        row = (request.key, request.user, request.chat, request.text)
        await self._write(lambda connection: connection.execute(query, row))

    async def end_request(self, key: str) -> None:
        await self._write(lambda connection: connection.execute("DELETE FROM requests WHERE key = ?", (key,)))

    async def take_unended_requests(self) -> tuple[RunningRequest, ...]:
        def take(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
            rows = connection.execute("SELECT key, user, chat, text FROM requests ORDER BY number").fetchall()
            connection.execute("DELETE FROM requests")
            return rows

        return tuple(RunningRequest(*row) for row in await self._write(take))

    async def close(self) -> None:
        self._file.close()

    async def _write(self, act: Callable[[sqlite3.Connection], T]) -> T:
        self._writes += 1
        tidy = self._writes % _TIDY_EVERY == 0

        def write(connection: sqlite3.Connection) -> T:
            if tidy:
                for table, kept in KEPT.items():
                    newest = f"(SELECT MAX(number) FROM {table})"
                    connection.execute(f"DELETE FROM {table} WHERE number <= {newest} - ?", (kept,))
            return act(connection)

        return await self._file.run(write)
