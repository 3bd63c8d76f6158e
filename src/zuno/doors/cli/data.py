"""`zuno data` commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from zuno.doors.cli import run_command
from zuno.doors.cli.options import Home, Json, group

if TYPE_CHECKING:
    from zuno.doors.zuno import Zuno
    from zuno.kernel.view import View

data = group("Market data of the trading desk: download, collect, check.")


@data.command("status")
def data_status(ctx: typer.Context, home: Home = None, json: Json = False) -> None:
    """List stored series: rows, time range, origin."""
    run_command.answer(ctx.obj.at(home), json, lambda zuno: zuno.data().status())


@data.command("synth")
def data_synth(
    ctx: typer.Context,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Random seed.")] = 1,
    home: Home = None,
    json: Json = False,
) -> None:
    """Generate a SYNTHETIC market from a seed; replaces the previous one."""
    run_command.answer(ctx.obj.at(home), json, lambda zuno: zuno.data().synth(seed))


@data.command("check")
def data_check(
    ctx: typer.Context,
    repair: Annotated[bool, typer.Option("--repair", help="Repair what can be repaired and list the changes.")] = False,
    home: Home = None,
    json: Json = False,
) -> None:
    """Find gaps, conflicts, bad rows, frozen feeds and inconsistent bars; exit 3 if any remain."""
    run_command.verdict(ctx.obj.at(home), json, lambda zuno: zuno.data().check(repair=repair), no=run_command.REFUSED)


@data.command("collect")
def data_collect(
    ctx: typer.Context,
    symbol: Annotated[
        list[str] | None, typer.Option("--symbol", metavar="SYMBOL", help="Only this symbol; repeatable.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Fetch once from every venue; exit 4 if one failed.")] = False,
    home: Home = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON document per line.")] = False,
) -> None:
    """Record live market data from every venue until Ctrl-C or SIGTERM."""
    session = ctx.obj.at(home)
    if once:
        run_command.verdict(session, json, lambda zuno: zuno.collector(symbol or ()).once(), no=run_command.UNAVAILABLE)
    else:
        run_command.answer(session, json, lambda zuno: _run_collector(zuno, symbol or [], json))


@data.command("download")
def data_download(
    ctx: typer.Context,
    symbol: Annotated[str, typer.Argument(metavar="SYMBOL", help="BTCUSDT or ETHUSDT.")],
    since: Annotated[str, typer.Option("--from", metavar="T", help="Start: date, ISO time, or 30d ago.")],
    until: Annotated[str | None, typer.Option("--to", metavar="T", help="End, exclusive (default: now).")] = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Download historical data of a symbol; stored data is not fetched again."""
    run_command.verdict(
        ctx.obj.at(home),
        json,
        lambda zuno: zuno.downloads().download(symbol, since, until, run_command.complain),
        no=run_command.UNAVAILABLE,
    )


@data.command("import")
def data_import(
    ctx: typer.Context,
    paths: Annotated[list[str], typer.Argument(metavar="FILE|DIR…", help="CSV, JSON (gzip, zip), Parquet, feather.")],
    series: Annotated[
        str | None,
        typer.Option("--series", metavar="SERIES", help="What the file holds, as in candles/binance/BTCUSDT/1h."),
    ] = None,
    layout: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="auto, binance, csv or freqtrade.")
    ] = "auto",
    dates: Annotated[
        str, typer.Option("--dates", metavar="ORDER", help="Order of dates: iso, day-first or month-first.")
    ] = "iso",
    yes: Annotated[bool, typer.Option("--yes", help="Take prices far from the symbol's without asking.")] = False,
    home: Home = None,
    json: Json = False,
) -> None:
    """Import market history from files; a second import changes nothing."""
    run_command.import_and_answer(
        ctx.obj.at(home),
        json,
        yes,
        lambda zuno, *asked: zuno.imports().run(paths, series, layout, *asked, dates=dates),
    )


async def _run_collector(zuno: Zuno, symbols: list[str], json: bool) -> View:
    from zuno.doors.cli.service import serve

    return await serve(zuno.collector(symbols).run, lambda view: view.write_line(), json=json)
