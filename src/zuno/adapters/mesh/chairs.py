"""A chair that one process sits in at a time: a lock that dies with its holder, and the holder's number in it."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import Final

from zuno.domain.errors import Refused, Unavailable

_PATIENCE: Final = 0.5
"""Who only looks holds the lock too, for an instant; who holds it longer than this means it."""


class LockedChair:
    """`taken`: what is told to whoever comes second, with a place for the holder's number."""

    def __init__(self, path: Path, taken: str) -> None:
        self._path = path
        self._taken = taken
        self._handle: int | None = None

    def take(self) -> None:
        if self._handle is not None:  # whoever sits in it has it
            return
        handle = self._opened()
        give_up = time.monotonic() + _PATIENCE
        while not _locked(handle, fcntl.LOCK_EX):
            if time.monotonic() >= give_up:
                who = _signed(handle)
                os.close(handle)
                raise Refused(self._taken.format("unknown" if who is None else who))
            time.sleep(0.01)
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
        self._handle = handle

    def leave(self) -> None:
        if self._handle is not None:
            os.ftruncate(self._handle, 0)
            os.close(self._handle)
            self._handle = None

    def holder(self) -> int | None:
        if not self._path.exists():
            return None
        handle = self._opened()
        try:
            return None if _locked(handle, fcntl.LOCK_SH) else _signed(handle)
        finally:
            os.close(handle)

    def _opened(self) -> int:
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise Unavailable(f"{self._path} cannot be opened ({error.strerror}).") from error


def _locked(handle: int, how: int) -> bool:
    try:
        fcntl.flock(handle, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _signed(handle: int) -> int | None:
    text = os.pread(handle, 32, 0)
    return int(text) if text.isdigit() else None
