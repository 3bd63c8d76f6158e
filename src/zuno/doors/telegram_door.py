"""The Telegram door as the command line opens it: run, set up, and what each has to say."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from zuno.kernel.view import ForeignText, View


class TelegramEventView(View):
    """One thing that happened to the process."""

    at: int
    """Unix milliseconds."""
    event: str
    """`polling`, `unreachable`, `refused`, `conflict`, `locked`, …"""
    text: ForeignText


class TelegramEndView(View):
    bot: ForeignText
    updates: int
    """Received, repeated ones not counted."""
    answered: int
    refused: int
    """From strangers."""


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


class TelegramDoor(Protocol):
    async def run(self, hear: Callable[[TelegramEventView], None], stop: asyncio.Event) -> TelegramEndView:
        """Answer until `stop`. `UsageError` for a token or a setting that cannot be used."""

    async def setup(self, tell: Callable[[str], None], stop: asyncio.Event) -> TelegramSetupView:
        """Check the token, find the owner by a code, register the commands. Nothing is stored."""
