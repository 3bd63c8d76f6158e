"""Screens of the trading desk that runs by itself."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from zuno.doors.cli.layout import BAD, GOOD, QUIET, grid, heading, notes_block
from zuno.trading.service.trade_desk import DeskEvent, DeskRunView


def desk_event_line(event: DeskEvent) -> str:
    where = "" if event.symbol is None else f"{event.symbol} "
    return f"{event.at} {event.what:<7} {where}{event.said}"


def show_desk_run(view: DeskRunView) -> RenderableType:
    facts = grid()
    facts.add_row(
        "account", Text(f"{view.account}, {view.trading.upper()}", style=BAD if view.trading == "live" else "")
    )
    facts.add_row("time", f"{view.since} – {view.until}, {view.mode}, {', '.join(view.symbols)}")
    facts.add_row("cycles", str(view.cycles))
    facts.add_row("trades", f"{view.trades} closed, {view.open_trades} open, {view.exploration} explorations opened")
    ledger = view.ledger
    for currency, equity in ledger.equity.items():
        shown = "not known" if equity is None else f"{equity:,.2f}"
        facts.add_row(f"equity {currency}", f"{shown}, cash {ledger.cash[currency]:,.2f}")
        facts.add_row("", f"debits {ledger.debits[currency]:,.2f} = credits {ledger.credits[currency]:,.2f}")
    facts.add_row("invariants", Text(view.invariants, style=GOOD if view.invariants == "ok" else BAD))
    for lock in view.protections:
        facts.add_row("locked", Text(f"{lock.protection} {lock.ends}: {lock.reason}", style=BAD))
    title = heading(f"Desk on {view.market}")
    return Group(title, facts, Text(view.said, style=QUIET), *notes_block(view.notes))
