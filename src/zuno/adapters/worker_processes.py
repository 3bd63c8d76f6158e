"""Work spread over processes of our own: each takes a share of the tasks and sends back results as they come."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any, Final, TypeVar

T = TypeVar("T")
R = TypeVar("R")
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
        await _send(pipes, [work] * wanted)
        planned = await tasks if isinstance(tasks, Awaitable) else tasks
        await _send(pipes, [planned[place::wanted] for place in range(wanted)])
        readers = [asyncio.ensure_future(_read_all(pipe, hear)) for pipe in pipes]
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


async def _send(pipes: Sequence[Connection], contents: Sequence[Any]) -> None:
    """To each its own. A worker that is gone is noticed by who reads its answer."""

    def send(pipe: Connection, content: Any) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):
            pipe.send(content)

    await asyncio.gather(*(asyncio.to_thread(send, *pair) for pair in zip(pipes, contents, strict=True)))


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


async def _read_all(receiver: Connection, hear: Callable[[Any], None]) -> None:
    while True:
        try:
            kind, content = await asyncio.to_thread(receiver.recv)
        except (EOFError, ConnectionResetError):
            raise RuntimeError("a worker process ended before its work was done") from None
        if kind == "error":
            raise content
        if kind == "done":
            return
        hear(content)


def _serve(pipe: Connection) -> None:
    """In the worker. Ctrl-C reaches it too, and is its parent's to answer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    try:
        work, tasks = pipe.recv(), pipe.recv()
    except EOFError:  # who would have sent them is gone
        return

    async def run() -> None:
        for task in tasks:
            async for result in work(task):
                pipe.send(("result", result))

    with suppress(BrokenPipeError):  # nobody waits for us any more
        try:
            asyncio.run(run())
        except Exception as error:
            pipe.send(("error", error))
        else:
            pipe.send(("done", None))
