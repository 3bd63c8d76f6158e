"""Read models as Telegram messages: one place that knows which view is said how."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from zuno.doors.telegram import (
    account_messages,
    learning_messages,
    lp_messages,
    run_messages,
)
from zuno.doors.telegram.layout import text
from zuno.doors.telegram.reply import Button, Reply
from zuno.doors.telegram.terminal_words import chat_command, translate_commands
from zuno.kernel.view import View
from zuno.lp.service.portfolio import PortfolioView
from zuno.lp.service.views import InspectView, PnlView, PositionsView, WhatIfView
from zuno.lp.watch.alerts import AlertsView, AnsweredView, RuleView
from zuno.present.document import Document, Documented
from zuno.present.html import to_html
from zuno.trading.service.account_view import (
    ActionView,
    FillsView,
    LocksView,
    MandateStateView,
    PerformanceView,
    ProfitView,
    TradeBalanceView,
    TradeOrdersView,
    TradePositionsView,
    TradeStatusView,
    TradesView,
)
from zuno.trading.service.learning_view import EvaluationView, TradeCalibrationView, VetoesView
from zuno.trading.service.memory_view import ForgottenView, LessonsView, MemoriesView, PostMortemView, SearchView
from zuno.trading.service.runs_view import CycleWhyView, RunsView, RunView
from zuno.trading.service.trade_desk import DeskStopView


def render(view: View) -> Reply:
    """A view as a message; a picture or a page is added by whoever has it."""
    if isinstance(view, Documented):
        return render_document(view.to_document())
    for kind in type(view).__mro__:
        if kind in MESSAGES:
            return MESSAGES[kind](view)
    raise TypeError(f"no message for {type(view).__name__}")


def render_document(document: Document) -> Reply:
    acts = ((act.label, chat_command(act.command)) for act in document.acts)
    buttons = tuple(Button(label, command) for label, command in acts if command is not None)
    return Reply(to_html(document, translate_commands), buttons)


def show_desk_stop(view: DeskStopView) -> Reply:
    return Reply(text(view.said))


MESSAGES: Final[Mapping[type, Callable[[Any], Reply]]] = {
    TradeStatusView: account_messages.show_status,
    TradePositionsView: account_messages.show_positions,
    TradeOrdersView: account_messages.show_orders,
    FillsView: account_messages.show_fills,
    TradesView: account_messages.show_trades,
    TradeBalanceView: account_messages.show_balance,
    ProfitView: account_messages.show_profit,
    PerformanceView: account_messages.show_performance,
    LocksView: account_messages.show_locks,
    MandateStateView: account_messages.show_mandate,
    ActionView: account_messages.show_action,
    RunView: run_messages.show_run,
    CycleWhyView: run_messages.show_why,
    RunsView: run_messages.show_runs,
    MemoriesView: learning_messages.show_memories,
    SearchView: learning_messages.show_search,
    PostMortemView: learning_messages.show_post_mortem,
    LessonsView: learning_messages.show_lessons,
    ForgottenView: learning_messages.show_forgotten,
    EvaluationView: learning_messages.show_evaluation,
    TradeCalibrationView: learning_messages.show_calibration,
    VetoesView: learning_messages.show_vetoes,
    PositionsView: lp_messages.show_positions,
    InspectView: lp_messages.show_inspect,
    PnlView: lp_messages.show_pnl,
    WhatIfView: lp_messages.show_whatif,
    PortfolioView: lp_messages.show_portfolio,
    AlertsView: lp_messages.show_alerts,
    AnsweredView: lp_messages.show_answer,
    RuleView: lp_messages.show_rule,
    DeskStopView: show_desk_stop,
}
"""A view is looked up by its class, then by what it is a kind of."""
