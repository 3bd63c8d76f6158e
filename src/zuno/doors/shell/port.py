"""What the shell needs: a way to run commands, their grammar, and a model for lines that cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from zuno.doors.reading.intents import Reading
    from zuno.doors.zuno import ShellStart
    from zuno.kernel.view import View
    from zuno.lp.service.views import PositionsView


class Grammar(Protocol):
    """Promises what the command line would make of words, without running them."""

    def names(self) -> tuple[str, ...]:
        """Every command, as it is typed."""

    def is_command(self, words: Sequence[str]) -> bool:
        """Whether they are one whole command."""

    def starts_command(self, words: Sequence[str]) -> bool:
        """Whether they begin like one."""

    def takes_chain(self, words: Sequence[str]) -> bool: ...


@dataclass(frozen=True, slots=True)
class ShellHost:
    run: Callable[[Sequence[str], Callable[[View], None]], int]
    """Run a command, tell what it showed, return its exit code."""
    grammar: Grammar
    place: ShellStart
    interpret: Callable[[str], Reading | None]
    """Ask a model what a line means; None without a model, or without an answer."""
    write: Callable[[Path, bytes], None]
    """Replace a file that only its owner may read: whole or not at all."""
    positions: Callable[[str | None], PositionsView | None] = lambda chain: None
    """The positions on a chain, where a line means one by what it holds; None where they cannot be read."""
