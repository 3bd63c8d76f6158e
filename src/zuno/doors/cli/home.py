"""`zuno home` commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from zuno.doors.cli.options import command, group

if TYPE_CHECKING:
    from zuno.doors.cli.run_command import Answer
    from zuno.doors.zuno import Zuno

home = group("What this home holds on disk.")


@command(home, "compact")
def home_compact(
    zuno: Zuno,
    /,
    older: Annotated[
        str | None,
        typer.Option("--older", metavar="SPAN", help="Archive bundles last used longer ago than this: 90d, 26w."),
    ] = None,
) -> Answer:
    """Store bundles in shared blocks, archive old ones beside the journal and free the room. Nothing is deleted."""
    from zuno.kernel.arguments import parse_span

    return zuno.compact_home(None if older is None else parse_span(older))
