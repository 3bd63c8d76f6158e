"""Memories as a knowledge graph in LightRAG: entities and relations of news and post-mortems. An extra, `lightrag`.

LightRAG keeps entities and relations, and vectors in Milvus where that is installed, else in files. A memory is also
found by words that other memories relate to its entities; only relations known at the moment count. LightRAG's own
retrieval knows no moment, so we rank. Its tokenizer is given, because it downloads one otherwise. It rewrites whole
files at each addition: for thousands of memories, not millions.
"""

import asyncio
import json
import logging
import threading
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from zuno.adapters.file_lock import WAIT_SECONDS, FileLock
from zuno.adapters.memory import milvus
from zuno.adapters.memory.table import VectorIndex, keep_new, rank_rows
from zuno.kernel.canonical import canonical, digest
from zuno.kernel.errors import Broken, Unavailable, ZunoError
from zuno.kernel.installation import name_install
from zuno.trading.measure.similarity import Entities, find_entities, list_terms, unpack_vector
from zuno.trading.model.memory import MemoryRecord, Recalled, RecallQuery
from zuno.trading.ports.recall import Embedder

T = TypeVar("T")
Extract = Callable[[str], Awaitable[Entities]]
"""Finds the entities of a text, by a model or by rules."""
_REMEDY: Final = "the next evaluation builds it anew from the journal."
_MEMORY: Final = "memory:"
_REMOVED: Final = "removed:"
"""Nodes that are no entities begin with one of these."""
_ONE_AT_A_TIME: Final = threading.RLock()
"""LightRAG's locks are global to the process."""


async def extract_by_rule(text: str) -> Entities:
    return find_entities(text)


@dataclass(slots=True)
class _Graph:
    records: dict[str, MemoryRecord] = field(default_factory=dict)
    vectors: dict[str, bytes] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    mentions: dict[str, set[str]] = field(default_factory=dict)
    """Memory to its entities."""
    relations: list[tuple[str, str, list[str]]] = field(default_factory=list)
    """Two entities, and the memories that relate them."""


class LightRagMemoryIndex(VectorIndex):
    """One folder, one process at a time. One graph for each embedder, so vectors of two are never mixed."""

    name = "lightrag"

    def __init__(
        self,
        folder: Path,
        embedder: Embedder,
        extract: Extract = extract_by_rule,
        server: tuple[str, str] | None = None,
        prefix: str = "zuno",
    ) -> None:
        """`server`: URL and token of a Milvus; None: the one in process, in the folder, where that is installed."""
        self._folder = folder
        self._embedder = embedder
        self._extract = extract
        self._milvus = server or ((str(folder / "milvus.db"), "") if milvus.has_local_milvus() else None)
        self._workspace = milvus.name_collection(prefix, embedder)
        self._file = folder / self._workspace / "graph_chunk_entity_relation.graphml"
        self._loaded: tuple[object, _Graph] | None = None

    async def add(self, records: Sequence[MemoryRecord]) -> None:
        graph = await self._load()
        new = keep_new(records, graph.records | dict.fromkeys(graph.removed))
        if new:
            entities = {record.id: await self._extract(record.text) for record in new}
            await self._run(lambda rag: self._add(rag, new, entities))

    async def _find(self, query: RecallQuery, vector: bytes) -> tuple[Recalled, ...]:
        graph = await self._load()
        known = {
            id: (id, record.channel.value, record.origin, record.symbol, record.at, graph.vectors[id])
            for id, record in graph.records.items()
            if record.at < query.before and record.origin == query.origin
        }
        words = _words_around(graph, known)
        return rank_rows(query, vector, list(known.values()), [words[id] for id in known]) if known else ()

    async def remove(self, id: str) -> None:
        async def act(rag: Any) -> None:
            graph = rag.chunk_entity_relation_graph
            await graph.upsert_node(f"{_REMOVED}{id}", _node(f"{_REMOVED}{id}", "removed", ""))
            if await graph.has_node(f"{_MEMORY}{id}"):
                await graph.delete_node(f"{_MEMORY}{id}")
            await graph.index_done_callback()

        await self._run(act)

    async def ids(self) -> frozenset[str]:
        return frozenset((await self._load()).records)

    async def rebuild(self, records: Sequence[MemoryRecord], removed: Collection[str] = ()) -> None:
        def clear() -> None:
            with _ONE_AT_A_TIME, self._file_lock():
                self._loaded = None
                rmtree(self._folder, ignore_errors=True)

        await asyncio.to_thread(clear)
        for id in sorted(set(removed)):
            await self.remove(id)
        await self.add(records)

    async def _add(self, rag: Any, new: Sequence[MemoryRecord], extracted: Mapping[str, Entities]) -> None:
        """The memories' own nodes come last: whatever a kill leaves behind before is no memory."""
        stored = rag.chunk_entity_relation_graph
        await rag.ainsert_custom_kg(await self._describe(stored, new, extracted))
        for record in new:
            name = f"{_MEMORY}{record.id}"
            await stored.upsert_node(name, _node(name, "memory", record.model_dump_json()))
            for entity in extracted[record.id].names:
                node = _name_in_market(record.origin, entity)
                await stored.upsert_edge(name, node, {"weight": 1.0, "keywords": "mentions", "description": ""})
        await stored.index_done_callback()

    async def _describe(
        self, stored: Any, records: Sequence[MemoryRecord], extracted: Mapping[str, Entities]
    ) -> dict[str, list[dict[str, Any]]]:
        entities: dict[str, dict[str, Any]] = {}
        relations: dict[tuple[str, str], dict[str, Any]] = {}
        for record in records:
            for name in extracted[record.id].names:
                node = _name_in_market(record.origin, name)
                entities[node] = {
                    "entity_name": node,
                    "entity_type": record.channel.value,
                    "description": name,
                    "source_id": record.id,
                    "file_path": record.id,
                }
            for relation in extracted[record.id].relations:
                source, target = (_name_in_market(record.origin, end) for end in (relation.source, relation.target))
                pair = (source, target)
                before = relations.get(pair) or await stored.get_edge(*pair)
                told_by = sorted({*_told_by(before), record.id})
                relations[pair] = {
                    "src_id": pair[0],
                    "tgt_id": pair[1],
                    "keywords": relation.word,
                    "source_id": record.id,
                    "description": json.dumps(told_by),
                    "file_path": record.id,
                }
        chunks = [{"content": _chunk(record), "source_id": record.id, "file_path": record.id} for record in records]
        return {"chunks": chunks, "entities": list(entities.values()), "relationships": list(relations.values())}

    async def _load(self) -> _Graph:
        """What the files hold now; read again when they have changed."""
        if not self._file.exists():
            return _Graph()
        if self._loaded is not None and self._loaded[0] == self._state():
            return self._loaded[1]
        graph = await self._run(self._read)
        self._loaded = (self._state(), graph)
        return graph

    async def _read(self, rag: Any) -> _Graph:
        from lightrag.utils import compute_mdhash_id

        graph = _Graph()
        stored = rag.chunk_entity_relation_graph
        for node in await stored.get_all_nodes():
            name = node["id"]
            if name.startswith(_MEMORY):
                record = MemoryRecord.model_validate_json(node["description"])
                graph.records[record.id] = record
                graph.mentions[record.id] = set()
            elif name.startswith(_REMOVED):
                graph.removed.add(name.removeprefix(_REMOVED))
        for edge in await stored.get_all_edges():
            ends = sorted((edge["source"], edge["target"]), key=lambda name: not name.startswith(_MEMORY))
            if ends[0].startswith(_MEMORY):
                graph.mentions[ends[0].removeprefix(_MEMORY)].add(ends[1])
            else:
                graph.relations.append((ends[0], ends[1], _told_by(edge)))
        chunks = {compute_mdhash_id(_chunk(record), prefix="chunk-"): id for id, record in graph.records.items()}
        for chunk, vector in (await rag.chunks_vdb.get_vectors_by_ids(list(chunks))).items():
            graph.vectors[chunks[chunk]] = np.asarray(vector).astype(np.int8).tobytes()
        if any(len(graph.vectors.get(id, b"")) != self._embedder.dimension for id in graph.records):
            raise Broken(f"{self._folder} lacks vectors; {_REMEDY}")
        return graph

    def _state(self) -> object:
        status = self._file.stat()
        return status.st_mtime_ns, status.st_size, status.st_ino

    def _file_lock(self) -> FileLock:
        return FileLock(self._folder.with_suffix(".lock"), timeout=WAIT_SECONDS)

    async def _run(self, act: Callable[[Any], Awaitable[T]]) -> T:
        """In a thread and an event loop of its own: LightRAG keeps locks and tasks of the loop it was opened in."""

        def run() -> T:
            with _ONE_AT_A_TIME, self._file_lock():
                return asyncio.run(self._with_rag(act))

        return await asyncio.to_thread(run)

    async def _with_rag(self, act: Callable[[Any], Awaitable[T]]) -> T:
        logging.getLogger().addHandler(quiet := logging.NullHandler())  # or this import sends every INFO to stderr
        try:
            import nano_vectordb  # noqa: F401
            from lightrag import LightRAG
            from lightrag.kg.shared_storage import finalize_share_data
            from lightrag.utils import EmbeddingFunc, Tokenizer
        except ImportError as error:
            raise Unavailable(f"LightRAG is not installed: {name_install('lightrag')}.") from error
        finally:
            logging.getLogger().removeHandler(quiet)
        logging.getLogger("lightrag").setLevel(logging.CRITICAL + 1)  # its import sets it to INFO; we raise

        async def embed(texts: list[str]) -> NDArray[np.float32]:
            words = [text.partition("\n")[2] or text if text.startswith(_MEMORY) else text for text in texts]
            vectors = await self._embedder.embed(words)
            return np.array([unpack_vector(vector) for vector in vectors], dtype=np.float32)

        async def refuse(prompt: str, **_: object) -> str:
            raise ValueError("LightRAG asks no model here: entities are handed in")

        rag: Any = None
        client: Any = None
        if self._milvus is not None:
            client = milvus.open_milvus(*self._milvus, lambda opened: opened.list_collections())
            client.create_collection = partial(client.create_collection, consistency_level="Strong")
        try:
            rag = LightRAG(
                working_dir=str(self._folder),
                embedding_func=EmbeddingFunc(embedding_dim=self._embedder.dimension, func=embed),
                llm_model_func=refuse,
                tokenizer=Tokenizer("characters", _Characters()),
                enable_llm_cache=False,
                vector_storage="NanoVectorDBStorage" if client is None else "MilvusVectorDBStorage",
                workspace=self._workspace,
            )
            if client is not None:
                # Else it takes an address from the environment, `.env` or `config.ini` of wherever it runs.
                for vectors in (rag.entities_vdb, rag.relationships_vdb, rag.chunks_vdb):
                    vectors._client = client
            await rag.initialize_storages()
            return await act(rag)
        except (ZunoError, asyncio.CancelledError):
            raise
        except OSError as error:
            raise Unavailable(f"{self._folder} cannot be used ({error.strerror}).") from error
        except (ValueError, KeyError, TypeError, RuntimeError, SyntaxError, AssertionError, ValidationError) as error:
            raise Broken(f"{self._folder} is damaged ({type(error).__name__}); {_REMEDY}") from error
        except milvus.milvus_errors() as error:
            raise milvus.did_not_answer(error) from error
        finally:
            if rag is not None:
                await rag.embedding_func.shutdown()
                await rag.llm_model_func.shutdown()
            finalize_share_data()
            if self._milvus is not None:
                client.close()
                milvus.release_milvus(self._milvus[0])


class _Characters:
    """A tokenizer that downloads nothing; token counts are not used."""

    def encode(self, content: str) -> list[int]:
        return [ord(character) for character in content]

    def decode(self, tokens: list[int]) -> str:
        return "".join(map(chr, tokens))


def _chunk(record: MemoryRecord) -> str:
    """Includes the id, so that equal texts are two chunks."""
    return f"{_MEMORY}{record.id}\n{' '.join(record.text.split())}"


def _name_in_market(origin: str, entity: str) -> str:
    """Entities are per market."""
    return f"{digest(canonical(origin))[:12]} {entity}"


def _node(name: str, kind: str, description: str) -> dict[str, str]:
    return {"entity_id": name, "entity_type": kind, "description": description, "source_id": "", "file_path": ""}


def _told_by(edge: Mapping[str, Any] | None) -> list[str]:
    return [str(id) for id in json.loads(edge["description"])] if edge and edge.get("description") else []


def _words_around(graph: _Graph, known: Collection[str]) -> dict[str, frozenset[str]]:
    """For each known memory the words of its entities, and of those that a known memory relates to them."""
    near: dict[str, set[str]] = {}
    for source, target, told_by in graph.relations:
        if any(id in known for id in told_by):
            near.setdefault(source, set()).add(target)
            near.setdefault(target, set()).add(source)
    words = {}
    for id in known:
        related = (other.split()[1:] for entity in graph.mentions[id] for other in near.get(entity, ()))
        words[id] = frozenset(list_terms(graph.records[id].text)).union(*related)
    return words
