"""Send what waits in the outbox: in order, one at a time, by one process of a home."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from zuno.kernel.backoff import Backoff
from zuno.kernel.clock import Clock
from zuno.kernel.errors import Refused, ZunoError
from zuno.kernel.lock import ProcessLock
from zuno.kernel.notify import Notifier, Outbox, OutboxEntry, RetryLater, SendResult, Sent, Undeliverable
from zuno.pushes.rules import PushMode, PushRules

FIRST_WAIT: Final = 2.0
LONGEST_WAIT: Final = 300.0
REFUSED_BACKOFF: Final = Backoff(300.0, 3_600.0)
"""For a service that takes nothing: a setting is wrong."""
LOOK_EVERY: Final = 1.0
"""Seconds between looks for what other processes appended."""
LEASE_EVERY: Final = 5.0
"""Seconds between tries to take over from the process that sends."""


@dataclass(eq=False)
class OutboxDrain:
    """The process that holds `lease` sends; others wait for it. `tell` gets each trouble once.

    A notice may be sent twice where the answer was lost, or the process died before marking it.
    """

    outbox: Outbox
    notifier: Notifier
    lease: ProcessLock
    clock: Clock
    tell: Callable[[str], None]
    rules: PushRules = field(default_factory=PushRules)
    _news: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _holds_lease: bool = field(default=False, init=False)
    _unmarked: tuple[int, SendResult] | None = field(default=None, init=False)
    _failures: int = field(default=0, init=False)
    _last_complaint: str = field(default="", init=False)

    def wake(self) -> None:
        """Call after appending."""
        self._news.set()

    async def deliver(self) -> float | None:
        """Send what waits; returns how long to wait, or None when nothing is left or another process sends."""
        if not self._take_lease():
            return None
        while True:
            if self._unmarked is not None:
                await self._mark(*self._unmarked)
            entry = await self.outbox.next()
            if entry is None:
                return None
            wait = await self._send(entry)
            if wait is not None:
                return wait

    async def deliver_once(self) -> None:
        """For commands that end: send what can be sent now."""
        try:
            await self.deliver()
        except ZunoError as error:
            self._complain(f"{str(error).rstrip('.')}; what waits is sent later.")
        finally:
            self._leave_lease()

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`; a notice being sent then is still marked."""
        try:
            while not stop.is_set():
                self._news.clear()
                try:
                    wait = await self.deliver()
                except ZunoError as error:  # the outbox, not the service
                    wait = self._back_off(str(error).rstrip("."))
                except Exception as bug:  # ending here would silence every later push; no trace: it may quote a key
                    wait = self._back_off(f"Zuno has a bug ({type(bug).__name__})")
                if wait is not None:
                    await _wait_first(stop.wait(), asyncio.sleep(wait))
                elif self._holds_lease:
                    await _wait_first(stop.wait(), self._news.wait(), asyncio.sleep(LOOK_EVERY))
                else:
                    await _wait_first(stop.wait(), asyncio.sleep(LEASE_EVERY))
        finally:
            self._leave_lease()

    async def close(self) -> None:
        self._leave_lease()
        await self.notifier.close()

    def _take_lease(self) -> bool:
        if not self._holds_lease:
            try:
                self.lease.take()
            except Refused:
                return False
            self._holds_lease = True
        return True

    def _leave_lease(self) -> None:
        if self._holds_lease:
            self.lease.leave()
            self._holds_lease = False

    async def _send(self, entry: OutboxEntry) -> float | None:
        now = self.clock.now()
        mode = self.rules.choose_mode(entry.notice, now)
        if mode is PushMode.OFF:
            await self.outbox.mark_skipped(entry.number, now)
            return None
        outcome = await self.notifier.send(entry, silent=mode is PushMode.SILENT)
        match outcome:
            case Sent():
                self._failures, self._last_complaint = 0, ""
                await self._mark(entry.number, outcome)
            case RetryLater(reason, asked_wait):
                await self._record_trouble(reason)
                backed_off = self._back_off(reason)
                return backed_off if asked_wait is None else max(asked_wait, FIRST_WAIT)
            case Undeliverable(reason, all=True):
                await self._record_trouble(reason)
                self._leave_lease()  # a process with better settings sends
                self._failures += 1
                self._complain(f"{reason}; pushes wait, and are tried again seldom.")
                return REFUSED_BACKOFF.delay(self._failures)
            case Undeliverable(reason):
                self._complain(f"{reason}; this one is not tried again.")
                await self._mark(entry.number, outcome)
        return None

    async def _mark(self, number: int, outcome: SendResult) -> None:
        """Retried, so that a full disk does not send a notice again."""
        self._unmarked = number, outcome
        if isinstance(outcome, Undeliverable):
            await self.outbox.mark_undeliverable(number, outcome.reason, self.clock.now())
        else:
            await self.outbox.mark_delivered(number, self.clock.now())
        self._unmarked = None

    async def _record_trouble(self, reason: str) -> None:
        if (await self.outbox.status()).trouble != reason:
            await self.outbox.record_trouble(reason)

    def _back_off(self, reason: str) -> float:
        self._failures += 1
        self._complain(f"{reason}; it is tried again.")
        return Backoff(FIRST_WAIT, LONGEST_WAIT).delay(self._failures)

    def _complain(self, line: str) -> None:
        if line != self._last_complaint:
            self._last_complaint = line
            self.tell(line)


async def _wait_first(*waits: Awaitable[object]) -> None:
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
