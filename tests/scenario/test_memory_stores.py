"""A home whose store of memories is changed: the new one catches up from the journal, or says what is missing."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from pathlib import Path

import pytest
from pydantic import SecretStr

from tests.paths import CHECKOUT
from tests.wire.post_mortems import CALM, CROWDED, post_mortem
from zuno.adapters.memory import milvus
from zuno.adapters.memory.hashed import HashedEmbedder
from zuno.adapters.memory.jsonl import JsonlMemory
from zuno.adapters.memory.lightrag import LightRagMemoryIndex
from zuno.adapters.memory.milvus import MilvusMemoryIndex, release_milvus
from zuno.adapters.memory.sqlite import SqliteMemoryIndex
from zuno.doors.cli.main import run
from zuno.journal.port import Author
from zuno.kernel.errors import Broken, Unavailable, UsageError
from zuno.kernel.units import Millis
from zuno.settings import Settings, read_settings
from zuno.trading.agents.learned import read_memories
from zuno.trading.learn.memory_book import MemoryBook, MemoryIndexes, memory_record, update_index
from zuno.trading.model.memory import (
    MEMORY_FORGOTTEN,
    POST_MORTEM,
    RAG,
    MemoryForgotten,
    MemoryRecord,
    NewsSlot,
    PostMortem,
    RecallQuery,
)
from zuno.trading.ports.recall import MemoryIndex
from zuno.trading.run.record import load_bundle
from zuno.wiring.application import Application
from zuno.wiring.memory import memory_file

STORES = ("sqlite", "milvus", "lightrag")
DEAD = SecretStr("http://127.0.0.1:9")


def require(*stores: str) -> None:
    if {"milvus", "lightrag"} & set(stores):
        pytest.importorskip("pymilvus", reason="pymilvus is not installed: make milvus")
        pytest.importorskip("milvus_lite", reason="milvus-lite is not installed: make milvus")
    if "lightrag" in stores:
        pytest.importorskip("lightrag", reason="lightrag-hku is not installed: make lightrag")


async def write(home: Path, written: Sequence[PostMortem]) -> None:
    zuno = Application(Settings(home=home))
    journal = await zuno._open_journal()
    for each in written:
        await journal.append_once(kind=POST_MORTEM, author=Author("rules"), payload=each, request_id=each.id)
    await zuno.close()


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Application]:
    """A home with the journal of 26 closed trades, half of them alike."""
    await write(tmp_path, [post_mortem(n, CROWDED if n % 2 else CALM) for n in range(1, 27)])
    zuno = Application(Settings(home=tmp_path))
    yield zuno
    await zuno.close()


def open_store(store: str, folder: Path) -> MemoryIndex:
    match store:
        case "milvus":
            return MilvusMemoryIndex(str(folder / "milvus.db"), HashedEmbedder())
        case "lightrag":
            return LightRagMemoryIndex(folder / "graph", HashedEmbedder())
    return SqliteMemoryIndex(folder / "index.db", HashedEmbedder())


def ask() -> RecallQuery:
    last = post_mortem(26)
    return RecallQuery(text=CROWDED, origin=last.origin, before=Millis(last.closed + 1), limit=13)


@pytest.mark.slow
def test_a_home_that_changes_its_store_finds_the_same_memories(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    require(*STORES)
    asyncio.run(write(tmp_path, [post_mortem(n, CROWDED if n % 2 else CALM) for n in range(1, 27)]))
    alike = {f"pm_{n:04d}" for n in range(1, 27, 2)}

    def zuno(store: str, *words: str, best: int = 13) -> tuple[str, set[str], list[str]]:
        """Who answered, the best of what was found, and what stood on stderr."""
        settings = Settings(home=tmp_path, memory_store=store)
        assert run(("memory", *words, "--json"), lambda _: Application(settings)) == 0
        out, err = capfd.readouterr()
        found = json.loads(out)
        return found.get("source", ""), {each["id"] for each in found.get("memories", ())[:best]}, err.splitlines()

    search = ("search", CROWDED, "--lines", "13")
    for store in STORES:
        source, found, told = zuno(store, *search)
        assert (source, found) == (store, alike)
        assert told == [f"memory: {done} of 26 taken into {store}" for done in (10, 20, 26)], "and not a line beside it"
        assert zuno(store, *search) == (store, alike, [])
    zuno("lightrag", "forget", "pm_0003")
    for store in (*STORES[::-1], "sqlite"):
        assert zuno(store, *search, best=12)[:2] == (store, alike - {"pm_0003"}), "what shares a word comes behind"


@pytest.mark.soak(every=3)
@pytest.mark.slow
@pytest.mark.parametrize("store", STORES)
async def test_a_store_that_was_killed_while_it_caught_up_goes_on(opened: Application, store: str) -> None:
    require(store)
    home = opened.place().home
    command = [sys.executable, "-c", CATCH_UP, str(home), store]
    killed = await asyncio.to_thread(subprocess.run, command, cwd=CHECKOUT, capture_output=True, check=False)
    assert (killed.returncode, killed.stderr) == (-9, b"")
    index, steps = open_store(store, home / "memory"), []
    assert len(await index.ids()) == 10
    book = MemoryBook(opened._read_journal)
    indexes = MemoryIndexes(book, [index], lambda name, done, total: steps.append((name, done, total)))
    answer = await indexes.recall(ask())
    assert (len(answer.found), answer.note) == (13, "")
    assert steps == [(store, 10, 16), (store, 16, 16)], "what was in stayed"
    assert await index.ids() == set(await book.read())
    await indexes.recall(ask())
    assert len(steps) == 2


CATCH_UP = """
import asyncio, os, signal, sys
from pathlib import Path
from tests.scenario.test_memory_stores import open_store
from zuno.settings import Settings
from zuno.trading.learn.memory_book import MemoryBook, update_index
from zuno.wiring.application import Application

async def main(home, store):
    book = MemoryBook(Application(Settings(home=home))._read_journal)
    await update_index(book, open_store(store, home / "memory"), lambda *told: os.kill(os.getpid(), signal.SIGKILL))

asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
"""


@pytest.mark.slow
async def test_cycles_recall_from_whatever_store_is_set_and_say_what_is_missing(
    invented: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    require(*STORES)

    async def cycle(settings: Settings) -> tuple[tuple[str, str, int], NewsSlot]:
        zuno = Application(settings)
        outcome = await zuno.cycles().run("BTCUSDT", chart=False)
        bundle = await load_bundle(await zuno._open_journal(), outcome.bundle)
        await zuno.close()
        recalled, news = read_memories(bundle), next(slot for slot in bundle.slots if slot.name == RAG)
        assert recalled is not None
        setups.append((recalled.setup, outcome.origin, outcome.as_of))
        told = NewsSlot.model_validate_json(json.dumps(news.content))
        return (recalled.source, recalled.note, len(recalled.memories)), told

    setups: list[tuple[str, str, int]] = []
    memory, first = await cycle(Settings(home=invented))
    assert memory == ("sqlite", "", 0)
    setup, origin, moment = setups[0]
    day = (moment - post_mortem(0, day=0).closed) / 86_400_000
    await write(invented, [post_mortem(n, setup, origin=origin, day=day - n) for n in range(1, 13)])
    for store in STORES:
        capfd.readouterr()
        memory, news = await cycle(Settings(home=invented, memory_store=store))
        assert memory == (store, "", 3)
        assert (news.source, news.note) == (store, ""), "news are in the same store"
        assert news.stories, "in a graph they are ranked by what is related to them, too"
        assert store == "lightrag" or news.stories == first.stories
        assert capfd.readouterr().err.splitlines() == [f"memory: {done} of 12 taken into {store}" for done in (10, 12)]
    for store in ("milvus", "lightrag"):
        down = Settings(home=invented, memory_store=store, memory_url=DEAD)
        (source, note, count), news = await cycle(down)
        assert (source, count) == ("recent3", 3)
        assert note.startswith(f"{store}: ")
        assert (news.source, news.stories) == ("none", ())
        assert news.note


@pytest.mark.slow
@pytest.mark.parametrize(("store", "library"), [("milvus", "pymilvus"), ("lightrag", "lightrag")])
async def test_a_store_that_is_not_installed_is_named(
    opened: Application, store: str, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = opened.place().home
    await memory_file(home).add(
        [memory_record(each) for each in (await MemoryBook(opened._read_journal).read()).values()]
    )
    monkeypatch.setitem(sys.modules, library, None)
    chosen = Application(Settings(home=home, memory_store=store))
    found = await chosen.memory().search(CROWDED, 3)
    await chosen.close()
    assert (found.source, len(found.memories)) == ("recent3", 3)
    assert "not installed" in found.note
    assert f"`make {store}`" in found.note


class Refusing(JsonlMemory):
    """A store that takes nothing more in."""

    async def add(self, records: object) -> None:
        raise Unavailable("the disk is full")


@pytest.mark.slow
async def test_what_a_store_could_not_take_in_is_said(opened: Application, tmp_path: Path) -> None:
    index = Refusing(tmp_path / "lines.jsonl")
    answer = await MemoryIndexes(MemoryBook(opened._read_journal), [index]).recall(ask())
    assert answer.found == ()
    assert "26" in answer.note
    assert "the disk is full" in answer.note


@pytest.mark.slow
async def test_an_index_of_another_journal_is_made_anew(opened: Application, tmp_path: Path) -> None:
    """Nothing that the journal holds is taken for removed, now or later."""
    index = SqliteMemoryIndex(tmp_path / "index.db", HashedEmbedder())
    strange = memory_record(post_mortem(99))
    await index.add([strange])
    await index.remove("pm_0001")
    book = MemoryBook(opened._read_journal)
    await update_index(book, index)
    assert await index.ids() == set(await book.read())
    await index.remove("pm_0001")
    await index.add([memory_record((await book.read())["pm_0001"])])
    await update_index(book, index)
    assert await index.ids() == set(await book.read()), "it was taken out by nobody who may"


class OtherEmbedder:
    name, dimension, duplicate = "other", 16, 0.9
    answers = True

    async def embed(self, texts: Sequence[str]) -> Sequence[bytes]:
        if not self.answers:
            raise Unavailable("no answer")
        return [bytes([len(text) % 100 + 1] * 16) for text in texts]


@pytest.mark.slow
async def test_another_embedding_is_caught_up_and_costs_nothing_while_it_does_not_answer(
    opened: Application, tmp_path: Path
) -> None:
    path, book, other = tmp_path / "index.db", MemoryBook(opened._read_journal), OtherEmbedder()
    await update_index(book, SqliteMemoryIndex(path, HashedEmbedder()))
    other.answers = False
    assert await MemoryIndexes(book, [SqliteMemoryIndex(path, other)]).update()
    assert len(await SqliteMemoryIndex(path, HashedEmbedder()).ids()) == 26
    other.answers = True
    assert await MemoryIndexes(book, [SqliteMemoryIndex(path, other)]).update() == ()
    assert len(await SqliteMemoryIndex(path, other).ids()) == 26


@pytest.mark.soak(every=4)
@pytest.mark.slow
@pytest.mark.parametrize("damage", ["schema.json", "*.parquet", "*.idx", ""])
async def test_a_damaged_milvus_in_the_home_is_made_anew(opened: Application, damage: str) -> None:
    require("milvus")
    place = opened.place().home / "memory" / "milvus.db"
    index = MilvusMemoryIndex(str(place), HashedEmbedder())
    await update_index(MemoryBook(opened._read_journal), index)
    release_milvus(str(place))
    if damage:
        for file in place.rglob(damage):
            file.write_bytes(b"torn" * 20)
    else:
        place.rename(place.with_suffix(".old"))
        place.write_text("no store")
    index = MilvusMemoryIndex(str(place), HashedEmbedder())
    with pytest.raises(Broken):
        await index.ids()
    assert len((await MemoryIndexes(MemoryBook(opened._read_journal), [index]).recall(ask())).found) == 13


@pytest.mark.slow
async def test_a_milvus_that_another_process_has_open_is_left_alone(tmp_path: Path) -> None:
    require("milvus")
    place = tmp_path / "milvus.db"
    place.mkdir()
    with (place / "LOCK").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for act in (lambda index: index.ids(), lambda index: index.rebuild([])):
            with pytest.raises(Unavailable, match="ZUNO_MEMORY_URL"):
                await act(MilvusMemoryIndex(str(place), HashedEmbedder()))
    assert await MilvusMemoryIndex(str(place), HashedEmbedder()).ids() == frozenset()


@pytest.mark.slow
async def test_lightrag_keeps_its_vectors_in_milvus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require("lightrag")
    from pymilvus import MilvusClient

    monkeypatch.setenv("MILVUS_URI", "http://127.0.0.1:9")  # somebody else's
    index = LightRagMemoryIndex(tmp_path / "graph", HashedEmbedder())
    await index.add([memory_record(post_mortem(n)) for n in range(1, 8)])
    client = MilvusClient(str(tmp_path / "graph" / "milvus.db"))
    names = client.list_collections()
    (chunks,) = (name for name in names if name.endswith("_chunks"))
    assert len(names) == 3
    client.load_collection(chunks)
    assert len(client.query(chunks, filter="", limit=100, output_fields=["id"])) == 7
    client.close()
    release_milvus(str(tmp_path / "graph" / "milvus.db"))
    assert not list((tmp_path / "graph").rglob("vdb_*.json"))
    for folder in (tmp_path / "graph" / "milvus.db").rglob("*_chunks"):
        for file in folder.rglob("*"):
            if file.is_file():
                file.write_bytes(b"torn")
    with pytest.raises((Broken, Unavailable)):
        await LightRagMemoryIndex(tmp_path / "graph", HashedEmbedder()).ids()


@pytest.mark.soak
async def test_without_milvus_lightrag_keeps_files_and_with_it_later_they_are_made_anew(
    opened: Application, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    require("lightrag")
    book, folder = MemoryBook(opened._read_journal), tmp_path / "graph"
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "milvus_lite", None)
        alone = LightRagMemoryIndex(folder, HashedEmbedder())
        await update_index(book, alone)
        assert len((await alone.recall(ask())).found) == 13
    assert capfd.readouterr().err == ""
    assert not (folder / "milvus.db").exists()
    later = LightRagMemoryIndex(folder, HashedEmbedder())
    with pytest.raises(Broken):
        await later.ids()
    assert len((await MemoryIndexes(book, [later]).recall(ask())).found) == 13


def test_a_store_that_nobody_knows_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZUNO_MEMORY_STORE", "redis")
    with pytest.raises(UsageError, match="ZUNO_MEMORY_STORE"):
        read_settings(os.environ, tmp_path)


SERVE = """
import sys, time
from milvus_lite.adapter.grpc.server import start_server_in_thread
served = start_server_in_thread(data_dir=sys.argv[1], host="127.0.0.1", port=0)
print(served[2], flush=True)
time.sleep(300)
"""


@pytest.mark.soak
async def test_a_server_that_hangs_is_down_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require("lightrag")
    monkeypatch.setattr(milvus, "_TIMEOUT", 4.0)
    command = [sys.executable, "-c", SERVE, str(tmp_path / "server")]
    with await asyncio.to_thread(
        subprocess.Popen, command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as server:
        assert server.stdout is not None
        try:
            url = f"http://127.0.0.1:{int(await asyncio.to_thread(server.stdout.readline))}"
            graph = LightRagMemoryIndex(tmp_path / "graph", HashedEmbedder(), server=(url, ""), prefix="graph")
            stores: list[MemoryIndex] = [MilvusMemoryIndex(url, HashedEmbedder()), graph]
            for index in stores:
                await index.add([memory_record(post_mortem(n, CROWDED)) for n in (1, 2)])
                assert [each.similarity for each in (await index.recall(ask())).found] == [1.0, 1.0], index.name
            server.send_signal(signal.SIGSTOP)
            graph._loaded = None
            for index in stores:
                with pytest.raises(Unavailable):
                    await asyncio.wait_for(index.ids(), 30)
            server.send_signal(signal.SIGCONT)
            for index in stores:
                assert len(await index.ids()) == 2
        finally:
            server.kill()


class Forgetting(JsonlMemory):
    """A store whose home forgets a memory, in another process, while this one hands it over."""

    def __init__(self, path: Path, forget: Callable[[], Awaitable[object]]) -> None:
        super().__init__(path)
        self._forget = forget
        self.rebuilt = 0

    async def add(self, records: Sequence[MemoryRecord]) -> None:
        await super().add(records)
        await self._forget()
        await self.remove("pm_0002")

    async def rebuild(self, records: Sequence[MemoryRecord], removed: Collection[str] = ()) -> None:
        self.rebuilt += 1
        await super().rebuild(records, removed)


async def test_what_is_forgotten_during_a_catch_up_is_no_damage(opened: Application, tmp_path: Path) -> None:
    async def forget() -> object:
        payload = MemoryForgotten(id="pm_0002")
        journal = await opened._open_journal()
        return await journal.append_once(
            kind=MEMORY_FORGOTTEN, author=Author("owner"), payload=payload, request_id="pm_0002"
        )

    index = Forgetting(tmp_path / "lines.jsonl", forget)
    book = MemoryBook(opened._read_journal)
    assert await MemoryIndexes(book, [index]).update() == ()
    assert index.rebuilt == 0
    assert await index.ids() == set(await book.read())
    assert "pm_0002" not in await index.ids()


@pytest.mark.soak
async def test_homes_share_a_server_and_keep_to_themselves(tmp_path: Path) -> None:
    require("lightrag")
    from milvus_lite.adapter.grpc.server import start_server_in_thread

    server, database, port = start_server_in_thread(data_dir=str(tmp_path / "server"), host="127.0.0.1", port=0)
    try:
        for home, count in ((tmp_path / "one", 5), (tmp_path / "other", 7), (tmp_path / "one", 5)):
            home.mkdir(exist_ok=True)
            await write(home, [post_mortem(n) for n in range(1, count + 1)])
            for store in ("milvus", "lightrag"):
                url = SecretStr(f"http://127.0.0.1:{port}")
                zuno = Application(Settings(home=home, memory_store=store, memory_url=url))
                found = await zuno.memory().search(CROWDED, 20)
                await zuno.close()
                assert (found.source, found.note, len(found.memories)) == (store, "", count)
            assert not list((home / "memory").rglob("milvus.db"))
    finally:
        server.stop(grace=0)
        database.close()
