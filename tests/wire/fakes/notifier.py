"""A notifier for tests and tours: keeps what it was told, and fails as it is told to."""

from __future__ import annotations

from collections.abc import Iterable

from zuno.kernel.notify import Notice, OutboxEntry, SendResult, Sent


class MemoryNotifier:
    """`outcomes` are given back one for each notice, then everything is sent."""

    def __init__(self, outcomes: Iterable[SendResult] = ()) -> None:
        self.sent: list[Notice] = []
        self.silent: list[bool] = []
        self.tries = 0
        self._outcomes = list(outcomes)

    async def send(self, post: OutboxEntry, *, silent: bool = False) -> SendResult:
        self.tries += 1
        outcome = self._outcomes.pop(0) if self._outcomes else Sent()
        if isinstance(outcome, Sent):
            self.sent.append(post.notice)
            self.silent.append(silent)
        return outcome

    async def close(self) -> None:
        return None
