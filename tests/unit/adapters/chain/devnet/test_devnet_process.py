"""The devnet as a process: found again, ended for good, never mistaken for another, never left behind."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from zuno.adapters.chain.devnet.process import DevnetProcess
from zuno.adapters.file_lock import FileLock, ProcessIdentity
from zuno.kernel.errors import Unavailable

STAND_IN = Path(__file__).with_name("stand_in.py")
# A node in the background outlives the handle on it, on purpose.
pytestmark = pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")

Make = Callable[..., DevnetProcess]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A home; whoever still holds its lock afterwards is ended."""
    yield tmp_path
    holder = FileLock(tmp_path / "devnet.lock").process()
    if holder is not None and holder.pid != os.getpid():
        holder.send(signal.SIGKILL)


@pytest.fixture
def make(place: Path, node_modules: Path) -> Make:
    def process(manner: str, grace: float = 10.0) -> DevnetProcess:
        program = (sys.executable, str(STAND_IN), manner)
        return DevnetProcess(place, node_modules, 0, program=program, grace=grace)

    return process


def lock_of(place: Path) -> FileLock:
    return FileLock(place / "devnet.lock")


async def signed(place: Path) -> ProcessIdentity:
    """Whoever holds the lock, once somebody does."""
    give_up = time.monotonic() + 20
    while (holder := lock_of(place).process()) is None:
        assert time.monotonic() < give_up
        await asyncio.sleep(0.02)
    return holder


def spawn(place: Path, manner: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, STAND_IN, manner, "--home", place])


def leave_file(place: Path, pid: int) -> None:
    (place / "devnet.json").write_text(json.dumps({"url": "http://127.0.0.1:9", "pid": pid}))


@pytest.mark.slow
async def test_a_background_node_outlives_its_terminal_and_ends_when_told(make: Make, place: Path) -> None:
    leave_file(place, os.getpid())  # somebody's, long ago
    process = make("serving")
    started = await process.up(0, background=True)
    assert started.running
    assert started.pid is not None
    assert started.pid != os.getpid()
    assert os.getsid(started.pid) == started.pid, "a session of its own: no hang-up of a terminal reaches it"
    assert (await make("serving").up(0, background=True)).pid == started.pid
    assert process.url() == started.url
    stopped = await process.down()
    assert (stopped.running, stopped.pid) == (False, started.pid)
    assert not lock_of(place).is_held()
    assert not process.file.exists()
    assert (place / "devnet.lock").read_text() == "", "who leaves in good order signs off"


@pytest.mark.slow
async def test_a_node_that_does_not_listen_is_ended_after_its_grace(make: Make, place: Path) -> None:
    deaf = spawn(place, "deaf")
    await signed(place)
    await make("deaf", grace=0.3).down()
    assert deaf.wait(5) == -signal.SIGKILL
    assert not lock_of(place).is_held()


@pytest.mark.soak
async def test_the_file_of_a_dead_node_is_not_believed(make: Make, place: Path) -> None:
    process = make("starting")
    leave_file(place, os.getpid())
    assert (await process.status()).running is False
    with pytest.raises(Unavailable, match="zuno devnet up"):
        process.url()
    # Nor while another one starts, which has written nothing yet.
    starting = spawn(place, "starting")
    await signed(place)
    assert "starting" in (await process.status()).note
    with pytest.raises(Unavailable, match="zuno devnet up"):
        process.url()
    assert (await process.down()).pid == starting.pid
    assert starting.wait(5) == -signal.SIGTERM
    assert process.file.exists(), "not the stopped node's file"
    assert (await process.down()).running is False
    assert not process.file.exists()


@pytest.mark.slow
async def test_a_start_that_is_given_up_ends_its_child(make: Make, place: Path) -> None:
    start = asyncio.create_task(make("starting").up(0, background=True))
    child = await signed(place)
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    assert not child.alive
    assert not lock_of(place).is_held()


@pytest.mark.slow
async def test_a_child_that_does_not_listen_is_ended_too(make: Make, place: Path) -> None:
    start = asyncio.create_task(make("deaf", grace=0.2).up(0, background=True))
    await signed(place)
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    give_up = time.monotonic() + 5
    while lock_of(place).is_held():
        assert time.monotonic() < give_up
        await asyncio.sleep(0.02)


@pytest.mark.soak
def test_a_terminated_start_leaves_no_node_behind(place: Path, node_modules: Path) -> None:
    """The real command, whose world is still to be built."""
    command = [sys.executable, "-m", "zuno", "devnet", "up", "--background", "--port", "0", "--home", str(place)]
    start = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    child = asyncio.run(signed(place))
    assert child.pid != start.pid
    start.send_signal(signal.SIGTERM)
    assert start.wait(20) == 128 + signal.SIGTERM
    assert not child.alive
    assert not lock_of(place).is_held()


def test_a_stranger_with_an_old_number_is_not_signalled(make: Make, place: Path) -> None:
    """A new holder has the lock and has not signed yet: the file still names a process of long ago."""
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        with open(place / "devnet.lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            lock.write(f"{stranger.pid} 1")
            lock.flush()
            with pytest.raises(Unavailable, match="starting"):
                asyncio.run(make("starting", grace=0.1).down())
        assert stranger.poll() is None
    finally:
        stranger.kill()
        assert stranger.wait() == -signal.SIGKILL


@pytest.mark.slow
async def test_the_words_of_a_start_go_to_whoever_listens(
    place: Path, node_modules: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script = "import time; print('Building it ...', '  10 %', 'not for you', sep=chr(10), flush=True); time.sleep(1)"
    told: list[str] = []
    process = DevnetProcess(place, node_modules, 0, program=(sys.executable, "-c", script), tell=told.append)
    with pytest.raises(Unavailable, match=": not for you"):
        await process.up(0, background=True)
    assert told == ["Building it ...", "  10 %"]
    shown = "".join(capfd.readouterr())
    assert not any(line in shown for line in ("Building it", "10 %", "not for you"))
