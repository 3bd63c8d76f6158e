"""The command line as a person runs it: exit code and both streams, in a process of its own where that matters."""

from __future__ import annotations

import json
import shutil
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.wire.commands import Ran, Zuno, run_process, run_zuno


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


@pytest.fixture(scope="module")
def invented(invented_market: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a synthetic market in it, for all tests of a file."""
    home = tmp_path_factory.mktemp("invented")
    shutil.copytree(invented_market, home / "market")
    return home


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
