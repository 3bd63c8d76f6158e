"""The plan of feeds: who is asked for what of a coin, by which name, and what is not offered for it."""

from __future__ import annotations

import pytest

from zuno.markets.feeds import large_trades_feed, mark_feed, name_at, perpetual_feeds, tape_feeds
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol
from zuno.trading.model.market import Feed, Timeframe, candles, funding, parse_series
from zuno.trading.model.wanted import is_read, neighbour_series, unoffered_series, wanted_series

SYMBOLS = [
    Symbol(name)
    for name in (
        "BTCUSDT",
        "SOLUSDT",
        "1000PEPEUSDT",
        "binance:SOL/USDT",
        "bybit:SOL/USDT:USDT",
        "okx:SOL/USDT:USDT",
        "okx:SOL/USDT",
        "hyperliquid:SOL/USDC:USDC",
    )
]


@pytest.mark.parametrize(
    ("symbol", "feeds"),
    [
        ("BTCUSDT", ("binance", "bybit", "okx")),
        ("bybit:SOL/USDT:USDT", ("bybit", "binance", "okx")),
        ("binance:SOL/USDT", ("binance", "bybit", "okx")),
        ("hyperliquid:SOL/USDC:USDC", ("hyperliquid", "binance", "bybit", "okx")),
        ("1000PEPEUSDT", ("binance", "bybit")),
    ],
)
def test_perpetuals_are_read_at_the_markets_own_venue_first(symbol: str, feeds: tuple[str, ...]) -> None:
    assert perpetual_feeds(Symbol(symbol)) == feeds
    assert mark_feed(Symbol(symbol)) == feeds[0]


@pytest.mark.parametrize(
    ("feed", "symbol", "name"),
    [
        ("binance", "SOLUSDT", "SOLUSDT"),
        ("upbit", "SOLUSDT", "KRW-SOL"),
        ("hyperliquid", "hyperliquid:SOL/USDC:USDC", "SOLUSDC"),
        ("okx", "hyperliquid:SOL/USDC:USDC", "SOLUSDT"),
        ("binance-spot", "binance:SOL/FDUSD", "SOLFDUSD"),
        ("binance", "binance:SOL/FDUSD", "SOLUSDT"),
    ],
)
def test_each_feed_has_its_own_name_of_a_market(feed: str, symbol: str, name: str) -> None:
    assert name_at(feed, Symbol(symbol)) == name
    assert funding(feed, Symbol(symbol)).name == name
    assert candles(feed, Symbol(symbol), Timeframe.H1).name == f"{name}/1h"


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_every_series_of_a_market_can_be_named_and_asked_for_once(symbol: Symbol) -> None:
    wanted = wanted_series(symbol)
    assert len(set(wanted)) == len(wanted)
    assert all(parse_series(str(series)) == series and is_read(series) for series in wanted)
    assert {series.venue for series in wanted if series.feed is Feed.BOOK} == {symbol.venue.feed}
    assert not set(unoffered_series(symbol)) & set(wanted)


def test_what_nobody_offers_for_a_coin_is_not_asked_for() -> None:
    assert not unoffered_series(Symbol("BTCUSDT"))
    assert set(map(str, unoffered_series(Symbol("SOLUSDT")))) == {"options/deribit/SOL", "dvol/deribit/SOL"}
    assert "long_short/hyperliquid/ETHUSDC" in map(str, unoffered_series(Symbol("hyperliquid:ETH/USDC:USDC")))
    assert "hyperliquid" not in tape_feeds(Symbol("hyperliquid:ETH/USDC:USDC"))
    assert large_trades_feed(Symbol("hyperliquid:ETH/USDC:USDC")) == "binance"


def test_ten_markets_add_one_series_each_to_a_bundle() -> None:
    ten = [Symbol(f"{coin}USDT") for coin in "BTC ETH SOL XRP BNB DOGE ADA LINK LTC TRX".split()]
    assert len(neighbour_series(ten[0], ten)) == 9
    assert list(map(str, neighbour_series(DEFAULT_SYMBOLS[0]))) == ["basis/binance/ETHUSDT"]
