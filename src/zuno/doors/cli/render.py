"""Read models as tables for people; colours only where a terminal can show them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from rich.console import Group, RenderableType
from rich.text import Text

from zuno.doors.cli.layout import BAD, GOOD, QUIET, Rows, console, heading, notes_block
from zuno.kernel.numbers_text import time_text

if TYPE_CHECKING:
    from zuno.doors.cli.demo_tour import CarriedOut, DemoOpening
    from zuno.journal.audit import JournalTailView, JournalVerdictView
    from zuno.journal.decision_view import JournalUpgradeView
    from zuno.kernel.view import ReplayView, View
    from zuno.lp.service.mesh_peer import PeerEndView


def render(view: View) -> None:
    """Print a read model."""
    if type(view).__name__ == "ExportView":
        import sys

        from zuno.doors.cli.system_screens import csv_text
        from zuno.doors.export import ExportView

        assert isinstance(view, ExportView)
        sys.stdout.write(csv_text(view))
        return
    screen = console()
    screen.print(_render_view(view))
    if type(view).__name__ == "UnsignedView":
        from zuno.doors.cli.plan_screens import copyable_lines
        from zuno.lp.service.execution_view import UnsignedView

        assert isinstance(view, UnsignedView)
        for title, line in copyable_lines(view):
            screen.print(heading(title))
            screen.print(Text(line), soft_wrap=True)


def _render_view(view: View) -> RenderableType:
    return _find_screen(type(view))(view)


def _find_screen(kind: type[View]) -> Callable[[Any], RenderableType]:
    for name in (known.__name__ for known in kind.__mro__):
        if name in _SCREENS:
            return _SCREENS[name]
        if name in _SCREENS_ELSEWHERE:
            module, screen = _SCREENS_ELSEWHERE[name]
            found: Callable[[Any], RenderableType] = getattr(import_module(f"zuno.doors.cli.{module}"), screen)
            return found
    raise TypeError(f"no screen for {kind.__name__}")


def _show_journal_verdict(view: JournalVerdictView) -> RenderableType:
    entries = f"{view.entries:,} {'entry' if view.entries == 1 else 'entries'}"
    if view.first_bad is None:
        told = Text(f"The journal is whole: {entries}, each chained to the one before and signed.", style=GOOD)
    else:
        where = "" if view.first_bad.seq is None else f" at entry {view.first_bad.seq}"
        told = Text(f"The journal is BROKEN{where}: {view.first_bad.reason}. ", style=BAD)
        told.append(f"{entries} before that hold.", style=QUIET)
    return Group(told, *notes_block(view.notes))


def _show_journal_tail(view: JournalTailView) -> RenderableType:
    if not view.entries:
        return Text("The journal is empty.")
    table = Rows("entry", "time", "kind", "request", "by", "hash", spare=("hash", "request"))
    for entry in view.entries:
        table.add_row(
            str(entry.seq),
            time_text(entry.at // 1_000),
            entry.kind,
            entry.request_id or "",
            entry.role,
            entry.hash[:12],
        )
    return table


def _show_journal_upgrade(view: JournalUpgradeView) -> RenderableType:
    views = f"{view.stored:,} {'view' if view.stored == 1 else 'views'}"
    return Group(Text(f"{views} of finished runs and plans stored."), *notes_block(view.not_stored))


def _show_replay(view: ReplayView) -> RenderableType:
    by = f"decided by {view.code_then}, replayed by {view.code_now}"
    match view.identical, view.ok:
        case True, _:
            told = Text(f"Identical: {view.hash}", style=GOOD)
        case False, _:
            told = Text(f"NOT identical: {view.hash} then, {view.replayed_hash} now", style=BAD)
        case None, holds:
            by = f"decided by {view.code_then} in edition {view.edition}, by other rules than today's: not argued again"
            told = Text(
                f"The record {'holds' if holds else 'does NOT hold'}: {view.hash}", style=GOOD if holds else BAD
            )
    shown = [f"shown differently by today's code: {difference}" for difference in view.view_differences]
    return Group(told, Text(by, style=QUIET), *notes_block((*view.differences, *shown)))


def _show_carried_out(view: CarriedOut) -> RenderableType:
    return Group(
        heading("The plan, approved and applied"), _render_view(view.execution), Text(), _render_view(view.after)
    )


def _show_demo_opening(view: DemoOpening) -> RenderableType:
    return Group(
        _render_view(view.pools),
        _render_view(view.before),
        _render_view(view.move),
        _render_view(view.after),
        Text("\nPosition 1 is at its edge. The desk argues:", style=QUIET),
    )


def _show_end(view: Any) -> RenderableType:
    return Text(view.said)


def _show_peer_end(view: PeerEndView) -> RenderableType:
    return Text(view.text)


# By the names of the views, so that a command loads the screens of its own answer and no others.
_SCREENS: Final[Mapping[str, Callable[[Any], RenderableType]]] = {
    "JournalVerdictView": _show_journal_verdict,
    "JournalTailView": _show_journal_tail,
    "JournalUpgradeView": _show_journal_upgrade,
    "ReplayView": _show_replay,
    "CarriedOut": _show_carried_out,
    "DemoOpening": _show_demo_opening,
    "PeerEndView": _show_peer_end,
    "StoppedView": _show_end,
    "DownView": _show_end,
    "UpEndView": _show_end,
    "DeskStopView": _show_end,
}
_SCREENS_ELSEWHERE: Final[Mapping[str, tuple[str, str]]] = {
    "PoolsView": ("lp_screens", "show_pools"),
    "PoolView": ("lp_screens", "show_pool"),
    "PositionsView": ("lp_screens", "show_positions"),
    "InspectView": ("lp_screens", "show_inspect"),
    "PnlView": ("lp_screens", "show_pnl"),
    "MoveView": ("lp_screens", "show_move"),
    "ResetView": ("lp_screens", "show_reset"),
    "NodeView": ("lp_screens", "show_node"),
    "WalletView": ("lp_screens", "show_wallet"),
    "WalletsView": ("lp_screens", "show_wallets"),
    "BalancesView": ("lp_screens", "show_balances"),
    "AllowancesView": ("lp_screens", "show_allowances"),
    "PlanView": ("lp_screens", "show_plan"),
    "PlanListView": ("lp_screens", "show_plan_list"),
    "WhyView": ("lp_screens", "show_why"),
    "PlanDiffView": ("lp_screens", "show_plan_diff"),
    "ParseView": ("shell_screens", "show_reading"),
    "AgentsView": ("shell_screens", "render_agents"),
    "WhatIfView": ("portfolio_screens", "show_whatif"),
    "ClosedPositionsView": ("portfolio_screens", "show_closed"),
    "PortfolioView": ("portfolio_screens", "show_portfolio"),
    "AlertsView": ("alert_screens", "show_alerts"),
    "AnsweredView": ("alert_screens", "show_answer"),
    "RuleView": ("alert_screens", "show_rule"),
    "TelegramEndView": ("telegram_screens", "show_end"),
    "TelegramSetupView": ("telegram_screens", "show_setup"),
    "WebEndView": ("web_screens", "show_web_end"),
    "WebLinkView": ("web_screens", "show_link"),
    "WebLoginView": ("web_screens", "show_token"),
    "WebLoginsView": ("web_screens", "show_logins"),
    "WebAllowanceView": ("web_screens", "show_allowance"),
    "TickView": ("alert_screens", "show_tick"),
    "DataStatusView": ("data_screens", "show_data"),
    "FeaturesView": ("trade_screens", "show_features"),
    "BookView": ("book_screens", "show_book"),
    "ChartView": ("trade_screens", "show_chart"),
    "RunView": ("cycle_screens", "show_run"),
    "CycleWhyView": ("cycle_screens", "show_why"),
    "RunsView": ("cycle_screens", "show_runs"),
    "MemoriesView": ("memory_screens", "show_memories"),
    "SearchView": ("memory_screens", "show_search"),
    "PostMortemView": ("memory_screens", "show_post_mortem"),
    "LessonsView": ("memory_screens", "show_lessons"),
    "ForgottenView": ("memory_screens", "show_forgotten"),
    "DataCheckView": ("data_screens", "show_check"),
    "SynthView": ("data_screens", "show_synth"),
    "RoundView": ("data_screens", "show_round"),
    "CollectedView": ("data_screens", "show_collected"),
    "DownloadView": ("data_screens", "show_download"),
    "ImportView": ("data_screens", "show_import"),
    "MeshTableView": ("mesh_screens", "show_table"),
    "MeshView": ("mesh_screens", "show_mesh"),
    "PingView": ("mesh_screens", "show_ping"),
    "SimulationView": ("plan_screens", "show_simulation"),
    "ExecutionView": ("plan_screens", "show_execution"),
    "UnsignedView": ("plan_screens", "show_unsigned"),
    "DeskRunView": ("desk_screens", "show_desk_run"),
    "TradeStatusView": ("account_screens", "show_status"),
    "TradePositionsView": ("account_screens", "show_positions"),
    "TradeOrdersView": ("account_screens", "show_orders"),
    "FillsView": ("account_screens", "show_fills"),
    "TradesView": ("account_screens", "show_trades"),
    "LedgerView": ("account_screens", "show_ledger"),
    "TradeBalanceView": ("account_screens", "show_balance"),
    "ProfitView": ("account_screens", "show_profit"),
    "PerformanceView": ("account_screens", "show_performance"),
    "LocksView": ("account_screens", "show_locks"),
    "MandateStateView": ("account_screens", "show_mandate"),
    "ActionView": ("account_screens", "show_action"),
    "EvaluationView": ("learning_screens", "show_evaluation"),
    "TradeCalibrationView": ("learning_screens", "show_calibration"),
    "VetoesView": ("learning_screens", "show_vetoes"),
    "DoctorView": ("system_screens", "show_doctor"),
    "LogsView": ("system_screens", "show_logs"),
}
