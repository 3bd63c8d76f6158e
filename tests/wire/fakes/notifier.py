"""A notifier for tests and tours: keeps what it was told, and fails as it is told to."""

from __future__ import annotations

from collections.abc import Iterable

from zuno.kernel.notify import Notice, SendResult, Sent


class MemoryNotifier:
    """`outcomes` are given back one for each notice, then everything is sent."""

    def __init__(self, outcomes: Iterable[SendResult] = ()) -> None:
        self.sent: list[Notice] = []
        self.tries = 0
        self._outcomes = list(outcomes)

    async def send(self, notice: Notice) -> SendResult:
        self.tries += 1
        outcome = self._outcomes.pop(0) if self._outcomes else Sent()
        if isinstance(outcome, Sent):
            self.sent.append(notice)
        return outcome

    async def close(self) -> None:
        return None
