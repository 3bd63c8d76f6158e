"""The command line as a person runs it: exit code and both streams, in a process of its own where that matters."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from zuno.frontends.cli.main import run
from zuno.wiring import open_zuno


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


def shell(home: Path, environment: dict[str, str]) -> dict[str, str]:
    """Only what a bare login shell has, and what the test sets."""
    bare = {name: value for name, value in os.environ.items() if not name.startswith("ZUNO_")}
    return {**bare, "ZUNO_HOME": str(home), **environment}


def run_zuno(home: Path, *arguments: str, **environment: str) -> Ran:
    """The whole command line behind its door, without the second an interpreter takes to start.

    In a thread, because a command has an event loop of its own and the test may have one too.
    """
    out, err = io.StringIO(), io.StringIO()
    with (
        patch.dict(os.environ, shell(home, environment), clear=True),
        redirect_stdout(out),
        redirect_stderr(err),
        ThreadPoolExecutor(1) as thread,
    ):
        code = thread.submit(run, arguments, open_zuno).result()
    return Ran(code, out.getvalue(), err.getvalue())


def run_process(home: Path, *arguments: str, **environment: str) -> Ran:
    """The same by a real process: for what only a process has, its streams' encoding and company."""
    done = subprocess.run(
        [sys.executable, "-m", "zuno", *arguments],
        env=shell(home, environment),
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


@pytest.fixture
def process(home: Path) -> Zuno:
    def run(*arguments: str, **environment: str) -> Ran:
        return run_process(home, *arguments, **environment)

    return run


@pytest.fixture(scope="session")
def built_home(world_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose devnet need not be built again."""
    home = tmp_path_factory.mktemp("devnet-home")
    shutil.copytree(world_cache, home / "devnet", ignore=shutil.ignore_patterns("*.lock"))
    return home


@pytest.fixture(scope="session")
def devnet_home(built_home: Path) -> Iterator[Path]:
    """A home whose devnet runs, for all tests of this session."""
    started = run_process(built_home, "devnet", "up", "--background", "--port", "0", "--json")
    assert started.code == 0, started.err
    try:
        yield built_home
    finally:
        run_zuno(built_home, "devnet", "down")


@pytest.fixture
def devnet(devnet_home: Path) -> Iterator[Zuno]:
    """The running devnet as the story left it, called like the command line."""
    record = json.loads((devnet_home / "devnet.json").read_text())
    shutil.rmtree(devnet_home / "chains", ignore_errors=True)
    before = ask(record["url"], "evm_snapshot")
    try:
        yield lambda *arguments, **environment: run_zuno(devnet_home, *arguments, **environment)
    finally:
        assert ask(record["url"], "evm_revert", before)


@pytest.fixture
def apart(built_home: Path, tmp_path: Path) -> Iterator[Zuno]:
    """A home without a running devnet, for what befalls one; whoever starts one is a process of its own."""
    home = tmp_path / "devnet-home"
    home.mkdir()
    (home / "devnet").symlink_to(built_home / "devnet")

    def command(*arguments: str, **environment: str) -> Ran:
        way = run_process if "up" in arguments else run_zuno
        return way(home, *arguments, **environment)

    try:
        yield command
    finally:
        run_zuno(home, "devnet", "down")


def ask(url: str, method: str, *params: object) -> Any:
    """One JSON-RPC question to a local node."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())["result"]
