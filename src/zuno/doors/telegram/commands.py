"""What a command of the chat is: its name, who may give it, and what answers it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from zuno.doors.telegram.access import Role
from zuno.doors.telegram.follow import LiveMessage
from zuno.doors.telegram.reply import Reply
from zuno.doors.zuno import Zuno
from zuno.kernel.chat_text import JOINER
from zuno.kernel.errors import UsageError
from zuno.kernel.notify import SendResult
from zuno.kernel.text import plain_text
from zuno.trading.model.trade_events import PAPER_ACCOUNT, PAPER_WORD
from zuno.trading.service.account import AccountDesk

LONGEST_LINE: Final = 4_096
AT_EXCHANGES: Final = ("live", "demo")
_COMMAND: Final = re.compile(r"/([A-Za-z0-9_]{1,64})(?:@([A-Za-z0-9_]{1,64}))?(?:\s+(.*))?", re.DOTALL)


class Level(StrEnum):
    """What a command can do, and so what it takes to give it."""

    LOOK = "look"
    """Reads. Owners and viewers."""
    OWNER = "owner"
    """Moves nothing, but runs agents or silences an alert. Owners."""
    LOWERS_RISK = "lowers risk"
    """Acts at once. Owners."""
    MONEY = "confirm"
    """Moves money or raises risk: shows a card, acts when an owner confirms it."""


class ChatWriter(Protocol):
    """Writes into the chat that asked; a message that Telegram does not take is given up, not raised."""

    async def send(self, reply: Reply) -> int | None:
        """Send it, in several messages where it is long; the id of the last, None if it did not arrive."""

    async def edit(self, message: int, reply: Reply) -> SendResult:
        """Replace the text and buttons of a message. `Sent` also where it says so already; `RetryLater` with the wait
        that Telegram asks for; `Undeliverable` where the message is gone."""

    def follow(self) -> LiveMessage:
        """A message that is sent with its first text and edited from then on."""


class ActionCards(Protocol):
    """The cards on which an owner confirms what moves money."""

    async def show(self, name: str, asked: ChatRequest, zuno: Zuno) -> Reply: ...
    async def confirm(self, asked: ChatRequest, zuno: Zuno) -> Reply: ...
    async def dismiss(self, asked: ChatRequest, zuno: Zuno) -> Reply: ...


@dataclass(frozen=True, slots=True)
class ChatRequest:
    user: int
    chat: int
    message: int
    """The message that asked; of a button, the message it stands under."""
    text: str
    """As it was typed, one printable line."""
    words: tuple[str, ...]
    """What follows the command."""
    role: Role
    live: ChatWriter
    cards: ActionCards
    pressed: bool = False


Replies = AsyncIterator[Reply] | Awaitable[Reply]


@dataclass(frozen=True, slots=True)
class Command:
    name: str
    usage: str
    """What may follow the name: `[table]`."""
    description: str
    level: Level
    handle: Callable[[ChatRequest, Zuno], Replies]
    aliases: tuple[str, ...] = ()
    takes_long: bool = False
    """Has no time limit and does not keep others waiting."""


@dataclass(frozen=True, slots=True)
class TypedCommand:
    name: str
    bot: str | None
    """The bot it is addressed to, in small letters."""
    words: tuple[str, ...]


def read_command(text: str) -> TypedCommand | None:
    found = _COMMAND.fullmatch(text.replace(JOINER, "").strip())  # copied from what we wrote
    if found is None:
        return None
    name, bot, rest = found.groups()
    words = plain_text(rest, LONGEST_LINE).split() if rest and rest.strip() else []
    return TypedCommand(name.lower(), bot.lower() if bot else None, tuple(words))


def take_account(words: tuple[str, ...]) -> tuple[tuple[str, ...], str | None]:
    """The words without the account that they end with: `live`, `demo`, `paper` or `paper:NAME`."""
    last = words[-1] if words else ""
    if last.lower() in AT_EXCHANGES:
        return words[:-1], last.lower()
    if last.lower() == PAPER_ACCOUNT or last.lower().startswith(PAPER_WORD):
        name = last[len(PAPER_WORD) :]
        if name.lower() in AT_EXCHANGES:
            raise UsageError(f"No paper account is called {name.lower()}; `{name.lower()}` alone is the account there.")
        return words[:-1], name or None
    return words, None


def read_account(asked: ChatRequest, usage: str) -> str | None:
    """The account that follows the command; `UsageError` where anything else does."""
    words, name = take_account(asked.words)
    if words:
        raise UsageError(f"Write `{usage}`.")
    return name


def open_account(asked: ChatRequest, zuno: Zuno, usage: str) -> AccountDesk:
    return zuno.account(read_account(asked, usage))
