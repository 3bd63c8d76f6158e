"""Seats that one process of a home has at a time: a locked file, signed with the number of whoever sits there."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from zuno.domain.errors import Refused, Unavailable


class FileSeat:
    """Held for as long as its process lives. `occupied` is the sentence for whoever comes second: `{}` is who sits."""

    def __init__(self, path: Path, occupied: str) -> None:
        self._path = path
        self._occupied = occupied
        self._handle: int | None = None

    def take(self) -> None:
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise Unavailable(f"{self._path} cannot be opened ({error.strerror}).") from error
        if not taken(handle):
            who = os.pread(handle, 64, 0).decode("ascii", "replace").strip()
            os.close(handle)
            raise Refused(self._occupied.format(f"process {who}" if who.isdigit() else "another process"))
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
        self._handle = handle

    def leave(self) -> None:
        if self._handle is not None:
            os.ftruncate(self._handle, 0)
            os.close(self._handle)
            self._handle = None


class CollectorSeat(FileSeat):
    """`collect.lock` beside the store that is collected into."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            folder / "collect.lock",
            "A collector of this home runs already ({}); `zuno data status` shows what it keeps, and ending it frees "
            "the seat.",
        )


class SymbolSeat(FileSeat):
    """`leases/<symbol>.lock` in the home: one run about a symbol at a time, whatever its mode."""

    def __init__(self, home: Path, symbol: str) -> None:
        super().__init__(
            home / "leases" / f"{symbol}.lock",
            f"{symbol} is being argued about already ({{}}); wait for it, or end it and take it up with `zuno trade "
            "resume`.",
        )


def taken(handle: int) -> bool:
    """Whether the lock of an open file is now ours."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
