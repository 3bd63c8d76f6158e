"""Files beside a journal: its signed head, the writers' lock, and the note of a write under way."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EACCES, EPERM, EROFS
from pathlib import Path

from zuno.adapters.atomic_file import replace_file
from zuno.adapters.file_lock import WAIT_SECONDS, FileLock
from zuno.adapters.full_disk import build_write_error, detect_full_disk
from zuno.kernel.canonical import digest
from zuno.kernel.errors import Unavailable

_SECTOR = 512
_FORBIDDEN = {EACCES, EPERM, EROFS}
_flush = getattr(os, "fdatasync", os.fsync)


class HeadFile:
    """`NAME.head` and `NAME.lock` in a home. The lock file's content is the note of the write under way; `NAME.broken`
    holds what a check of the whole journal found, `NAME.DIGEST.broken` that of one of several databases."""

    def __init__(self, home: Path, name: str, patience: float = WAIT_SECONDS) -> None:
        self._head = home / f"{name}.head"
        self._lock = home / f"{name}.lock"
        self._broken = home / f"{name}.broken"
        self._patience = patience

    @contextmanager
    def alone(self) -> Iterator[HeldLock]:
        """Hold the journal; other processes and stores wait."""
        lock = FileLock(self._lock, timeout=self._patience, signed=False)
        with lock:
            yield HeldLock(lock.handle, self._lock)

    @contextmanager
    def looking(self) -> Iterator[HeldLock]:
        """As `alone`, for readers: in a home that cannot be written no lock is made."""
        lock = FileLock(self._lock, timeout=self._patience, signed=False)
        try:
            lock.take()
        except Unavailable as error:
            if not isinstance(error.__cause__, OSError) or error.__cause__.errno not in _FORBIDDEN:
                raise
            lock = FileLock(self._lock, timeout=self._patience, signed=False, shared=True)
            lock.take()
        try:
            yield HeldLock(lock.handle, self._lock)
        finally:
            lock.leave()

    def head(self) -> bytes | None:
        try:
            sector = self._head.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Unavailable(f"{self._head} cannot be read ({error.strerror}).") from error
        whole = len(sector) == _SECTOR and sector.endswith(b"\n")
        return sector[:-1].rstrip(b" ") + b"\n" if whole else sector  # anything else is for the judge to see

    def read_damage(self, database: str) -> str | None:
        """What was found wrong with this database."""
        for mark in self._marks(database):
            try:
                return mark.read_text(encoding="utf-8", errors="replace").partition("\n")[0]
            except FileNotFoundError:
                continue
            except OSError as error:
                raise Unavailable(f"{mark} cannot be read ({error.strerror}).") from error
        return None

    def mark_broken(self, why: str | None, database: str) -> None:
        """Only while held."""
        marks = self._marks(database)
        with self._writing():
            if why is None:
                for mark in marks:
                    mark.unlink(missing_ok=True)
            else:
                replace_file(marks[0], f"{' '.join(why.split())}\n{database}\n".encode())

    def _marks(self, database: str) -> list[Path]:
        """This database's own, then the one that names none."""
        own = self._broken.with_suffix(f".{digest(database.encode())[:16]}.broken")
        return [own, self._broken] if database else [self._broken]

    def create(self, head: bytes) -> None:
        """Write the first head. Only while held."""
        with self._writing():
            replace_file(self._head, _pad(head))

    def replace_head(self, head: bytes) -> None:
        """Overwrite the head in place: one sector, which a disk writes whole or not at all. It costs one flush where a
        renamed file costs two. Only while held."""
        with self._writing():
            handle = os.open(self._head, os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.pwrite(handle, _pad(head), 0)
                _flush(handle)
            finally:
                os.close(handle)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise build_write_error(self._head, error) from error


class HeldLock:
    def __init__(self, handle: int, path: Path) -> None:
        self._handle = handle
        self._path = path

    def read_note(self) -> bytes | None:
        return os.pread(self._handle, 4_096, 0) or None

    def begin(self, note: bytes) -> None:
        """Write the note. It survives the process, not a power cut."""
        with detect_full_disk(self._path):
            os.pwrite(self._handle, note, 0)
            os.ftruncate(self._handle, len(note))

    def finish(self) -> None:
        os.ftruncate(self._handle, 0)


def _pad(head: bytes) -> bytes:
    if not head.endswith(b"\n") or len(head) > _SECTOR:
        raise ValueError("a head is one line of at most a sector")
    return head[:-1].ljust(_SECTOR - 1) + b"\n"
