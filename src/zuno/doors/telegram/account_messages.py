"""A trading account in a chat. Whose money it is stands first, then what keeps it from new risk."""

from __future__ import annotations

from zuno.doors.telegram.layout import bold, code, command, fact, italic, join, note, paragraphs, table, text, warning
from zuno.doors.telegram.reply import Button, Reply
from zuno.kernel.numbers_text import currency_text, hours_text, percent_text, ratio_text, sparkline
from zuno.trading.model.market import Symbol
from zuno.trading.model.trade_events import PAPER_WORD, account_word
from zuno.trading.service.account_view import (
    AccountView,
    ActionView,
    ExchangeBalanceView,
    FillsView,
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

_CURVE_WIDTH = 30


def show_status(view: TradeStatusView) -> Reply:
    equity = currency_text(view.equity_usd) if view.unknown is None else f"unknown: {view.unknown}"
    facts = join(
        fact("desk", view.running or "not running"),
        fact("equity", equity),
        fact("unrealised PnL", currency_text(view.unrealised_usd)),
        fact("realised PnL", currency_text(view.net_pnl_usd)),
        fact("today", currency_text(view.today_usd)),
        fact("trades", f"{view.open_trades} open, {view.closed_trades} closed, {view.open_orders} orders open"),
        fact("mandate", _mandate_line(view.mandate)),
    )
    word = account_word(view.account)
    named = (("Positions", "/status"), ("Profit", "/profit"), ("Balance", "/balance"))
    buttons = tuple(Button(label, f"{words} {word}".rstrip()) for label, words in named)
    return _message(view, "Trading status", facts, join(bold("Risk book"), _risk(view)), buttons=buttons)


def show_positions(view: TradePositionsView) -> Reply:
    if not view.positions:
        return _message(view, "Positions", "no position is open")
    total = fact("unrealised PnL", currency_text(view.unrealised_usd))
    return _message(view, "Positions", *map(_position, view.positions), total)


def show_position_table(view: TradePositionsView) -> Reply:
    """One line for each position."""
    if not view.positions:
        return _message(view, "Positions", "no position is open")
    rows = [
        (
            f"{position.side} {Symbol(position.symbol).base}",
            currency_text(position.entry, position.currency),
            currency_text(position.unrealised, position.currency),
            ratio_text(position.r) if position.r is None else f"{position.r:+.2f}",
        )
        for position in view.positions
    ]
    total = fact("unrealised PnL", currency_text(view.unrealised_usd))
    return _message(view, "Positions", table(("position", "entry", "PnL", "R"), rows, spare=("R",)), total)


def show_orders(view: TradeOrdersView) -> Reply:
    if not view.orders and not view.manual:
        return _message(view, "Orders", "no order is open")
    manual = [
        f"{bold(f'{order.side} {order.quantity:.6g} {Symbol(order.symbol).base} {order.exchange}')} "
        f"{text(currency_text(order.price, order.currency))} {code(order.id)}"
        for order in view.manual
    ]
    by_hand = join(bold("Written by hand"), *manual) if manual else ""
    return _message(view, "Orders", *map(_order, view.orders), by_hand)


def show_fills(view: FillsView) -> Reply:
    if not view.fills:
        return _message(view, "Fills", "nothing was filled yet")
    rows = [
        (
            fill.at[5:16].replace("T", " "),
            f"{fill.side} {fill.quantity:.8g} {Symbol(fill.symbol).base}",
            currency_text(fill.price, fill.currency),
        )
        for fill in view.fills
    ]
    return _message(
        view, "Fills", table(("time", "fill", "price"), rows, left=("fill",)), _more(len(view.fills), view.total)
    )


def show_trades(view: TradesView) -> Reply:
    if not view.trades:
        return _message(view, "Closed trades", "no trade was closed yet")
    rows = [
        (
            trade.closed[5:10],
            f"{trade.side} {Symbol(trade.symbol).base}",
            currency_text(trade.net_pnl, trade.currency),
            "–" if trade.r is None else f"{trade.r:+.2f}",
            trade.exit_reason,
        )
        for trade in view.trades
    ]
    listed = table(("closed", "trade", "net PnL", "R", "exit"), rows, spare=("exit",), left=("trade", "exit"))
    return _message(view, "Closed trades", listed, _more(len(view.trades), view.total))


def show_balance(view: TradeBalanceView) -> Reply:
    whole = f"unknown: {view.unknown}" if view.unknown else currency_text(view.equity_usd)
    return _message(view, "Balance", *map(_show_exchange_balance, view.purses), fact("equity in USD", whole))


def show_profit(view: ProfitView) -> Reply:
    title = "Profit of closed trades" + ("" if view.by is None else f" by {view.by}")
    if not view.whole.trades:
        return _message(view, title, "no trade was closed yet", _note_unconverted(view.whole))
    drawdown = fact("max drawdown of the equity", describe_drawdown(view))
    if not view.groups:
        return _message(view, title, _profit_facts(view.whole), drawdown, _note_unconverted(view.whole))
    rows = [
        (
            row.name,
            str(row.trades),
            percent_text(row.win_rate).replace(" ", ""),
            currency_text(row.net_pnl),
            currency_text(row.expectancy_usd),
            ratio_text(row.expectancy_r),
        )
        for row in (*view.groups, view.whole)
    ]
    columns = (view.by or "", "n", "won", "net PnL", "mean", "R")
    grouped = table(columns, rows, spare=("R", "mean", "won"))
    return _message(view, title, grouped, drawdown, _note_unconverted(view.whole))


def show_performance(view: PerformanceView) -> Reply:
    if not view.points:
        return _message(view, "Performance", "nothing was traded yet: there is no curve")
    change = "" if view.return_pct is None else f" ({view.return_pct:+.2f} %)"
    facts = join(
        fact("equity", f"{currency_text(view.start_usd)} → {currency_text(view.equity_usd)}{change}"),
        fact("max drawdown", describe_drawdown(view)),
        code(sparkline([point.equity_usd for point in view.points], _CURVE_WIDTH)),
    )
    whole = join(bold("Closed trades"), _profit_facts(view.whole)) if view.whole.trades else ""
    return _message(view, "Performance", facts, whole, _note_unconverted(view.whole))


def show_locks(view: LocksView) -> Reply:
    if not view.protections:
        return _message(view, "Locks", "nothing is locked: new trades may be opened")
    unlock = f"/unlock {account_word(view.account)}".rstrip()
    return _message(view, "Locks", f"{command(unlock)} lifts them", buttons=(Button("Unlock…", unlock),))


def show_mandate(view: MandateStateView) -> Reply:
    facts = "" if view.mandate is None else _mandate_facts(view.mandate)
    return _message(view, "Mandate", text(view.said), facts)


def show_action(view: ActionView) -> Reply:
    said = join(*map(text, view.said))
    left = [_position(position) for position in view.positions] or ["no position is open"]
    orders = [bold("Orders"), *map(_order, view.orders)] if view.orders else []
    return _message(view, "Positions", *left, *orders, before=said)


# -- parts


def account_label(view: AccountView) -> str:
    """Whose money: a paper account on a synthetic market is marked as both, and one of several by its name."""
    label = f"SYNTHETIC {view.mode.upper()}" if view.synthetic else view.mode.upper()
    name = account_word(view.account).removeprefix(PAPER_WORD) if view.mode == "paper" else ""
    return f"{label} {name}".rstrip()


def _message(view: AccountView, title: str, *parts: str, buttons: tuple[Button, ...] = (), before: str = "") -> Reply:
    locks = [
        f"🔒 LOCKED {'' if lock.symbol is None else text(lock.symbol) + ' '}"
        f"by {text(lock.protection)} {text(lock.ends)}: {text(lock.reason)}"
        for lock in view.protections
    ]
    head = join(bold(f"{account_label(view)} · {title}"), italic(f"as of {view.as_of} · {view.market}"), *locks)
    return Reply(paragraphs(before, head, *parts, join(*map(note, view.notes))), buttons)


def _position(position: TradePositionView) -> str:
    base, money = Symbol(position.symbol).base, position.currency
    marked = " (exploration)" if position.exploration else ""
    levels = "at the exchange" if position.stop_order else "by hand" if position.manual else "watched"
    gain = "" if position.gain_pct is None else f", {position.gain_pct:+.2f} %"
    r = "" if position.r is None else f", {position.r:+.2f} R"
    stop = "–" if position.stop is None else currency_text(position.stop, money)
    target = "–" if position.target is None else currency_text(position.target, money)
    return join(
        f"{bold(f'{position.side} {position.quantity:.6g} {base} {position.leverage:g}× {position.exchange}')}"
        f"{marked} {code(position.id)}",
        fact("entry", f"{currency_text(position.entry, money)}, mark {currency_text(position.mark, money)}"),
        fact("unrealised", f"{currency_text(position.unrealised, money)}{gain}{r}"),
        fact("stop", f"{stop}, target {target}, {levels}"),
        "" if position.hold_until is None else fact("hold until", position.hold_until),
        fact("margin", currency_text(position.margin, money)),
    )


def _order(order: TradeOrderView) -> str:
    base = Symbol(order.symbol).base
    price = "market" if order.price is None else currency_text(order.price, order.currency)
    status = f"{order.status}: {order.reason}" if order.reason else order.status
    return join(
        f"{bold(f'{order.purpose} {order.side} {order.quantity:.8g} {base} {order.exchange}')} {code(order.id)}",
        fact("price", f"{price} {order.type.lower()}" if order.price is not None else price),
        fact("filled", f"{order.filled:.8g}, {status}"),
        "" if order.expires is None else fact("expires", order.expires),
    )


def _show_exchange_balance(purse: ExchangeBalanceView) -> str:
    def money(amount: float | None) -> str:
        return currency_text(amount, purse.currency)

    short = "" if purse.free is None or purse.free >= 0 else " (missing)"
    return join(
        bold(f"{purse.exchange}, {purse.currency}"),
        fact("equity", money(purse.equity)),
        fact("free", money(purse.free) + short),
        fact("cash", f"{money(purse.cash)}, margin {money(purse.margin)}, pending {money(purse.pending_margin)}"),
        fact("coins at cost", money(purse.inventory)) if purse.inventory else "",
        fact("unrealised", money(purse.unrealised)),
    )


def _risk(view: TradeStatusView) -> str:
    risk = view.risk
    if not risk.rows:
        return "nothing is at risk" if view.complete else "the log has nothing at risk"
    rows = [
        (Symbol(row.symbol).base, f"{row.delta:+.6g}", currency_text(row.delta_usd), currency_text(row.gross_usd))
        for row in risk.rows
    ]
    rows.append(("all", "", currency_text(risk.delta_usd), currency_text(risk.gross_usd)))
    in_lp = [f"{row.lp:+.6g} {Symbol(row.symbol).base}" for row in risk.rows if row.lp]
    leverage = "unknown" if risk.leverage is None else f"{risk.leverage:.2f}×"
    over = risk.leverage is None or risk.leverage > risk.max_leverage
    line = f"leverage {leverage} of {risk.max_leverage:g}× allowed"
    return join(
        table(("", "delta", "in USD", "gross"), rows, spare=("delta",)),
        fact("of it in LP", ", ".join(in_lp)) if in_lp else "",
        warning(line) if over else text(line),
    )


def _profit_facts(row: ProfitRowView) -> str:
    return join(
        fact("net PnL", currency_text(row.net_pnl)),
        fact("trades", f"{row.trades}: {row.wins} won, {row.losses} lost"),
        fact("win rate", percent_text(row.win_rate)),
        fact("profit factor", ratio_text(row.profit_factor)),
        fact("expectancy", describe_expectancy(row)),
        fact("mean duration", hours_text(row.mean_duration_hours)),
        fact("best, worst", f"{currency_text(row.best)}, {currency_text(row.worst)}"),
        fact("gross PnL", currency_text(row.gross_pnl)),
        fact("fees", f"{currency_text(row.fees)}, funding {currency_text(row.funding)}"),
        fact("models", f"{currency_text(row.model_cost)}, not in the PnL"),
    )


def _mandate_line(mandate: MandateView | None) -> str:
    if mandate is None:
        return "none: paper only"
    if not mandate.active:
        return f"expired at {mandate.expires}: paper only"
    return f"{mandate.hash[:16]}… until {mandate.expires}"


def _mandate_facts(mandate: MandateView) -> str:
    return join(
        f"{bold('hash')}: {code(mandate.hash)}",
        fact("symbols", ", ".join(mandate.symbols)),
        fact("exchanges", ", ".join(mandate.venues)),
        fact("margin per trade", f"at most {currency_text(mandate.max_margin_per_trade_usd)}"),
        fact("margin per day", f"at most {currency_text(mandate.max_margin_per_day_usd)}"),
        fact("daily loss", f"at most {currency_text(mandate.max_daily_loss_usd)}"),
        fact("stops", "at the exchange" if mandate.stops == "venue" else "may be watched by the desk"),
        fact("failed Judge", "rules may decide" if mandate.judge_fallback else "no new trade"),
        fact("granted", mandate.granted),
        fact("expires", mandate.expires if mandate.active else f"{mandate.expires}, past"),
    )


def _note_unconverted(row: ProfitRowView) -> str:
    return note(f"{row.unconverted} trades in won are left out: no rate is known") if row.unconverted else ""


def _more(shown: int, total: int) -> str:
    return italic(f"{shown} of {total}") if shown < total else ""
