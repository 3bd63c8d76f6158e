"""What lowers risk: it is carried out in a process of its own, so that no look, debate or cycle of the page's process
stands in its way. The lock of a kill is written by whoever hears of it first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal, Protocol

from zuno.doors.web.services import Services
from zuno.doors.zuno import Zuno
from zuno.kernel.accounts import PAPER_ACCOUNT, KillLock
from zuno.kernel.errors import Unavailable

StopKind = Literal["kill", "pause", "cancel", "uses_play_money"]
Stop = tuple[StopKind, str | None]
"""What, and which account or plan."""
Tell = Callable[[str], None]


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
        return self._services.ask(lambda zuno: carry_out(zuno, (kind, which), tell), refresh=False)


async def carry_out(zuno: Zuno, stop: Stop, tell: Tell) -> Any:
    kind, which = stop
    zuno.refresh()
    match kind:
        case "kill":
            return await zuno.account(which).kill(lambda word, what: True, "page")
        case "pause":
            return await zuno.account(which).pause()
        case "cancel":
            return await zuno.execution().cancel(which or "", tell)
        case "uses_play_money":
            return await zuno.execution().uses_play_money(which or "")
