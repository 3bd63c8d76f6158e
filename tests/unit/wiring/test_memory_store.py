"""Which collection of a shared server a home's memories are in, and who finds entities in them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import SecretStr

from tests.wire.model_server import chat, serving
from tests.wire.post_mortems import post_mortem
from zuno.adapters.memory.milvus import MilvusMemoryIndex
from zuno.kernel.errors import Unavailable
from zuno.kernel.units import Millis
from zuno.settings import Settings
from zuno.trading.learn.memory_book import memory_record
from zuno.trading.model.memory import RecallQuery
from zuno.wiring.application import Application
from zuno.wiring.memory import _open_index, extract_by_models, memory_file, memory_index


def collection(folder: Path) -> str:
    settings = Settings(memory_store="milvus", memory_url=SecretStr("http://127.0.0.1:9"))
    index = _open_index(settings, folder, None)
    assert isinstance(index, MilvusMemoryIndex)
    return index._collection


def test_homes_that_share_a_server_have_collections_of_their_own(tmp_path: Path) -> None:
    first, other = collection(tmp_path / "a"), collection(tmp_path / "b")
    assert first != other
    assert collection(tmp_path / "a") == first


@pytest.mark.slow
async def test_a_graph_of_memories_asks_the_model_of_rag_what_a_setup_is_about(tmp_path: Path) -> None:
    """The role `rag_extraction`; what it said is on record, and not asked again."""
    found = json.dumps({"names": ["funding high"], "relations": []})
    async with serving(lambda heard: chat(found)) as server:
        settings = Settings(home=tmp_path, memory_store="lightrag", model_rag=f"{server.origin}/v1#reader")
        for _ in range(2):
            zuno = Application(settings)
            index = _open_index(settings, tmp_path / "memory", extract_by_models(zuno._open_journal, zuno._models))
            await index.rebuild([memory_record(post_mortem(1))])
            assert await index.ids() == {post_mortem(1).id}
            journal = await zuno._open_journal()
            attempts = [entry.payload async for entry in journal.entries(kind="model_attempt")]
            await zuno.close()
    assert [(attempt["role"], attempt["outcome"]) for attempt in attempts] == [("rag_extraction", "ok")]
    assert len(server.heard) == 1


async def test_beyond_the_budget_memories_are_found_by_age_and_that_is_said(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, embedding_model="http://127.0.0.1:9/v1#vectors", budget_tokens_per_day=1)
    index = memory_index(settings, tmp_path)
    record = memory_record(post_mortem(1))
    await memory_file(tmp_path).add([record])
    with pytest.raises(Unavailable):
        await index.add([record])
    query = RecallQuery(text="failed breakout", origin=record.origin, before=Millis(record.at + 1))
    answer = await index.recall(query)
    assert (answer.source, [found.id for found in answer.found]) == ("recent3", [record.id])
    assert "budget" in answer.note
