"""A figure that is there, or the reason why it is not: what the desk does not know must never look like a number."""

from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from zuno.kernel.wire import derive as derive  # the desk's records are derived from one another
from zuno.kernel.wire import pick as pick

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Missing:
    """There is no figure, for this reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class NotRecorded(Missing):
    """Missing because this home never recorded the feed: rules report it as not judged instead of firing."""


Known: TypeAlias = T | Missing


def figure_in(known: Known[Any], name: str) -> Known[float]:
    """One figure of a group that may be missing as a whole."""
    return known if isinstance(known, Missing) else getattr(known, name)


def or_none(figure: Known[T]) -> T | None:
    """The figure alone, where the reason is told elsewhere."""
    return None if isinstance(figure, Missing) else figure
