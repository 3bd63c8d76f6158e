"""The machine's time, never running backwards."""

import time
from collections.abc import Callable

from zuno.kernel.errors import Unavailable
from zuno.kernel.units import Millis, Seconds


class SystemClock:
    """Whole unix seconds that never go back: stands still when the machine's clock is set back."""

    def __init__(self, read: Callable[[], float] = time.time) -> None:
        self._read = read
        self._latest = Seconds(0)

    def now(self) -> Seconds:
        self._latest = Seconds(max(self._latest, _require_epoch(int(self._read()))))
        return self._latest


def unix_millis() -> Millis:
    """The machine's time as it is, for dating what is written down; `Unavailable` before 1970."""
    return Millis(_require_epoch(time.time_ns() // 1_000_000))


def _require_epoch(moment: int) -> int:
    """A machine without a clock of its own starts at or before 1970."""
    if moment <= 0:
        raise Unavailable("The machine's clock stands before 1970, and nothing can be dated by it: set the clock.")
    return moment


def steady_millis() -> Millis:
    """A monotonic clock, for differences alone."""
    return Millis(time.monotonic_ns() // 1_000_000)
