"""Who may lean on what outside the house: an allow-list per room, so that a new vendor has to be let in by name.

import-linter (`pyproject.toml`) holds the arrows between the rooms; this holds what it cannot: everything else that is
imported, wherever the statement stands.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
HOUSE = CHECKOUT / "src" / "zuno"

PLAIN = frozenset(
    "__future__ bisect collections dataclasses decimal enum fractions functools hashlib ipaddress itertools json math "
    "operator re statistics types typing unicodedata".split()
)
"""The part of the standard library that has no clock, no chance, no environment and no world outside."""
OUTSIDE = frozenset(
    "ctypes dbm ftplib http imaplib multiprocessing poplib pty secrets select shelve smtplib socket socketserver "
    "sqlite3 ssl subprocess telnetlib urllib webbrowser xmlrpc".split()
)
"""The part that reaches out or remembers: for adapters alone."""
INSIDE = sys.stdlib_module_names - OUTSIDE

ALLOWED: dict[str, frozenset[str]] = {
    "domain": PLAIN,
    "messages": PLAIN | {"orjson", "pydantic"},
    "ports": PLAIN | {"pydantic"},
    "core": PLAIN | {"eth_abi", "eth_hash", "numpy", "talib"},
    "agents": INSIDE | {"pydantic", "pydantic_core"},
    "memory": INSIDE | {"pydantic"},
    "execution": INSIDE | {"pydantic"},
    "desks": INSIDE | {"langgraph", "pydantic"},
    "app": INSIDE | {"jinja2", "pydantic"},
    "frontends": INSIDE | {"prompt_toolkit", "rich", "typer"},
    "settings": INSIDE | {"pydantic", "pydantic_settings"},
    "wiring": INSIDE,
    "__main__": INSIDE,
    "__init__": frozenset(),
}
PURE = ("domain", "messages", "ports", "core")
DOORS = frozenset("__import__ breakpoint compile eval exec input open print".split())
"""Builtins that lead out of a pure room without any import."""

HEAVY = (
    "web3",
    "eth",
    "eth_abi",
    "httpx2",
    "pydantic",
    "rich.table",
    "prompt_toolkit",
    "numpy",
    "talib",
    "duckdb",
    "matplotlib",
    "langgraph",
    "zuno.wiring",
    "zuno.adapters",
    "zuno.app",
)


def rooms() -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for path in HOUSE.rglob("*.py"):
        found.setdefault(path.relative_to(HOUSE).parts[0].removesuffix(".py"), []).append(path)
    return found


def imported(source: str) -> Iterator[str]:
    """Every foreign package a source imports, at the top, in a function or for its types alone."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield (node.module or "").partition(".")[0]


def doors(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and node.id in DOORS and isinstance(node.ctx, ast.Load):
            yield node.id


def strangers(source: str, room: str) -> list[str]:
    """What a source uses that its room may not."""
    foreign = set(imported(source)) - {"zuno"} - ALLOWED[room]
    return sorted(foreign | (set(doors(source)) if room in PURE else set()))


def test_every_room_has_its_list() -> None:
    assert set(rooms()) == {*ALLOWED, "adapters"}


@pytest.mark.parametrize("room", sorted(ALLOWED))
def test_a_room_uses_only_what_it_may(room: str) -> None:
    used = {str(path.relative_to(HOUSE)): strangers(path.read_text(encoding="utf-8"), room) for path in rooms()[room]}
    assert {path: found for path, found in used.items() if found} == {}


def test_one_module_knows_the_engine_of_a_cycle() -> None:
    """Beside the plugs that keep its checkpoints."""
    knows = {
        str(path.relative_to(HOUSE))
        for room, paths in rooms().items()
        if room != "adapters"
        for path in paths
        if {"langgraph", "langchain_core", "langsmith"} & set(imported(path.read_text(encoding="utf-8")))
    }
    assert knows == {"desks/trading/graph.py"}


@pytest.mark.parametrize(
    ("room", "source", "found"),
    [
        ("core", "import math, time", ["time"]),
        ("core", "def late():\n    from os import path", ["os"]),
        ("core", "if TYPE_CHECKING:\n    import web3.types", ["web3"]),
        ("core", "def late():\n    __import__('os')", ["__import__"]),
        ("messages", "import importlib", ["importlib"]),
        ("domain", "text = open('/etc/passwd').read()", ["open"]),
        ("domain", "import pydantic", ["pydantic"]),
        ("domain", "import random", ["random"]),
        ("app", "import httpx2, sqlite3, psycopg, openai", ["httpx2", "openai", "psycopg", "sqlite3"]),
        ("frontends", "def late():\n    import web3", ["web3"]),
        ("frontends", "from eth.abc import BlockAPI", ["eth"]),
        ("desks", "import numpy", ["numpy"]),
        ("wiring", "import httpx2", ["httpx2"]),
        ("app", "import json\nfrom zuno.core import carry\nfrom . import views", []),
    ],
)
def test_a_stranger_is_found_wherever_it_hides(room: str, source: str, found: list[str]) -> None:
    assert strangers(source, room) == found


def test_every_adapter_family_is_a_stranger_to_the_others() -> None:
    """Which import-linter checks, for the families it is told of."""
    contracts = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (told,) = (contract["modules"] for contract in contracts if contract["type"] == "independence")
    families = [path.parent.name for path in (HOUSE / "adapters").glob("*/__init__.py")]
    assert sorted(told) == sorted(f"zuno.adapters.{family}" for family in families)


def test_the_package_says_that_it_is_typed() -> None:
    """Without this file, PEP 561 has type checkers ignore every annotation of an installed zuno."""
    assert (files("zuno") / "py.typed").is_file()


def test_help_imports_no_vendor() -> None:
    code = "import sys; import zuno.__main__; print('\\n'.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert [name for name in HEAVY if name in loaded] == []
