"""What is kept beside a journal and not in it: its signed head, the lock of whoever writes, and the note of a write."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from zuno.domain.errors import Unavailable

PATIENCE = 30.0
_PAUSE = 0.002
_SECTOR = 512
_flush = getattr(os, "fdatasync", os.fsync)


class Outside:
    """`NAME.head` and `NAME.lock` in a home. The lock file's content is the note of the write that is under way."""

    def __init__(self, home: Path, name: str, patience: float = PATIENCE) -> None:
        self._home = home
        self._head = home / f"{name}.head"
        self._draft = home / f"{name}.head.partial"
        self._lock = home / f"{name}.lock"
        self._patience = patience

    @contextmanager
    def alone(self) -> Iterator[Held]:
        """Hold the journal; every other process and every other store of this one waits its turn."""
        try:
            handle = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise Unavailable(f"{self._lock} cannot be opened ({error.strerror}).") from error
        try:
            self._wait(handle)
            yield Held(handle)
        finally:
            os.close(handle)  # closing is unlocking

    def head(self) -> bytes | None:
        try:
            sector = self._head.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Unavailable(f"{self._head} cannot be read ({error.strerror}).") from error
        whole = len(sector) == _SECTOR and sector.endswith(b"\n")
        return sector[:-1].rstrip(b" ") + b"\n" if whole else sector  # anything else is for the judge to see

    def found(self, head: bytes) -> None:
        """The first head, there for good or not at all. Only while held."""
        with self._writing():
            handle = os.open(self._draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                os.write(handle, _padded(head))
                os.fsync(handle)
            finally:
                os.close(handle)
            os.replace(self._draft, self._head)
            folder = os.open(self._home, os.O_RDONLY)
            try:
                os.fsync(folder)  # without it the new name may be forgotten by a power cut
            finally:
                os.close(folder)

    def replace_head(self, head: bytes) -> None:
        """The next head over the last, in place: one sector, which a disk writes whole or not at all, and so does the
        kernel for a process that is killed. It costs one flush where a renamed file costs two. Only while held."""
        with self._writing():
            handle = os.open(self._head, os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.pwrite(handle, _padded(head), 0)
                _flush(handle)
            finally:
                os.close(handle)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise Unavailable(f"{self._head} cannot be written ({error.strerror}).") from error

    def _wait(self, handle: int) -> None:
        deadline = time.monotonic() + self._patience
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise Unavailable(
                        f"Another process holds {self._lock} for more than {self._patience:g} s; find it and end it."
                    ) from None
                time.sleep(_PAUSE)


class Held:
    """The lock while it is ours."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def begun(self) -> bytes | None:
        return os.pread(self._handle, 4_096, 0) or None

    def begin(self, note: bytes) -> None:
        """Leave the note. It outlives the process, not a power cut: it names what was lost, it saves nothing."""
        os.pwrite(self._handle, note, 0)
        os.ftruncate(self._handle, len(note))

    def finish(self) -> None:
        os.ftruncate(self._handle, 0)


def _padded(head: bytes) -> bytes:
    if not head.endswith(b"\n") or len(head) > _SECTOR:
        raise ValueError("a head is one line of at most a sector")
    return head[:-1].ljust(_SECTOR - 1) + b"\n"
