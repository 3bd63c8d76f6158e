"""Wire the outbox: its store, the notifier that empties it, and the lease of whoever does."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from zuno.kernel.errors import Usage
from zuno.settings import Settings

if TYPE_CHECKING:
    from zuno.kernel.notify import Notifier, Outbox
    from zuno.pushes.drain import OutboxDrain


def open_outbox(settings: Settings) -> Outbox:
    from zuno.adapters.store.outbox import SqliteOutbox

    return SqliteOutbox(settings.home)


def build_drain(settings: Settings, outbox: Outbox, *, announce: bool = False) -> OutboxDrain | None:
    """None where there is nobody to send to; `announce`: then what nobody carries is told on stderr."""
    from zuno.adapters.clock.system import SystemClock
    from zuno.adapters.file_lock import outbox_lock
    from zuno.pushes.drain import OutboxDrain
    from zuno.pushes.rules import PushRules, parse_push_modes, parse_quiet_hours

    rules = PushRules(parse_push_modes(settings.telegram_push), parse_quiet_hours(settings.telegram_quiet_hours))
    notifier = _telegram(settings)
    if notifier is None and announce:
        from zuno.adapters.notifier.console import ConsoleNotifier

        notifier = ConsoleNotifier(print_line)
    if notifier is None:
        return None
    return OutboxDrain(outbox, notifier, outbox_lock(settings.home), SystemClock(), print_line, rules)


def pushes_to_telegram(settings: Settings) -> bool:
    return settings.telegram_bot_token is not None and settings.telegram_chat_id is not None


def print_line(line: str) -> None:
    sys.stderr.write(f"zuno: {line}\n")
    sys.stderr.flush()


def _telegram(settings: Settings) -> Notifier | None:
    token, chat = settings.telegram_bot_token, settings.telegram_chat_id
    if (token is None) != (chat is None):
        missing = "ZUNO_TELEGRAM_BOT_TOKEN" if token is None else "ZUNO_TELEGRAM_CHAT_ID"
        raise Usage(f"Telegram needs both a bot and a chat: {missing} is not set.")
    if token is None or chat is None:
        return None
    from zuno.adapters.notifier.telegram import TelegramNotifier

    return TelegramNotifier(token.get_secret_value(), chat, settings.telegram_api_base_url)
