"""The bot of a home on a fake Bot API: the whole wiring in this process, as `zuno telegram run` has it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.wire.telegram_api import ALICE, BOB, GROUP, TOKEN, WAIT_SECONDS, TelegramApi
from zuno.doors.telegram_door import TelegramEndView
from zuno.journal.port import Entry
from zuno.kernel.view import EventView
from zuno.settings import Settings
from zuno.wiring.application import Application


@dataclass
class RunningBot:
    zuno: Application
    events: list[EventView] = field(default_factory=list)
    end: TelegramEndView | None = None
    """Once it ended."""

    async def chats(self, count: int) -> list[Entry]:
        """What the journal keeps of the chat, oldest first, once there is as much: it is written after the answer."""
        async with asyncio.timeout(WAIT_SECONDS):
            while True:
                found = [entry async for entry in self.zuno.journal().entries(kind="chat")]
                if len(found) >= count:
                    return found
                await asyncio.sleep(0.01)


def chat_settings(home: Path, api: TelegramApi, **more: Any) -> Settings:
    """Alice owns, Bob looks, one group is listed, unless said otherwise."""
    given: dict[str, Any] = {
        "home": home,
        "telegram_bot_token": TOKEN,
        "telegram_api_base_url": api.url,
        "telegram_owners": (ALICE.id,),
        "telegram_viewers": (BOB.id,),
        "telegram_groups": (GROUP.id,),
    }
    return Settings(**given | more)


@asynccontextmanager
async def running_bot(home: Path, api: TelegramApi, **more: Any) -> AsyncIterator[RunningBot]:
    """Runs until the block ends. `more`: further settings."""
    zuno = Application(chat_settings(home, api, **more))
    bot, stop = RunningBot(zuno), asyncio.Event()
    running = asyncio.create_task(zuno.telegram().run(bot.events.append, stop))
    try:
        polls = asyncio.create_task(api.polling.wait())
        await asyncio.wait({running, polls}, return_when=asyncio.FIRST_COMPLETED)
        polls.cancel()
        if running.done():
            running.result()
        yield bot
    finally:
        stop.set()
        bot.end = await running
        await zuno.close()
