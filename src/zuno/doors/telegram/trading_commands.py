"""Commands that look at the trading desk, and those that only lower its risk."""

from __future__ import annotations

from zuno.doors.telegram.commands import Asked, Command, Level
from zuno.doors.telegram.reply import Reply
from zuno.doors.zuno import Zuno


async def show_version(asked: Asked, zuno: Zuno) -> Reply:
    from importlib.metadata import version

    return Reply(f"<b>zuno</b> {version('zuno')}")


COMMANDS = (Command("version", "", "Show the version.", Level.LOOK, show_version),)
