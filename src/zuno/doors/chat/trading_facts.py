"""The trading desk's views as facts."""

from __future__ import annotations

from collections.abc import Sequence

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
from zuno.trading.service.memory_view import LessonsView, MemoriesView, MemoryView, SearchView
from zuno.trading.service.runs_view import CycleWhyView, RunsView, RunView


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


def write_runs(view: RunsView, facts: FactWriter) -> ToolFacts:
    facts.line(facts.rows(view.runs, "runs, newest first"))
    for number, run in enumerate(view.runs[:MAX_ROWS], 1):
        own = f"r{number}"
        facts.id(run.run_id, run.symbol)
        facts.line(
            f"{own}: {run.symbol} {run.mode}, {run.state}",
            facts.words(f"{own}.id", run.run_id),
            facts.words(f"{own}.as_of", run.as_of),
            f"Judge {run.decision or 'none'}, ruling {run.ruling or 'none'}",
            f"regime {run.regime or 'none'}",
            f"vetoed by {facts.name(run.veto)}" if run.veto else "",
            facts.percent(f"{own}.allocation", run.allocation_pct),
            facts.number(f"{own}.leverage", run.leverage),
        )
    return facts.build()


def write_cycle_why(view: CycleWhyView, facts: FactWriter) -> ToolFacts:
    facts.id(view.run_id, view.symbol)
    facts.line(
        f"run of {view.symbol} {view.mode}, {view.state}",
        facts.words("id", view.run_id),
        facts.words("as_of", view.as_of),
    )
    for rule in view.rules[:MAX_ROWS]:
        facts.line(f"rule {rule.by} changed {rule.field}: {facts.stranger(rule.why)}")
    if view.run is not None:
        _write_run(view.run, facts)
        for computed in view.run.computed_notes:
            facts.line(facts.words("shown", computed))
    return facts.build(view.as_of)


def write_memories(view: MemoriesView, facts: FactWriter) -> ToolFacts:
    return _write_list(view.memories, "post-mortems of closed trades, newest first", facts)


def write_search(view: SearchView, facts: FactWriter) -> ToolFacts:
    return _write_list(view.memories, "post-mortems of trades like that, the best first", facts)


def write_lessons(view: LessonsView, facts: FactWriter) -> ToolFacts:
    facts.line(facts.rows(view.lessons, "lessons"))
    for number, lesson in enumerate(view.lessons[:MAX_ROWS], 1):
        facts.line(
            f"l{number}: {lesson.side}, {lesson.state}, {lesson.verdict}",
            facts.words(f"l{number}.condition", lesson.condition),
            facts.count(f"l{number}.cases", len(lesson.cases)),
            facts.words(f"l{number}.expires", lesson.expires),
            facts.stranger(lesson.text),
        )
    return facts.build()


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


def _write_list(memories: Sequence[MemoryView], title: str, facts: FactWriter) -> ToolFacts:
    facts.line(facts.rows(memories, title))
    for number, memory in enumerate(memories[:MAX_ROWS], 1):
        own = f"m{number}"
        facts.id(memory.id)
        facts.line(
            f"{own}: {memory.side} {memory.symbol}, {memory.verdict}",
            facts.words(f"{own}.id", memory.id),
            facts.words(f"{own}.closed", memory.closed),
            facts.number(f"{own}.r", memory.r, signed=True) + " R",
            f"outcome: {facts.stranger(memory.outcome)}",
            f"constraint: {facts.stranger(memory.constraint)}",
        )
    return facts.build()


def _write_run(run: RunView, facts: FactWriter) -> None:
    ruling, card = run.ruling, run.ruling.card
    facts.line(
        f"Judge {run.decision.decision}, ruling {ruling.decision}, regime {run.regime}",
        f"vetoed by {facts.name(ruling.veto)}" if ruling.veto else "",
        facts.percent("allocation", ruling.allocation_pct),
        facts.number("leverage", ruling.leverage),
    )
    if run.ev is not None:
        facts.line(facts.percent("ev", run.ev.ev_pct, signed=True) + " of the notional")
    if card is not None:
        facts.line(
            f"trade card: {card.side}",
            facts.price("entry_price", card.entry, "USD"),
            facts.price("stop_price", card.stop, "USD"),
            facts.price("target_price", card.target, "USD"),
            facts.usd("margin", card.margin_usd),
            facts.usd("loss_at_stop", card.loss_at_stop_usd),
            facts.number("reward_risk", card.reward_risk),
        )
    facts.line(f"the Judge's reason: {facts.stranger(run.decision.reasoning.final_logic)}")
    facts.line(f"the case against: {facts.stranger(run.decision.reasoning.counter_scenario) or 'none'}")
