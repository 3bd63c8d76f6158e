"""`zuno data` commands."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from zuno.doors.cli import run_command
from zuno.doors.cli.options import Answer, Home, Json, argument, command, flag, group, option

if TYPE_CHECKING:
    from zuno.doors.zuno import Zuno

data = group("Market data of the trading desk: download, collect, check.")


@command(data, "status")
def data_status(zuno: Zuno) -> Answer:
    """List stored series: rows, time range, origin."""
    return zuno.data().status()


@command(data, "synth")
def data_synth(
    zuno: Zuno,
    seed: Annotated[int, option("--seed", "N", "Random seed.")] = 1,
    markets: Annotated[
        str | None, option("--markets", "LIST", "Markets, comma-separated (default: ZUNO_MARKETS).")
    ] = None,
) -> Answer:
    """Generate a SYNTHETIC market from a seed; replaces the previous one."""
    return zuno.data().synth(seed, markets)


@command(data, "check", by=partial(run_command.verdict, no=run_command.REFUSED))
def data_check(
    zuno: Zuno, repair: Annotated[bool, flag("--repair", "Repair what can be repaired and list the changes.")] = False
) -> Answer:
    """Find gaps, conflicts, bad rows, frozen feeds and inconsistent bars; exit 3 if any remain."""
    return zuno.data().check(repair=repair)


@data.command("collect")
def data_collect(
    ctx: typer.Context,
    symbol: Annotated[list[str] | None, option("--symbol", "SYMBOL", "Only this symbol; repeatable.")] = None,
    once: Annotated[bool, flag("--once", "Fetch once from every venue; exit 4 if one failed.")] = False,
    home: Home = None,
    json: Annotated[bool, flag("--json", "One JSON document per line.")] = False,
) -> None:
    """Record live market data from every venue until Ctrl-C or SIGTERM."""
    session = ctx.obj.at(home)
    if once:
        run_command.verdict(session, json, lambda zuno: zuno.collector(symbol or ()).once(), no=run_command.UNAVAILABLE)
    else:
        from zuno.doors.cli.service import serve

        run_command.answer(session, json, lambda zuno: serve(zuno.collector(symbol or ()).run, json=json))


@command(data, "download", by=partial(run_command.verdict, no=run_command.UNAVAILABLE))
def data_download(
    zuno: Zuno,
    symbol: Annotated[str, argument("SYMBOL", "Market, one of ZUNO_MARKETS: BTCUSDT, eth.")],
    since: Annotated[str, option("--from", "T", "Start: date, ISO time, or 30d ago.")],
    until: Annotated[str | None, option("--to", "T", "End, exclusive (default: now).")] = None,
) -> Answer:
    """Download historical data of a symbol; stored data is not fetched again."""
    return zuno.downloads().download(symbol, since, until, run_command.complain)


@data.command("import")
def data_import(
    ctx: typer.Context,
    paths: Annotated[list[str], argument("FILE|DIR…", "CSV, JSON (gzip, zip), Parquet, feather.")],
    series: Annotated[
        str | None, option("--series", "SERIES", "What the file holds, as in candles/binance/BTCUSDT/1h.")
    ] = None,
    layout: Annotated[str, option("--format", "FORMAT", "auto, binance, csv or freqtrade.")] = "auto",
    dates: Annotated[str, option("--dates", "ORDER", "Order of dates: iso, day-first or month-first.")] = "iso",
    yes: Annotated[bool, flag("--yes", "Take prices far from the symbol's without asking.")] = False,
    home: Home = None,
    json: Json = False,
) -> None:
    """Import market history from files; a second import changes nothing."""
    run_command.import_and_answer(
        ctx.obj.at(home), json, yes, lambda zuno, *asked: zuno.imports().run(paths, series, layout, *asked, dates=dates)
    )
