"""Exponential backoff with jitter."""

from __future__ import annotations

from dataclasses import dataclass

SPREAD = (0.5, 1.0)
"""Jitter over the upper half of a delay, so that clients that failed together do not return together."""
_MOST_DOUBLINGS = 1_000


@dataclass(frozen=True, slots=True)
class Backoff:
    """Doubles from `first` to `longest`, in whatever unit they are given. The caller counts, waits and draws.

    `jitter`: the least and the most that a delay is multiplied by.
    """

    first: float
    longest: float
    jitter: tuple[float, float] = (1.0, 1.0)

    def delay(self, failures: int, chance: float = 0.0) -> float:
        """The wait after the `failures`-th failure in a row; zero for none. `chance`: a draw from [0, 1)."""
        if failures < 1:
            return 0.0
        low, high = self.jitter
        return min(self.longest, self.first * 2.0 ** min(failures - 1, _MOST_DOUBLINGS)) * (low + (high - low) * chance)
