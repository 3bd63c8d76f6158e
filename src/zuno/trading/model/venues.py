"""Who is asked for what: the venues of the trading desk by their names, and every series it wants of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from zuno.trading.model.market import (
    Feed,
    Series,
    Symbol,
    Timeframe,
    alive,
    basis,
    books,
    candles,
    dvol,
    fear_greed,
    funding,
    funding_next,
    liquidations,
    long_short,
    macro,
    open_interest,
    options,
    rates,
    texts,
    whales,
)

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


def tape(symbol: Symbol) -> Iterator[Series[Any]]:
    """Streams of forced and of large trades, each beside the minutes it was proven alive in."""
    for venue in TAPES:
        yield liquidations(venue, symbol)
        yield alive(Feed.LIQUIDATIONS, venue, symbol)
    yield whales(BINANCE, symbol)
    yield alive(Feed.WHALES, BINANCE, symbol)


def derivatives(symbol: Symbol) -> Iterator[Series[Any]]:
    for venue in PERPETUALS:
        yield funding(venue, symbol)
        yield funding_next(venue, symbol)
        yield open_interest(venue, symbol)
        yield long_short(venue, symbol)
        yield basis(venue, symbol)


def bars_of(symbol: Symbol) -> Iterator[Series[Any]]:
    for timeframe in Timeframe:
        yield candles(BINANCE, symbol, timeframe)
    yield candles(UPBIT, krw_symbol(symbol), Timeframe.H1)


def context_series(symbol: Symbol) -> Iterator[Series[Any]]:
    """What is no trade: options, the economy, mood, words, exchange rates."""
    yield books(BINANCE, symbol)
    yield options(DERIBIT, symbol.base)
    yield dvol(DERIBIT, symbol.base)
    for venue, figures in FIGURES.items():
        for figure in figures:
            yield macro(venue, figure)
    yield fear_greed(ALTERNATIVE)
    yield texts(Feed.NARRATIVE, SEARCH, symbol.base)
    yield texts(Feed.NEWS, CHANNELS, symbol.base)
    yield rates(UPBIT, USDT_KRW)
    yield rates(BINANCE, USDC_USDT)


@cache
def wanted_series(symbol: Symbol) -> tuple[Series[Any], ...]:
    """Every series the desk reads for a symbol."""
    return (*bars_of(symbol), *derivatives(symbol), *tape(symbol), *context_series(symbol))


@cache
def neighbour_series(symbol: Symbol) -> tuple[Series[Any], ...]:
    """Marks of everything else the desk may hold: a cycle in one symbol weighs the whole account."""
    return tuple(basis(BINANCE, other) for other in Symbol if other is not symbol)
