"""What lowers risk: it is carried out in a process of its own, so that no look, debate or cycle of the page's process
stands in its way. The lock of a kill is written by whoever hears of it first."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal, Protocol

from zuno.doors.web.services import Services
from zuno.doors.zuno import Zuno
from zuno.kernel.accounts import PAPER_ACCOUNT, KillLock
from zuno.kernel.errors import Unavailable, ZunoError
from zuno.trading.service.account_view import ActionView

StopKind = Literal["kill", "pause", "cancel", "uses_play_money"]
Stop = tuple[StopKind, str | None]
"""What, and which account or plan."""
Tell = Callable[[str], None]
WATCH_SECONDS: Final = 0.25


class Helper(Protocol):
    """A process with the home open, that carries stops out."""

    def start(self) -> None: ...

    async def ask(self, asked: Stop, tell: Tell) -> Any: ...

    def stop(self) -> None: ...


class Stops:
    def __init__(self, services: Services, lock: KillLock | None = None, helper: Helper | None = None) -> None:
        """Without a helper the services of this process carry them out."""
        self._services = services
        self._lock = lock
        self._helper = helper

    def lock_account(self, account: str | None) -> None:
        """Waits for a disk alone. Where it cannot be written, the second step says so after everything is closed."""
        if self._lock is not None:
            try:
                self._lock.lock(account or PAPER_ACCOUNT, "page")
            except Unavailable:
                return

    def ask(self, kind: StopKind, which: str | None, tell: Tell = lambda line: None) -> Awaitable[Any]:
        if self._helper is not None:
            return self._helper.ask((kind, which), tell)
        return self._services.ask(lambda zuno: carry_out(zuno, Kills(zuno), (kind, which), tell), refresh=False)


class Kills:
    """The second step of kills: of every account that is locked, by whichever process or hand. Each once at a time."""

    def __init__(self, zuno: Zuno) -> None:
        self._zuno = zuno
        self._running: dict[str, asyncio.Task[ActionView]] = {}

    async def finish(self, account: str) -> ActionView:
        if account not in self._running:
            self._zuno.refresh()
            acting = self._zuno.account(account).kill(lambda word, what: True, "page")
            self._running[account] = task = asyncio.create_task(acting)
            task.add_done_callback(lambda done: self._running.pop(account))
        return await asyncio.shield(self._running[account])

    async def watch(self, list_kills: Callable[[], frozenset[tuple[str, str]]]) -> None:
        """What was locked before this began, too: whoever locked it may have died over the rest."""
        seen: frozenset[tuple[str, str]] = frozenset()
        async with asyncio.TaskGroup() as finishing:
            while True:
                kills = list_kills()
                for account, _ in kills - seen:
                    finishing.create_task(self._finish_unasked(account))
                seen = kills
                await asyncio.sleep(WATCH_SECONDS)

    async def _finish_unasked(self, account: str) -> None:
        try:
            await self.finish(account)
        except ZunoError as error:
            logging.getLogger(__name__).warning("the kill of %s is not finished: %s", account, error)


async def carry_out(zuno: Zuno, kills: Kills, stop: Stop, tell: Tell) -> Any:
    kind, which = stop
    zuno.refresh()
    match kind:
        case "kill":
            return await kills.finish(which or PAPER_ACCOUNT)
        case "pause":
            return await zuno.account(which).pause()
        case "cancel":
            return await zuno.execution().cancel(which or "", tell)
        case "uses_play_money":
            return await zuno.execution().uses_play_money(which or "")
