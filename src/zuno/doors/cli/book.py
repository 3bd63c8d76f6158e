"""`zuno trade book` commands."""

from __future__ import annotations

from typing import Annotated

import typer

from zuno.doors.cli import run_command
from zuno.doors.cli.options import Home, Json, group

book = group("Paper account of the trading desk: positions, open orders, cash, LP exposure.")

Symbol = Annotated[str, typer.Argument(metavar="SYMBOL", help="BTCUSDT or ETHUSDT.")]
AsOf = Annotated[
    str | None,
    typer.Option("--as-of", metavar="T", help="Point in time: 7d, 2025-12-24T12:00, unix seconds or ms."),
]


@book.command("add")
def book_add(
    ctx: typer.Context,
    symbol: Symbol,
    side: Annotated[str, typer.Argument(metavar="long|short", help="Side.")],
    margin: Annotated[str, typer.Option("--margin", metavar="N", help="Margin: USD on Binance, KRW on Upbit.")],
    leverage: Annotated[str, typer.Option("--leverage", metavar="N", help="Leverage, 1 to 3.")] = "1",
    entry: Annotated[
        str | None,
        typer.Option("--entry", metavar="PRICE", help="Price in the exchange's currency (default: mark price)."),
    ] = None,
    exchange: Annotated[
        str, typer.Option("--exchange", metavar="binance|upbit", help="binance (USD futures) or upbit (KRW spot).")
    ] = "binance",
    stop: Annotated[str | None, typer.Option("--stop", metavar="PRICE", help="Stop loss.")] = None,
    target: Annotated[str | None, typer.Option("--target", metavar="PRICE", help="Take profit.")] = None,
    hold: Annotated[
        str | None, typer.Option("--hold", metavar="T", help="Longest holding time: 12h, 5d or 6w.")
    ] = None,
    as_of: AsOf = None,
    pending: Annotated[bool, typer.Option("--pending", help="Open limit order at --entry.")] = False,
    home: Home = None,
    json: Json = False,
) -> None:
    """Add a position or an open order to the paper account. Nothing is sent."""
    run_command.answer(
        ctx.obj.at(home),
        json,
        lambda zuno: zuno.book().add(
            symbol,
            side,
            margin,
            leverage=leverage,
            entry=entry,
            exchange=exchange,
            stop=stop,
            target=target,
            hold=hold,
            as_of=as_of,
            pending=pending,
        ),
    )


@book.command("close")
def book_close(
    ctx: typer.Context,
    which: Annotated[str, typer.Argument(metavar="ID|SYMBOL", help="Position or order id, or a symbol for all.")],
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="PRICE", help="Price in the exchange's currency (default: mark price)."),
    ] = None,
    as_of: AsOf = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Close positions, net of fees, and cancel orders."""
    run_command.answer(ctx.obj.at(home), json, lambda zuno: zuno.book().close(which, at, as_of))


@book.command("show")
def book_show(ctx: typer.Context, as_of: AsOf = None, home: Home = None, json: Json = False) -> None:
    """Show positions, unrealised PnL, equity by exchange, exposure and leverage."""
    run_command.answer(ctx.obj.at(home), json, lambda zuno: zuno.book().show(as_of))


@book.command("lp")
def book_lp(
    ctx: typer.Context,
    symbol: Symbol,
    quantity: Annotated[str, typer.Argument(metavar="QUANTITY", help="Amount of the base currency; 0 clears it.")],
    as_of: AsOf = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Set the base currency held in LP positions; it counts as exposure."""
    run_command.answer(ctx.obj.at(home), json, lambda zuno: zuno.book().liquidity(symbol, quantity, as_of))
