"""The debate: a live preview while it runs, and the transcript under the card."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from rich.console import Group, RenderableType
from rich.spinner import Spinner
from rich.text import Text

from zuno.doors.cli.layout import LiveScreen
from zuno.kernel.text import plain_text
from zuno.lp.model.debate import Role, Thought

if TYPE_CHECKING:
    from zuno.lp.service.recommend import Waiting

_COLOURS: Final = {"scout": "cyan", "strategist": "blue", "critic": "magenta", "arbiter": "yellow"}
_ROOM: Final = 6
"""Lines of the terminal that a preview leaves free; a thought may take two."""


def thought_line(thought: Thought) -> Text:
    line = Text()
    line.append(f"{thought.role:<11}", style=_COLOURS.get(str(thought.role), ""))
    line.append(f"{thought.round}  ", style="dim")
    return line.append(plain_text(thought.text, 2_000))  # a peer elsewhere may have written it


class Preview(LiveScreen):
    """On a terminal the newest thoughts, until it ends; in a pipe nothing. Those of a debate that fails are printed."""

    def __init__(self) -> None:
        self._lines: list[Text] = []
        self._spinner = Spinner("dots", "opening the desk")
        super().__init__()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        super().__exit__(kind, error, trace)
        if error is not None:
            with suppress(OSError, SystemExit):
                self._console.print(*self._lines, sep="\n")

    def hear(self, event: Thought | Waiting) -> None:
        if not isinstance(event, Thought):
            self._spinner.update(text=str(event))
        elif event.role is not Role.CLI:
            self._lines.append(thought_line(event))
        with suppress(OSError, SystemExit):  # rich ends the process when nobody reads; the debate is to be had and kept
            if isinstance(event, Thought) and event.role is Role.CLI:  # how a wish was read is not part of the debate
                self._console.print(thought_line(event))
            elif self._console.is_terminal:
                self._live.refresh()

    def _board(self) -> RenderableType:
        newest = max(1, (self._console.height - _ROOM) // 2)
        return Group(*self._lines[-newest:], self._spinner)
