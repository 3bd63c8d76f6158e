"""One question to one agent: prompt, answer schema, checks and fallback."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict

from zuno.llm.port import Attempt, Image
from zuno.llm.prompts import Value


class Opinion(BaseModel):
    """The base of every shape a model may return, parts included: frozen, closed, no "0.7" for a number, no NaN.

    Percentages that face a model are whole numbers with bounds, because grammars enforce those; code divides.
    """

    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


T = TypeVar("T", bound=Opinion)

Source = Literal["model", "repaired", "fallback", "deterministic"]
"""Who spoke: the model, the model once its error was named, the rules in its place, the rules as no model sits."""


Screen = Callable[[str, Callable[[str], Iterable[str]], str], str]
"""Leaves faulty sentences and words of strangers out of a text, and keeps why: its text, what finds faults in a piece
of it, and what stands there where nothing is left."""
BY_RULE: Final = "By the rules: "
"""How the rules' words begin where they replace those of a model that decided."""


@dataclass(frozen=True, slots=True)
class Question(Generic[T]):
    """A question; role and round identify it within a run, so ask it once."""

    role: str
    round: int
    prompt: str
    variables: Callable[[], Mapping[str, Value]]
    """Values for the prompt's places; computed when a model is asked."""
    output: type[T]
    fallback: Callable[[], T]
    """The deterministic answer to the same question from the same facts, within the same bounds."""
    judge: Callable[[T], str | None] = lambda _: None
    """Bounds that need the context: None, or the error to name to the model."""
    doubt: Callable[[T], str | None] = lambda _: None
    """A question back about a usable answer: None, or what to ask. It is asked once; where the second answer cannot be
    used, the first stands."""
    prose: Callable[[T, Screen], T] = lambda value, _: value
    """The answer with its texts screened: faulty prose costs its words, never the answer. A string that is not screened
    is a field, and untrusted words in it make it wrong."""
    images: tuple[Image, ...] = ()
    max_output_tokens: int = 1_500

    def __post_init__(self) -> None:
        if self.round < 0 or self.max_output_tokens < 1:
            raise ValueError(f"the question to {self.role} has round {self.round}, output {self.max_output_tokens}")
        schema_of(self.output)


@dataclass(frozen=True, slots=True)
class SourcedAnswer(Generic[T]):
    """The answer, who gave it, why it was not the model where it was not, and which of its words were left out."""

    value: T
    source: Source
    why: str = ""
    attempts: tuple[Attempt, ...] = field(default=())

    @property
    def model(self) -> str | None:
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
    if isinstance(schema, Mapping):
        title = str(schema.get("title", name))
        if schema.get("type") == "object" and schema.get("additionalProperties") is not False:
            yield title
        for key, part in schema.items():
            yield from _open_objects(part, str(key))
    elif isinstance(schema, list):
        for part in schema:
            yield from _open_objects(part, name)
