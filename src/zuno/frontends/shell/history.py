"""The lines typed before: a file of the owner's own, bounded, without anything that looks like a secret."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from prompt_toolkit.history import History

from zuno.app.reading.secrecy import looks_secret

MOST_LINES: Final = 1_000
MOST_CHARS: Final = 400


class OwnHistory(History):
    """Kept 0600. Where nothing can be written the shell works without."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file

    def load_history_strings(self) -> Iterable[str]:
        """Newest first."""
        return reversed(self._lines())

    def store_string(self, string: str) -> None:
        line = " ".join(string.split())
        if not line or len(line) > MOST_CHARS or looks_secret(line):
            return
        with suppress(OSError):
            kept = [*self._lines(), line][-MOST_LINES:]
            self._write(kept)

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

    def _write(self, lines: list[str]) -> None:
        """A crash leaves the old file or the new one."""
        fresh = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write("\n".join(lines) + "\n")
        fresh.replace(self._file)
