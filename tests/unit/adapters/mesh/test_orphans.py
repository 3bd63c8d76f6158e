"""Nodes that outlive whoever started them: found again by number and birth, ended, and nobody else with them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from zuno.adapters import part_processes
from zuno.adapters.mesh.folder import MeshFiles, Processes
from zuno.lp.model.debate import Role

NODE = """#!{python}
import signal, sys, time
if {stubborn}:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("node of", sys.argv[1:], flush=True)
time.sleep(120)
"""
PARENT = """
import os, pathlib, signal, sys
from zuno.adapters.mesh.folder import MeshFiles
from zuno.adapters.mesh.folder import Processes
from zuno.lp.model.debate import Role
home = pathlib.Path(sys.argv[1])
nursery = Processes(home, MeshFiles(home), pathlib.Path(sys.argv[2]))
print(*(nursery.node(role).pid for role in (Role.CLI, Role.CRITIC)), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def node_in(folder: Path, *, stubborn: bool = False) -> Path:
    """A node's program as far as its keeper can tell: it is started, and it stays."""
    path = folder / "node"
    path.write_text(NODE.format(python=sys.executable, stubborn=stubborn))
    path.chmod(0o700)
    return path


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def until(happens: Callable[[], bool]) -> None:
    give_up = time.monotonic() + 20
    while not happens():
        assert time.monotonic() < give_up
        time.sleep(0.01)


@pytest.fixture
def left(tmp_path: Path) -> Iterator[list[int]]:
    """Two nodes whose keeper was killed."""
    ran = subprocess.run(
        [sys.executable, "-c", PARENT, str(tmp_path), str(node_in(tmp_path))],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == -signal.SIGKILL, ran.stderr
    pids = [int(word) for word in ran.stdout.split()]
    yield pids
    for pid in pids:
        if alive(pid):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def nursery(tmp_path: Path) -> Processes:
    return Processes(tmp_path, MeshFiles(tmp_path), tmp_path / "node")


@pytest.mark.slow
async def test_nodes_that_survive_their_keeper_are_ended_by_the_next_one(left: list[int], nursery: Processes) -> None:
    assert all(map(alive, left))
    assert set(await nursery.end_orphans()) == set(left)
    assert not any(map(alive, left))
    assert await nursery.end_orphans() == ()


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        yield process
        process.kill()


async def test_a_stranger_with_the_same_number_is_left_alone(
    tmp_path: Path, nursery: Processes, stranger: subprocess.Popen[bytes]
) -> None:
    """What is written down began at another moment: its number was given to somebody else since."""
    record = tmp_path / "mesh" / "critic" / "axl.pid"
    record.parent.mkdir(parents=True)
    part_processes.note_child(record, stranger.pid)
    written = record.read_text()
    assert written.startswith(f"{stranger.pid} ")
    record.write_text(f"{written}1")
    assert await nursery.end_orphans() == ()
    assert stranger.poll() is None
    assert not record.exists()


@pytest.mark.parametrize("damage", ["", "{", '{"pid": 1, "began": "x"}', "1", "1 x", "-1 x"])
async def test_what_cannot_be_read_or_is_not_so_ends_nobody(tmp_path: Path, nursery: Processes, damage: str) -> None:
    record = tmp_path / "mesh" / "critic" / "axl.pid"
    record.parent.mkdir(parents=True)
    record.write_text(damage)
    assert await nursery.end_orphans() == ()
    assert not record.exists()


@pytest.mark.slow
async def test_one_that_does_not_listen_is_made_to_end(
    tmp_path: Path, nursery: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part_processes, "GRACE", 0.3)
    node_in(tmp_path, stubborn=True)
    child = nursery.node(Role.SCOUT)
    until(lambda: "node of" in child.last_words())
    assert await nursery.end_orphans() == (child.pid,)
    assert await child.wait() == -signal.SIGKILL


async def test_last_words_are_one_plain_line_of_the_end_of_a_log(tmp_path: Path, nursery: Processes) -> None:
    (tmp_path / "node").write_text("#!/bin/sh\nhead -c 100000 /dev/zero\nprintf '\\nzuno: \\033[31mred\\007 end\\n'\n")
    (tmp_path / "node").chmod(0o700)
    child = nursery.node(Role.SCOUT)
    await child.wait()
    assert child.last_words() == "[31mred end"


async def test_whoever_was_killed_did_not_say_why(tmp_path: Path, nursery: Processes) -> None:
    """Its last line is of before, and would be read as the reason."""
    (tmp_path / "node").write_text("#!/bin/sh\necho all is well\nkill -9 $$\n")
    (tmp_path / "node").chmod(0o700)
    child = nursery.node(Role.SCOUT)
    assert await child.wait() == -signal.SIGKILL
    assert f"{tmp_path}/mesh/scout/axl.log" in child.last_words()


async def test_a_log_is_bounded_within_a_life(
    tmp_path: Path, nursery: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part_processes, "_LARGEST_LOG", 10_000)
    (tmp_path / "node").write_text(
        f"#!/bin/sh\nyes xxx | head -c 20000\nwhile ! test -e {tmp_path}/go; do sleep 0.01; done\necho the end\n"
    )
    (tmp_path / "node").chmod(0o700)
    child = nursery.node(Role.SCOUT)
    log = tmp_path / "mesh" / "scout" / "axl.log"
    ended = asyncio.ensure_future(child.wait())
    async with asyncio.timeout(20):
        while not (log.with_suffix(".log.before").exists() and log.stat().st_size < 20_000):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    (tmp_path / "go").touch()
    assert await ended == 0
    assert log.with_suffix(".log.before").read_bytes().startswith(b"xxx")
    assert log.stat().st_size <= 10_000
    assert child.last_words().endswith("the end"), "it goes on at the end"
    assert b"\0" not in log.read_bytes()
