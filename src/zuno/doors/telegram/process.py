"""`zuno telegram run` and `zuno telegram setup`: one process per home holds the bot while it runs."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from telegram import Bot, BotCommand, Message, Update
from telegram.error import Conflict, TelegramError

from zuno.doors.telegram.access import PRIVATE, Access
from zuno.doors.telegram.api import check_token, explain, open_bot, until_stopped
from zuno.doors.telegram.bot import BotBackends, TelegramBot
from zuno.doors.telegram.commands import Command
from zuno.doors.telegram_door import TelegramEndView, TelegramSetupView
from zuno.doors.zuno import Zuno
from zuno.kernel.errors import Refused, Unavailable
from zuno.kernel.lock import ProcessLock
from zuno.kernel.view import EventView

HOW_TO_UNLOCK: Final = (
    "plans can be shown and approved, not applied. Set ZUNO_PASSPHRASE_FILE to a file (0600) with its passphrase, or"
    " start this in the foreground of a terminal and type it."
)
WAIT_SECONDS: Final = 600
POLL_SECONDS: Final = 10
GUESSES: Final = 3
"""Wrong codes of one person, after which no code of theirs counts."""
DESCRIPTION: Final = (
    "Zuno: a desk of arguing agents for Uniswap v4 liquidity and crypto trading. It answers its owners alone."
)
ABOUT: Final = "The desk of arguing agents, in a chat."
LONGEST_DESCRIPTION: Final = 256


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

    async def run(self, hear: Callable[[EventView], None], stop: asyncio.Event) -> TelegramEndView:
        self._lock.take()
        try:
            if self._zuno.unlock_wallet() is None:  # now, while somebody may be at the terminal: later nobody is asked
                await self._tell_locked(hear)
            return await TelegramBot(self._bot, self._zuno, self._access, self._on).run(hear, stop)
        finally:
            await self._on.store.close()
            self._lock.leave()

    async def _tell_locked(self, hear: Callable[[EventView], None]) -> None:
        """A wallet with a key here that could not be unlocked; of one that is only watched there is nothing to say."""
        for wallet in (await self._zuno.wallets().show()).wallets:
            if wallet.acts and not wallet.watch_only:
                text = f"{wallet.address} stays locked: {HOW_TO_UNLOCK}"
                hear(EventView(at=self._on.now(), event="locked", text=text))

    async def setup(self, tell: Callable[[str], None], stop: asyncio.Event) -> TelegramSetupView:
        self._lock.take()
        try:
            return await set_up(self._bot, self._on, tell, stop)
        finally:
            await self._bot.shutdown()
            self._lock.leave()


async def set_up(bot: Bot, on: BotBackends, tell: Callable[[str], None], stop: asyncio.Event) -> TelegramSetupView:
    """`Refused` where nobody sent the code in time, `Unavailable` where Telegram does not answer."""
    await check_token(bot)
    name = f"@{bot.username}"
    try:
        await bot.delete_webhook()
        count = await register(bot, on.commands)
        code = f"{int.from_bytes(on.chance(8), 'big') % 1_000_000:06}"
        tell(f"Token of {name} accepted; {count} commands registered.")
        tell(f"Open {name} in Telegram and send it this code within {WAIT_SECONDS / 60:g} minutes: {code}")
        async with asyncio.timeout(WAIT_SECONDS):
            message = await _wait_for_code(bot, code, stop)
        assert message.from_user is not None
        await bot.send_message(message.chat_id, "Thank you. The rest is shown where you ran zuno telegram setup.")
    except TimeoutError:
        raise Refused(f"Nobody sent the code to {name} in time; run `zuno telegram setup` again.") from None
    except Conflict:
        raise Refused(f"Another process polls {name}; stop it, then run `zuno telegram setup` again.") from None
    except TelegramError as error:
        raise Unavailable(f"The setup ended: {explain(error)}.") from None
    user = message.from_user
    return TelegramSetupView(
        bot=name,
        user=user.id,
        chat=message.chat_id,
        name=user.full_name,
        environment=(f"export ZUNO_TELEGRAM_OWNERS={user.id}", f"export ZUNO_TELEGRAM_CHAT_ID={message.chat_id}"),
        commands=count,
    )


async def register(bot: Bot, commands: Sequence[Command]) -> int:
    await bot.set_my_commands([BotCommand(each.name, each.description[:LONGEST_DESCRIPTION]) for each in commands])
    await bot.set_my_description(DESCRIPTION)
    await bot.set_my_short_description(ABOUT)
    return len(commands)


async def _wait_for_code(bot: Bot, code: str, stop: asyncio.Event) -> Message:
    """The message with the code, in a private chat. What else comes meanwhile is dropped."""
    offset: int | None = None
    wrong: Counter[int] = Counter()
    while not stop.is_set():
        polling = bot.get_updates(offset=offset, timeout=POLL_SECONDS, allowed_updates=[Update.MESSAGE])
        for update in await until_stopped(stop, polling) or ():
            offset = update.update_id + 1
            message = update.message
            if message is None or message.from_user is None or message.from_user.is_bot or message.chat.type != PRIVATE:
                continue
            who, typed = message.from_user.id, (message.text or "").strip()
            if typed == code and wrong[who] < GUESSES:
                await bot.get_updates(offset=offset, timeout=0)  # confirms it
                return message
            wrong[who] += typed.isdigit()
    raise Refused("Stopped before the code came.")
