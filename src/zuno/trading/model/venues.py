"""Who is asked for what: the venues of the trading desk by their names, and every series it wants of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from zuno.markets.market import DEFAULT_SYMBOLS, Symbol
from zuno.trading.model import market

BINANCE: Final = "binance"
BYBIT: Final = "bybit"
OKX: Final = "okx"
UPBIT: Final = "upbit"
DERIBIT: Final = "deribit"
FRED: Final = "fred"
YAHOO: Final = "yahoo"
ALTERNATIVE: Final = "alternative.me"
SEARCH: Final = "search"
CHANNELS: Final = "channels"

PERPETUALS: Final = (BINANCE, BYBIT, OKX)
TAPES: Final = (BINANCE, BYBIT, OKX)
"""Venues whose forced trades are listened to."""
USDT_KRW: Final = "KRW-USDT"
USDC_USDT: Final = "USDC-USDT"
FIGURES: Final[Mapping[str, tuple[str, ...]]] = {
    FRED: ("DGS2", "DGS10", "CPIAUCSL", "FEDFUNDS", "DTWEXBGS", "NASDAQCOM", "DCOILWTICO"),
    YAHOO: ("DXY", "NASDAQ", "GOLD", "OIL"),
}


def krw_symbol(symbol: Symbol) -> str:
    """How Upbit calls the same thing against the won."""
    return f"KRW-{symbol.base}"


def tape(symbol: Symbol) -> Iterator[market.Series[Any]]:
    """Streams of forced and of large trades, each beside the minutes it was proven alive in."""
    for venue in TAPES:
        yield market.liquidations(venue, symbol)
        yield market.alive(market.Feed.LIQUIDATIONS, venue, symbol)
    yield market.whales(BINANCE, symbol)
    yield market.alive(market.Feed.WHALES, BINANCE, symbol)


def derivatives(symbol: Symbol) -> Iterator[market.Series[Any]]:
    for venue in PERPETUALS:
        yield market.funding(venue, symbol)
        yield market.funding_next(venue, symbol)
        yield market.open_interest(venue, symbol)
        yield market.long_short(venue, symbol)
        yield market.basis(venue, symbol)


def bars_of(symbol: Symbol) -> Iterator[market.Series[Any]]:
    for timeframe in market.Timeframe:
        yield market.candles(BINANCE, symbol, timeframe)
    yield market.candles(UPBIT, krw_symbol(symbol), market.Timeframe.H1)


def context_series(symbol: Symbol) -> Iterator[market.Series[Any]]:
    """What is no trade: options, the economy, mood, words, exchange rates."""
    yield market.books(BINANCE, symbol)
    yield market.options(DERIBIT, symbol.base)
    yield market.dvol(DERIBIT, symbol.base)
    for venue, figures in FIGURES.items():
        for figure in figures:
            yield market.macro(venue, figure)
    yield market.fear_greed(ALTERNATIVE)
    yield market.texts(market.Feed.NARRATIVE, SEARCH, symbol.base)
    yield market.texts(market.Feed.NEWS, CHANNELS, symbol.base)
    yield market.rates(UPBIT, USDT_KRW)
    yield market.rates(BINANCE, USDC_USDT)


@cache
def wanted_series(symbol: Symbol) -> tuple[market.Series[Any], ...]:
    """Every series the desk reads for a symbol."""
    return (*bars_of(symbol), *derivatives(symbol), *tape(symbol), *context_series(symbol))


def is_read(series: market.Series[Any]) -> bool:
    """Whether the desk reads it for any symbol."""
    return any(series in wanted_series(symbol) for symbol in DEFAULT_SYMBOLS)


@cache
def neighbour_series(symbol: Symbol) -> tuple[market.Series[Any], ...]:
    """Marks of everything else the desk may hold: a cycle in one symbol weighs the whole account."""
    return tuple(market.basis(BINANCE, other) for other in DEFAULT_SYMBOLS if other is not symbol)
