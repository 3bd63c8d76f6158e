"""The trading desk on the command line."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zuno.domain.errors import Refused
from zuno.frontends.cli import answering
from zuno.frontends.cli.grammar import Home, Json, group

if TYPE_CHECKING:
    from zuno.app.trading_views import ChartView
    from zuno.app.zuno import Zuno

trade = group("The trading desk: what it measures of BTCUSDT and ETHUSDT, and the picture of it.")

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
        put(place, made.image)
        if not json:
            show(made.image, made.view)
        return made.view.model_copy(update={"file": str(place)})

    answering.answer(ctx.obj.at(home), json, drawn)


def put(place: Path, image: bytes) -> None:
    """Write a picture whole or not at all."""
    beside = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            beside.write_bytes(image)
            beside.replace(place)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise Refused(f"The picture cannot be put at {place} ({error.strerror}); choose another --out.") from error


def show(image: bytes, view: ChartView) -> None:
    from shutil import get_terminal_size

    from zuno.frontends.cli import inline

    size = (view.numbers["widthPx"], view.numbers["heightPx"])
    inline.show(image, size, os.environ, sys.stdout, get_terminal_size().columns)
