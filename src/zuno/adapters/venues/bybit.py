"""Bybit's linear perpetuals and spot.

Endpoints: https://bybit-exchange.github.io/docs/v5/market (kline, history-fund-rate, instrument, tickers,
open-interest, long-short-ratio, orderbook). Every answer carries the venue's time. Lists come newest first.
Stream: https://bybit-exchange.github.io/docs/v5/websocket/public/all-liquidation, …/public/ticker, …/v5/ws/connect
(ping). Forced trades are rare and pongs carry no time; tickers come all the time and tell the venue's.
"""

import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Final

from zuno.adapters.venues import streams
from zuno.adapters.venues.exchange import ExchangeFeed, ExchangeVendor
from zuno.adapters.venues.paging import fetch_bars, fetch_irregular, pick_period
from zuno.adapters.venues.vendor_json import VendorJson, parse_bar, parse_book
from zuno.kernel.errors import Malformed, Unavailable
from zuno.kernel.units import Millis
from zuno.markets.feeds import BYBIT
from zuno.trading.model.market import (
    Book,
    Candle,
    Feed,
    Funding,
    Level,
    MarkAndIndex,
    Series,
    Side,
    TapeEvent,
    Timeframe,
    alive,
    liquidations,
)

VENDOR: Final = ExchangeVendor("bybit", "Bybit", "api.bybit.com", envelope="retCode")
BARS_A_PAGE, RATES_A_PAGE = 1_000, 200
INTERVALS: Final = {Timeframe.M1: "1", Timeframe.H1: "60", Timeframe.H4: "240", Timeframe.D1: "D", Timeframe.W1: "W"}


class BybitSpot(ExchangeFeed):
    """It does not say which side took, so bars have no taker volume."""

    venue = "bybit-spot"
    category = "spot"
    most_levels = 200

    async def candles(self, symbol: str, timeframe: Timeframe, since: Millis, until: Millis) -> Sequence[Candle]:
        async def page(low: Millis, high: Millis) -> Sequence[Candle]:
            answer = await self._ask(
                "Kline", "klines", symbol, interval=INTERVALS[timeframe], start=low, end=high, limit=BARS_A_PAGE
            )
            return [parse_bar(row, row.moment(0), range(1, 6)) for row in _result_list(answer)]

        now = (await self._ask("Tickers", "tickers", symbol)).moment("time")
        return await fetch_bars("Bybit's klines", page, timeframe, since, until, now, BARS_A_PAGE)

    async def book(self, symbol: str, depth: int) -> Book:
        answer = await self._ask("Orderbook", "book", symbol, limit=min(depth, self.most_levels))
        result = answer.child("result")
        return parse_book(result, result.moment("ts"), "b", "a", depth)

    async def _ask(self, endpoint: str, what: str, symbol: str, **params: object) -> VendorJson:
        return await self._exchange.ask(
            f"publicGetV5Market{endpoint}", what, category=self.category, symbol=symbol, **params
        )


class Bybit(BybitSpot):
    venue = BYBIT
    category = "linear"
    most_levels = 500

    async def funding(self, symbol: str, since: Millis, until: Millis) -> Sequence[Funding]:
        hours = await self._interval(symbol)

        async def page(low: Millis, high: Millis) -> Sequence[Funding]:
            answer = await self._ask("FundingHistory", "rates", symbol, startTime=low, endTime=high, limit=RATES_A_PAGE)
            return [
                Funding(row.moment("fundingRateTimestamp"), row.number("fundingRate"), hours)
                for row in _result_list(answer)
            ]

        return await fetch_irregular("Bybit's rates of funding", page, since, until, newest_first=True)

    async def funding_next(self, symbol: str) -> Funding:
        hours = await self._interval(symbol)
        answer = await self._ask("Tickers", "tickers", symbol)
        return Funding(answer.moment("time"), _result_item(answer).number("fundingRate"), hours)

    async def open_interest(self, symbol: str, since: Millis, until: Millis) -> Sequence[Level]:
        """Of a linear contract: in the base currency."""
        return await self._points("open interest", symbol, since, until)

    async def long_short(self, symbol: str, since: Millis, until: Millis) -> Sequence[Level]:
        return await self._points("long/short ratios", symbol, since, until)

    async def basis(self, symbol: str) -> MarkAndIndex:
        answer = await self._ask("Tickers", "tickers", symbol)
        ticker = _result_item(answer)
        return MarkAndIndex(answer.moment("time"), ticker.number("markPrice"), ticker.number("indexPrice"))

    async def _points(self, what: str, symbol: str, since: Millis, until: Millis) -> Sequence[Level]:
        endpoint, period_name, limit, value = POINTS[what]
        period, step = pick_period(since, until, "5min", "1h")

        async def page(low: Millis, high: Millis) -> Sequence[Level]:
            params = {period_name: period, "startTime": low, "endTime": high, "limit": limit}
            answer = await self._ask(endpoint, what, symbol, **params)
            return [Level(row.moment("timestamp"), value(row)) for row in _result_list(answer)]

        whose, span = f"Bybit's {what}", limit * step
        return await fetch_irregular(whose, page, since, until, newest_first=True, apart=step, span=span)

    async def _interval(self, symbol: str) -> float:
        minutes = _result_item(await self._ask("InstrumentsInfo", "instruments", symbol)).number("fundingInterval")
        if not 0 < minutes <= 24 * 60:
            raise Malformed(f"Bybit says that {symbol} is funded every {minutes:g} minutes, which cannot be")
        return minutes / 60


class BybitTape(streams.VenueTape):
    """Every forced trade of a symbol, by the position that was closed."""

    venue = BYBIT

    async def listen(self, symbols: Sequence[str]) -> AsyncGenerator[streams.Item]:
        """A wish that names one unknown symbol is declined as a whole: the others are asked for without it."""
        names = list(symbols)
        while True:
            try:
                async with aclosing(self._listen(names)) as stream:
                    async for item in stream:
                        yield item
                return
            except _UnknownTopic as unknown:
                if unknown.symbol not in names or len(names) == 1:
                    raise
                names.remove(unknown.symbol)

    def _listen(self, symbols: Sequence[str]) -> AsyncGenerator[streams.Item]:
        topics = [f"{kind}.{symbol}" for symbol in symbols for kind in ("allLiquidation", "tickers")]
        hello = json.dumps({"op": "subscribe", "args": topics})
        stream = streams.StreamAddress("Bybit", f"{self.url}/v5/public/linear", hello, ping='{"op":"ping"}')
        proven = {symbol: [alive(Feed.LIQUIDATIONS, BYBIT, symbol)] for symbol in symbols}
        return self.listen_to(stream, _parse_message, proven)


class _UnknownTopic(Unavailable):
    def __init__(self, reason: str) -> None:
        super().__init__("Bybit's stream does not take that wish; check the symbols")
        self.symbol = reason.rpartition(".")[2]


def _parse_message(message: VendorJson) -> streams.StreamEvent:
    if isinstance(message.value, dict) and "op" in message.value:
        if not message.flag("success"):
            raise _UnknownTopic(message.text("ret_msg"))
        return streams.StreamSign.SUBSCRIBED if message.text("op") == "subscribe" else streams.StreamSign.PONG
    kind, _, symbol = message.text("topic").partition(".")
    if kind == "tickers":
        return streams.StreamMessage(message.moment("ts"), symbol, ())
    if kind != "allLiquidation":
        raise Malformed("Bybit's stream sent a topic nobody asked for")
    rows = tuple(_liquidation(row, place) for place, row in enumerate(message.children("data")))
    return streams.StreamMessage(message.moment("ts"), symbol, rows)


def _liquidation(row: VendorJson, place: int) -> tuple[Series[TapeEvent], TapeEvent]:
    """S is the side of the position: Buy means that a long one was liquidated."""
    side = {"Buy": Side.LONG, "Sell": Side.SHORT}[row.choice("S", ("Buy", "Sell"))]
    at, price, quantity = row.moment("T"), row.number("p"), row.number("v")
    name = f"{side}-{quantity!r}-{price!r}-{place}"
    return liquidations(BYBIT, row.text("s")), TapeEvent(at, side, price, quantity, price * quantity, name)


def _result_list(answer: VendorJson) -> list[VendorJson]:
    return answer.child("result").children("list")


def _result_item(answer: VendorJson) -> VendorJson:
    return answer.child("result").child("list").only()


def _ratio(row: VendorJson) -> float:
    """Shares of accounts, made accounts that are long for each one that is short."""
    long, short = row.number("buyRatio"), row.number("sellRatio")
    if not (0 <= long <= 1 and 0 < short <= 1):
        raise Malformed(f"{row.what}: {long:g} and {short:g} are no shares of a whole")
    return long / short


POINTS: Final[Mapping[str, tuple[str, str, int, Callable[[VendorJson], float]]]] = {
    "open interest": ("OpenInterest", "intervalTime", 200, lambda row: row.number("openInterest")),
    "long/short ratios": ("AccountRatio", "period", 500, _ratio),
}
"""Endpoint, its name of a period, points of a page, and what a row says."""
