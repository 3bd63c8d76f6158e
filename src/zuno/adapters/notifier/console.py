"""Notices as lines on a terminal or in a service's log."""

from collections.abc import Callable

from zuno.kernel.notify import OutboxEntry, RetryLater, SendResult, Sent
from zuno.kernel.text import plain_text

_LONGEST = 1_000


class ConsoleNotifier:
    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    async def send(self, entry: OutboxEntry, *, silent: bool = False) -> SendResult:
        notice = entry.notice
        about = "".join(f", {name} {value}" for name, value in notice.facts)
        line = f"{notice.severity.upper()} {notice.title} [{notice.label}]{about}"
        line += f": {notice.reason}" if notice.reason else ""
        line += f" ({notice.reference})" if notice.reference else ""
        try:
            self._write(plain_text(line, _LONGEST))
        except OSError as error:
            return RetryLater(f"the line could not be written ({error.strerror})")
        return Sent()

    async def close(self) -> None:
        return None
