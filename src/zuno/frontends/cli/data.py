"""The market's past on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from zuno.frontends.cli import answering
from zuno.frontends.cli.grammar import Home, Json, group

if TYPE_CHECKING:
    from zuno.app.views import View
    from zuno.app.zuno import Zuno

data = group("The trading desk's market: what is kept of its past, and what is wrong with it.")


@data.command("status")
def data_status(ctx: typer.Context, home: Home = None, json: Json = False) -> None:
    """List every series that is kept: how many rows, from when to when, and whose past it is."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.data().status())


@data.command("synth")
def data_synth(
    ctx: typer.Context,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Equal seeds give equal markets.")] = 1,
    home: Home = None,
    json: Json = False,
) -> None:
    """Invent a whole market from a seed, SYNTHETIC wherever it is shown; the one invented before is forgotten."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.data().synth(seed))


@data.command("check")
def data_check(
    ctx: typer.Context,
    repair: Annotated[bool, typer.Option("--repair", help="Mend what a rule can mend, and say what was done.")] = False,
    home: Home = None,
    json: Json = False,
) -> None:
    """Find gaps, conflicts, bad rows, frozen stretches and bars that do not add up; exit 3 while any remain."""
    answering.verdict(ctx.obj.at(home), json, lambda zuno: zuno.data().check(repair=repair), no=answering.REFUSED)


@data.command("collect")
def data_collect(
    ctx: typer.Context,
    symbol: Annotated[
        list[str] | None, typer.Option("--symbol", metavar="SYMBOL", help="Only this one; may be given again.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Ask everybody once and end; exit 4 names who failed.")] = False,
    home: Home = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON document a line.")] = False,
) -> None:
    """Keep the market as it comes, from every venue, until it is asked to end (Ctrl-C, SIGTERM)."""
    session = ctx.obj.at(home)
    if once:
        answering.verdict(session, json, lambda zuno: zuno.collector(symbol or ()).once(), no=answering.UNAVAILABLE)
    else:
        answering.answer(session, json, lambda zuno: _collected(zuno, symbol or [], json))


@data.command("download")
def data_download(
    ctx: typer.Context,
    symbol: Annotated[str, typer.Argument(metavar="SYMBOL", help="BTCUSDT or ETHUSDT.")],
    since: Annotated[str, typer.Option("--from", metavar="T", help="A date, an ISO time, or 30d for so long ago.")],
    until: Annotated[str | None, typer.Option("--to", metavar="T", help="The end, which is outside; else now.")] = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Fetch the past that venues keep of a symbol; what is here already is not fetched again."""
    answering.verdict(
        ctx.obj.at(home),
        json,
        lambda zuno: zuno.downloads().download(symbol, since, until, answering.complain),
        no=answering.UNAVAILABLE,
    )


async def _collected(zuno: Zuno, symbols: list[str], json: bool) -> View:
    from zuno.frontends.cli.data_screens import collect_line
    from zuno.frontends.cli.service import serve

    return await serve(zuno.collector(symbols).run, collect_line, json=json)
