"""`zuno lab` commands that hold the trading desk to what it must not do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from zuno.doors.cli import run_command
from zuno.doors.cli.lab import lab as lab
from zuno.doors.cli.options import Home, Json, whole_number

if TYPE_CHECKING:
    from zuno.doors.zuno import Zuno
    from zuno.lab.lookahead import LookaheadView
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
    resume: Annotated[bool, typer.Option("--resume", help="Keep the worlds that a stopped run had done.")] = False,
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
            return await checks.noedge(worlds, workers, bar.tell, stop_on_signals(), resume=resume)

    run_command.partial_verdict(ctx.obj.at(home), json, ask)


@lab.command("lookahead")
def lab_lookahead(
    ctx: typer.Context,
    moments: Annotated[
        int, typer.Option("--moments", metavar="N", parser=whole_number, help="How many moments are compared.")
    ] = 60,
    seeds: Annotated[
        str, typer.Option("--seeds", metavar="LIST", help="Synthetic markets by seed: 1-4 or 1,4,7.")
    ] = "1-4",
    workers: Workers = 2,
    home: Home = None,
    json: Json = False,
) -> None:
    """Rule again with the future cut off, and with another future: does anything differ? And with a shorter past."""

    async def ask(zuno: Zuno) -> LookaheadView:
        from zuno.doors.cli.progress_bar import ProgressBar
        from zuno.doors.cli.service import stop_on_signals

        checks = zuno.lab().checks
        assert checks is not None
        with ProgressBar("moments") as bar:
            return await checks.lookahead(moments, seeds, workers, bar.tell, stop_on_signals())

    run_command.partial_verdict(ctx.obj.at(home), json, ask)
