"""The envelope: who says what to whom, in which debate, in answer to what, and signed by whose key."""

from __future__ import annotations

from hashlib import sha256
from typing import Annotated, Literal

from pydantic import Field, ValidationError, model_validator

from zuno.domain.errors import Malformed
from zuno.domain.tokens import plain_text
from zuno.messages.codec import canonical, decoded
from zuno.messages.debate import Kind, Payload, Role
from zuno.messages.record import Hex64
from zuno.messages.wire import Wire

MessageId = Annotated[str, Field(pattern=r"^msg_[0-9a-f]{16}$")]
RequestId = Annotated[str, Field(pattern=r"^req_[0-9a-f]{16}$")]
Millis = Annotated[int, Field(ge=0, lt=2**53)]


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


def signed_part(envelope: Envelope) -> bytes:
    """What the signature covers: everything but itself."""
    return canonical(envelope.model_copy(update={"sig": ""}))


def to_bytes(envelope: Envelope) -> bytes:
    return canonical(envelope)


def from_bytes(data: bytes) -> Envelope:
    """`Malformed` for anything but the canonical bytes of an envelope."""
    try:
        envelope = Envelope.model_validate(decoded(data))
        same = to_bytes(envelope) == data
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise Malformed(plain_text(f"This is no envelope: {place} {first['msg']}.", 300)) from None
    except (ValueError, TypeError, ArithmeticError) as error:  # a value that was read and has no canonical bytes
        raise Malformed(f"This envelope cannot be spelled canonically ({type(error).__name__}).") from None
    if not same:
        raise Malformed("This envelope is not spelled canonically.")
    return envelope


def message_id(request_id: str, sender: Role, seq: int) -> str:
    """A message's name follows from who says it, where and when: nobody can take another's."""
    return "msg_" + sha256(f"{request_id} {sender} {seq}".encode()).hexdigest()[:16]
