"""The console that live progress is drawn on."""

from contextlib import suppress
from typing import Self

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from zuno.doors.cli.render import PIPED_WIDTH, paint_document
from zuno.present.document import Document

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

    def __init__(self, *, transient: bool = True) -> None:
        self._console = console()
        self._live = Live(console=self._console, refresh_per_second=8, transient=transient, get_renderable=self._board)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        with suppress(OSError, SystemExit):
            self._live.stop()

    def _board(self) -> RenderableType:
        raise NotImplementedError


class DocumentBoard(LiveScreen):
    """Shows the newest document, which stays there in the end."""

    def __init__(self) -> None:
        self._shown = Text()
        super().__init__(transient=False)

    def show(self, document: Document) -> None:
        self._shown = Text.from_ansi(paint_document(document))

    def _board(self) -> RenderableType:
        return self._shown
