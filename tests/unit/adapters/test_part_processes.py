"""A part as a process: its lines, its signs of life, its end with its parent; and the service manager's datagrams."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from zuno.adapters.part_processes import PartProcess, PartProcesses, ServiceManager, note_child
from zuno.kernel.children import PART_VARIABLE

SERVED = "from zuno.adapters.part_processes import follow_supervisor as f; f(); import time; print('on', flush=True); "


def start(script: str, lines: list[str]) -> tuple[PartProcess, socket.socket]:
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-c", script],
            stdin=theirs.fileno(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, PART_VARIABLE: "desk"},
        )
    return PartProcess(process, ours, lines.append), ours


async def hear(lines: list[str]) -> None:
    """Until it has said something."""
    for _ in range(3_000):
        if lines:
            return
        await asyncio.sleep(0.01)


async def test_what_a_part_says_comes_back_line_by_line() -> None:
    lines: list[str] = []
    script = (
        "import os; os.write(0, b'..r'); print('one'); print('x' * 9_000); print('zuno: the last', end=''); exit(3)"
    )
    part, _ = start(script, lines)
    assert await part.wait() == 3
    assert (lines[0], "".join(lines[1:-1]), lines[-1]) == ("one", "x" * 9_000, "zuno: the last")
    assert (part.beats, part.ready, part.last_words()) == (3, True, "the last")
    assert await part.wait() == 3  # asked again by whoever ends it


async def test_a_part_ends_with_its_supervisor_also_while_it_starts() -> None:
    lines: list[str] = []
    part, ours = start(SERVED + "time.sleep(60)", lines)
    waiting = asyncio.ensure_future(part.wait())
    await hear(lines)
    ours.shutdown(socket.SHUT_RDWR)
    assert await asyncio.wait_for(waiting, 30) == -15
    assert part.last_words() == "it was killed"


async def test_one_that_ignores_the_end_is_ended_all_the_same() -> None:
    deaf = "import signal as s; s.signal(15, s.SIG_IGN); "
    deaf += "import zuno.adapters.part_processes as p; p.ORPHAN_SECONDS = 0.1; "
    lines: list[str] = []
    part, ours = start(deaf + SERVED + "time.sleep(60)", lines)
    waiting = asyncio.ensure_future(part.wait())
    await hear(lines)
    ours.shutdown(socket.SHUT_RDWR)
    assert await asyncio.wait_for(waiting, 30) == 143


async def test_what_a_killed_service_left_is_ended(tmp_path: Path) -> None:
    processes = PartProcesses(tmp_path)
    (tmp_path / "leases").mkdir()
    sleeping, _ = start("import time; time.sleep(60)", [])
    note_child(tmp_path / "leases" / "serve-desk.pid", sleeping.pid)
    assert await processes.end_orphans(("desk", "page")) == (sleeping.pid,)
    assert await sleeping.wait() == -15
    assert await processes.end_orphans(("desk", "page")) == ()


@pytest.mark.parametrize("abstract", [False, True])
def test_a_service_manager_is_told(tmp_path: Path, abstract: bool) -> None:
    name = f"@zuno-{os.getpid()}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"\0{name[1:]}" if abstract else name)
        told = ServiceManager({"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(os.getpid())})
        assert told.watchdog_seconds == 3.0
        told.tell("READY=1", "STATUS=ready")
        assert manager.recv(100) == b"READY=1\nSTATUS=ready"
        for _ in range(2_000):  # nobody reads: we are not held up
            told.tell("WATCHDOG=1")
    told.tell("STOPPING=1")  # nobody is there any more


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"WATCHDOG_USEC": "3000000"},
        {"NOTIFY_SOCKET": "/nowhere", "WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"},
        {"NOTIFY_SOCKET": "/nowhere", "WATCHDOG_USEC": "0"},
        {"NOTIFY_SOCKET": "/nowhere", "WATCHDOG_USEC": "soon"},
    ],
)
def test_without_a_watchdog_of_ours_none_is_fed(environment: dict[str, str]) -> None:
    manager = ServiceManager(environment)
    assert manager.watchdog_seconds is None
    manager.tell("READY=1")
