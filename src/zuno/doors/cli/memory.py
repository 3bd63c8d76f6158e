"""`zuno memory` commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from zuno.doors.cli.options import command, group, whole_number

if TYPE_CHECKING:
    from zuno.doors.cli.run_command import Answer
    from zuno.doors.zuno import Zuno

memory = group("Memory of the trading desk: post-mortems of closed trades and lessons drawn from them.")

MemoryId = Annotated[str, typer.Argument(metavar="ID", help="Memory id, see `zuno memory list`.")]


@command(memory, "list")
def memory_list(
    zuno: Zuno,
    /,
    symbol: Annotated[str | None, typer.Option("--symbol", metavar="SYMBOL", help="BTCUSDT or ETHUSDT.")] = None,
    lines: Annotated[
        int, typer.Option("--lines", "-n", metavar="N", parser=whole_number, help="Show the newest N.")
    ] = 50,
) -> Answer:
    """List post-mortems of closed trades, newest first."""
    return zuno.memory().list(lines, symbol)


@command(memory, "show")
def memory_show(zuno: Zuno, /, memory_id: MemoryId) -> Answer:
    """Show a post-mortem: setup, outcome, future constraint, realised path."""
    return zuno.memory().show(memory_id)


@command(memory, "search")
def memory_search(
    zuno: Zuno,
    /,
    query: Annotated[str, typer.Argument(metavar="QUERY", help='Words, such as "BTC long stopped out".')],
    lines: Annotated[
        int, typer.Option("--lines", "-n", metavar="N", parser=whole_number, help="Show the best N, at most 20.")
    ] = 5,
) -> Answer:
    """Find post-mortems by words of symbol, side, exit, outcome or setup."""
    return zuno.memory().search(query, lines)


@command(memory, "lessons")
def memory_lessons(zuno: Zuno, /) -> Answer:
    """List lessons with their cases and state: active, contradicted, expired or withdrawn."""
    return zuno.memory().lessons()


@command(memory, "forget")
def memory_forget(zuno: Zuno, /, memory_id: MemoryId) -> Answer:
    """Forget a post-mortem. The journal and the agents' calibration keep the trade; it is never recalled again."""
    return zuno.memory().forget(memory_id)
