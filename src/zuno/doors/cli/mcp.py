"""`zuno mcp`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from zuno.doors.cli import run_command
from zuno.doors.cli.options import Home

if TYPE_CHECKING:
    from zuno.doors.zuno import Zuno


def mcp(ctx: typer.Context, home: Home = None) -> None:
    """MCP server on stdio: read and analyse only."""

    async def serve(zuno: Zuno) -> None:
        import os
        import signal

        server = zuno.assistant()
        # Reading stdin cannot be cut short, and nothing here is lost by an end at any moment.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, lambda number, frame: os._exit(run_command.TERMINATED))
        await server.serve()

    run_command.serve_silently(ctx.obj.at(home), serve)
