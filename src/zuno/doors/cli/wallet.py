"""`zuno wallet`: its grammar. Neither a key nor a passphrase is ever an argument."""

from __future__ import annotations

from typing import Annotated

import typer

from zuno.doors.cli import run_command
from zuno.doors.cli.options import ChainName, Home, Json, group

wallet = group("Encrypted keys, watched addresses, balances and allowances.")


@wallet.command("create")
def wallet_create(ctx: typer.Context, home: Home = None, json: Json = False) -> None:
    """Create a key, encrypted with a passphrase."""
    run_command.answer(ctx.obj.at(home), json, lambda zuno: zuno.wallets().create())


@wallet.command("import")
def wallet_import(
    ctx: typer.Context,
    file: Annotated[
        str | None,
        typer.Argument(metavar="FILE", help="Keystore file (version 3); without it the key is prompted for."),
    ] = None,
    watch: Annotated[str | None, typer.Option("--watch", metavar="ADDRESS", help="Add a watch-only address.")] = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Import a key, or add a watch-only address."""
    run_command.answer(ctx.obj.at(home), json, lambda zuno: zuno.wallets().add(file, watch))


@wallet.command("show")
def wallet_show(ctx: typer.Context, home: Home = None, json: Json = False) -> None:
    """List wallets and show which one signs."""
    run_command.answer(ctx.obj.at(home), json, lambda zuno: zuno.wallets().show())


@wallet.command("balance")
def wallet_balance(ctx: typer.Context, chain: ChainName = None, home: Home = None, json: Json = False) -> None:
    """Show balances: ETH, known tokens and tokens of positions."""
    run_command.answer(ctx.obj.at(home), json, lambda zuno: zuno.wallet(chain).balance())


@wallet.command("allowances")
def wallet_allowances(ctx: typer.Context, chain: ChainName = None, home: Home = None, json: Json = False) -> None:
    """Show token allowances: spender, amount, expiry."""
    run_command.answer(ctx.obj.at(home), json, lambda zuno: zuno.wallet(chain).allowances())
