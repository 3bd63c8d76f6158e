"""Closed days of markets out of the store, as core strategies read them."""

from collections.abc import Callable, Sequence
from typing import Any

from zuno.kernel.units import Millis
from zuno.markets.feeds import perpetual_feeds
from zuno.markets.market import Symbol
from zuno.trading.measure.data_quality import find_gaps
from zuno.trading.model.market import DAY_MS, HOUR_MS, Timeframe, funding
from zuno.trading.model.wanted import own_candles
from zuno.trading.ports.series import SeriesStore, Slice
from zuno.trading.strategies.port import MarketHistory, build_history


async def read_days(
    store: SeriesStore, symbols: Sequence[Symbol], at: Millis, *, spot: Callable[[Symbol], bool] = lambda symbol: True
) -> tuple[MarketHistory, ...]:
    """Each market's days that were over by a moment, as they were known then. Where no bar of a day is stored, as of a
    day with a hole in it, its close is that of its last hour; the last day is left out until its last hour is known."""
    end = Millis(at - at % DAY_MS - 1)
    histories = []
    for symbol in symbols:
        days, hours = own_candles(symbol, Timeframe.D1), own_candles(symbol, Timeframe.H1)
        paid = funding(perpetual_feeds(symbol)[0], symbol)
        prints: Slice[Any] = Slice(paid, Millis(0), Millis(end + Timeframe.H1.millis))
        whole, settled = (await store.read_many([Slice(days, Millis(0), end), prints], at)).rows
        gaps = find_gaps(Timeframe.D1, [bar.at for bar in whole], 0, end + 1 - DAY_MS)
        holes = [Slice(hours, gap.first, Millis(gap.last + DAY_MS - 1)) for gap in gaps]
        parts = (await store.read_many(holes, at)).rows
        bars = sorted((bar.at, bar.close) for rows in (whole, *parts) for bar in rows)
        if bars and end - DAY_MS < bars[-1][0] <= end - HOUR_MS and bars[-1][0] % DAY_MS:
            bars = [bar for bar in bars if bar[0] <= end - DAY_MS]
        histories.append(build_history(symbol.value, bars, settled, spot=spot(symbol)))
    return tuple(histories)
