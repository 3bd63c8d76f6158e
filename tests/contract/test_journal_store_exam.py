"""One exam for every store a journal can be kept in: memory, SQLite, Postgres."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import pytest

from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.store.memory import MemoryStore
from zuno.adapters.store.sqlite import open_sqlite
from zuno.adapters.store.table_store import TableStore
from zuno.journal.blocks import ArchiveMissing
from zuno.journal.chain import EntryRecord
from zuno.journal.journal import ChainedJournal
from zuno.journal.port import Author, DamagedRow, Entry, EntryFilter, JournalStore, Link, Row, Tail
from zuno.kernel.canonical import Digest, canonical, digest
from zuno.kernel.errors import Broken, Unavailable
from zuno.kernel.units import Millis

HEAD = b"{}\n"


class Desk(Protocol):
    """A store to be examined, and the hands of somebody who should not touch it."""

    def open(self) -> JournalStore:
        """Another handle on the same journal, as another process would hold."""
        ...

    def change(self, seq: int, column: str, value: Any) -> None: ...

    def remove(self, seq: int) -> None: ...

    def change_bundle(self, name: str, content: bytes) -> None: ...

    def remove_bundle(self, name: str) -> None: ...

    def leave_head(self, head: bytes | None) -> None: ...


class MemoryDesk:
    def __init__(self) -> None:
        self._store = MemoryStore()

    def open(self) -> JournalStore:
        return self._store

    def change(self, seq: int, column: str, value: Any) -> None:
        row = self._store.kept.pop(seq)
        assert isinstance(row, Row)
        changed = replace(row, **{column: value})
        self._store.kept[changed.seq] = changed

    def remove(self, seq: int) -> None:
        del self._store.kept[seq]

    def change_bundle(self, name: str, content: bytes) -> None:
        self._store.bundles[name] = content

    def remove_bundle(self, name: str) -> None:
        del self._store.bundles[name]

    def leave_head(self, head: bytes | None) -> None:
        self._store.head = head


class _Filed:
    def __init__(self, head: Path) -> None:
        self._head = head

    def leave_head(self, head: bytes | None) -> None:
        if head is None:
            self._head.unlink()
        else:
            self._head.write_bytes(head)


class SqliteDesk(_Filed):
    def __init__(self, home: Path) -> None:
        super().__init__(home / "journal.head")
        self._home = home

    def open(self) -> JournalStore:
        return open_sqlite(self._home)

    def change(self, seq: int, column: str, value: Any) -> None:
        self._run(f"UPDATE entries SET {column} = ? WHERE seq = ?", value, seq)

    def remove(self, seq: int) -> None:
        self._run("DELETE FROM entries WHERE seq = ?", seq)

    def change_bundle(self, name: str, content: bytes) -> None:
        self._run("UPDATE bundles SET content = ? WHERE hash = ?", content, name)

    def remove_bundle(self, name: str) -> None:
        self._run("DELETE FROM bundles WHERE hash = ?", name)

    def _run(self, statement: str, *values: Any) -> None:
        connection = sqlite3.connect(self._home / "journal.db", isolation_level=None)
        try:
            assert connection.execute(statement, values).rowcount == 1
        finally:
            connection.close()


class PostgresDesk(_Filed):
    def __init__(self, url: str, home: Path, key: KeyFile) -> None:
        super().__init__(home / "journal-postgres.head")
        self._url, self._home, self._key = url, home, key

    def open(self) -> JournalStore:
        from zuno.adapters.store.postgres import open_postgres

        return open_postgres(self._url, self._home, self._key)

    def change(self, seq: int, column: str, value: Any) -> None:
        self._run(f"UPDATE zuno.entries SET {column} = %s WHERE node = %s AND seq = %s", value, self._key.public, seq)

    def remove(self, seq: int) -> None:
        self._run("DELETE FROM zuno.entries WHERE node = %s AND seq = %s", self._key.public, seq)

    def change_bundle(self, name: str, content: bytes) -> None:
        self._run("UPDATE zuno.bundles SET content = %s WHERE node = %s AND hash = %s", content, self._key.public, name)

    def remove_bundle(self, name: str) -> None:
        self._run("DELETE FROM zuno.bundles WHERE node = %s AND hash = %s", self._key.public, name)

    def _run(self, statement: Any, *values: Any) -> None:
        import psycopg

        with psycopg.connect(self._url, autocommit=True) as connection:
            assert connection.execute(statement, values).rowcount == 1


@pytest.fixture
def key(home: Path) -> KeyFile:
    home.mkdir()
    return KeyFile(home / "keys" / "node.key")


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def desk(request: pytest.FixtureRequest, home: Path, key: KeyFile) -> Desk:
    if request.param == "memory":
        return MemoryDesk()
    if request.param == "sqlite":
        return SqliteDesk(home)
    return PostgresDesk(request.getfixturevalue("postgres"), home, key)


@pytest.fixture
async def store(desk: Desk, key: KeyFile) -> AsyncIterator[JournalStore]:
    key.ensure()
    opened = desk.open()
    yield opened
    await opened.close()


@pytest.fixture
async def journal(desk: Desk, key: KeyFile) -> AsyncIterator[ChainedJournal]:
    opened = chained(desk.open(), key)
    yield opened
    await opened.close()


def chained(store: JournalStore, key: KeyFile) -> ChainedJournal:
    return ChainedJournal(store, key, code=lambda: "test", now=lambda: Millis(1_700_000_000_000))


def link(seq: int, request_id: str | None = "req_1", kind: str = "said") -> Link:
    row = Row(seq, 1_000 + seq, request_id, kind, b"body %d" % seq, f"hash {seq}", f"signature {seq}")
    return Link(row, b'{"seq":%d}\n' % seq, b"note %d" % seq)


def next_link(tail: Tail, **fields: Any) -> Link:
    return link(1 if tail.last is None else tail.last.seq + 1, **fields)


async def fill(store: JournalStore, count: int) -> None:
    await store.initialise(HEAD)
    for number in range(count):
        await store.append(lambda tail, n=number: next_link(tail, request_id=f"req_{n % 3}", kind=f"kind_{n % 2}"))  # type: ignore[misc]


async def seqs(rows: AsyncIterator[Row | DamagedRow]) -> list[int]:
    return [row.seq async for row in rows]


async def test_looking_at_a_journal_nobody_began_finds_nothing_and_creates_nothing(
    desk: Desk, home: Path, key: KeyFile
) -> None:
    store = desk.open()
    assert await store.tail() == Tail(None, None, None, False)
    assert await seqs(store.rows()) == []
    assert await store.newest(5) == []
    assert await store.bundle("0" * 64) is None
    assert [name async for name, _ in store.read_bundles()] == []
    assert await store.inspect() is None
    await store.close()
    assert set(os.listdir(home)) <= {"journal.lock", "journal-postgres.lock"}


async def test_the_first_head_is_laid_once(store: JournalStore) -> None:
    await store.initialise(HEAD)
    await store.initialise(b'{"other":1}\n')
    assert (await store.tail()).head == HEAD


async def test_what_is_broken_is_remembered_for_whoever_opens_it_next(desk: Desk, key: KeyFile) -> None:
    key.ensure()
    first = desk.open()
    await fill(first, 1)
    await first.mark_broken("entry 1: another hash")
    await first.close()
    second = desk.open()
    assert (await second.tail()).broken == "entry 1: another hash"
    await second.mark_broken(None)
    await second.mark_broken(None)
    assert (await second.tail()).broken is None
    await second.close()


async def test_no_row_without_a_head(store: JournalStore) -> None:
    with pytest.raises(Broken):
        await store.append(lambda tail: link(1))
    assert await store.newest(1) == []


async def test_rows_come_back_as_they_were_written(store: JournalStore, desk: Desk) -> None:
    await store.initialise(HEAD)
    odd = replace(link(1).row, request_id=None, body=bytes(range(256)))
    assert await store.append(lambda tail: replace(link(1), row=odd)) == odd
    await store.append(next_link)
    other = desk.open()
    assert [row async for row in other.rows()] == [odd, link(2).row]
    tail = await other.tail()
    assert tail == Tail(link(2).row, link(2).head, None, True)
    await other.close()


async def test_rows_are_found_by_request_kind_and_place(store: JournalStore) -> None:
    await fill(store, 12)
    assert await seqs(store.rows()) == list(range(1, 13))
    assert await seqs(store.rows(after=10)) == [11, 12]
    assert await seqs(store.rows(upto=2)) == [1, 2]
    assert await seqs(store.rows(request_id="req_1")) == [2, 5, 8, 11]
    assert await seqs(store.rows(kind="kind_0", after=3, upto=9)) == [5, 7, 9]
    assert await seqs(store.rows(request_id="req_0", kind="kind_1")) == [4, 10]
    assert await seqs(store.rows(request_id="req_9")) == []
    assert await seqs(store.rows(request_id="req_*", kind="kind_1")) == await seqs(store.rows(kind="kind_1"))
    assert await seqs(store.rows(request_id="req_1*", kind="kind_1", after=2)) == [8]
    assert await seqs(store.rows(request_id="re_*", after=2)) == []
    assert [row.seq for row in await store.newest(2)] == [12, 11]
    assert [row.seq for row in await store.newest(2, before=11)] == [10, 9]
    assert await store.newest(2, before=1) == []
    assert [row.seq for row in await store.newest(9, request_id="req_2", kind="kind_0")] == [9, 3]


async def test_long_journals_are_read_in_pages(store: JournalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zuno.adapters.store.table_store.PAGE", 3)
    await fill(store, 9)
    assert await seqs(store.rows()) == list(range(1, 10))
    assert await seqs(store.rows(kind="kind_1")) == [2, 4, 6, 8]
    for number in range(7):
        content = b"%d" % number
        await store.put_bundle(digest(content), content)
    names = [name async for name, _ in store.read_bundles()]
    assert names == sorted(names)
    assert len(names) == 7


async def test_a_forge_that_raises_or_declines_writes_nothing(store: JournalStore) -> None:
    await fill(store, 2)
    before = await store.tail()

    def raising(tail: Tail) -> Link:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await store.append(raising)
    assert await store.append(lambda tail: None) is None
    assert await store.tail() == before


async def test_what_is_asked_about_is_looked_up_in_the_same_turn(store: JournalStore) -> None:
    await fill(store, 12)
    seen: list[Tail] = []

    def look(tail: Tail) -> Link | None:
        seen.append(tail)
        return None

    for about in (EntryFilter("req_0", "kind_1"), EntryFilter("req_0", "kind_9"), EntryFilter("req_9", "kind_1"), None):
        assert await store.append(look, about) is None
    assert [tail.first and tail.first.seq for tail in seen] == [4, None, None, None]
    assert {tail.last and tail.last.seq for tail in seen} == {12}


async def test_a_number_that_is_taken_is_never_written_again(store: JournalStore) -> None:
    await fill(store, 3)
    with pytest.raises(Broken):
        await store.append(lambda tail: link(2, kind="other"))
    tail = await store.tail()
    assert isinstance(tail.last, Row)
    assert (tail.last.seq, tail.head, tail.begun) == (3, link(3).head, b"note 2")  # the note says what was not written
    assert [row.kind for row in [row async for row in store.rows()] if isinstance(row, Row)] == [
        "kind_0",
        "kind_1",
        "kind_0",
    ]


async def test_handles_that_write_at_once_take_turns(desk: Desk, store: JournalStore) -> None:
    await store.initialise(HEAD)
    handles = [store, *(desk.open() for _ in range(3))]
    await asyncio.gather(*(handle.append(next_link) for handle in handles for _ in range(10)))
    assert await seqs(store.rows()) == list(range(1, 41))
    assert (await store.tail()).head == link(40).head
    for handle in handles[1:]:
        await handle.close()


async def test_a_cancelled_writer_leaves_whole_rows(store: JournalStore) -> None:
    await store.initialise(HEAD)
    for _ in range(10):
        writing = asyncio.ensure_future(store.append(next_link))
        await asyncio.sleep(0)
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
    tail = await store.tail()
    count = 0 if tail.last is None else tail.last.seq
    assert await seqs(store.rows()) == list(range(1, count + 1))
    assert tail.begun is None
    assert tail.head == (link(count).head if count else HEAD)


async def test_a_bundle_is_kept_once_under_its_name(store: JournalStore, desk: Desk) -> None:
    await store.initialise(HEAD)
    content = bytes(range(256)) * 400
    name = digest(content)
    await store.put_bundle(name, content)
    await store.put_bundle(name, b"other bytes under a name that is taken")
    assert await store.bundle(name) == content
    assert await store.bundle("f" * 64) is None
    assert [one async for one, _ in store.read_bundles()] == [name]
    await store.close()
    again = desk.open()
    assert await again.bundle(name) == content
    await again.close()


async def test_bundles_of_many_rows_come_back_one_by_one_and_all_at_once(store: JournalStore) -> None:
    await store.initialise(HEAD)
    assert [each async for each in store.read_bundles()] == []
    contents = {digest(content): content for content in (window(number) for number in range(0, 40, 4))}
    for name, content in contents.items():
        await store.put_bundle(name, content)
    assert dict([each async for each in store.read_bundles()]) == contents
    for name, content in contents.items():
        assert await store.bundle(name) == content


def window(first: int) -> bytes:
    """Rows of a series, as a cycle sees them."""
    rows = [[1_700_000_000_000 + number * 3_600_000, 1.5 * number] for number in range(first, first + 400)]
    return canonical({"rows": rows, "series": "candles"})


async def test_shrinking_begins_no_journal(desk: Desk) -> None:
    store = desk.open()
    if isinstance(store, TableStore):
        await store.shrink()
    assert not (await store.tail()).exists
    await store.close()


async def test_bundles_are_converted_archived_and_read_as_before(
    desk: Desk, journal: ChainedJournal, home: Path, key: KeyFile
) -> None:
    """Stores of files and tables; what lies in memory has no age."""
    if isinstance(desk, MemoryDesk):
        return
    contents = [window(number) for number in range(0, 48, 4)]
    for content in contents:
        name = await journal.put_bundle(content)
        await journal.append(kind="cycle", author=Author("trading"), payload={"bundle": name})
    for content in contents[:6]:
        desk.change_bundle(digest(content), content)  # as it was stored before there were blocks
    assert (await journal.verify()).ok
    store = desk.open()
    assert isinstance(store, TableStore)
    names = list(map(digest, contents))
    assert await store.convert_bundles(names) == 6
    assert await store.archive_bundles("bundles-2023-11.db", names[:4]) == 4
    assert await store.archive_bundles("bundles-2023-11.db", names[:5]) == 1
    await store.shrink()
    await store.close()
    assert [await journal.bundle(name) for name in names] == contents
    assert (await journal.verify()).ok
    (home / "archive" / "bundles-2023-11.db").unlink()
    verdict = await journal.verify()
    assert (verdict.ok, len(verdict.notes)) == (True, 1)
    with pytest.raises(ArchiveMissing):
        await journal.bundle(names[0])
    assert await journal.bundle(names[-1]) == contents[-1]


async def written(journal: ChainedJournal, count: int = 8) -> Digest:
    """Entries of two requests; the even ones name a bundle."""
    bundle = await journal.put_bundle(b"what the scout saw")
    for number in range(1, count + 1):
        await journal.append(
            kind="said",
            author=Author("critic"),
            payload={"n": number, "x": 0.1 * number, "amount": 10**25 + number},
            request_id=f"req_{number % 2}",
            bundle=bundle if number % 2 == 0 else None,
        )
    return bundle


async def test_a_journal_on_it_is_whole_and_can_be_read(journal: ChainedJournal) -> None:
    await written(journal)
    verdict = await journal.verify()
    assert (verdict.ok, verdict.entries, verdict.notes) == (True, 8, ())
    assert [entry.payload["n"] async for entry in journal.entries(request_id="req_1")] == [1, 3, 5, 7]
    newest = (await journal.latest())[0]
    assert (newest.seq, newest.payload["amount"]) == (8, 10**25 + 8)


async def once(journal: ChainedJournal, n: int, request_id: str = "req_1", kind: str = "plan") -> Entry:
    return await journal.append_once(kind=kind, author=Author("cli"), payload={"n": n}, request_id=request_id)


async def test_what_a_request_may_have_once_is_written_once(journal: ChainedJournal) -> None:
    await written(journal)
    first = await once(journal, 1)
    assert (first.seq, first.payload["n"]) == (9, 1)
    assert await once(journal, 2) == first
    assert (await once(journal, 3, "req_0")).payload["n"] == 3
    assert (await once(journal, 4, kind="other")).payload["n"] == 4
    assert await once(journal, 5) == first
    verdict = await journal.verify()
    assert (verdict.ok, verdict.entries) == (True, 11)


async def test_handles_that_write_once_at_once_all_find_the_same(
    desk: Desk, journal: ChainedJournal, key: KeyFile
) -> None:
    """Each request is raced for by all of them, while others write beside it."""
    await written(journal, 1)
    handles = [journal, *(chained(desk.open(), key) for _ in range(3))]
    requests = [f"req_{number}" for number in range(6)]

    async def race(number: int) -> list[Entry]:
        return [await once(handles[number], number, request) for request in requests]

    *found, _ = await asyncio.gather(*(race(number) for number in range(4)), written(journal))
    assert found[0] == found[1] == found[2] == found[3]
    kept = [entry async for entry in journal.entries(kind="plan")]
    assert [entry.request_id for entry in sorted(kept, key=lambda one: one.request_id or "")] == requests
    assert (await journal.verify()).ok
    for handle in handles[1:]:
        await handle.close()


async def test_a_first_one_that_was_changed_is_not_passed_on(desk: Desk, journal: ChainedJournal) -> None:
    first = await once(journal, 1)
    await written(journal, 1)
    desk.change(first.seq, "body", b"{}")
    with pytest.raises(Broken, match="journal verify"):
        await once(journal, 1)


Harm = Callable[[Desk, Digest], None]
HARMS: dict[str, tuple[Harm, int | None]] = {
    "a changed number": (lambda desk, _: desk.change(8, "seq", 9), 8),
    "a number below the first": (lambda desk, _: desk.change(4, "seq", -4), -4),
    "a changed time": (lambda desk, _: desk.change(3, "at", 1), 3),
    "another request": (lambda desk, _: desk.change(3, "request_id", "req_0"), 3),
    "no request": (lambda desk, _: desk.change(3, "request_id", None), 3),
    "another kind": (lambda desk, _: desk.change(3, "kind", "sad"), 3),
    "another body": (lambda desk, _: desk.change(3, "body", b"{}"), 3),
    "another hash": (lambda desk, _: desk.change(3, "hash", "0" * 64), 3),
    "another signature": (lambda desk, _: desk.change(3, "signature", "0" * 128), 3),
    "no signature at all": (lambda desk, _: desk.change(3, "signature", "x"), 3),
    "an entry taken out": (lambda desk, _: desk.remove(5), 5),
    "the first taken out": (lambda desk, _: desk.remove(1), 1),
    "the newest taken out": (lambda desk, _: desk.remove(8), 8),
    "another bundle": (lambda desk, name: desk.change_bundle(name, b"what the scout never saw"), 2),
    "no bundle": (lambda desk, name: desk.remove_bundle(name), 2),
    "no head": (lambda desk, _: desk.leave_head(None), None),
    "a head of nonsense": (lambda desk, _: desk.leave_head(b"nonsense"), None),
}


@pytest.mark.parametrize("harm", HARMS)
async def test_harm_is_found_and_its_first_entry_named(desk: Desk, journal: ChainedJournal, harm: str) -> None:
    bundle = await written(journal)
    act, seq = HARMS[harm]
    act(desk, bundle)
    verdict = await journal.verify()
    assert verdict.fault is not None
    assert verdict.fault.seq == seq


async def test_a_copy_of_an_entry_under_the_next_number_is_found(
    desk: Desk, journal: ChainedJournal, key: KeyFile
) -> None:
    await written(journal, 3)
    store = desk.open()
    copy = (await store.newest(1))[0]
    assert isinstance(copy, Row)
    head = (await store.tail()).head or b""
    await store.append(lambda tail: Link(replace(copy, seq=4), head, b"note"))
    await store.close()
    verdict = await journal.verify()
    assert verdict.fault is not None
    assert verdict.fault.seq == 4


async def test_two_entries_that_changed_places_are_found(desk: Desk, journal: ChainedJournal) -> None:
    await written(journal)
    for old, new in ((4, 100), (5, 4), (100, 5)):
        desk.change(old, "seq", new)
    verdict = await journal.verify()
    assert verdict.fault is not None
    assert verdict.fault.seq == 4


async def test_a_harmed_tail_is_not_written_on(desk: Desk, journal: ChainedJournal, key: KeyFile) -> None:
    await written(journal)
    desk.remove(8)
    for writer in (journal, chained(desk.open(), key)):
        with pytest.raises(Broken, match="cut"):
            await writer.append(kind="said", author=Author("critic"), payload={})
        await writer.close()


class _PowerCut(Exception):
    pass


@pytest.mark.parametrize("moment", ["before the row", "before the head"])
async def test_a_start_after_a_crash_says_what_happened(
    desk: Desk, journal: ChainedJournal, key: KeyFile, moment: str
) -> None:
    await written(journal, 4)
    await journal.close()
    await _die(desk.open(), key, moment)
    after = chained(desk.open(), key)
    seen = await after.verify()
    assert seen.ok
    assert len(seen.notes) == 1
    said = await after.start()
    assert said == seen.notes
    assert "entry 5" in said[0]
    assert await after.start() == ()
    recovered = (await after.latest())[0]
    assert recovered.kind == "journal_recovered"
    lost = recovered.payload["lost"]
    if moment == "before the row":
        assert isinstance(lost, dict)
        assert (lost["seq"], lost["kind"], lost["requestId"]) == (5, "last_words", "req_9")
        assert recovered.payload["headRepairedAt"] is None
    else:
        assert lost is None
        assert recovered.payload["headRepairedAt"] == 5
    verdict = await after.verify()
    assert (verdict.ok, verdict.entries, verdict.notes) == (True, 5 if lost else 6, ())
    await after.close()


async def _die(store: JournalStore, key: KeyFile, moment: str) -> None:
    """End a write where a killed process would have."""

    def cut(*_: object) -> None:
        raise _PowerCut

    if isinstance(store, TableStore):
        if moment == "before the row":
            store._tables.insert = cut
        else:
            store._head_file.replace_head = cut  # type: ignore[assignment]
        dying: Awaitable[object] = chained(store, key).append(
            kind="last_words", author=Author("critic"), payload={}, request_id="req_9"
        )
        with pytest.raises(_PowerCut):
            await dying
    else:
        assert isinstance(store, MemoryStore)
        head, kept = store.head, dict(store.kept)
        notes: list[bytes] = []
        journal = chained(store, key)
        seal = journal._seal

        def keep_note(*given: Any) -> tuple[EntryRecord, Link]:
            made = seal(*given)
            notes.append(made[1].note)
            return made

        journal._seal = keep_note  # type: ignore[assignment]
        await journal.append(kind="last_words", author=Author("critic"), payload={}, request_id="req_9")
        store.head, store.begun = head, notes[0]
        if moment == "before the row":
            store.kept = kept
    await store.close()


async def test_the_next_entry_after_a_crash_records_it_too(desk: Desk, journal: ChainedJournal, key: KeyFile) -> None:
    await written(journal, 2)
    await journal.close()
    await _die(desk.open(), key, "before the head")
    after = chained(desk.open(), key)
    entry = await after.append(kind="said", author=Author("critic"), payload={})
    assert entry.seq == 5
    assert [one.kind async for one in after.entries(after=2)] == ["last_words", "journal_recovered", "said"]
    assert (await after.verify()).ok
    await after.close()


async def test_nodes_of_one_postgres_keep_chains_of_their_own(postgres: str, tmp_path: Path) -> None:
    journals = []
    for name in ("one", "two"):
        home = tmp_path / name
        home.mkdir()
        key = KeyFile(home / "keys" / "node.key")
        journals.append(chained(PostgresDesk(postgres, home, key).open(), key))
    await asyncio.gather(*(written(journal, 5) for journal in journals))
    for journal in journals:
        verdict = await journal.verify()
        assert (verdict.ok, verdict.entries) == (True, 5)
        await journal.close()


async def test_a_postgres_that_is_away_is_unavailable_and_its_password_stays_unsaid(home: Path, key: KeyFile) -> None:
    pytest.importorskip("psycopg", reason="no Postgres driver: make postgres")
    key.ensure()
    store = PostgresDesk("postgresql://zuno:hushhush@127.0.0.1:1/none", home, key).open()
    with pytest.raises(Unavailable) as told:
        await store.tail()
    assert "hushhush" not in str(told.value)
    await store.close()


async def test_a_check_of_another_database_says_nothing_of_this_one(
    postgres: str, home: Path, key: KeyFile, tmp_path: Path
) -> None:
    """A URL may name another database by mistake, where the head that lies in the home has no entries."""
    import psycopg

    name = f"other_{os.getpid()}_{tmp_path.name.encode().hex()[-16:]}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    wrong = PostgresDesk(postgres.replace("/postgres?", f"/{name}?"), home, key)
    right = PostgresDesk(postgres, home, key)

    async def verify(desk: PostgresDesk) -> bool:
        journal = chained(desk.open(), key)
        try:
            return (await journal.verify()).ok
        finally:
            await journal.close()

    async def write(desk: PostgresDesk, count: int = 1) -> None:
        journal = chained(desk.open(), key)
        try:
            await written(journal, count)
        finally:
            await journal.close()

    await write(right, 3)
    assert not await verify(wrong)
    with pytest.raises(Broken):
        await write(wrong)
    await write(right)
    # What is marked for a fault of its own stays so, whatever is found elsewhere.
    right.change(1, "kind", "sung")
    assert not await verify(right)
    assert not await verify(wrong)
    with pytest.raises(Broken):
        await write(right)
    right.change(1, "kind", "said")
    assert await verify(right)
    await write(right)
