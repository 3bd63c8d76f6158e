"""`zuno trade` commands about the market, runs and the desk, and those of `zuno trade book`."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from zuno.doors.cli import consent, run_command
from zuno.doors.cli.options import Answer, Home, Json, argument, command, flag, group, option
from zuno.kernel.errors import Refused

if TYPE_CHECKING:
    import asyncio

    from zuno.doors.zuno import Zuno
    from zuno.kernel.view import View
    from zuno.trading.service.desk_view import DeskEvent
    from zuno.trading.service.learning_view import TradeCalibrationView
    from zuno.trading.service.profit_view import PerformanceView
    from zuno.trading.service.report import Report
    from zuno.trading.service.run_view import RunView
    from zuno.trading.service.runs import Listen


Pictured = TypeVar("Pictured", "PerformanceView", "TradeCalibrationView")

trade = group("Trading desk for the markets of ZUNO_MARKETS: features, charts, runs, accounts.")

Symbol = Annotated[str, argument("SYMBOL", "Market: BTCUSDT, eth, bybit:SOL/USDT:USDT; one of ZUNO_MARKETS.")]
Mode = Annotated[
    str, option("--mode", "swing|position", "Holding period: swing (hours to days) or position (days to weeks).")
]
AsOf = Annotated[str | None, option("--as-of", "T", "Point in time: 7d, 2025-12-24T12:00, unix seconds or ms.")]

Out = Annotated[str | None, option("--out", "FILE", "PNG path (default: `charts` in the home).")]
Live = Annotated[bool, flag("--live", "Trade with real money; refused until `zuno doctor --live` passes.")]


@command(trade, "features")
def trade_features(zuno: Zuno, symbol: Symbol, mode: Mode = "swing", as_of: AsOf = None) -> Answer:
    """Show a symbol's features: indicators, levels, structure, derivatives, options, anomalies."""
    return zuno.trading().features(symbol, mode, as_of)


@command(trade, "chart")
async def trade_chart(
    zuno: Zuno, symbol: Symbol, mode: Mode = "swing", as_of: AsOf = None, out: Out = None, json: Json = False
) -> View:
    """Draw a chart: price and levels, volume, CVD, open interest, funding."""
    made = await zuno.trading().chart(symbol, mode, as_of)
    place = Path(out) if out is not None else zuno.place().home / "charts" / made.view.file
    put(zuno, place, made.image, "picture", "choose another --out")
    if not json:
        show(made.image, (made.view.numbers["widthPx"], made.view.numbers["heightPx"]))
    return made.view.model_copy(update={"file": str(place)})


RunId = Annotated[str, argument("RUN", "Run id, see `zuno trade runs`.")]
Html = Annotated[str | None, option("--html", "FILE", "HTML report path (default: `reports` in the home).")]


@trade.command("run")
def trade_run(
    ctx: typer.Context,
    symbol: Symbol,
    mode: Mode = "swing",
    as_of: AsOf = None,
    html: Html = None,
    no_chart: Annotated[bool, flag("--no-chart", "No chart; chart patterns are read from bars.")] = False,
    execute: Annotated[bool, flag("--execute", "Act on the ruling: place its orders, on paper unless --live.")] = False,
    live: Live = False,
    account: Annotated[
        str | None, option("--account", "NAME", "Paper account to act in (default: the home's), or demo.")
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
    run: Annotated[str | None, argument("[RUN]", "Run id, see `zuno trade runs`; default: lift a pause.")] = None,
    html: Html = None,
    account: Annotated[
        str | None, option("--account", "NAME", "Account whose pause is lifted (default: the home's).")
    ] = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Open new trades again after `zuno trade pause`; with RUN, resume an interrupted run."""
    if run is None:
        ask = consent.ask_to_type(json=json)
        run_command.answer(ctx.obj.at(home), json, lambda zuno: zuno.account(account).resume(ask))
        return

    async def fetch(zuno: Zuno, listen: Listen, run: str = run) -> Report:
        from zuno.trading.service.report import Reports

        return await Reports(zuno.cycles()).resume(run, listen)

    _run_and_report(ctx.obj.at(home), fetch, html, json)


@command(trade, "why")
def trade_why(zuno: Zuno, run: RunId) -> Answer:
    """Show a run from the journal: agents, model attempts, rules that fired. No model calls."""
    return zuno.cycles().why(run)


@command(trade, "runs")
def trade_runs(zuno: Zuno) -> Answer:
    """List runs, newest first: regime, decision, final ruling, veto, status."""
    return zuno.cycles().runs()


@trade.command("start")
def trade_start(
    ctx: typer.Context,
    symbols: Annotated[str, option("--symbols", "LIST", "Symbols, separated by commas (default: ZUNO_MARKETS).")] = "",
    mode: Mode = "swing",
    live: Live = False,
    account: Annotated[str | None, option("--account", "NAME", "Paper account (default: the home's), or demo.")] = None,
    speed: Annotated[str | None, option("--speed", "max", "Run through recorded time as fast as it goes.")] = None,
    since: Annotated[str | None, option("--from", "T", "Start of the recorded time: 24h, 30d or a moment.")] = None,
    until: Annotated[str | None, option("--until", "T", "Its end (default: the end of the recording).")] = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Run the desk by itself, on paper unless --live: cycles at the mode's cadence beside a protective watch."""

    async def run(zuno: Zuno) -> View:
        from zuno.doors.cli.service import serve

        desk = zuno.trade_desk()

        async def start(hear: Callable[[DeskEvent], None], stop: asyncio.Event) -> View:
            tell = (lambda event: None) if json else hear
            confirm, span = consent.ask_to_type(json=json), {"since": since, "until": until}
            wanted = [part for part in symbols.split(",") if part.strip()]
            view = await desk.start(
                tell, stop, symbols=wanted, mode=mode, account=account, speed=speed, live=live, confirm=confirm, **span
            )
            cut_short.append(speed is not None and stop.is_set())
            return view

        return await serve(start, json=json, beside=(zuno.upgrade_journal, zuno.serve_metrics, zuno.serve_signals))

    cut_short: list[bool] = []
    run_command.answer(ctx.obj.at(home), json, run)
    if any(cut_short):
        raise run_command.build_stopped()


@command(trade, "stop")
def trade_stop(
    zuno: Zuno,
    account: Annotated[
        str | None, option("--account", "NAME", "Paper account (default: the home's), or live or demo.")
    ] = None,
) -> Answer:
    """Stop the running desk. Waiting entries are cancelled; open positions keep their stops."""
    return zuno.trade_desk().stop(account)


def _run_and_report(
    session: run_command.Session,
    question: Callable[[Zuno, Listen], Awaitable[Report]],
    html: str | None,
    json: bool,
    *,
    asks: bool = False,
) -> None:
    """Ask, keep page and picture, print and show them. `asks`: a person is asked, so no progress is drawn."""
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
    places = {"report": str(page)}
    for name, image, ending in (("chart", made.image, ".png"), ("trade_chart", made.trade, "-trade.png")):
        if image is not None:
            places[name] = str(folder / f"{run}{ending}")
            put(zuno, Path(places[name]), image, "picture", again)
    put(zuno, page, made.page.encode(), "page", again)
    return made.view.model_copy(update={"chart": None, "trade_chart": None, **places})


def put(zuno: Zuno, place: Path, content: bytes, what: str, advice: str) -> None:
    try:
        zuno.write_file(place, content)
    except OSError as error:
        raise Refused(f"The {what} cannot be written to {place} ({error.strerror}); {advice}.") from error


def save_picture(zuno: Zuno, view: Pictured, image: bytes | None, kind: str, out: str | None, json: bool) -> Pictured:
    """Write the picture to `out` or to `charts` in the home, and show it if the terminal can."""
    if image is None:
        return view
    name = view.account.replace(":", "-").replace("/", "-").replace(" ", "-")
    place = Path(out) if out is not None else zuno.place().home / "charts" / f"{kind}-{name}.png"
    put(zuno, place, image, "picture", "choose another --out")
    if not json:
        from zuno.trading.model.chart import HEIGHT, WIDTH

        show(image, (WIDTH, HEIGHT))
    return view.model_copy(update={"file": str(place)})


def show(image: bytes, size: tuple[int, int]) -> None:
    from zuno.doors.cli import terminal_image

    terminal_image.show(image, size, os.environ, sys.stdout, get_terminal_size().columns)


book = group("Entries by hand in the paper account: positions, open orders, LP exposure. Nothing is sent.")


@command(book, "add")
async def book_add(
    zuno: Zuno,
    symbol: Symbol,
    side: Annotated[str, argument("long|short", "Side.")],
    margin: Annotated[str, option("--margin", "N", "Margin in the exchange's currency.")],
    leverage: Annotated[str, option("--leverage", "N", "Leverage, 1 to 3.")] = "1",
    entry: Annotated[
        str | None, option("--entry", "PRICE", "Price in the exchange's currency (default: mark price).")
    ] = None,
    exchange: Annotated[str, option("--exchange", "VENUE", "Where it is held (default: the market's own).")] = "",
    stop: Annotated[str | None, option("--stop", "PRICE", "Stop loss.")] = None,
    target: Annotated[str | None, option("--target", "PRICE", "Take profit.")] = None,
    hold: Annotated[str | None, option("--hold", "T", "Longest holding time: 12h, 5d or 6w.")] = None,
    as_of: AsOf = None,
    pending: Annotated[bool, flag("--pending", "Open limit order at --entry.")] = False,
) -> View:
    """Enter a position or an open order; shows the account's positions and orders."""
    from zuno.trading.service.manual_entries import OpeningEntry

    levels = {"entry": entry, "stop": stop, "target": target, "hold": hold}
    opening = OpeningEntry.parse(
        zuno.markets, symbol, side, margin, leverage=leverage, exchange=exchange, pending=pending, **levels
    )
    return await zuno.account().enter(opening, as_of)


@command(book, "close")
async def book_close(
    zuno: Zuno,
    which: Annotated[str, argument("ID|SYMBOL", "Position or order id, or a symbol for all.")],
    at: Annotated[
        str | None, option("--at", "PRICE", "Price in the exchange's currency (default: mark price).")
    ] = None,
    as_of: AsOf = None,
) -> View:
    """Close positions that were entered by hand, net of fees, and cancel such orders."""
    from zuno.trading.service.manual_entries import ClosingEntry

    return await zuno.account().enter(ClosingEntry.parse(which, at), as_of)


@command(book, "lp")
async def book_lp(
    zuno: Zuno,
    symbol: Symbol,
    quantity: Annotated[str, argument("QUANTITY", "Amount of the base currency; 0 clears it.")],
    as_of: AsOf = None,
) -> View:
    """Enter the base currency held in LP positions; it counts as exposure in `zuno trade status`."""
    from zuno.trading.service.manual_entries import LiquidityAmount

    return await zuno.account().enter(LiquidityAmount.parse(zuno.markets, symbol, quantity), as_of)
