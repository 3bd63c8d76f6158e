"""The log of this home's processes."""

from collections.abc import Callable, Sequence
from typing import Final

from zuno.kernel.errors import UsageError
from zuno.kernel.logs import LEVELS, LogLine
from zuno.kernel.text import plain_text
from zuno.kernel.view import ForeignText, View, sanitise
from zuno.kernel.wire import derive
from zuno.present.document import Document, Kind, Mark, Tone, Value, document, lines
from zuno.present.values import quiet

MOST_LINES = 10_000
_TONES: Final = {"warning": Tone.WARN, "error": Tone.BAD, "critical": Tone.BAD, "debug": Tone.QUIET}


class LogLineView(View):
    at: str
    level: str
    where: ForeignText
    text: str
    """The first line of it, then those of a traceback."""
    id: ForeignText = ""
    """Of the request, cycle or plan it was logged in."""


class LogsView(View):
    file: str
    lines: tuple[LogLineView, ...]

    def to_document(self) -> Document:
        if not self.lines:
            return document("", lines(quiet(f"nothing of that level is in {self.file}")))
        log = (
            Value(
                f"{line.at} {line.level:<8} {line.where}: {f'[{line.id}] ' if line.id else ''}"
                f"{line.text.replace(chr(10), chr(10) + '    ')}",
                _TONES.get(line.level, Tone.PLAIN),
                Kind.FOREIGN,
            )
            for line in self.lines
        )
        return document("", lines(*log, mark=Mark.VERBATIM))


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
    return derive(LogLineView, line, level=line.level.lower(), text=text)
