"""Read models as Telegram messages: one place that knows which view is said how."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from zuno.doors.telegram import (
    learning_messages,
    plan_messages,
    run_messages,
)
from zuno.doors.telegram.reply import Button, Reply
from zuno.doors.telegram.terminal_words import chat_command, translate_commands
from zuno.kernel.view import View
from zuno.lp.service.archive import PlanDiffView, PlanListView, WhyView
from zuno.lp.service.execution_view import ApprovalView, ExecutionView, SimulationView, UnsignedView
from zuno.lp.service.plan_view import PlanView
from zuno.present.document import Document, Documented
from zuno.present.html import to_html
from zuno.trading.service.memory_view import ForgottenView, LessonsView, MemoriesView, PostMortemView, SearchView
from zuno.trading.service.runs_view import CycleWhyView, RunsView, RunView


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


MESSAGES: Final[Mapping[type, Callable[[Any], Reply]]] = {
    RunView: run_messages.show_run,
    CycleWhyView: run_messages.show_why,
    RunsView: run_messages.show_runs,
    MemoriesView: learning_messages.show_memories,
    SearchView: learning_messages.show_search,
    PostMortemView: learning_messages.show_post_mortem,
    LessonsView: learning_messages.show_lessons,
    ForgottenView: learning_messages.show_forgotten,
    PlanView: plan_messages.show_plan,
    PlanListView: plan_messages.show_plan_list,
    WhyView: plan_messages.show_debate,
    PlanDiffView: plan_messages.show_plan_diff,
    SimulationView: plan_messages.show_simulation,
    ApprovalView: plan_messages.show_approval,
    ExecutionView: plan_messages.show_execution,
    UnsignedView: plan_messages.show_unsigned,
}
"""A view is looked up by its class, then by what it is a kind of."""
