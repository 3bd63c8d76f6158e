"""Options, progress and Ctrl-C of the lab's long commands."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar

from zuno.kernel.errors import UsageError
from zuno.kernel.text import plain_text

A = TypeVar("A", bound=str)
T = TypeVar("T")
M = TypeVar("M")
MOST_WORKERS: Final = 64
Progress: TypeAlias = Callable[[int, int], None]
"""Told how much is done, and of how much."""
RunTasks: TypeAlias = Callable[[Sequence[T], int, Callable[[M], None], asyncio.Event], Awaitable[None]]
"""Does these tasks in so many processes, tells each result, and returns early once the event is set."""


def write_command(name: str, options: Mapping[str, object], *, models: bool = False) -> str:
    """As it is typed, with the options that were given."""
    words = [f"--{option} {given}" for option, given in options.items() if given not in (None, "")]
    return " ".join(["zuno lab", name, *words, *(["--models"] if models else [])])


def check_workers(workers: int) -> None:
    if not 1 <= workers <= MOST_WORKERS:
        raise UsageError(f"--workers is {workers}; give a whole number from 1 to {MOST_WORKERS}.")


def parse_arms(text: str, arms: Sequence[A]) -> tuple[A, ...]:
    """Names with commas between them, each once."""
    known = {str(arm): arm for arm in arms}
    names = list(filter(None, map(str.strip, text.split(","))))
    if wrong := [plain_text(name, 40) for name in names if name not in known]:
        raise UsageError(f"{wrong[0]!r} is no arm; choose from {', '.join(known)}.")
    if not names:
        raise UsageError(f"--arms names none; choose from {', '.join(known)}.")
    return tuple(known[name] for name in dict.fromkeys(names))


class StoppedEarly(Exception):
    """Ctrl-C came before there was anything to report; an older report stays."""


async def read_or_stop(read: Callable[[str], T], folder: str, stop: asyncio.Event) -> T:
    """Data of a folder, read in a thread. `StoppedEarly` once `stop` is set."""
    reading, waiter = asyncio.ensure_future(asyncio.to_thread(read, folder)), asyncio.ensure_future(stop.wait())
    await asyncio.wait({reading, waiter}, return_when=asyncio.FIRST_COMPLETED)
    waiter.cancel()
    if stop.is_set():
        reading.cancel()
        raise StoppedEarly("Stopped while the data was being read: nothing was run, and no report was written.")
    return reading.result()


def check_any_done(done: int) -> None:
    """Raise `StoppedEarly` where nothing was done, so that no empty report replaces an older one."""
    if not done:
        raise StoppedEarly("Stopped before the first result was there: no report was written.")
