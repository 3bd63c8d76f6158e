"""Read models as tables for people; colours only where a terminal can show them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from rich.console import Group, RenderableType
from rich.text import Text

from zuno.doors.cli.layout import QUIET, console, heading
from zuno.doors.cli.screen import paint_document, print_document
from zuno.present.document import Documented

if TYPE_CHECKING:
    from zuno.doors.cli.demo_tour import CarriedOut, DemoOpening
    from zuno.kernel.view import View


def render(view: View) -> None:
    """Print a read model."""
    if type(view).__name__ == "ExportView":
        import sys

        from zuno.doors.export import ExportView, csv_text

        assert isinstance(view, ExportView)
        sys.stdout.write(csv_text(view))
        return
    if isinstance(view, Documented):
        print_document(view.to_document())
        return
    console().print(_render_view(view))


def _render_view(view: View) -> RenderableType:
    if isinstance(view, Documented):
        return Text.from_ansi(paint_document(view.to_document()))
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


# By the names of the views, so that a command loads the screens of its own answer and no others.
_SCREENS: Final[Mapping[str, Callable[[Any], RenderableType]]] = {
    "CarriedOut": _show_carried_out,
    "DemoOpening": _show_demo_opening,
    "StoppedView": _show_end,
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
    "WhatIfView": ("portfolio_screens", "show_whatif"),
    "ClosedPositionsView": ("portfolio_screens", "show_closed"),
    "PortfolioView": ("portfolio_screens", "show_portfolio"),
    "AlertsView": ("alert_screens", "show_alerts"),
    "AnsweredView": ("alert_screens", "show_answer"),
    "RuleView": ("alert_screens", "show_rule"),
    "TickView": ("alert_screens", "show_tick"),
}
