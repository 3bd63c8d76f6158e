"""Read models as Telegram messages: one place that knows which view is said how."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from zuno.doors.telegram import (
    lp_messages,
)
from zuno.doors.telegram.reply import Button, Reply
from zuno.doors.telegram.terminal_words import chat_command, translate_commands
from zuno.kernel.view import View
from zuno.lp.service.portfolio import PortfolioView
from zuno.lp.service.views import InspectView, PnlView, PositionsView, WhatIfView
from zuno.lp.watch.alerts import AlertsView, AnsweredView, RuleView
from zuno.present.document import Document, Documented
from zuno.present.html import to_html


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
    PositionsView: lp_messages.show_positions,
    InspectView: lp_messages.show_inspect,
    PnlView: lp_messages.show_pnl,
    WhatIfView: lp_messages.show_whatif,
    PortfolioView: lp_messages.show_portfolio,
    AlertsView: lp_messages.show_alerts,
    AnsweredView: lp_messages.show_answer,
    RuleView: lp_messages.show_rule,
}
"""A view is looked up by its class, then by what it is a kind of."""
