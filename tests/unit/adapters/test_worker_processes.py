"""Work in processes of our own: every result is told, an error is raised here, and a wish to stop ends it at once."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator

import pytest

from zuno.adapters.worker_processes import run_in_processes
from zuno.kernel.errors import Refused


async def count(task: int) -> AsyncIterator[tuple[int, int, int]]:
    for place in range(task):
        yield task, place, os.getpid()


async def fail(task: int) -> AsyncIterator[int]:
    yield task
    raise Refused(f"no {task}")


async def die(task: int) -> AsyncIterator[int]:
    yield task
    os._exit(3)


async def never_end(task: int) -> AsyncIterator[int]:
    yield task
    await asyncio.sleep(3_600)


@pytest.mark.parametrize("workers", [1, 2])
async def test_every_result_is_told(workers: int) -> None:
    told: list[tuple[int, int, int]] = []
    await run_in_processes(count, (3, 1, 2), workers, told.append, asyncio.Event())
    assert sorted(found[:2] for found in told) == [(1, 0), (2, 0), (2, 1), (3, 0), (3, 1), (3, 2)]
    assert len({found[2] for found in told}) == workers


@pytest.mark.parametrize("workers", [1, 2])
async def test_an_error_is_raised_here(workers: int) -> None:
    told: list[int] = []
    with pytest.raises(Refused):
        await run_in_processes(fail, (1, 2), workers, told.append, asyncio.Event())
    assert told


async def test_a_worker_that_dies_is_noticed() -> None:
    with pytest.raises(RuntimeError):
        await run_in_processes(die, (1, 2), 2, lambda found: None, asyncio.Event())


@pytest.mark.parametrize("workers", [1, 2])
async def test_a_wish_to_stop_ends_it_and_what_was_told_stays_told(workers: int) -> None:
    told: list[int] = []
    stop = asyncio.Event()

    def hear(found: int) -> None:
        told.append(found)
        stop.set()

    await run_in_processes(never_end, (1, 2), workers, hear, stop)
    assert told
