"""The file lock: one holder among processes and tasks, named in the refusal, released however the holder ends."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from zuno.adapters.file_lock import (
    FileLock,
    ProcessIdentity,
    collector_lock,
    monitor_lock,
    start_time,
    symbol_lock,
    wallet_lock,
)
from zuno.kernel.errors import Refused, Unavailable

HOLDER = """
import sys
from pathlib import Path
from zuno.adapters.file_lock import FileLock
with FileLock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""
COUNTER = """
import sys
from pathlib import Path
from zuno.adapters.file_lock import FileLock
folder = Path(sys.argv[1])
for _ in range(100):
    with FileLock(folder / "a.lock", timeout=60):
        total = int((folder / "total").read_text())
        (folder / "total").write_text(str(total + 1))
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.lock"


@pytest.fixture
def child(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock."""
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def refusing(path: Path) -> FileLock:
    return FileLock(path, "taken by {}")


def test_a_second_holder_is_refused_with_the_first_ones_pid(path: Path) -> None:
    lock = refusing(path)
    with lock:
        for second in (lock, refusing(path), refusing(path.parent / "." / path.name)):
            with pytest.raises(Refused, match=rf"\b{os.getpid()}$"):
                second.take()
        with FileLock(path.with_name("b.lock")):
            pass
        assert lock.is_held(), "a refusal does not disturb the holder"
    with refusing(path):
        pass


async def test_tasks_of_one_process_exclude_each_other(path: Path) -> None:
    inside, most, refused = 0, 0, 0

    async def work() -> None:
        nonlocal inside, most, refused
        try:
            with refusing(path):
                inside += 1
                most = max(most, inside)
                await asyncio.sleep(0)
                inside -= 1
        except Refused:
            refused += 1

    await asyncio.gather(*(work() for _ in range(5)))
    assert (most, refused) == (1, 4)


def test_it_is_released_after_an_error_and_by_leaving_twice(path: Path) -> None:
    with pytest.raises(ZeroDivisionError), FileLock(path):
        raise ZeroDivisionError
    lock = FileLock(path)
    lock.take()
    lock.leave()
    lock.leave()
    assert not lock.is_held()
    with pytest.raises(ValueError, match="held"):
        _ = lock.handle


@pytest.mark.slow
def test_another_process_is_named_and_a_kill_releases_it(path: Path, child: subprocess.Popen[str]) -> None:
    lock = refusing(path)
    assert lock.is_held()
    assert lock.holder() == child.pid
    assert lock.process() == ProcessIdentity(child.pid, start_time(child.pid) or "")
    with pytest.raises(Refused, match=f"process {child.pid}$"):
        lock.take()
    os.kill(child.pid, signal.SIGKILL)
    child.wait(timeout=10)
    assert path.read_text().startswith(f"{child.pid} "), "a killed process cannot sign off"
    assert (lock.is_held(), lock.holder()) == (False, None)
    with lock:
        assert lock.holder() == os.getpid()
    assert path.read_bytes() == b""


@pytest.mark.slow
def test_processes_that_wait_their_turn_lose_no_update(tmp_path: Path) -> None:
    (tmp_path / "total").write_text("0")
    workers = [subprocess.Popen([sys.executable, "-c", COUNTER, str(tmp_path)]) for _ in range(4)]
    assert [worker.wait(60) for worker in workers] == [0] * 4
    assert (tmp_path / "total").read_text() == "400"


@pytest.mark.slow
def test_a_wait_that_takes_too_long_is_unavailable_and_names_the_holder(
    path: Path, child: subprocess.Popen[str]
) -> None:
    began = time.monotonic()
    with pytest.raises(Unavailable, match=rf"{child.pid}.*a\.lock.*0\.1 s"):
        FileLock(path, timeout=0.1).take()
    assert time.monotonic() - began >= 0.1


@pytest.mark.slow
def test_a_lock_that_is_only_looked_at_can_be_taken(path: Path) -> None:
    with open(path, "w", encoding="utf-8") as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        timer = threading.Timer(0.15, lambda: fcntl.flock(looking, fcntl.LOCK_UN))
        timer.start()
        with refusing(path):
            pass
        timer.join()


def test_a_stale_signature_names_nobody(path: Path) -> None:
    """Whoever holds the lock now has not signed yet: the file still names a process of long ago."""
    with open(path, "w", encoding="utf-8") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        other.write(f"{os.getpid()} 1")
        other.flush()
        lock = refusing(path)
        assert (lock.is_held(), lock.process(), lock.holder()) == (True, None, None)


@pytest.mark.parametrize("content", [b"", b"\xff\x1b[31m nobody", b"-1 x", "²".encode(), b"9" * 5_000])
def test_what_is_no_signature_is_not_repeated(path: Path, content: bytes) -> None:
    with FileLock(path):
        path.write_bytes(content)
        with pytest.raises(Refused, match=r"^\D+$"):
            refusing(path).take()
        assert refusing(path).holder() is None


def test_an_unsigned_lock_leaves_the_files_content_to_its_holder(path: Path) -> None:
    path.write_bytes(b"a note")
    lock = FileLock(path, signed=False)
    with lock:
        assert os.pread(lock.handle, 10, 0) == b"a note"
    assert path.read_bytes() == b"a note"


def test_looking_creates_nothing(path: Path) -> None:
    assert (FileLock(path).is_held(), FileLock(path).process()) == (False, None)
    assert not path.exists()


def test_a_missing_folder_is_made_where_that_is_wanted(tmp_path: Path) -> None:
    with pytest.raises(Unavailable):
        FileLock(tmp_path / "gone" / "a.lock", parents=False).take()
    assert not (tmp_path / "gone").exists()
    with FileLock(tmp_path / "made" / "a.lock"):
        assert stat.S_IMODE((tmp_path / "made").stat().st_mode) == 0o700


def test_the_file_is_its_owners_alone(path: Path) -> None:
    with FileLock(path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("monitor.lock", monitor_lock),
        ("collect.lock", collector_lock),
        ("leases/BTCUSDT.lock", lambda home: symbol_lock(home, "BTCUSDT")),
        ("turn-sim-0xa1.lock", lambda home: wallet_lock(home, "sim-0xa1")),
    ],
)
def test_the_locks_of_a_home_keep_their_files_and_name_their_holder(tmp_path: Path, name: str, make: object) -> None:
    assert callable(make)
    with make(tmp_path):
        assert (tmp_path / name).is_file()
        with pytest.raises(Refused, match=f"process {os.getpid()}"):
            make(tmp_path).take()


def test_a_process_is_known_by_its_start() -> None:
    child = subprocess.Popen(["sleep", "60"])
    started = start_time(child.pid)
    assert started
    assert ProcessIdentity(child.pid, started).alive
    assert not ProcessIdentity(child.pid, started + "0").alive
    ProcessIdentity(child.pid, started + "0").send(signal.SIGKILL)
    child.terminate()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not ProcessIdentity(child.pid, started).alive, "ended, and not reaped yet"
    assert child.wait() == -signal.SIGTERM, "not by the signal that was meant for another"
    assert start_time(child.pid) is None
    assert not ProcessIdentity(child.pid, "").alive


def test_a_process_that_ends_meanwhile_needs_no_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_late(pid: int, number: int) -> None:
        raise ProcessLookupError

    monkeypatch.setattr(os, "kill", too_late)
    ProcessIdentity(os.getpid(), start_time(os.getpid()) or "").send(signal.SIGTERM)
