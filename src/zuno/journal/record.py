"""What a journal entry and the journal's head say, as they are hashed and signed."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from zuno.kernel.wire import Hex64

FIRST_PREV = "0" * 64
"""What the first entry follows."""
Kind = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
Role = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]
RequestId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]


class Record(BaseModel):
    model_config = ConfigDict(
        defer_build=True,
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        validate_by_name=True,
        serialize_by_alias=True,
    )


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
