"""The log of this home's processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from zuno.kernel.errors import UsageError
from zuno.kernel.logs import LEVELS, LogLine
from zuno.kernel.text import plain_text
from zuno.kernel.view import View, sanitise

MOST_LINES = 10_000


class LogLineView(View):
    at: str
    level: str
    where: str
    text: str
    """The first line of it, then those of a traceback."""


class LogsView(View):
    file: str
    lines: tuple[LogLineView, ...]


class Logs:
    def __init__(self, file: str, read: Callable[[], Sequence[LogLine]]) -> None:
        self._file = file
        self._read = read

    async def show(self, lines: int = 50, level: str = "info") -> LogsView:
        """The newest lines of a level and above, oldest first."""
        if not 1 <= lines <= MOST_LINES:
            raise UsageError(f"Between 1 and {MOST_LINES:,} lines can be shown, not {lines}.")
        wanted = level.strip().lower()
        if wanted not in LEVELS:
            raise UsageError(f"{plain_text(level, 40)!r} is no level; write one of {', '.join(LEVELS)}.")
        heard = LEVELS[LEVELS.index(wanted) :]
        shown = [line for line in self._read() if line.level.lower() in heard][-lines:]
        return LogsView(file=self._file, lines=tuple(map(_line_view, shown)))


def _line_view(line: LogLine) -> LogLineView:
    text = "\n".join(sanitise(part) for part in line.text.split("\n"))
    return LogLineView(at=line.at, level=line.level.lower(), where=sanitise(line.where), text=text)
