"""Damage, other embeddings, two who write at once, kill -9, and what was added after a moment."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.model_server import serving
from zuno.adapters.memory.hashed import HashedEmbedder
from zuno.adapters.memory.jsonl import FallbackIndex, JsonlMemory
from zuno.adapters.memory.sqlite import SqliteMemoryIndex
from zuno.adapters.memory.table import InMemoryIndex
from zuno.kernel.errors import Broken, Unavailable
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.trading.model.market import DAY_MS
from zuno.trading.model.memory import Channel, MemoryRecord, RecallQuery, RecallResult

NOW = 1_760_000_000_000
PHRASES = ("funding high", "funding low", "failed breakout", "volatility high", "RSI 1h overbought", "price under VWAP")


def record(number: int, text: str = PHRASES[0], at: int = NOW, **more: object) -> MemoryRecord:
    given = {"channel": Channel.SYSTEM_POST_MORTEM, "origin": "paper", "symbol": Symbol("BTCUSDT")} | more
    return MemoryRecord.model_validate({"id": f"m{number}", "at": Millis(at), "text": text, **given})


def ask(text: str = PHRASES[0], before: int = NOW + 1, limit: int = 10) -> RecallQuery:
    return RecallQuery(text=text, origin="paper", before=Millis(before), limit=limit)


class OtherEmbedder:
    """Another model, of another dimension."""

    name = "other"
    dimension = 16
    duplicate = 0.9

    async def embed(self, texts: Sequence[str]) -> Sequence[bytes]:
        return [bytes([len(text) % 100 + 1] * 16) for text in texts]


MEMORIES = st.lists(
    st.tuples(
        st.integers(0, 40), st.lists(st.sampled_from(PHRASES), min_size=1, max_size=4).map("; ".join), st.booleans()
    ),
    max_size=14,
)


@pytest.mark.soak
@given(MEMORIES, st.integers(0, 40), st.lists(st.sampled_from(PHRASES), min_size=1, max_size=3).map("; ".join))
async def test_cutting_the_future_changes_no_recall(
    memories: list[tuple[int, str, bool]], moment: int, text: str
) -> None:
    records = [
        record(number, setup, NOW + day * DAY_MS, channel=Channel.NEWS if news else Channel.SYSTEM_POST_MORTEM)
        for number, (day, setup, news) in enumerate(memories)
    ]
    before = NOW + moment * DAY_MS
    asked = ask(text, before, limit=3).model_copy(update={"channels": tuple(Channel)})
    whole, past = InMemoryIndex(HashedEmbedder()), InMemoryIndex(HashedEmbedder())
    await whole.add(records)
    await past.add([each for each in records[::-1] if each.at < before])
    assert await whole.recall(asked) == await past.recall(asked)


async def test_sqlite_and_memory_rank_alike(tmp_path: Path) -> None:
    records = [
        record(
            number, "; ".join(PHRASES[place] for place in {number % 6, number % 4, number % 5}), NOW - number * DAY_MS
        )
        for number in range(60)
    ]
    stored, held = SqliteMemoryIndex(tmp_path / "index.db", HashedEmbedder()), InMemoryIndex(HashedEmbedder())
    for start in range(0, 60, 7):
        await stored.add(records[start : start + 7])
        await held.add(records[start : start + 7])
        for phrase in PHRASES:
            asked = ask(f"{phrase}; VWAP, breakouts", limit=20)
            assert (await stored.recall(asked)).found == (await held.recall(asked)).found
    assert [(found.id, found.similarity, found.score) for found in (await held.recall(ask(limit=2))).found] == [
        ("m0", 1.0, 1.0),
        ("m4", 0.8222, 0.8097),
    ]


def damage_pages(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4096 : len(content) - 4096] = os.urandom(len(content) - 8192)
    path.write_bytes(content)


def flip_a_vector(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("UPDATE memories SET vector = zeroblob(length(vector)) WHERE id = 'm3'")
    connection.commit()
    connection.close()


def replace_by_text(path: Path) -> None:
    path.write_bytes(b"this was an index once\n" * 500)


@pytest.mark.parametrize("damage", [damage_pages, flip_a_vector, replace_by_text])
async def test_a_damaged_index_is_broken_and_rebuilt(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    path = tmp_path / "index.db"
    records = [record(number) for number in range(50)]
    index = SqliteMemoryIndex(path, HashedEmbedder())
    await index.add(records)
    index.close()
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    damage(path)
    bystander = SqliteMemoryIndex(path, HashedEmbedder())
    for reader in (index, bystander):
        with pytest.raises(Broken):
            await reader.recall(ask())
        with pytest.raises(Broken):  # or nobody who compares it with the journal would rebuild it
            await reader.ids()
    await index.rebuild(records)
    for reader in (index, bystander, SqliteMemoryIndex(path, HashedEmbedder())):
        assert len((await reader.recall(ask())).found) == 10
        assert len(await reader.ids()) == 50


async def test_vectors_of_another_embedder_are_never_mixed(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    await SqliteMemoryIndex(path, OtherEmbedder()).add([record(1)])
    index = SqliteMemoryIndex(path, HashedEmbedder())
    for act in (index.add([record(2)]), index.recall(ask()), index.ids()):
        with pytest.raises(Broken):
            await act
    await index.rebuild([record(1), record(2)])
    assert [found.id for found in (await index.recall(ask())).found] == ["m1", "m2"]
    with pytest.raises(Broken):
        await SqliteMemoryIndex(path, OtherEmbedder()).recall(ask())


async def test_a_store_that_is_down_is_named_and_the_most_recent_answer(tmp_path: Path) -> None:
    pytest.importorskip("pymilvus", reason="pymilvus is not installed: make milvus")
    from zuno.adapters.memory.milvus import MilvusMemoryIndex

    page = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 15\r\n\r\n<html>hi</html>"

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(page)

    async with serving(lambda heard: answer) as server:
        milvus = MilvusMemoryIndex(server.origin, HashedEmbedder())
        with pytest.raises(Unavailable) as caught:
            await milvus.recall(ask())
        assert "\n" not in str(caught.value)
        lines, memories = JsonlMemory(tmp_path / "memories.jsonl"), [record(n, at=NOW + n) for n in range(6)]
        index = FallbackIndex(milvus, lines)
        await lines.add(memories)
        with pytest.raises(Unavailable):
            await index.add(memories)
        result = await index.recall(ask(before=NOW + 5))
    assert (result.source, [found.id for found in result.found]) == ("recent3", ["m4", "m3", "m2"])
    assert "milvus" in result.note
    with pytest.raises(Unavailable):
        await index.ids()


class SlowIndex(InMemoryIndex):
    """A store that is down: each question costs three seconds of its clock."""

    def __init__(self) -> None:
        super().__init__(HashedEmbedder())
        self.now = 0.0
        self.asked = 0
        self.down = True

    async def recall(self, query: RecallQuery) -> RecallResult:
        self.asked += 1
        if not self.down:
            return await super().recall(query)
        self.now += 3
        raise Unavailable("no answer within 3 s")


async def test_a_store_that_is_slow_to_fail_is_left_alone_for_a_while(tmp_path: Path) -> None:
    slow = SlowIndex()
    index = FallbackIndex(slow, JsonlMemory(tmp_path / "memories.jsonl"), lambda: slow.now)
    await index.add([record(1)])
    answers = [await index.recall(ask()) for _ in range(5)]
    assert {(answer.source, "3 s" in answer.note) for answer in answers} == {("recent3", True)}
    assert (slow.asked, slow.now) == (1, 3)
    slow.now += 30
    slow.down = False
    assert (await index.recall(ask())).source == "memory"
    assert (await index.recall(ask())).source == "memory"


async def test_a_store_without_a_fallback_is_left_alone_too_and_fails_at_once() -> None:
    slow = SlowIndex()
    index = FallbackIndex(slow, None, lambda: slow.now)
    for _ in range(3):
        with pytest.raises(Unavailable, match="no answer within 3 s"):
            await index.recall(ask())
    assert (slow.asked, slow.now) == (1, 3)
    slow.now += 30
    slow.down = False
    await index.add([record(1)])
    assert [recalled.id for recalled in (await index.recall(ask())).found] == ["m1"]
    await index.remove("m1")
    assert (await index.recall(ask())).found == ()


async def test_the_graph_relates_only_by_what_was_known_then(tmp_path: Path) -> None:
    pytest.importorskip("lightrag", reason="lightrag-hku is not installed: make lightrag")
    from zuno.adapters.memory.lightrag import LightRagMemoryIndex

    records = [
        record(1, "Binance halts withdrawals", channel=Channel.NEWS),
        record(2, "Kraken lists a token", channel=Channel.NEWS),
        record(3, "Binance buys Voyager", NOW + DAY_MS, channel=Channel.NEWS),
    ]
    whole = LightRagMemoryIndex(tmp_path / "whole", HashedEmbedder())
    past = LightRagMemoryIndex(tmp_path / "past", HashedEmbedder())
    await whole.add(records)
    await past.add(records[:2])
    then = ask("Voyager", NOW + DAY_MS).model_copy(update={"channels": (Channel.NEWS,)})
    assert (await whole.recall(then)).found == (await past.recall(then)).found
    later = then.model_copy(update={"before": Millis(NOW + 2 * DAY_MS)})
    assert [found.id for found in (await whole.recall(later)).found][:2] == ["m3", "m1"]
    for file in (tmp_path / "whole").rglob("*.graphml"):
        file.write_text("<graphml><torn")
    damaged = LightRagMemoryIndex(tmp_path / "whole", HashedEmbedder())
    with pytest.raises(Broken):
        await damaged.recall(later)
    await damaged.rebuild(records)
    assert [found.id for found in (await damaged.recall(later)).found][:2] == ["m3", "m1"]
    other = LightRagMemoryIndex(tmp_path / "whole", OtherEmbedder())
    assert await other.ids() == frozenset(), "vectors of two embedders are never mixed"
    await other.add(records)
    assert await damaged.ids() == await other.ids() == {"m1", "m2", "m3"}


ALONE = """
import asyncio, sys
from pathlib import Path
from tests.contract.test_memory_faults import ask, record
from zuno.adapters.memory.hashed import HashedEmbedder
from zuno.adapters.memory.lightrag import LightRagMemoryIndex

def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn"):
        raise SystemExit(f"{event} {arguments}")

sys.addaudithook(refuse)

async def main(folder):
    index = LightRagMemoryIndex(folder, HashedEmbedder())
    await index.add([record(1)])
    print([found.id for found in (await index.recall(ask())).found])

asyncio.run(main(Path(sys.argv[1])))
"""


@pytest.mark.soak
def test_the_graph_downloads_and_installs_nothing(tmp_path: Path) -> None:
    pytest.importorskip("lightrag", reason="lightrag-hku is not installed: make lightrag")
    command = [sys.executable, "-c", ALONE, str(tmp_path / "graph")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "['m1']"), done.stderr


@pytest.mark.parametrize("torn", [b'{"id":"m9","chan', b"\xff\x00", b'{"removed"'])
async def test_a_torn_last_line_is_not_there(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "memories.jsonl"
    file = JsonlMemory(path)
    await file.add([record(1)])
    await file.add([record(2)])
    path.write_bytes(path.read_bytes() + torn)
    assert await JsonlMemory(path).ids() == {"m1", "m2"}
    await file.add([record(3)])
    assert await JsonlMemory(path).ids() == await file.ids() == {"m1", "m2", "m3"}
    path.write_bytes(b"nonsense\n" + path.read_bytes())
    with pytest.raises(Broken):
        await JsonlMemory(path).ids()


WRITER = """
import asyncio, sys
from pathlib import Path
from tests.contract.test_memory_faults import record
from zuno.adapters.memory.jsonl import FallbackIndex
from zuno.adapters.memory.hashed import HashedEmbedder
from zuno.adapters.memory.table import InMemoryIndex
from zuno.adapters.memory.jsonl import JsonlMemory
from zuno.adapters.memory.sqlite import SqliteMemoryIndex

async def main(folder, first, count):
    lines = JsonlMemory(folder / "m.jsonl")
    index = FallbackIndex(SqliteMemoryIndex(folder / "index.db", HashedEmbedder()), lines)
    for number in range(first, first + count):
        three = [record(number, at=1_760_000_000_000 + place) for place, number in
                 enumerate(range(number * 3, number * 3 + 3))]
        await lines.add(three)
        await index.add(three)
        print(number, flush=True)

asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
"""


def start_writer(folder: Path, first: int, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(folder), str(first), str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])


@pytest.mark.soak
async def test_two_processes_add_at_once_and_one_is_killed(tmp_path: Path) -> None:
    steady, doomed = start_writer(tmp_path, 0, 30), start_writer(tmp_path, 1_000, 100_000)
    try:
        assert doomed.stdout is not None
        for _ in range(20):
            told = int(doomed.stdout.readline())
        os.kill(doomed.pid, signal.SIGKILL)
        assert steady.wait(60) == 0
    finally:
        for process in (steady, doomed):
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
    stored, lines = SqliteMemoryIndex(tmp_path / "index.db", HashedEmbedder()), JsonlMemory(tmp_path / "m.jsonl")
    for ids in (await stored.ids(), await lines.ids()):
        numbers = {int(id.removeprefix("m")) for id in ids}
        assert numbers >= set(range(90)) | set(range(3_000, 3 * told + 3))
        assert all(number // 3 * 3 + place in numbers for number in numbers for place in range(3))
    assert await stored.ids() <= await lines.ids()
    assert len((await stored.recall(ask())).found) == 10


@pytest.mark.soak
async def test_a_hundred_thousand_memories(tmp_path: Path) -> None:
    index = SqliteMemoryIndex(tmp_path / "index.db", HashedEmbedder())
    every = [record(number, f"{PHRASES[number % 6]}; case {number}", NOW - number) for number in range(100_000)]
    await index.add(every)
    again = SqliteMemoryIndex(tmp_path / "index.db", HashedEmbedder())
    assert len(await again.ids()) == 100_000
    assert (await again.recall(ask(f"{PHRASES[3]}; case 77775"))).found[0].id == "m77775"
    await again.remove("m77775")
    assert "m77775" not in {found.id for found in (await index.recall(ask(f"{PHRASES[3]}; case 77775"))).found}
