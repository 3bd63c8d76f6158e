"""`zuno wallet`: its grammar. Neither a key nor a passphrase is ever an argument."""

from __future__ import annotations

from typing import Annotated

import typer

from zuno.frontends.cli import answering
from zuno.frontends.cli.grammar import ChainName, Home, Json, group

wallet = group("Wallets: keys under a passphrase, addresses that are only watched, balances and allowances.")


@wallet.command("create")
def wallet_create(ctx: typer.Context, home: Home = None, json: Json = False) -> None:
    """Make a new key and keep it under a passphrase, which is asked for."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.wallets().create())


@wallet.command("import")
def wallet_import(
    ctx: typer.Context,
    file: Annotated[
        str | None, typer.Argument(metavar="FILE", help="A keystore (version 3); without it the key is asked for.")
    ] = None,
    watch: Annotated[
        str | None, typer.Option("--watch", metavar="ADDRESS", help="Watch this address; its key stays elsewhere.")
    ] = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Keep a key you have under a new passphrase, or watch an address."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.wallets().add(file, watch))


@wallet.command("show")
def wallet_show(ctx: typer.Context, home: Home = None, json: Json = False) -> None:
    """List the wallets, and say which one acts."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.wallets().show())


@wallet.command("balance")
def wallet_balance(ctx: typer.Context, chain: ChainName = None, home: Home = None, json: Json = False) -> None:
    """Show what the wallet holds: ether, known tokens, and the tokens of its positions."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.wallet(chain).balance())


@wallet.command("allowances")
def wallet_allowances(ctx: typer.Context, chain: ChainName = None, home: Home = None, json: Json = False) -> None:
    """Show who may move the wallet's tokens, how much, and until when."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.wallet(chain).allowances())
