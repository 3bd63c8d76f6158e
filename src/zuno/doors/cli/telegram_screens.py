"""How the Telegram bot's process is shown to people."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from zuno.doors.cli.layout import grid, heading
from zuno.doors.telegram_door import TelegramEndView, TelegramEventView, TelegramSetupView
from zuno.kernel.numbers_text import time_text


def event_line(event: TelegramEventView) -> str:
    return f"{time_text(event.at // 1000)}  {event.text}"


def show_end(view: TelegramEndView) -> RenderableType:
    return Text(f"{view.bot}: {view.updates} updates, {view.answered} answered, {view.refused} refused.")


def show_setup(view: TelegramSetupView) -> RenderableType:
    facts = grid()
    for name, value in (
        ("bot", view.bot),
        ("you", view.name),
        ("user id", str(view.user)),
        ("chat id", str(view.chat)),
        ("commands", f"{view.commands} registered"),
    ):
        facts.add_row(name, value)
    lines = Text("\n".join(view.environment))
    return Group(heading("Telegram"), facts, Text("Nothing was stored. Set these, then `zuno telegram run`:"), lines)
