"""The journal's bytes, fixed for good: a change here orphans every journal ever written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from zuno.adapters.keys.ed25519 import KeyFile
from zuno.journal.chain import (
    FIRST_PREV,
    MAX_BODY,
    ChainState,
    EntryRecord,
    Fault,
    RecordAuthor,
    WriteNote,
    first_head,
    seal_record,
    sign_head,
    verify_row,
    verify_tail,
)
from zuno.journal.port import DamagedRow, Entry, Link, Row, Tail
from zuno.kernel.canonical import Digest, canonical, decode_canonical, digest

PUBLIC = "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8"


@pytest.fixture
def key(tmp_path: Path) -> KeyFile:
    path = tmp_path / "node.key"
    private = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    path.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    path.chmod(0o600)
    return KeyFile(path)


def forge_entry(key: KeyFile, seq: int = 1, prev: str = FIRST_PREV, **payload: Any) -> Link:
    record = EntryRecord(
        seq=seq,
        at=1_700_000_000_000,
        request_id="req_00000000000000aa",
        kind="critique",
        author=RecordAuthor(role="critic", key=key.public),
        code="0.1.0",
        node=key.public,
        payload=payload or {"amount": 10**25, "share": 0.25, "word": "hold"},
        bundle=None,
        prev=prev,
    )
    return seal_record(record, key)


def test_an_entry(key: KeyFile) -> None:
    link = forge_entry(key)
    assert key.public == PUBLIC
    assert link.row.body.decode() == (
        f'{{"at":1700000000000,"author":{{"key":"{PUBLIC}","role":"critic"}},"bundle":null,"code":"0.1.0","format":1,'
        f'"kind":"critique","node":"{PUBLIC}","payload":{{"amount":10000000000000000000000000,"share":0.25,'
        f'"word":"hold"}},"prev":"{FIRST_PREV}","requestId":"req_00000000000000aa","seq":1}}'
    )
    assert link.row.hash == "df8a819cbcf80a3aa1aeb4faea3a353f07ad300fa9331f3e92860df6a78d1190"
    assert link.row.signature == (
        "a2cbd184f60c767f63565e82fcc9e64e2f20b26434f238f78967edfaf8bd4c31"
        "5b85f7bfab00850b0f6ae7cad183da648e928c02cb78aa1ca241ba66a992c404"
    )
    signed = b"zuno journal entry 1\n" + link.row.hash.encode()  # its purpose is part of what is signed
    assert key.verify(PUBLIC, signed, bytes.fromhex(link.row.signature))


def test_a_head(key: KeyFile) -> None:
    said = f'{{"format":1,"hash":"{FIRST_PREV}","node":"{PUBLIC}","seq":0}}'
    signature = key.sign(b"zuno journal head 1\n" + said.encode()).hex()
    assert first_head(key).decode() == f'{{"head":{said},"signature":"{signature}"}}\n'


RESPELLED = {
    "capitals": str.upper,
    "one capital": lambda text: text.replace("a", "A", 1),
    "spaces between bytes": lambda text: " ".join(text[i : i + 2] for i in range(0, len(text), 2)),
    "a space before": lambda text: f" {text}",
    "a line break behind": lambda text: f"{text}\n",
    "a prefix": lambda text: f"0x{text}",
    "a byte less": lambda text: text[:-2],
    "a byte more": lambda text: f"{text}00",
    "half a byte less": lambda text: text[:-1],
    "no hex": lambda text: f"{text[:-1]}g",
    "nothing": lambda text: "",
}


@pytest.mark.parametrize("name", RESPELLED)
def test_a_signature_has_one_spelling(key: KeyFile, name: str) -> None:
    """The same bytes in other letters would be a second row of the same entry."""
    row = forge_entry(key).row
    assert isinstance(verify_row(row, key), Entry)
    respelled = RESPELLED[name](row.signature)
    assert respelled != row.signature
    assert isinstance(verify_row(replace(row, signature=respelled), key), Fault)


@pytest.mark.parametrize("name", RESPELLED)
def test_a_head_s_signature_has_one_spelling(key: KeyFile, name: str) -> None:
    link = forge_entry(key)
    signed = decode_canonical(link.head[:-1])
    assert isinstance(signed, dict)
    assert verify_tail(Tail(link.row, link.head, None, exists=True), key) == ChainState(1, link.row.hash)  # type: ignore[arg-type]
    respelled = {**signed, "signature": RESPELLED[name](str(signed["signature"]))}
    assert isinstance(verify_tail(Tail(link.row, canonical(respelled) + b"\n", None, exists=True), key), Fault)


@pytest.mark.parametrize("name", RESPELLED)
def test_an_entry_s_hash_has_one_spelling(key: KeyFile, name: str) -> None:
    row = forge_entry(key).row
    assert isinstance(verify_row(replace(row, hash=RESPELLED[name](row.hash)), key), Fault)


# -- what an entry is


def test_an_entry_may_be_as_large_as_its_bound(key: KeyFile) -> None:
    rest = len(forge_entry(key, word="").row.body)
    assert len(forge_entry(key, word="x" * (MAX_BODY - rest)).row.body) == MAX_BODY
    with pytest.raises(ValueError, match=str(MAX_BODY + 1)):
        forge_entry(key, word="x" * (MAX_BODY - rest + 1))


def forge_body(key: KeyFile, body: bytes) -> Row:
    """Any bytes, hashed and signed as an entry is."""
    name = digest(body)
    signature = key.sign(b"zuno journal entry 1\n" + name.encode()).hex()
    return replace(forge_entry(key).row, body=body, hash=name, signature=signature)


def test_what_is_signed_and_no_entry_is_a_fault(key: KeyFile) -> None:
    row = forge_entry(key).row
    assert isinstance(verify_row(forge_body(key, row.body), key), Entry)
    fields = decode_canonical(row.body)
    assert isinstance(fields, dict)
    by_name = {("request_id" if name == "requestId" else name): value for name, value in fields.items()}
    without = {name: value for name, value in fields.items() if name != "prev"}
    for body in (b"", b"{}", b"[1]", canonical(by_name), canonical(without), canonical({**fields, "more": 1})):
        fault = verify_row(forge_body(key, body), key)
        assert isinstance(fault, Fault)
        assert fault.seq == row.seq
    assert verify_row(DamagedRow(7, "a column is gone"), key) == Fault(7, "a column is gone")


# -- where the next entry goes


def chain_of(key: KeyFile, count: int) -> list[Link]:
    links: list[Link] = []
    for seq in range(1, count + 1):
        links.append(forge_entry(key, seq, links[-1].row.hash if links else FIRST_PREV))
    return links


def stand(
    key: KeyFile, last: Row | DamagedRow | None, head: bytes | None, begun: bytes | None = None
) -> ChainState | Fault:
    return verify_tail(Tail(last, head, begun, exists=True), key)


def test_the_next_entry_stands_behind_the_one_the_head_vouches_for(key: KeyFile) -> None:
    assert stand(key, None, first_head(key)) == ChainState(0, Digest(FIRST_PREV))
    for link in chain_of(key, 3):
        assert stand(key, link.row, link.head) == ChainState(link.row.seq, Digest(link.row.hash))


def test_a_journal_without_its_head_or_with_a_damaged_end_is_at_fault(key: KeyFile) -> None:
    last = chain_of(key, 3)[-1]
    for head in (None, b"", last.head[:-1], b"\n", b"{}\n"):
        fault = stand(key, last.row, head)
        assert isinstance(fault, Fault)
        assert fault.seq is None
    assert stand(key, DamagedRow(3, "no hash"), last.head) == Fault(3, "no hash")


@pytest.mark.parametrize(("rows", "missing"), [(0, "entries 1 to 3 are"), (1, "entries 2 to 3 are"), (2, "entry 3 is")])
def test_a_cut_tail_is_told_by_its_numbers(key: KeyFile, rows: int, missing: str) -> None:
    links = chain_of(key, 3)
    fault = stand(key, links[rows - 1].row if rows else None, links[2].head)
    assert isinstance(fault, Fault)
    assert fault.seq == rows + 1
    assert missing in fault.reason


@pytest.mark.parametrize(("noted", "lost"), [(2, False), (3, False), (4, True), (5, False)])
@pytest.mark.parametrize("head", [2, 3])
def test_only_the_next_entry_can_have_been_lost_while_it_was_written(
    key: KeyFile, head: int, noted: int, lost: bool
) -> None:
    """With its own head or still with the one before it: of three entries the fourth was under way, or none."""
    links = chain_of(key, 3)
    note = WriteNote(seq=noted, kind="critique", request_id="req_00000000000000aa", hash="ab" * 32)
    found = stand(key, links[2].row, links[head - 1].head, canonical(note))
    expected = ChainState(3, Digest(links[2].row.hash), repaired=head == 2, lost=note if lost else None)
    assert found == expected


def test_a_note_nobody_can_read_names_nothing(key: KeyFile) -> None:
    (link,) = chain_of(key, 1)
    for note in (b"", b"{}", b"not json"):
        assert stand(key, link.row, link.head, note) == ChainState(1, Digest(link.row.hash))


def test_a_head_may_be_one_entry_behind_and_no_more(key: KeyFile) -> None:
    links = chain_of(key, 3)
    last = links[2].row
    repaired = stand(key, last, links[1].head)
    assert repaired == ChainState(3, Digest(last.hash), repaired=True)
    for head in (links[0].head, first_head(key)):
        fault = stand(key, last, head)
        assert isinstance(fault, Fault)
        assert fault.seq is None
    assert stand(key, links[0].row, first_head(key)) == ChainState(1, Digest(links[0].row.hash), repaired=True)


def test_an_entry_behind_the_head_has_to_follow_it(key: KeyFile) -> None:
    links = chain_of(key, 3)
    for name in ("ab" * 32, links[0].row.hash):
        fault = stand(key, links[2].row, sign_head(2, name, key))
        assert isinstance(fault, Fault)
        assert fault.seq == 3
    other = stand(key, links[2].row, sign_head(3, links[1].row.hash, key))
    assert isinstance(other, Fault)
    assert other.seq == 3
