"""Exponential backoff with jitter, and a token bucket."""

from dataclasses import dataclass, field

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


@dataclass(slots=True)
class TokenBucket:
    """A rate per second and a burst; the caller passes the time. It is full at first and may go into debt: then nothing
    can be taken until the debt has grown back."""

    rate: float
    burst: float
    at: int | None = None
    """Unix milliseconds of the last look; before the first one nothing grows back."""
    left: float = field(init=False)

    def __post_init__(self) -> None:
        self.left = self.burst

    def has(self, now: int, amount: float = 1) -> bool:
        before = now if self.at is None else self.at
        self.left = min(self.burst, self.left + self.rate * max(0, now - before) / 1000)
        self.at = max(before, now)
        return self.left >= amount

    def pay(self, amount: float) -> None:
        self.left -= amount

    def try_take(self, now: int, amount: float = 1) -> bool:
        """Whether there was enough; then it is gone."""
        if not self.has(now, amount):
            return False
        self.pay(amount)
        return True
