"""`zuno parse`: show how the shell parses a line."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Annotated

import typer

from zuno.doors.cli import run_command
from zuno.doors.cli.options import Home, Json

if TYPE_CHECKING:
    from zuno.doors.zuno import Zuno
    from zuno.kernel.view import View


def parse(
    ctx: typer.Context,
    text: Annotated[str, typer.Argument(metavar="TEXT", help='Shell input: "rebalance position 1 safely".')],
    home: Home = None,
    json: Json = False,
) -> None:
    """Show how the shell parses a line: intent, slots, confidence, command. Nothing is run."""

    def fetch(zuno: Zuno) -> Awaitable[View]:
        from zuno.doors.reading.parse_view import parse_line

        return parse_line(text, lambda: zuno.lp(None).positions())

    run_command.answer(ctx.obj.at(home), json, fetch)
