"""A message that shows something as it happens: one message, edited as seldom as Telegram asks for."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from zuno.kernel.backoff import Backoff
from zuno.kernel.notify import RetryLater, SendResult, Undeliverable

EDIT_SECONDS: Final = 2.0
"""Between two edits, at least."""
MOST_FAILURES: Final = 8
"""In a row without a wait that Telegram named, after which the message is left as it is: about two minutes."""
_BACKOFF: Final = Backoff(EDIT_SECONDS, 30.0)

Write = Callable[[str], Awaitable[SendResult]]
"""Sends HTML as a message the first time and edits that message afterwards. `Sent` also where the message says so
already; `RetryLater` with the wait of a 429; `Undeliverable` where it was deleted or the bot blocked."""


class LiveMessage:
    """Shows the newest state; states that come faster than edits may are skipped, the last one is always shown.

    Never raises for what becomes of the message: whoever works on tells its end in a message of its own.
    """

    def __init__(
        self,
        write: Write,
        *,
        now: Callable[[], float] | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._write = write
        self._now = now or asyncio.get_running_loop().time
        self._sleep = sleep
        self._shown = self._wanted = ""
        self._not_before = 0.0
        self._failures = 0
        self._lost = False
        self._task: asyncio.Task[None] | None = None

    def show(self, html: str) -> None:
        """Show it as soon as an edit is due."""
        self._wanted = html
        if self._task is None and html != self._shown and not self._lost:
            self._task = asyncio.get_running_loop().create_task(self._keep_up())

    async def finish(self, html: str | None = None) -> None:
        """Wait until the newest state, or this one, is shown or cannot be."""
        if html is not None:
            self.show(html)
        while self._task is not None:
            await asyncio.wait([self._task])

    async def _keep_up(self) -> None:
        try:
            while self._wanted != self._shown and not self._lost:
                if (wait := self._not_before - self._now()) > 0:
                    await self._sleep(wait)
                await self._edit(self._wanted)
        finally:
            self._task = None

    async def _edit(self, html: str) -> None:
        result = await self._write(html)
        self._not_before = self._now() + EDIT_SECONDS
        match result:
            case RetryLater(wait=None):
                self._failures += 1
                self._not_before = self._now() + _BACKOFF.delay(self._failures)
                self._lost = self._failures >= MOST_FAILURES
            case RetryLater(wait=float() | int() as wait):
                self._not_before = self._now() + max(wait, EDIT_SECONDS)
            case Undeliverable():
                self._lost = True
            case _:
                self._failures, self._shown = 0, html
