"""`zuno parse`: what the shell makes of a line, and why."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Annotated

import typer

from zuno.frontends.cli import answering
from zuno.frontends.cli.grammar import Home, Json

if TYPE_CHECKING:
    from zuno.app.views import View
    from zuno.app.zuno import Zuno


def parse(
    ctx: typer.Context,
    text: Annotated[str, typer.Argument(metavar="TEXT", help='A line for the shell: "rebalance position 1 safely".')],
    home: Home = None,
    json: Json = False,
) -> None:
    """Show how the shell reads a line: intent, slots, confidence, the command it means. Nothing is run."""

    def asked(zuno: Zuno) -> Awaitable[View]:
        from zuno.app.reading.telling import parsed

        return parsed(text)

    answering.answer(ctx.obj.at(home), json, asked)
