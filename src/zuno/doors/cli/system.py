"""`zuno agents`, `parse`, `mcp`, `telegram`, `doctor`, `config`, `logs`, `serve`, `status` and `export`."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zuno.doors.cli import run_command
from zuno.doors.cli.options import ChainName, Home, Json, JsonLines, argument, command, flag, group, number, option
from zuno.doors.cli.trade import put
from zuno.kernel.errors import Unavailable

if TYPE_CHECKING:
    from zuno.doors.cli.run_command import Answer
    from zuno.doors.export import ExportView
    from zuno.doors.zuno import Zuno
    from zuno.kernel.view import View


export = group("Export trades, the ledger, LP positions or taxable events as CSV.")


def agents(zuno: Zuno) -> Answer:
    """Show the model of each agent, or why it runs on rules. No model calls."""
    return zuno.agents().status()


def parse(zuno: Zuno, text: Annotated[str, argument("TEXT", 'Shell input: "rebalance position 1 safely".')]) -> Answer:
    """Show how the shell parses a line: intent, slots, confidence, command. Nothing is run."""
    from zuno.doors.reading.parse_view import parse_line

    return parse_line(text, lambda: zuno.lp(None).positions())


async def glossary(
    zuno: Zuno, word: Annotated[str | None, argument("WORD", "Term, such as LVR; default: all of them.")] = None
) -> View:
    """Explain a term of the field, as these pages use it."""
    from zuno.doors.glossary import look_up

    return look_up(word)


def mcp(ctx: typer.Context, home: Home = None) -> None:
    """MCP server on stdio: read, analyse, hand out an approved plan's next step unsigned."""

    async def serve(zuno: Zuno) -> None:
        server = zuno.assistant()
        # Reading stdin cannot be interrupted, and no state is lost by ending at any moment.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, lambda number, frame: os._exit(run_command.TERMINATED))
        await server.serve()

    run_command.serve_silently(ctx.obj.at(home), serve)


def doctor(
    zuno: Zuno,
    live: Annotated[bool, flag("--live", "Fail on anything that trading with money needs and is not set up.")] = False,
) -> Answer:
    """Check home, disk, store, keys, clock, market, models, chains and exchanges. Nothing is changed."""
    return zuno.doctor().examine(live=live)


config = group("Settings of this home: the environment, and zuno.toml in the home.")


@command(config, "init", by=run_command.mend)
async def config_init(zuno: Zuno) -> View:
    """Write a commented zuno.toml with the defaults and what the environment sets; secrets by name."""
    return zuno.write_config()


@command(config, "show")
async def config_show(zuno: Zuno) -> View:
    """Show every setting that is set, and whether the environment or which line of zuno.toml sets it."""
    return zuno.config(private=True)


@command(config, "check", by=run_command.mend)
async def config_check(
    zuno: Zuno, file: Annotated[Path | None, argument("FILE", "Another file (default: of the home).")] = None
) -> View:
    """Check zuno.toml and its wallets file, and list every fault with its line."""
    return zuno.check_config(file)


def logs(
    zuno: Zuno,
    lines: Annotated[int, number("--lines -n", "N", "Show the last N lines.")] = 50,
    level: Annotated[str, option("--level", "LEVEL", "Only this level and above: info, warning, error.")] = "info",
) -> Answer:
    """Show the log of this home's processes, oldest first."""
    return zuno.logs().show(lines, level)


async def serve_home(
    zuno: Zuno,
    without: Annotated[
        list[str] | None, option("--without", "PART", "pushes, mesh, monitor, desk, page or telegram; repeatable.")
    ] = None,
    desk: Annotated[str, option("--desk", "OPTIONS", "Options of `zuno trade start`, quoted.")] = "",
    page: Annotated[str, option("--page", "OPTIONS", "Options of `zuno web`, quoted.")] = "",
    mesh: Annotated[str, option("--mesh", "OPTIONS", "Options of `zuno mesh up`, quoted; or inproc.")] = "",
    json: JsonLines = False,
) -> View:
    """Run desk, monitor, pushes, bot, page and LP peers as one service until Ctrl-C or SIGTERM."""
    from zuno.doors.cli.service import serve

    supervisor = zuno.supervisor(without or (), {"desk": desk, "page": page, "mesh": mesh})
    return await serve(supervisor.run, json=json)


def status(zuno: Zuno) -> Answer:
    """Show what runs, last and next cycle, last monitor look, open risk, locks, disk, record."""
    return zuno.status()


Csv = Annotated[bool, flag("--csv", "CSV on stdout (the default).")]
Out = Annotated[str | None, option("--out", "FILE", "Write the CSV to this file.")]


Account = Annotated[str | None, option("--account", "NAME", "Another paper account of this home (default: its own).")]


@command(export, "trades")
async def export_trades(
    zuno: Zuno, csv: Csv = True, out: Out = None, account: Account = None, json: Json = False
) -> ExportView:
    """Export closed trades: prices, PnL, R, fees, funding, exit reason."""
    from zuno.doors.export import export_trades

    return _write_csv(zuno, await export_trades(zuno.account(account)), out, json)


@command(export, "ledger")
async def export_ledger(
    zuno: Zuno, csv: Csv = True, out: Out = None, account: Account = None, json: Json = False
) -> ExportView:
    """Export the double-entry ledger, a row for each line of a posting."""
    from zuno.doors.export import export_ledger

    return _write_csv(zuno, await export_ledger(zuno.account(account)), out, json)


@command(export, "lp")
async def export_lp(
    zuno: Zuno,
    csv: Csv = True,
    out: Out = None,
    wallet: Annotated[str | None, option("--wallet", "ADDRESS", "Owner of the positions.")] = None,
    chain: ChainName = None,
    json: Json = False,
) -> ExportView:
    """Export LP positions: holdings, uncollected fees, PnL since the mint with its terms."""
    from zuno.doors.export import export_positions

    return _write_csv(zuno, await export_positions(zuno.lp(chain), wallet), out, json)


@command(export, "events")
async def export_events(
    zuno: Zuno,
    year: Annotated[int, option("--year", "YEAR", "Calendar year of the events.")],
    currency: Annotated[
        str | None, option("--currency", "CODE", "USD, EUR, KRW, … (default: $ZUNO_REPORTING_CURRENCY).")
    ] = None,
    rates: Annotated[
        str | None, option("--rates", "FILE", "CSV of daily rates (date,DEXUSEU or date,USD_PER_EUR); no FRED.")
    ] = None,
    timezone: Annotated[
        str | None, option("--timezone", "ZONE", "Of the year, e.g. Europe/Berlin (default: $ZUNO_TIME_ZONE).")
    ] = None,
    csv: Csv = True,
    out: Out = None,
    account: Account = None,
    wallet: Annotated[str | None, option("--wallet", "ADDRESS", "Owner of the positions.")] = None,
    chain: ChainName = None,
    json: Json = False,
) -> ExportView:
    """Export taxable events of both desks: trades, fees, funding, swaps, mints, burns, collects, gas."""
    from zuno.doors.tax_export import TaxYear, export_taxable_events

    own_zone, own_currency = zuno.reporting()
    span = TaxYear(year, timezone or own_zone, currency or own_currency)
    view = await export_taxable_events(zuno, span, Path(rates) if rates else None, account, wallet, chain)
    return _write_csv(zuno, view, out, json)


def _write_csv(zuno: Zuno, view: ExportView, out: str | None, json: bool) -> ExportView:
    from zuno.doors.export import to_csv

    if not json:
        for note in view.notes:
            run_command.complain(f"zuno: {note}")
    if out is None:
        return view
    put(zuno, Path(out), to_csv(view).encode(), "table", "choose another --out")
    return view.model_copy(update={"file": out})


docs = group("This documentation as a static site.")


@command(docs, "build")
async def docs_build(
    zuno: Zuno, out: Annotated[Path, option("--out", "DIR", "Folder that it is written to.")] = Path("zuno-docs")
) -> View:
    """Build the documentation: HTML pages with a search, their Markdown, llms.txt and llms-full.txt."""
    from zuno.doors.docs_site import DocsSiteView, build_site, find_docs

    if (pages := find_docs()) is None:
        raise Unavailable("The documentation is not installed beside this package; a checkout has it.")
    site = build_site(pages)
    for name, content in site.items():
        put(zuno, out / name, content, "page", "choose another --out")
    count = sum(name.endswith(".html") for name in site)
    return DocsSiteView(folder=str(out), pages=count, files=len(site))


telegram = group("Bot in a Telegram chat: both desks, for the people you list.")


@command(telegram, "run")
async def telegram_run(zuno: Zuno, json: JsonLines = False) -> View:
    """Poll Telegram and answer owners and viewers until Ctrl-C or SIGTERM."""
    from zuno.doors.cli.service import serve

    return await serve(zuno.telegram().run, json=json)


@command(telegram, "setup")
async def telegram_setup(zuno: Zuno) -> View:
    """Check the token, find your user id by a code you send to the bot, register the commands."""
    from zuno.doors.cli.service import stop_on_signals

    return await zuno.telegram().setup(lambda line: run_command.complain(f"zuno: {line}"), stop_on_signals())
