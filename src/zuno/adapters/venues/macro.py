"""Figures of the economy and the market's mood: FRED, Yahoo's charts, alternative.me's index of fear and greed. Also
exchange rates of currencies: from FRED, or from a CSV file."""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal, InvalidOperation
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Final
from urllib.parse import quote
from zoneinfo import ZoneInfo

from zuno.adapters.venues.paging import time_limit
from zuno.adapters.venues.vendor_json import VendorJson, order_rows
from zuno.adapters.venues.web import RequestDeclined, WebFeed, WebService
from zuno.kernel.errors import Malformed, NotFound, Refused, Unavailable, UsageError
from zuno.kernel.taxable import PER_USD, USD_PER, FiatRates, read_series
from zuno.kernel.units import Millis
from zuno.markets.feeds import ALTERNATIVE, FIGURES, FRED, YAHOO
from zuno.trading.model.market import DAY_MS, HOUR_MS, SECOND_MS, Level, MacroRelease

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
    """Figures of the economy by FRED's names, each with its release day and revisions; a release counts as known when
    that day was over in St. Louis. Without revisions only figures released on the day they speak of are taken.
    Endpoint: https://fred.stlouisfed.org/docs/api/fred/series_observations.html."""

    venue = FRED
    figures = FIGURES[FRED]

    def __init__(self, web: WebService, api_key: str, now: Callable[[], Millis]) -> None:
        super().__init__(web)
        self._key = api_key
        self._now = now

    async def prints(self, figure: str, since: Millis, until: Millis) -> Sequence[MacroRelease]:
        """All releases of each day, oldest release first."""
        if figure not in self.figures:
            raise Unavailable(f"FRED is not asked for {figure}: it gives {', '.join(self.figures)}")
        spans = range(since, until + 1, SPAN)
        if len(spans) > MOST_SPANS:
            raise Refused(f"FRED is asked for at most {MOST_SPANS * 2} years at once; ask for less time")
        releases: set[MacroRelease] = set()
        async with time_limit("FRED's observations"):
            for start in spans:
                end = min(until, start + SPAN - 1)
                releases.update(await self._span(figure, start, end))
        return sorted((row for row in releases if since <= row.at <= until), key=attrgetter("at", "released"))

    async def read_rates(self, series: str, first: date, last: date) -> list[tuple[date, Decimal]]:
        """The newest print of each day of a daily series, from `first` to `last`."""
        params = {"observation_start": first.isoformat(), "observation_end": last.isoformat()}
        answer = await self._observations(series, 0, 0, params)
        rows = [(row.text("date"), row.text("value")) for row in _rows(answer)]
        try:
            return [(date.fromisoformat(day), Decimal(value)) for day, value in rows if value != NO_PRINT]
        except (ValueError, InvalidOperation) as error:
            raise Malformed(f"FRED's {series} holds a row that is not a day and a number") from error

    async def _span(self, figure: str, start: int, end: int) -> Sequence[MacroRelease]:
        today = self._now() - BEHIND
        known = {"realtime_start": _day(min(start, today)), "realtime_end": _day(min(end + REVISED_FOR, today))}
        try:
            return list(_prints(await self._observations(figure, start, end, known), "realtime_start"))
        except RequestDeclined as refusal:
            if NO_VINTAGES not in refusal.body or figure not in SAME_DAY:
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


def _rows(answer: VendorJson) -> Sequence[VendorJson]:
    """`Malformed` for fewer than the answer's own count."""
    rows = answer.children("observations")
    if answer.whole("count") != len(rows):
        raise Malformed(f"FRED counts {answer.whole('count')} observations and sent {len(rows)}")
    return rows


def _prints(answer: VendorJson, released_on: str) -> Iterator[MacroRelease]:
    """A value of "." is no release."""
    for row in _rows(answer):
        released = Millis(row.day(released_on) + DAY_OVER)
        at = row.day("date")
        if row.text("value") != NO_PRINT:
            yield MacroRelease(at, row.number("value"), released)


def _day(at: int) -> str:
    return datetime.fromtimestamp(at / 1_000, UTC).strftime("%Y-%m-%d")


SYMBOLS: Final[Mapping[str, str]] = {"DXY": "DX-Y.NYB", "NASDAQ": "^IXIC", "GOLD": "GC=F", "OIL": "CL=F"}


class Yahoo(WebFeed):
    """Daily closes of the dollar index, the Nasdaq, gold and oil, released when the exchange's day is over. Endpoint:
    GET /v8/finance/chart/{symbol}, undocumented; see https://github.com/ranaroussi/yfinance (`history`)."""

    venue = YAHOO
    figures = tuple(SYMBOLS)

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
    """By the exchange's own days. A null is a day without a close; the day that still trades has none yet. Of two rows
    of one day (its bar, and the last trade) the later counts."""
    meta = chart.child("meta")
    try:  # the offset beside its name is of today alone
        zone = ZoneInfo(meta.text("exchangeTimezoneName"))
    except (KeyError, ValueError, OSError):  # no such name, or one that is no name
        raise Malformed(f"{meta.what}: field 'exchangeTimezoneName' is no time zone") from None
    last_trade = meta.moment("regularMarketTime", per_second=1)
    session = meta.child("currentTradingPeriod").child("regular")
    start, end = session.moment("start", per_second=1), session.moment("end", per_second=1)
    # After a session the period rolls on to the next one, which begins after the last trade: over a weekend, Monday's.
    session_over = end <= last_trade or start > last_trade
    today = _date(last_trade, zone)
    times = chart.children("timestamp")
    closes = chart.child("indicators").child("quote").only().child("close")
    if len(times) != len(closes.items()):
        raise Malformed(f"{chart.what} has {len(times)} times and {len(closes.items())} closes")
    stamps = VendorJson(chart.what, [stamp.value for stamp in times])
    rows = [(stamps.moment(place, per_second=1), closes.maybe_number(place)) for place in range(len(times))]
    by_day = {_date(at, zone): value for at, value in sorted(rows, key=itemgetter(0)) if value is not None}
    for day, value in by_day.items():
        if day < today or (day == today and session_over):
            yield MacroRelease(_midnight(day, UTC), value, _midnight(day + timedelta(days=1), zone))


def _date(at: Millis, zone: tzinfo) -> date:
    return datetime.fromtimestamp(at / SECOND_MS, zone).date()


def _midnight(day: date, zone: tzinfo) -> Millis:
    return Millis(round(datetime.combine(day, time(), zone).timestamp()) * SECOND_MS)


INDEX: Final = "index"


class FearGreed(WebFeed):
    """The index of fear and greed, 0 to 100, stamped when it was published. Endpoint:
    https://alternative.me/crypto/fear-and-greed-index/#api."""

    venue = ALTERNATIVE

    def __init__(self, web: WebService, now: Callable[[], Millis]) -> None:
        super().__init__(web)
        self._now = now

    async def levels(self, name: str, since: Millis, until: Millis) -> Sequence[Level]:
        """The service counts days back from its own today: two more than needed are asked for."""
        if name != INDEX:
            raise Unavailable(f"alternative.me publishes {INDEX}, not {name}")
        days = max(1, (self._now() - since) // DAY_MS + 2)
        answer = await self._web.json("fng/", "index", {"limit": str(days), "format": "json"})
        return order_rows("alternative.me's index", [_level(row) for row in answer.children("data")], since, until)


def _level(row: VendorJson) -> Level:
    value = row.number("value")
    if not 0 <= value <= 100:
        raise Malformed(f"alternative.me's index is {value:g}, which is not between 0 and 100")
    return Level(row.moment("timestamp", per_second=1), value)


_MOST_BYTES: Final = 20_000_000
_NO_RATE: Final = frozenset({"", ".", "ND"})
"""How FRED and the Federal Reserve write a day without a rate."""


async def fetch_rates(fred: Fred, currencies: Sequence[str], first: date, last: date) -> FiatRates:
    series = {**USD_PER, **PER_USD}
    names = [series[currency] for currency in currencies]
    return FiatRates(
        dict([read_series(name, await fred.read_rates(name, first, last)) for name in names]), "FRED's noon rate,"
    )


def read_rates_file(file: Path) -> FiatRates:
    """A header, then a row for each day: the date first, a rate in each other column. `UsageError` names the line."""
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise UsageError(f"{file} has more than {_MOST_BYTES // 1_000_000} MB; that is no file of rates.")
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except FileNotFoundError as error:
        raise NotFound(f"There is no file {file}.") from error
    except OSError as error:
        raise Unavailable(f"{file} cannot be read ({error.strerror}).") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8 text.") from error
    header, *rows = csv.reader(lines) if lines else [[]]
    if len(header) < 2:
        raise UsageError(f"{file}: the first line names the columns, as in date,DEXUSEU.")
    columns: list[list[tuple[date, Decimal]]] = [[] for _ in header[1:]]
    for number, row in enumerate(rows, start=2):
        if not row:
            continue
        try:
            day = date.fromisoformat(row[0].strip())
            for column, text in zip(columns, row[1:], strict=True):
                if text.strip() not in _NO_RATE:
                    column.append((day, Decimal(text.strip())))
        except (ValueError, InvalidOperation) as error:
            raise UsageError(
                f"{file}, line {number}: expected a date (2026-01-31) and {len(columns)} rates."
            ) from error
    try:
        series = dict(read_series(name.strip(), column) for name, column in zip(header[1:], columns, strict=True))
    except Malformed as error:
        raise UsageError(f"{file}: {error}") from error
    return FiatRates(series, file.name)
