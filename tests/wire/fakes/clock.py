"""A time that moves only when told to: the virtual clock of `sim` and of tests."""

from __future__ import annotations

from zuno.kernel.units import Seconds


class FixedClock:
    """Stands at `start` until advanced."""

    def __init__(self, start: Seconds) -> None:
        self._now = start

    def now(self) -> Seconds:
        return self._now

    def advance(self, span: Seconds) -> Seconds:
        """Move forward by `span` and return the new time; a clock cannot be turned back."""
        if span < 0:
            raise ValueError(f"a clock cannot advance by {span} s")
        self._now = Seconds(self._now + span)
        return self._now
