"""Lines of a home's log, as they are shown."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

LEVELS: Final = ("debug", "info", "warning", "error", "critical")
"""The quietest first."""


@dataclass(frozen=True, slots=True)
class LogLine:
    at: str
    level: str
    where: str
    text: str

    def extended(self, more: str) -> LogLine:
        return replace(self, text=f"{self.text}\n{more.strip()}")
