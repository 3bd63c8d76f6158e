"""The envelope: who says what to whom, in which debate, in answer to what, and signed by whose key."""

from __future__ import annotations

import json
from hashlib import sha256
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
    """The message this one answers."""
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
    """A message's name follows from who says it, where and when: nobody can take another's."""
    return "msg_" + sha256(f"{request_id} {sender} {seq}".encode()).hexdigest()[:16]
