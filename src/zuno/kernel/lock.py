"""A lock that one process of a home holds at a time."""

from __future__ import annotations

from typing import Protocol


class ProcessLock(Protocol):
    """Held by at most one process of a home; released when its process dies."""

    def take(self) -> None:
        """`Refused`, naming the holder, if another process has it."""
        ...

    def leave(self) -> None: ...
