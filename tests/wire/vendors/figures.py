"""FRED, Yahoo's chart endpoint and alternative.me.

Built from https://fred.stlouisfed.org/docs/api/fred/series_observations.html (`.` is no value; `realtime_start`;
a question about tomorrow, or about the revisions of a figure that has none, is a bad request),
https://github.com/ranaroussi/yfinance (the chart's form, which Yahoo documents nowhere) and
https://alternative.me/crypto/fear-and-greed-index/#api.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from tests.wire.vendors.serving import Query, Route, said
from tests.wire.vendors.world import World
from zuno.trading.model.market import DAY_MS, HOUR_MS

KEY = "0123456789abcdef0123456789abcdef"
NO_KEY = said(
    {"error_code": 400, "error_message": "Bad Request.  The value for variable api_key is not registered."}, 400
)
NEW_YORK = -14_400


def day(at: float) -> str:
    return datetime.fromtimestamp(at / 1_000, UTC).strftime("%Y-%m-%d")


def bad_request(words: str) -> bytes:
    return said({"error_code": 400, "error_message": f"Bad Request.  {words}"}, 400)


def fred(world: World, *, without_vintages: bool = False) -> dict[str, Route]:
    def observations(query: Query) -> Any:
        if query.get("api_key") != KEY:
            return NO_KEY
        today = datetime.fromtimestamp(world.now / 1_000, ZoneInfo("America/Chicago")).strftime("%Y-%m-%d")
        for name in ("realtime_start", "realtime_end"):
            if query.get(name, today) > today:
                return bad_request(f"Variable {name} can not be after today's date.")
        if without_vintages and "realtime_start" in query:
            return bad_request("The series does not exist in ALFRED but may exist in FRED.")
        rows = [
            {
                "realtime_start": today if without_vintages else day(row.released - 30 * HOUR_MS),
                "realtime_end": "9999-12-31",
                "date": day(row.at),
                "value": str(row.value),
            }
            for row in world.prints
            if query["observation_start"] <= day(row.at) <= query["observation_end"]
        ]
        holiday = {"realtime_start": "2025-10-02", "realtime_end": "9999-12-31", "date": "2025-10-01", "value": "."}
        rows.append(holiday)
        head = {name: query.get(name, today) for name in ("realtime_start", "realtime_end")}
        return {**head, "units": "lin", "count": len(rows), "offset": 0, "limit": 100_000, "observations": rows}

    return {"/fred/series/observations": observations}


def yahoo(world: World, *, session_over: bool = True, rolled: bool = False) -> dict[str, Route]:
    """Each day stamped with its open at 9:30 in New York, as the endpoint does. `rolled`: the current period is the
    next one already, as https://github.com/ranaroussi/yfinance reads it after a session (`currentTradingPeriod`)."""

    def chart(query: Query) -> Any:
        low, high = int(query["period1"]), int(query["period2"])
        opens = [(row.at // 1_000 + 13 * 3_600 + 1_800, row.value) for row in world.prints]
        rows = [(at, value) for at, value in opens if low <= at < high]
        last = opens[-1][0] + (23_400 if session_over else 3_600)
        ahead = 3 * DAY_MS // 1_000 if rolled else 0
        meta = {
            "currency": "USD",
            "symbol": "^IXIC",
            "exchangeTimezoneName": "America/New_York",
            "gmtoffset": NEW_YORK,
            "regularMarketTime": last,
            "currentTradingPeriod": {
                "regular": {
                    "timezone": "EDT",
                    "start": opens[-1][0] + ahead,
                    "end": opens[-1][0] + ahead + 23_400,
                    "gmtoffset": NEW_YORK,
                }
            },
        }
        closes: list[float | None] = [value for _, value in rows]
        result = {
            "meta": meta,
            "timestamp": [at for at, _ in rows],
            "indicators": {"quote": [{"open": closes, "close": closes}], "adjclose": [{"adjclose": closes}]},
        }
        return {"chart": {"result": [result], "error": None}}

    return {f"/v8/finance/chart/{symbol}": chart for symbol in ("DX-Y.NYB", "^IXIC", "GC=F", "CL=F")}


def fear_greed(world: World) -> dict[str, Route]:
    def index(query: Query) -> Any:
        rows = [
            {
                "value": f"{row.value:.0f}",
                "value_classification": "Fear",
                "timestamp": str(row.at // 1_000),
                "time_until_update": "68499",
            }
            for row in reversed(world.levels)
        ]
        return {"name": "Fear and Greed Index", "data": rows[: int(query["limit"])], "metadata": {"error": None}}

    return {"/fng/": index}


def days(count: int, last: int) -> range:
    return range(last - (count - 1) * DAY_MS, last + 1, DAY_MS)
