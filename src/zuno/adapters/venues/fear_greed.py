"""The index of fear and greed from alternative.me.

Endpoint: https://alternative.me/crypto/fear-and-greed-index/#api. One value a day, stamped when it was published.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from zuno.adapters.venues.vendor_json import VendorJson, order_rows
from zuno.adapters.venues.web import WebFeed, WebService
from zuno.kernel.errors import Malformed, Unavailable
from zuno.kernel.units import Millis
from zuno.trading.model.market import DAY_MS, Level
from zuno.trading.model.venues import ALTERNATIVE

PUBLIC_URL: Final = "https://api.alternative.me"
INDEX: Final = "index"


class FearGreed(WebFeed):
    """Mood, 0 to 100."""

    venue = ALTERNATIVE

    def __init__(self, web: WebService, now: Callable[[], Millis]) -> None:
        super().__init__(web)
        self._now = now

    async def levels(self, name: str, since: Millis, until: Millis) -> Sequence[Level]:
        """The service counts days back from its own today: two more than the time reaches back are asked for."""
        if name != INDEX:
            raise Unavailable(f"alternative.me publishes {INDEX}, not {name}")
        days = max(1, (self._now() - since) // DAY_MS + 2)
        answer = await self._web.json("fng/", "index", {"limit": str(days), "format": "json"})
        return order_rows("alternative.me's index", [_level(row) for row in answer.children("data")], since, until)


def _level(row: VendorJson) -> Level:
    value = row.number("value")
    if not 0 <= value <= 100:
        raise Malformed(f"alternative.me's index is {value:g}, which is not between 0 and 100")
    return Level(row.moment_of_seconds("timestamp"), value)
