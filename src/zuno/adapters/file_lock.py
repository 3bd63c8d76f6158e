"""File locks (`flock`) among the processes of a home and the tasks of one process, released however the process ends.
The file names the holder; its content never decides whether the lock is held."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from functools import cache
from pathlib import Path
from typing import Final, TypeVar

from zuno.adapters.atomic_file import read_file, replace_file, translate_write_errors
from zuno.kernel.errors import Refused, Unavailable

WAIT_SECONDS: Final = 30.0
"""How long a short write of another process is waited for."""
_LOOK_SECONDS: Final = 1.0
"""`is_held` takes the file shared for an instant; a lock that somebody only looks at is waited for this long."""
_POLL_SECONDS: Final = 0.002


@dataclass(eq=False)
class FileLock:
    """Taken at once or after at most `timeout` seconds.

    If another holds it: `Refused` with `refusal`, in which `{}` is the holder, or `Unavailable` without one. `signed`:
    the holder's pid and start time are written into the file. `parents`: missing folders are made, 0700. `shared`:
    others may read too; neither file nor folder is made, and the file need not be writable.
    """

    path: Path
    refusal: str = ""
    _: KW_ONLY
    timeout: float = 0.0
    signed: bool = True
    parents: bool = True
    shared: bool = False
    _handle: int | None = field(default=None, init=False)

    @property
    def handle(self) -> int:
        if self._handle is None:
            raise ValueError("the lock is not held")
        return self._handle

    def take(self) -> None:
        with translate_write_errors(self.path, "; nothing was done"):
            if self.parents and not self.shared:
                self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = self._open()
        try:
            self._acquire(handle)
            if self.signed:
                _sign(handle)
        except BaseException:
            os.close(handle)
            raise
        self._handle = handle

    def _open(self) -> int:
        if not self.shared:
            return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            return os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)  # nobody has ever written

    def leave(self) -> None:
        if self._handle is not None:
            if self.signed:
                with suppress(OSError):
                    os.ftruncate(self._handle, 0)
            os.close(self._handle)  # closing is unlocking
            self._handle = None

    def check(self) -> None:
        """As a `Lease`: the kernel takes it from no living process."""
        if self._handle is None:
            raise Refused(f"{self.path.stem} is not locked by this process.")

    def __enter__(self) -> None:
        self.take()

    def __exit__(self, *exception: object) -> None:
        self.leave()

    def is_held(self) -> bool:
        """Whether anybody holds it. Writes nothing, so it works in a read-only home."""
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise Unavailable(f"{self.path} cannot be opened ({error.strerror}).") from error
        try:
            return not _try_lock(handle, fcntl.LOCK_SH)
        finally:
            os.close(handle)

    def process(self) -> ProcessIdentity | None:
        """The process that signed the lock, if the lock is held and that process lives."""
        signature = read_process(self.path)
        return signature if signature is not None and self.is_held() and signature.alive else None

    def holder(self) -> int | None:
        process = self.process()
        return None if process is None else process.pid

    def _acquire(self, handle: int) -> None:
        began = time.monotonic()
        while not _try_lock(handle, fcntl.LOCK_SH if self.shared else fcntl.LOCK_EX):
            # A shared lock is to be had where nobody holds it exclusively: then somebody is only looking.
            only_looked_at = _try_lock(handle, fcntl.LOCK_SH)
            fcntl.flock(handle, fcntl.LOCK_UN)
            limit = max(self.timeout, _LOOK_SECONDS) if only_looked_at else self.timeout
            if time.monotonic() - began >= limit:
                signature = parse_process(os.pread(handle, 200, 0)) if self.signed else None
                holder = "another process" if signature is None else f"process {signature.pid}"
                if self.refusal:
                    raise Refused(self.refusal.format(holder))
                whose = f"{holder.capitalize()} holds {self.path}"
                raise Unavailable(f"{whose} for more than {self.timeout:g} s; find it and end it.")
            time.sleep(_POLL_SECONDS)


def _lock_at(place: str, refusal: str) -> Callable[[Path], FileLock]:
    return lambda folder: FileLock(folder / place, refusal)


mesh_lock: Final = _lock_at(
    "mesh/up.lock",
    "The mesh of this home is kept running by {} already; `zuno mesh status` shows it and `zuno mesh down` ends it.",
)
monitor_lock: Final = _lock_at(
    "monitor.lock",
    "A monitor of this home runs already ({}); `zuno alerts` shows what it saw; end it to start another.",
)
telegram_lock: Final = _lock_at("telegram.lock", "The Telegram bot of this home runs already ({}); end it first.")
web_lock: Final = _lock_at("web.lock", "The page of this home is served already ({}); end it first.")
collector_lock: Final = _lock_at(
    "collect.lock",
    "A collector of this home runs already ({}); `zuno data status` shows what it keeps; end it to start another.",
)
outbox_lock: Final = _lock_at("leases/outbox.lock", "Another process sends the pushes of this home ({}).")
compaction_lock: Final = _lock_at("leases/compaction.lock", "This home is being compacted already ({}); wait for it.")
serve_lock: Final = _lock_at("leases/serve.lock", "This home is served already ({}); `zuno status` shows it.")


def symbol_lock(home: Path, symbol: str) -> FileLock:
    return FileLock(
        home / "leases" / f"{symbol}.lock",
        f"A run on {symbol} is in progress ({{}}); wait for it, or end it and continue with `zuno trade resume`.",
    )


def desk_lock(home: Path, name: str) -> FileLock:
    return FileLock(
        home / "leases" / f"desk-{name}.lock",
        "The trading desk of this account is running already ({}); `zuno trade stop` ends it.",
    )


def wallet_lock(home: Path, name: str) -> FileLock:
    return FileLock(home / f"turn-{name}.lock", "This wallet is being used by {}; wait until it is done.")


def _try_lock(handle: int, how: int) -> bool:
    try:
        fcntl.flock(handle, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sign(handle: int) -> None:
    """On a full disk the holder stays unnamed and the lock is held all the same."""
    with suppress(OSError):
        os.ftruncate(handle, 0)
        os.pwrite(handle, _signature(os.getpid()), 0)


@cache
def _signature(pid: int) -> bytes:
    return f"{pid} {start_time(pid) or ''}".encode()


def parse_process(content: bytes) -> ProcessIdentity | None:
    """Written as pid and start time; None for anything else."""
    pid, _, started = content.decode("ascii", "replace").partition(" ")
    return ProcessIdentity(int(pid), started) if pid.isascii() and pid.isdigit() and len(pid) < 20 else None


def read_process(path: Path) -> ProcessIdentity | None:
    with suppress(OSError):
        return parse_process(path.read_bytes())
    return None


T = TypeVar("T")


class LockedFile:
    """A small file (0600) that several processes read and replace whole, one at a time. Reading needs no lock."""

    def __init__(self, path: Path, patience: float = WAIT_SECONDS) -> None:
        self._path = path
        self._patience = patience

    def stamp(self) -> tuple[int, int, int] | None:
        """Inode, time and size, which change with every write; None: no file."""
        try:
            status = os.stat(self._path)
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size

    def read(self) -> bytes | None:
        return read_file(self._path, "; mend its permissions")

    def change(self, make: Callable[[bytes | None], tuple[bytes | None, T]], *, wait: bool = True) -> T:
        """Replace the content by what `make` returns. `wait`: for another writer, and until it is on disk."""
        lock = FileLock(self._path.with_suffix(".lock"), timeout=self._patience if wait else 0.0)
        with lock:
            before = self.read()
            after, answer = make(before)
            if after is not None and after != before:
                with translate_write_errors(self._path):
                    replace_file(self._path, after, durable=wait)
            return answer


_PS_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """`started` is empty where the system could not say; such a process counts as ended."""

    pid: int
    started: str

    @property
    def alive(self) -> bool:
        return bool(self.started) and start_time(self.pid) == self.started

    def send(self, number: signal.Signals) -> None:
        """Signal this process and no other; nothing happens if it has ended."""
        if self.alive:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)


def start_time(pid: int) -> str | None:
    """When a living process started, as the system spells it: ticks since this boot, or a date. None: it has ended."""
    try:
        # The second field is the program's name in brackets and may hold anything, brackets included.
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return None if fields[0] in (b"Z", b"X") else f"{boot} {int(fields[19])}"
    except (OSError, ValueError, IndexError):
        return None if Path("/proc/self/stat").exists() else _ask_ps(pid)


def _ask_ps(pid: int) -> str | None:
    command = ["ps", "-o", "lstart=", "-p", str(pid)]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=_PS_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() or None
