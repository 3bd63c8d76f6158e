"""Options that several commands of `zuno lab` have, and the bar while they work."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from zuno.doors.cli.options import whole_number

if TYPE_CHECKING:
    import asyncio

    from zuno.lab.workers import Progress

V = TypeVar("V")

Workers = Annotated[
    int, typer.Option("--workers", metavar="N", parser=whole_number, help="Processes; changes the time alone.")
]
Moments = Annotated[
    int, typer.Option("--moments", metavar="N", parser=whole_number, help="How many moments are looked at.")
]
Seeds = Annotated[str, typer.Option("--seeds", metavar="LIST", help="Synthetic markets by seed: 1-10 or 1,4,7.")]
Resume = Annotated[bool, typer.Option("--resume", help="Keep what a stopped run had done.")]
PoolData = Annotated[
    str, typer.Option("--data", metavar="DIR", help="Folder of a pool's minute rows (CSV, also compressed by gzip).")
]
Capital = Annotated[
    int,
    typer.Option("--capital", metavar="USD", parser=whole_number, help="Of a position, half in each token."),
]
Every = Annotated[
    int, typer.Option("--every", metavar="HOURS", parser=whole_number, help="Hours between two decisions.")
]
Width = Annotated[str, typer.Option("--width", metavar="PERCENT", help="How far a range reaches to each side.")]
Profile = Annotated[
    str, typer.Option("--profile", help="Risk profile of the debate: conservative, balanced, aggressive.")
]
GasPrice = Annotated[str, typer.Option("--gas-gwei", metavar="GWEI", help="Price of a unit of gas.")]
WithModels = Annotated[
    bool, typer.Option("--models", help="Let the configured models argue, within their budgets; else by rules.")
]


async def show_progress(unit: str, work: Callable[[Progress, asyncio.Event], Awaitable[V]]) -> V:
    """Do it with a bar of how far it is; Ctrl-C sets the event."""
    from zuno.doors.cli.progress_bar import ProgressBar
    from zuno.doors.cli.service import stop_on_signals

    with ProgressBar(unit) as bar:
        return await work(bar.tell, stop_on_signals())
