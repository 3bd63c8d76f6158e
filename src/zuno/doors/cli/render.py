"""Read models as tables for people; colours only where a terminal can show them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from rich.console import Group, RenderableType
from rich.text import Text

from zuno.doors.cli.layout import console, heading
from zuno.doors.cli.screen import paint_document, print_document
from zuno.present.document import Documented

if TYPE_CHECKING:
    from zuno.doors.cli.demo_tour import CarriedOut
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


def _show_carried_out(view: CarriedOut) -> RenderableType:
    after = replace(view.after.to_document(), acts=())
    return Group(
        heading("The plan, approved and applied"),
        _render_view(view.execution),
        Text(),
        Text.from_ansi(paint_document(after)),
    )


# By the names of the views, so that a command loads the screens of its own answer and no others.
_SCREENS: Final[Mapping[str, Callable[[Any], RenderableType]]] = {
    "CarriedOut": _show_carried_out,
}
_SCREENS_ELSEWHERE: Final[Mapping[str, tuple[str, str]]] = {
    "PlanView": ("lp_screens", "show_plan"),
    "PlanListView": ("lp_screens", "show_plan_list"),
    "WhyView": ("lp_screens", "show_why"),
    "PlanDiffView": ("lp_screens", "show_plan_diff"),
    "FeaturesView": ("trade_screens", "show_features"),
    "ChartView": ("trade_screens", "show_chart"),
    "RunView": ("cycle_screens", "show_run"),
    "CycleWhyView": ("cycle_screens", "show_why"),
    "RunsView": ("cycle_screens", "show_runs"),
    "MemoriesView": ("memory_screens", "show_memories"),
    "SearchView": ("memory_screens", "show_search"),
    "PostMortemView": ("memory_screens", "show_post_mortem"),
    "LessonsView": ("memory_screens", "show_lessons"),
    "ForgottenView": ("memory_screens", "show_forgotten"),
    "StudyView": ("lab_screens", "show_study"),
    "MemoryStudyView": ("lab_screens", "show_memory_study"),
    "LpLabView": ("lab_screens", "show_lp_lab"),
    "LpAblationView": ("lab_screens", "show_lp_ablation"),
    "SweepView": ("lab_screens", "show_sweep"),
    "TradeLabView": ("lab_screens", "show_trade_lab"),
    "LabReportsView": ("lab_screens", "show_reports"),
    "InvarianceView": ("lab_check_screens", "show_invariance"),
    "LookaheadView": ("lab_check_screens", "show_lookahead"),
    "NoEdgeView": ("lab_check_screens", "show_no_edge"),
    "SimulationView": ("plan_screens", "show_simulation"),
    "ExecutionView": ("plan_screens", "show_execution"),
    "UnsignedView": ("plan_screens", "show_unsigned"),
}
