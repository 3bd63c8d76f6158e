"""The lines typed before: a file of the owner's own, bounded, without anything that looks like a secret."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from prompt_toolkit.history import History

from zuno.doors.reading.secrecy import looks_secret

MOST_LINES: Final = 1_000
MOST_CHARS: Final = 400


class PrivateHistory(History):
    """`write` replaces the file whole. Where nothing can be written the shell works without."""

    def __init__(self, file: Path, write: Callable[[Path, bytes], None]) -> None:
        super().__init__()
        self._file = file
        self._write = write

    def load_history_strings(self) -> Iterable[str]:
        """Newest first."""
        return reversed(self._lines())

    def store_string(self, string: str) -> None:
        line = " ".join(string.split())
        if not line or len(line) > MOST_CHARS or looks_secret(line):
            return
        with suppress(OSError):
            kept = [*self._lines(), line][-MOST_LINES:]
            self._write(self._file, ("\n".join(kept) + "\n").encode(errors="replace"))

    def append_string(self, string: str) -> None:
        """A secret is not even kept for the arrow keys."""
        if not looks_secret(string):
            super().append_string(string)

    def _lines(self) -> list[str]:
        try:
            lines = self._file.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return []
        return [line for line in lines if line][-MOST_LINES:]
