"""Child processes, those of `zuno serve` among them, and the service manager it reports to.

A part's stdin is a socket: its end tells the part that `zuno serve` is gone, and the part writes a byte a second into
it while its loop runs. What a part prints comes back line by line.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from zuno.adapters.file_lock import ProcessIdentity, read_process, start_time
from zuno.kernel.children import PART_VARIABLE, READY_BYTE
from zuno.kernel.errors import Unavailable
from zuno.kernel.text import plain_text

ORPHAN_SECONDS: Final = 30.0
"""How long a part may take to end once its `zuno serve` is gone."""
GRACE: Final = 5.0
LOOK: Final = 0.05
_LARGEST_LOG: Final = 4 * 1024 * 1024
_LAST_BYTES: Final = 16 * 1024
_LONGEST_LINE: Final = 8_192
_MANAGER: Final = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")
"""Variables of a service manager: they are meant for `zuno serve` alone."""


class LoggedChild:
    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.pid = process.pid
        self._process = process
        self._log = log

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    async def wait(self) -> int:
        while (code := self._process.poll()) is None:
            _shorten_log(self._log)
            await asyncio.sleep(LOOK)  # a thread that waits could not be given up
        return code

    def signal(self, *, hard: bool = False) -> None:
        if not self.ended:  # not reaped yet, so the number is still its own
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


def _shorten_log(log: Path) -> None:
    """Keep one old copy of a long log and start over; a line written at this instant may be lost."""
    with suppress(OSError):
        if log.stat().st_size > _LARGEST_LOG:
            shutil.copyfile(log, log.with_suffix(".log.before"))
            os.truncate(log, 0)


def start_logged(command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> LoggedChild:
    try:
        log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _shorten_log(log)
        with open(log, "ab") as words:
            return LoggedChild(_start(command, subprocess.DEVNULL, words, environment), log)
    except OSError as error:
        raise Unavailable(f"{command[0]} could not be started ({error.strerror}).") from error


def _start(
    command: Sequence[str], stdin: int, stdout: IO[bytes] | int, environment: Mapping[str, str] | None
) -> subprocess.Popen[bytes]:
    # A session of its own: Ctrl-C at the terminal is for the parent, who ends its children itself.
    return subprocess.Popen(
        command, stdin=stdin, stdout=stdout, stderr=subprocess.STDOUT, start_new_session=True, env=environment
    )


def note_child(path: Path, pid: int) -> None:
    """Write down a child's pid and start time, so that a later run can end it without hitting a reused pid."""
    if (began := start_time(pid)) is not None:
        path.write_text(f"{pid} {began}", encoding="ascii")


async def end_orphans(notes: Iterable[Path]) -> tuple[int, ...]:
    """End the noted processes that still are the same ones; returns their pids."""
    orphans = {path: read_process(path) for path in notes}
    living = [orphan for orphan in orphans.values() if orphan is not None and orphan.alive]
    await asyncio.gather(*map(end_process, living), return_exceptions=True)
    for path in orphans:
        with suppress(OSError):
            os.unlink(path)
    return tuple(orphan.pid for orphan in living)


async def end_process(
    process: ProcessIdentity, signals: Sequence[signal.Signals] = (signal.SIGTERM, signal.SIGKILL), patience: float = 0
) -> bool:
    """Send one after the other, each with its time to be heeded; whether it has ended."""
    for number in signals:
        try:
            process.send(number)
        except PermissionError:
            raise Unavailable(f"Process {process.pid} is somebody else's and cannot be ended from here.") from None
        with suppress(TimeoutError):
            async with asyncio.timeout(patience or GRACE):
                while process.alive:  # noqa: ASYNC110
                    await asyncio.sleep(LOOK)
            return True
    return False


class PartProcesses:
    def __init__(self, home: Path) -> None:
        self._home = home

    def start(self, name: str, words: Sequence[str], hear: Callable[[str], None]) -> PartProcess:
        environment = {key: value for key, value in os.environ.items() if key not in _MANAGER}
        environment |= {PART_VARIABLE: name, "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, "-m", "zuno", *words, "--home", str(self._home)]
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                process = _start(command, theirs.fileno(), subprocess.PIPE, environment)
            except OSError as error:
                raise Unavailable(f"No process can be started ({error.strerror}).") from error
        with suppress(OSError):  # on a full disk nothing is noted; the part ends with us all the same
            note_child(self._note(name), process.pid)
        return PartProcess(process, ours, hear)

    async def end_orphans(self, names: Sequence[str]) -> tuple[int, ...]:
        """Parts of a killed `zuno serve` that have not ended by themselves."""
        return await end_orphans(map(self._note, names))

    def _note(self, name: str) -> Path:
        return self._home / "leases" / f"serve-{name}.pid"


class PartProcess(LoggedChild):
    """`beats`: bytes it sent so far. `ready`: it said that it does its work."""

    def __init__(self, process: subprocess.Popen[bytes], line: socket.socket, hear: Callable[[str], None]) -> None:
        super().__init__(process, Path(os.devnull))
        self._line = line
        self._hear = hear
        self._unread = b""
        self._last = "it said nothing"
        self.beats = 0
        self.ready = False
        assert process.stdout is not None
        self._output = process.stdout
        os.set_blocking(self._output.fileno(), False)
        line.setblocking(False)

    async def wait(self) -> int:
        while (code := self._process.poll()) is None:
            self._read()
            await asyncio.sleep(2 * LOOK)
        if not self._output.closed:
            self._read()
            self._tell(self._unread)
            self._line.close()
            self._output.close()
        return code

    def last_words(self) -> str:
        return "it was killed" if (self._process.poll() or 0) < 0 else self._last

    def _read(self) -> None:
        with suppress(OSError):
            while got := self._line.recv(4_096):
                self.beats += len(got)
                self.ready = self.ready or READY_BYTE in got
        with suppress(OSError):
            while got := os.read(self._output.fileno(), 65_536):
                *lines, self._unread = (self._unread + got).split(b"\n")
                if len(self._unread) > _LONGEST_LINE:
                    lines, self._unread = [*lines, self._unread], b""
                for line in lines:
                    self._tell(line)

    def _tell(self, line: bytes) -> None:
        if text := line.decode(errors="replace").strip():
            self._last = text.removeprefix("zuno: ")
            self._hear(text)


def follow_supervisor() -> Callable[[bytes], None]:
    """Make this process a part of the `zuno serve` that started it: it ends when that is gone, whatever it is doing.
    Returns what sends to it."""
    del os.environ[PART_VARIABLE]  # what we start is no part
    line = socket.socket(fileno=os.dup(0))

    def wait_for_end() -> None:
        with suppress(OSError):
            while line.recv(1):
                pass
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(ORPHAN_SECONDS)
        os._exit(128 + signal.SIGTERM)

    def send(what: bytes) -> None:
        with suppress(OSError):  # it is stopped or gone: nobody waits for it
            line.send(what, socket.MSG_DONTWAIT)

    threading.Thread(target=wait_for_end, name="zuno-supervisor", daemon=True).start()
    return send


class ServiceManager:
    """Tells a service manager how we are, by datagrams to `$NOTIFY_SOCKET` (sd_notify). Without one nothing is sent."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        address = environment.get("NOTIFY_SOCKET", "")
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        micros, whom = environment.get("WATCHDOG_USEC", ""), environment.get("WATCHDOG_PID", "")
        ours = micros.isdecimal() and int(micros) > 0 and whom in ("", str(os.getpid()))
        self.watchdog_seconds = int(micros) / 1e6 if ours and self._address else None

    def tell(self, *lines: str) -> None:
        if self._address:
            with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.setblocking(False)  # one that does not read must not hold us up
                sender.sendto("\n".join(lines).encode(), self._address)
