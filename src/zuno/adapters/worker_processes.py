"""Work spread over processes of our own: each takes the next task when it is free, and tells results as they come."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from time import monotonic
from typing import Any, Final, TypeVar

T = TypeVar("T")
R = TypeVar("R")
TELL_SECONDS: Final = 0.2
"""Results that come faster are told together: the parent has no core of its own."""
ENV: Final = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MALLOC_MMAP_THRESHOLD_": str(2**25),
    "MALLOC_TRIM_THRESHOLD_": str(2**27),
}
"""A process is one worker: libraries that start threads of their own would slow the others. And it keeps the memory it
will need again at once: columns that are given back to the system after every task are paid for by page faults."""


async def run_in_processes(
    work: Callable[[T], AsyncIterator[R]],
    tasks: Sequence[T] | Awaitable[Sequence[T]],
    workers: int,
    hear: Callable[[R], None],
    stop: asyncio.Event,
) -> None:
    """A `TaskRunner`: results are told one by one. One worker is this process itself. Processes start, and load what
    the work needs, while its tasks are still being planned."""
    if workers <= 1 or (not isinstance(tasks, Awaitable) and len(tasks) <= 1):
        await _run_here(work, await tasks if isinstance(tasks, Awaitable) else tasks, hear, stop)
        return
    wanted = workers if isinstance(tasks, Awaitable) else min(workers, len(tasks))
    pipes, processes = _start(wanted)
    readers: list[asyncio.Future[None]] = []
    waiter = asyncio.ensure_future(stop.wait())
    try:
        await _send(pipes, work)
        planned = await tasks if isinstance(tasks, Awaitable) else tasks
        left = iter(planned)
        readers = [asyncio.ensure_future(_hand_out(left, pipe, hear)) for pipe in pipes]
        pending: set[asyncio.Future[Any]] = {*readers, waiter}
        while not stop.is_set() and pending != {waiter}:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for reader in done - {waiter}:
                reader.result()
    finally:
        waiter.cancel()
        for process in processes:
            process.terminate()
        await asyncio.gather(*readers, return_exceptions=True)  # a worker that is gone has closed its pipe
        for process in processes:
            process.join()


def _start(count: int) -> tuple[list[Connection], list[SpawnProcess]]:
    context = get_context("spawn")
    pipes, processes = [], []
    before = {name: os.environ.get(name) for name in ENV}
    os.environ.update(ENV)  # some of it is read before the first line of Python
    try:
        for _ in range(count):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs,), daemon=True)
            process.start()
            theirs.close()  # the worker's end alone stays open, so that its death is the end of the pipe
            pipes.append(ours)
            processes.append(process)
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
    return pipes, processes


async def _send(pipes: Sequence[Connection], content: Any) -> None:
    """To each of them. A worker that is gone is noticed by who reads its answer."""

    def send(pipe: Connection) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):
            pipe.send(content)

    await asyncio.gather(*(asyncio.to_thread(send, pipe) for pipe in pipes))


async def _run_here(
    work: Callable[[T], AsyncIterator[R]], tasks: Sequence[T], hear: Callable[[R], None], stop: asyncio.Event
) -> None:
    async def run() -> None:
        for task in tasks:
            async for result in work(task):
                hear(result)

    running, waiter = asyncio.ensure_future(run()), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({running, waiter}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiter.cancel()
        if not running.done():
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
    if not running.cancelled():
        running.result()


async def _hand_out(tasks: Iterator[Any], pipe: Connection, hear: Callable[[Any], None]) -> None:
    """Give a worker one task after the other, as long as there are any."""
    for task in tasks:
        await _send([pipe], task)
        await _read_results(pipe, hear)


async def _read_results(pipe: Connection, hear: Callable[[Any], None]) -> None:
    """What a task found, until it is done."""
    done = False
    while not done:
        try:
            found, done, error = await asyncio.to_thread(pipe.recv)
        except (EOFError, ConnectionResetError):
            raise RuntimeError("a worker process ended before its work was done") from None
        for result in found:
            hear(result)
        if error is not None:
            raise error


def _serve(pipe: Connection) -> None:
    """In the worker. Ctrl-C reaches it too, and is its parent's to answer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(EOFError, BrokenPipeError):  # nobody has work for us, or waits for it, any more
        work = pipe.recv()
        while True:
            asyncio.run(_work(work, pipe.recv(), pipe))


async def _work(work: Callable[[T], AsyncIterator[R]], task: T, pipe: Connection) -> None:
    found: list[R] = []
    told = monotonic()
    try:
        async for result in work(task):
            found.append(result)
            if monotonic() - told >= TELL_SECONDS:
                pipe.send((found, False, None))
                found, told = [], monotonic()
    except BrokenPipeError:
        raise
    except Exception as error:
        pipe.send((found, True, error))
    else:
        pipe.send((found, True, None))
