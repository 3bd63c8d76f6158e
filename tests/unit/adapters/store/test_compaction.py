"""Compaction of a home's journal: what it moves, and what a kill, a full disk, damage or another writer leaves."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.unit.journal.test_blocks import bundle, rows
from zuno.adapters.file_lock import compaction_lock
from zuno.adapters.home_files import copy_files, measure_home
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.store import table_store
from zuno.adapters.store.sqlite import SqliteTables, open_sqlite
from zuno.adapters.store.table_store import Archive
from zuno.journal.blocks import ArchiveMissing
from zuno.journal.compaction import CompactionView, HomeCompaction
from zuno.journal.journal import ChainedJournal, Verdict
from zuno.journal.port import Author
from zuno.kernel.canonical import Digest, digest
from zuno.kernel.errors import Broken, DiskFull, Refused
from zuno.kernel.units import Millis, Seconds
from zuno.wiring.disk_budget import keep_within_budget

DAY_MS = 86_400_000
BEGAN = 1_767_225_600_000
"""2026-01-01. One cycle a day is written from here on."""
CYCLES = 40
MONEY = "plan_approved"
IN_ARCHIVE = "instr(content, CAST('bundles-2026' AS BLOB))"
BUNDLES = [bundle(rows(4 * day, 400), note=f"cycle {day}") for day in range(CYCLES)]
APPROVED = b"what the owner approved " * 20
ORPHAN = b"nobody has named this yet " * 20


class Desk:
    """A journal by a clock that is set."""

    def __init__(self, home: Path, at: int = BEGAN + CYCLES * DAY_MS) -> None:
        self.home, self.at = home, at
        self.store = open_sqlite(home)
        key = KeyFile(home / "keys" / "node.key")
        self.journal = ChainedJournal(self.store, key, code=lambda: "test", now=lambda: Millis(self.at))

    def compaction(self) -> HomeCompaction:
        return HomeCompaction(
            journal=self.journal,
            store=self.store,
            lock=lambda: compaction_lock(self.home),
            measure=lambda: measure_home(self.home),
            now=lambda: Millis(self.at),
            keep=(MONEY,),
        )

    async def close(self) -> None:
        await self.journal.close()


async def write_old_home(home: Path) -> None:
    """As written before there were blocks: a bundle is its own bytes. Cycles name theirs in the payload."""
    desk = Desk(home, BEGAN)
    for number, content in enumerate(BUNDLES):
        name = await desk.journal.put_bundle(content)
        await desk.journal.append(kind="cycle", author=Author("trading"), payload={"bundle": name, "n": number})
        desk.at += DAY_MS
    desk.at = BEGAN
    approved = await desk.journal.put_bundle(APPROVED)
    await desk.journal.append(kind=MONEY, author=Author("owner"), payload={}, bundle=approved)
    await desk.journal.put_bundle(ORPHAN)
    await desk.close()
    with closing(sqlite3.connect(home / "journal.db")) as database, database:
        for content in (*BUNDLES, APPROVED, ORPHAN):
            database.execute("UPDATE bundles SET content = ? WHERE hash = ?", (content, digest(content)))
        database.execute("DROP TABLE blocks")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("old")
    asyncio.run(write_old_home(home))
    return home


@pytest.fixture
def home(template: Path, tmp_path: Path) -> Path:
    return shutil.copytree(template, tmp_path / "home")


async def verify(home: Path) -> Verdict:
    desk = Desk(home)
    try:
        for content in (*BUNDLES, APPROVED, ORPHAN):
            assert await desk.journal.bundle(digest(content)) == content
        return await desk.journal.verify()
    finally:
        await desk.close()


async def compact(home: Path, days: int | None = 20) -> CompactionView:
    desk = Desk(home)
    try:
        return await desk.compaction().compact(None if days is None else Seconds(days * 86_400))
    finally:
        await desk.close()


def query(home: Path, statement: str, *values: Any, file: str = "journal.db") -> list[Any]:
    connection = sqlite3.connect(home / file, isolation_level=None)
    try:
        return connection.execute(statement, values).fetchall()
    finally:
        connection.close()


async def test_an_old_home_is_read_as_it_is_and_converted(home: Path) -> None:
    assert (await verify(home)).ok
    size = (home / "journal.db").stat().st_size
    view = await compact(home, None)
    assert (view.converted, view.archived, view.files) == (CYCLES + 2, 0, ())
    assert (home / "journal.db").stat().st_size < size / 4
    assert view.after_bytes < view.before_bytes / 3
    assert (await verify(home)).ok
    again = await compact(home, None)
    assert (again.converted, again.archived) == (0, 0)


async def test_old_bundles_go_to_a_file_of_their_month_and_are_read_there(home: Path) -> None:
    view = await compact(home, 5)
    assert view.archived == CYCLES - 5
    assert view.files == ("bundles-2026-01.db", "bundles-2026-02.db")
    verdict = await verify(home)
    assert (verdict.ok, verdict.notes) == (True, ())
    assert sorted(path.name for path in (home / "archive").iterdir()) == list(view.files)
    assert (home / "archive").stat().st_mode & 0o077 == 0
    names = {name for (name,) in query(home, f"SELECT hash FROM bundles WHERE {IN_ARCHIVE}")}
    assert names == {digest(content) for content in BUNDLES[:-5]}, "what money was approved for stays, and what is new"
    later = Desk(home, BEGAN + (CYCLES + 30) * DAY_MS)
    assert (await later.compaction().compact(Seconds(5 * 86_400))).archived == 5
    assert query(home, "SELECT count(*) FROM blocks") == [(2,)]
    assert await later.journal.put_bundle(BUNDLES[0]) == digest(BUNDLES[0])
    await later.close()
    assert (await verify(home)).ok


async def test_a_missing_archive_file_is_named_and_the_journal_is_not_broken(home: Path) -> None:
    await compact(home)
    file = home / "archive" / "bundles-2026-01.db"
    file.rename(home / "elsewhere")
    desk = Desk(home)
    verdict = await desk.journal.verify()
    assert verdict.ok
    assert [note.split()[0] for note in verdict.notes] == ["archive/bundles-2026-01.db"]
    with pytest.raises(ArchiveMissing) as missing:
        await desk.journal.bundle(digest(BUNDLES[0]))
    assert missing.value.file == "bundles-2026-01.db"
    with pytest.raises(ArchiveMissing):  # a second file of that name would take the first one's place, or lose to it
        await desk.compaction().compact(Seconds(10 * 86_400))
    await desk.close()
    assert not file.exists()
    os.replace(home / "elsewhere", file)
    assert (await compact(home, 10)).archived == 10
    assert (await verify(home)).ok


@pytest.mark.parametrize("keep", [0.0, 0.3, 0.9])
async def test_a_cut_archive_is_broken_by_its_name(home: Path, keep: float) -> None:
    await compact(home)
    file = home / "archive" / "bundles-2026-01.db"
    file.write_bytes(file.read_bytes()[: int(file.stat().st_size * keep)])
    desk = Desk(home)
    verdict = await desk.journal.verify()
    assert verdict.fault is not None
    assert "bundles-2026-01.db" in verdict.fault.reason
    assert verdict.entries == CYCLES + 1
    with pytest.raises(Broken):
        await desk.compaction().compact(None)
    await desk.close()


@pytest.mark.parametrize("place", ["journal.db", "archive/bundles-2026-01.db"])
@pytest.mark.parametrize(
    "statement", ["UPDATE blocks SET content = ? WHERE id = 3", "DELETE FROM blocks WHERE id != ?"]
)
async def test_a_changed_block_is_found_and_its_first_entry_named(home: Path, place: str, statement: str) -> None:
    await compact(home, None if place == "journal.db" else 20)
    query(home, statement, b"other bytes", file=place)
    desk = Desk(home)
    verdict = await desk.journal.verify()
    assert verdict.fault is not None
    if place == "journal.db":
        assert verdict.fault.seq is not None
        assert 1 <= verdict.fault.seq <= CYCLES + 1
    else:
        assert "bundles-2026-01.db" in verdict.fault.reason
    with pytest.raises(Broken):
        await desk.compaction().compact(Seconds(0))
    await desk.close()


STEPS: dict[str, tuple[type, str, int]] = {
    "blocks": (SqliteTables, "put_blocks", 20),
    "recipes": (SqliteTables, "store", 2),
    "archive": (Archive, "put", 1),
    "archive again": (Archive, "put", 2),
    "pointers": (SqliteTables, "store", 7),
    "unused blocks and vacuum": (SqliteTables, "shrink", 1),
}
"""By the method that is killed and at which of its calls."""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", STEPS)
async def test_a_kill_at_any_step_loses_nothing_and_the_next_goes_on(home: Path, step: str, when: str) -> None:
    owner, method, fatal = STEPS[step]
    act, calls = getattr(owner, method), 0

    def dying(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        result = act(*arguments, **named) if when == "after" or calls != fatal else None
        if calls == fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    end_in_child(lambda: setattr(owner, method, dying), home)
    assert (await verify(home)).ok
    await compact(home)
    assert (await verify(home)).ok
    assert len(query(home, f"SELECT 1 FROM bundles WHERE {IN_ARCHIVE}")) == CYCLES - 20
    assert query(home, "PRAGMA freelist_count")[0][0] < 20


def end_in_child(prepare: Callable[[], None], home: Path) -> None:
    """Run a compaction in a process of its own, which must be killed by what was prepared."""
    child = os.fork()
    if not child:
        try:
            prepare()
            thread = threading.Thread(target=lambda: asyncio.run(compact(home)))
            thread.start()
            thread.join()
        finally:
            os._exit(3)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL


HALF_A_WRITE = """
import os, signal, sqlite3, sys
archive = sqlite3.connect(sys.argv[1], isolation_level=None)
archive.execute("PRAGMA cache_size = 2")  # pages go to the file before the end
archive.execute("BEGIN IMMEDIATE")
archive.execute("UPDATE blocks SET content = zeroblob(9000)")
os.kill(os.getpid(), signal.SIGKILL)
"""


def leave_half_a_write(file: Path) -> None:
    subprocess.run([sys.executable, "-c", HALF_A_WRITE, file], check=False)
    assert file.with_name(f"{file.name}-journal").stat().st_size


async def test_half_a_write_to_an_archive_file_is_undone_by_whoever_reads_it(home: Path, tmp_path: Path) -> None:
    await compact(home)
    name = "archive/bundles-2026-01.db"
    half, copied = tmp_path / "half", tmp_path / "copied"
    leave_half_a_write(home / name)
    shutil.copytree(home, half)
    assert list(copy_files(half, copied, [name])) == [name]
    assert (await verify(home)).ok
    shutil.copy(copied / name, home / name)
    assert (await verify(home)).ok
    assert (await compact(home, 10)).archived == 10


@pytest.mark.parametrize("file", ["journal.db", "bundles-2026-01.db"])
async def test_a_full_disk_stops_it_and_nothing_is_lost(home: Path, monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    connect = SqliteTables._connect

    def full(tables: SqliteTables, mode: str) -> sqlite3.Connection:
        connection = connect(tables, mode)
        if tables._path.name == file:
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
            connection.execute(f"PRAGMA max_page_count = {max(pages, 12)}")
        return connection

    with monkeypatch.context() as patched:
        patched.setattr(SqliteTables, "_connect", full)
        if file == "journal.db":
            query(home, "VACUUM")
            names = [digest(content) for content in BUNDLES]
            desk = Desk(home)
            with pytest.raises(DiskFull):
                await desk.store.convert_bundles(names)
            await desk.close()
        else:
            with pytest.raises(DiskFull):
                await compact(home)
    assert (await verify(home)).ok
    await compact(home)
    assert (await verify(home)).ok


async def test_numbers_of_blocks_that_are_given_anew_amid_a_verification_break_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, other = Desk(home), Desk(home)
    await desk.compaction().compact(None)
    read_bundles, new = desk.store.read_bundles, [bundle(rows(9_000 + 400 * n, 400), note=str(n)) for n in range(20)]

    async def read_and_compact() -> Any:
        compacted = False
        async for item in read_bundles():
            yield item
            if not compacted and item[0] > "8":
                compacted = True
                names = [digest(content) for content in (*BUNDLES, APPROVED, ORPHAN)]
                await other.store.archive_bundles("bundles-2026-01.db", names)
                await other.store.shrink()
                for content in new:
                    await other.journal.put_bundle(content)

    monkeypatch.setattr(desk.store, "read_bundles", read_and_compact)
    monkeypatch.setattr(table_store, "PAGE", 1)
    assert (await desk.journal.verify()).fault is None
    await desk.close()
    await other.close()


async def test_others_write_and_read_while_it_runs(home: Path) -> None:
    other, stop = Desk(home), asyncio.Event()
    done = 0

    async def work() -> None:
        nonlocal done
        while not stop.is_set():
            content = bundle(rows(4 * CYCLES + done, 500), note=f"new {done}")
            name = await other.journal.put_bundle(content)
            await other.journal.append(kind="cycle", author=Author("trading"), payload={"bundle": name})
            assert await other.journal.bundle(digest(BUNDLES[done % CYCLES])) == BUNDLES[done % CYCLES]
            assert await other.journal.bundle(name) == content
            done += 1

    writing = asyncio.create_task(work())
    view = await compact(home)
    stop.set()
    await writing
    await other.close()
    assert view.archived == CYCLES - 20
    assert done > 2
    verdict = await verify(home)
    assert (verdict.ok, verdict.entries) == (True, CYCLES + 1 + done)


async def test_one_compaction_at_a_time(home: Path) -> None:
    with compaction_lock(home), pytest.raises(Refused):
        await compact(home)


async def test_a_damaged_journal_is_not_touched(home: Path) -> None:
    query(home, "UPDATE bundles SET content = ? WHERE hash = ?", b"other", Digest(digest(BUNDLES[3])))
    before = (home / "journal.db").read_bytes()
    with pytest.raises(Broken):
        await compact(home)
    assert (home / "journal.db").read_bytes() == before
    assert not (home / "archive").exists()


async def test_a_budget_warns_then_archives_the_oldest_and_never_what_is_young(home: Path) -> None:
    desk = Desk(home)
    try:
        care = desk.compaction()
        used = measure_home(home)
        assert await keep_within_budget(2 * used, care) is None
        near = await keep_within_budget(int(used * 1.1), care)
        assert near is not None
        assert (near.severity.value, (home / "archive").exists()) == ("warning", False)
        blocks = await keep_within_budget(used // 2, care)
        assert blocks is not None
        assert (blocks.severity.value, measure_home(home) < used // 2) == ("warning", True)
        over = await keep_within_budget(1_000, care)
        assert over is not None
        assert over.severity.value == "critical"
        kept = query(home, f"SELECT hash FROM bundles WHERE NOT {IN_ARCHIVE}")
        young = {digest(content) for content in (*BUNDLES[-7:], APPROVED, ORPHAN)}
        assert {name for (name,) in kept} == young
        (home / "archive" / "large").write_bytes(bytes(10_000_000))
        assert measure_home(home) < 10_000_000, "the archive does not count"
    finally:
        await desk.close()
