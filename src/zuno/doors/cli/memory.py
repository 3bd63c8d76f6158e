"""`zuno memory` commands."""

from __future__ import annotations

from typing import Annotated

import typer

from zuno.doors.cli import run_command
from zuno.doors.cli.options import Home, Json, group, whole_number

memory = group("Memory of the trading desk: post-mortems of closed trades and lessons drawn from them.")

MemoryId = Annotated[str, typer.Argument(metavar="ID", help="Memory id, see `zuno memory list`.")]


@memory.command("list")
def memory_list(
    ctx: typer.Context,
    symbol: Annotated[str | None, typer.Option("--symbol", metavar="SYMBOL", help="BTCUSDT or ETHUSDT.")] = None,
    lines: Annotated[
        int, typer.Option("--lines", "-n", metavar="N", parser=whole_number, help="Show the newest N.")
    ] = 50,
    home: Home = None,
    json: Json = False,
) -> None:
    """List post-mortems of closed trades, newest first."""
    run_command.answer(ctx.obj.at(home), json, lambda zuno: zuno.memory().list(lines, symbol))


@memory.command("show")
def memory_show(ctx: typer.Context, memory_id: MemoryId, home: Home = None, json: Json = False) -> None:
    """Show a post-mortem: setup, outcome, future constraint, realised path."""
    run_command.answer(ctx.obj.at(home), json, lambda zuno: zuno.memory().show(memory_id))


@memory.command("search")
def memory_search(
    ctx: typer.Context,
    query: Annotated[str, typer.Argument(metavar="QUERY", help='Words, such as "BTC long stopped out".')],
    lines: Annotated[
        int, typer.Option("--lines", "-n", metavar="N", parser=whole_number, help="Show the best N, at most 20.")
    ] = 5,
    home: Home = None,
    json: Json = False,
) -> None:
    """Find post-mortems by words of symbol, side, exit, outcome or setup."""
    run_command.answer(ctx.obj.at(home), json, lambda zuno: zuno.memory().search(query, lines))


@memory.command("lessons")
def memory_lessons(ctx: typer.Context, home: Home = None, json: Json = False) -> None:
    """List lessons with their cases and state: active, contradicted, expired or withdrawn."""
    run_command.answer(ctx.obj.at(home), json, lambda zuno: zuno.memory().lessons())


@memory.command("forget")
def memory_forget(ctx: typer.Context, memory_id: MemoryId, home: Home = None, json: Json = False) -> None:
    """Forget a post-mortem. The journal and the agents' calibration keep the trade; it is never recalled again."""
    run_command.answer(ctx.obj.at(home), json, lambda zuno: zuno.memory().forget(memory_id))
