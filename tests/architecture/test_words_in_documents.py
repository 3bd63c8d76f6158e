"""A view's words are written once, in its document: no door reads the fields of a view into a text of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache

from tests.paths import SOURCE
from tests.wire.source_nodes import parse_nodes, read_nodes

DOORS = ("chat", "cli", "mcp", "shell", "telegram")
ROOMS = [SOURCE / "doors" / door for door in DOORS]
NO_DOCUMENTS = {
    "cli/consent.py": "asks for the word that an order or a plan needs",
    "cli/monitor.py": "a line for every look, as it happens",
    "cli/transcript.py": "a debate, as it is held",
    "telegram/money_commands.py": "asks for a confirmation",
}
"""Streams, progress and consent."""
NOT_YET = ()
"""Modules of views that have no document yet."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def view_names() -> frozenset[str]:
    """Every class of the source that is a view, by what it is derived from."""
    bases: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        for node in read_nodes(path):
            if isinstance(node, ast.ClassDef):
                bases.setdefault(node.name, set()).update(base.id for base in node.bases if isinstance(base, ast.Name))
    known = {"View"}
    while more := {name for name, above in bases.items() if above & known} - known:
        known |= more
    return frozenset(known)


def writers(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Functions that take a view and put one of its fields into a text."""
    for node in nodes:
        if not isinstance(node, Function):
            continue
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        taken = {argument.arg for argument in arguments if names_view(argument.annotation)}
        texts = [part for part in ast.walk(node) if isinstance(part, ast.JoinedStr)]
        if any(reads_field(text, taken) for text in texts):
            yield node.name


def names_view(annotation: ast.expr | None) -> bool:
    """`type[View]` is for lookups and schemas."""
    match annotation:
        case None | ast.Subscript(value=ast.Name(id="type")):
            return False
    return any(isinstance(part, ast.Name) and part.id in view_names() for part in ast.walk(annotation))


def reads_field(text: ast.JoinedStr, taken: set[str]) -> bool:
    return any(
        isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id in taken
        for part in ast.walk(text)
    )


def test_no_door_puts_a_field_of_a_view_into_a_text() -> None:
    modules = {path.relative_to(SOURCE / "doors").as_posix(): path for room in ROOMS for path in room.rglob("*.py")}
    found = {
        f"{name}: {function}"
        for name, path in modules.items()
        if name not in NO_DOCUMENTS and not name.endswith(NOT_YET)
        for function in writers(read_nodes(path))
    }
    assert not found


def test_what_writes_a_text_of_a_view_is_seen() -> None:
    seen = parse_nodes("def write(view: RunsView | None) -> str:\n    return f'{view.total} runs'")
    assert list(writers(seen)) == ["write"]
    passed = parse_nodes("def show(view: RunsView) -> None:\n    print_document(view.to_document(), f'{len(rows)}')")
    assert list(writers(passed)) == []
