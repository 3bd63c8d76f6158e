"""Where a person is when they open a shell."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ShellStart:
    home: Path
    chain: str
    """The default chain."""
    wallet: str | None
    """Who acts there; None: nobody yet, or it is not settled who."""
