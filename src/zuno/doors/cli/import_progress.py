"""An import as it goes: a bar on a terminal, nothing in a pipe."""

from __future__ import annotations

from contextlib import suppress

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from zuno.kernel.text import plain_text
from zuno.trading.service.imports import Confirm, ImportProgress

LONGEST_NAME = 40


class ImportBar:
    """Use as a context manager: the bar ends with it."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        rows = TextColumn("{task.fields[rows]:,} rows")
        self._bar = Progress(*columns, rows, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task("", total=1.0, rows=0)

    def __enter__(self) -> ImportBar:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError, SystemExit):
            self._bar.stop()

    def ask(self, confirm: Confirm, what: str) -> bool:
        """The bar ends before something else is written to the terminal."""
        self.__exit__()
        return confirm(what)

    def hear(self, progress: ImportProgress) -> None:
        name = plain_text(progress.file, LONGEST_NAME)
        with suppress(OSError, SystemExit):
            self._bar.update(self._task, description=name, completed=progress.done, rows=progress.rows)
