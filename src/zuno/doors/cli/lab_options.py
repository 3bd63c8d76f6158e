"""Options that several commands of `zuno lab` have, and the bar while they work."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from zuno.doors.cli import run_command
from zuno.doors.cli.options import whole_number

if TYPE_CHECKING:
    import asyncio

    from zuno.lab.workers import Progress

V = TypeVar("V")

Workers = Annotated[
    int, typer.Option("--workers", metavar="N", parser=whole_number, help="Worker processes; results do not change.")
]
Moments = Annotated[int, typer.Option("--moments", metavar="N", parser=whole_number, help="Number of sampled moments.")]
Seeds = Annotated[str, typer.Option("--seeds", metavar="LIST", help="Synthetic markets by seed: 1-10 or 1,4,7.")]
Resume = Annotated[bool, typer.Option("--resume", help="Resume an interrupted run.")]
PoolData = Annotated[
    str, typer.Option("--data", metavar="DIR", help="Folder of a pool's minute rows (CSV, also compressed by gzip).")
]
Capital = Annotated[
    int,
    typer.Option("--capital", metavar="USD", parser=whole_number, help="Starting capital, half in each token."),
]
Every = Annotated[
    int, typer.Option("--every", metavar="HOURS", parser=whole_number, help="Hours between two decisions.")
]
Width = Annotated[
    str, typer.Option("--width", metavar="PERCENT", help="Half-width of a range, in percent of the price.")
]
Profile = Annotated[
    str, typer.Option("--profile", help="Risk profile of the debate: conservative, balanced, aggressive.")
]
GasPrice = Annotated[str, typer.Option("--gas-gwei", metavar="GWEI", help="Gas price, in gwei.")]
WithModels = Annotated[
    bool, typer.Option("--models", help="Let the configured models argue, within their budgets; else by rules.")
]


async def show_progress(unit: str, work: Callable[[Progress, asyncio.Event], Awaitable[V]]) -> V:
    """Do it with a bar of how far it is; Ctrl-C sets the event."""
    from zuno.doors.cli.progress_bar import ProgressBar
    from zuno.doors.cli.service import stop_on_signals
    from zuno.lab.workers import StoppedEarly

    with ProgressBar(unit) as bar:
        try:
            return await work(bar.tell, stop_on_signals())
        except StoppedEarly as stopped:
            run_command.complain(f"zuno: {stopped}")
            raise KeyboardInterrupt from stopped
