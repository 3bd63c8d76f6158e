"""The base of everything that crosses a border: frozen, closed, camelCase outside."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Wire(BaseModel):
    """A message or a part of one. Integers are integers and nothing is added on the way."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        serialize_by_alias=True,
        allow_inf_nan=False,
    )
