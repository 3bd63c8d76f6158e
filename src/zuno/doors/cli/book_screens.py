"""The paper book for eyes."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from zuno.doors.cli.layout import BAD, GOOD, Rows, grid, heading, notes_block
from zuno.trading.model.market import Symbol
from zuno.trading.service.paper_book import BookView, PositionView

_SIGNS = {"USD": "$", "KRW": "₩"}


def show_book(view: BookView) -> RenderableType:
    parts: list[RenderableType] = [*map(Text, view.said), heading(f"Paper book, as of {view.as_of} · {view.origin}")]
    parts.append(_positions(view) if view.positions else Text("no position is open"))
    if view.pending:
        parts += [heading("Orders that rest"), _pending(view)]
    parts += [heading("Cash"), _show_balances(view), _whole(view)]
    return Group(*parts, *notes_block(view.notes))


def _positions(view: BookView) -> Rows:
    table = Rows(
        *("id", "position", "entry", "mark", "margin", "unrealised", "of the entry", "exits", "opened"),
        spare=("opened", "margin"),
    )
    for position in view.positions:
        table.add_row(
            position.id,
            f"{position.side} {position.quantity:.6g} {Symbol(position.symbol).base}"
            f" {position.leverage:g}× {position.exchange}",
            _money(position.entry, position.currency),
            _money(position.mark, position.currency),
            _money(position.margin, position.currency),
            _gain(position),
            "unknown" if position.gain_pct is None else f"{position.gain_pct:+.2f} %",
            _exits(position),
            position.opened,
        )
    return table


def _pending(view: BookView) -> Rows:
    table = Rows("id", "order", "price", "margin", "placed", spare=("placed",))
    for order in view.pending:
        table.add_row(
            order.id,
            f"{order.side} {order.quantity:.6g} {Symbol(order.symbol).base} {order.leverage:g}× {order.exchange}",
            _money(order.price, order.currency),
            _money(order.margin, order.currency),
            order.placed,
        )
    return table


def _show_balances(view: BookView) -> Rows:
    table = Rows("exchange", "cash", "equity", "margin open", "margin pending", "free", spare=("margin pending",))
    for purse in view.purses:
        amounts = (purse.cash, purse.equity, purse.margin_open, purse.margin_pending, purse.free)
        table.add_row(purse.exchange, *(_money(amount, purse.currency) for amount in amounts))
    return table


def _whole(view: BookView) -> RenderableType:
    facts = grid()
    for pool in view.liquidity:
        worth = "" if pool.usd is None else f", {_money(pool.usd, 'USD')}"
        facts.add_row("in liquidity", f"{pool.quantity:g} {Symbol(pool.symbol).base}{worth}")
    if view.unknown is not None:
        facts.add_row("the whole", Text(f"unknown: {view.unknown}", style=BAD))
        return facts
    facts.add_row("equity", _money(view.equity_usd, "USD"))
    facts.add_row("exposure", _money(view.exposure_usd, "USD"))
    facts.add_row("leverage", "unknown: no equity is left" if view.leverage is None else f"{view.leverage:.2f}×")
    return facts


def _exits(position: PositionView) -> str:
    """Stop, target and longest hold, where they are set."""
    parts = [
        None if position.stop is None else f"stop {_money(position.stop, position.currency)}",
        None if position.target is None else f"target {_money(position.target, position.currency)}",
        None if position.hold is None else f"until {position.hold_until}",
    ]
    return ", ".join(part for part in parts if part) or "–"


def _gain(position: PositionView) -> Text:
    if position.unrealised is None:
        return Text("unknown", style=BAD)
    return Text(_money(position.unrealised, position.currency), style=GOOD if position.unrealised >= 0 else BAD)


def _money(amount: float | None, currency: str) -> str:
    if amount is None:
        return "unknown"
    sign, digits = "-" if amount < 0 else "", 0 if currency == "KRW" else 2
    return f"{sign}{_SIGNS[currency]}{abs(amount):,.{digits}f}"
