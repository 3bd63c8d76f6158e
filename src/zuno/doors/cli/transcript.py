"""The debate as it happens: a line for each thought in its role's colour, and a spinner on whoever is thinking."""

from __future__ import annotations

from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING

from rich.text import Text

from zuno.doors.cli.layout import console
from zuno.kernel.text import plain_text

if TYPE_CHECKING:
    from zuno.lp.model.debate import Thought

_COLOURS = {"scout": "cyan", "strategist": "blue", "critic": "magenta", "arbiter": "yellow"}
_NEXT = {"scout": "strategist", "strategist": "critic", "critic": "strategist or arbiter", "arbiter": "arbiter"}


class Transcript:
    """Use as a context manager: the spinner ends with it. When its lines can no longer be written it falls silent; that
    the answer cannot be written either is told once, at the end."""

    def __init__(self) -> None:
        self._console = console()
        self._deaf = False
        self._status = self._console.status("scout is reading the chain", spinner="dots")

    def __enter__(self) -> Transcript:
        if self._console.is_terminal:
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError, SystemExit):
            self._status.stop()

    def hear(self, thought: Thought) -> None:
        if self._deaf:
            return
        role = str(thought.role)
        line = Text()
        line.append(f"{role:<11}", style=_COLOURS.get(role, ""))
        line.append(f"{thought.round}  ", style="dim")
        line.append(plain_text(thought.text, 2_000))  # a peer elsewhere may have written it
        try:
            self._console.print(line)
            self._status.update(f"{_NEXT.get(role, 'the desk')} is thinking")
        except (OSError, SystemExit):  # rich ends the process when nobody reads; the debate is to be had and kept
            self._deaf = True
