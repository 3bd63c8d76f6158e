"""A worker in the foreground: a line for each thing it has to say, until it is asked to end (Ctrl-C, SIGTERM)."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from operator import methodcaller
from typing import TYPE_CHECKING, TypeVar

from zuno.doors.cli import run_command
from zuno.kernel.children import BEAT_BYTE, BEAT_SECONDS, READY_BYTE
from zuno.kernel.errors import Unavailable

if TYPE_CHECKING:
    from zuno.kernel.view import View

Event = TypeVar("Event", bound="View")
supervisor: list[Callable[[bytes], None]] = []
"""Sends to the `zuno serve` that this process is a part of, where it is one."""
_beating: list[asyncio.Task[None]] = []


async def serve(
    run: Callable[[Callable[[Event], None], asyncio.Event], Awaitable[View]],
    line: Callable[[Event], str] = methodcaller("write_line"),
    *,
    json: bool,
    beside: Sequence[Callable[[], Coroutine[None, None, object]]] = (),
    ready: Callable[[Event], bool] = lambda event: True,
    ending: Sequence[signal.Signals] = (signal.SIGINT, signal.SIGTERM),
) -> View:
    """`line` is how a person reads it; a script gets a JSON document a line. `Unavailable` where it ended because its
    lines could not be written: nobody had asked it to. `beside`: begun with it and cancelled with its end, whatever
    comes of it. `ready`: whether it does its work once it says so. `ending`: as of `stop_on_signals`."""
    from zuno.kernel.view import write_document

    stop = stop_on_signals(ending)
    unread: list[OSError] = []

    def hear(event: Event) -> None:
        if ready(event):
            report_ready()
        try:
            written = write_document(event) if json else line(event)
            sys.stdout.write(written + "\n")
            sys.stdout.flush()
        except OSError as error:  # nobody reads our lines any more
            run_command.discard_stdout()
            unread.append(error)
            stop.set()

    begun = [asyncio.create_task(work()) for work in beside]
    try:
        view = await run(hear, stop)
    finally:
        for task in begun:
            task.cancel()
        await asyncio.gather(*begun, return_exceptions=True)
    if unread:
        raise Unavailable(f"It ended, because nobody takes the lines it writes ({unread[0].strerror}).")
    return view


def stop_on_signals(ending: Sequence[signal.Signals] = (signal.SIGINT, signal.SIGTERM)) -> asyncio.Event:
    """An event that the first Ctrl-C or SIGTERM sets; a second signal of `ending` ends the process at once."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    def end(number: signal.Signals) -> None:
        if number is signal.SIGTERM:
            run_command.note_sigterm()
        stop.set()
        for each in ending:
            loop.remove_signal_handler(each)

    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError, RuntimeError, ValueError):  # only a process's first thread hears signals
            loop.add_signal_handler(number, end, number)
    if supervisor:
        _beating.append(loop.create_task(_beat()))
    return stop


def report_ready() -> None:
    """Tell the `zuno serve` that started this process, if one did, that it does its work."""
    for send in supervisor:
        send(READY_BYTE)


async def _beat() -> None:
    while True:
        for send in supervisor:
            send(BEAT_BYTE)
        await asyncio.sleep(BEAT_SECONDS)
