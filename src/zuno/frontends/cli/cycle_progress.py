"""A cycle as it happens: who waits, who spoke and for how much; a board on a terminal, plain lines in a pipe."""

from __future__ import annotations

from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Final

from rich.console import Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from zuno.app.report import SPOKE
from zuno.domain.cycle import Node
from zuno.domain.tokens import plain_text
from zuno.frontends.cli.layout import BAD, QUIET, console

if TYPE_CHECKING:
    from zuno.messages.outcome import NodeEvent

MOST: Final = 160
"""Characters of a note."""
_MARKS: Final = {"speaks": "»", "done": "✓", "skipped": "–"}


class Progress:
    """Use as a context manager: the board ends with it. When it can no longer be written it falls silent; that the
    answer cannot be written either is told once, at the end."""

    def __init__(self) -> None:
        self._console = console()
        self._deaf = False
        self._last: dict[Node, NodeEvent] = {}
        self._spoke: dict[Node, NodeEvent] = {}
        self._spinner = Spinner("dots")
        self._live = Live(console=self._console, refresh_per_second=8, transient=True, get_renderable=self._board)

    def __enter__(self) -> Progress:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError, SystemExit):
            self._live.stop()

    def hear(self, event: NodeEvent) -> None:
        self._last[event.node] = event
        if event.source is not None:
            self._spoke[event.node] = event
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
        """In a pipe what is over is told once, with whoever spoke in it."""
        if event.state not in ("done", "skipped"):
            return None
        return Text(f"{event.node:<26}{event.state:<9}{self._about(event)}".rstrip())

    def _about(self, event: NodeEvent) -> str:
        spoke = self._spoke.get(event.node)
        parts = [] if spoke is None or spoke.source is None else [SPOKE[spoke.source], *_cost(spoke.usd)]
        note = event.note or ("" if spoke is None else spoke.note)
        return "  ".join((*parts, *((plain_text(note, MOST),) if note else ())))

    def _board(self) -> RenderableType:
        table = Table.grid(padding=(0, 1))
        for node in Node:
            event = self._last.get(node)
            failed = (spoke := self._spoke.get(node)) is not None and spoke.source == "fallback"
            style = QUIET if event is None or event.state == "skipped" else BAD if failed else ""
            about = Text("" if event is None else self._about(event), style=style, no_wrap=True, overflow="ellipsis")
            table.add_row(self._mark(event), Text(node, style=style), about)
        spent = sum(event.usd or 0.0 for event in self._spoke.values())
        return Group(table, Text(f"spent ${spent:.4f}", style=QUIET))

    def _mark(self, event: NodeEvent | None) -> RenderableType:
        if event is None:
            return Text("·", style=QUIET)
        return self._spinner if event.state == "waits" else Text(_MARKS[event.state])


def _cost(usd: float | None) -> tuple[str, ...]:
    return () if not usd else (f"${usd:.4f}",)
