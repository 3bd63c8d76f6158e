"""Look up commands in the command tree without running them."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import typer

from zuno.doors.cli.main import build_command


class CommandTree:
    """The command tree of `zuno`, to check words against."""

    @cached_property
    def _root(self) -> Any:
        return build_command()

    def names(self) -> tuple[str, ...]:
        return tuple(_names(self._root, ""))

    def is_command(self, words: Sequence[str]) -> bool:
        """Whether they are one whole command, options and arguments included."""
        command, rest = self._leaf(words)
        if command is None or (hasattr(command, "commands") and not rest):
            return False
        if {"--help", "-h"} & set(rest):
            return True
        if hasattr(command, "commands"):
            return False
        try:
            command.make_context(command.name, list(rest))
        except (typer.TyperException, typer.Exit):
            return False
        return True

    def starts_command(self, words: Sequence[str]) -> bool:
        return bool(words) and words[0] in self._root.commands

    def takes_chain(self, words: Sequence[str]) -> bool:
        command, _ = self._leaf(words)
        return command is not None and any("--chain" in param.opts for param in command.params)

    def _leaf(self, words: Sequence[str]) -> tuple[Any, Sequence[str]]:
        """The deepest command that the words name, and the words behind its name."""
        command, rest = self._root, words
        while rest and hasattr(command, "commands") and rest[0] in command.commands:
            command, rest = command.commands[rest[0]], rest[1:]
        return (None, words) if command is self._root else (command, rest)


def _names(group: Any, prefix: str) -> Iterator[str]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _names(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}"
