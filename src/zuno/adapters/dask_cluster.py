"""Run tasks on the workers of a Dask cluster, which have the same Zuno installed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from importlib.metadata import version
from typing import Any, Final, TypeVar

from zuno.adapters.worker_processes import discard_plan
from zuno.kernel.errors import Refused, Unavailable, UsageError
from zuno.kernel.text import plain_text

T = TypeVar("T")
R = TypeVar("R")
SCHEMES: Final = ("tcp://", "tls://")
CONNECT_SECONDS: Final = 10


class DaskCluster:
    """A `TaskRunner` whose results come once a task is done; `workers` is ignored, the cluster decides."""

    def __init__(self, address: str) -> None:
        if not address.startswith(SCHEMES):
            raise UsageError(f"{plain_text(address, 60)!r} is no address of a cluster; write tcp://HOST:PORT.")
        self._address = address

    async def __call__(
        self,
        work: Callable[[T], AsyncIterator[R]],
        tasks: Sequence[T] | Awaitable[Sequence[T]],
        workers: int,
        hear: Callable[[R], None],
        stop: asyncio.Event,
    ) -> None:
        try:
            from distributed import Client, as_completed
        except ImportError as error:
            discard_plan(tasks)
            raise Unavailable("A cluster needs Dask: pip install 'zuno[cluster]'.") from error
        try:
            client = await Client(self._address, asynchronous=True, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, TimeoutError) as error:
            discard_plan(tasks)
            raise Unavailable(f"No cluster answers at {plain_text(self._address, 60)}.") from error
        waiter = asyncio.ensure_future(stop.wait())
        try:
            planned = await tasks if isinstance(tasks, Awaitable) else tasks
            own = version("zuno")
            futures = [client.submit(run_task, own, work, task, pure=False) for task in planned]
            done = as_completed(futures, with_results=True, loop=client.loop)
            while not stop.is_set():
                coming = asyncio.ensure_future(anext(done, None))
                await asyncio.wait({coming, waiter}, return_when=asyncio.FIRST_COMPLETED)
                if not coming.done():
                    coming.cancel()
                    await asyncio.gather(coming, return_exceptions=True)
                    break
                completed = coming.result()
                if completed is None:
                    break
                for result in completed[1]:
                    hear(result)
            await client.cancel(futures)
        finally:
            waiter.cancel()
            await client.close()


def run_task(own: str, work: Callable[[Any], AsyncIterator[Any]], task: Any) -> list[Any]:
    if version("zuno") != own:
        raise Refused(f"A worker of the cluster has Zuno {version('zuno')}, and this is {own}.")

    async def run() -> list[Any]:
        return [result async for result in work(task)]

    return asyncio.run(run())
