"""Pid and start time of child processes, so that a later run can end leftovers without hitting a reused pid."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from zuno.adapters.process_identity import start_time
from zuno.kernel.wire import Wire

GRACE: Final = 5.0
_LOOK: Final = 0.02


class _Orphan(Wire):
    pid: int
    began: str


def note(path: Path, pid: int) -> None:
    """Write down a process that was just started; one that cannot be named for certain is not written down."""
    began = start_time(pid)
    if began is not None:
        path.write_text(_Orphan(pid=pid, began=began).model_dump_json(), encoding="utf-8")


async def end(path: Path) -> int | None:
    """End the process that is written down there, if it still is that one; its number."""
    orphan = _read_note(path)
    ended = None if orphan is None else await _end_process(orphan)
    _forget(path)
    return ended


def _read_note(path: Path) -> _Orphan | None:
    with suppress(OSError, ValidationError):
        return _Orphan.model_validate_json(path.read_bytes())
    return None


def _forget(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


async def _end_process(orphan: _Orphan) -> int | None:
    with _open_pidfd(orphan.pid) as handle:
        if start_time(orphan.pid) != orphan.began:  # it is gone, and its number may be somebody else's
            return None
        for number in (signal.SIGTERM, signal.SIGKILL):
            _signal(orphan, handle, number)
            waited = 0.0
            while waited < GRACE:
                if start_time(orphan.pid) != orphan.began:
                    return orphan.pid
                await asyncio.sleep(_LOOK)
                waited += _LOOK
    return orphan.pid


@contextmanager
def _open_pidfd(pid: int) -> Iterator[int | None]:
    """A hold on a process, where there is such a thing: its number cannot become another's before it is let go."""
    handle: int | None = None
    with suppress(OSError, AttributeError):
        handle = os.pidfd_open(pid)
    try:
        yield handle
    finally:
        if handle is not None:
            os.close(handle)


def _signal(orphan: _Orphan, handle: int | None, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if handle is not None:
            signal.pidfd_send_signal(handle, number)
        elif start_time(orphan.pid) == orphan.began:
            os.kill(orphan.pid, number)
