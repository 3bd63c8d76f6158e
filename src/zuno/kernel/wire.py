"""Base class of wire messages: frozen, no extra fields, camelCase outside."""

from typing import Annotated, Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

M = TypeVar("M", bound=BaseModel)
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


def pick(source: object, *names: str) -> dict[str, Any]:
    """These attributes by name, for a record that has fields of the same names."""
    return {name: getattr(source, name) for name in names}


def derive(shape: type[M], *sources: object, **own: Any) -> M:
    """A record of these fields; any other is that of the first source which has one of its name."""
    fields = {
        name: getattr(source, name)
        for source in reversed(sources)
        for name in shape.model_fields
        if name not in own and hasattr(source, name)
    }
    return shape(**fields, **own)
