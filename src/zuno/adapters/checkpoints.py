"""LangGraph checkpoints of trading runs, in a file of the home or in Postgres. Plain values alone are kept."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zuno.adapters.atomic_file import build_database_error
from zuno.adapters.store.lease import CONNECT_SECONDS, translate_postgres
from zuno.kernel.errors import Broken, Unavailable

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer


_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def strict_serializer() -> JsonPlusSerializer:
    """A serializer of plain values alone: the library's default imports and calls whatever a file names."""
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

    return JsonPlusSerializer(pickle_fallback=False, allowed_json_modules=None, allowed_msgpack_modules=None)


@asynccontextmanager
async def sqlite_checkpoints(path: Path) -> AsyncIterator[BaseCheckpointSaver[str]]:
    """The saver, for one run; made by the first write. The file may be lost: the journal alone knows every run."""
    thread, loop = ThreadPoolExecutor(max_workers=1, thread_name_prefix="zuno-checkpoints"), asyncio.get_running_loop()
    saver: Any = None
    try:
        saver = await loop.run_in_executor(thread, _open_saver, path, thread)
        yield saver
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", None)
        if code is not None and code & 0xFF in _DAMAGE:
            raise Broken(f"{path} is damaged ({error}); remove it, the journal knows every run.") from error
        if code is None:
            raise Unavailable(f"{path} did not answer ({error}).") from error
        raise build_database_error(path, error) from error
    finally:
        closing = None if saver is None else loop.run_in_executor(thread, saver.conn.close)
        thread.shutdown(wait=False)
        if closing is not None:
            await asyncio.shield(closing)


def _open_saver(path: Path, thread: ThreadPoolExecutor) -> BaseCheckpointSaver[str]:
    from langgraph.checkpoint.sqlite import SqliteSaver

    def in_thread(act: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*given: Any) -> Any:
            return await asyncio.get_running_loop().run_in_executor(thread, act, *given)

        return call

    class ThreadedSaver(SqliteSaver):
        """The library's saver in one thread, each write one call: a cancelled caller cuts none in two."""

        aget_tuple: Any = in_thread(SqliteSaver.get_tuple)
        aput: Any = in_thread(SqliteSaver.put)
        aput_writes: Any = in_thread(SqliteSaver.put_writes)
        adelete_thread: Any = in_thread(SqliteSaver.delete_thread)

    connection = sqlite3.connect(path, timeout=30)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")  # a power cut may take the last: the journal has it
        saver = ThreadedSaver(connection, serde=strict_serializer())
        saver.setup()
    except BaseException:
        connection.close()
        raise
    with suppress(OSError):  # somebody else's file: the home itself is closed to others
        path.chmod(0o600)
    return saver


@asynccontextmanager
async def postgres_checkpoints(url: str) -> AsyncIterator[AsyncPostgresSaver]:
    with translate_postgres("of the checkpoints"):
        import psycopg
        from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
        from psycopg.rows import dict_row

        async with await psycopg.AsyncConnection.connect(
            url, autocommit=True, prepare_threshold=0, row_factory=dict_row, connect_timeout=CONNECT_SECONDS
        ) as connection:
            await connection.execute("CREATE SCHEMA IF NOT EXISTS zuno_cycles")
            await connection.execute("SET search_path = zuno_cycles")  # the saver's tables have common names
            await connection.execute("SET statement_timeout = '30s'")
            saver = AsyncPostgresSaver(connection, serde=strict_serializer())
            await saver.setup()
            yield saver
