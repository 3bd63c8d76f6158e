"""The kill lock: a file that anybody can write and everybody reads before something new is sent."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from zuno.adapters.kill_lock import FILE, KillLockFile, find_home
from zuno.kernel.accounts import short_name
from zuno.kernel.errors import Refused, UsageError
from zuno.settings import read_settings


@pytest.fixture
def lock(tmp_path: Path) -> KillLockFile:
    return KillLockFile(tmp_path / "home")


def test_an_account_is_locked_for_its_owner_alone_until_it_is_unlocked(lock: KillLockFile) -> None:
    assert (lock.why_locked("live"), lock.why_locked()) == (None, None)
    for _ in range(2):
        lock.lock("live", "page")
    lock.lock("second", "terminal")
    kills = list(lock.folder.iterdir())
    assert {stat.S_IMODE(path.stat().st_mode) for path in kills} == {0o600}
    assert [stat.S_IMODE(path.stat().st_mode) for path in (lock.folder, lock.folder.parent)] == [0o700, 0o700]
    assert {(account, said.split()[1]) for account, said in lock.list_kills()} == {
        ("live", "page"),
        ("second", "terminal"),
    }
    assert all((lock.why_locked("live"), lock.why_locked("second"), lock.why_locked()))
    assert lock.why_locked("demo") is None
    lock.unlock("live")
    assert (lock.why_locked("live"), bool(lock.why_locked())) == (None, True)
    lock.unlock("second")
    assert (lock.why_locked(), list(lock.folder.iterdir()), lock.path.exists()) == (None, [], False)
    lock.unlock("second")


def test_a_kill_waits_for_no_clock_that_can_be_read(lock: KillLockFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time_ns", lambda: -1)
    lock.lock("live", "page")
    assert lock.list_kills() == {("live", "undated page")}


def test_a_kill_on_a_full_disk_locks_by_its_name_alone(lock: KillLockFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no room for a byte there often is for one more name."""
    flush, full = os.fsync, [OSError(errno.ENOSPC, "no room")]

    def fsync(handle: int) -> None:
        if full:
            raise full.pop()
        flush(handle)

    monkeypatch.setattr("os.fsync", fsync)
    lock.lock("live", "page")
    assert (bool(lock.why_locked("live")), lock.why_locked("paper")) == (True, None)
    lock.unlock("live")
    assert lock.why_locked("live") is None


def test_an_unlock_lifts_no_kill_that_came_after_its_owner_was_asked(lock: KillLockFile) -> None:
    lock.lock("live", "page")
    seen = lock.list_marks("live")
    lock.lock("live", "telegram")
    lock.unlock("live", seen)
    assert lock.why_locked("live")
    lock.unlock("live", lock.list_marks("live"))
    assert lock.why_locked("live") is None


def test_a_line_by_hand_locks_one_account(lock: KillLockFile) -> None:
    lock.path.parent.mkdir()
    subprocess.run(["sh", "-c", f"echo live >> '{lock.path}'"], check=True)
    assert lock.why_locked("live")
    assert lock.why_locked("demo") is None
    lock.unlock("live")
    assert not lock.path.exists()


@pytest.mark.parametrize("content", [b"", b"live", b"\x00\xff\n", b"live\n\n", b"second\nno!name\n"])
def test_a_damaged_file_locks_every_account_until_it_is_removed_by_hand(lock: KillLockFile, content: bytes) -> None:
    lock.path.parent.mkdir()
    lock.path.write_bytes(content)
    assert all((lock.why_locked("live"), lock.why_locked("paper"), lock.why_locked()))
    lock.lock("live", "page")
    with pytest.raises(Refused):
        lock.unlock("live")
    assert lock.path.read_bytes() == content
    lock.path.unlink()
    assert (bool(lock.why_locked("live")), lock.why_locked("paper")) == (True, None)


def test_what_cannot_be_opened_counts_as_locked(tmp_path: Path) -> None:
    lock, other, third = (KillLockFile(tmp_path / name) for name in ("first", "second", "third"))
    lock.path.mkdir(parents=True)
    other.folder.parent.mkdir()
    other.folder.write_text("")
    third.folder.mkdir(parents=True)
    (third.folder / "no!name").write_text("")
    assert all(each.why_locked("paper") for each in (lock, other, third))
    (third.folder / "no!name").rename(third.folder / "second")
    assert (bool(third.why_locked("second")), third.why_locked("paper")) == (True, None)


def test_a_lock_file_of_an_older_release_locks_until_it_is_unlocked(lock: KillLockFile) -> None:
    lock.path.parent.mkdir()
    lock.path.write_text("live 2026-11-18T00:00:00Z terminal\nsecond\n")
    lock.lock("live", "page")
    assert lock.list_kills() == {("live", "2026-11-18T00:00:00Z terminal"), ("second", "")}
    lock.unlock("live")
    assert (lock.why_locked("live"), lock.list_kills()) == (None, {("second", "")})


@pytest.mark.parametrize("name", ["Live", "a b", "", "../x"])
def test_what_is_no_account_is_not_locked(lock: KillLockFile, name: str) -> None:
    with pytest.raises(UsageError):
        lock.lock(name, "page")
    assert lock.why_locked() is None


class HeldFsync:
    """A disk on which the first flush of one thread is done when the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.done = threading.Event(), threading.Event()
        self.held: int | None = None
        self._fsync = os.fsync
        monkeypatch.setattr("os.fsync", self.flush)

    def flush(self, handle: int) -> None:
        if threading.get_ident() == self.held:
            self.held = None
            self.begun.set()
            assert self.done.wait(60)
        self._fsync(handle)

    def run(self, act: Callable[[], None]) -> threading.Thread:
        """Begin an act in a thread that is held at its first flush."""

        def begin() -> None:
            self.held = threading.get_ident()
            act()

        thread = threading.Thread(target=begin)
        thread.start()
        assert self.begun.wait(60)
        return thread


@pytest.mark.parametrize("slow", ["kill", "unlock"])
def test_a_slower_writer_takes_no_finished_kill_with_it(
    lock: KillLockFile, monkeypatch: pytest.MonkeyPatch, slow: str
) -> None:
    """Another kill, or an unlock of another account, whose flush takes longer than the kill."""
    for account in ("first", "live"):
        lock.lock(account, "page")
    disk = HeldFsync(monkeypatch)
    writer = disk.run(lambda: lock.lock("first", "page") if slow == "kill" else lock.unlock("first"))
    other = KillLockFile(lock.path.parent)
    other.lock("second", "terminal")
    other.lock("first", "terminal")
    disk.done.set()
    writer.join(60)
    assert all(lock.why_locked(account) for account in ("first", "second", "live"))


def test_kills_of_many_processes_at_once_are_all_there_whoever_unlocks_meanwhile(lock: KillLockFile) -> None:
    with KillLockFile(lock.path.parent)._turn:  # a writer that was stopped half-way holds no kill up
        lock.lock("live", "page")
    code = "import sys; from pathlib import Path; from zuno.adapters.kill_lock import KillLockFile as K; "
    code += "lock = K(Path(sys.argv[1])); "
    code += "[(lock.lock(sys.argv[2] + str(n), 'terminal'), lock.lock('gone', 'page'), lock.unlock('gone')) "
    code += "for n in range(20)]; lock.unlock('gone')"
    names = [f"account{number}x" for number in range(4)]
    started = [subprocess.Popen([sys.executable, "-c", code, str(lock.path.parent), name]) for name in names]
    assert [process.wait(60) for process in started] == [0] * len(names)
    killed = {"live", *(f"{name}{number}" for name in names for number in range(20))}
    assert {account for account, _ in lock.list_kills()} == killed


def test_the_home_is_the_one_that_the_settings_find(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ZUNO_HOME", "zuno_home"):
        monkeypatch.delenv("ZUNO_HOME", raising=False)
        monkeypatch.setenv(name, str(tmp_path / "set"))
        environment = {name: str(tmp_path / "set")}
        assert find_home(None, environment) == read_settings(environment).home == tmp_path / "set"
        monkeypatch.delenv(name)
    assert find_home(None, {}) == read_settings({}).home
    assert find_home("~/x", {}) == read_settings({}, Path("~/x")).home


@pytest.mark.parametrize(
    ("account", "name"),
    [("live", "live"), ("demo", "demo"), ("paper:SYNTHETIC seed 1", "paper"), ("paper:recorded:second", "second")],
)
def test_an_account_is_locked_by_what_its_owner_calls_it(account: str, name: str) -> None:
    assert short_name(account) == name
    assert FILE == "kill.lock"
