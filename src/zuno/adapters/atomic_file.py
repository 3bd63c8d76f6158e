"""Atomic file writes: a reader, and whoever comes after a kill -9, finds the old file or the new one, never half. On a
full disk that is the old one, and `DiskFull`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from zuno.adapters.full_disk import detect_full_disk

DRAFT_SUFFIX = ".partial"
_users_umask: list[int] = []


def keep_files_private() -> int:
    """What this process makes from now on is its owner's alone from the first moment, whoever makes it: SQLite beside
    its files, a library, a child. The umask that the user had set."""
    if not _users_umask:
        _users_umask.append(os.umask(0o077))
    return _users_umask[0]


def replace_file(path: Path, content: bytes, *, durable: bool = True) -> None:
    """A file of its owner's alone. `durable`: the new one is on disk when this returns, so that a power cut does not
    take it back."""
    with open_replacement(path, durable=durable) as draft:
        _write(draft, content)


def create_file(path: Path, content: bytes) -> bool:
    """A new file, 0600 and on disk. False: there was one already, and it stays as it is."""
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
    """A place beside the file to write to; at the end it becomes the file. An error leaves the old one as it was."""
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
    """Of a folder: without it a power cut may forget a new name in it."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _draft_of(path: Path) -> Path:
    """Hidden, and of this write alone: two at once do not meet."""
    return path.with_name(f".{uuid4().hex[:12]}.{path.name}{DRAFT_SUFFIX}")


def _write(draft: Path, content: bytes) -> None:
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
