"""`zuno trade` commands."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zuno.doors.cli import consent, run_command
from zuno.doors.cli.options import Home, Json, group
from zuno.kernel.errors import Refused

if TYPE_CHECKING:
    import asyncio

    from zuno.doors.zuno import Zuno
    from zuno.kernel.view import View
    from zuno.trading.service.features_view import ChartView
    from zuno.trading.service.report import Report
    from zuno.trading.service.run_view import RunView
    from zuno.trading.service.runs import Listen
    from zuno.trading.service.runs_view import CycleWhyView
    from zuno.trading.service.trade_desk import DeskEvent

trade = group("Trading desk for BTCUSDT and ETHUSDT: features, charts, runs, paper book.")

Symbol = Annotated[str, typer.Argument(metavar="SYMBOL", help="BTCUSDT or ETHUSDT.")]
Mode = Annotated[
    str,
    typer.Option(
        "--mode", metavar="swing|position", help="Holding period: swing (hours to days) or position (days to weeks)."
    ),
]
AsOf = Annotated[
    str | None, typer.Option("--as-of", metavar="T", help="Point in time: 7d, 2025-12-24T12:00, unix seconds or ms.")
]

Live = Annotated[bool, typer.Option("--live", help="Trade with real money; refused until `zuno doctor --live` passes.")]


@trade.command("features")
def trade_features(
    ctx: typer.Context, symbol: Symbol, mode: Mode = "swing", as_of: AsOf = None, home: Home = None, json: Json = False
) -> None:
    """Show a symbol's features: indicators, levels, structure, derivatives, options, anomalies."""
    run_command.answer(ctx.obj.at(home), json, lambda zuno: zuno.trading().features(symbol, mode, as_of))


@trade.command("chart")
def trade_chart(
    ctx: typer.Context,
    symbol: Symbol,
    mode: Mode = "swing",
    as_of: AsOf = None,
    out: Annotated[
        str | None, typer.Option("--out", metavar="FILE", help="PNG path (default: `charts` in the home).")
    ] = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Draw a chart: price and levels, volume, CVD, open interest, funding."""

    async def draw(zuno: Zuno) -> ChartView:
        made = await zuno.trading().chart(symbol, mode, as_of)
        place = Path(out) if out is not None else zuno.place().home / "charts" / made.view.file
        put(zuno, place, made.image, "picture", "choose another --out")
        if not json:
            show(made.image, (made.view.numbers["widthPx"], made.view.numbers["heightPx"]))
        return made.view.model_copy(update={"file": str(place)})

    run_command.answer(ctx.obj.at(home), json, draw)


RunId = Annotated[str, typer.Argument(metavar="RUN", help="Run id, see `zuno trade runs`.")]
Html = Annotated[
    str | None, typer.Option("--html", metavar="FILE", help="HTML report path (default: `reports` in the home).")
]


@trade.command("run")
def trade_run(
    ctx: typer.Context,
    symbol: Symbol,
    mode: Mode = "swing",
    as_of: AsOf = None,
    html: Html = None,
    no_chart: Annotated[bool, typer.Option("--no-chart", help="No chart; chart patterns are read from bars.")] = False,
    execute: Annotated[
        bool, typer.Option("--execute", help="Act on the ruling: place its orders, on paper unless --live.")
    ] = False,
    live: Live = False,
    account: Annotated[
        str | None,
        typer.Option("--account", metavar="NAME", help="Paper account to act in (default: the home's), or demo."),
    ] = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Run the desk on a symbol and show its decision. Without --execute no order is sent."""
    if (account is not None or live) and not execute:
        raise typer.BadParameter("--account and --live belong to --execute.")
    if live and as_of is not None:
        raise typer.BadParameter("--live acts now, and --as-of is another moment.")

    async def fetch(zuno: Zuno, listen: Listen) -> Report:
        from zuno.trading.service.report import Reports

        if not execute:
            return await Reports(zuno.cycles()).run(symbol, mode, as_of, listen, chart=not no_chart)
        ask = consent.ask_to_type(json=json)
        async with zuno.trade_desk().open_run(symbol, account, ask, live=live) as permitted:
            cycles = zuno.cycles() if permitted is None else permitted.cycles
            chosen, notes = (account, ()) if permitted is None else (permitted.account, permitted.notes)
            return await Reports(cycles).run(
                symbol, mode, as_of, listen, chart=not no_chart, execute=True, account=chosen, notes=notes
            )

    _run_and_report(ctx.obj.at(home), fetch, html, json, asks=live)


@trade.command("resume")
def trade_resume(
    ctx: typer.Context,
    run: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="Run id, see `zuno trade runs`; default: lift a pause.")
    ] = None,
    html: Html = None,
    account: Annotated[
        str | None,
        typer.Option("--account", metavar="NAME", help="Account whose pause is lifted (default: the home's)."),
    ] = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Open new trades again after `zuno trade pause`; with RUN, resume an interrupted run."""
    if run is None:
        ask = consent.ask_to_type(json=json)
        run_command.answer(ctx.obj.at(home), json, lambda zuno: zuno.account(account).resume(ask))
        return
    named = run

    async def fetch(zuno: Zuno, listen: Listen) -> Report:
        from zuno.trading.service.report import Reports

        return await Reports(zuno.cycles()).resume(named, listen)

    _run_and_report(ctx.obj.at(home), fetch, html, json)


@trade.command("why")
def trade_why(ctx: typer.Context, run: RunId, home: Home = None, json: Json = False) -> None:
    """Show a run from the journal: agents, model attempts, rules that fired. No model calls."""

    async def fetch(zuno: Zuno) -> CycleWhyView:
        from zuno.trading.service.report import Reports

        return await Reports(zuno.cycles()).why(run)

    run_command.answer(ctx.obj.at(home), json, fetch)


@trade.command("runs")
def trade_runs(ctx: typer.Context, home: Home = None, json: Json = False) -> None:
    """List runs, newest first: regime, decision, final ruling, veto, status."""
    run_command.answer(ctx.obj.at(home), json, lambda zuno: zuno.cycles().runs())


@trade.command("start")
def trade_start(
    ctx: typer.Context,
    symbols: Annotated[
        str, typer.Option("--symbols", metavar="LIST", help="Symbols, separated by commas (default: both).")
    ] = "",
    mode: Mode = "swing",
    live: Live = False,
    account: Annotated[
        str | None, typer.Option("--account", metavar="NAME", help="Paper account (default: the home's), or demo.")
    ] = None,
    speed: Annotated[
        str | None, typer.Option("--speed", metavar="max", help="Run through recorded time as fast as it goes.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--from", metavar="T", help="Where recorded time begins: 24h, 30d or a moment.")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="T", help="Where it ends (default: the end of the recording).")
    ] = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Run the desk by itself, on paper unless --live: cycles at the mode's cadence beside a protective watch."""

    async def run(zuno: Zuno) -> View:
        from zuno.doors.cli.desk_screens import desk_event_line
        from zuno.doors.cli.service import serve

        desk = zuno.trade_desk()

        async def start(hear: Callable[[DeskEvent], None], stop: asyncio.Event) -> View:
            view = await desk.start(
                (lambda event: None) if json else hear,
                stop,
                symbols=[part for part in symbols.split(",") if part.strip()],
                mode=mode,
                account=account,
                speed=speed,
                since=since,
                until=until,
                live=live,
                confirm=consent.ask_to_type(json=json),
            )
            cut_short.append(speed is not None and stop.is_set())
            return view

        return await serve(start, desk_event_line, json=json, beside=zuno.upgrade_journal)

    cut_short: list[bool] = []
    run_command.answer(ctx.obj.at(home), json, run)
    if any(cut_short):
        raise run_command.build_stopped()


@trade.command("stop")
def trade_stop(
    ctx: typer.Context,
    account: Annotated[
        str | None,
        typer.Option("--account", metavar="NAME", help="Paper account (default: the home's), or live or demo."),
    ] = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Ask the running desk to end. Waiting entries are cancelled; open positions keep their stops."""
    run_command.answer(ctx.obj.at(home), json, lambda zuno: zuno.trade_desk().stop(account))


def _run_and_report(
    session: run_command.Session,
    question: Callable[[Zuno, Listen], Awaitable[Report]],
    html: str | None,
    json: bool,
    *,
    asks: bool = False,
) -> None:
    """Ask, keep the page and the picture, print; the picture stands below, if the terminal can show it. `asks`: a
    person is asked on the way, and no progress is drawn over it."""
    made: list[Report] = []

    async def fetch(zuno: Zuno, listen: Listen) -> RunView:
        made.append(await question(zuno, listen))
        return save_report(zuno, made[0], html)

    if asks:
        run_command.answer(session, json, lambda zuno: fetch(zuno, lambda event: None))
    else:
        run_command.watch_and_answer(session, json, fetch)
    if not json and (image := made[0].trade or made[0].image) is not None:
        from zuno.trading.model.chart import HEIGHT, WIDTH

        show(image, (WIDTH, HEIGHT))


def save_report(zuno: Zuno, made: Report, html: str | None) -> RunView:
    """A run as it is shown, with its page and its picture where they can be found."""
    run = made.view.run_id
    folder = zuno.place().home / "reports"
    again = f"the run is on record, and `zuno trade resume {run} --html FILE` writes it elsewhere"
    page = Path(html) if html is not None else folder / f"{run}.html"
    picture: Path | None = None
    if made.image is not None:
        picture = folder / f"{run}.png"
        put(zuno, picture, made.image, "picture", again)
    drawn: Path | None = None
    if made.trade is not None:
        drawn = folder / f"{run}-trade.png"
        put(zuno, drawn, made.trade, "picture", again)
    put(zuno, page, made.page.encode(), "page", again)
    return made.view.model_copy(
        update={
            "report": str(page),
            "chart": None if picture is None else str(picture),
            "trade_chart": None if drawn is None else str(drawn),
        }
    )


def put(zuno: Zuno, place: Path, content: bytes, what: str, advice: str) -> None:
    try:
        zuno.write_file(place, content)
    except OSError as error:
        raise Refused(f"The {what} cannot be written to {place} ({error.strerror}); {advice}.") from error


def show(image: bytes, size: tuple[int, int]) -> None:
    from shutil import get_terminal_size

    from zuno.doors.cli import terminal_image

    terminal_image.show(image, size, os.environ, sys.stdout, get_terminal_size().columns)
