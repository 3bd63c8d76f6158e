"""The journal's own rules, on a store in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.store.memory import MemoryStore
from zuno.journal.chain import FIRST_PREV, MAX_BODY, EntryRecord, RecordAuthor, first_head, seal_record, sign_head
from zuno.journal.journal import ChainedJournal
from zuno.journal.port import Author, Row
from zuno.kernel.canonical import Digest, canonical, decode_canonical, digest
from zuno.kernel.errors import Broken, NotFound, Refused
from zuno.kernel.units import Millis

CRITIC = Author("critic")
SECRET = 'sk-live-"quoted"-0123456789'


@pytest.fixture
def key(tmp_path: Path) -> KeyFile:
    return KeyFile(tmp_path / "node.key")


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def journal(store: MemoryStore, key: KeyFile) -> ChainedJournal:
    return opened(store, key)


def opened(store: MemoryStore, key: KeyFile) -> ChainedJournal:
    moments = iter(range(1_700_000_000_000, 1_800_000_000_000))
    return ChainedJournal(
        store, key, code=lambda: "0.1.0+abc", now=lambda: Millis(next(moments)), secrets=(SECRET, "short")
    )


async def say(journal: ChainedJournal, count: int = 1, **payload: Any) -> None:
    for number in range(count):
        await journal.append(kind="said", author=CRITIC, payload={"n": number, **payload}, request_id="req_1")


async def test_an_entry_says_who_when_what_and_after_what(journal: ChainedJournal, key: KeyFile) -> None:
    class Said(BaseModel):
        model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True)
        net_carry: Decimal
        tick: int

    bundle = await journal.put_bundle(b"context")
    first = await journal.append(kind="proposal", author=CRITIC, payload=Said(net_carry=Decimal("1.50"), tick=-5))
    second = await journal.append(
        kind="critique", author=Author("scout", "ab" * 32), payload={"x": 1.0}, request_id="req_9", bundle=bundle
    )
    assert (first.seq, first.at, first.request_id, first.kind) == (1, 1_700_000_000_000, None, "proposal")
    assert (first.author, first.code, first.prev) == (Author("critic", key.public), "0.1.0+abc", FIRST_PREV)
    assert first.payload == {"netCarry": "1.5", "tick": -5}
    assert (second.seq, second.prev, second.bundle) == (2, first.hash, digest(b"context"))
    assert second.author == Author("scout", "ab" * 32)
    assert [entry async for entry in journal.entries()] == [first, second]
    assert await journal.latest(5) == [second, first]
    assert [entry async for entry in journal.entries(kind="critique", request_id="req_9")] == [second]
    assert await journal.bundle(bundle) == b"context"


async def test_the_body_holds_everything_and_is_what_is_hashed(
    journal: ChainedJournal, store: MemoryStore, key: KeyFile
) -> None:
    await say(journal)
    row = store.kept[1]
    assert isinstance(row, Row)
    assert decode_canonical(row.body) == {
        "format": 1,
        "seq": 1,
        "at": 1_700_000_000_000,
        "requestId": "req_1",
        "kind": "said",
        "author": {"role": "critic", "key": key.public},
        "code": "0.1.0+abc",
        "node": key.public,
        "payload": {"n": 0},
        "bundle": None,
        "prev": FIRST_PREV,
    }
    assert row.hash == digest(row.body)


async def test_an_untouched_journal_is_whole_and_asking_makes_no_key(journal: ChainedJournal, key: KeyFile) -> None:
    verdict = await journal.verify()
    assert (verdict.ok, verdict.entries) == (True, 0)
    assert await journal.start() == ()
    assert await journal.latest() == []
    assert not key.exists()


async def test_a_journal_that_died_before_its_first_entry_is_empty_and_whole(
    journal: ChainedJournal, store: MemoryStore, key: KeyFile
) -> None:
    key.ensure()
    store.head = first_head(key)
    verdict = await journal.verify()
    assert (verdict.ok, verdict.entries, verdict.notes) == (True, 0, ())
    await say(journal)
    assert (await journal.verify()).entries == 1


async def test_tasks_that_write_at_once_make_one_chain(
    journal: ChainedJournal, store: MemoryStore, key: KeyFile
) -> None:
    other = opened(store, key)
    await asyncio.gather(*(say(one, 5) for one in (journal, other, journal)))
    verdict = await journal.verify()
    assert (verdict.ok, verdict.entries) == (True, 15)


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "Said"},
        {"kind": ""},
        {"kind": "said\n"},
        {"kind": "x" * 65},
        {"author": Author("the critic")},
        {"author": Author("critic", "AB" * 32)},
        {"author": Author("critic", "ab")},
        {"request_id": ""},
        {"request_id": "req/../1"},
        {"request_id": "req_1\n"},
        {"payload": {"x": float("nan")}},
        {"payload": {"x": object()}},
        {"payload": {"x": {1: 2}}},
        {"payload": [1]},
        {"payload": {"x": "y" * MAX_BODY}},
    ],
)
async def test_what_is_not_an_entry_is_refused_and_leaves_no_trace(
    journal: ChainedJournal, store: MemoryStore, fields: dict[str, Any]
) -> None:
    await say(journal)
    before = (dict(store.kept), store.head, store.begun)
    with pytest.raises((ValueError, TypeError, ValidationError)):
        await journal.append(**{"kind": "said", "author": CRITIC, "payload": {}, **fields})
    assert (store.kept, store.head, store.begun) == before
    await say(journal)
    assert (await journal.verify()).ok


async def test_a_bundle_must_be_there_before_it_is_named(journal: ChainedJournal, store: MemoryStore) -> None:
    with pytest.raises(NotFound):
        await journal.append(kind="said", author=CRITIC, payload={}, bundle=Digest("0" * 64))
    name = await journal.put_bundle(b"context")
    store.bundles[name] = b"another"
    with pytest.raises(Broken):
        await journal.bundle(name)


@pytest.mark.parametrize(
    "payload", [{"key": SECRET}, {"text": f"Bearer {SECRET}."}, {SECRET: 1}, {"deep": [{"x": [SECRET]}]}]
)
async def test_a_configured_secret_is_never_written(
    journal: ChainedJournal, store: MemoryStore, payload: dict[str, Any]
) -> None:
    with pytest.raises(Refused) as told:
        await journal.append(kind="said", author=CRITIC, payload=payload)
    with pytest.raises(Refused):
        await journal.put_bundle(canonical(payload))
    with pytest.raises(Refused):
        await journal.put_bundle(f"raw {SECRET}".encode())
    assert SECRET not in str(told.value)
    assert not store.kept
    assert not store.bundles
    await say(journal, text="a short word is no secret")


async def test_an_orphaned_bundle_is_checked_too(journal: ChainedJournal, store: MemoryStore) -> None:
    await say(journal)
    name = await journal.put_bundle(b"nobody names this")
    assert (await journal.verify()).ok
    store.bundles[name] = b"nobody named this"
    verdict = await journal.verify()
    assert verdict.fault is not None
    assert verdict.fault.seq is None
    assert "names" in verdict.fault.reason


async def test_an_old_head_put_back_is_found(journal: ChainedJournal, store: MemoryStore, key: KeyFile) -> None:
    await say(journal, 3)
    old = store.head
    await say(journal, 2)
    store.head = old
    verdict = await journal.verify()
    assert verdict.fault is not None
    assert (verdict.fault.seq, "head" in verdict.fault.reason) == (None, True)
    for writer in (journal, opened(store, key)):
        with pytest.raises(Broken):
            await say(writer)


async def test_a_rollback_of_rows_and_head_together_is_the_one_thing_that_passes(
    journal: ChainedJournal, store: MemoryStore
) -> None:
    """Said in the decision record; if this ever fails, that page must change."""
    await say(journal, 3)
    old = (dict(store.kept), store.head)
    await say(journal, 2)
    store.kept, store.head = old
    assert (await journal.verify()).ok


Forgery = Callable[[MemoryStore, KeyFile, KeyFile], None]


def _foreign_head(store: MemoryStore, mine: KeyFile, other: KeyFile) -> None:
    last = store.kept[3]
    assert isinstance(last, Row)
    store.head = sign_head(3, last.hash, other)


def _head_of_mine_signed_by_another(store: MemoryStore, mine: KeyFile, other: KeyFile) -> None:
    last = store.kept[3]
    assert isinstance(last, Row)
    head = decode_canonical(sign_head(3, last.hash, other)[:-1])
    assert isinstance(head, dict)
    head["head"]["node"] = mine.public  # type: ignore[index,call-overload]
    store.head = canonical(head) + b"\n"


def _head_of_another_entry(store: MemoryStore, mine: KeyFile, other: KeyFile) -> None:
    store.head = sign_head(3, "0" * 64, mine)


def _entry_signature_as_head(store: MemoryStore, mine: KeyFile, other: KeyFile) -> None:
    last = store.kept[3]
    assert isinstance(last, Row)
    head = decode_canonical(sign_head(3, last.hash, mine)[:-1])
    assert isinstance(head, dict)
    store.head = canonical({**head, "signature": last.signature}) + b"\n"


def _head_with_more_in_it(store: MemoryStore, mine: KeyFile, other: KeyFile) -> None:
    assert store.head is not None
    head = decode_canonical(store.head[:-1])
    assert isinstance(head, dict)
    store.head = canonical({**head, "more": 1}) + b"\n"


@pytest.mark.parametrize(
    "forge",
    [
        _foreign_head,
        _head_of_mine_signed_by_another,
        _head_of_another_entry,
        _entry_signature_as_head,
        _head_with_more_in_it,
    ],
)
async def test_a_head_that_is_not_ours_is_found_and_not_written_on(
    journal: ChainedJournal, store: MemoryStore, key: KeyFile, tmp_path: Path, forge: Forgery
) -> None:
    await say(journal, 3)
    other = KeyFile(tmp_path / "other.key")
    other.ensure()
    forge(store, key, other)
    assert not (await journal.verify()).ok
    with pytest.raises(Broken):
        await say(journal)
    assert len(store.kept) == 3


@pytest.mark.slow
async def test_every_byte_of_the_head_counts(journal: ChainedJournal, store: MemoryStore) -> None:
    await say(journal, 2)
    whole = store.head
    assert whole is not None
    for place in range(len(whole)):
        store.head = whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
        assert not (await journal.verify()).ok, place
    store.head = whole
    assert (await journal.verify()).ok


def record(key: KeyFile, seq: int, prev: str, **fields: Any) -> EntryRecord:
    values: dict[str, Any] = {
        "seq": seq,
        "at": 1,
        "request_id": None,
        "kind": "said",
        "author": RecordAuthor(role="critic", key=key.public),
        "code": "x",
        "node": key.public,
        "payload": {},
        "bundle": None,
        "prev": prev,
        **fields,
    }
    return EntryRecord(**values)


async def test_an_entry_forged_with_another_key_is_found(
    journal: ChainedJournal, store: MemoryStore, key: KeyFile, tmp_path: Path
) -> None:
    await say(journal, 3)
    other = KeyFile(tmp_path / "other.key")
    other.ensure()
    second, third = store.kept[1], store.kept[3]
    assert isinstance(second, Row)
    assert isinstance(third, Row)
    for claimed in (key, other):  # another's signature under our name, and under its own
        fake = seal_record(record(claimed, 2, second.hash), other).row
        store.kept[2] = fake
        verdict = await journal.verify()
        assert verdict.fault is not None
        assert verdict.fault.seq == 2


async def test_an_entry_of_ours_in_another_place_is_found(
    journal: ChainedJournal, store: MemoryStore, key: KeyFile
) -> None:
    """Signed by the right key, whole in itself, and yet not the one that was written there."""
    await say(journal, 4)
    store.kept[3] = seal_record(record(key, 3, "1" * 64), key).row
    verdict = await journal.verify()
    assert verdict.fault is not None
    assert (verdict.fault.seq, verdict.entries) == (3, 2)
    assert "follow" in verdict.fault.reason


async def test_a_newest_entry_swapped_for_another_of_ours_is_found(
    journal: ChainedJournal, store: MemoryStore, key: KeyFile
) -> None:
    await say(journal, 3)
    before = store.kept[2]
    assert isinstance(before, Row)
    store.kept[3] = seal_record(record(key, 3, before.hash, payload={"other": True}), key).row
    verdict = await journal.verify()
    assert verdict.fault is not None
    assert verdict.fault.seq == 3
    with pytest.raises(Broken):
        await say(journal)


async def test_without_the_key_a_journal_is_broken_and_no_new_key_is_made(
    journal: ChainedJournal, store: MemoryStore, key: KeyFile, tmp_path: Path
) -> None:
    await say(journal, 2)
    keyless = KeyFile(tmp_path / "elsewhere.key")
    verdict = await opened(store, keyless).verify()
    assert verdict.fault is not None
    assert verdict.fault.seq is None
    assert "missing" in verdict.fault.reason
    with pytest.raises(Broken):
        await say(opened(store, keyless))
    assert not keyless.exists()
    assert len(store.kept) == 2


async def test_with_another_key_every_entry_is_foreign(
    journal: ChainedJournal, store: MemoryStore, tmp_path: Path
) -> None:
    await say(journal, 2)
    other = KeyFile(tmp_path / "other.key")
    other.ensure()
    verdict = await opened(store, other).verify()
    assert verdict.fault is not None
    assert verdict.fault.seq == 1
    assert "signed" in verdict.fault.reason


async def test_a_note_that_makes_no_sense_stops_nobody(journal: ChainedJournal, store: MemoryStore) -> None:
    await say(journal, 2)
    for note in (b"\xff\xfe", b"{}", b'{"hash":"x"}', b""):
        store.begun = note
        verdict = await journal.verify()
        assert verdict.ok
        assert not verdict.notes
        await say(journal)
    assert len(store.kept) == 6


async def test_a_note_never_excuses_a_cut_tail(journal: ChainedJournal, store: MemoryStore, key: KeyFile) -> None:
    await say(journal, 3)
    last = store.kept.pop(3)
    assert isinstance(last, Row)
    store.begun = canonical({"seq": 3, "kind": "said", "requestId": "req_1", "hash": last.hash})
    verdict = await journal.verify()
    assert verdict.fault is not None
    assert verdict.fault.seq == 3
    with pytest.raises(Broken):
        await opened(store, key).start()


async def test_what_is_read_is_checked(journal: ChainedJournal, store: MemoryStore) -> None:
    await say(journal, 2)
    row = store.kept[2]
    assert isinstance(row, Row)
    store.kept[2] = replace(row, request_id="req_2")
    with pytest.raises(Broken, match="entry 2"):
        await journal.latest()
    with pytest.raises(Broken, match="entry 2"):
        _ = [entry async for entry in journal.entries(request_id="req_2")]


async def test_a_journal_that_was_found_broken_takes_no_entries_until_it_holds(
    journal: ChainedJournal, store: MemoryStore, key: KeyFile
) -> None:
    """The end alone is checked with every entry; what a check of the whole found is remembered."""
    await say(journal, 3)
    sound = store.kept[2]
    assert isinstance(sound, Row)
    store.kept[2] = replace(sound, body=sound.body.replace(b"said", b"sung"))
    assert not (await journal.verify()).ok
    for other in (journal, opened(store, key)):
        with pytest.raises(Broken):
            await say(other)
        with pytest.raises(Broken):
            await other.append_once(kind="plan", author=CRITIC, payload={}, request_id="req_2")
    assert len(store.kept) == 3
    assert len(await journal.latest(1)) == 1  # it can be read
    store.kept[2] = sound
    assert (await journal.verify()).ok
    await say(opened(store, key))
    assert len(store.kept) == 4


@pytest.mark.parametrize("way", ["write", "read"])
async def test_damage_that_is_met_is_refused_at_once_and_remembered(
    journal: ChainedJournal, store: MemoryStore, key: KeyFile, way: str
) -> None:
    """Nobody has run a check of the whole: the newest entries are looked at before the first one of a process is
    written, and an older one when somebody reads it."""
    count = 40
    await say(journal, count)
    at = count - 30 if way == "write" else 2
    sound = store.kept[at]
    assert isinstance(sound, Row)
    store.kept[at] = replace(sound, body=sound.body.replace(b"said", b"sung"))
    if way == "read":
        with pytest.raises(Broken):
            _ = [entry async for entry in opened(store, key).entries()]
    with pytest.raises(Broken):
        await say(opened(store, key))
    with pytest.raises(Broken):
        await say(journal)
    assert len(store.kept) == count
    store.kept[at] = sound
    assert (await journal.verify()).ok
    await say(opened(store, key))
    assert len(store.kept) == count + 1
