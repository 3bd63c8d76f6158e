"""`zuno telegram` commands."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from zuno.doors.cli import run_command
from zuno.doors.cli.options import Home, Json, group

if TYPE_CHECKING:
    from zuno.doors.zuno import Zuno
    from zuno.kernel.view import View

telegram = group("Bot in a Telegram chat: both desks, for the people you list.")
Lines = Annotated[bool, typer.Option("--json", help="One JSON document per event.")]


@telegram.command("run")
def telegram_run(ctx: typer.Context, home: Home = None, json: Lines = False) -> None:
    """Poll Telegram and answer owners and viewers until Ctrl-C or SIGTERM."""
    run_command.answer(ctx.obj.at(home), json, lambda zuno: _run_bot(zuno, json))


@telegram.command("setup")
def telegram_setup(ctx: typer.Context, home: Home = None, json: Json = False) -> None:
    """Check the token, find your user id by a code you send to the bot, register the commands."""
    run_command.answer(ctx.obj.at(home), json, _set_up)


async def _run_bot(zuno: Zuno, json: bool) -> View:
    from zuno.doors.cli.service import event_line, serve

    return await serve(zuno.telegram().run, event_line, json=json)


async def _set_up(zuno: Zuno) -> View:
    from zuno.doors.cli.service import stop_on_signals

    def tell(line: str) -> None:
        sys.stderr.write(f"zuno: {line}\n")
        sys.stderr.flush()

    return await zuno.telegram().setup(tell, stop_on_signals())
