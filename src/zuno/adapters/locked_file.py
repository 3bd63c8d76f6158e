"""A small file that several processes read and change: replaced whole, by one of them at a time."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from zuno.adapters.atomic_file import replace_file
from zuno.adapters.file_lock import WAIT_SECONDS, FileLock
from zuno.adapters.full_disk import build_write_error
from zuno.kernel.errors import Unavailable

T = TypeVar("T")


class LockedFile:
    """0600, with its lock beside it. Reading needs no lock."""

    def __init__(self, path: Path, patience: float = WAIT_SECONDS) -> None:
        self._path = path
        self._patience = patience

    def stamp(self) -> tuple[int, int, int] | None:
        """Another one after every change; None: no file. Needs no descriptor."""
        try:
            found = os.stat(self._path)
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    def read(self) -> bytes | None:
        """None: no file."""
        try:
            return self._path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Unavailable(f"{self._path} cannot be read ({error.strerror}); mend its permissions.") from error

    def change(self, make: Callable[[bytes | None], tuple[bytes | None, T]], *, wait: bool = True) -> T:
        """Replace what was read by what `make` answers. `wait`: for another writer, and until it is on disk."""
        lock = FileLock(self._path.with_suffix(".lock"), timeout=self._patience if wait else 0.0, parents=True)
        with lock:
            before = self.read()
            after, answer = make(before)
            if after is not None and after != before:
                try:
                    replace_file(self._path, after, durable=wait)
                except OSError as error:
                    raise build_write_error(self._path, error) from error
            return answer
