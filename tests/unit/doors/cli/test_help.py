"""What help says of every command, and the version."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import pytest
import typer

from zuno.doors.cli.main import build_command, run
from zuno.wiring import open_zuno


def every_command(command: Any, parent: Any, name: str) -> Iterator[tuple[Any, str]]:
    context = typer.Context(command, info_name=name, parent=parent)
    yield context, f"{getattr(parent, 'command_path', '')} {name}".strip()
    for word, inner in getattr(command, "commands", {}).items():
        yield from every_command(inner, context, word)


def test_a_flag_takes_no_value_and_help_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    seen = 0
    for context, name in every_command(build_command(), None, "zuno"):
        said = context.get_help() or capsys.readouterr().out
        assert "--help" in said, name
        assert "<bool>" not in said, name
        seen += 1
    assert seen > 130


def test_the_version_is_told_by_command_and_by_option(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["version"], ["--version"]):
        assert run(words, open_zuno) == 0
        assert capsys.readouterr().out == f"zuno {version('zuno-desk')}\n"
