"""The console that live progress is drawn on."""

from __future__ import annotations

from contextlib import suppress
from typing import Self

from rich.console import Console, RenderableType
from rich.live import Live

from zuno.doors.cli.render import PIPED_WIDTH

BAD, QUIET = "red", "dim"


class _Console(Console):
    """Rich ends the process where a pipe breaks; how we end is decided elsewhere."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console() -> Console:
    """Symbols come from strangers, so nothing in a text is markup."""
    plain = _Console(highlight=False, markup=False, emoji=False)
    return plain if plain.is_terminal else _Console(highlight=False, markup=False, emoji=False, width=PIPED_WIDTH)


class LiveScreen:
    """Use as a context manager: at a terminal the board is drawn until it ends. When it can no longer be written it
    falls silent; that the answer cannot be written either is told once, at the end."""

    def __init__(self) -> None:
        self._console = console()
        self._live = Live(console=self._console, refresh_per_second=8, transient=True, get_renderable=self._board)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        with suppress(OSError, SystemExit):
            self._live.stop()

    def _board(self) -> RenderableType:
        raise NotImplementedError
