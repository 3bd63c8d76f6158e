"""Every series the desk wants of a market, from the plan of feeds, and what is not offered for its coin."""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from zuno.markets import feeds
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol
from zuno.trading.model import market

RATE_SERIES: Final[Mapping[str, market.Series[market.Level]]] = {
    currency: market.rates(*source) for currency, source in feeds.RATES.items()
}
"""By currency: the price of a dollar in it where its venue quotes in it, else its own price in dollars."""


def own_candles(symbol: Symbol, timeframe: market.Timeframe) -> market.Series[market.Candle]:
    return market.candles(symbol.venue.feed, symbol, timeframe)


def own_book(symbol: Symbol) -> market.Series[market.Book]:
    return market.books(symbol.venue.feed, symbol)


def mark_series(symbol: Symbol) -> market.Series[market.MarkAndIndex]:
    """What is held of a market is priced by: of a perpetual its own mark, of spot the index of the coin."""
    return market.basis(feeds.mark_feed(symbol), symbol)


def large_trades(symbol: Symbol) -> market.Series[market.TapeEvent]:
    return market.whales(feeds.large_trades_feed(symbol), symbol)


def forced_trades(symbol: Symbol) -> tuple[market.Series[market.TapeEvent], ...]:
    return tuple(market.liquidations(feed, symbol) for feed in feeds.tape_feeds(symbol))


def options_of(symbol: Symbol) -> tuple[market.Series[market.OptionChain], market.Series[market.Level]]:
    """A coin's options and their volatility index, whether or not they are offered."""
    feed = feeds.options_feed(symbol.base)
    return market.options(feed, symbol.base), market.dvol(feed, symbol.base)


def tape(symbol: Symbol) -> Iterator[market.Series[Any]]:
    """Streams of forced and of large trades, each beside the minutes it was proven alive in."""
    for series in (*forced_trades(symbol), large_trades(symbol)):
        yield series
        yield market.alive(series.feed, series.venue, series.name)


def derivatives(symbol: Symbol) -> Iterator[market.Series[Any]]:
    for feed in feeds.perpetual_feeds(symbol):
        yield market.funding(feed, symbol)
        yield market.funding_next(feed, symbol)
        yield market.open_interest(feed, symbol)
        if feeds.ROWS[feed].long_short:
            yield market.long_short(feed, symbol)
        yield market.basis(feed, symbol)


def bars_of(symbol: Symbol) -> Iterator[market.Series[Any]]:
    for timeframe in market.Timeframe:
        yield own_candles(symbol, timeframe)
    if symbol.venue.feed != feeds.FOREIGN_SPOT:
        yield market.candles(feeds.FOREIGN_SPOT, symbol, market.Timeframe.H1)


def context_series(symbol: Symbol) -> Iterator[market.Series[Any]]:
    """What is no trade: options, the economy, mood, words, exchange rates."""
    yield own_book(symbol)
    if symbol.base in feeds.OPTIONS:
        yield from options_of(symbol)
    for venue, figures in feeds.FIGURES.items():
        for figure in figures:
            yield market.macro(venue, figure)
    yield market.fear_greed(feeds.ALTERNATIVE)
    yield market.texts(market.Feed.NARRATIVE, feeds.SEARCH, symbol.base)
    yield market.texts(market.Feed.NEWS, feeds.CHANNELS, symbol.base)
    yield from RATE_SERIES.values()


@lru_cache(maxsize=1_024)
def wanted_series(symbol: Symbol) -> tuple[market.Series[Any], ...]:
    return (*bars_of(symbol), *derivatives(symbol), *tape(symbol), *context_series(symbol))


@lru_cache(maxsize=1_024)
def unoffered_series(symbol: Symbol) -> tuple[market.Series[Any], ...]:
    """What a desk would read and nobody offers for this coin: it is not asked for, and its lack is no failure."""
    without = (feed for feed in feeds.perpetual_feeds(symbol) if not feeds.ROWS[feed].long_short)
    ratios = (market.long_short(feed, symbol) for feed in without)
    return (*ratios, *(() if symbol.base in feeds.OPTIONS else options_of(symbol)))


def is_read(series: market.Series[Any]) -> bool:
    """Whether a desk reads it for its market, or for every market."""
    row = feeds.ROWS.get(series.venue)
    if row is not None and (not row.beside or series.feed in (market.Feed.CANDLES, market.Feed.BOOK)):
        return series.venue != feeds.FOREIGN_SPOT or series.name.endswith(f"/{market.Timeframe.H1}")
    coin = series.name.partition("/")[0]
    for name in (coin, f"{coin}{DEFAULT_SYMBOLS[0].quote}", DEFAULT_SYMBOLS[0]):
        try:
            if series in wanted_series(Symbol(name)):
                return True
        except ValueError:
            continue
    return False


def neighbour_series(symbol: Symbol, markets: Iterable[Symbol] = DEFAULT_SYMBOLS) -> tuple[market.Series[Any], ...]:
    """Marks of everything else the desk may hold: a cycle in one symbol weighs the whole account."""
    own = set(wanted_series(symbol))
    return tuple(dict.fromkeys(series for other in markets if (series := mark_series(other)) not in own))
