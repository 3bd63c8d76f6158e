"""Seal journal entries and verify them: hash, signature, order. No I/O here."""

import re
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from zuno.journal.port import Author, DamagedRow, Entry, Link, Row, Tail
from zuno.kernel.canonical import Digest, canonical, decode_canonical, digest, encode_model
from zuno.kernel.errors import Malformed
from zuno.kernel.signing import NodeKey
from zuno.kernel.wire import Hex64, Wire, derive, pick

MAX_BODY = 4 * 1024 * 1024
"""Bytes of one entry; what is larger belongs in a bundle."""

_Shape = TypeVar("_Shape", bound=BaseModel)

# Domain separation: an entry's signature is never valid for a head.
_ENTRY, _HEAD = b"zuno journal entry 1\n", b"zuno journal head 1\n"


FIRST_PREV = "0" * 64
"""What the first entry follows."""
Kind = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
Role = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]
RequestId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]


class Record(Wire):
    model_config = ConfigDict(strict=True)


class RecordAuthor(Record):
    role: Role
    key: Hex64


class EntryRecord(Record):
    """The body of an entry: everything but its own hash and signature."""

    format: Literal[1] = 1
    seq: Annotated[int, Field(ge=1)]
    at: Annotated[int, Field(ge=0, lt=2**53)]
    request_id: RequestId | None
    kind: Kind
    author: RecordAuthor
    code: Annotated[str, Field(min_length=1, max_length=64)]
    node: Hex64
    """The public key of the node that wrote and signed it."""
    payload: dict[str, Any]
    bundle: Hex64 | None
    prev: Hex64


class HeadRecord(Record):
    """How far the journal reaches, kept where the rows are not."""

    format: Literal[1] = 1
    node: Hex64
    seq: Annotated[int, Field(ge=0)]
    hash: Hex64


class SignedHead(Record):
    head: HeadRecord
    signature: Annotated[str, Field(pattern=r"^[0-9a-f]{128}$")]


class WriteNote(Record):
    """Left beside the journal while an entry is being written, so that a start after a crash can name it."""

    seq: Annotated[int, Field(ge=1)]
    kind: Kind
    request_id: RequestId | None
    hash: Hex64


CHECKPOINT: Final = "checkpoint"
"""The kind of the entry that seals the entries before it."""


class CheckpointRecord(Record):
    """What `journal verify` found whole before it sealed it: of every entry from 1 to `upto` the hash, the link and the
    columns, and the signature, checked then or when an earlier checkpoint was written. Whoever only appends writes
    none, so that none vouches for what nobody verified."""

    upto: Annotated[int, Field(ge=1)]
    hash: Hex64
    """Of entry `upto`."""
    signatures: Annotated[int, Field(ge=0)]
    """Checked by this process; of the other entries by those who wrote earlier checkpoints."""


class Frame(NamedTuple):
    """What an entry's body says beside author, code and payload."""

    seq: int
    at: int
    request_id: str | None
    kind: str
    node: str
    bundle: str | None
    prev: str


# The fields of canonical bytes are sorted, and the payload is the only one of any length: what stands before and behind
# it is read without parsing it.
_NO_ENTRY = "its body is not an entry of this format"
_BEFORE_PAYLOAD = re.compile(
    r'\{"at":(0|[1-9][0-9]{0,15}),"author":\{"key":"[0-9a-f]{64}","role":"[a-z][a-z0-9_-]{0,31}"\},'
    r'"bundle":(?:null|"([0-9a-f]{64})"),"code":"(?:[^"\\]|\\.)+","format":1,"kind":"([a-z][a-z0-9_]{0,63})",'
    r'"node":"([0-9a-f]{64})","payload":\{'
)
_BEHIND_PAYLOAD = re.compile(
    r'\},"prev":"([0-9a-f]{64})","requestId":(?:null|"([A-Za-z0-9_-]{1,64})"),"seq":([1-9][0-9]*)\}\Z'
)
_LONGEST_BEHIND = 256


def read_frame(body: bytes) -> Frame | None:
    """The frame of an entry's body; None where it has not the form of one."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return None
    before = _BEFORE_PAYLOAD.match(text)
    behind = _BEHIND_PAYLOAD.search(text, max(0, len(text) - _LONGEST_BEHIND))
    if before is None or behind is None or behind.start() < before.end() - 1:
        return None
    (at, bundle, kind, node), (prev, request_id, seq) = before.groups(), behind.groups()
    return Frame(int(seq), int(at), request_id, kind, node, bundle, prev)


@dataclass(frozen=True, slots=True)
class Fault:
    """The first check that failed, and at which entry; None: no single entry's fault."""

    seq: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class ChainState:
    """Where the next entry goes, and what a crash left behind."""

    seq: int
    hash: Digest
    repaired: bool = False
    """The newest entry was written and its head was not."""
    lost: WriteNote | None = None
    """The entry that was being written when a crash happened and is not there."""


def seal_record(record: EntryRecord, key: NodeKey) -> Link:
    """The record as a row, with the head and the note that go with it."""
    body = canonical(record)
    if len(body) > MAX_BODY:
        raise ValueError(f"an entry of {len(body)} bytes; put what is large into a bundle")
    name = digest(body)
    signature = key.sign(_ENTRY + name.encode()).hex()
    row = Row(record.seq, record.at, record.request_id, record.kind, body, name, signature)
    note = derive(WriteNote, record, hash=name)
    return Link(row, sign_head(record.seq, name, key), encode_model(note))


def sign_head(seq: int, name: str, key: NodeKey) -> bytes:
    head = HeadRecord(node=key.public, seq=seq, hash=name)
    return encode_model(SignedHead(head=head, signature=key.sign(_HEAD + encode_model(head)).hex())) + b"\n"


def first_head(key: NodeKey) -> bytes:
    return sign_head(0, FIRST_PREV, key)


def verify_link(row: Row | DamagedRow, seq: int, prev: str, node: str) -> Frame | Fault:
    """The frame of a row, if it is number `seq`, follows the entry of hash `prev` (empty: whichever), and its hash and
    columns agree with its body. Its signature is not looked at."""
    if isinstance(row, DamagedRow) or row.seq != seq:
        return _find_misplacement(row, seq) or Fault(seq, "its row cannot be read")
    if digest(row.body) != row.hash:
        return Fault(seq, "its body and its hash disagree")
    frame = read_frame(row.body)
    if frame is None:
        return Fault(seq, _NO_ENTRY)
    if frame.node != node:
        return Fault(seq, f"it was signed by another node ({frame.node[:12]}…)")
    if (row.seq, row.at, row.request_id, row.kind) != frame[:4]:
        return Fault(seq, "its columns do not say what its body says")
    return frame if prev in ("", frame.prev) else Fault(seq, "it does not follow the entry before it")


def verify_signature(row: Row, key: NodeKey) -> Fault | None:
    """Of a row whose link holds: whether this node signed it, and its body is canonical."""
    if (fault := _find_unsigned(row, key)) is not None:
        return fault
    try:
        fields = decode_canonical(row.body)
    except Malformed:
        fields = None
    whole = isinstance(fields, dict) and len(fields) == len(EntryRecord.__annotations__)
    return None if whole else Fault(row.seq, _NO_ENTRY)


def _find_unsigned(row: Row, key: NodeKey) -> Fault | None:
    signature = _decode_hex(row.signature, 64)
    if signature is None:
        return Fault(row.seq, "its signature is not one")
    signed = key.verify(key.public, _ENTRY + row.hash.encode(), signature)
    return None if signed else Fault(row.seq, "its signature does not belong to its hash")


def verify_row(row: Row | DamagedRow, key: NodeKey) -> Entry | Fault:
    """The entry of a row, if its hash, signature and columns agree with its body."""
    if isinstance(row, DamagedRow):
        return Fault(row.seq, row.reason)
    frame = verify_link(row, row.seq, "", key.public)
    fault = frame if isinstance(frame, Fault) else _find_unsigned(row, key)
    record = _decode_record(EntryRecord, row.body) if fault is None else None
    return fault or Fault(row.seq, _NO_ENTRY) if record is None else build_entry(record, row)


def build_entry(record: EntryRecord, row: Row) -> Entry:
    same = pick(record, "seq", "at", "request_id", "kind", "code", "payload", "bundle", "prev")
    author = Author(record.author.role, record.author.key)
    return Entry(**same, author=author, hash=Digest(row.hash), signature=row.signature)


def verify_next_row(row: Row | DamagedRow, seq: int, prev: str, key: NodeKey) -> Entry | Fault:
    """The entry of a row, if it is number `seq` and follows the entry of hash `prev`."""
    entry = _find_misplacement(row, seq) or verify_row(row, key)
    if isinstance(entry, Entry) and entry.prev != prev:
        return Fault(seq, "it does not follow the entry before it")
    return entry


def _find_misplacement(row: Row | DamagedRow, seq: int) -> Fault | None:
    if row.seq < seq:
        return Fault(row.seq, f"a row of this number stands where entry {seq} should")
    if row.seq > seq:
        return Fault(seq, f"it is missing: entry {row.seq} stands in its place")
    return Fault(seq, row.reason) if isinstance(row, DamagedRow) else None


def read_checkpoint(entry: Entry) -> CheckpointRecord | Fault:
    """What a checkpoint says of an entry before it."""
    try:
        sealed = CheckpointRecord.model_validate(dict(entry.payload), by_alias=True, by_name=False)
    except ValidationError:
        return Fault(entry.seq, "it is no checkpoint of this format")
    return sealed if sealed.upto < entry.seq else Fault(entry.seq, f"it seals entry {sealed.upto}, which comes later")


def verify_tail(tail: Tail, key: NodeKey) -> ChainState | Fault:
    """Check that the newest entry is the one the signed head names; at most one write may be unfinished."""
    head = _read_head(tail.head, key)
    if isinstance(head, Fault):
        return head
    if isinstance(tail.last, DamagedRow):
        return Fault(tail.last.seq, tail.last.reason)
    seq, name = (0, FIRST_PREV) if tail.last is None else (tail.last.seq, tail.last.hash)
    if head.seq > seq:
        gone = f"entry {head.seq} is" if head.seq == seq + 1 else f"entries {seq + 1} to {head.seq} are"
        return Fault(seq + 1, f"the tail is cut: {gone} missing")
    note = None if tail.begun is None else _decode_record(WriteNote, tail.begun)
    lost = note if note is not None and note.seq == seq + 1 else None
    if head.seq == seq:
        if head.hash != name:
            return Fault(seq, "it is not the entry the head vouches for")
        return ChainState(seq, Digest(name), lost=lost)
    if head.seq < seq - 1 or tail.last is None:
        return Fault(
            None, f"the head vouches for entry {head.seq} while entry {seq} is the newest: an old head was put back"
        )
    entry = verify_next_row(tail.last, seq, head.hash, key)
    return entry if isinstance(entry, Fault) else ChainState(seq, Digest(name), repaired=True, lost=lost)


def _read_head(data: bytes | None, key: NodeKey) -> HeadRecord | Fault:
    if data is None:
        return Fault(None, "the signed head is missing, so nothing says which entry is the newest")
    signed = _decode_record(SignedHead, data[:-1]) if data.endswith(b"\n") else None
    if signed is None:
        return Fault(None, "the signed head is damaged")
    if signed.head.node != key.public:
        return Fault(None, f"the head was signed by another node ({signed.head.node[:12]}…)")
    signature = _decode_hex(signed.signature, 64)
    if signature is None or not key.verify(key.public, _HEAD + canonical(signed.head), signature):
        return Fault(None, "the head's signature does not hold")
    return signed.head


def _decode_record(shape: type[_Shape], data: bytes) -> _Shape | None:
    try:
        return shape.model_validate(decode_canonical(data), by_alias=True, by_name=False)
    except (Malformed, ValidationError):
        return None


def _decode_hex(text: str, size: int) -> bytes | None:
    """The bytes of lower-case hex; `bytes.fromhex` alone would accept capitals and spaces."""
    try:
        data = bytes.fromhex(text)
    except ValueError:
        return None
    return data if len(data) == size and data.hex() == text else None
