"""One exam for every index memories are recalled from: in memory, SQLite, JSONL, and one with a fallback."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from zuno.adapters.memory.hashed import HashedEmbedder
from zuno.adapters.memory.jsonl import FallbackIndex, JsonlMemory
from zuno.adapters.memory.lightrag import LightRagMemoryIndex
from zuno.adapters.memory.milvus import MilvusMemoryIndex
from zuno.adapters.memory.sqlite import SqliteMemoryIndex
from zuno.adapters.memory.table import InMemoryIndex
from zuno.kernel.errors import Broken
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.trading.model.market import DAY_MS
from zuno.trading.model.memory import Channel, MemoryRecord, RecallQuery
from zuno.trading.ports.recall import MemoryIndex

NOW = 1_760_000_000_000
SETUPS = (
    "failed breakout; funding high; RSI 1h overbought",
    "range low held; funding negative; open interest falling",
    "liquidations of longs cascading; price under VWAP; volatility high",
    "trend up; price above VWAP; funding neutral; book heavy on the bid",
)


@dataclass(frozen=True)
class Candidate:
    open: Callable[[], MemoryIndex]
    """Another handle on the same memories, as another process would hold."""
    by_similarity: bool = True


@pytest.fixture(scope="module")
def milvus_place(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("pymilvus", reason="pymilvus is not installed: make milvus")
    pytest.importorskip("milvus_lite", reason="milvus-lite is not installed: make milvus")
    return str(tmp_path_factory.mktemp("milvus") / "milvus.db")


@pytest.fixture(params=["memory", "sqlite", "milvus", "lightrag", "jsonl", "fallback"])
def candidate(request: pytest.FixtureRequest, tmp_path: Path) -> Candidate:
    match request.param:
        case "memory":
            index = InMemoryIndex(HashedEmbedder())
            return Candidate(lambda: index)
        case "sqlite":
            return Candidate(lambda: SqliteMemoryIndex(tmp_path / "index.db", HashedEmbedder()))
        case "milvus":
            place, prefix = request.getfixturevalue("milvus_place"), f"exam_{uuid4().hex[:8]}"
            return Candidate(lambda: MilvusMemoryIndex(place, HashedEmbedder(), prefix=prefix))
        case "lightrag":
            pytest.importorskip("lightrag", reason="lightrag-hku is not installed: make lightrag")
            return Candidate(lambda: LightRagMemoryIndex(tmp_path / "graph", HashedEmbedder()))
        case "jsonl":
            return Candidate(lambda: JsonlMemory(tmp_path / "memories.jsonl"), by_similarity=False)
        case _:
            return Candidate(
                lambda: FallbackIndex(
                    SqliteMemoryIndex(tmp_path / "index.db", HashedEmbedder()), JsonlMemory(tmp_path / "memories.jsonl")
                )
            )


def record(id: str, text: str, days: float = 1, **more: Any) -> MemoryRecord:
    """A post-mortem of so many days ago."""
    given = {"channel": Channel.SYSTEM_POST_MORTEM, "origin": "paper", "symbol": Symbol("BTCUSDT")} | more
    return MemoryRecord(id=id, at=Millis(round(NOW - days * DAY_MS)), text=text, **given)


def query(text: str, days: float = 0, **more: Any) -> RecallQuery:
    return RecallQuery(**({"text": text, "origin": "paper", "before": Millis(round(NOW - days * DAY_MS))} | more))


def setups() -> list[MemoryRecord]:
    return [record(f"m{place}", text, days=10 - place) for place, text in enumerate(SETUPS)]


async def recall(index: MemoryIndex, asked: RecallQuery) -> list[str]:
    return [found.id for found in (await index.recall(asked)).found]


async def test_what_was_added_is_found_by_every_handle(candidate: Candidate) -> None:
    await candidate.open().add(setups())
    assert await candidate.open().ids() == {"m0", "m1", "m2", "m3"}
    assert "m0" in await recall(candidate.open(), query(SETUPS[0], limit=100)) or not candidate.by_similarity


async def test_before_anything_is_added_nothing_is_found(candidate: Candidate) -> None:
    assert await candidate.open().ids() == frozenset()
    assert await recall(candidate.open(), query("failed breakout")) == []


async def test_the_most_similar_comes_first(candidate: Candidate) -> None:
    index = candidate.open()
    await index.add(setups())
    if candidate.by_similarity:
        for place, text in enumerate(SETUPS):
            (best, *_) = (await index.recall(query(text))).found
            assert best.id == f"m{place}"
            assert best.similarity == 1.0
        assert (await recall(index, query("high funding with breakouts that failed")))[0] == "m0"
        assert (await recall(index, query("cascading long liquidation")))[0] == "m2"
    else:
        assert await recall(index, query(SETUPS[0])) == ["m3", "m2", "m1"]


async def test_adding_again_changes_nothing_and_another_content_is_broken(candidate: Candidate) -> None:
    index = candidate.open()
    await index.add(setups())
    before = await index.recall(query(SETUPS[1], limit=100))
    await index.add([*setups(), *setups()])
    assert await candidate.open().recall(query(SETUPS[1], limit=100)) == before
    with pytest.raises(Broken):
        await index.add([record("new", "something"), record("m0", "another text", days=10)])
    assert await index.ids() == {"m0", "m1", "m2", "m3"}


def JsonlOrSame(candidate: Candidate, index: MemoryIndex) -> MemoryIndex:
    return index


async def test_only_what_was_known_before_the_moment_is_found(candidate: Candidate) -> None:
    index = candidate.open()
    await index.add(setups())
    assert await recall(index, query(SETUPS[3], days=10, limit=100)) == []
    assert await recall(index, query(SETUPS[0], days=9, limit=100)) == ["m0"]


async def test_other_markets_channels_and_symbols_stay_apart(candidate: Candidate) -> None:
    index = candidate.open()
    text = SETUPS[0]
    await index.add(
        [
            record("ours", text),
            record("eth", text, symbol=Symbol("ETHUSDT")),
            record("other", text, origin="another market"),
            record("news", text, channel=Channel.NEWS),
            record("all", text, channel=Channel.NARRATIVE, symbol=None),
        ]
    )
    assert await recall(index, query(text)) == ["eth", "ours"]
    assert await recall(index, query(text, symbol=Symbol("BTCUSDT"))) == ["ours"]
    assert await recall(index, query(text, origin="another market")) == ["other"]
    assert await recall(index, query(text, channels=(Channel.NEWS,))) == ["news"]
    assert set(await recall(index, query(text, channels=(Channel.NEWS, Channel.NARRATIVE)))) == {"news", "all"}
    assert await recall(index, query(text, origin="nowhere")) == []


async def test_of_two_alike_the_younger_comes_first_and_ties_go_by_id(candidate: Candidate) -> None:
    index = candidate.open()
    await index.add([record("b", SETUPS[0], 1), record("a", SETUPS[0], 90), record("c", SETUPS[0], 1)])
    found = (await index.recall(query(SETUPS[0]))).found
    assert [each.id for each in found] == ["b", "c", "a"]
    assert found[2].score == pytest.approx(0.75)


async def test_what_was_removed_stays_away(candidate: Candidate) -> None:
    index = candidate.open()
    await index.add(setups())
    await index.recall(query(SETUPS[0]))
    await candidate.open().remove("m0")
    await candidate.open().remove("never-there")
    await index.add([*setups(), record("never-there", SETUPS[0])])
    assert await index.ids() == {"m1", "m2", "m3"}
    assert "m0" not in await recall(index, query(SETUPS[0], limit=100))


async def test_empty_and_long_queries(candidate: Candidate) -> None:
    index = candidate.open()
    await index.add(setups())
    assert await recall(index, query("")) == []
    assert await recall(index, query(" \n\t")) == []
    long = (SETUPS[0] + " ") * 1_000
    assert await recall(index, query(long[:10_000])) != []
    for text in ('"', "' OR 1=1 --", "* NEAR(", "a" * 10_000, "\x00", "😀", "1.5 2,000"):
        await index.recall(query(text))


async def test_a_rebuilt_index_holds_what_it_was_given(candidate: Candidate) -> None:
    index, other = candidate.open(), candidate.open()
    await index.add(setups())
    await other.recall(query(SETUPS[0]))
    await index.rebuild([*setups()[1:], record("late", SETUPS[0])], removed=["m3"])
    for handle in (index, other, candidate.open()):
        assert await handle.ids() == {"m1", "m2", "late"}
        assert "late" in await recall(handle, query(SETUPS[0]))
    await other.add(setups()[3:])
    assert "m3" not in await other.ids()


async def test_the_order_of_adding_does_not_matter(candidate: Candidate) -> None:
    index = candidate.open()
    await index.add(setups()[2:])
    await index.add(setups()[:2])
    there = await index.recall(query(SETUPS[2], limit=100))
    await index.rebuild(setups())
    assert await index.recall(query(SETUPS[2], limit=100)) == there
