"""Every question the live feeds can be asked, each with its vendor and the fields that are read of the answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.wire.vendors import binance, bybit, deribit, figures, okx, upbit, words
from tests.wire.vendors.serving import Route, Vendor, vendor
from tests.wire.vendors.world import NOON, SYMBOL, World
from zuno.adapters.http import RequestLimits
from zuno.adapters.venues import binance as binance_feed
from zuno.adapters.venues import bybit as bybit_feed
from zuno.adapters.venues import deribit as deribit_feed
from zuno.adapters.venues import okx as okx_feed
from zuno.adapters.venues import upbit as upbit_feed
from zuno.adapters.venues.exchange import ExchangeClient
from zuno.adapters.venues.exchange import ExchangeVendor as Who
from zuno.adapters.venues.macro import FearGreed, Fred, Yahoo
from zuno.adapters.venues.texts import Search
from zuno.adapters.venues.web import WebService
from zuno.kernel.units import Millis
from zuno.trading.model.market import DAY_MS, HOUR_MS, Level, MacroRelease, Text, Timeframe

QUICK = RequestLimits(timeout=2.0, attempts=2, first_wait=0.001, longest_wait=20.0, max_bytes=2_000_000)


def after(hours: float) -> Millis:
    return Millis(round(NOON + hours * HOUR_MS))


DAYS = figures.days(6, NOON // DAY_MS * DAY_MS - DAY_MS)
WORLD = World(
    prints=[MacroRelease(Millis(day), 4.25 + n, Millis(day + 30 * HOUR_MS)) for n, day in enumerate(DAYS)],
    levels=[Level(Millis(day), 40.0 + n) for n, day in enumerate(DAYS)],
    texts=[Text(after(-1), words.CHANNEL, "7", "Bitcoin was calm")],
)

Make = Callable[[str, RequestLimits], Any]


async def no_sleep(seconds: float) -> None:
    """Waiting is not what is tested."""


def through(kind: Callable[[ExchangeClient], Any], who: Who) -> Make:
    return lambda url, patience: kind(ExchangeClient(who, url, patience=patience, throttled=False, sleep=no_sleep))


def web(kind: Callable[[WebService], Any], path: str = "", secret: str | None = None) -> Make:
    return lambda url, patience: kind(
        WebService("The service", url + path, secret=secret, patience=patience, sleep=no_sleep)
    )


def now() -> Millis:
    return Millis(WORLD.now)


@dataclass(frozen=True)
class Question:
    """`reads`: the fields of each path whose loss must be noticed."""

    name: str
    routes: Callable[[World], dict[str, Route]]
    make: Make
    ask: Callable[[Any], Awaitable[Any]]
    reads: dict[str, set[str | int]]


def _of(venue: str, routes: Any, make: Make) -> Callable[..., Question]:
    def question(name: str, ask: Callable[[Any], Awaitable[Any]], reads: dict[str, set[str | int]]) -> Question:
        return Question(f"{venue} {name}", routes, make, ask, reads)

    return question


_binance = _of("binance", binance.routes, through(binance_feed.Binance, binance_feed.VENDOR))
_bybit = _of("bybit", bybit.routes, through(bybit_feed.Bybit, bybit_feed.VENDOR))
_okx = _of("okx", okx.routes, through(okx_feed.Okx, okx_feed.VENDOR))
_upbit = _of("upbit", upbit.routes, through(upbit_feed.Upbit, upbit_feed.VENDOR))
_deribit = _of("deribit", deribit.routes, through(deribit_feed.Deribit, deribit_feed.VENDOR))
_FRED = web(lambda here: Fred(here, figures.KEY, now), "/fred", figures.KEY)
_SEARCH = web(lambda here: Search(here, now), secret=words.KEY)

_INTERVALS: dict[str, set[str | int]] = {"/fapi/v1/fundingInfo": {"symbol", "fundingIntervalHours"}}
_INSTRUMENTS: dict[str, set[str | int]] = {
    "/v5/market/instruments-info": {"retCode", "result", "list", "fundingInterval"}
}
_LIST: set[str | int] = {"retCode", "result", "list"}
_RATE: set[str | int] = {"code", "data", "fundingTime", "nextFundingTime"}
_DATA: set[str | int] = {"code", "data"}
_CONTRACT: set[str | int] = {*_DATA, "ctVal", "ctValCcy"}
_RUBIK = "/api/v5/rubik/stat/contracts"

QUESTIONS = [
    _binance(
        "candles",
        lambda feed: feed.candles(SYMBOL, Timeframe.H1, after(-9), after(0)),
        {"/fapi/v1/time": {"serverTime"}, "/fapi/v1/klines": {0, 1, 2, 3, 4, 5, 6, 9}},
    ),
    _binance(
        "funding",
        lambda feed: feed.funding(SYMBOL, after(-90), after(0)),
        {**_INTERVALS, "/fapi/v1/fundingRate": {"fundingRate", "fundingTime"}},
    ),
    _binance(
        "next funding",
        lambda feed: feed.funding_next(SYMBOL),
        {**_INTERVALS, "/fapi/v1/premiumIndex": {"lastFundingRate", "time"}},
    ),
    _binance(
        "open interest",
        lambda feed: feed.open_interest(SYMBOL, after(-1), after(0)),
        {"/futures/data/openInterestHist": {"sumOpenInterest", "timestamp"}},
    ),
    _binance(
        "long/short",
        lambda feed: feed.long_short(SYMBOL, after(-1), after(0)),
        {"/futures/data/globalLongShortAccountRatio": {"longShortRatio", "timestamp"}},
    ),
    _binance(
        "basis",
        lambda feed: feed.basis(SYMBOL),
        {"/fapi/v1/premiumIndex": {"markPrice", "indexPrice", "time"}},
    ),
    _binance("book", lambda feed: feed.book(SYMBOL, 10), {"/fapi/v1/depth": {"bids", "asks", "T", 0, 1}}),
    _bybit(
        "candles",
        lambda feed: feed.candles(SYMBOL, Timeframe.H1, after(-9), after(0)),
        {"/v5/market/tickers": {"retCode", "time"}, "/v5/market/kline": {*_LIST, 0, 1, 2, 3, 4, 5}},
    ),
    _bybit(
        "funding",
        lambda feed: feed.funding(SYMBOL, after(-90), after(0)),
        {**_INSTRUMENTS, "/v5/market/funding/history": {*_LIST, "fundingRate", "fundingRateTimestamp"}},
    ),
    _bybit(
        "next funding",
        lambda feed: feed.funding_next(SYMBOL),
        {**_INSTRUMENTS, "/v5/market/tickers": {*_LIST, "time", "fundingRate"}},
    ),
    _bybit(
        "open interest",
        lambda feed: feed.open_interest(SYMBOL, after(-1), after(0)),
        {"/v5/market/open-interest": {*_LIST, "openInterest", "timestamp"}},
    ),
    _bybit(
        "long/short",
        lambda feed: feed.long_short(SYMBOL, after(-1), after(0)),
        {"/v5/market/account-ratio": {*_LIST, "buyRatio", "sellRatio", "timestamp"}},
    ),
    _bybit(
        "basis",
        lambda feed: feed.basis(SYMBOL),
        {"/v5/market/tickers": {*_LIST, "time", "markPrice", "indexPrice"}},
    ),
    _bybit(
        "book",
        lambda feed: feed.book(SYMBOL, 10),
        {"/v5/market/orderbook": {"retCode", "result", "ts", "b", "a", 0, 1}},
    ),
    _okx(
        "funding",
        lambda feed: feed.funding(SYMBOL, after(-90), after(0)),
        {
            "/api/v5/public/funding-rate": _RATE,
            "/api/v5/public/funding-rate-history": {*_DATA, "realizedRate", "fundingTime"},
        },
    ),
    _okx(
        "next funding",
        lambda feed: feed.funding_next(SYMBOL),
        {"/api/v5/public/funding-rate": {*_RATE, "fundingRate", "ts"}},
    ),
    _okx(
        "open interest",
        lambda feed: feed.open_interest(SYMBOL, after(-1), after(0)),
        {"/api/v5/public/instruments": _CONTRACT, f"{_RUBIK}/open-interest-history": {*_DATA, 0, 1}},
    ),
    _okx(
        "long/short",
        lambda feed: feed.long_short(SYMBOL, after(-1), after(0)),
        {f"{_RUBIK}/long-short-account-ratio-contract": {*_DATA, 0, 1}},
    ),
    _okx(
        "basis",
        lambda feed: feed.basis(SYMBOL),
        {"/api/v5/public/mark-price": {*_DATA, "markPx", "ts"}, "/api/v5/market/index-tickers": {*_DATA, "idxPx"}},
    ),
    _upbit(
        "candles",
        lambda feed: feed.candles("KRW-BTC", Timeframe.H1, after(-9), after(0)),
        {
            "/v1/ticker": {"timestamp"},
            "/v1/candles/minutes/60": {
                "candle_date_time_utc",
                "opening_price",
                "high_price",
                "low_price",
                "trade_price",
                "candle_acc_trade_volume",
            },
        },
    ),
    _deribit(
        "chain",
        lambda feed: feed.chain("BTC"),
        {
            "/api/v2/public/get_instruments": {
                "result",
                "instrument_name",
                "option_type",
                "strike",
                "expiration_timestamp",
            },
            "/api/v2/public/get_book_summary_by_currency": {
                "result",
                "usOut",
                "instrument_name",
                "mark_iv",
                "underlying_price",
                "open_interest",
                "volume",
            },
        },
    ),
    _deribit(
        "index of volatility",
        lambda feed: feed.dvol("BTC", after(-9), after(0)),
        {
            "/api/v2/public/get_time": {"result"},
            "/api/v2/public/get_volatility_index_data": {"result", "data", 0, 4},
        },
    ),
    Question(
        "fred prints",
        figures.fred,
        _FRED,
        lambda feed: feed.prints("DGS10", Millis(DAYS[0]), Millis(DAYS[-1])),
        {"/fred/series/observations": {"count", "observations", "realtime_start", "date", "value"}},
    ),
    Question(
        "yahoo prints",
        figures.yahoo,
        web(Yahoo),
        lambda feed: feed.prints("NASDAQ", Millis(DAYS[0]), Millis(DAYS[-1])),
        {
            "/v8/finance/chart/^IXIC": {
                "chart",
                "result",
                "meta",
                "exchangeTimezoneName",
                "regularMarketTime",
                "currentTradingPeriod",
                "regular",
                "start",
                "end",
                "timestamp",
                "indicators",
                "quote",
                "close",
                *range(len(DAYS)),
            }
        },
    ),
    Question(
        "fear and greed",
        figures.fear_greed,
        web(lambda here: FearGreed(here, now)),
        lambda feed: feed.levels("index", Millis(DAYS[0]), Millis(DAYS[-1])),
        {"/fng/": {"data", "value", "timestamp"}},
    ),
    Question(
        "search",
        words.search,
        _SEARCH,
        lambda feed: feed.texts("BTC", after(0), Millis(WORLD.now)),
        {"/chat/completions": {"choices", "message", "content"}},
    ),
]


@asynccontextmanager
async def asking(
    question: Question, patience: RequestLimits = QUICK, world: World = WORLD
) -> AsyncIterator[tuple[Vendor, Any]]:
    async with vendor(question.routes(world)) as here:
        feed = question.make(here.url, patience)
        try:
            yield here, feed
        finally:
            await feed.close()
