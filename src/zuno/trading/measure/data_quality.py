"""What is wrong with a series: rows no market can have made, holes, feeds that froze, bars that do not add up."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, takewhile
from math import isfinite
from typing import Any, Final

from zuno.kernel.units import Millis
from zuno.trading.model import market

EARLIEST: Final = -2_208_988_800_000
LATEST: Final = 7_258_118_400_000
"""1900 and 2200: a time outside is not in milliseconds."""
MOST: Final = 1e18
"""No price, amount or figure of a market is further from zero: sums and products of what is below stay numbers."""
LEAST_PRICE: Final = 1e-9
LEAST_AMOUNT: Final = 1e-18
"""What is smaller and not zero is a unit nobody counts in; shares of it would be no numbers."""
INTERVAL_HOURS: Final = (1 / 60, 24.0)
"""Funding is paid no more often than every minute, and every day at least."""
LEEWAY: Final = market.MINUTE_MS
"""Venues stamp what is due at an hour some moments before or after it."""
FROZEN_AFTER: Final[Mapping[market.Feed, int]] = {
    market.Feed.CANDLES: 5,
    market.Feed.BOOK: 5,
    market.Feed.OPEN_INTEREST: 12,
    market.Feed.LONG_SHORT: 12,
    market.Feed.BASIS: 12,
    market.Feed.DVOL: 12,
}
"""So many rows in a row with the very same numbers, and the feed stood still. The others may well repeat themselves."""
_ROUNDING: Final = 2.0**-53


# -- rows


def row_id(row: Any) -> str:
    """What tells a row from others of its series and time; empty where the time alone does."""
    match row:
        case market.TapeEvent():
            return row.id
        case market.MacroRelease():
            return str(row.released)
        case market.Text():
            return json.dumps([row.channel, row.id], ensure_ascii=False, separators=(",", ":"))
        case _:
            return ""


def complete_at(series: market.Series[Any], row: Any) -> Millis:
    """From when a row could be known: a bar's end, a print's release, an event's own time."""
    if series.row is market.Candle:
        return Millis(row.at + market.timeframe_of(series).millis)
    if series.row is market.MacroRelease:
        return Millis(max(row.at, row.released))
    return Millis(row.at + market.MINUTE_MS) if series.row is market.Heartbeat else Millis(row.at)


def print_interval(series: market.Series[Any]) -> int | None:
    """Milliseconds that one row of a series stands for; 0 where each row has its own, None where rows are snapshots."""
    if series.feed is market.Feed.FUNDING:
        return None if series.name.endswith("/next") else 0
    return market.DAY_MS if series.feed in (market.Feed.FEAR_GREED, market.Feed.MACRO) else None


def is_valid_candle(span: int, shift: int, bar: market.Candle, known: float) -> bool:
    """Whether a market can have made this bar and it had closed: a fast check. `find_row_fault` gives the reason."""
    at, opened, high, low, close, volume, taken = bar
    return (
        LEAST_PRICE <= low <= opened <= high <= MOST
        and low <= close <= high
        and (volume == 0.0 or LEAST_AMOUNT <= volume <= MOST)
        and (taken is None or 0.0 <= taken <= volume)
        and (at - shift) % span == 0
        and at >= EARLIEST
        and at + span <= known
        and at < LATEST
    )


def find_row_fault(series: market.Series[Any], row: Any, known: Millis | None) -> str | None:
    """Why no market can have made this row, or None. `known`: when it reached us, None for history."""
    if type(row) is not series.row:
        return f"it is a {type(row).__name__}, not a {series.row.__name__}"
    if type(row.at) is not int:
        return f"its time is {row.at!r}, not a whole number"
    if not EARLIEST <= row.at < LATEST:
        return f"its time is {row.at}, no moment in milliseconds between 1900 and 2200"
    judge = _JUDGES.get(series.row)
    fault = judge(row) if judge is not None else None
    if fault is not None or not isinstance(row, market.Candle):
        return fault
    timeframe = market.timeframe_of(series)
    if timeframe.floor(row.at) != row.at:
        return f"no {timeframe} bar opens then"
    left = 0 if known is None else row.at + timeframe.millis - known
    return f"it had {left} ms to go when it was read" if left > 0 else None


def _find_candle_fault(bar: market.Candle) -> str | None:
    fault = _find_price_fault(bar, ("open", "high", "low", "close")) or _find_amount_fault(bar, ("volume",))
    if fault is not None:
        return fault
    if bar.high < bar.low:
        return f"high {bar.high!r} is below low {bar.low!r}"
    for name in ("open", "close"):
        if not bar.low <= getattr(bar, name) <= bar.high:
            return f"{name} {getattr(bar, name)!r} is outside {bar.low!r} to {bar.high!r}"
    if bar.taker_buy is None or (fault := _check_bounds("taker_buy", bar.taker_buy, 0.0)):
        return fault
    return f"buyers took {bar.taker_buy!r} of {bar.volume!r}" if bar.taker_buy > bar.volume else None


def _book(book: market.Book) -> str | None:
    for side, quotes in (("bid", book.bids), ("ask", book.asks)):
        if _are_valid_quotes(quotes):
            continue
        for place, quote in enumerate(quotes, 1):
            if fault := _find_price_fault(quote, ("price",)) or _find_amount_fault(quote, ("size",)):
                return f"{side} {place}: {fault}"
    return None


def _are_valid_quotes(quotes: Sequence[market.Quote]) -> bool:
    """A fast check of a million quotes. A sum is not finite where a figure is NaN, which min and max overlook."""
    figures = list(chain.from_iterable(quotes))
    if set(map(type, figures)) != {float} or not isfinite(sum(figures)):
        return not figures
    prices, sizes = figures[::2], figures[1::2]
    return (
        min(prices) >= LEAST_PRICE
        and max(figures) <= MOST
        and min(sizes) >= 0
        and min(filter(None, sizes), default=MOST) >= LEAST_AMOUNT
    )


def _find_chain_fault(options: market.OptionChain) -> str | None:
    for place, quote in enumerate(options.quotes, 1):
        if not _is_valid_option(quote) and (fault := _find_option_fault(quote)):
            return f"option {place}: {fault}"
    return None


def _is_valid_option(quote: market.OptionQuote) -> bool:
    """A fast check."""
    vol, forward, expiry = quote.mark_iv, quote.underlying, quote.expiry
    try:
        return (
            LEAST_PRICE <= quote.strike <= MOST
            and _is_amount(quote.open_interest)
            and _is_amount(quote.volume)
            and (vol is None or 0.0 <= vol <= MOST)
            and (not forward or LEAST_PRICE <= forward <= MOST)
            and (expiry is None or (type(expiry) is int and EARLIEST <= expiry < LATEST))
            and quote.name.isascii()
        )
    except (TypeError, AttributeError):
        return False


def _find_option_fault(quote: market.OptionQuote) -> str | None:
    """A forward of zero is one that is not said."""
    fault = _find_price_fault(quote, ("strike",)) or _find_amount_fault(quote, ("open_interest", "volume"))
    if fault is None and quote.mark_iv is not None:
        fault = _check_bounds("mark_iv", quote.mark_iv, 0.0)
    if fault is None and quote.underlying is not None and quote.underlying != 0:
        fault = _find_price_fault(quote, ("underlying",))
    if fault is None and quote.expiry is not None:
        fault = _find_time_fault("expiry", quote.expiry)
    return fault or _find_text_field_fault(quote, ("name",))


_JUDGES: Final[Mapping[type[Any], Callable[[Any], str | None]]] = {
    market.Candle: _find_candle_fault,
    market.Funding: lambda row: (
        _check_bounds("rate", row.rate) or _check_bounds("interval_hours", row.interval_hours, *INTERVAL_HOURS)
    ),
    market.Level: lambda row: _find_amount_fault(row, ("value",)),
    market.MarkAndIndex: lambda row: _find_price_fault(row, ("mark", "spot")),
    market.MacroRelease: lambda row: _find_time_fault("release", row.released) or _check_bounds("value", row.value),
    market.TapeEvent: lambda row: (
        _find_price_fault(row, ("price",))
        or _check_bounds("quantity", row.quantity, LEAST_AMOUNT)
        or _find_amount_fault(row, ("usd",))
        or _find_text_field_fault(row, ("id",))
    ),
    market.Book: _book,
    market.OptionChain: _find_chain_fault,
    market.Text: lambda row: _find_text_field_fault(row, ("channel", "id", "body")),
}


def _find_time_fault(name: str, value: object) -> str | None:
    if type(value) is int and EARLIEST <= value < LATEST:
        return None
    return f"its {name} is {value!r}, no moment in milliseconds between 1900 and 2200"


def _check_bounds(name: str, value: object, least: float = -MOST, most: float = MOST) -> str | None:
    if not isinstance(value, float | int) or isinstance(value, bool):
        return f"{name} is {value!r}, no number"
    return None if least <= value <= most else f"{name} is {value!r}, not between {least:g} and {most:g}"


def _find_price_fault(row: Any, names: Sequence[str]) -> str | None:
    return next((fault for name in names if (fault := _check_bounds(name, getattr(row, name), LEAST_PRICE))), None)


def _is_amount(value: float) -> bool:
    return value == 0 or LEAST_AMOUNT <= value <= MOST


def _find_amount_fault(row: Any, names: Sequence[str]) -> str | None:
    """The first of these that is no amount; nothing is one."""
    for name in names:
        value = getattr(row, name)
        if fault := _check_bounds(name, value, 0.0):
            return fault
        if not _is_amount(value):
            return f"{name} is {value!r}, above 0 and below {LEAST_AMOUNT:g}"
    return None


def _find_text_field_fault(row: Any, names: Sequence[str]) -> str | None:
    for name in names:
        value = getattr(row, name)
        if not isinstance(value, str):
            return f"{name} is {value!r}, no text"
        if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
            return f"{name} holds half a character"
    return None


# -- series


@dataclass(frozen=True, slots=True)
class RowRun:
    first: Millis
    last: Millis
    count: int


def find_gap(timeframe: market.Timeframe, before: int, after: int) -> RowRun | None:
    first, last = before + timeframe.millis, after - timeframe.millis
    return RowRun(Millis(first), Millis(last), (last - first) // timeframe.millis + 1) if first <= last else None


def find_gaps(timeframe: market.Timeframe, opened: Iterable[Millis], first: int, last: int) -> list[RowRun]:
    """The bars that should be among these, from the one that opens first to the last, and are not."""
    moments = (first - timeframe.millis, *sorted(opened), last + timeframe.millis)
    return [hole for before, after in pairwise(moments) if (hole := find_gap(timeframe, before, after)) is not None]


class FrozenFeedDetector:
    """Finds stretches without any change in the rows of one series, given oldest first."""

    def __init__(self, series: market.Series[Any]) -> None:
        self._limit = FROZEN_AFTER.get(series.feed)
        self._numbers: object = None
        self._first = self._last = Millis(0)
        self._count = 0

    def see(self, row: Any) -> RowRun | None:
        """The stretch that this row ends, if one had become long enough."""
        numbers = _numbers_of(row)
        if numbers == self._numbers:
            self._last, self._count = row.at, self._count + 1
            return None
        ended = self.end()
        self._numbers, self._first, self._last, self._count = numbers, row.at, row.at, 1
        return ended

    def end(self) -> RowRun | None:
        if self._limit is None or self._count < self._limit:
            return None
        return RowRun(self._first, self._last, self._count)


def count_repeated_rows(series: market.Series[Any], rows: Sequence[Any]) -> int | None:
    """How many of the newest rows are equal, if enough for a feed that stands still; else None."""
    limit = FROZEN_AFTER.get(series.feed)
    if limit is None or series.row is market.Heartbeat or len(rows) < limit:
        return None
    last = _numbers_of(rows[-1])
    count = sum(1 for _ in takewhile(lambda row: _numbers_of(row) == last, reversed(rows)))
    return count if count >= limit else None


def _numbers_of(row: Any) -> object:
    return (row.bids, row.asks) if isinstance(row, market.Book) else tuple(row[1:])


def describe_disagreement(coarse: market.Candle, whole: market.Candle, count: int) -> str | None:
    """How a coarse bar differs from its fine bars, or None. Volumes may differ by rounding."""
    for name in ("open", "high", "low", "close"):
        given, made = getattr(coarse, name), getattr(whole, name)
        if given != made:
            return f"{name} is {given!r}, its parts make {made!r}"
    for name in ("volume", "taker_buy"):
        given, made = getattr(coarse, name), getattr(whole, name)
        known = given is not None and made is not None
        if known and abs(given - made) > 2 * (count + 1) * _ROUNDING * max(given, made):
            return f"{name} is {given!r}, its parts make {made!r}"
    return None
