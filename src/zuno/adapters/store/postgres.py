"""The journal in Postgres, for a home on several machines: each node keeps a chain of its own in shared tables."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import astuple
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, LiteralString
from zlib import compress

from zuno.adapters.store.lease import CONNECT_SECONDS, Fences, create_schema, translate_postgres
from zuno.adapters.store.sqlite import open_archive
from zuno.adapters.store.table_store import HeadFile, TableStore
from zuno.journal.blocks import unpack
from zuno.journal.port import DamagedRow, Row
from zuno.kernel.errors import Unavailable, UsageError
from zuno.kernel.signing import NodeKey

if TYPE_CHECKING:
    import psycopg

_SCHEMA: tuple[LiteralString, ...] = (
    """CREATE TABLE IF NOT EXISTS zuno.entries (
        node text NOT NULL, seq bigint NOT NULL, at bigint NOT NULL, request_id text, kind text NOT NULL,
        body bytea NOT NULL, hash text NOT NULL, signature text NOT NULL, PRIMARY KEY (node, seq))""",
    "CREATE INDEX IF NOT EXISTS entries_by_request ON zuno.entries (node, request_id, seq)",
    "CREATE INDEX IF NOT EXISTS entries_by_kind ON zuno.entries (node, kind, seq)",
    """CREATE TABLE IF NOT EXISTS zuno.bundles (
        node text NOT NULL, hash text COLLATE "C" NOT NULL, content bytea NOT NULL, PRIMARY KEY (node, hash))""",
    """CREATE TABLE IF NOT EXISTS zuno.blocks (
        node text NOT NULL, id bigint GENERATED ALWAYS AS IDENTITY, hash bytea NOT NULL, content bytea NOT NULL,
        PRIMARY KEY (node, id), UNIQUE (node, hash))""",
)


def open_postgres(url: str, home: Path, key: NodeKey, fences: Fences | None = None) -> TableStore:
    """This node's journal behind `url`; head and lock stay in `home`. `fences`: leases a write must still hold."""
    tables, archive = PostgresTables(url, key, fences or Fences()), open_archive(home)
    return TableStore(tables, HeadFile(home, "journal-postgres"), archive)


class PostgresTables:
    """One connection, opened when first needed and again after it was lost."""

    def __init__(self, url: str, key: NodeKey, fences: Fences) -> None:
        self._url = url
        self._key = key
        self._fences = fences
        self._connection: psycopg.Connection | None = None
        self._ready = False

    @cached_property
    def name(self) -> str:
        """As the server names it: one database may have several URLs."""
        with self._vendor() as connection:
            row = connection.execute("SELECT current_database(), system_identifier FROM pg_control_system()").fetchone()
            return " ".join(map(str, row or ()))

    def exists(self) -> bool:
        return bool(self.page(None, None, None, None, 1, True) or self.bundle_names(None, 1))

    def insert(self, *rows: Row) -> None:
        values = [(self._key.public, *astuple(row)) for row in rows]
        with self.transaction():
            self._execute("INSERT INTO zuno.entries VALUES (%s, %s, %s, %s, %s, %s, %s, %s)", values)

    def page(
        self, after: int | None, upto: int | None, request_id: str | None, kind: str | None, limit: int, newest: bool
    ) -> list[Row | DamagedRow]:
        prefix = request_id[:-1] if request_id is not None and request_id.endswith("*") else None
        limits: tuple[tuple[LiteralString, int | str | None], ...] = (
            (" AND seq > %s", after),
            (" AND seq <= %s", upto),
            (" AND request_id = %s", request_id if prefix is None else None),
            (" AND starts_with(request_id, %s)", prefix),
            (" AND kind = %s", kind),
        )
        query: LiteralString = (
            "SELECT seq, at, request_id, kind, body, hash, signature FROM zuno.entries WHERE node = %s"
        )
        for clause, value in limits:
            if value is not None:
                query += clause
        query += " ORDER BY seq DESC LIMIT %s" if newest else " ORDER BY seq LIMIT %s"
        values = [value for _, value in limits if value is not None]
        return [Row(*row) for row in self._select(query, (*values, limit))]

    def store(self, stored: Mapping[str, bytes]) -> None:
        self._execute(
            "INSERT INTO zuno.bundles VALUES (%s, %s, %s) "
            "ON CONFLICT (node, hash) DO UPDATE SET content = excluded.content",
            [(self._key.public, *row) for row in stored.items()],
        )

    def put_blocks(self, pieces: Mapping[bytes, bytes]) -> dict[bytes, int]:
        query: LiteralString = "SELECT hash, id FROM zuno.blocks WHERE node = %s AND hash = ANY(%s)"
        known = {bytes(name): number for name, number in self._select(query, (list(pieces),))}
        new = [name for name in pieces if name not in known]
        self._execute(
            "INSERT INTO zuno.blocks (node, hash, content) VALUES (%s, %s, %s)",
            [(self._key.public, name, compress(pieces[name])) for name in new],
        )
        return known | {bytes(name): number for name, number in self._select(query, (new,))}

    def blocks(self, ids: Collection[int]) -> dict[int, bytes]:
        rows = self._select("SELECT id, content FROM zuno.blocks WHERE node = %s AND id = ANY(%s)", (list(ids),))
        return {number: piece for number, packed in rows if (piece := unpack(bytes(packed))) is not None}

    def shrink(self, used: Collection[int]) -> None:
        """The server gives the room to new rows, and back to the disk, by itself (autovacuum)."""
        values = (self._key.public, list(used))
        with self.transaction():
            self._execute("DELETE FROM zuno.blocks WHERE node = %s AND id <> ALL(%s)", [values])

    def find_stored(self, name: str) -> bytes | None:
        rows = self._select("SELECT content FROM zuno.bundles WHERE node = %s AND hash = %s", (name,))
        return bytes(rows[0][0]) if rows else None

    def bundle_names(self, after: str | None, limit: int) -> list[str]:
        query: LiteralString = (
            "SELECT hash FROM zuno.bundles WHERE node = %s AND (%s::text IS NULL OR hash > %s) ORDER BY hash LIMIT %s"
        )
        return [row[0] for row in self._select(query, (after, after, limit))]

    def inspect(self) -> str | None:
        return None  # the server keeps its own checksums

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _select(self, query: LiteralString, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """Rows of this node; none where the tables do not exist yet."""
        with self._vendor() as connection:
            if not self._key.exists():
                return []
            if not self._ready:
                there = connection.execute("SELECT to_regclass('zuno.bundles'), to_regclass('zuno.blocks')").fetchone()
                if there is None or there[0] is None:
                    return []
                self._ready = there[1] is not None  # tables of an older Zuno: the next write makes the blocks'
            return connection.execute(query, (self._key.public, *values)).fetchall()

    def _execute(self, query: LiteralString, rows: list[tuple[Any, ...]]) -> None:
        """In the transaction under way."""
        with self._vendor() as connection:
            connection.cursor().executemany(query, rows)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._vendor() as connection:
            if not self._ready:
                create_schema(connection, *_SCHEMA)
                self._ready = True
            with connection.transaction():
                self._fences.check(connection)
                yield

    @contextmanager
    def _vendor(self) -> Iterator[psycopg.Connection]:
        try:
            with translate_postgres("of the journal"):
                import psycopg

                if self._connection is None or self._connection.closed:
                    _check_url(self._url)
                    self._connection = psycopg.connect(self._url, autocommit=True, connect_timeout=CONNECT_SECONDS)
                    self._connection.execute("SET synchronous_commit = on")
                    self._connection.execute("SET statement_timeout = '30s'")
                yield self._connection
        except Unavailable:
            self.close()
            raise


def _check_url(url: str) -> None:
    """`UsageError` for a URL that names no place."""
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        ports = str(conninfo_to_dict(url).get("port", "")).split(",")
        if all(not port or 0 < int(port) < 65_536 for port in ports):
            return
    except (ProgrammingError, ValueError):
        pass
    raise UsageError("ZUNO_DATABASE_URL cannot be read as a Postgres URL.")  # never echo it: it holds a password
