"""What peers say to each other about messages, below the debate: received, are you there, here I am."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import Field

from zuno.kernel.canonical import encode_model
from zuno.kernel.wire import FIRST_EDITION, Hex64, Wire
from zuno.lp.mesh.envelope import Millis
from zuno.lp.model.debate import Role

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
    """A version and its edition as a pong says them."""
    suffix = f" edition {edition}"
    return code[: LONGEST_VERSION - len(suffix)] + suffix


def read_version(text: str) -> tuple[str, int]:
    """The version and the edition that a pong tells."""
    found = _VERSION.fullmatch(text)
    code, edition = (text, None) if found is None else found.groups()
    return code, FIRST_EDITION if edition is None else int(edition)
