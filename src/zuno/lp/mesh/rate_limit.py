"""A token bucket: a rate per second and a burst. The caller passes the time."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class TokenBucket:
    """Full at first. What is taken may be more than is left: then nothing is, until the debt has grown back."""

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
