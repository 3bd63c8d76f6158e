"""The shell without a terminal: every line of a stream, one after the other."""

from __future__ import annotations

from collections.abc import Iterable

from zuno.doors.shell.port import ShellHost
from zuno.doors.shell.turns import ShellSession


def run_lines(door: ShellHost, lines: Iterable[str]) -> int:
    """Run the lines; the last code that was not 0, or 0. Lines that begin with # are remarks."""
    talk, last = ShellSession(door), 0
    for line in lines:
        if line.lstrip().startswith("#"):
            continue
        code = talk.line(line)
        if code is None:
            break
        last = code or last
    return last
