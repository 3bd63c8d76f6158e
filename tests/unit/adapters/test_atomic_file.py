"""Atomic writes: the old file or the new one after an error, a kill or a race; private, and on disk where asked."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from zuno.adapters import atomic_file
from zuno.adapters.atomic_file import (
    create_file,
    keep_files_private,
    open_replacement,
    replace_file,
)
from zuno.kernel.errors import DiskFull
from zuno.settings import Settings
from zuno.wiring import Application

OLD, NEW = b"old", b"new"
WRITER = """
import sys
from pathlib import Path
from zuno.adapters.atomic_file import replace_file
path, size = Path(sys.argv[1]), 1 << 20
print("ready", flush=True)
number = 0
while True:
    replace_file(path, bytes([number % 256]) * size, durable=False)
    number += 1
"""


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for content in (OLD, NEW, b""):
        replace_file(path, content)
        assert path.read_bytes() == content
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]


def test_a_file_is_its_owners_alone_unless_the_user_asked_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    private, shared = tmp_path / "private", tmp_path / "new" / "shared"
    zuno = Application(Settings(home=tmp_path / "home"), sealed="not written to")
    private.write_bytes(OLD)
    private.chmod(0o644)
    monkeypatch.setattr(atomic_file, "_users_umask", [])
    mask = os.umask(0o027)
    try:
        replace_file(private, NEW)
        assert keep_files_private() == 0o027
        (tmp_path / "made").touch()
        zuno.write_file(shared, NEW)
        zuno.write_file(tmp_path / "home" / "report", NEW)
        assert keep_files_private() == 0o027
    finally:
        os.umask(mask)
    assert (mode_of(private), mode_of(tmp_path / "made"), mode_of(tmp_path / "home" / "report")) == (0o600,) * 3
    assert (mode_of(shared), mode_of(shared.parent)) == (0o640, 0o750)


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_disk_that_fails_leaves_the_old_file_and_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path = tmp_path / "a.json"
    replace_file(path, OLD)

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(DiskFull):
        replace_file(path, NEW)
    assert path.read_bytes() == OLD
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]


def test_an_interrupted_writer_leaves_the_old_file_and_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    replace_file(path, OLD)

    def interrupt() -> None:
        with open_replacement(path) as draft:
            draft.write_bytes(NEW)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert path.read_bytes() == OLD
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.slow
def test_a_writer_killed_at_any_moment_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    for wait in (0.0, 0.003, 0.01, 0.02, 0.05):
        command = [sys.executable, "-c", WRITER, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            give_up = time.monotonic() + 20
            while not path.exists():
                assert time.monotonic() < give_up
            time.sleep(wait)
            writer.send_signal(signal.SIGKILL)
        content = path.read_bytes()
        assert len(content) == 1 << 20
        assert content == content[:1] * len(content), "bytes of two writes"


def test_writers_at_once_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    contents = [bytes([number]) * 100_000 for number in range(8)]
    threads = [threading.Thread(target=replace_file, args=(path, content)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_bytes() in contents
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.bin"]


def flushed_files(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is flushed from now on: `file` or `folder`, and `rename` where the new name appears."""
    order: list[str] = []
    fsync, replace, link = os.fsync, os.replace, os.link

    def flush(handle: int) -> None:
        order.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        fsync(handle)

    def rename(source: Path, target: Path) -> None:
        order.append("rename")
        replace(source, target)

    def name(source: Path, target: Path) -> None:
        order.append("rename")
        link(source, target)

    monkeypatch.setattr(os, "fsync", flush)
    monkeypatch.setattr(os, "replace", rename)
    monkeypatch.setattr(os, "link", name)
    return order


def test_a_durable_write_flushes_the_file_then_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order = flushed_files(monkeypatch)
    replace_file(tmp_path / "a", NEW)
    assert order == ["file", "rename", "folder"]
    order.clear()
    assert create_file(tmp_path / "b", NEW)
    assert order == ["file", "rename", "folder"]
    order.clear()
    replace_file(tmp_path / "a", NEW, durable=False)
    assert order == ["rename"]


def test_a_created_file_never_replaces_another(tmp_path: Path) -> None:
    path = tmp_path / "node.key"
    assert create_file(path, OLD)
    assert mode_of(path) == 0o600
    assert not create_file(path, NEW)
    assert path.read_bytes() == OLD
    assert [entry.name for entry in tmp_path.iterdir()] == ["node.key"]
    with pytest.raises(FileNotFoundError):
        create_file(tmp_path / "gone" / "node.key", NEW)
