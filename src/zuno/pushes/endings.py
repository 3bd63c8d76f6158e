"""Which ends of a mandate are pushed: 7 days and 1 day before, and when it has ended."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from zuno.kernel.units import Millis

PUSH_DAYS: Final = (7, 1, 0)
_DAY: Final = 86_400_000


class Ending(NamedTuple):
    days: int
    at: Millis
    title: str


def list_endings(granted: Millis, expires: Millis, since: int, now: Millis) -> Iterator[Ending]:
    """Those of a mandate that came after `since` and by now; one granted for a week is not told of at once."""
    for days in PUSH_DAYS:
        at = Millis(expires - days * _DAY)
        if granted < at and since < at <= now:
            title = f"Mandate ends in {days} day{'s' * (days != 1)}" if days else "Mandate has ended"
            yield Ending(days, at, title)
