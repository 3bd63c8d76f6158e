"""Lines of a home's log, as they are shown, and the id they are found by: of a request, a cycle, a plan."""

import re
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

LEVELS: Final = ("debug", "info", "warning", "error", "critical")
"""The quietest first."""
LOG_ID: Final = re.compile(r"[a-z]{2,8}_[0-9a-f]{6,64}")
_ids: Final[ContextVar[tuple[str, ...]]] = ContextVar("zuno_log_ids", default=())
Self = TypeVar("Self")
T = TypeVar("T")
P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class LogLine:
    at: str
    level: str
    where: str
    text: str
    id: str = ""
    """Of the request, cycle or plan it was logged in; the outer one first: `http_1a2b3c/run_0f0f0f`."""


def current_log_id() -> str:
    return "/".join(_ids.get())


@contextmanager
def log_under(id: str) -> Iterator[None]:
    """Every line that is logged inside, by tasks begun there too, carries this id. What is no id changes nothing."""
    ids = _ids.get()
    known = id in ids or LOG_ID.fullmatch(id) is None
    token = _ids.set(ids if known else (*ids, id))
    try:
        yield
    finally:
        _ids.reset(token)


def logged_by_id(
    act: Callable[Concatenate[Self, str, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Self, str, P], Coroutine[Any, Any, T]]:
    """Of a method whose first argument is the id."""

    @wraps(act)
    async def run(self: Self, id: str, /, *args: P.args, **named: P.kwargs) -> T:
        with log_under(id):
            return await act(self, id, *args, **named)

    return run
