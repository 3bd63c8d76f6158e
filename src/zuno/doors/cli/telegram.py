"""`zuno telegram` commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from zuno.doors.cli import run_command
from zuno.doors.cli.options import command, group

if TYPE_CHECKING:
    from zuno.doors.zuno import Zuno
    from zuno.kernel.view import View

telegram = group("Bot in a Telegram chat: both desks, for the people you list.")
Lines = Annotated[bool, typer.Option("--json", help="One JSON document per event.")]


@command(telegram, "run")
async def telegram_run(zuno: Zuno, /, json: Lines = False) -> View:
    """Poll Telegram and answer owners and viewers until Ctrl-C or SIGTERM."""
    from zuno.doors.cli.service import serve
    from zuno.doors.cli.telegram_screens import event_line

    return await serve(zuno.telegram().run, event_line, json=json)


@command(telegram, "setup")
async def telegram_setup(zuno: Zuno, /) -> View:
    """Check the token, find your user id by a code you send to the bot, register the commands."""
    from zuno.doors.cli.service import stop_on_signals

    return await zuno.telegram().setup(lambda line: run_command.complain(f"zuno: {line}"), stop_on_signals())
