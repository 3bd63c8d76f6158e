"""A figure that is there, or the reason why it is not: what the desk does not know must never look like a number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from pydantic import BaseModel

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Missing:
    """There is no figure, for this reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class NotRecorded(Missing):
    """Missing because this home never recorded the feed: rules report it as not judged instead of firing."""


Known: TypeAlias = T | Missing


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


def figure_in(known: Known[Any], name: str) -> Known[float]:
    """One figure of a group that may be missing as a whole."""
    return known if isinstance(known, Missing) else getattr(known, name)


def or_none(figure: Known[T]) -> T | None:
    """The figure alone, where the reason is told elsewhere."""
    return None if isinstance(figure, Missing) else figure
