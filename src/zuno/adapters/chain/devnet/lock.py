"""The lock that says whether a node runs, and who holds it: a pid in a file can be somebody else's by now."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from zuno.domain.errors import Refused

_PATIENCE: Final = 1.0
"""Who only looks holds the lock too, for an instant; who holds it longer than this means it."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A process, told from any later one with its number by the moment it was born."""

    pid: int
    born: str

    @property
    def alive(self) -> bool:
        return bool(self.born) and birth_of(self.pid) == self.born

    def send(self, number: signal.Signals) -> None:
        """Signal this process and no other; one that is gone needs none."""
        if self.alive:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)


class NodeLock:
    """Held by the serving process for as long as it lives, whatever ends it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the lock, signed with who we are; `Refused` if another process does."""
        with open(self._path, "a+", encoding="utf-8") as file:
            _take(file)
            file.truncate(0)
            file.write(f"{os.getpid()} {birth_of(os.getpid())}")
            file.flush()
            try:
                yield
            finally:
                file.truncate(0)

    def held(self) -> bool:
        """Whether a live process holds it."""
        try:
            with open(self._path, encoding="utf-8") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return False
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True

    def holder(self) -> Holder | None:
        """Who signed it, if that process still lives: a new holder may not have signed yet."""
        with suppress(OSError, ValueError):
            pid, _, born = self._path.read_text(encoding="utf-8").partition(" ")
            signed = Holder(int(pid), born)
            return signed if self.held() and signed.alive else None
        return None


def birth_of(pid: int) -> str:
    """When a process started, in the system's own words; empty if there is none."""
    try:
        # The second field is the program's name in brackets and may hold anything, brackets included.
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19].decode()
    except OSError:
        if Path("/proc/self/stat").exists():
            return ""
    asked = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return " ".join(asked.stdout.split())


def _take(file: IO[str]) -> None:
    give_up = time.monotonic() + _PATIENCE
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= give_up:
                raise Refused("A devnet of this home is starting already; `zuno devnet status` shows it.") from None
            time.sleep(0.01)
