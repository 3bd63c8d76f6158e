"""`zuno telegram run` and `zuno telegram setup`: one process per home holds the bot while it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from zuno.doors.telegram.access import Access
from zuno.doors.telegram.api import open_bot
from zuno.doors.telegram.bot import BotBackends, TelegramBot
from zuno.doors.telegram_door import TelegramEndView, TelegramEventView, TelegramSetupView
from zuno.doors.zuno import Zuno
from zuno.kernel.lock import ProcessLock

HOW_TO_UNLOCK: Final = (
    "plans can be shown and approved, not applied. Set ZUNO_PASSPHRASE_FILE to a file (0600) with its passphrase, or"
    " start this in the foreground of a terminal and type it."
)


class TelegramProcess:
    """The `TelegramDoor`."""

    def __init__(
        self, token: str, base_url: str, zuno: Zuno, access: Access, backends: BotBackends, lock: ProcessLock
    ) -> None:
        self._bot = open_bot(token, base_url)
        self._zuno = zuno
        self._access = access
        self._on = backends
        self._lock = lock

    async def run(self, hear: Callable[[TelegramEventView], None], stop: asyncio.Event) -> TelegramEndView:
        self._lock.take()
        try:
            if self._zuno.unlock_wallet() is None:  # now, while somebody may be at the terminal: later nobody is asked
                await self._tell_locked(hear)
            return await TelegramBot(self._bot, self._zuno, self._access, self._on).run(hear, stop)
        finally:
            await self._on.store.close()
            self._lock.leave()

    async def _tell_locked(self, hear: Callable[[TelegramEventView], None]) -> None:
        """A wallet with a key here that could not be unlocked; of one that is only watched there is nothing to say."""
        for wallet in (await self._zuno.wallets().show()).wallets:
            if wallet.acts and not wallet.watch_only:
                text = f"{wallet.address} stays locked: {HOW_TO_UNLOCK}"
                hear(TelegramEventView(at=self._on.now(), event="locked", text=text))

    async def setup(self, tell: Callable[[str], None], stop: asyncio.Event) -> TelegramSetupView:
        from zuno.doors.telegram.setup import set_up

        self._lock.take()
        try:
            return await set_up(self._bot, self._on, tell, stop)
        finally:
            await self._bot.shutdown()
            self._lock.leave()
