"""Run tasks in processes of our own, each taking the next one when it is free, or on the workers of a Dask cluster."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from zuno.kernel.errors import Refused, Unavailable, UsageError
from zuno.kernel.installation import name_install, read_version
from zuno.kernel.text import plain_text

T = TypeVar("T")
R = TypeVar("R")
TELL_SECONDS: Final = 0.2
"""Results within this time are sent together: the parent has no core of its own."""
ENV: Final = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MALLOC_MMAP_THRESHOLD_": str(2**25),
    "MALLOC_TRIM_THRESHOLD_": str(2**27),
}
"""One thread per worker, because libraries' own threads would slow the others; and freed memory is kept, because
returning it after every task costs page faults."""


Work: TypeAlias = Callable[[T], AsyncIterator[R]]
"""A module's function; it, tasks and results are pickled."""
Tasks: TypeAlias = Sequence[T] | Awaitable[Sequence[T]]
"""An awaitable: they are still being planned."""


class TaskRunner(Protocol):
    """Promises to callers:

    - `hear` gets every result of every task once, in any order.
    - What a task raises is raised here, and the others are given up.
    - Once `stop` is set the rest is given up; what was heard stays.
    - Tasks that are still being planned are waited for; what planning raises is raised here.
    """

    async def __call__(
        self, work: Work[T, R], tasks: Tasks[T], workers: int, hear: Callable[[R], None], stop: asyncio.Event
    ) -> None: ...


def discard_plan(tasks: object) -> None:
    """Close a planning coroutine that nobody will await."""
    if asyncio.iscoroutine(tasks):
        tasks.close()


async def run_in_processes(
    work: Work[T, R], tasks: Tasks[T], workers: int, hear: Callable[[R], None], stop: asyncio.Event
) -> None:
    """A `TaskRunner`. One worker is this process itself. Processes start, and load what the work needs, while its tasks
    are still being planned; whatever temporary files they leave behind go with them."""
    if workers <= 1 or (not isinstance(tasks, Awaitable) and len(tasks) <= 1):
        await _run_here(work, await tasks if isinstance(tasks, Awaitable) else tasks, hear, stop)
        return
    wanted = workers if isinstance(tasks, Awaitable) else min(workers, len(tasks))
    with TemporaryDirectory(prefix="zuno-workers-", ignore_cleanup_errors=True) as folder:
        started = _start(wanted, folder)
        threads = ThreadPoolExecutor(wanted, "zuno-worker")
        readers: list[asyncio.Future[None]] = []
        waiter = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.gather(*(worker.send(work, threads) for worker in started))
            planned = await tasks if isinstance(tasks, Awaitable) else tasks
            left = iter(planned)
            readers = [asyncio.ensure_future(worker.work_off(left, hear, threads)) for worker in started]
            pending: set[asyncio.Future[Any]] = {*readers, waiter}
            while not stop.is_set() and pending != {waiter}:
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                for reader in done - {waiter}:
                    reader.result()
        finally:
            waiter.cancel()
            discard_plan(tasks)
            for worker in started:
                worker.process.terminate()
            await asyncio.gather(*readers, return_exceptions=True)  # a worker that is gone has closed its pipe
            for worker in started:
                worker.process.join()
            threads.shutdown()


class Worker:
    def __init__(self, process: SpawnProcess, pipe: Connection) -> None:
        self.process = process
        self._pipe = pipe

    async def work_off(self, tasks: Iterator[Any], hear: Callable[[Any], None], threads: ThreadPoolExecutor) -> None:
        """Run tasks one after the other, as long as there are any."""
        for task in tasks:
            await self.send(task, threads)
            done = False
            while not done:
                results, done, error = await self._receive(threads)
                for result in results:
                    hear(result)
                if error is not None:
                    raise error

    async def send(self, content: Any, threads: ThreadPoolExecutor) -> None:
        """Errors are left to `_receive`."""
        with suppress(BrokenPipeError, ConnectionResetError):
            await asyncio.get_running_loop().run_in_executor(threads, self._pipe.send, content)

    async def _receive(self, threads: ThreadPoolExecutor) -> tuple[list[Any], bool, Exception | None]:
        try:
            received: tuple[list[Any], bool, Exception | None] = await asyncio.get_running_loop().run_in_executor(
                threads, self._pipe.recv
            )
        except (EOFError, OSError):
            self.process.join(1)
            raise Unavailable(
                f"A worker process ended before its work was done (exit {self.process.exitcode}; -9 is often a lack of "
                "memory); try fewer --workers."
            ) from None
        return received


def _start(count: int, folder: str) -> list[Worker]:
    context, started = get_context("spawn"), list[Worker]()
    before, env = dict(os.environ), {**ENV, "TMPDIR": folder}
    os.environ.update(env)  # some of it is read before the first line of Python
    try:
        for _ in range(count):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs,), daemon=True)
            process.start()
            theirs.close()  # the worker's end alone stays open, so that its death is the end of the pipe
            started.append(Worker(process, ours))
    finally:
        for name in env:
            del os.environ[name]
        os.environ.update({name: before[name] for name in env.keys() & before.keys()})
    return started


async def _run_here(work: Work[T, R], tasks: Sequence[T], hear: Callable[[R], None], stop: asyncio.Event) -> None:
    async def run() -> None:
        for task in tasks:
            async for result in work(task):
                hear(result)

    await _run_until(stop, run())


async def _run_until(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """Run work to its end, or give it up once `stop` is set."""
    running, waiter = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({running, waiter}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiter.cancel()
        if not running.done():
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
    if not running.cancelled():
        running.result()


def _serve(pipe: Connection) -> None:
    """In the worker. Ctrl-C is for the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(EOFError, _ParentGone):
        work = pipe.recv()
        while True:
            asyncio.run(_work(work, pipe.recv(), _Report(pipe)))


class _ParentGone(Exception):
    """Nobody waits for results any more."""


async def _work(work: Work[T, R], task: T, report: _Report) -> None:
    failure = None
    try:
        async for result in work(task):
            report.add(result)
    except _ParentGone:
        raise
    except Exception as error:
        failure = error
    report.finish(failure)


class _Report:
    """A task's results on their way to the parent, batched within a moment."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._found: list[Any] = []
        self._told = float("-inf")
        self._timer: asyncio.TimerHandle | None = None
        self._late: Exception | None = None
        """What went wrong when the moment was over."""

    def add(self, result: Any) -> None:
        if self._late is not None:
            raise self._late
        self._found.append(result)
        if monotonic() - self._told >= TELL_SECONDS:
            self._tell()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TELL_SECONDS, self._tell_late)

    def finish(self, error: Exception | None) -> None:
        error = error or self._late
        try:
            self._send(True, None if error is None else make_portable(error))
        except (pickle.PicklingError, TypeError, AttributeError) as unfit:
            self._found = []
            self._send(True, make_portable(unfit))

    def _tell(self) -> None:
        self._send(False, None)
        self._told = monotonic()

    def _tell_late(self) -> None:
        self._timer = None
        try:
            self._tell()
        except Exception as error:
            self._late = error

    def _send(self, done: bool, error: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        try:
            self._pipe.send((self._found, done, error))
        except (BrokenPipeError, ConnectionResetError):
            raise _ParentGone from None
        self._found = []


def make_portable(error: Exception) -> Exception:
    """The error as it can be pickled with its message: itself, else the nearest base class that can."""
    for kind in type(error).__mro__[:-3]:  # without Exception, BaseException, object
        with suppress(Exception):
            arrived = pickle.loads(pickle.dumps(error if kind is type(error) else kind(str(error))))
            if isinstance(arrived, Exception) and str(arrived) == str(error):
                return arrived
    return RuntimeError(f"{type(error).__name__}: {error}")


SCHEMES: Final = ("tcp://", "tls://")
CONNECT_SECONDS: Final = 10


class DaskCluster:
    """A `TaskRunner` whose results come once a task is done; `workers` is ignored, the cluster decides."""

    def __init__(self, address: str) -> None:
        if not address.startswith(SCHEMES):
            raise UsageError(f"{plain_text(address, 60)!r} is no address of a cluster; write tcp://HOST:PORT.")
        self._address = address

    async def __call__(
        self, work: Work[T, R], tasks: Tasks[T], workers: int, hear: Callable[[R], None], stop: asyncio.Event
    ) -> None:
        try:
            from distributed import Client, as_completed
        except ImportError as error:
            discard_plan(tasks)
            raise Unavailable(f"A cluster needs Dask: {name_install('cluster')}.") from error
        try:
            client = await Client(self._address, asynchronous=True, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, TimeoutError) as error:
            discard_plan(tasks)
            raise Unavailable(f"No cluster answers at {plain_text(self._address, 60)}.") from error
        try:
            planned = await tasks if isinstance(tasks, Awaitable) else tasks
            own = read_version()
            futures = [client.submit(run_task, own, work, task, pure=False) for task in planned]

            async def hear_all() -> None:
                async for _, results in as_completed(futures, with_results=True, loop=client.loop):
                    if stop.is_set():
                        return
                    for result in results:
                        hear(result)

            await _run_until(stop, hear_all())
            await client.cancel(futures)
        finally:
            await client.close()


def run_task(own: str, work: Work[Any, Any], task: Any) -> list[Any]:
    if read_version() != own:
        raise Refused(f"A worker of the cluster has Zuno {read_version()}, and this is {own}.")

    async def run() -> list[Any]:
        return [result async for result in work(task)]

    return asyncio.run(run())
