"""A cycle as it happens: who waits, who spoke and for how much; a board on a terminal, plain lines in a pipe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.console import Group, RenderableType
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from zuno.doors.cli.layout import BAD, QUIET, LiveScreen
from zuno.kernel.text import plain_text
from zuno.trading.model.cycle import Node
from zuno.trading.service.run_view import SPOKE

if TYPE_CHECKING:
    from zuno.trading.model.cycle import NodeEvent

MOST: Final = 160
"""Characters of a note."""
_MARKS: Final = {"speaks": "✓", "done": "✓", "skipped": "–"}
_WORDS: Final = {"speaks": "spoke", "done": "done", "skipped": "skipped"}


class Progress(LiveScreen):
    def __init__(self) -> None:
        self._deaf = False
        self._last: dict[Node, NodeEvent] = {}
        self._spinner = Spinner("dots")
        super().__init__()  # which asks for the board already

    def hear(self, event: NodeEvent) -> None:
        self._last[event.node] = event
        if self._deaf:
            return
        try:
            if self._console.is_terminal:
                self._live.refresh()
            elif line := self._line(event):
                self._console.print(line)
        except (OSError, SystemExit):  # rich ends the process when nobody reads; the run is to be had and kept
            self._deaf = True

    def _line(self, event: NodeEvent) -> Text | None:
        """In a pipe what is over is told once, and so is why no model spoke."""
        if event.state == "waits":
            return None
        return Text(f"{event.node:<26}{_WORDS[event.state]:<9}{_about(event, self._is_repeated(event))}".rstrip())

    def _is_repeated(self, event: NodeEvent) -> bool:
        """Whether an earlier node gave the same reason for having no model."""
        if event.source != "deterministic":
            return False
        first = next(
            other for other in self._last.values() if other.source == event.source and other.note == event.note
        )
        return first.node is not event.node

    def _board(self) -> RenderableType:
        table = Table.grid(padding=(0, 1))
        for node in Node:
            event = self._last.get(node)
            style = QUIET if event is None or event.state == "skipped" else ""
            if event is not None and event.source == "fallback":
                style = BAD
            text = "" if event is None else _about(event, self._is_repeated(event))
            about = Text(text, style=style, no_wrap=True, overflow="ellipsis")
            table.add_row(self._mark(event), Text(node, style=style), about)
        spent = sum(event.usd or 0.0 for event in self._last.values())
        return Group(table, Text(f"spent ${spent:.4f}", style=QUIET))

    def _mark(self, event: NodeEvent | None) -> RenderableType:
        if event is None:
            return Text("·", style=QUIET)
        return self._spinner if event.state == "waits" else Text(_MARKS[event.state])


def _about(event: NodeEvent, repeated: bool = False) -> str:
    """Who spoke, for how much, and what is to be noted."""
    who = () if event.source is None else (SPOKE[event.source],)
    cost = () if not event.usd else (f"${event.usd:.4f}",)
    note = () if not event.note or repeated else (plain_text(event.note, MOST),)
    return "  ".join((*who, *cost, *note))
