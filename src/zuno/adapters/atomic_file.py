"""Atomic file writes: a reader, also after a kill -9, sees the old file or the new one, never half of either. On a full
disk the old file stays and `DiskFull` is raised."""

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from zuno.kernel.errors import FULL_DISK, DiskFull, Refused, Unavailable

DRAFT_SUFFIX = ".partial"
_users_umask: list[int] = []


def keep_files_private() -> int:
    """Set the umask so that new files are their owner's alone; returns the umask of before."""
    if not _users_umask:
        _users_umask.append(os.umask(0o077))
    return _users_umask[0]


def read_file(path: Path, advice: str = "") -> bytes | None:
    """None: there is no such file. `Unavailable` for one that cannot be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unavailable(f"{path} cannot be read ({error.strerror}){advice}.") from error


def read_foreign_file(path: Path, most: int) -> bytes | None:
    """An owner's file, the same. `Refused` before it is read for one of more bytes, and for a device or pipe."""
    with suppress(OSError):
        state = path.stat()
        if not stat.S_ISREG(state.st_mode):
            raise Refused(f"{path} is no file")
        if state.st_size > most:
            raise Refused(f"{path} is larger than {most // 1024:,} KB")
    return read_file(path)


def replace_file(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Write a file (0600). `durable`: it is on disk when this returns."""
    with open_replacement(path, durable=durable) as draft:
        _write(draft, content)


def create_file(path: Path, content: bytes) -> bool:
    """Create a file (0600), on disk when this returns. False: there was one already, and it is left as it is."""
    draft = _draft_of(path)
    try:
        with detect_full_disk(path):
            _write(draft, content)
            flush_to_disk(draft)
            try:
                os.link(draft, path)
            except FileExistsError:
                return False
            flush_to_disk(path.parent)
    finally:
        draft.unlink(missing_ok=True)
    return True


@contextmanager
def open_replacement(path: Path, *, durable: bool = True) -> Iterator[Path]:
    """A path beside the file to write to; at the end it becomes the file. After an error the old file is unchanged."""
    draft = _draft_of(path)
    try:
        with detect_full_disk(path):
            yield draft
            if durable:
                flush_to_disk(draft)
            os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise
    if durable:
        flush_to_disk(path.parent)


def flush_to_disk(path: Path) -> None:
    """fsync a file, or a folder so that a new name in it survives a power cut."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _draft_of(path: Path) -> Path:
    return path.with_name(f".{uuid4().hex[:12]}.{path.name}{DRAFT_SUFFIX}")


def _write(draft: Path, content: bytes) -> None:
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)


@contextmanager
def detect_full_disk(path: Path) -> Iterator[None]:
    """Raise `DiskFull` for a write that finds no room; other errors pass."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL_DISK:
            raise DiskFull(path) from error
        raise


@contextmanager
def translate_write_errors(path: Path, advice: str = "") -> Iterator[None]:
    """`DiskFull` for a write that finds no room, `Unavailable` for one that fails in another way."""
    try:
        yield
    except OSError as error:
        raise build_write_error(path, error, advice) from error


def build_write_error(path: Path, error: OSError, advice: str = "") -> Unavailable:
    if error.errno in FULL_DISK:
        return DiskFull(path)
    return Unavailable(f"{path} cannot be written ({error.strerror}){advice}.")


def build_database_error(path: Path, error: sqlite3.DatabaseError) -> Unavailable:
    """Our error for a database that cannot be used now. SQLite calls some full disks an I/O error."""
    code = error.sqlite_errorcode & 0xFF
    if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and is_full(path.parent)):
        return DiskFull(path)
    return Unavailable(f"{path} did not answer ({error}).")


def is_full(folder: Path) -> bool:
    try:
        return os.statvfs(folder).f_bavail == 0
    except OSError:
        return False
