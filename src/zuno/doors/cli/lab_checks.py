"""`zuno lab` commands that hold the trading desk to what it must not do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from zuno.doors.cli import run_command
from zuno.doors.cli.lab import lab as lab
from zuno.doors.cli.options import Home, Json, whole_number

if TYPE_CHECKING:
    from zuno.doors.zuno import Zuno
    from zuno.lab.noedge import NoEdgeView

Workers = Annotated[
    int, typer.Option("--workers", metavar="N", parser=whole_number, help="Processes; changes the time alone.")
]


@lab.command("noedge")
def lab_noedge(
    ctx: typer.Context,
    worlds: Annotated[
        int,
        typer.Option(
            "--worlds", metavar="N", parser=whole_number, help="Half random walks, half shuffled blocks of history."
        ),
    ] = 1_000,
    workers: Workers = 2,
    home: Home = None,
    json: Json = False,
) -> None:
    """Rule over markets in which nothing can be foreseen: how often does the desk claim an edge there?"""

    async def ask(zuno: Zuno) -> NoEdgeView:
        from zuno.doors.cli.progress_bar import ProgressBar
        from zuno.doors.cli.service import stop_on_signals

        checks = zuno.lab().checks
        assert checks is not None
        with ProgressBar("worlds") as bar:
            return await checks.noedge(worlds, workers, bar.tell, stop_on_signals())

    run_command.partial_verdict(ctx.obj.at(home), json, ask)
