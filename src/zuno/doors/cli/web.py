"""`zuno web`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from zuno.doors.cli import run_command
from zuno.doors.cli.options import Home, whole_number

if TYPE_CHECKING:
    from zuno.doors.zuno import Zuno
    from zuno.kernel.view import View

Lines = Annotated[bool, typer.Option("--json", help="One JSON document per event.")]


def web(
    ctx: typer.Context,
    port: Annotated[
        int, typer.Option("--port", metavar="N", parser=whole_number, help="Port; 0 picks a free one.")
    ] = 8420,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Bind address (default 127.0.0.1); plain HTTP.")
    ] = "127.0.0.1",
    home: Home = None,
    json: Lines = False,
) -> None:
    """Serve the page on this machine until Ctrl-C or SIGTERM, and print the link to log in."""
    run_command.answer(ctx.obj.at(home), json, lambda zuno: _serve_page(zuno, host, port, json))


async def _serve_page(zuno: Zuno, host: str, port: int, json: bool) -> View:
    from zuno.doors.cli.service import serve
    from zuno.doors.cli.web_screens import web_event_line

    return await serve(zuno.web(host, port).run, web_event_line, json=json)
