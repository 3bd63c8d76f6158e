"""Processes of our own: as many as were asked for, and a death is noticed; else see the exam of `TaskRunner`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from multiprocessing import active_children
from pathlib import Path

import pytest

from zuno.adapters.worker_processes import run_in_processes
from zuno.kernel.errors import Refused


async def count(task: int) -> AsyncIterator[tuple[int, int, int]]:
    for place in range(task):
        yield task, place, os.getpid()


async def die(task: int) -> AsyncIterator[int]:
    yield task
    os._exit(3)


@pytest.mark.parametrize("workers", [1, 2])
async def test_as_many_processes_work_as_were_asked_for(workers: int) -> None:
    told: list[tuple[int, int, int]] = []
    await run_in_processes(count, (3, 1, 2), workers, told.append, asyncio.Event())
    assert sorted(found[:2] for found in told) == [(1, 0), (2, 0), (2, 1), (3, 0), (3, 1), (3, 2)]
    assert len({found[2] for found in told}) == workers


async def wait_for_others(task: tuple[Path, int]) -> AsyncIterator[int]:
    """The first task goes on until the others are done."""
    folder, number = task
    if number == 0:
        for _ in range(6_000):
            if len(list(folder.iterdir())) == 4:
                break
            await asyncio.sleep(0.01)
    (folder / str(number)).touch()
    yield number


async def test_whoever_is_free_takes_the_next_task(tmp_path: Path) -> None:
    told: list[int] = []
    tasks = [(tmp_path, number) for number in range(5)]
    await run_in_processes(wait_for_others, tasks, 2, told.append, asyncio.Event())
    assert told[-1] == 0
    assert sorted(told) == [0, 1, 2, 3, 4]


async def fail_later(task: int) -> AsyncIterator[int]:
    yield task
    raise Refused("no")


async def test_what_was_found_before_a_failure_is_told() -> None:
    told: list[int] = []
    with pytest.raises(Refused):
        await run_in_processes(fail_later, (7, 7), 2, told.append, asyncio.Event())
    assert 7 in told


async def read_environment(task: str) -> AsyncIterator[str | None]:
    yield os.environ.get(task)


async def test_processes_start_while_the_tasks_are_planned_and_with_their_own_environment() -> None:
    told: list[str | None] = []

    async def plan() -> list[str]:
        assert len(active_children()) == 2
        return ["OPENBLAS_NUM_THREADS", "MALLOC_TRIM_THRESHOLD_"]

    before = dict(os.environ)
    await run_in_processes(read_environment, plan(), 2, told.append, asyncio.Event())
    assert sorted(map(str, told)) == ["1", "134217728"]
    assert dict(os.environ) == before
    assert not active_children()


async def test_a_worker_that_dies_is_noticed() -> None:
    with pytest.raises(RuntimeError):
        await run_in_processes(die, (1, 2), 2, lambda found: None, asyncio.Event())
