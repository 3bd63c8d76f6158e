"""Locks that one process holds at a time: among the processes of a home, or of every home on one database."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class ProcessLock(Protocol):
    """Held by at most one process of a home; released when its process dies."""

    def take(self) -> None:
        """`Refused`, naming the holder, if another process has it."""

    def leave(self) -> None: ...


@contextmanager
def hold(lock: ProcessLock) -> Iterator[None]:
    lock.take()
    try:
        yield
    finally:
        lock.leave()


class Lease(ProcessLock, Protocol):
    """A lock that its holder may lose, if it is cut off for longer than the lease lasts. A lost lease is not regained;
    leaving it then changes nothing."""

    def check(self) -> None:
        """`Refused` where it is not held or was taken over. `Unavailable` where that cannot be found out."""
