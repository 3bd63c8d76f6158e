"""Base class of wire messages: frozen, no extra fields, camelCase outside."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

FIRST_EDITION: Final = 1
Edition = Annotated[int, Field(ge=FIRST_EDITION, lt=2**31, exclude_if=lambda edition: edition == FIRST_EDITION)]
"""The edition of the rules. Absent means the first, so records older than editions keep their bytes."""


class Wire(BaseModel):
    """A message or a part of one."""

    model_config = ConfigDict(
        defer_build=True,  # a command needs one of these, not all of them
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        serialize_by_alias=True,
        allow_inf_nan=False,
    )


Hex64 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
