"""How far a long command has come: a bar on a terminal, a line for every tenth in a pipe. It goes to stderr."""

from __future__ import annotations

from contextlib import suppress

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from zuno.doors.cli import run_command


class ProgressBar:
    """Use as a context manager: the bar goes with it."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        self._tenths = -1
        self._bar = Progress(
            TextColumn(what),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task(what, total=None)

    def __enter__(self) -> ProgressBar:
        with suppress(OSError):
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._bar.stop()

    def tell(self, done: int, total: int) -> None:
        with suppress(OSError):  # where nobody reads, the answer alone counts
            self._bar.update(self._task, completed=done, total=total)
        tenths = 10 * done // max(1, total)
        if tenths > self._tenths and not self._console.is_terminal:
            run_command.complain(f"{done} of {total} {self._what}")
        self._tenths = tenths
