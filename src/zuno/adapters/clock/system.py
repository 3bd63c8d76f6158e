"""The machine's time, made safe to subtract."""

from __future__ import annotations

import time
from collections.abc import Callable

from zuno.kernel.units import Millis, Seconds


class SystemClock:
    """Whole unix seconds; when the machine's clock is set back, this one stands still until it has caught up."""

    def __init__(self, read: Callable[[], float] = time.time) -> None:
        self._read = read
        self._latest = Seconds(0)

    def now(self) -> Seconds:
        self._latest = Seconds(max(self._latest, int(self._read())))
        return self._latest


def unix_millis() -> Millis:
    """The machine's time as it is, for dating what is written down."""
    return Millis(time.time_ns() // 1_000_000)


def steady_millis() -> Millis:
    """A clock nobody sets, for what lies between two looks at it; by itself it says nothing."""
    return Millis(time.monotonic_ns() // 1_000_000)
