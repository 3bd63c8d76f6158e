"""How far a long command has come. A bar on a terminal; it goes to stderr."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from zuno.kernel.text import plain_text
from zuno.trading.service.imports import Confirm, ImportProgress

LONGEST_NAME = 40


class _Bar:
    """Use as a context manager: the bar ends with it."""

    def __init__(self, what: str, *columns: ProgressColumn, **task: Any) -> None:
        self._console = console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        shown = (TextColumn("{task.description}"), BarColumn(), *columns)
        self._bar = Progress(*shown, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task(what, **task)

    def __enter__(self) -> Self:
        with suppress(OSError):
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError, SystemExit):
            self._bar.stop()


class ProgressBar(_Bar):
    """In a pipe a line for every tenth, told to `complain`."""

    def __init__(self, what: str, complain: Callable[[str], None]) -> None:
        super().__init__(what, MofNCompleteColumn(), TimeRemainingColumn(), total=None)
        self._what, self._complain = what, complain
        self._tenths = -1

    def tell(self, done: int, total: int) -> None:
        with suppress(OSError):  # where nobody reads, the answer alone counts
            self._bar.update(self._task, completed=done, total=total)
        tenths = 10 * done // max(1, total)
        if tenths > self._tenths and not self._console.is_terminal:
            self._complain(f"{done} of {total} {self._what}")
        self._tenths = tenths


class ImportBar(_Bar):
    """In a pipe nothing."""

    def __init__(self) -> None:
        rows = TextColumn("{task.fields[rows]:,} rows")
        super().__init__("", TaskProgressColumn(), TimeRemainingColumn(), rows, total=1.0, rows=0)

    def ask(self, confirm: Confirm, what: str) -> bool:
        """The bar ends before something else is written to the terminal."""
        self.__exit__()
        return confirm(what)

    def hear(self, progress: ImportProgress) -> None:
        name = plain_text(progress.file, LONGEST_NAME)
        with suppress(OSError, SystemExit):
            self._bar.update(self._task, description=name, completed=progress.done, rows=progress.rows)
