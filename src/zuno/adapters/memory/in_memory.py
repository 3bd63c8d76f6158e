"""An index that is gone with its process, for the lab and for tests: ranks as the one on disk does."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from zuno.adapters.memory.table import MemoryTable, cut_query, keep_new
from zuno.trading.measure.similarity import list_terms
from zuno.trading.model.memory import MemoryRecord, RecallQuery, RecallResult
from zuno.trading.ports.recall import Embedder


class InMemoryIndex:
    name: Final = "memory"

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._records: dict[str, MemoryRecord] = {}
        self._vectors: dict[str, bytes] = {}
        self._removed: set[str] = set()
        self._clear_table()

    async def add(self, records: Sequence[MemoryRecord]) -> None:
        new = keep_new(records, self._records, self._removed)
        vectors = await self._embedder.embed([record.text for record in new])
        self._records.update((record.id, record) for record in new)
        self._vectors.update((record.id, vector) for record, vector in zip(new, vectors, strict=True))
        self._index(new)

    async def recall(self, query: RecallQuery) -> RecallResult:
        if not query.text.strip():
            return RecallResult(source=self.name, found=())
        (vector,) = await self._embedder.embed([cut_query(query.text)])
        return RecallResult(source=self.name, found=self._table.rank(query, vector, self._find_word))

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
