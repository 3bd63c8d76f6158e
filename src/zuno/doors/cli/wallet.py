"""`zuno wallet`: its grammar. Neither a key nor a passphrase is ever an argument."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from zuno.doors.cli.options import ChainName, command, group

if TYPE_CHECKING:
    from zuno.doors.cli.run_command import Answer
    from zuno.doors.zuno import Zuno

wallet = group("Encrypted keys, watched addresses, balances and allowances.")


@command(wallet, "create")
def wallet_create(zuno: Zuno, /) -> Answer:
    """Create a key, encrypted with a passphrase."""
    return zuno.wallets().create()


@command(wallet, "import")
def wallet_import(
    zuno: Zuno,
    /,
    file: Annotated[
        str | None,
        typer.Argument(metavar="FILE", help="Keystore file (version 3); without it the key is prompted for."),
    ] = None,
    watch: Annotated[str | None, typer.Option("--watch", metavar="ADDRESS", help="Add a watch-only address.")] = None,
) -> Answer:
    """Import a key, or add a watch-only address."""
    return zuno.wallets().add(file, watch)


@command(wallet, "show")
def wallet_show(zuno: Zuno, /) -> Answer:
    """List wallets and show which one signs."""
    return zuno.wallets().show()


@command(wallet, "balance")
def wallet_balance(zuno: Zuno, /, chain: ChainName = None) -> Answer:
    """Show balances: ETH, known tokens and tokens of positions."""
    return zuno.wallet(chain).balance()


@command(wallet, "allowances")
def wallet_allowances(zuno: Zuno, /, chain: ChainName = None) -> Answer:
    """Show token allowances: spender, amount, expiry."""
    return zuno.wallet(chain).allowances()
