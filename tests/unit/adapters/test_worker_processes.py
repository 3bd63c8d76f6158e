"""Processes of our own: as many as were asked for, and a death is noticed; else see the exam of `TaskRunner`."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Callable
from multiprocessing import active_children
from pathlib import Path

import pytest

from zuno.adapters.worker_processes import make_portable, run_in_processes
from zuno.kernel.errors import DiskFull, Refused, Unavailable


async def count(task: int) -> AsyncIterator[tuple[int, int, int]]:
    for place in range(task):
        yield task, place, os.getpid()


async def die(task: int) -> AsyncIterator[int]:
    yield task
    os._exit(3)


@pytest.mark.soak(every=2)
@pytest.mark.parametrize("workers", [1, 2])
async def test_as_many_processes_work_as_were_asked_for(workers: int) -> None:
    told: list[tuple[int, int, int]] = []
    await run_in_processes(count, (3, 1, 2), workers, told.append, asyncio.Event())
    assert sorted(found[:2] for found in told) == [(1, 0), (2, 0), (2, 1), (3, 0), (3, 1), (3, 2)]
    assert len({found[2] for found in told}) == workers


async def wait_for_others(task: tuple[Path, int]) -> AsyncIterator[int]:
    """The first task goes on until the others are done, and says how many were."""
    folder, number = task
    (folder / str(number)).touch()
    for _ in range(0 if number else 6_000):
        if len(list(folder.iterdir())) == 5:
            break
        await asyncio.sleep(0.01)
    yield number or len(list(folder.iterdir()))


@pytest.mark.slow
async def test_whoever_is_free_takes_the_next_task(tmp_path: Path) -> None:
    told: list[int] = []
    tasks = [(tmp_path, number) for number in range(5)]
    await run_in_processes(wait_for_others, tasks, 2, told.append, asyncio.Event())
    assert sorted(told) == [1, 2, 3, 4, 5]


async def fail_later(task: int) -> AsyncIterator[int]:
    yield task
    raise Refused("no")


@pytest.mark.slow
async def test_what_was_found_before_a_failure_is_told() -> None:
    told: list[int] = []
    with pytest.raises(Refused):
        await run_in_processes(fail_later, (7, 7), 2, told.append, asyncio.Event())
    assert 7 in told


async def read_environment(task: str) -> AsyncIterator[str | None]:
    yield os.environ.get(task)


@pytest.mark.slow
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


@pytest.mark.slow
async def test_a_worker_that_dies_is_noticed() -> None:
    with pytest.raises(Unavailable, match="exit 3"):
        await run_in_processes(die, (1, 2), 2, lambda found: None, asyncio.Event())


async def tell_and_wait(task: Path) -> AsyncIterator[int]:
    """Two results at once, then none until somebody has heard them."""
    yield 1
    yield 2
    for _ in range(6_000):
        if (task / "heard").exists():
            break
        await asyncio.sleep(0.01)
    yield 3


@pytest.mark.slow
async def test_a_result_does_not_wait_for_the_next_one(tmp_path: Path) -> None:
    told: list[int] = []

    def hear(result: int) -> None:
        told.append(result)
        if told.count(2) == 2:
            (tmp_path / "heard").touch()

    async with asyncio.timeout(30):
        await run_in_processes(tell_and_wait, (tmp_path, tmp_path), 2, hear, asyncio.Event())
    assert sorted(told) == [1, 1, 2, 2, 3, 3]


async def leave_files(task: int) -> AsyncIterator[str]:
    yield tempfile.mkdtemp(prefix="zuno-left-")
    await asyncio.sleep(600)


@pytest.mark.slow
async def test_temporary_files_of_a_worker_go_with_it() -> None:
    told: list[str] = []
    stop = asyncio.Event()

    def hear(found: str) -> None:
        told.append(found)
        stop.set()

    await run_in_processes(leave_files, (1, 2), 2, hear, stop)
    assert told
    assert not any(map(os.path.exists, told))


async def hang_up(task: int) -> AsyncIterator[int]:
    yield task
    raise BrokenPipeError("a server hung up")


async def yield_a_lambda(task: int) -> AsyncIterator[object]:
    yield lambda: task


@pytest.mark.soak(every=2)
@pytest.mark.slow
@pytest.mark.parametrize(("work", "kind"), [(hang_up, BrokenPipeError), (yield_a_lambda, Exception)])
async def test_an_error_of_the_work_is_told_as_such(
    work: Callable[[int], AsyncIterator[object]], kind: type[Exception]
) -> None:
    with pytest.raises(kind) as raised:
        await run_in_processes(work, (1, 2), 2, lambda found: None, asyncio.Event())
    assert not isinstance(raised.value, Unavailable)


class Named(Refused):
    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name}: {why}")


def test_an_error_keeps_its_sentence_on_the_way() -> None:
    for error, kind in ((DiskFull("/disk"), Unavailable), (Named("a", "b"), Refused), (Refused("no"), Refused)):
        arrived = make_portable(error)
        assert (type(arrived), str(arrived)) == (kind, str(error))
    assert str(make_portable(type("Local", (Exception,), {})("here"))) == "Local: here"
