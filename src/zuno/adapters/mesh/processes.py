"""Peers and AXL nodes as child processes with a log each; a peer ends when its parent is gone."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from zuno.adapters.file_lock import start_time
from zuno.adapters.mesh.folder import MeshFiles
from zuno.kernel.errors import Unavailable, UsageError
from zuno.kernel.text import plain_text
from zuno.kernel.wire import Wire
from zuno.lp.model.debate import Role

_LOOK: Final = 0.05
_LARGEST_LOG: Final = 4 * 1024 * 1024
_LAST_BYTES: Final = 16 * 1024


class Processes:
    """`axl_node` is the node's binary, if one is set."""

    def __init__(self, home: Path, files: MeshFiles, axl_node: Path | None) -> None:
        self._home = home
        self._files = files
        self._axl_node = axl_node

    def peer(self, role: Role, transport: str) -> LoggedChild:
        parent, home = str(os.getpid()), str(self._home)
        words = ["peer", role.value, "--transport", transport, "--child-of", parent, "--home", home]
        return _start([sys.executable, "-m", "zuno", *words], self._files.of(role) / "peer.log")

    @property
    def has_nodes(self) -> bool:
        return self._axl_node is not None

    def node(self, role: Role) -> LoggedChild:
        if self._axl_node is None:
            raise UsageError("No AXL node binary is set; set ZUNO_AXL_NODE to it, or start the nodes yourself.")
        config = self._files.node_config(role)
        # Somebody else's program: it is told where it is, and none of our keys.
        plain = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
        child = _start([str(self._axl_node), "-config", str(config)], self._files.of(role) / "axl.log", plain)
        with suppress(OSError):  # then it is left to its owner, should we be killed
            note_child(self._pid_file(role), child.pid)
        return child

    async def end_orphans(self) -> tuple[int, ...]:
        ended = await asyncio.gather(*(end_orphan(self._pid_file(role)) for role in Role))
        return tuple(pid for pid in ended if pid is not None)

    def _pid_file(self, role: Role) -> Path:
        return self._files.of(role) / "axl.pid"


class LoggedChild:
    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process = process
        self._log = log

    @property
    def pid(self) -> int:
        return self._process.pid

    async def wait(self) -> int:
        while (code := self._process.poll()) is None:
            _shorten(self._log)
            await asyncio.sleep(_LOOK)  # a thread that waits could not be given up
        return code

    def signal(self, *, hard: bool = False) -> None:
        if self._process.poll() is None:  # not reaped yet, so the number is still its own
            with suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGKILL if hard else signal.SIGTERM)

    def last_words(self) -> str:
        """The last line it logged, if it ended by itself."""
        code = self._process.poll()
        if code is not None and code < 0:
            return f"it was killed, and its log {self._log} cannot say why"
        with suppress(OSError):
            with open(self._log, "rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - _LAST_BYTES))
                lines = [line for line in log.read().decode(errors="replace").splitlines() if line.strip()]
            if lines:
                return plain_text(lines[-1].removeprefix("zuno: "), 300)
        return f"its log {self._log} is empty"


def _shorten(log: Path) -> None:
    """Keep one old copy of a long log and start over; a line written at this instant may be lost."""
    with suppress(OSError):
        if log.stat().st_size > _LARGEST_LOG:
            shutil.copyfile(log, log.with_suffix(".log.before"))
            os.truncate(log, 0)


def _start(command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> LoggedChild:
    try:
        log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _shorten(log)
        with open(log, "ab") as words:
            # A session of its own: Ctrl-C at the terminal is for the parent, who ends its children itself.
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=environment,
            )
    except OSError as error:
        raise Unavailable(f"{command[0]} could not be started ({error.strerror}).") from error
    return LoggedChild(process, log)


GRACE: Final = 5.0
_LOOK_FOR_END: Final = 0.02


class _Orphan(Wire):
    pid: int
    began: str


def note_child(path: Path, pid: int) -> None:
    """Write down a child's pid and start time, so that a later run can end it without hitting a reused pid."""
    began = start_time(pid)
    if began is not None:
        path.write_text(_Orphan(pid=pid, began=began).model_dump_json(), encoding="utf-8")


async def end_orphan(path: Path) -> int | None:
    """End the noted process if it still is the same one; returns its pid."""
    orphan = _read_note(path)
    ended = None if orphan is None else await _end_process(orphan)
    _forget(path)
    return ended


def _read_note(path: Path) -> _Orphan | None:
    with suppress(OSError, ValidationError):
        return _Orphan.model_validate_json(path.read_bytes())
    return None


def _forget(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


async def _end_process(orphan: _Orphan) -> int | None:
    with _open_pidfd(orphan.pid) as handle:
        if start_time(orphan.pid) != orphan.began:  # it is gone, and its number may be somebody else's
            return None
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError, PermissionError):
                if handle is not None:
                    signal.pidfd_send_signal(handle, number)
                elif start_time(orphan.pid) == orphan.began:
                    os.kill(orphan.pid, number)
            waited = 0.0
            while waited < GRACE:
                if start_time(orphan.pid) != orphan.began:
                    return orphan.pid
                await asyncio.sleep(_LOOK_FOR_END)
                waited += _LOOK_FOR_END
    return orphan.pid


@contextmanager
def _open_pidfd(pid: int) -> Iterator[int | None]:
    """A handle that keeps the pid from being reused, where the system has such handles."""
    handle: int | None = None
    with suppress(OSError, AttributeError):
        handle = os.pidfd_open(pid)
    try:
        yield handle
    finally:
        if handle is not None:
            os.close(handle)
