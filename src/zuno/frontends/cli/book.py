"""The trading desk's paper book on the command line."""

from __future__ import annotations

from typing import Annotated

import typer

from zuno.frontends.cli import answering
from zuno.frontends.cli.grammar import Home, Json, group

book = group("The paper book: positions, resting orders, cash and liquidity that a cycle of the trading desk weighs.")

Symbol = Annotated[str, typer.Argument(metavar="SYMBOL", help="BTCUSDT or ETHUSDT.")]
AsOf = Annotated[
    str | None,
    typer.Option(
        "--as-of", metavar="T", help="At that moment of the market: 7d, 2025-12-24T12:00, unix seconds or ms."
    ),
]


@book.command("add")
def book_add(
    ctx: typer.Context,
    symbol: Symbol,
    side: Annotated[str, typer.Argument(metavar="long|short", help="Which way.")],
    margin: Annotated[
        str, typer.Option("--margin", metavar="N", help="What it ties up: dollars at Binance, won at Upbit.")
    ],
    leverage: Annotated[str, typer.Option("--leverage", metavar="N", help="1 to 3.")] = "1",
    entry: Annotated[
        str | None,
        typer.Option("--entry", metavar="PRICE", help="In the exchange's currency; without it the market's mark."),
    ] = None,
    exchange: Annotated[
        str, typer.Option("--exchange", metavar="binance|upbit", help="Futures in dollars, or spot in won.")
    ] = "binance",
    as_of: AsOf = None,
    pending: Annotated[bool, typer.Option("--pending", help="An order that rests at --entry.")] = False,
    home: Home = None,
    json: Json = False,
) -> None:
    """Write a position, or an order that rests, into the book. Nothing is sent anywhere."""
    answering.answer(
        ctx.obj.at(home),
        json,
        lambda zuno: zuno.book().add(
            symbol, side, margin, leverage=leverage, entry=entry, exchange=exchange, as_of=as_of, pending=pending
        ),
    )


@book.command("close")
def book_close(
    ctx: typer.Context,
    which: Annotated[str, typer.Argument(metavar="ID|SYMBOL", help="A position, an order, or all of a symbol.")],
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="PRICE", help="In the exchange's currency; without it the market's mark."),
    ] = None,
    as_of: AsOf = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Close positions into cash, fees paid, and take orders back."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.book().close(which, at, as_of))


@book.command("show")
def book_show(ctx: typer.Context, as_of: AsOf = None, home: Home = None, json: Json = False) -> None:
    """Show what the book holds at the market's prices: positions, equity by exchange, exposure, leverage."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.book().show(as_of))


@book.command("lp")
def book_lp(
    ctx: typer.Context,
    symbol: Symbol,
    quantity: Annotated[str, typer.Argument(metavar="QUANTITY", help="Of the base currency; 0 is none.")],
    as_of: AsOf = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """State how much of a symbol's base currency your liquidity positions hold: it counts as exposure."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.book().liquidity(symbol, quantity, as_of))
