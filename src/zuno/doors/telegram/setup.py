"""`zuno telegram setup`: who the bot is, who its owner is, and what Telegram shows of it. Nothing is stored here."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from telegram import Bot, BotCommand, Message, Update
from telegram.error import Conflict, TelegramError

from zuno.doors.telegram.access import PRIVATE
from zuno.doors.telegram.api import check_token, explain, until_stopped
from zuno.doors.telegram.bot import BotBackends
from zuno.doors.telegram.commands import Command
from zuno.doors.telegram_door import TelegramSetupView
from zuno.kernel.errors import Refused, Unavailable

WAIT_SECONDS: Final = 600
POLL_SECONDS: Final = 10
GUESSES: Final = 3
"""Wrong codes of one person, after which no code of theirs counts."""
DESCRIPTION: Final = (
    "Zuno: a desk of arguing agents for Uniswap v4 liquidity and BTC/ETH trading. It answers its owners alone."
)
ABOUT: Final = "The desk of arguing agents, in a chat."
LONGEST_DESCRIPTION: Final = 256


async def set_up(
    bot: Bot, on: BotBackends, tell: Callable[[str], None], stop: asyncio.Event, *, wait: float = WAIT_SECONDS
) -> TelegramSetupView:
    """`Refused` where nobody sent the code in time, `Unavailable` where Telegram does not answer."""
    await check_token(bot)
    name = f"@{bot.username}"
    try:
        await bot.delete_webhook()
        count = await register(bot, on.commands)
        code = f"{int.from_bytes(on.chance(8), 'big') % 1_000_000:06}"
        tell(f"Token of {name} accepted; {count} commands registered.")
        tell(f"Open {name} in Telegram and send it this code within {wait / 60:g} minutes: {code}")
        async with asyncio.timeout(wait):
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
    """What Telegram's own menu and the bot's page show."""
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
