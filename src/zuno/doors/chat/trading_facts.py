"""The trading desk's views as facts."""

from __future__ import annotations

from zuno.doors.chat.facts import MAX_ROWS, FactWriter, ToolFacts
from zuno.trading.service.account_view import (
    AccountView,
    DrawdownView,
    LocksView,
    PerformanceView,
    ProfitRowView,
    ProfitView,
    TradeBalanceView,
    TradePositionsView,
    TradeStatusView,
    TradesView,
)


def write_status(view: TradeStatusView, facts: FactWriter) -> ToolFacts:
    _write_account(view, facts)
    facts.line(facts.usd("equity", view.equity_usd), facts.usd("unrealised", view.unrealised_usd, signed=True))
    facts.line(
        facts.usd("net_pnl", view.net_pnl_usd, signed=True) + " of closed trades",
        facts.usd("today", view.today_usd, signed=True) + " closed since midnight UTC",
    )
    facts.line(
        facts.count("open_trades", view.open_trades),
        facts.count("open_orders", view.open_orders),
        facts.count("closed_trades", view.closed_trades),
    )
    facts.line(facts.number("leverage", view.risk.leverage), facts.number("max_leverage", view.risk.max_leverage))
    facts.line("a process is trading here" if view.running else "no process is trading here")
    if view.mandate is not None:
        facts.line(
            f"mandate {'active' if view.mandate.active else 'over'}",
            facts.words("mandate_expires", view.mandate.expires),
        )
    return facts.build(view.as_of)


def write_positions(view: TradePositionsView, facts: FactWriter) -> ToolFacts:
    _write_account(view, facts)
    facts.line(facts.rows(view.positions, "open trades"), facts.usd("unrealised", view.unrealised_usd, signed=True))
    for number, position in enumerate(view.positions[:MAX_ROWS], 1):
        facts.id(position.id, position.symbol)
        own = f"t{number}"
        facts.line(
            f"{own}: {position.side} {position.symbol} at {position.exchange}",
            facts.words(f"{own}.id", position.id),
            facts.number(f"{own}.quantity", position.quantity),
            facts.price(f"{own}.entry_price", position.entry, position.currency),
            facts.price(f"{own}.mark_price", position.mark, position.currency),
            facts.money(f"{own}.unrealised", position.unrealised, position.currency, signed=True),
            facts.percent(f"{own}.gain", position.gain_pct, signed=True),
            facts.number(f"{own}.r", position.r, signed=True) + " R",
            facts.price(f"{own}.stop_price", position.stop, position.currency),
            facts.price(f"{own}.target_price", position.target, position.currency),
            facts.money(f"{own}.margin", position.margin, position.currency),
            facts.number(f"{own}.leverage", position.leverage),
            facts.words(f"{own}.opened", position.opened),
        )
    return facts.build(view.as_of)


def write_trades(view: TradesView, facts: FactWriter) -> ToolFacts:
    _write_account(view, facts)
    facts.line(f"closed trades, newest first: {facts.count('count', view.total)}")
    for number, trade in enumerate(view.trades[:MAX_ROWS], 1):
        own = f"t{number}"
        facts.id(trade.decision)
        facts.line(
            f"{own}: {trade.side} {trade.symbol}, ended by {trade.exit_reason}",
            facts.price(f"{own}.entry_price", trade.entry, trade.currency),
            facts.price(f"{own}.exit_price", trade.exit, trade.currency),
            facts.money(f"{own}.net_pnl", trade.net_pnl, trade.currency, signed=True),
            facts.number(f"{own}.r", trade.r, signed=True) + " R",
            facts.money(f"{own}.fees", trade.fees, trade.currency),
            facts.money(f"{own}.funding", trade.funding, trade.currency, signed=True),
            facts.hours(f"{own}.held", trade.duration_hours),
            facts.words(f"{own}.closed", trade.closed),
            facts.words(f"{own}.run", trade.decision),
        )
    return facts.build(view.as_of)


def write_profit(view: ProfitView, facts: FactWriter) -> ToolFacts:
    _write_account(view, facts)
    _write_drawdown(view, facts)
    _write_row(view.whole, "all", "all closed trades", facts)
    for number, row in enumerate(view.groups[:MAX_ROWS], 1):
        _write_row(row, f"g{number}", facts.name(row.name), facts)
    return facts.build(view.as_of)


def write_performance(view: PerformanceView, facts: FactWriter) -> ToolFacts:
    _write_account(view, facts)
    facts.line(
        facts.usd("start", view.start_usd),
        facts.usd("equity", view.equity_usd),
        facts.percent("return", view.return_pct, signed=True),
    )
    _write_drawdown(view, facts)
    _write_row(view.whole, "all", "all closed trades", facts)
    return facts.build(view.as_of)


def write_balance(view: TradeBalanceView, facts: FactWriter) -> ToolFacts:
    _write_account(view, facts)
    facts.line(facts.usd("equity", view.equity_usd))
    for purse in view.purses:
        own = purse.exchange.lower()
        facts.line(
            f"at {own}",
            facts.money(f"{own}.cash", purse.cash, purse.currency),
            facts.money(f"{own}.margin", purse.margin, purse.currency),
            facts.money(f"{own}.unrealised", purse.unrealised, purse.currency, signed=True),
            facts.money(f"{own}.equity", purse.equity, purse.currency),
            facts.money(f"{own}.free", purse.free, purse.currency),
        )
    return facts.build(view.as_of)


def write_locks(view: LocksView, facts: FactWriter) -> ToolFacts:
    _write_account(view, facts)
    if not view.protections:
        facts.line("nothing keeps the desk from new trades")
    return facts.build(view.as_of)


def _write_account(view: AccountView, facts: FactWriter) -> None:
    market = "a synthetic market" if view.synthetic else "a live market" if view.live else "a recorded market"
    place = "recorded time, at its own last moment" if view.recorded else market
    facts.line(f"{view.mode} account on {place}", facts.words("as_of", view.as_of))
    for number, lock in enumerate(view.protections[:MAX_ROWS], 1):
        facts.line(
            f"locked by {lock.protection}" + (f" for {lock.symbol}" if lock.symbol else ""),
            facts.words(f"lock{number}_ends", lock.ends),
            facts.stranger(lock.reason),
        )


def _write_drawdown(view: DrawdownView, facts: FactWriter) -> None:
    facts.line(
        "of the equity",
        facts.usd("max_drawdown", view.max_drawdown_usd),
        facts.percent("max_drawdown_pct", view.max_drawdown_pct),
        facts.words("peak_at", view.peak_at),
        facts.words("trough_at", view.trough_at),
    )


def _write_row(row: ProfitRowView, own: str, title: str, facts: FactWriter) -> None:
    facts.line(
        f"{own}: {title}",
        facts.count(f"{own}.trades", row.trades),
        facts.count(f"{own}.wins", row.wins),
        facts.count(f"{own}.losses", row.losses),
        facts.share(f"{own}.win_rate", row.win_rate),
        facts.usd(f"{own}.net_pnl", row.net_pnl, signed=True),
        facts.number(f"{own}.profit_factor", row.profit_factor),
        facts.usd(f"{own}.expectancy_usd", row.expectancy_usd, signed=True) + " a trade",
        facts.number(f"{own}.expectancy", row.expectancy_r, signed=True) + " R a trade, each counted alike",
        facts.hours(f"{own}.mean_duration", row.mean_duration_hours),
        facts.usd(f"{own}.fees", row.fees),
        facts.usd(f"{own}.funding", row.funding, signed=True),
        facts.usd(f"{own}.best", row.best, signed=True),
        facts.usd(f"{own}.worst", row.worst, signed=True),
    )
