"""Wire the outbox: what fills it, the notifier that empties it, and the lease of the process that sends."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from zuno.adapters.clock.system import SystemClock, unix_millis
from zuno.adapters.file_lock import outbox_lock
from zuno.kernel.notify import Notifier, Outbox
from zuno.pushes.rules import PushRules, parse_push_modes, parse_quiet_hours
from zuno.settings import Settings

if TYPE_CHECKING:
    from zuno.journal.port import Journal
    from zuno.kernel.chat import ChatButton
    from zuno.pushes.drain import OutboxDrain
    from zuno.pushes.feed import JournalFeed
    from zuno.trading.rules.performance import AccountLog

_CALLBACK: Final = re.compile(r"n([0-9]{1,18})\.([0-9]{1,2})")
_CHAT: Final = re.compile(r"-?[0-9]{1,20}")


def build_drain(settings: Settings, outbox: Outbox, *, announce: bool = False) -> OutboxDrain | None:
    """None where there is nobody to send to; with `announce` notices then go to stderr."""
    from zuno.pushes.drain import OutboxDrain

    quiet = parse_quiet_hours(settings.telegram_quiet_hours, settings.time_zone)
    rules = PushRules(parse_push_modes(settings.telegram_push), quiet)
    notifier = _telegram(settings)
    if notifier is None and announce:
        from zuno.adapters.notifier.console import ConsoleNotifier

        notifier = ConsoleNotifier(print_line)
    if notifier is None:
        return None
    return OutboxDrain(outbox, notifier, outbox_lock(settings.home), SystemClock(), print_line, rules)


@dataclass(frozen=True, slots=True)
class PushSources:
    outbox: Outbox
    journal: Callable[[], Awaitable[Journal]]
    log: Callable[[], AccountLog]
    paint: Callable[[str], Awaitable[bytes | None]]
    """The equity picture of an account."""


def build_feed(
    settings: Settings, drain: OutboxDrain, sources: PushSources, *, lp_alone: bool = False
) -> JournalFeed | None:
    """Notices of both desks from the journal; where no chat is pushed to None, or those of the LP desk alone."""
    from zuno.lp.watch.plan_notices import PlanNotices
    from zuno.pushes.feed import JournalFeed
    from zuno.trading.watch.notices import TradingNotices

    feed = partial(JournalFeed, sources.outbox, sources.journal, now=unix_millis, tell=print_line, wake=drain.wake)
    if _pushes_to_chat(settings):
        return feed(sources=(PlanNotices(), TradingNotices(sources.log(), sources.paint)))
    return feed(sources=(PlanNotices(),), name="lp") if lp_alone else None


def find_push_gaps(settings: Settings) -> tuple[str, ...]:
    """What in the settings keeps pushes or their buttons from the owner, though a bot or a chat is set."""
    token, chat = settings.telegram_bot_token, settings.telegram_chat_id
    if token is not None and chat is None:
        return ("Nothing is pushed: ZUNO_TELEGRAM_CHAT_ID is not set; `zuno telegram setup` shows yours.",)
    if token is None and chat is not None:
        return ("Nothing is pushed: ZUNO_TELEGRAM_CHAT_ID is set, and ZUNO_TELEGRAM_BOT_TOKEN is not.",)
    if chat is not None and not _CHAT.fullmatch(chat.strip()):
        return ("Pushes have no buttons: ZUNO_TELEGRAM_CHAT_ID is a name; buttons need the chat's number.",)
    return ()


def build_pushes(
    settings: Settings, sources: PushSources, *, tell_gaps: bool = False
) -> Callable[[asyncio.Event], Coroutine[None, None, None]] | None:
    """Feed and drain in one, until an event is set; None without a chat. `tell_gaps`: print missing settings."""
    gaps = find_push_gaps(settings) if tell_gaps else ()
    if not gaps and not _pushes_to_chat(settings):
        return None

    async def run(stop: asyncio.Event) -> None:
        for gap in gaps:
            print_line(gap)
        if not _pushes_to_chat(settings):
            return
        drain = build_drain(settings, sources.outbox)
        assert drain is not None
        feed = build_feed(settings, drain, sources)
        assert feed is not None
        try:
            await asyncio.gather(feed.run(stop), drain.run(stop))
            await drain.deliver_once()  # what was appended while both were ending
        finally:
            await drain.close()

    return run


def build_button_search(settings: Settings, outbox: Outbox) -> Callable[[str], Awaitable[ChatButton | None]]:
    """Finds what a button below a push asks, by its callback data `n<number>.<index>`."""
    name = (settings.telegram_chat_id or "").strip()
    chat = int(name) if _CHAT.fullmatch(name) else None

    async def find(data: str) -> ChatButton | None:
        from zuno.kernel.chat import ChatButton

        match = _CALLBACK.fullmatch(data)
        post = None if match is None else await outbox.find(int(match[1]))
        if chat is None or match is None or post is None or int(match[2]) >= len(post.notice.buttons):
            return None
        return ChatButton(post.notice.buttons[int(match[2])].words, chat)

    return find


def _pushes_to_chat(settings: Settings) -> bool:
    return settings.telegram_bot_token is not None and settings.telegram_chat_id is not None


def print_line(line: str) -> None:
    sys.stderr.write(f"zuno: {line}\n")
    sys.stderr.flush()


def _telegram(settings: Settings) -> Notifier | None:
    token, chat = settings.telegram_bot_token, settings.telegram_chat_id
    if token is None or chat is None:
        return None
    from zuno.adapters.notifier.telegram import TelegramNotifier
    from zuno.doors.telegram.terminal_words import translate_commands

    return TelegramNotifier(
        token.get_secret_value(), chat, settings.telegram_api_base_url, translate=translate_commands
    )
