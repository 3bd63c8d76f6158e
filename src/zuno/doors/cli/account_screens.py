"""A trading account for eyes. What keeps it from new risk stands on every screen."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from rich.console import Group, RenderableType
from rich.text import Text

from zuno.doors.cli.layout import BAD, GOOD, QUIET, Rows, grid, heading, notes_block
from zuno.kernel.numbers_text import currency_text, hours_text, multiple_text, percent_text, ratio_text, sparkline
from zuno.trading.model.market import Symbol
from zuno.trading.service.account_view import (
    AccountView,
    ActionView,
    FillsView,
    LedgerView,
    LocksView,
    MandateStateView,
    MandateView,
    PerformanceView,
    ProfitRowView,
    ProfitView,
    TradeBalanceView,
    TradeOrdersView,
    TradeOrderView,
    TradePositionsView,
    TradePositionView,
    TradeStatusView,
    TradesView,
    describe_drawdown,
    describe_expectancy,
)
from zuno.trading.service.trade_desk import ProtectionView

_WARN = "yellow"


def show_status(view: TradeStatusView) -> RenderableType:
    facts = grid()
    facts.add_row("desk", Text("not running", style=QUIET) if view.running is None else Text(view.running, style=GOOD))
    if view.unknown is not None:
        facts.add_row("equity", Text(f"unknown: {view.unknown}", style=BAD))
    else:
        facts.add_row("equity", currency_text(view.equity_usd))
    facts.add_row("unrealised PnL", _gain(view.unrealised_usd))
    facts.add_row("realised PnL", _gain(view.net_pnl_usd))
    facts.add_row("today", _gain(view.today_usd))
    facts.add_row("trades", f"{view.open_trades} open, {view.closed_trades} closed, {view.open_orders} orders open")
    facts.add_row("mandate", _mandate_line(view.mandate))
    return _screen(view, "Trading status", facts, heading("Risk book"), *_risk(view))


def show_positions(view: TradePositionsView) -> RenderableType:
    if not view.positions:
        return _screen(view, "Positions", Text("no position is open"))
    total = Text.assemble(("unrealised PnL ", QUIET), _gain(view.unrealised_usd))
    return _screen(view, "Positions", _positions(view.positions), total)


def show_orders(view: TradeOrdersView) -> RenderableType:
    if not view.orders and not view.manual:
        return _screen(view, "Orders", Text("no order is open"))
    parts: list[RenderableType] = [_orders(view.orders)] if view.orders else []
    if view.manual:
        table = Rows("id", "order", "price")
        for order in view.manual:
            base = Symbol(order.symbol).base
            table.add_row(
                order.id,
                f"{order.side} {order.quantity:.6g} {base} {order.exchange}",
                currency_text(order.price, order.currency),
            )
        parts += [heading("Written by hand"), table]
    return _screen(view, "Orders", *parts)


def show_fills(view: FillsView) -> RenderableType:
    if not view.fills:
        return _screen(view, "Fills", Text("nothing was filled yet"))
    table = Rows("time", "fill", "price", "fee", "", "order", "id", spare=("id", "order"))
    for fill in view.fills:
        kind = "liquidation" if fill.liquidation else "maker" if fill.maker else "taker"
        table.add_row(
            fill.at,
            f"{fill.side} {fill.quantity:.8g} {Symbol(fill.symbol).base} {fill.exchange}",
            currency_text(fill.price, fill.currency),
            currency_text(fill.fee, fill.currency),
            Text(kind, style=BAD if fill.liquidation else ""),
            fill.order,
            fill.id,
        )
    return _screen(view, "Fills", table, *_more(len(view.fills), view.total))


def show_trades(view: TradesView) -> RenderableType:
    if not view.trades:
        return _screen(view, "Closed trades", Text("no trade was closed yet"))
    table = Rows(
        *("id", "trade", "entry", "exit", "net PnL", "R", "fees", "funding", "exit by", "held", "closed"),
        spare=("funding", "fees", "closed", "held"),
    )
    for trade in view.trades:
        marked = " exploration" if trade.exploration else ""
        table.add_row(
            trade.id,
            f"{trade.side} {trade.quantity:.6g} {Symbol(trade.symbol).base} {trade.exchange}{marked}",
            currency_text(trade.entry, trade.currency),
            currency_text(trade.exit, trade.currency),
            _gain(trade.net_pnl, trade.currency),
            "–" if trade.r is None else f"{trade.r:+.2f}",
            currency_text(trade.fees, trade.currency),
            currency_text(trade.funding, trade.currency),
            trade.exit_reason,
            hours_text(trade.duration_hours),
            trade.closed,
        )
    return _screen(view, "Closed trades", table, *_more(len(view.trades), view.total))


def show_ledger(view: LedgerView) -> RenderableType:
    balances = Rows("account", *(f"in {ledger.currency} at {ledger.exchange}" for ledger in view.ledgers))
    names = list(view.ledgers[0].balances)
    for name in names:
        amounts = [ledger.balances[name] for ledger in view.ledgers]
        if any(amount != "0" for amount in amounts):
            balances.add_row(name, *map(_exact, amounts))
    balances.add_row("debits", *(_exact(ledger.debits) for ledger in view.ledgers), style="bold")
    balances.add_row("credits", *(_exact(ledger.credits) for ledger in view.ledgers), style="bold")
    whole = all(ledger.balanced for ledger in view.ledgers)
    verdict = Text("debits = credits" if whole else "the ledger is out of balance", style=GOOD if whole else BAD)
    if not view.postings:
        return _screen(view, "Ledger", balances, verdict)
    table = Rows("no.", "time", "what", "exchange", "debit", "credit", spare=("exchange",))
    for posting in view.postings:
        debits = [line for line in posting.lines if not line.amount.startswith("-")]
        credits = [line for line in posting.lines if line.amount.startswith("-")]
        table.add_row(
            str(posting.number),
            posting.at,
            posting.what,
            f"{posting.exchange} {posting.currency}",
            "\n".join(f"{line.account} {_exact(line.amount)}" for line in debits),
            "\n".join(f"{line.account} {_exact(line.amount[1:])}" for line in credits),
        )
    return _screen(
        view, "Ledger", balances, verdict, heading("Postings"), table, *_more(len(view.postings), view.total)
    )


def show_balance(view: TradeBalanceView) -> RenderableType:
    table = Rows(
        *("exchange", "cash", "margin", "pending", "coins at cost", "unrealised", "equity", "free"),
        spare=("pending", "coins at cost"),
    )
    for purse in view.purses:
        amounts = (purse.cash, purse.margin, purse.pending_margin, purse.inventory)
        table.add_row(
            purse.exchange,
            *(currency_text(amount, purse.currency) for amount in amounts),
            _gain(purse.unrealised, purse.currency),
            currency_text(purse.equity, purse.currency),
            currency_text(purse.free, purse.currency)
            if purse.free is None or purse.free >= 0
            else Text(currency_text(purse.free, purse.currency), style=BAD),
        )
    whole = Text(f"unknown: {view.unknown}", style=BAD) if view.unknown else Text(currency_text(view.equity_usd))
    return _screen(view, "Balance", table, Text.assemble(("equity in USD ", QUIET), whole))


def show_profit(view: ProfitView) -> RenderableType:
    title = "Profit of closed trades, USD" + ("" if view.by is None else f", by {view.by}")
    if not view.whole.trades:
        return _screen(view, title, Text("no trade was closed yet"), *_note_unconverted(view.whole))
    parts: list[RenderableType] = []
    if view.groups:
        table = Rows(
            *(view.by or "", "trades", "won", "net PnL", "profit factor", "expectancy", "in R", "held", "fees"),
            *("funding", "models"),
            spare=("models", "funding", "fees", "held"),
        )
        for row in (*view.groups, view.whole):
            table.add_row(
                row.name,
                str(row.trades),
                percent_text(row.win_rate),
                _gain(row.net_pnl),
                ratio_text(row.profit_factor),
                _gain(row.expectancy_usd),
                multiple_text(row.expectancy_r),
                hours_text(row.mean_duration_hours),
                currency_text(row.fees),
                currency_text(row.funding),
                currency_text(row.model_cost),
                style="bold" if row is view.whole else "",
            )
        parts.append(table)
    else:
        parts.append(_profit_facts(view.whole))
    parts.append(Text.assemble(("max drawdown of the equity ", QUIET), describe_drawdown(view)))
    return _screen(view, title, *parts, *_note_unconverted(view.whole))


def show_performance(view: PerformanceView) -> RenderableType:
    if not view.points:
        return _screen(view, "Performance", Text("nothing was traded yet: there is no curve"))
    facts = grid()
    change = "" if view.return_pct is None else f"  ({view.return_pct:+.2f} %)"
    facts.add_row("equity", f"{currency_text(view.start_usd)} → {currency_text(view.equity_usd)}{change}")
    facts.add_row("max drawdown", describe_drawdown(view))
    curve = Text(sparkline([point.equity_usd for point in view.points]))
    facts.add_row("curve", curve)
    if view.file is not None:
        facts.add_row("picture", view.file)
    parts: list[RenderableType] = [facts]
    if view.whole.trades:
        parts += [heading("Closed trades, USD"), _profit_facts(view.whole)]
    return _screen(view, "Performance", *parts, *_note_unconverted(view.whole))


def show_locks(view: LocksView) -> RenderableType:
    if not view.protections:
        return _screen(view, "Locks", Text("nothing is locked: new trades may be opened", style=GOOD))
    return _screen(view, "Locks", Text("`zuno trade unlock [PROTECTION]` lifts them", style=QUIET))


def show_mandate(view: MandateStateView) -> RenderableType:
    parts: list[RenderableType] = [Text(view.said)] if view.said else []
    if view.mandate is not None:
        parts.append(_mandate_facts(view.mandate))
    return _screen(view, "Mandate", *parts)


def show_action(view: ActionView) -> RenderableType:
    said: list[RenderableType] = [Text(line) for line in view.said]
    parts: list[RenderableType] = [_positions(view.positions)] if view.positions else [Text("no position is open")]
    if view.orders:
        parts += [heading("Orders"), _orders(view.orders)]
    return Group(*said, _screen(view, "Positions", *parts))


# -- parts


def _screen(view: AccountView, title: str, *parts: RenderableType) -> RenderableType:
    """Whose money it is first; then what keeps it from new risk."""
    label = Text(view.mode.upper(), style={"live": f"bold {BAD}", "demo": f"bold {_WARN}"}.get(view.mode, "bold"))
    line = Text.assemble(label, (f" · {title}, as of {view.as_of} · {view.market}", "bold"))
    return Group(line, *map(_lock_line, view.protections), *parts, *notes_block(view.notes))


def _lock_line(lock: ProtectionView) -> Text:
    whom = "" if lock.symbol is None else f" {lock.symbol}"
    return Text(f"LOCKED{whom} by {lock.protection} {lock.ends}: {lock.reason}", style=_WARN)


def _positions(positions: Sequence[TradePositionView]) -> Rows:
    table = Rows(
        *("id", "position", "entry", "mark", "unrealised", "gain", "R", "stop", "target", "levels", "hold until"),
        *("orders", "margin"),
        spare=("margin", "orders", "hold until", "gain", "levels"),
        between={"orders": ", "},
    )
    for position in positions:
        marked = " (exploration)" if position.exploration else ""
        levels = "at the exchange" if position.stop_order else "by hand" if position.manual else "watched"
        base = Symbol(position.symbol).base
        table.add_row(
            position.id,
            f"{position.side} {position.quantity:.6g} {base} {position.leverage:g}× {position.exchange}",
            currency_text(position.entry, position.currency),
            currency_text(position.mark, position.currency),
            _gain(position.unrealised, position.currency),
            "–" if position.gain_pct is None else f"{position.gain_pct:+.2f} %",
            "–" if position.r is None else f"{position.r:+.2f}",
            "–" if position.stop is None else currency_text(position.stop, position.currency),
            "–" if position.target is None else currency_text(position.target, position.currency),
            f"{levels}{marked}",
            position.hold_until or "–",
            "\n".join(position.orders) or "–",
            currency_text(position.margin, position.currency),
        )
    return table


def _orders(orders: Sequence[TradeOrderView]) -> Rows:
    table = Rows(
        *("id", "for", "order", "price", "filled", "status", "expires", "at the exchange", "placed"),
        spare=("placed", "at the exchange", "expires"),
    )
    for order in orders:
        base = Symbol(order.symbol).base
        status = Text(order.status, style=BAD if order.status == "REJECTED" else "")
        if order.reason:
            status.append(f": {order.reason}")
        table.add_row(
            order.id,
            order.purpose,
            f"{order.side} {order.quantity:.8g} {base} {order.type.lower()} {order.exchange}",
            "market" if order.price is None else currency_text(order.price, order.currency),
            f"{order.filled:.8g}",
            status,
            order.expires or "–",
            order.venue_id or "–",
            order.planned,
        )
    return table


def _risk(view: TradeStatusView) -> list[RenderableType]:
    """Positions and liquidity in one table: signed for the delta, added up for what the guard allows."""
    risk = view.risk
    if not risk.rows:
        return [Text("nothing is at risk" if view.complete else "the log has nothing at risk", style=QUIET)]
    table = Rows("symbol", "positions", "orders", "in LP", "delta", "delta in USD", "gross in USD", spare=("orders",))
    for row in risk.rows:
        base = Symbol(row.symbol).base
        amounts = (row.positions, row.pending, row.lp, row.delta)
        table.add_row(
            row.symbol,
            *(f"{amount:+.6g} {base}" if amount else "–" for amount in amounts),
            currency_text(row.delta_usd),
            currency_text(row.gross_usd),
        )
    table.add_row("all", "", "", "", "", currency_text(risk.delta_usd), currency_text(risk.gross_usd), style="bold")
    leverage = "unknown" if risk.leverage is None else f"{risk.leverage:.2f}×"
    over = risk.leverage is None or risk.leverage > risk.max_leverage
    line = Text.assemble(("leverage ", QUIET), (leverage, BAD if over else ""), f" of {risk.max_leverage:g}× allowed")
    return [table, line]


def _profit_facts(row: ProfitRowView) -> RenderableType:
    facts = grid()
    facts.add_row("net PnL", _gain(row.net_pnl))
    facts.add_row("trades", f"{row.trades}: {row.wins} won, {row.losses} lost")
    facts.add_row("win rate", percent_text(row.win_rate))
    facts.add_row("profit factor", ratio_text(row.profit_factor))
    facts.add_row("expectancy", describe_expectancy(row))
    facts.add_row("mean duration", hours_text(row.mean_duration_hours))
    facts.add_row("best, worst", f"{currency_text(row.best)}, {currency_text(row.worst)}")
    facts.add_row("gross PnL", currency_text(row.gross_pnl))
    facts.add_row("fees", currency_text(row.fees))
    facts.add_row("funding", currency_text(row.funding))
    facts.add_row("models", f"{currency_text(row.model_cost)}, not in the PnL")
    return facts


def _mandate_line(mandate: MandateView | None) -> Text:
    if mandate is None:
        return Text("none: paper only", style=QUIET)
    if not mandate.active:
        return Text(f"expired at {mandate.expires}: paper only", style=_WARN)
    return Text(f"{mandate.hash[:16]}… until {mandate.expires}")


def _mandate_facts(mandate: MandateView) -> RenderableType:
    facts = grid()
    facts.add_row("hash", mandate.hash)
    facts.add_row("symbols", ", ".join(mandate.symbols))
    facts.add_row("exchanges", ", ".join(mandate.venues))
    facts.add_row("margin per trade", f"at most {currency_text(mandate.max_margin_per_trade_usd)}")
    facts.add_row("margin per day", f"at most {currency_text(mandate.max_margin_per_day_usd)}")
    facts.add_row("daily loss", f"at most {currency_text(mandate.max_daily_loss_usd)}")
    facts.add_row("stops", "at the exchange" if mandate.stops == "venue" else "may be watched by the desk")
    facts.add_row("failed Judge", "rules may decide" if mandate.judge_fallback else "no new trade")
    facts.add_row("granted", mandate.granted)
    facts.add_row("expires", Text(mandate.expires, style="" if mandate.active else BAD))
    return facts


def _note_unconverted(row: ProfitRowView) -> list[Text]:
    if not row.unconverted:
        return []
    return [Text(f"note: {row.unconverted} trades in won are left out: no rate is known", style=QUIET)]


def _more(shown: int, total: int) -> list[Text]:
    return [Text(f"{shown} of {total}; --lines shows more", style=QUIET)] if shown < total else []


def _gain(amount: float | None, currency: str = "USD") -> Text:
    if amount is None:
        return Text("unknown", style=BAD)
    return Text(currency_text(amount, currency), style=GOOD if amount > 0 else BAD if amount < 0 else "")


def _exact(amount: str) -> str:
    """To the cent or finer, as it was booked; money that is only rounded for eyes says so by its dots."""
    number = Decimal(amount)
    return f"{number:,.2f}" if number == round(number, 2) else f"{number:,.6f}".rstrip("0")
