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
from functools import cache
from importlib.resources import files
from pathlib import Path

import pytest

from tests.paths import CHECKOUT, DEVNET, SOURCE
from tests.wire.source_nodes import parse_nodes

PLAIN = frozenset(
    "__future__ bisect collections contextlib dataclasses datetime decimal enum errno fractions functools hashlib "
    "ipaddress itertools json math operator re statistics types typing unicodedata".split()
)
"""The part of the standard library that has no clock, no chance, no environment and no world outside."""
OUTSIDE = frozenset(
    "ctypes dbm ftplib http imaplib multiprocessing poplib pty secrets select shelve smtplib socket socketserver "
    "sqlite3 ssl subprocess telnetlib urllib webbrowser xmlrpc".split()
)
"""The part that reaches out or remembers: for adapters alone."""
INSIDE = sys.stdlib_module_names - OUTSIDE

ALLOWED: dict[str, frozenset[str]] = {
    "kernel": PLAIN | {"contextvars", "eth_hash", "html", "importlib", "orjson", "pydantic"},
    "journal": PLAIN | {"base64", "pydantic", "zlib"},
    "llm": INSIDE | {"pydantic", "pydantic_core"},
    "provenance": PLAIN,
    "pushes": INSIDE,
    "markets": PLAIN | {"difflib", "pydantic", "pydantic_core"},
    "amm": PLAIN | {"eth_hash"},
    "present": PLAIN | {"html"},
    "lp.model": PLAIN | {"pydantic"},
    "lp.ports": PLAIN | {"pydantic"},
    "lp.plan": PLAIN | {"eth_abi", "eth_hash"},
    "lp.rules": PLAIN | {"numpy"},
    "lp.mesh": INSIDE | {"pydantic"},
    "lp.agents": PLAIN | {"pydantic"},
    "lp.execute": INSIDE | {"pydantic"},
    "lp.watch": INSIDE | {"pydantic"},
    "lp.service": INSIDE | {"pydantic"},
    "trading.model": PLAIN | {"orjson", "pydantic"},
    "trading.ports": PLAIN | {"numpy", "pydantic"},
    "trading.measure": PLAIN | {"numpy", "talib"},
    "trading.strategies": PLAIN | {"numpy"},
    "trading.rules": PLAIN | {"numpy"},
    "trading.agents": PLAIN | {"pydantic"},
    "trading.chart": PLAIN,
    "trading.data": INSIDE,
    "trading.execute": INSIDE | {"pydantic"},
    "trading.learn": INSIDE | {"pydantic"},
    "trading.watch": INSIDE | {"pydantic"},
    "trading.run": INSIDE | {"langgraph", "pydantic"},
    "trading.service": INSIDE | {"jinja2", "pydantic"},
    "lab": INSIDE | {"jinja2", "numpy", "pydantic"},
    "doors.reading": INSIDE | {"pydantic"},
    "doors.zuno": INSIDE,
    "doors.agents": INSIDE,
    "doors.config": INSIDE,
    "doors.costs": INSIDE,
    "doors.doctor": INSIDE,
    "doors.docs_site": INSIDE | {"markdown_it"},
    "doors.export": INSIDE,
    "doors.glossary": INSIDE,
    "doors.home": INSIDE,
    "doors.logs": INSIDE,
    "doors.serve": INSIDE,
    "doors.status": INSIDE,
    "doors.tax_export": INSIDE,
    "doors.metrics": INSIDE | {"prometheus_client", "pydantic"},
    "doors.telegram_door": INSIDE,
    "doors.web_door": INSIDE,
    "doors.web_logins": INSIDE | {"pydantic"},
    "doors.chat": INSIDE | {"pydantic"},
    "doors.cli": INSIDE | {"rich", "typer"},
    "doors.mcp": INSIDE | {"mcp", "pydantic"},
    "doors.shell": INSIDE | {"prompt_toolkit", "rich"},
    "doors.telegram": INSIDE | {"telegram"},
    "doors.web": INSIDE | {"fastapi", "http", "prometheus_client", "pydantic", "socket", "starlette", "uvicorn"},
    "settings": INSIDE | {"pydantic"},
    "settings_file": INSIDE,
    "wiring": INSIDE,
    "__main__": INSIDE,
    "__init__": frozenset({"__future__", "os", "sys"}),
    "zuno_devnet": INSIDE
    | set("eth eth_abi eth_bloom eth_hash eth_keys eth_typing eth_utils http rlp socket socketserver urllib".split()),
}
"""By room; a desk's rooms and the doors are listed one by one. `zuno_devnet` is a package beside them."""
PURE = frozenset(
    "kernel journal provenance amm lp.model lp.ports lp.plan lp.rules lp.agents trading.model trading.ports "
    "trading.measure trading.rules trading.agents trading.chart".split()
)
BUILTINS = frozenset("__import__ breakpoint compile eval exec input open print".split())
"""Builtins that lead out of a pure room without any import."""
CLOCKS = frozenset("datetime.now datetime.utcnow datetime.today date.today".split())
CLOCK_NAMES = frozenset(clock.partition(".")[2] for clock in CLOCKS)
"""What a datetime reads the clock by."""

HEAVY_TO_READ = (
    "dask",
    "duckdb",
    "eth",
    "eth_abi",
    "fastapi",
    "httpx2",
    "jinja2",
    "langgraph",
    "matplotlib",
    "numpy",
    "prompt_toolkit",
    "pydantic_ai",
    "pydantic_settings",
    "talib",
    "web3",
    "zuno.lab",
    "zuno.trading",
)
"""What a command that only reads has no use for."""
HEAVY = (*HEAVY_TO_READ, "asyncio", "pydantic", "zuno.adapters", "zuno.lp", "zuno.wiring")
SPENDING = ("zuno.adapters.chain.sim.contracts", "zuno.lp.plan.decoding", "zuno.lp.ports.spending")


DESKS = ("lp", "trading", "doors")
"""Looked at room by room; the package itself holds one sentence."""


@cache
def rooms() -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for path in SOURCE.rglob("*.py"):
        first, *rest = path.relative_to(SOURCE).with_suffix("").parts
        split = first in DESKS and rest != ["__init__"]
        found.setdefault(f"{first}.{rest[0]}" if split else first, []).append(path)
    found["zuno_devnet"] = [*DEVNET.rglob("*.py")]
    return found


def imported(source: str) -> Iterator[str]:
    """Every foreign package a source imports, at the top, in a function or for its types alone."""
    for node in parse_nodes(source):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield (node.module or "").partition(".")[0]


def doors(source: str) -> Iterator[str]:
    for node in parse_nodes(source):
        if isinstance(node, ast.Name) and node.id in BUILTINS and isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Attribute) and node.attr in CLOCK_NAMES and ast.unparse(node) in CLOCKS:
            yield node.attr


def strangers(source: str, room: str) -> list[str]:
    """What a source uses that its room may not."""
    foreign = set(imported(source)) - {"zuno"} - ALLOWED[room]
    return sorted(foreign | (set(doors(source)) if room in PURE else set()))


def test_every_room_has_its_list() -> None:
    assert set(rooms()) == {*ALLOWED, "adapters", *DESKS}


@pytest.mark.parametrize("room", sorted(ALLOWED))
def test_a_room_uses_only_what_it_may(room: str) -> None:
    used = {str(path): strangers(path.read_text(encoding="utf-8"), room) for path in rooms()[room]}
    assert {path: found for path, found in used.items() if found} == {}


@pytest.mark.slow
def test_one_module_knows_the_engine_of_a_cycle() -> None:
    """Beside the plugs that keep its checkpoints."""
    knows = {
        str(path.relative_to(SOURCE.parent))
        for room, paths in rooms().items()
        if room != "adapters"
        for path in paths
        if {"langgraph", "langchain_core", "langsmith"} & set(imported(path.read_text(encoding="utf-8")))
    }
    assert knows == {"zuno/trading/run/graph.py"}


@pytest.mark.parametrize(
    ("room", "source", "found"),
    [
        ("lp.rules", "import math, time", ["time"]),
        ("lp.plan", "def late():\n    from os import path", ["os"]),
        ("trading.measure", "if TYPE_CHECKING:\n    import web3.types", ["web3"]),
        ("trading.rules", "def late():\n    __import__('os')", ["__import__"]),
        ("lp.model", "import importlib", ["importlib"]),
        ("kernel", "text = open('/etc/passwd').read()", ["open"]),
        ("kernel", "from datetime import datetime\ndatetime.now()", ["now"]),
        ("amm", "import pydantic", ["pydantic"]),
        ("amm", "import random", ["random"]),
        ("lp.service", "import httpx2, sqlite3, psycopg, openai", ["httpx2", "openai", "psycopg", "sqlite3"]),
        ("doors.cli", "def late():\n    import web3", ["web3"]),
        ("doors.shell", "from eth.abc import BlockAPI", ["eth"]),
        ("trading.run", "import numpy", ["numpy"]),
        ("wiring", "import httpx2", ["httpx2"]),
        ("wiring", "from zuno_devnet.node import DevnetNode", ["zuno_devnet"]),
        ("lp.service", "import json\nfrom zuno.lp.rules import carry\nfrom . import views", []),
    ],
)
def test_a_stranger_is_found_wherever_it_hides(room: str, source: str, found: list[str]) -> None:
    assert strangers(source, room) == found


def test_every_adapter_family_is_a_stranger_to_the_others() -> None:
    """Which import-linter checks, for the families it is told of."""
    contracts = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (told,) = (contract["modules"] for contract in contracts if contract["type"] == "independence")
    families = [path.parent.name for path in (SOURCE / "adapters").glob("*/__init__.py")]
    assert sorted(told) == sorted(f"zuno.adapters.{family}" for family in families)


@pytest.mark.parametrize("package", ["zuno", "zuno_devnet"])
def test_the_package_says_that_it_is_typed(package: str) -> None:
    """Without this file, PEP 561 has type checkers ignore every annotation of an installed package."""
    assert (files(package) / "py.typed").is_file()
    build = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert f"src/{package}" in build["packages"]


@pytest.mark.parametrize(
    ("words", "unneeded"),
    [
        ("--help", HEAVY),
        ("journal tail", (*HEAVY_TO_READ, "rich")),
        ("lp positions", (*HEAVY_TO_READ, *SPENDING, "zuno.lp.rules.stress", "zuno.lp.watch.monitor")),
    ],
)
def test_a_command_loads_what_it_needs_alone(words: str, unneeded: tuple[str, ...], tmp_path: Path) -> None:
    """Half of the time of a short command is what it imports."""
    code = (
        "import atexit, sys; atexit.register(lambda: print('loaded', *sys.modules)); import zuno.__main__ as zuno; "
        "zuno.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words.split()],
        env={"ZUNO_HOME": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(done.stdout.splitlines()[-1].split())
    assert {"loaded", "zuno.doors.cli.main"} <= loaded
    assert loaded.intersection(unneeded) == set()
