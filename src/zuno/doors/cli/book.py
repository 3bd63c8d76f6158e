"""`zuno trade book` commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from zuno.doors.cli.options import command, group

if TYPE_CHECKING:
    from zuno.doors.cli.run_command import Answer
    from zuno.doors.zuno import Zuno

book = group("Paper account of the trading desk: positions, open orders, cash, LP exposure.")

Symbol = Annotated[str, typer.Argument(metavar="SYMBOL", help="BTCUSDT or ETHUSDT.")]
AsOf = Annotated[
    str | None,
    typer.Option("--as-of", metavar="T", help="Point in time: 7d, 2025-12-24T12:00, unix seconds or ms."),
]


@command(book, "add")
def book_add(
    zuno: Zuno,
    /,
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
) -> Answer:
    """Add a position or an open order to the paper account. Nothing is sent."""
    return zuno.book().add(
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
    )


@command(book, "close")
def book_close(
    zuno: Zuno,
    /,
    which: Annotated[str, typer.Argument(metavar="ID|SYMBOL", help="Position or order id, or a symbol for all.")],
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="PRICE", help="Price in the exchange's currency (default: mark price)."),
    ] = None,
    as_of: AsOf = None,
) -> Answer:
    """Close positions, net of fees, and cancel orders."""
    return zuno.book().close(which, at, as_of)


@command(book, "show")
def book_show(zuno: Zuno, /, as_of: AsOf = None) -> Answer:
    """Show positions, unrealised PnL, equity by exchange, exposure and leverage."""
    return zuno.book().show(as_of)


@command(book, "lp")
def book_lp(
    zuno: Zuno,
    /,
    symbol: Symbol,
    quantity: Annotated[str, typer.Argument(metavar="QUANTITY", help="Amount of the base currency; 0 clears it.")],
    as_of: AsOf = None,
) -> Answer:
    """Set the base currency held in LP positions; it counts as exposure."""
    return zuno.book().liquidity(symbol, quantity, as_of)
