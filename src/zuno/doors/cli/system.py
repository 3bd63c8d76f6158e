"""`zuno doctor`, `zuno logs` and `zuno export`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zuno.doors.cli import run_command
from zuno.doors.cli.options import ChainName, Home, Json, group, whole_number
from zuno.doors.cli.trade import put

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from zuno.doors.export import ExportView
    from zuno.doors.zuno import Zuno

export = group("Export trades, the ledger or LP positions as CSV.")


def doctor(
    ctx: typer.Context,
    live: Annotated[
        bool, typer.Option("--live", help="Fail on anything that trading with money needs and is not set up.")
    ] = False,
    home: Home = None,
    json: Json = False,
) -> None:
    """Check home, disk, store, keys, clock, market, models, chains and exchanges. Nothing is changed."""
    run_command.verdict(ctx.obj.at(home), json, lambda zuno: zuno.doctor().examine(live=live))


def logs(
    ctx: typer.Context,
    lines: Annotated[
        int, typer.Option("--lines", "-n", metavar="N", parser=whole_number, help="Show the last N lines.")
    ] = 50,
    level: Annotated[
        str, typer.Option("--level", metavar="LEVEL", help="Only this level and above: info, warning, error.")
    ] = "info",
    home: Home = None,
    json: Json = False,
) -> None:
    """Show the log of this home's processes, oldest first."""
    run_command.answer(ctx.obj.at(home), json, lambda zuno: zuno.logs().show(lines, level))


Csv = Annotated[bool, typer.Option("--csv", help="CSV on stdout (the default).")]
Out = Annotated[str | None, typer.Option("--out", metavar="FILE", help="Write the CSV to this file.")]


Account = Annotated[
    str | None, typer.Option("--account", metavar="NAME", help="Another paper account of this home (default: its own).")
]


@export.command("trades")
def export_trades(
    ctx: typer.Context, csv: Csv = True, out: Out = None, account: Account = None, home: Home = None, json: Json = False
) -> None:
    """Export closed trades: prices, PnL, R, fees, funding, exit reason."""

    async def fetch(zuno: Zuno) -> ExportView:
        from zuno.doors.export import export_trades

        return await export_trades(zuno.account(account))

    _export(ctx.obj.at(home), json, out, fetch)


@export.command("ledger")
def export_ledger(
    ctx: typer.Context, csv: Csv = True, out: Out = None, account: Account = None, home: Home = None, json: Json = False
) -> None:
    """Export the double-entry ledger, a row for each line of a posting."""

    async def fetch(zuno: Zuno) -> ExportView:
        from zuno.doors.export import export_ledger

        return await export_ledger(zuno.account(account))

    _export(ctx.obj.at(home), json, out, fetch)


@export.command("lp")
def export_lp(
    ctx: typer.Context,
    csv: Csv = True,
    out: Out = None,
    wallet: Annotated[str | None, typer.Option("--wallet", metavar="ADDRESS", help="Owner of the positions.")] = None,
    chain: ChainName = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Export LP positions: holdings, uncollected fees, PnL since the mint with its terms."""

    async def fetch(zuno: Zuno) -> ExportView:
        from zuno.doors.export import export_positions

        return await export_positions(zuno.lp(chain), wallet)

    _export(ctx.obj.at(home), json, out, fetch)


def _export(
    session: run_command.Session, json: bool, out: str | None, fetch: Callable[[Zuno], Awaitable[ExportView]]
) -> None:
    async def fetch_and_write(zuno: Zuno) -> ExportView:
        view = await fetch(zuno)
        if not json:
            for note in view.notes:
                run_command.complain(f"zuno: {note}")
        if out is None:
            return view
        from zuno.doors.export import to_csv

        put(zuno, Path(out), to_csv(view).encode(), "table", "choose another --out")
        return view.model_copy(update={"file": out})

    run_command.answer(session, json, fetch_and_write)
