"""Read long answers page by page without losing rows between pages."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final, TypeAlias, TypeVar

from zuno.adapters.venues.vendor_json import order_rows
from zuno.kernel.errors import Refused, Unavailable
from zuno.kernel.units import Millis
from zuno.trading.model.market import DAY_MS, HOUR_MS, MINUTE_MS, Candle, Level, Row, Timeframe

MOST_PAGES: Final = 200
"""Of one answer; longer times have to be split by the caller."""
LONGEST: Final = 300.0
"""Seconds that one answer may take, all its pages together."""

FINE_SPAN: Final = 2 * DAY_MS
"""So much time is read in points of five minutes, more in hours."""

R = TypeVar("R", bound=Row)
Ask: TypeAlias = Callable[[Millis, Millis], Awaitable[Sequence[R]]]
"""One page: rows of [since, until], as many as the venue gives at once."""
ReadCandles: TypeAlias = Callable[[str, Timeframe, Millis, Millis], Awaitable[Sequence[Candle]]]


def pick_period(since: Millis, until: Millis, fine: str, hourly: str) -> tuple[str, int]:
    """Which of a venue's two names of a period to ask for, and its length."""
    return (fine, 5 * MINUTE_MS) if until - since <= FINE_SPAN else (hourly, HOUR_MS)


@asynccontextmanager
async def time_limit(what: str, seconds: float = LONGEST) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise Unavailable(f"{what} took longer than {seconds:g} s; ask for less time at once") from None


async def fetch_regular(
    what: str, ask: Ask[R], first: Millis, last: Millis, step: int, limit: int, newest: int | None = None
) -> tuple[R, ...]:
    """Rows at every step from `first` to `last`. Rows that stay missing never existed if later rows came; if none did,
    or a whole page is missing, `Unavailable`. `newest`: the row just made, which alone may not be served yet."""
    fetched: list[R] = []
    pages = _pages(what, (last - first) // step // limit + 1)
    async with time_limit(what):
        for low in range(first, last + 1, limit * step):
            high = min(last, low + (limit - 1) * step)
            rows = await _fetch_filled(what, ask, low, high, step, pages)
            if fetched and not rows:
                break
            fetched += rows
    served = last - step if last == newest else last
    if fetched and fetched[-1].at < served:
        raise Unavailable(f"{what} stop after {_when(fetched[-1].at)} although {_when(last)} was asked for")
    return tuple(fetched)


async def fetch_bars(
    what: str, ask: Ask[Candle], timeframe: Timeframe, since: Millis, until: Millis, now: Millis, limit: int
) -> tuple[Candle, ...]:
    """Bars that opened in a time and are closed by the venue's clock."""
    step = timeframe.millis
    newest = timeframe.floor(now) - step
    first, last = timeframe.floor(since + step - 1), min(timeframe.floor(until), newest)
    return await fetch_regular(what, ask, first, Millis(last), step, limit, newest)


async def read_closes(read_candles: ReadCandles, name: str, since: Millis, until: Millis) -> Sequence[Level]:
    """Closes, each when its bar ended: of minutes for up to a day, of hours for more."""
    timeframe = Timeframe.M1 if until - since <= DAY_MS else Timeframe.H1
    step = timeframe.millis
    bars = await read_candles(name, timeframe, Millis(since - step), Millis(until - step))
    return [Level(Millis(bar.at + step), bar.close) for bar in bars]


async def _fetch_filled(what: str, ask: Ask[R], low: int, high: int, step: int, pages: Iterator[int]) -> list[R]:
    next(pages)
    rows = order_rows(what, await ask(Millis(low), Millis(high)), low, high)
    if not rows:
        return []
    edges = [low - step, *(row.at for row in rows), high + step]
    filled = list(rows)
    for before, after in pairwise(edges):
        if after - before > step:
            filled += await _fetch_filled(what, ask, before + step, after - step, step, pages)
    return list(order_rows(what, filled, low, high))


async def fetch_irregular(
    what: str, ask: Ask[R], since: Millis, until: Millis, *, newest_first: bool, apart: int = 1, span: int | None = None
) -> tuple[R, ...]:
    """Rows at irregular times, at least `apart` from each other. Only an empty page is an end. `span`: cut the time
    into such parts first, for venues that do not say which end of a long time they cut off."""
    span = until - since + 1 if span is None else span
    starts = range(since, until + 1, max(span, 1))
    pages = _pages(what, len(starts))
    fetched: list[R] = []
    async with time_limit(what):
        for start in starts:
            low, high = start, min(until, start + span - 1)
            while low <= high:
                next(pages)
                rows = order_rows(what, await ask(Millis(low), Millis(high)), low, high)
                fetched += rows
                if not rows:
                    break
                low, high = (low, rows[0].at - apart) if newest_first else (rows[-1].at + apart, high)
    return order_rows(what, fetched, since, until)


def _pages(what: str, needed: int) -> Iterator[int]:
    """At most so many pages; `Refused` beyond, and at once where they cannot be enough."""
    yield from range(MOST_PAGES if needed <= MOST_PAGES else 0)
    pages = max(needed, MOST_PAGES + 1)
    raise Refused(
        f"{what} of that time are {pages} pages or more and at most {MOST_PAGES} are fetched at once; ask for less"
    )


def _when(at: int) -> str:
    return datetime.fromtimestamp(at / 1_000, UTC).strftime("%Y-%m-%d %H:%M")
