"""Kill, pause, cancel and revoke run in a process of their own, so that no other request of the page delays them."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final, Literal, Protocol

from zuno.doors.zuno import Zuno
from zuno.kernel.accounts import PAPER_ACCOUNT
from zuno.trading.service.account_view import ActionView

Stop = (
    tuple[Literal["kill", "pause", "revoke", "cancel", "uses_play_money"], str | None]
    | tuple[Literal["pause_mandates", "revoke_mandates"], str | None]
    | tuple[Literal["cancel_order"], str | None, str]
)
"""What, and which account, plan or chain; of an account, which order."""
Tell = Callable[[str], None]
WATCH_SECONDS: Final = 0.25


class Helper(Protocol):
    """The process, with the home open."""

    def start(self) -> None: ...
    async def ask(self, asked: Stop, tell: Tell = ...) -> Any: ...
    def stop(self) -> None: ...


class StopDesk:
    """Answers there."""

    def __init__(self, zuno: Zuno) -> None:
        self._zuno = zuno
        self._killing: dict[str, asyncio.Task[ActionView]] = {}

    async def handle(self, stop: Stop, tell: Tell) -> Any:
        self._zuno.refresh()
        match stop:
            case "kill", account:
                return await asyncio.shield(self._begin_kill(account or PAPER_ACCOUNT))
            case "pause", account:
                return await self._zuno.account(account).pause()
            case "revoke", account:
                return await self._zuno.account(account).revoke_mandate()
            case "cancel_order", account, order:
                return await self._zuno.account(account).cancel(order)
            case "pause_mandates", _:
                return await self._zuno.mandates().pause()
            case "revoke_mandates", chain:
                return await self._zuno.mandates().revoke(chain)
            case "cancel", plan:
                return await self._zuno.execution().cancel(plan or "", tell)
            case "uses_play_money", plan:
                return await self._zuno.execution().uses_play_money(plan or "")

    def watch_kills(self, list_kills: Callable[[], frozenset[tuple[str, str]]]) -> None:
        """Finish kills of other processes, which may have ended after locking an account."""
        self._watching = asyncio.create_task(self._finish_kills(list_kills))

    async def _finish_kills(self, list_kills: Callable[[], frozenset[tuple[str, str]]]) -> None:
        seen: frozenset[tuple[str, str]] = frozenset()
        while True:
            kills = list_kills()
            for account, _ in kills - seen:
                self._begin_kill(account)
            seen = kills
            await asyncio.sleep(WATCH_SECONDS)

    def _begin_kill(self, account: str) -> asyncio.Task[ActionView]:
        """Unless it is under way."""

        async def kill() -> ActionView:
            return await self._zuno.account(account).kill(None, "page")

        def end(done: asyncio.Task[ActionView]) -> None:
            del self._killing[account]
            if not done.cancelled() and (error := done.exception()) is not None:
                logging.getLogger(__name__).warning("the kill of %s is not finished: %s", account, error)

        if account not in self._killing:
            self._killing[account] = asyncio.create_task(kill())
            self._killing[account].add_done_callback(end)
        return self._killing[account]
