"""Messages between peers: signed envelopes of a debate, which role may send which, and frames (ack, ping, pong)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from types import MappingProxyType
from typing import Annotated, Final, Literal

from pydantic import Field, ValidationError, model_validator

from zuno.journal.port import Entry
from zuno.kernel.canonical import Json, encode_model
from zuno.kernel.errors import Malformed
from zuno.kernel.text import plain_text
from zuno.kernel.wire import FIRST_EDITION, Edition, Hex64, Wire
from zuno.lp.model.debate import Kind, Payload, Role

MessageId = Annotated[str, Field(pattern=r"^msg_[0-9a-f]{16}$")]
RequestId = Annotated[str, Field(pattern=r"^req_[0-9a-f]{16}$")]
Millis = Annotated[int, Field(ge=0, lt=2**53)]
LONGEST_TEXT: Final = 2_000
"""Characters of any one text in a message: an agent's reasoning has as many, and none needs more."""


class Envelope(Wire):
    """One message. Without `sig` its canonical bytes are what `sig` signs; with it, they are what travels."""

    request_id: RequestId
    from_: Role = Field(alias="from")
    to: Role
    kind: Kind
    payload: Payload
    ts: Millis
    id: MessageId
    version: Literal[1] = 1
    edition: Edition = FIRST_EDITION
    """Of the rules its sender argues by."""
    seq: int = Field(ge=0, lt=2**53)
    """Counts what one sender says in one debate."""
    cause: MessageId | None = None
    expires: Millis
    key: Hex64
    sig: Annotated[str, Field(pattern=r"^([0-9a-f]{128})?$")] = ""

    @model_validator(mode="after")
    def _one_kind(self) -> Envelope:
        if self.payload.kind is not self.kind:
            raise ValueError(f"the envelope says {self.kind}, its payload {self.payload.kind}")
        return self


MESSAGE_KINDS: Final = frozenset(kind.value for kind in Kind)


def read_entry(entry: Entry) -> Envelope | None:
    """The message a journal entry holds; None for entries of other kinds."""
    return Envelope.model_validate(dict(entry.payload)) if entry.kind in MESSAGE_KINDS else None


def signed_part(envelope: Envelope) -> bytes:
    """What the signature covers: everything but itself."""
    return encode_model(envelope if not envelope.sig else envelope.model_copy(update={"sig": ""}))


def insert_signature(signed: bytes, signature: str) -> bytes:
    """What travels, from what was signed: the same bytes with the signature in its place, behind the payload."""
    place = signed.rindex(_NO_SIGNATURE) + len(_NO_SIGNATURE) - 1
    return signed[:place] + signature.encode("ascii") + signed[place:]


_NO_SIGNATURE: Final = b'"sig":""'


def to_bytes(envelope: Envelope) -> bytes:
    return encode_model(envelope)


def from_bytes(data: bytes) -> Envelope:
    """`Malformed` for anything but the canonical bytes of an envelope."""
    try:
        content: Json = json.loads(data.decode("utf-8"))
        check_texts(content)
        envelope = Envelope.model_validate(content)
        same = to_bytes(envelope) == data  # so `data` is canonical, for that is what it is compared with
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise Malformed(plain_text(f"This is no envelope: {place} {first['msg']}.", 300)) from None
    except (ValueError, TypeError, ArithmeticError, RecursionError) as error:  # no JSON, or it has no canonical bytes
        raise Malformed(f"This envelope cannot be spelled canonically ({type(error).__name__}).") from None
    if not same:
        raise Malformed("This envelope is not spelled canonically.")
    return envelope


def check_texts(value: Json) -> None:
    """`Malformed` for a text that is longer than any in a message may be."""
    kind = type(value)
    if kind is str and len(value) > LONGEST_TEXT:  # type: ignore[arg-type]
        raise Malformed(f"This message has a text of {len(value)} characters; {LONGEST_TEXT} are the most.")  # type: ignore[arg-type]
    if kind is dict or kind is list:
        for item in value.values() if kind is dict else value:  # type: ignore[union-attr]
            check_texts(item)


def message_id(request_id: str, sender: Role, seq: int) -> str:
    """A message id is derived from request, sender and number, so that no sender can use another's."""
    return "msg_" + sha256(f"{request_id} {sender} {seq}".encode()).hexdigest()[:16]


FRONT_BYTES: Final = 512
"""More than a front ever takes."""
_BACK_BYTES: Final = 512
_MESSAGE: Final = rb"msg_[0-9a-f]{16}"
_NUMBER: Final = rb"0|[1-9][0-9]{0,15}"
_FRONT: Final = re.compile(
    rb'\{"cause":(?:null|"%b"),(?:"edition":([1-9][0-9]{0,8}),)?"expires":(%b),"from":"([a-z]{1,16})","id":"(%b)",'
    rb'"key":"([0-9a-f]{64})","kind":"([a-z_]{1,32})","payload":\{' % (_MESSAGE, _NUMBER, _MESSAGE)
)
_BACK: Final = re.compile(
    rb'\},"requestId":"(req_[0-9a-f]{16})","seq":(%b),"sig":"([0-9a-f]{128})","to":"([a-z]{1,16})","ts":(%b),'
    rb'"version":1\}\Z' % (_NUMBER, _NUMBER)
)


@dataclass(frozen=True, slots=True)
class EnvelopeHead:
    sender: Role
    key: str
    kind: Kind
    id: str
    expires: int
    edition: int


@dataclass(frozen=True, slots=True)
class EnvelopeTail:
    request_id: str
    seq: int
    to: Role
    ts: int
    signature: bytes
    signed: bytes
    """The bytes the signature covers, if these are an envelope's: all but the signature."""


def parse_head(data: bytes) -> EnvelopeHead:
    """Of an envelope's first bytes; `Malformed` for what cannot be one. Canonical bytes sort keys, so head and tail
    have a known shape, and sender and signature are checked before the payload is parsed."""
    match = _FRONT.match(data)
    if match is None:
        raise Malformed("this is no envelope: it does not begin like one")
    edition, expires, sender, name, key, kind = match.groups(b"%d" % FIRST_EDITION)
    try:
        speaker, message_kind = Role(sender.decode()), Kind(kind.decode())
    except ValueError:
        raise Malformed("this is no envelope: nobody has such a role, or says such a thing") from None
    return EnvelopeHead(speaker, key.decode(), message_kind, name.decode(), int(expires), int(edition))


def parse_tail(data: bytes) -> EnvelopeTail:
    """Of an envelope's whole bytes; `Malformed` for what cannot be one."""
    match = _BACK.search(data, max(0, len(data) - _BACK_BYTES))
    if match is None:
        raise Malformed("this is no envelope: it does not end like one")
    request_id, seq, signature, to, ts = match.groups()
    begins, ends = match.span(3)
    try:
        role = Role(to.decode())
    except ValueError:
        raise Malformed("this is no envelope: nobody has such a role") from None
    signed = data[:begins] + data[ends:]
    return EnvelopeTail(request_id.decode(), int(seq), role, int(ts), bytes.fromhex(signature.decode()), signed)


_ALL: Final = frozenset(Role)
_AGENTS: Final = _ALL - {Role.CLI}

ROUTES: Final[Mapping[Kind, tuple[frozenset[Role], Role]]] = MappingProxyType(
    {
        Kind.FLOW_START: (frozenset({Role.CLI}), Role.SCOUT),
        Kind.FLOW_CREATE_START: (frozenset({Role.CLI}), Role.SCOUT),
        Kind.CONTEXT_OBSERVED: (frozenset({Role.SCOUT}), Role.STRATEGIST),
        Kind.PROPOSAL: (frozenset({Role.STRATEGIST}), Role.CRITIC),
        Kind.REVISION: (frozenset({Role.STRATEGIST}), Role.CRITIC),
        Kind.CRITIQUE: (frozenset({Role.CRITIC}), Role.STRATEGIST),
        Kind.DEADLOCK: (frozenset({Role.CRITIC}), Role.ARBITER),
        Kind.PLAN_READY: (frozenset({Role.CRITIC, Role.ARBITER}), Role.CLI),
        Kind.FLOW_FAILED: (_ALL, Role.CLI),
        Kind.AGENT_THOUGHT: (_AGENTS, Role.CLI),
    }
)
"""Who may send which kind of message to whom; anything else is dropped, even if validly signed."""


MOST_ACKS = 64
LONGEST_VERSION: Final = 64
_VERSION: Final = re.compile(r"(.*?)(?: edition ([1-9][0-9]{0,8}))?", re.DOTALL)
Nonce = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
Signature = Annotated[str, Field(pattern=r"^([0-9a-f]{128})?$")]


class Frame(Wire):
    """Signed like an envelope: its canonical bytes without `sig` are what `sig` signs."""

    by: Role
    to: Role
    ts: Millis
    key: Hex64
    sig: Signature = ""


class Ack(Frame):
    """These are written down here: whoever sent them need not send them again."""

    of: tuple[Hex64, ...] = Field(min_length=1, max_length=MOST_ACKS)
    """Digests of what was received, so that an ack is of those very bytes."""


class Ping(Frame):
    nonce: Nonce


class Pong(Frame):
    nonce: Nonce
    """The ping's own: an old answer answers nothing."""
    code: Annotated[str, Field(min_length=1, max_length=LONGEST_VERSION)]
    """The version of Zuno that answers, and in the same words its edition: a peer of edition 1 takes no other field."""


def frame_signed_part(frame: Frame) -> bytes:
    """Kind and content: an ack can never pass for a pong."""
    return type(frame).__name__.encode() + b"\n" + encode_model(frame.model_copy(update={"sig": ""}))


def version_text(code: str, edition: int) -> str:
    suffix = f" edition {edition}"
    return code[: LONGEST_VERSION - len(suffix)] + suffix


def read_version(text: str) -> tuple[str, int]:
    match = _VERSION.fullmatch(text)
    code, edition = (text, None) if match is None else match.groups()
    return code, FIRST_EDITION if edition is None else int(edition)
