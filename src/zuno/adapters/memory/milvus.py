"""Memories in Milvus (extra `milvus`): a server by its URL, or milvus-lite in the home. It finds the nearest
vectors; ranking them by words and age is ours."""

import asyncio
import logging
import os
import re
import threading
from collections.abc import Callable, Collection, Sequence
from functools import partial
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from shutil import rmtree
from typing import Any, Final, TypeVar
from urllib.parse import unquote

from zuno.adapters.file_lock import FileLock
from zuno.adapters.memory.table import VectorIndex, identify, keep_new, rank_rows
from zuno.kernel.errors import Broken, Unavailable
from zuno.kernel.installation import name_install
from zuno.trading.measure.similarity import list_terms, unpack_vector
from zuno.trading.model.memory import MemoryRecord, Recalled, RecallQuery
from zuno.trading.ports.recall import Embedder

T = TypeVar("T")
NEAREST: Final = 1_000
"""Vectors that are ranked. A memory beyond them is not recalled, however young."""
_AT_ONCE: Final = 5_000
_TIMEOUT: Final = 10.0
_CONNECT_TIMEOUT: Final = 3.0
"""Of a server; the one in process may take longer to start."""
_CALLS: Final = (
    "create_collection create_index delete describe_collection drop_collection has_collection insert list_collections "
    "load_collection query query_iterator search upsert"
)
"""Ours and LightRAG's: the client waits for a server that hangs as long as that hangs, unless each call has a time."""
_TEXTS: Final = {"digest": 64, "scope": 64, "channel": 40, "symbol": 40, "words": 40_000}
"""Columns of text and the bytes they may hold. A scope is the hash of a market's name: names need no quoting then."""


class MilvusMemoryIndex(VectorIndex):
    """One collection for each embedder, so vectors of two are never mixed. `place`: URL, or path of a `.db`."""

    name = "milvus"

    def __init__(self, place: str, embedder: Embedder, token: str = "", prefix: str = "zuno") -> None:
        self._place = place
        self._token = token
        self._embedder = embedder
        self._collection = name_collection(prefix, embedder)
        self._client: Any = None
        self._lock = threading.RLock()

    async def add(self, records: Sequence[MemoryRecord]) -> None:
        new = await self._ask(lambda client: self._keep_new(client, records))
        if new:
            vectors = await self._embedder.embed([record.text for record in new])
            rows = [self._row(record, vector) for record, vector in zip(new, vectors, strict=True)]
            await self._ask(lambda client: self._put(client, rows))

    async def _find(self, query: RecallQuery, vector: bytes) -> tuple[Recalled, ...]:
        if not any(vector):
            return ()
        rows = await self._ask(lambda client: self._search(client, query, vector))
        memories = [
            (
                *(row["id"], row["channel"], query.origin, row["symbol"] or None, row["at"]),
                bytes(int(number) & 0xFF for number in row["vector"]),
            )
            for row in rows
        ]
        return rank_rows(query, vector, memories, [frozenset(row["words"].split()) for row in rows])

    async def remove(self, id: str) -> None:
        empty = [0.0] * self._embedder.dimension
        blank = {"digest": "", "scope": "", "channel": "", "symbol": "", "words": "", "at": 0, "vector": empty}
        row = blank | {"id": id, "removed": True, "vector": [1.0, *empty[1:]]}
        await self._ask(lambda client: self._put(client, [row]))

    async def ids(self) -> frozenset[str]:
        rows = await self._ask(lambda client: self._query(client, "removed == false", ["id"]))
        return frozenset(row["id"] for row in rows)

    async def rebuild(self, records: Sequence[MemoryRecord], removed: Collection[str] = ()) -> None:
        try:
            await self._ask(lambda client: client.drop_collection(self._collection))
        except Broken:
            await asyncio.to_thread(_discard, Path(self._place))
        self._client = None  # the next call makes the collection anew
        gone = frozenset(removed)
        await self.add([record for record in records if record.id not in gone])
        for id in sorted(gone):
            await self.remove(id)

    def _row(self, record: MemoryRecord, vector: bytes) -> dict[str, object]:
        return {
            "id": record.id,
            "removed": False,
            "digest": identify(record),
            "scope": _scope(record.origin),
            "channel": record.channel.value,
            "symbol": record.symbol or "",
            "at": record.at,
            "words": " ".join(list_terms(record.text)),
            "vector": unpack_vector(vector).tolist(),
        }

    def _keep_new(self, client: Any, records: Sequence[MemoryRecord]) -> list[MemoryRecord]:
        known: dict[str, str | None] = {}
        for start in range(0, len(records), 500):
            asked = ", ".join(f'"{record.id}"' for record in records[start : start + 500])
            rows = client.query(self._collection, filter=f"id in [{asked}]", output_fields=["id", "digest"])
            known.update((row["id"], row["digest"] or None) for row in rows)
        return keep_new(records, known, identify)

    def _put(self, client: Any, rows: Sequence[dict[str, object]]) -> None:
        for start in range(0, len(rows), _AT_ONCE):
            client.upsert(self._collection, list(rows[start : start + _AT_ONCE]))

    def _search(self, client: Any, query: RecallQuery, vector: bytes) -> list[dict[str, Any]]:
        channels = ", ".join(f'"{channel.value}"' for channel in query.channels)
        known = f'removed == false and at < {query.before} and scope == "{_scope(query.origin)}"'
        where = f"{known} and channel in [{channels}]"
        if query.symbol is not None:
            where += f' and symbol == "{query.symbol.value}"'
        (hits,) = client.search(
            self._collection,
            data=[unpack_vector(vector).tolist()],
            limit=NEAREST,
            filter=where,
            output_fields=["channel", "symbol", "at", "words", "vector"],
        )
        return [{"id": hit["id"], **hit["entity"]} for hit in hits]

    def _query(self, client: Any, where: str, fields: list[str]) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        client.describe_collection(self._collection)  # the iterator asks this again, and without a time
        pages = client.query_iterator(self._collection, batch_size=_AT_ONCE, filter=where, output_fields=fields)
        try:
            while page := pages.next():
                rows.extend(page)
        finally:
            pages.close()
        return rows

    async def _ask(self, act: Callable[[Any], T]) -> T:
        return await asyncio.to_thread(self._call, act)

    def _call(self, act: Callable[[Any], T]) -> T:
        with self._lock:
            if self._client is None:
                self._client = open_milvus(self._place, self._token, self._prepare)
            try:
                return act(self._client)
            except milvus_errors(OSError, ValueError, TypeError) as error:
                self._client = None
                raise did_not_answer(error) from error

    def _prepare(self, client: Any) -> None:
        from pymilvus import DataType, MilvusClient

        if client.has_collection(self._collection):
            client.load_collection(self._collection)
            return
        schema = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=64)
        for name, most in _TEXTS.items():
            schema.add_field(name, DataType.VARCHAR, max_length=most)
        schema.add_field("at", DataType.INT64)
        schema.add_field("removed", DataType.BOOL)
        schema.add_field("vector", DataType.FLOAT_VECTOR, dim=self._embedder.dimension)
        index = MilvusClient.prepare_index_params()
        index.add_index("vector", index_type="FLAT", metric_type="COSINE")
        client.create_collection(self._collection, schema=schema, index_params=index, consistency_level="Strong")


def has_local_milvus() -> bool:
    return all(find_spec(name) is not None for name in ("pymilvus", "milvus_lite"))


def name_collection(prefix: str, embedder: Embedder) -> str:
    return f"{prefix}_{re.sub('[^a-z0-9]', '_', embedder.name.lower())[:100]}_{embedder.dimension}"


def open_milvus(place: str, token: str, prepare: Callable[[Any], object]) -> Any:
    """A client that `prepare` got an answer from. `Unavailable`: not installed, no Milvus at that address, or files
    another process has open. `Broken`: files that cannot be read."""
    in_process = "://" not in place
    if find_spec("pymilvus") is None or (in_process and not has_local_milvus()):
        raise Unavailable(f"Milvus is not installed: {name_install('milvus')}.")
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # the same, of the library below
    from pymilvus import MilvusClient

    for name in ("pymilvus", "milvus_lite", "grpc._server"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)  # they write whole tracebacks; we raise
    try:
        if in_process:
            Path(place).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        client = MilvusClient(place, token=token, timeout=_TIMEOUT if in_process else _CONNECT_TIMEOUT)
        for name in _CALLS.split():
            setattr(client, name, partial(getattr(client, name), timeout=_TIMEOUT))
        prepare(client)
    except milvus_errors(OSError, ValueError, TypeError) as error:
        if not in_process:
            raise did_not_answer(error) from error
        release_milvus(place)
        if Path(place).is_dir() and FileLock(Path(place) / "LOCK").is_held():
            raise Unavailable(f"{place} is open in another process; a server (ZUNO_MEMORY_URL) serves many.") from error
        raise Broken(f"{place} is damaged; the next evaluation builds it anew from the journal.") from error
    return client


def release_milvus(place: str) -> None:
    """Close the files of the one in process: another process may open them then."""
    if "://" not in place:
        from milvus_lite.server_manager import server_manager_instance

        server_manager_instance.release_server(place)


def milvus_errors(*more: type[Exception]) -> tuple[type[Exception], ...]:
    if find_spec("pymilvus") is None:
        return more
    from grpc import RpcError  # a call whose time is over
    from pymilvus import MilvusException

    return MilvusException, RpcError, *more


def did_not_answer(error: Exception) -> Unavailable:
    why = getattr(error, "message", "") or getattr(error, "details", lambda: error)()
    why = " ".join(str(why).split())[:200]
    return Unavailable(f"Milvus did not answer as Milvus does ({why}).")


def _discard(path: Path) -> None:
    release_milvus(str(path))
    if path.is_dir():
        rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _scope(origin: str) -> str:
    return sha256(origin.encode()).hexdigest()


def split_login(url: str) -> tuple[str, str]:
    """A URL without its `USER:PASSWORD@`, and those apart, as the library wants them."""
    scheme, _, rest = url.partition("://")
    login, at, place = rest.rpartition("@")
    return (f"{scheme}://{place}", unquote(login)) if at else (url, "")
