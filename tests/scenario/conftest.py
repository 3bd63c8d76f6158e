"""The command line as a person runs it: a real process, its exit code, its two streams."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


@dataclass(frozen=True)
class Ran:
    """One finished command."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Its stdout as one JSON document."""
        return json.loads(self.out)


Zuno = Callable[..., Ran]


def run_zuno(home: Path, *arguments: str, **environment: str) -> Ran:
    # Only what a bare login shell has; a width of 80 as in a small terminal.
    bare = {name: value for name, value in os.environ.items() if not name.startswith("ZUNO_")}
    done = subprocess.run(
        [sys.executable, "-m", "zuno", *arguments],
        env={**bare, "ZUNO_HOME": str(home), **environment},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def zuno(home: Path) -> Zuno:
    def run(*arguments: str, **environment: str) -> Ran:
        return run_zuno(home, *arguments, **environment)

    return run


@pytest.fixture(scope="session")
def built_home(world_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose devnet need not be built again."""
    home = tmp_path_factory.mktemp("devnet-home")
    shutil.copytree(world_cache, home / "devnet", ignore=shutil.ignore_patterns("*.lock"))
    return home


@pytest.fixture
def devnet(built_home: Path, tmp_path: Path) -> Iterator[Zuno]:
    """A running devnet of its own, stopped afterwards; called like the command line."""
    home = tmp_path / "devnet-home"
    shutil.copytree(built_home, home)

    def run(*arguments: str, **environment: str) -> Ran:
        return run_zuno(home, *arguments, **environment)

    started = run("devnet", "up", "--background", "--port", "0", "--json")
    assert started.code == 0, started.err
    try:
        yield run
    finally:
        run("devnet", "down")
