"""What peers say to each other about messages, below the debate: received, are you there, here I am."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from zuno.messages.codec import spelled
from zuno.messages.debate import Role
from zuno.messages.envelope import Millis
from zuno.messages.record import Hex64
from zuno.messages.wire import Wire

MOST_ACKS = 64
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
    code: Annotated[str, Field(min_length=1, max_length=64)]
    """The version of Zuno that answers."""


def frame_signed_part(frame: Frame) -> bytes:
    """Kind and content: an ack can never pass for a pong."""
    return type(frame).__name__.encode() + b"\n" + spelled(frame.model_copy(update={"sig": ""}))
