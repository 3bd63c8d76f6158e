"""The trading desk on the command line."""

from __future__ import annotations

from typing import Annotated

import typer

from zuno.frontends.cli import answering
from zuno.frontends.cli.grammar import Home, Json, group

trade = group("The trading desk: what it measures of BTCUSDT and ETHUSDT, and the picture of it.")

Symbol = Annotated[str, typer.Argument(metavar="SYMBOL", help="BTCUSDT or ETHUSDT.")]
Mode = Annotated[str, typer.Option("--mode", metavar="swing|position", help="Hours to days, or days to weeks.")]
AsOf = Annotated[
    str | None,
    typer.Option("--as-of", metavar="T", help="As it could be known then: 7d, 36h, 2025-12-24T12:00, unix seconds."),
]


@trade.command("features")
def trade_features(
    ctx: typer.Context, symbol: Symbol, mode: Mode = "swing", as_of: AsOf = None, home: Home = None, json: Json = False
) -> None:
    """Measure a symbol: indicators, levels, structure, derivatives, options, anomalies, shocks, with their ages."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.trading().features(symbol, mode, as_of))
