"""Work spread over processes of our own: each takes a share of the tasks and sends back results as they come."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, Final, TypeVar

T = TypeVar("T")
R = TypeVar("R")
ENV: Final = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""A process is one worker: libraries that start threads of their own would slow the others."""


async def run_in_processes(
    work: Callable[[T], AsyncIterator[R]],
    tasks: Sequence[T],
    workers: int,
    hear: Callable[[R], None],
    stop: asyncio.Event,
) -> None:
    """A `TaskRunner`: results are told one by one. One worker is this process itself."""
    if min(workers, len(tasks)) <= 1:
        await _run_here(work, tasks, hear, stop)
        return
    context = get_context("spawn")
    shares = [tasks[place::workers] for place in range(min(workers, len(tasks)))]
    pipes = [context.Pipe(duplex=False) for _ in shares]
    processes = [
        context.Process(target=_serve, args=(sender, work, share), daemon=True)
        for (_, sender), share in zip(pipes, shares, strict=True)
    ]
    for process in processes:
        process.start()
    for _, sender in pipes:
        sender.close()  # the worker's end alone stays open, so that its death is the end of the pipe
    readers = [asyncio.ensure_future(_read_all(receiver, hear)) for receiver, _ in pipes]
    waiter = asyncio.ensure_future(stop.wait())
    try:
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
        except EOFError:
            raise RuntimeError("a worker process ended before its work was done") from None
        if kind == "error":
            raise content
        if kind == "done":
            return
        hear(content)


def _serve(sender: Connection, work: Callable[[Any], AsyncIterator[Any]], tasks: Sequence[Any]) -> None:
    """In the worker. Ctrl-C reaches it too, and is its parent's to answer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.update(ENV)

    async def run() -> None:
        for task in tasks:
            async for result in work(task):
                sender.send(("result", result))

    with suppress(BrokenPipeError):  # nobody waits for us any more
        try:
            asyncio.run(run())
        except Exception as error:
            sender.send(("error", error))
        else:
            sender.send(("done", None))
