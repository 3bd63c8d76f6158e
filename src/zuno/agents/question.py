"""One question to one agent: what it is told, what it may answer, and who answers when it cannot."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Generic, Literal, TypeVar

from zuno.agents.opinion import Opinion
from zuno.agents.prompts import Value
from zuno.ports.model import Attempt, Image

T = TypeVar("T", bound=Opinion)

Source = Literal["model", "repaired", "fallback", "deterministic"]
"""Who spoke: the model, the model once its error was named, the rules in its place, the rules as no model sits."""


def _nothing(value: object) -> None:
    return None


def _all_supported(value: object) -> Iterable[str]:
    return ()


@dataclass(frozen=True, slots=True)
class Question(Generic[T]):
    """Role and round name the question within a run; asked twice they would share a record, so ask once."""

    role: str
    round: int
    prompt: str
    """The name of a prompt file."""
    variables: Mapping[str, Value]
    output: type[T]
    fallback: Callable[[], T]
    """The deterministic twin. It answers the same question from the same facts, inside the same bounds."""
    judge: Callable[[T], str | None] = _nothing
    """Bounds that need the context: None, or the error to name to the model."""
    unsupported: Callable[[T], Iterable[str]] = _all_supported
    """The figures of its texts that no fact supports. Whoever asks knows which text speaks of what."""
    images: tuple[Image, ...] = ()
    max_output_tokens: int = 1_500

    def __post_init__(self) -> None:
        if self.round < 0 or self.max_output_tokens < 1:
            raise ValueError(f"the question to {self.role} has round {self.round}, output {self.max_output_tokens}")
        schema_of(self.output)


@dataclass(frozen=True, slots=True)
class Spoken(Generic[T]):
    """The answer, who gave it, and why it was not the model where it was not."""

    value: T
    source: Source
    why: str = ""
    attempts: tuple[Attempt, ...] = field(default=())

    @property
    def model(self) -> str | None:
        """The model whose words these are."""
        return self.attempts[-1].model if self.source in ("model", "repaired") else None


@cache
def schema_of(output: type[Opinion]) -> str:
    """The shape as JSON schema; a shape that is not closed is our own mistake.

    Not sorted: a model writes the fields in the order of the schema, and the shape's author chose it.
    """
    schema = output.model_json_schema()
    if open_parts := sorted(set(_open_objects(schema))):
        raise ValueError(f"{output.__name__} is not closed: {', '.join(open_parts)}")
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)


def _open_objects(schema: object, name: str = "it") -> Iterator[str]:
    """Objects of a JSON schema that take fields nobody named."""
    if isinstance(schema, Mapping):
        title = str(schema.get("title", name))
        if schema.get("type") == "object" and schema.get("additionalProperties") is not False:
            yield title
        for key, part in schema.items():
            yield from _open_objects(part, str(key))
    elif isinstance(schema, list):
        for part in schema:
            yield from _open_objects(part, name)
