"""Figures of the economy from FRED, each with the day it was released and every revision of it.

Endpoint: https://fred.stlouisfed.org/docs/api/fred/series_observations.html. `realtime_start` is the day from which a
value held; FRED tells no hour, so a print is taken for known when that day was over in St. Louis. It answers no
question about a day after its own today. Where it keeps no revisions of a figure, only one that is out on the day it
speaks of is taken, as known when that day was over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from operator import attrgetter
from typing import Final

from zuno.adapters.venues.paging import time_limit
from zuno.adapters.venues.vendor_json import VendorJson
from zuno.adapters.venues.web import RequestDeclined, WebFeed, WebService
from zuno.kernel.errors import Malformed, Refused, Unavailable
from zuno.kernel.units import Millis
from zuno.trading.model.market import DAY_MS, HOUR_MS, MacroRelease
from zuno.trading.model.venues import FIGURES, FRED

PUBLIC_URL: Final = "https://api.stlouisfed.org/fred"
BEHIND: Final = 6 * HOUR_MS
"""St. Louis after UTC, in winter; in summer its day is taken to begin an hour late."""
DAY_OVER: Final = DAY_MS + BEHIND
"""From midnight UTC of a day to its end in St. Louis."""
SPAN: Final = 2 * 365 * DAY_MS
REVISED_FOR: Final = 3 * 365 * DAY_MS
"""FRED gives at most 2,000 vintages at once: days are asked for by twos of years, with three years of revisions."""
MOST_SPANS: Final = 20
MOST_ROWS: Final = 100_000
NO_PRINT: Final = "."
NO_VINTAGES: Final = b"does not exist in ALFRED"
SAME_DAY: Final = frozenset({"NASDAQCOM"})
"""The others are printed the day after, the week after or, of months, weeks after the day they are named by: without
revisions nobody knows when."""


class Fred(WebFeed):
    """Prints by FRED's own names of them."""

    venue = FRED

    def __init__(self, web: WebService, api_key: str, now: Callable[[], Millis]) -> None:
        super().__init__(web)
        self._key = api_key
        self._now = now

    @property
    def figures(self) -> Sequence[str]:
        return FIGURES[FRED]

    async def prints(self, figure: str, since: Millis, until: Millis) -> Sequence[MacroRelease]:
        """Of one day as many prints as it had values, oldest release first."""
        if figure not in self.figures:
            raise Unavailable(f"FRED is not asked for {figure}: it gives {', '.join(self.figures)}")
        spans = range(since, until + 1, SPAN)
        if len(spans) > MOST_SPANS:
            raise Refused(f"FRED is asked for at most {MOST_SPANS * 2} years at once; ask for less time")
        found: set[MacroRelease] = set()
        async with time_limit("FRED's observations"):
            for start in spans:
                end = min(until, start + SPAN - 1)
                found.update(await self._span(figure, start, end))
        return sorted((row for row in found if since <= row.at <= until), key=attrgetter("at", "released"))

    async def _span(self, figure: str, start: int, end: int) -> Sequence[MacroRelease]:
        today = self._now() - BEHIND
        known = {"realtime_start": _day(min(start, today)), "realtime_end": _day(min(end + REVISED_FOR, today))}
        try:
            return list(_prints(await self._observations(figure, start, end, known), "realtime_start"))
        except RequestDeclined as refusal:
            if NO_VINTAGES not in refusal.said or figure not in SAME_DAY:
                raise
        return list(_prints(await self._observations(figure, start, end, {}), "date"))

    async def _observations(self, figure: str, start: int, end: int, known: Mapping[str, str]) -> VendorJson:
        params = {
            "series_id": figure,
            "api_key": self._key,
            "file_type": "json",
            "observation_start": _day(start),
            "observation_end": _day(end),
            "limit": str(MOST_ROWS),
            **known,
        }
        return await self._web.json("series/observations", "observations", params)


def _prints(answer: VendorJson, released_on: str) -> Iterator[MacroRelease]:
    """A day whose value is a point has no print. An answer that stops before its own count is half of one."""
    rows = answer.children("observations")
    if answer.whole("count") != len(rows):
        raise Malformed(f"FRED counts {answer.whole('count')} observations and sent {len(rows)}")
    for row in rows:
        released = Millis(row.day(released_on) + DAY_OVER)
        at = row.day("date")
        if row.text("value") != NO_PRINT:
            yield MacroRelease(at, row.number("value"), released)


def _day(at: int) -> str:
    return datetime.fromtimestamp(at / 1_000, UTC).strftime("%Y-%m-%d")
