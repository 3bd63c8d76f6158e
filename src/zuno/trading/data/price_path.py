"""Recorded prices between two moments, in the currency of an exchange: bars, the finest first, and settled funding."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, Final

from zuno.kernel.units import Millis
from zuno.markets.feeds import FOREIGN_SPOT, mark_feed
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.measure.bars import SpanBar, select_finest_bars
from zuno.trading.model.market import STALE_AFTER, Candle, Feed, Funding, Level, Series, Timeframe, candles, funding
from zuno.trading.model.wanted import RATE_SERIES, own_candles
from zuno.trading.ports.series import SeriesStore, Slice

TIMEFRAMES: Final = (Timeframe.M1, Timeframe.H1, Timeframe.H4, Timeframe.D1)
_RATE_MS: Final = STALE_AFTER[Feed.RATES] * 1_000


async def read_bars(
    store: SeriesStore, exchange: Venue, symbol: Symbol, since: Millis, until: Millis, known_by: Millis
) -> list[SpanBar]:
    """Bars that began in [since, until) and ended by `known_by`, oldest first. Where the exchange prices in another
    currency, its own candles; where a timeframe has none, the market's at the rate of the moment."""
    end = Millis(max(since, until - 1))
    asked: list[Slice[Any]] = [Slice(own_candles(symbol, timeframe), since, end) for timeframe in TIMEFRAMES]
    own_prices = exchange.feed == FOREIGN_SPOT != symbol.venue.feed
    if own_prices:
        own: list[Series[Candle]] = [candles(exchange.feed, symbol, timeframe) for timeframe in TIMEFRAMES]
        asked += [Slice(series, since, end) for series in own]
        asked.append(Slice(RATE_SERIES[exchange.currency], Millis(max(0, since - _RATE_MS)), until))
    rows = (await store.read_many(asked, known_by)).rows
    count = len(TIMEFRAMES)
    chosen = [*zip(TIMEFRAMES, rows[:count], strict=True)]
    if own_prices:
        chosen = [
            (timeframe, theirs or _convert(bars, timeframe, rows[-1]))
            for (timeframe, bars), theirs in zip(chosen, rows[count : 2 * count], strict=True)
        ]
    return sorted(bar for bar in select_finest_bars(chosen) if bar.end <= known_by)


async def read_funding(
    store: SeriesStore, symbol: Symbol, since: Millis, until: Millis, known_by: Millis
) -> Sequence[Funding]:
    """Rates that were settled in (since, until]."""
    return await store.read(funding(mark_feed(symbol), symbol), Millis(since + 1), until, known_by)


def _convert(bars: Sequence[Candle], timeframe: Timeframe, rows: Sequence[Level]) -> list[Candle]:
    """Nothing of a time whose rate is stale."""
    times = [row.at for row in rows]
    converted: list[Candle] = []
    for bar in bars:
        end = bar.at + timeframe.millis
        place = bisect_right(times, end) - 1
        if place >= 0 and end - times[place] <= _RATE_MS and (rate := rows[place].value) > 0:
            opened, high, low, close = (price * rate for price in bar[1:5])
            converted.append(Candle(bar.at, opened, high, low, close, bar.volume, None))
    return converted
