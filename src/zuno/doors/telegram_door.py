"""The Telegram door as the command line opens it: run, set up, and what each has to say."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from zuno.kernel.view import EventView, ForeignText, View
from zuno.present.document import Document, Mark, document, facts, lines
from zuno.present.values import foreign


class TelegramEndView(View):
    bot: ForeignText
    updates: int
    """Received, repeated ones not counted."""
    answered: int
    refused: int
    """From strangers."""

    def to_document(self) -> Document:
        counts = f"{self.updates} updates, {self.answered} answered, {self.refused} refused."
        return document(foreign(f"{self.bot}: {counts}"))


class TelegramSetupView(View):
    bot: ForeignText
    """Its @name."""
    user: int
    chat: int
    name: ForeignText
    """What the person calls themselves."""
    environment: tuple[str, ...]
    """The lines to set."""
    commands: int
    """Registered with Telegram."""

    def to_document(self) -> Document:
        return document(
            "Telegram",
            facts(
                ("bot", foreign(self.bot)),
                ("you", foreign(self.name)),
                ("user id", str(self.user)),
                ("chat id", str(self.chat)),
                ("commands", f"{self.commands} registered"),
            ),
            lines("Nothing was stored. Set these, then `zuno telegram run`:"),
            lines(*self.environment, mark=Mark.VERBATIM),
        )


class TelegramDoor(Protocol):
    async def run(self, hear: Callable[[EventView], None], stop: asyncio.Event) -> TelegramEndView:
        """Answer until `stop`. `UsageError` for a token or a setting that cannot be used."""

    async def setup(self, tell: Callable[[str], None], stop: asyncio.Event) -> TelegramSetupView:
        """Check the token, find the owner by a code, register the commands. Nothing is stored."""
