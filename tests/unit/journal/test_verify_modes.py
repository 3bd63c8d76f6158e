"""The three ways to verify a journal: what each of them notices, and what a checkpoint attests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.store.memory import MemoryStore
from zuno.journal import journal as journal_module
from zuno.journal.audit import JournalAudit
from zuno.journal.chain import CHECKPOINT, EntryRecord, Frame, RecordAuthor, read_frame, sign_head
from zuno.journal.journal import ChainedJournal, VerifyMode
from zuno.journal.port import Author, Row
from zuno.kernel.canonical import canonical, digest
from zuno.kernel.units import Millis

CHAIN, ALL, QUICK = VerifyMode.CHAIN, VerifyMode.ALL, VerifyMode.QUICK
SEALED, COUNT, BEFORE, BEHIND = 20, 30, 7, 25
"""The checkpoint is entry 21 and seals 20; one entry before it and one behind it are harmed."""


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> KeyFile:
    return KeyFile(tmp_path_factory.mktemp("verify") / "node.key")


@pytest.fixture(scope="module")
def written(key: KeyFile) -> MemoryStore:
    """Made once: each test harms a copy."""

    async def write() -> MemoryStore:
        journal = ChainedJournal(store := MemoryStore(), key, code=lambda: "1.0", now=lambda: Millis(1_700_000_000_000))
        await _write(journal, SEALED)
        assert (await journal.verify(seal=True)).sealed == SEALED
        await _write(journal, COUNT - SEALED - 1)
        return store

    return asyncio.run(write())


@pytest.fixture
def store(written: MemoryStore) -> MemoryStore:
    return deepcopy(written)


@pytest.fixture
def journal(store: MemoryStore, key: KeyFile) -> ChainedJournal:
    return ChainedJournal(store, key, code=lambda: "1.0", now=lambda: Millis(1_700_000_000_000))


async def _write(journal: ChainedJournal, count: int) -> None:
    for number in range(count):
        name = await journal.put_bundle(b"bundle %d" % number)
        payload = {"n": number, "text": 'a "quoted" \\ word', "prev": "0" * 64}
        await journal.append(kind="said", author=Author("critic"), payload=payload, request_id="r", bundle=name)


def _row(store: MemoryStore, seq: int) -> Row:
    row = store.kept[seq]
    assert isinstance(row, Row)
    return row


def _rewrite(body: bytes) -> Callable[[Row], Row]:
    """Another body with the hash that belongs to it: only the next link, or the signature, tells."""
    return lambda row: replace(row, body=row.body.replace(b'"n":', body), hash=digest(row.body.replace(b'"n":', body)))


HARM: dict[str, Callable[[Row], Row]] = {
    "at": lambda row: replace(row, at=row.at + 1),
    "request": lambda row: replace(row, request_id="other"),
    "no request": lambda row: replace(row, request_id=None),
    "kind": lambda row: replace(row, kind="thought"),
    "body": lambda row: replace(row, body=row.body.replace(b"quoted", b"quotes")),
    "hash": lambda row: replace(row, hash="0" * 64),
    "body and hash": _rewrite(b'"m":'),
    "no json": lambda row: replace(row, body=row.body[:-1], hash=digest(row.body[:-1])),
}


OF_A_CHECKPOINT = ("at", "request", "kind", "hash", "no json")
CASES = [
    (seq, name)
    for seq in (1, BEFORE, SEALED, SEALED + 1, BEHIND, COUNT)
    for name in (HARM if seq != SEALED + 1 else OF_A_CHECKPOINT)
]


@pytest.mark.parametrize(("seq", "harm"), CASES)
@pytest.mark.parametrize("mode", [CHAIN, ALL, QUICK])
async def test_a_harmed_row_is_noticed_by_each_mode_that_reads_it(
    journal: ChainedJournal, store: MemoryStore, harm: str, mode: VerifyMode, seq: int
) -> None:
    before = _row(store, seq)
    store.kept[seq] = HARM[harm](before)
    assert store.kept[seq] != before
    verdict = await journal.verify(mode)
    if mode is QUICK and seq < SEALED:
        assert verdict.ok
        assert verdict.first == SEALED
    else:
        assert verdict.fault is not None
        assert verdict.fault.seq in (seq, seq + 1)
        assert verdict.entries in (seq - 1, seq)


@pytest.mark.parametrize("seq", [BEFORE, SEALED + 1, BEHIND])
async def test_a_signature_under_a_checkpoint_is_read_by_all_alone(
    journal: ChainedJournal, store: MemoryStore, seq: int
) -> None:
    store.kept[seq] = replace(_row(store, seq), signature=_row(store, 3).signature)
    assert (await journal.verify(ALL)).fault is not None
    assert ((await journal.verify()).fault is None) == (seq == BEFORE)
    if seq == BEFORE:
        view = await JournalAudit(journal).verify()
        assert (view.mode, view.signatures, view.sealed) == (CHAIN, COUNT - SEALED, SEALED)
        assert str(SEALED) in view.unchecked


@pytest.mark.parametrize("mode", [CHAIN, ALL])
async def test_a_row_that_is_gone_or_doubled_is_noticed(
    journal: ChainedJournal, store: MemoryStore, mode: VerifyMode
) -> None:
    gone = store.kept.pop(BEFORE)
    verdict = await journal.verify(mode)
    assert verdict.fault is not None
    assert verdict.fault.seq == BEFORE
    store.kept[BEFORE] = gone
    store.kept[0] = gone
    assert (await journal.verify(mode)).fault is not None


@pytest.mark.parametrize("mode", [CHAIN, ALL, QUICK])
async def test_a_rewritten_past_is_noticed_where_it_meets_a_checkpoint(
    journal: ChainedJournal, store: MemoryStore, key: KeyFile, mode: VerifyMode
) -> None:
    """Somebody without the key writes entry 7 anew and chains the rest to it."""
    prev = _row(store, BEFORE - 1).hash
    for seq in range(BEFORE, COUNT + 1):
        row = _row(store, seq)
        body = row.body.replace(b"quoted", b"quotes").replace(
            b'"prev":"' + _row_prev(row.body) + b'","requestId"', b'"prev":"' + prev.encode() + b'","requestId"'
        )
        store.kept[seq] = replace(row, body=body, hash=digest(body))
        prev = digest(body)
    verdict = await journal.verify(mode)
    assert verdict.fault is not None
    assert verdict.fault.seq is not None
    assert verdict.fault.seq <= SEALED + 1
    # Even a head of the new end does not help.
    store.head = sign_head(COUNT, prev, key)
    assert (await journal.verify(mode)).fault is not None


def _row_prev(body: bytes) -> bytes:
    frame = read_frame(body)
    assert frame is not None
    return frame.prev.encode()


async def test_bundles_are_checked_but_for_what_quick_does_not_read(
    journal: ChainedJournal, store: MemoryStore
) -> None:
    name = digest(b"bundle 15")
    store.bundles[name] = b"other"
    assert (await journal.verify(QUICK)).ok
    for mode in (CHAIN, ALL):
        fault = (await journal.verify(mode)).fault
        assert fault is not None
        assert fault.seq == 16
    known = await journal.verify(QUICK)  # a whole look has found what this one does not read
    assert (known.fault is not None, store.broken is not None) == (True, True)
    store.bundles[name] = b"bundle 15"
    assert (await journal.verify()).ok
    store.bundles[digest(b"orphan")] = b"no orphan"
    assert (await journal.verify(QUICK)).ok
    assert not (await journal.verify()).ok


async def test_a_journal_without_checkpoints_is_verified_wholly_and_then_sealed(key: KeyFile) -> None:
    store = MemoryStore()
    journal = ChainedJournal(store, key, code=lambda: "1.0", now=lambda: Millis(1))
    assert (await journal.verify(seal=True)).sealed is None  # nothing to seal
    await _write(journal, 5)
    for mode in VerifyMode:
        verdict = await journal.verify(mode)
        assert (verdict.mode, verdict.first, verdict.signatures, verdict.sealed) == (ALL, 1, 5, None)
    store.kept[2] = replace(_row(store, 2), signature="00" * 64)
    assert not (await journal.verify(seal=True)).ok
    assert len(store.kept) == 5  # what does not hold is not sealed


async def test_a_checkpoint_is_written_by_rule(
    journal: ChainedJournal, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await journal.verify(seal=True)).sealed == SEALED  # the last one is young
    monkeypatch.setattr(journal_module, "CHECKPOINT_EVERY", 10)
    assert (await journal.verify(QUICK, seal=True)).sealed == SEALED  # a quick look seals nothing
    assert len(store.kept) == COUNT
    verdict = await journal.verify(seal=True)
    assert (verdict.sealed, verdict.signatures, len(store.kept)) == (COUNT, COUNT - SEALED, COUNT + 1)
    written = (await journal.latest(1, kind=CHECKPOINT))[0]
    assert written.payload == {"upto": COUNT, "hash": _row(store, COUNT).hash, "signatures": COUNT - SEALED}
    quick = await journal.verify(QUICK)
    assert (quick.first, quick.entries, quick.signatures) == (COUNT, COUNT + 1, 2)


@pytest.mark.parametrize(
    "payload",
    [
        {"upto": 40, "hash": "0" * 64, "signatures": 1},
        {"upto": 3, "hash": "0" * 64, "signatures": 1},
        {"upto": 3},
    ],
    ids=["to come", "another entry", "no checkpoint"],
)
async def test_a_checkpoint_that_says_what_is_not_so_is_a_fault(
    journal: ChainedJournal, payload: dict[str, Any]
) -> None:
    await journal.append(kind=CHECKPOINT, author=Author("journal"), payload=payload)
    for mode in (CHAIN, ALL):
        assert not (await journal.verify(mode)).ok


@settings(max_examples=40)
@given(
    payload=st.dictionaries(
        st.text(max_size=8), st.recursive(st.none() | st.integers(-(2**200), 2**200) | st.text(), st.lists)
    ),
    code=st.text(min_size=1, max_size=64).filter(lambda text: text.isprintable()),
    request_id=st.none() | st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True),
    bundle=st.none() | st.just("ab" * 32),
)
def test_a_frame_says_what_the_parsed_body_says(
    payload: dict[str, Any], code: str, request_id: str | None, bundle: str | None
) -> None:
    record = EntryRecord(
        seq=12,
        at=5,
        request_id=request_id,
        kind="said",
        author=RecordAuthor(role="critic", key="cd" * 32),
        code=code,
        node="ef" * 32,
        payload=payload,
        bundle=bundle,
        prev="01" * 32,
    )
    body = canonical(record)
    assert read_frame(body) == Frame(12, 5, request_id, "said", "ef" * 32, bundle, "01" * 32)
    for cut in (body[:-1], body[1:], body + b"}", body.replace(b'"format":1', b'"format":2', 1)):
        assert read_frame(cut) is None
