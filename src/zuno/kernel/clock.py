"""The clock port."""

from datetime import UTC, datetime, timedelta
from typing import Protocol

from zuno.kernel.units import Millis, Seconds


class Clock(Protocol):
    """Promises whole unix seconds that never run backwards within one process."""

    def now(self) -> Seconds: ...


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def iso(at: Millis) -> str:
    """UTC, to the second; to the millisecond where that says more."""
    moment = (_EPOCH + timedelta(milliseconds=at)).replace(tzinfo=None)
    return f"{moment.isoformat(timespec='milliseconds' if at % 1_000 else 'seconds')}Z"
