"""Work that is spread: tasks done elsewhere, and their results told as they come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class TaskRunner(Protocol):
    """Promises, to everyone who has tasks to be done:

    - Every result of every task is told once, in whatever order they come.
    - What a task raises is raised here, and the others are given up.
    - Once `stop` is set the rest is given up; what was told stays told.
    - Tasks that are still being planned are waited for; what planning raises is raised here.
    - `work` is a function of a module, tasks and results are plain values: they cross the border of a process.
    """

    async def __call__(
        self,
        work: Callable[[T], AsyncIterator[R]],
        tasks: Sequence[T] | Awaitable[Sequence[T]],
        workers: int,
        hear: Callable[[R], None],
        stop: asyncio.Event,
    ) -> None: ...


def discard_plan(tasks: object) -> None:
    """Plan nothing more: a coroutine that nobody waits for would be warned about."""
    if asyncio.iscoroutine(tasks):
        tasks.close()
