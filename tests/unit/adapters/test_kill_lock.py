"""The kill lock: a file that anybody can write and everybody reads before something new is sent."""

from __future__ import annotations

import stat
import subprocess
import sys
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
    assert [stat.S_IMODE(path.stat().st_mode) for path in (lock.path, lock.path.parent)] == [0o600, 0o700]
    assert [line.split()[::2] for line in lock.path.read_text().splitlines()] == [
        ["live", "page"],
        ["second", "terminal"],
    ]
    assert all((lock.why_locked("live"), lock.why_locked("second"), lock.why_locked()))
    assert lock.why_locked("demo") is None
    lock.unlock("live")
    assert (lock.why_locked("live"), bool(lock.why_locked())) == (None, True)
    lock.unlock("second")
    assert not lock.path.exists()
    lock.unlock("second")


def test_a_kill_waits_for_no_clock_that_can_be_read(lock: KillLockFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time_ns", lambda: -1)
    lock.lock("live", "page")
    assert lock.path.read_text().split()[::2] == ["live", "page"]
    assert lock.why_locked("live")


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
    assert lock.why_locked() is None


def test_what_cannot_be_opened_counts_as_locked(lock: KillLockFile) -> None:
    lock.path.mkdir(parents=True)
    assert lock.why_locked("paper")


@pytest.mark.parametrize("name", ["Live", "a b", "", "../x"])
def test_what_is_no_account_is_not_locked(lock: KillLockFile, name: str) -> None:
    with pytest.raises(UsageError):
        lock.lock(name, "page")
    assert not lock.path.exists()


def test_a_writer_that_was_stopped_half_way_holds_no_kill_up(lock: KillLockFile) -> None:
    """And kills of several processes at once are all there."""
    with KillLockFile(lock.path.parent)._turn:
        lock.lock("live", "page")
    code = "import sys; from pathlib import Path; from zuno.adapters.kill_lock import KillLockFile as K; "
    code += "K(Path(sys.argv[1])).lock(sys.argv[2], 'terminal')"
    names = [f"account{number}" for number in range(4)]
    started = [subprocess.Popen([sys.executable, "-c", code, str(lock.path.parent), name]) for name in names]
    assert [process.wait(60) for process in started] == [0] * len(names)
    assert all(lock.why_locked(name) for name in ("live", *names))


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
