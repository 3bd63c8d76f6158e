"""Work for a `TaskRunner`, in a module that a new process loads at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from zuno.kernel.errors import Refused


async def count(task: int) -> AsyncIterator[tuple[int, int]]:
    for number in range(task):
        yield task, number


async def fail(task: int) -> AsyncIterator[int]:
    yield task
    raise Refused("no")


async def never_end(task: int) -> AsyncIterator[int]:
    if task == 0:
        yield task
        return
    await asyncio.sleep(600)
