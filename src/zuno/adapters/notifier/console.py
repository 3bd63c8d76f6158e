"""Notices as lines for whoever reads the process's own words: a terminal, or a service's log."""

from __future__ import annotations

from collections.abc import Callable

from zuno.kernel.notify import Notice, RetryLater, SendResult, Sent
from zuno.kernel.text import plain_text

_LONGEST = 1_000


class ConsoleNotifier:
    """`write` takes one line; adapters have no screen of their own."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    async def send(self, notice: Notice) -> SendResult:
        about = f"position {notice.position} on {notice.chain}" if notice.position else notice.chain
        line = f"{notice.severity.upper()} {notice.title}: {about}: {notice.reason} ({notice.reference})"
        try:
            self._write(plain_text(line, _LONGEST))
        except OSError as error:
            return RetryLater(f"the line could not be written ({error.strerror})")
        return Sent()

    async def close(self) -> None:
        return None
