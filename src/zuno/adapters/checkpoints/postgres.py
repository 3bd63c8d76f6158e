"""Checkpoints on a Postgres server, beside the journal that is kept there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from zuno.adapters.checkpoints import strict_serializer
from zuno.kernel.errors import Broken, Unavailable

if TYPE_CHECKING:
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

_CONNECT_SECONDS = 10


@asynccontextmanager
async def postgres_checkpoints(url: str) -> AsyncIterator[AsyncPostgresSaver]:
    """The saver, for one run. The URL, which holds a password, is in no error."""
    try:
        import psycopg
        from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
        from psycopg.rows import dict_row
    except ImportError as error:
        raise Unavailable("Postgres needs its driver: install zuno[postgres].") from error
    try:
        async with await psycopg.AsyncConnection.connect(
            url, autocommit=True, prepare_threshold=0, row_factory=dict_row, connect_timeout=_CONNECT_SECONDS
        ) as connection:
            await connection.execute("CREATE SCHEMA IF NOT EXISTS zuno_cycles")
            await connection.execute("SET search_path = zuno_cycles")  # the saver's tables have common names
            await connection.execute("SET statement_timeout = '30s'")
            saver = AsyncPostgresSaver(connection, serde=strict_serializer())
            await saver.setup()
            yield saver
    except psycopg.OperationalError as error:
        raise Unavailable(f"The checkpoints' Postgres did not answer ({type(error).__name__}).") from error
    except psycopg.Error as error:
        raise Broken(f"The checkpoints' Postgres cannot be used as one ({type(error).__name__}).") from error
