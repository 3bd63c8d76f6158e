"""What services say of the terminal's commands is said in the chat with the chat's own, wherever it has one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
import typer.main

from tests.architecture.test_docs_parity import commands as list_terminal_commands
from tests.paths import CHECKOUT
from zuno.doors.cli.main import app
from zuno.doors.telegram.command_table import COMMANDS
from zuno.doors.telegram.commands import read_command
from zuno.doors.telegram.terminal_words import CHAT_COMMANDS, translate_commands

SOURCE = CHECKOUT / "src" / "zuno"
TERMINAL = set(list_terminal_commands(typer.main.get_command(app)))
GROUPS = set("data devnet doctor journal lab mcp mesh monitor sim telegram wallet web".split())
"""Of which the chat has no command at all."""
AT_THE_TERMINAL = {
    "alerts remove",
    "lp pools",
    "plan cancel",
    *(f"trade {name}" for name in ("adopt", "book close", "book lp", "mandate grant")),
    *(f"trade {name}" for name in ("orders", "resume", "set", "start")),
}
"""What the chat has no command for."""


def find_sentences() -> Iterator[str]:
    """Every string of the code that names a command of the terminal; what is filled in stands there as a word."""
    for path in sorted(SOURCE.rglob("*.py")):
        if path.is_relative_to(SOURCE / "doors" / "cli") or path.is_relative_to(SOURCE / "doors" / "shell"):
            continue
        source = path.read_text()
        if "`zuno " not in source:
            continue
        tree = ast.parse(source)
        inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        inside |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
        for node in ast.walk(tree):
            text = ""
            if isinstance(node, ast.JoinedStr):
                text = "".join(str(part.value) if isinstance(part, ast.Constant) else "x1" for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
                text = node.value
            if "`zuno " in text and "([^`" not in text:
                yield text


@pytest.fixture(scope="module")
def sentences() -> list[str]:
    return sorted(set(find_sentences()))


@pytest.mark.soak
def test_every_command_that_a_sentence_names_is_the_chats_or_is_known_to_be_the_terminals(sentences: list[str]) -> None:
    assert len(sentences) > 100
    unknown = set()
    for sentence in sentences:
        for words in re.findall(r"`zuno ([^`]+)`", translate_commands(sentence)):
            named = next((name for name in sorted(TERMINAL, reverse=True) if f"{words} ".startswith(f"{name} ")), words)
            if named in AT_THE_TERMINAL or words.split()[0] in GROUPS or "--" in words or "x1" in words.split()[:2]:
                continue
            unknown.add(words)
    assert unknown == set()


def test_what_it_says_instead_is_a_command_of_the_chat(sentences: list[str]) -> None:
    known = {command.name for command in COMMANDS}
    for sentence in (*sentences, *(f"`zuno {words} x1`" for words in CHAT_COMMANDS)):
        for words in re.findall(r"`(/[^`]+)`", translate_commands(sentence)):
            typed = read_command(words)
            assert typed is not None
            assert typed.name in known


def test_every_row_begins_with_a_command_of_the_terminal() -> None:
    groups = {name.rsplit(" ", 1)[0] for name in TERMINAL}
    assert CHAT_COMMANDS.keys() <= TERMINAL | groups
    assert not CHAT_COMMANDS.keys() & AT_THE_TERMINAL
    assert AT_THE_TERMINAL <= TERMINAL
    assert not GROUPS & {name.split()[0] for name in CHAT_COMMANDS}


@pytest.mark.parametrize(
    ("terminal", "chat"),
    [
        ("zuno plan approve plan_1", "/approve plan_1"),
        ("zuno plan simulate plan_1", "/plan plan_1 simulate"),
        ("zuno alerts --all", "/alerts all"),
        ("zuno lp pnl 7 --since 24h", "/pnl 7 24h"),
        ("zuno lp positions --chain sim", "/positions sim"),
        ("zuno trade unlock", "/unlock"),
        ("zuno lp recommend rebalance 7", "/recommend 7"),
        ("zuno lp recommend", "/recommend"),
        ("zuno trade run BTCUSDT", "/analyze BTCUSDT"),
        ("zuno trade run BTCUSDT --execute", None),
        ("zuno lp close --all", None),
        ("zuno plan cancel plan_1", None),
        ("zuno trade resume run_1", None),
        ("zuno", None),
        ("zuno trade", None),
    ],
)
def test_examples(terminal: str, chat: str | None) -> None:
    assert translate_commands(f"a `{terminal}` b") == f"a `{chat or terminal}` b"
    assert translate_commands(terminal) == terminal
