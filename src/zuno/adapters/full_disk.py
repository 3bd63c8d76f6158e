"""Tell a full disk from other write errors, so that every store raises the same `DiskFull`."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from zuno.kernel.errors import FULL_DISK, DiskFull, Unavailable


@contextmanager
def detect_full_disk(path: Path) -> Iterator[None]:
    """Raise `DiskFull` for a write that finds no room; other errors pass."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL_DISK:
            raise DiskFull(path) from error
        raise


def build_write_error(path: Path, error: OSError, advice: str = "") -> Unavailable:
    if error.errno in FULL_DISK:
        return DiskFull(path)
    return Unavailable(f"{path} cannot be written ({error.strerror}){advice}.")


def build_database_error(path: Path, error: sqlite3.DatabaseError) -> Unavailable:
    """Our error for a database that cannot be read or written now. SQLite calls some writes without room an I/O
    error."""
    code = error.sqlite_errorcode & 0xFF
    if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and is_full(path.parent)):
        return DiskFull(path)
    return Unavailable(f"{path} did not answer ({error}).")


def is_full(folder: Path) -> bool:
    try:
        return os.statvfs(folder).f_bavail == 0
    except OSError:
        return False
