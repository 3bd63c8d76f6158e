"""Time that passes when nobody has anything to do: hours of waiting in the moment the work between them takes."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from zuno.kernel.units import Millis

T = TypeVar("T")
A_MOMENT = 0.02


class LeapingLoop(asyncio.SelectorEventLoop):
    """Leaps over every wait, except while a thread still works: its result has its own time."""

    def __init__(self) -> None:
        super().__init__(_Leaping(self))
        self.leapt = 0.0
        self.working = 0

    def time(self) -> float:
        return self.leapt

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]
        self.working += 1
        running = super().run_in_executor(executor, func, *args)
        running.add_done_callback(self._rested)
        return running

    def _rested(self, _: object) -> None:
        self.working -= 1


class _Leaping(selectors.DefaultSelector):
    def __init__(self, loop: LeapingLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        if self._loop.working or timeout is None:
            return super().select(A_MOMENT if timeout is None else min(timeout, A_MOMENT))
        self._loop.leapt += max(0.0, timeout)
        return super().select(0)


def leaping(start: int, work: Callable[[Callable[[], Millis]], Coroutine[Any, Any, T]]) -> T:
    """What comes of the work, which is given a clock that says `start` in the beginning."""
    with asyncio.Runner(loop_factory=LeapingLoop) as runner:
        loop = runner.get_loop()
        return runner.run(work(lambda: Millis(start + round(loop.time() * 1_000))))
