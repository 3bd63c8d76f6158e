"""Wire the Telegram door: its token, its allow-list, its store, its journal."""

import logging
import os
import random
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from typing import Final

from zuno.adapters.clock.system import unix_millis
from zuno.adapters.file_lock import telegram_lock
from zuno.adapters.http import SecretFilter
from zuno.adapters.notifier.telegram import check_bot
from zuno.adapters.store.chat_store import SqliteChatStore
from zuno.doors.chat.desk import ChatDesk
from zuno.doors.telegram_door import TelegramDoor
from zuno.doors.zuno import Zuno
from zuno.journal.port import Journal
from zuno.kernel.errors import Unavailable, UsageError
from zuno.kernel.installation import name_install
from zuno.settings import Settings
from zuno.wiring.outbox import PushSources, build_button_search, build_pushes, find_push_gaps

_CLIENT_LOGS: Final = ("telegram", "httpx", "httpcore")


def build_telegram(
    settings: Settings,
    zuno: Zuno,
    journal: Callable[[], Awaitable[Journal]],
    pushes: PushSources,
    chat: Callable[[], ChatDesk],
) -> TelegramDoor:
    """`UsageError` without a token, `Unavailable` without the library; each says what to do."""
    if settings.telegram_bot_token is None:
        raise UsageError(
            "ZUNO_TELEGRAM_BOT_TOKEN is not set: write /newbot to @BotFather in Telegram, set it to the token you get,"
            " then run `zuno telegram setup`."
        )
    token = check_bot(settings.telegram_bot_token.get_secret_value(), settings.telegram_api_base_url)
    if find_spec("telegram") is None:
        raise Unavailable(f"The Telegram bot needs python-telegram-bot: {name_install('telegram')}.")
    from zuno.doors.telegram.access import Access
    from zuno.doors.telegram.bot import BotBackends
    from zuno.doors.telegram.command_table import COMMANDS, answer_free_text
    from zuno.doors.telegram.money_commands import CARDS
    from zuno.doors.telegram.process import TelegramProcess

    _hide_in_logs(token)
    return TelegramProcess(
        token=token,
        base_url=settings.telegram_api_base_url,
        zuno=zuno,
        access=Access(settings.telegram_owners, settings.telegram_viewers, settings.telegram_groups),
        backends=BotBackends(
            store=SqliteChatStore(settings.home),
            journal=journal,
            now=unix_millis,
            chance=os.urandom,
            commands=COMMANDS,
            cards=CARDS,
            free_text=answer_free_text(chat()),
            draw=random.random,
            beside=build_pushes(settings, pushes),
            gaps=find_push_gaps(settings),
            find_push_button=build_button_search(settings, pushes.outbox),
        ),
        lock=telegram_lock(settings.home),
    )


def _hide_in_logs(token: str) -> None:
    """Keep lines with the token out of the logs of the library and its HTTP client."""
    known = logging.root.manager.loggerDict
    names = [name for name in known if name.partition(".")[0] in _CLIENT_LOGS]
    for name in {*_CLIENT_LOGS, *names}:
        logging.getLogger(name).addFilter(SecretFilter(token))
