"""The one place time comes from."""

from __future__ import annotations

from typing import Protocol

from zuno.domain.units import Seconds


class Clock(Protocol):
    """Promises whole unix seconds that never run backwards within one process."""

    def now(self) -> Seconds: ...
