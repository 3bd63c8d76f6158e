"""Identify a process by pid and start time, because pids are reused."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

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
