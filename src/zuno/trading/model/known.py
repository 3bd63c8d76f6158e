"""A figure that is there, or the reason why it is not: what the desk does not know must never look like a number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Missing:
    """There is no figure, for this reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class NotRecorded(Missing):
    """There is no figure because this home never recorded its feed, and says so. A rule that would fire on a missing
    figure tells that it was not judged; whoever does not know the difference takes it for missing."""


Known: TypeAlias = T | Missing


def pick(source: object, *names: str) -> dict[str, Any]:
    """These attributes by name, for a record that has fields of the same names."""
    return {name: getattr(source, name) for name in names}


def or_none(figure: Known[T]) -> T | None:
    """The figure alone, where the reason is told elsewhere."""
    return None if isinstance(figure, Missing) else figure
