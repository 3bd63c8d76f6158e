"""The dollar index, the Nasdaq, gold and oil from Yahoo's chart endpoint, or any service that speaks it.

Endpoint: GET /v8/finance/chart/{symbol}; Yahoo documents it nowhere. Its form is described in
https://github.com/ranaroussi/yfinance (data of `history`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from operator import itemgetter
from typing import Final
from urllib.parse import quote
from zoneinfo import ZoneInfo

from zuno.adapters.venues.vendor_json import VendorJson, order_rows
from zuno.adapters.venues.web import WebFeed
from zuno.kernel.errors import Malformed, Unavailable
from zuno.kernel.units import Millis
from zuno.trading.model.market import DAY_MS, SECOND_MS, MacroRelease
from zuno.trading.model.venues import YAHOO

PUBLIC_URL: Final = "https://query1.finance.yahoo.com"
SYMBOLS: Final[Mapping[str, str]] = {"DXY": "DX-Y.NYB", "NASDAQ": "^IXIC", "GOLD": "GC=F", "OIL": "CL=F"}


class Yahoo(WebFeed):
    """Daily closes; a day's is printed when the exchange's own day is over."""

    venue = YAHOO

    @property
    def figures(self) -> Sequence[str]:
        return tuple(SYMBOLS)

    async def prints(self, figure: str, since: Millis, until: Millis) -> Sequence[MacroRelease]:
        if figure not in SYMBOLS:
            raise Unavailable(f"Yahoo is not asked for {figure}: it gives {', '.join(SYMBOLS)}")
        params = {
            "period1": str((since - DAY_MS) // SECOND_MS),
            "period2": str((until + 2 * DAY_MS) // SECOND_MS),
            "interval": "1d",
        }
        path = f"v8/finance/chart/{quote(SYMBOLS[figure], safe='')}"
        answer = await self._web.json(path, "chart", params)
        return order_rows("Yahoo's closes", list(_closes(answer.child("chart").child("result").only())), since, until)


def _closes(chart: VendorJson) -> Iterator[MacroRelease]:
    """By the exchange's own days. A null is a day without a close; the day that still trades has none yet. Of a day
    that is told twice (its bar, and the last trade beside it) the later row counts."""
    meta = chart.child("meta")
    zone = _zone(meta)
    last_trade = meta.moment_of_seconds("regularMarketTime")
    session = meta.child("currentTradingPeriod").child("regular")
    start, end = session.moment_of_seconds("start"), session.moment_of_seconds("end")
    # After a session the period rolls on to the next one, which begins after the last trade: over a weekend, Monday's.
    session_over = end <= last_trade or start > last_trade
    today = _date(last_trade, zone)
    times = chart.children("timestamp")
    closes = chart.child("indicators").child("quote").only().child("close")
    if len(times) != len(closes.items()):
        raise Malformed(f"{chart.what} has {len(times)} times and {len(closes.items())} closes")
    stamps = VendorJson(chart.what, [stamp.value for stamp in times])
    rows = [(stamps.moment_of_seconds(place), closes.maybe_number(place)) for place in range(len(times))]
    by_day = {_date(at, zone): value for at, value in sorted(rows, key=itemgetter(0)) if value is not None}
    for day, value in by_day.items():
        if day < today or (day == today and session_over):
            yield MacroRelease(_midnight(day, UTC), value, _midnight(day + timedelta(days=1), zone))


def _zone(meta: VendorJson) -> ZoneInfo:
    """The exchange's clock, winter and summer: the offset that is told beside its name is of today alone."""
    try:
        return ZoneInfo(meta.text("exchangeTimezoneName"))
    except (KeyError, ValueError, OSError):  # no such name, or one that is no name
        raise Malformed(f"{meta.what}: field 'exchangeTimezoneName' is no time zone") from None


def _date(at: Millis, zone: tzinfo) -> date:
    """Which day it was at the exchange."""
    return datetime.fromtimestamp(at / SECOND_MS, zone).date()


def _midnight(day: date, zone: tzinfo) -> Millis:
    return Millis(round(datetime.combine(day, time(), zone).timestamp()) * SECOND_MS)
