"""The trading desk on the command line."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zuno.domain.errors import Refused
from zuno.frontends.cli import answering
from zuno.frontends.cli.grammar import Home, Json, group

if TYPE_CHECKING:
    from zuno.app.cycle import Listen
    from zuno.app.cycle_views import CycleWhyView, RunsView, RunView
    from zuno.app.report import Report, Reports
    from zuno.app.trading_views import ChartView
    from zuno.app.zuno import Zuno

trade = group("The trading desk: what it measures of BTCUSDT and ETHUSDT, the picture of it, and what it rules.")

Symbol = Annotated[str, typer.Argument(metavar="SYMBOL", help="BTCUSDT or ETHUSDT.")]
Mode = Annotated[str, typer.Option("--mode", metavar="swing|position", help="Hours to days, or days to weeks.")]
AsOf = Annotated[
    str | None,
    typer.Option("--as-of", metavar="T", help="As it could be known then: 7d, 2025-12-24T12:00, unix seconds or ms."),
]


@trade.command("features")
def trade_features(
    ctx: typer.Context, symbol: Symbol, mode: Mode = "swing", as_of: AsOf = None, home: Home = None, json: Json = False
) -> None:
    """Measure a symbol: indicators, levels, structure, derivatives, options, anomalies, shocks, with their ages."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.trading().features(symbol, mode, as_of))


@trade.command("chart")
def trade_chart(
    ctx: typer.Context,
    symbol: Symbol,
    mode: Mode = "swing",
    as_of: AsOf = None,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="FILE", help="Where to put the PNG; without it, `charts` in the home."),
    ] = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Draw a symbol: price with its levels, volume, CVD, open interest and funding; shown here if the terminal can."""

    async def drawn(zuno: Zuno) -> ChartView:
        made = await zuno.trading().chart(symbol, mode, as_of)
        place = Path(out) if out is not None else zuno.place().home / "charts" / made.view.file
        put(place, made.image, "picture", "choose another --out")
        if not json:
            show(made.image, (made.view.numbers["widthPx"], made.view.numbers["heightPx"]))
        return made.view.model_copy(update={"file": str(place)})

    answering.answer(ctx.obj.at(home), json, drawn)


RunId = Annotated[str, typer.Argument(metavar="RUN", help="run_ and its digits, as `zuno trade runs` lists them.")]
Html = Annotated[
    str | None,
    typer.Option("--html", metavar="FILE", help="Where to put the page; without it, `reports` in the home."),
]


@trade.command("run")
def trade_run(
    ctx: typer.Context,
    symbol: Symbol,
    mode: Mode = "swing",
    as_of: AsOf = None,
    html: Html = None,
    no_chart: Annotated[bool, typer.Option("--no-chart", help="Draw nothing: geometry is read from bars.")] = False,
    home: Home = None,
    json: Json = False,
) -> None:
    """Let the desk argue about a symbol and rule; nothing is sent. Shows who waits, who speaks, and what it cost."""

    def asked(reports: Reports, listen: Listen) -> Awaitable[Report]:
        return reports.run(symbol, mode, as_of, listen, chart=not no_chart)

    _ruled(ctx.obj.at(home), asked, html, json)


@trade.command("resume")
def trade_resume(ctx: typer.Context, run: RunId, html: Html = None, home: Home = None, json: Json = False) -> None:
    """Take up a run that was broken off; what models said before is not asked again. One that ended is shown again."""

    _ruled(ctx.obj.at(home), lambda reports, listen: reports.resume(run, listen), html, json)


@trade.command("why")
def trade_why(ctx: typer.Context, run: RunId, home: Home = None, json: Json = False) -> None:
    """Show a run's argument from the journal: every voice, every attempt, every rule that fired. No model is asked."""

    async def asked(zuno: Zuno) -> CycleWhyView:
        from zuno.app.report import Reports

        return await Reports(zuno.cycles()).why(run)

    answering.answer(ctx.obj.at(home), json, asked)


@trade.command("runs")
def trade_runs(ctx: typer.Context, home: Home = None, json: Json = False) -> None:
    """List the runs, newest first: regime, decision, ruling, veto, and whether they ended."""

    async def asked(zuno: Zuno) -> RunsView:
        from zuno.app.report import Reports

        return await Reports(zuno.cycles()).runs()

    answering.answer(ctx.obj.at(home), json, asked)


def _ruled(
    session: answering.Session,
    question: Callable[[Reports, Listen], Awaitable[Report]],
    html: str | None,
    json: bool,
) -> None:
    """Ask, keep the page and the picture, print; the picture stands below, if the terminal can show it."""
    made: list[Report] = []

    async def asked(zuno: Zuno, listen: Listen) -> RunView:
        from zuno.app.report import Reports

        made.append(await question(Reports(zuno.cycles()), listen))
        return kept(zuno, made[0], html)

    answering.watch_and_answer(session, json, asked)
    if not json and (image := made[0].image) is not None:
        from zuno.domain.chart import HEIGHT, WIDTH

        show(image, (WIDTH, HEIGHT))


def kept(zuno: Zuno, made: Report, html: str | None) -> RunView:
    """A run as it is shown, with its page and its picture where they can be found."""
    run = made.view.run_id
    folder = zuno.place().home / "reports"
    again = f"the run is on record, and `zuno trade resume {run} --html FILE` writes it elsewhere"
    page = Path(html) if html is not None else folder / f"{run}.html"
    picture: Path | None = None
    if made.image is not None:
        picture = folder / f"{run}.png"
        put(picture, made.image, "picture", again)
    put(page, made.page.encode(), "page", again)
    return made.view.model_copy(update={"report": str(page), "chart": None if picture is None else str(picture)})


def put(place: Path, content: bytes, what: str, advice: str) -> None:
    """Write a file whole or not at all."""
    beside = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            beside.write_bytes(content)
            beside.replace(place)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise Refused(f"The {what} cannot be put at {place} ({error.strerror}); {advice}.") from error


def show(image: bytes, size: tuple[int, int]) -> None:
    from shutil import get_terminal_size

    from zuno.frontends.cli import inline

    inline.show(image, size, os.environ, sys.stdout, get_terminal_size().columns)
