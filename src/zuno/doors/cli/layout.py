"""The console that live progress is drawn on."""

from __future__ import annotations

from rich.console import Console

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
