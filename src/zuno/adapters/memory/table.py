"""Memories as columns in memory, ranked by similarity, words and age: what every index ranks with."""

import heapq
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from zuno.kernel.canonical import digest, encode_model
from zuno.kernel.errors import Broken
from zuno.trading.measure.similarity import (
    DECAY,
    ONE,
    QUERY_CHARS,
    QUERY_WORDS,
    apply_decay,
    combine_similarity,
    list_terms,
    measure_cosines,
    measure_norms,
    split_phrases,
    split_words,
    unpack_vector,
)
from zuno.trading.model.memory import Channel, MemoryRecord, Recalled, RecallQuery, RecallResult
from zuno.trading.ports.recall import Embedder

MemoryRow: TypeAlias = tuple[str, str, str, str | None, int, bytes]
"""Id, channel, market, symbol, moment, vector."""
_CHANNELS: Final = tuple(Channel)
_CODES: Final = {channel.value: code for code, channel in enumerate(_CHANNELS)}
_SPARE: Final = 1.5
"""Room is taken for so many times what is there, so that additions one by one are not copied each time."""
_THIRDS: Final = {False: 1, True: 2}
"""Of a similarity that words make up, and phrases of a setup."""


def drop_repeats(records: Sequence[MemoryRecord]) -> list[MemoryRecord]:
    """Each id once; `Broken` where an id has two contents."""
    offered: dict[str, MemoryRecord] = {}
    for record in records:
        if offered.setdefault(record.id, record) != record:
            raise Broken(f"Memory {record.id} is given with two contents.")
    return list(offered.values())


def identify(record: MemoryRecord) -> str:
    """A hash of the whole record."""
    return digest(encode_model(record))


def keep_new(
    records: Sequence[MemoryRecord],
    known: Mapping[str, object],
    identify: Callable[[MemoryRecord], object] = lambda record: record,
) -> list[MemoryRecord]:
    """Those that are not known by their id, each once; `Broken` where one is known with another content than `identify`
    says. None: it was removed."""
    offered = drop_repeats(records)
    for record in offered:
        if known.get(record.id) not in (None, identify(record)):
            raise Broken(f"Memory {record.id} is there with another content.")
    return [record for record in offered if record.id not in known]


class VectorIndex(ABC):
    """An index that finds by a query's vector; a query without words finds nothing."""

    name: str
    _embedder: Embedder

    async def recall(self, query: RecallQuery) -> RecallResult:
        found: tuple[Recalled, ...] = ()
        if query.text.strip():
            (vector,) = await self._embedder.embed([query.text[:QUERY_CHARS]])
            found = await self._find(query, vector)
        return RecallResult(source=self.name, found=found)

    @abstractmethod
    async def _find(self, query: RecallQuery, vector: bytes) -> tuple[Recalled, ...]: ...


class MemoryTable:
    """Rows are only added; an index that lost a row makes a new table."""

    def __init__(self, dimension: int) -> None:
        self._ids: list[str] = []
        self._codes: dict[str, int] = {}
        """Of markets and symbols."""
        self._vectors = np.zeros((0, dimension), dtype=np.float32)
        self._norms = np.zeros(0, dtype=np.float64)
        self._at = np.zeros(0, dtype=np.int64)
        self._channel = np.zeros(0, dtype=np.int8)
        self._origin = np.zeros(0, dtype=np.int32)
        self._symbol = np.zeros(0, dtype=np.int32)

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def ids(self) -> Sequence[str]:
        """In the order they were added."""
        return self._ids

    def extend(self, rows: Sequence[MemoryRow]) -> None:
        if not rows:
            return
        first, last = len(self._ids), len(self._ids) + len(rows)
        self._reserve(last)
        ids, channels, origins, symbols, at, vectors = zip(*rows, strict=True)
        packed = np.frombuffer(b"".join(vectors), dtype=np.int8)
        self._vectors[first:last] = packed.reshape(len(rows), -1)
        self._norms[first:last] = measure_norms(self._vectors[first:last])
        self._at[first:last] = at
        self._channel[first:last] = [_CODES[channel] for channel in channels]
        self._origin[first:last] = [self._code(origin) for origin in origins]
        self._symbol[first:last] = [self._code(symbol or "") for symbol in symbols]
        self._ids.extend(ids)

    def rank(
        self, query: RecallQuery, vector: bytes, find_word: Callable[[str], NDArray[np.uint8]]
    ) -> tuple[Recalled, ...]:
        """The best, by score and then by id. `find_word`: 1 for each memory that holds the word."""
        count = len(self._ids)
        known = self._select(query)
        if not known.any():
            return ()
        cosines = measure_cosines(self._vectors[:count], self._norms[:count], unpack_vector(vector))
        text = query.text[:QUERY_CHARS]
        phrases = split_phrases(text)
        words = (phrases or split_words(text))[:QUERY_WORDS]
        covered = np.zeros(count, dtype=np.uint8)  # at most as many words as are asked for
        for word in words:
            covered += find_word(word)[:count]
        similarity = combine_similarity(cosines, covered.astype(np.int32), len(words), _THIRDS[bool(phrases)])
        similarity *= known
        score = self._decay(similarity, query)
        # The best scores above zero, with all that tie with the last of them.
        last = count - query.limit
        floor = 1 if last <= 0 else max(1, int(np.partition(score, last)[last]))
        places = [int(place) for place in np.flatnonzero(score >= floor)]
        best = heapq.nsmallest(query.limit, places, key=lambda place: (-int(score[place]), self._ids[place]))
        return tuple(
            Recalled(id=self._ids[place], similarity=int(similarity[place]) / ONE, score=int(score[place]) / ONE)
            for place in best
        )

    def _select(self, query: RecallQuery) -> NDArray[np.bool_]:
        """Which rows were known by then, of the query's market, channels and symbol."""
        count = len(self._ids)
        known = self._at[:count] < query.before
        known &= self._origin[:count] == self._codes.get(query.origin, -1)
        if query.symbol is not None:
            known &= self._symbol[:count] == self._codes.get(query.symbol, -1)
        if set(query.channels) != set(_CHANNELS):
            asked = np.array([channel in query.channels for channel in _CHANNELS])
            known &= asked[self._channel[:count]]
        return known

    def _decay(self, similarity: NDArray[np.int32], query: RecallQuery) -> NDArray[np.int32]:
        count = len(self._ids)
        ages = query.before - self._at[:count]
        decays = {DECAY[channel] for channel in query.channels}
        if len(decays) <= 1:
            return apply_decay(similarity, ages, decays.pop()) if decays else similarity
        score = np.zeros_like(similarity)
        for code, channel in enumerate(_CHANNELS):
            of_it = self._channel[:count] == code
            score[of_it] = apply_decay(similarity[of_it], ages[of_it], DECAY[channel])
        return score

    def _code(self, name: str) -> int:
        return self._codes.setdefault(name, len(self._codes))

    def _reserve(self, rows: int) -> None:
        if rows <= len(self._at):
            return
        room = rows if not self._ids else int(rows * _SPARE)
        for name in ("_vectors", "_norms", "_at", "_channel", "_origin", "_symbol"):
            old = getattr(self, name)
            new = np.zeros((room, *old.shape[1:]), dtype=old.dtype)
            new[: len(self._ids)] = old[: len(self._ids)]
            setattr(self, name, new)


def rank_rows(
    query: RecallQuery, vector: bytes, rows: Sequence[MemoryRow], words: Sequence[frozenset[str]]
) -> tuple[Recalled, ...]:
    """`MemoryTable.rank` for a few rows, each with its words."""
    table = MemoryTable(len(vector))
    table.extend(rows)
    return table.rank(query, vector, lambda word: np.array([word in held for held in words], dtype=np.uint8))


class InMemoryIndex(VectorIndex):
    name = "memory"

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._records: dict[str, MemoryRecord] = {}
        self._vectors: dict[str, bytes] = {}
        self._removed: set[str] = set()
        self._clear_table()

    async def add(self, records: Sequence[MemoryRecord]) -> None:
        new = keep_new(records, self._records | dict.fromkeys(self._removed))
        vectors = await self._embedder.embed([record.text for record in new])
        self._records.update((record.id, record) for record in new)
        self._vectors.update((record.id, vector) for record, vector in zip(new, vectors, strict=True))
        self._index(new)

    async def _find(self, query: RecallQuery, vector: bytes) -> tuple[Recalled, ...]:
        return self._table.rank(query, vector, self._find_word)

    async def remove(self, id: str) -> None:
        self._removed.add(id)
        if self._records.pop(id, None) is not None:
            self._clear_table()
            self._index(list(self._records.values()))

    async def ids(self) -> frozenset[str]:
        return frozenset(self._records)

    async def rebuild(self, records: Sequence[MemoryRecord], removed: Collection[str] = ()) -> None:
        self._records, self._vectors, self._removed = {}, {}, set(removed)
        self._clear_table()
        await self.add(records)

    def _clear_table(self) -> None:
        self._table = MemoryTable(self._embedder.dimension)
        self._places: dict[str, list[int]] = {}

    def _index(self, records: Sequence[MemoryRecord]) -> None:
        for place, record in enumerate(records, len(self._table)):
            for word in list_terms(record.text):
                self._places.setdefault(word, []).append(place)
        self._table.extend(
            [
                (record.id, record.channel, record.origin, record.symbol, record.at, self._vectors[record.id])
                for record in records
            ]
        )

    def _find_word(self, word: str) -> NDArray[np.uint8]:
        mask = np.zeros(len(self._table), dtype=np.uint8)
        mask[self._places.get(word, [])] = 1
        return mask
