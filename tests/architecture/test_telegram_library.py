"""The Telegram library is used by its public names alone, so that a new version of it breaks nothing silently."""

from __future__ import annotations

import ast

import pytest

from tests.paths import CHECKOUT

DOOR = CHECKOUT / "src" / "zuno" / "doors" / "telegram"


def find_private_uses(source: str) -> list[str]:
    """Names with an underscore of anything but oneself: attributes, and what is imported from the library."""
    found = list[str]()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            if not (isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}):
                found.append(node.attr)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("telegram"):
            path = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
            found += [name for name in path if name.startswith("_")]
    return found


@pytest.mark.parametrize("name", sorted(path.name for path in DOOR.glob("*.py")))
def test_nothing_private_of_the_library_is_used(name: str) -> None:
    assert find_private_uses((DOOR / name).read_text(encoding="utf-8")) == []


def test_private_uses_are_found() -> None:
    source = "from telegram._bot import Bot\nbot._post(1)\nself._bot._request\nself._kept\nsuper().__init__()"
    assert sorted(find_private_uses(source)) == ["_bot", "_post", "_request"]
