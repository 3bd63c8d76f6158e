"""Taking turns between the processes of a home: whoever moves a wallet's money does so alone."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from zuno.domain.errors import Refused, Unavailable


class Turns:
    """Locks by name in a home. The kernel gives a lock back when its process ends, however it ends."""

    def __init__(self, home: Path) -> None:
        self._home = home

    @contextmanager
    def alone(self, name: str) -> Iterator[None]:
        path = self._home / f"turn-{name}.lock"
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise Unavailable(f"{path} cannot be opened ({error.strerror}); nothing was done.") from error
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                holder = os.pread(handle, 20, 0).decode("ascii", "replace").strip()
                who = f"process {holder}" if holder.isdigit() else "another process"
                raise Refused(f"This wallet is being used by {who}; wait until it is done.") from None
            os.ftruncate(handle, 0)
            os.pwrite(handle, str(os.getpid()).encode(), 0)
            yield
        finally:
            os.close(handle)  # closing is unlocking
