"""Binance's USDⓈ-M perpetuals and spot, and the dollar's rate from its spot market.

Endpoints: https://developers.binance.com/docs/derivatives/usds-margined-futures/market-data/rest-api and,
for klines of the spot market, https://developers.binance.com/docs/binance-spot-api-docs/rest-api/market-data-endpoints.
Streams: https://developers.binance.com/docs/derivatives/usds-margined-futures/websocket-market-streams; forced
orders and aggregated trades are both under /market since the streams were split.
"""

from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Final

from zuno.adapters.venues.exchange import ExchangeFeed, ExchangeVendor
from zuno.adapters.venues.paging import fetch_bars, fetch_irregular, pick_period, read_closes
from zuno.adapters.venues.streams import Item, StreamAddress, StreamEvent, StreamMessage, VenueTape
from zuno.adapters.venues.vendor_json import VendorJson, parse_bar, parse_book
from zuno.kernel.errors import Unavailable
from zuno.kernel.units import Millis
from zuno.markets.feeds import BINANCE, USDC_USDT
from zuno.trading.measure.tape import WHALE_USD
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
    whales,
)

VENDOR: Final = ExchangeVendor("binanceusdm", "Binance", "fapi.binance.com")
BARS_A_PAGE, RATES_A_PAGE, POINTS_A_PAGE = 1_500, 1_000, 500
SPOT_BARS_A_PAGE: Final = 1_000
DEPTHS: Final = (5, 10, 20, 50, 100, 500, 1_000)
USUAL_HOURS: Final = 8.0
"""Between two fundings of a symbol that the list of exceptions does not name."""


class BinanceSpot(ExchangeFeed):
    venue = "binance-spot"

    async def candles(self, symbol: str, timeframe: Timeframe, since: Millis, until: Millis) -> Sequence[Candle]:
        return await self._bars("publicGet", SPOT_BARS_A_PAGE, symbol, timeframe, since, until)

    async def book(self, symbol: str, depth: int) -> Book:
        """It carries no time: the venue's clock is asked first, so that a book is never younger than it says."""
        now = await self._now("publicGet")
        answer = await self._exchange.ask("publicGetDepth", "book", symbol=symbol, limit=depth)
        return parse_book(answer, now, "bids", "asks", depth)

    async def _now(self, part: str) -> Millis:
        return (await self._exchange.ask(f"{part}Time", "time")).moment("serverTime")

    async def _bars(
        self, part: str, limit: int, symbol: str, timeframe: Timeframe, since: Millis, until: Millis
    ) -> Sequence[Candle]:
        async def page(low: Millis, high: Millis) -> Sequence[Candle]:
            span = {"interval": str(timeframe), "startTime": low, "endTime": high, "limit": limit}
            answer = await self._exchange.ask(f"{part}Klines", "klines", symbol=symbol, **span)
            rows = (row for row in answer.items() if row.moment(6) < now)
            return [parse_bar(row, row.moment(0), range(1, 6), row.number(9)) for row in rows]

        now = await self._now(part)
        return await fetch_bars("Binance's klines", page, timeframe, since, until, now, limit)


class Binance(BinanceSpot):
    venue = BINANCE

    async def candles(self, symbol: str, timeframe: Timeframe, since: Millis, until: Millis) -> Sequence[Candle]:
        return await self._bars("fapiPublicGet", BARS_A_PAGE, symbol, timeframe, since, until)

    async def funding(self, symbol: str, since: Millis, until: Millis) -> Sequence[Funding]:
        hours = await self._interval(symbol)

        async def page(low: Millis, high: Millis) -> Sequence[Funding]:
            answer = await self._exchange.ask(
                "fapiPublicGetFundingRate", "rates", symbol=symbol, startTime=low, endTime=high, limit=RATES_A_PAGE
            )
            return [Funding(row.moment("fundingTime"), row.number("fundingRate"), hours) for row in answer.items()]

        return await fetch_irregular("Binance's rates of funding", page, since, until, newest_first=False)

    async def funding_next(self, symbol: str) -> Funding:
        """The rate as it stands now for the coming settlement, which the venue calls the last."""
        hours = await self._interval(symbol)
        premium = await self._premium(symbol)
        return Funding(premium.moment("time"), premium.number("lastFundingRate"), hours)

    async def open_interest(self, symbol: str, since: Millis, until: Millis) -> Sequence[Level]:
        return await self._points("OpenInterestHist", "open interest", "sumOpenInterest", symbol, since, until)

    async def long_short(self, symbol: str, since: Millis, until: Millis) -> Sequence[Level]:
        endpoint = "GlobalLongShortAccountRatio"
        return await self._points(endpoint, "long/short ratios", "longShortRatio", symbol, since, until)

    async def basis(self, symbol: str) -> MarkAndIndex:
        premium = await self._premium(symbol)
        return MarkAndIndex(premium.moment("time"), premium.number("markPrice"), premium.number("indexPrice"))

    async def book(self, symbol: str, depth: int) -> Book:
        """Levels come in fixed numbers: the next larger is asked for and cut."""
        limit = next((size for size in DEPTHS if size >= depth), DEPTHS[-1])
        answer = await self._exchange.ask("fapiPublicGetDepth", "book", symbol=symbol, limit=limit)
        return parse_book(answer, answer.moment("T"), "bids", "asks", depth)

    async def levels(self, name: str, since: Millis, until: Millis) -> Sequence[Level]:
        if name != USDC_USDT:
            raise Unavailable(f"Binance is not asked for the rate {name}: it gives {USDC_USDT}")
        return await read_closes(super().candles, name.replace("-", ""), since, until)

    async def _points(
        self, endpoint: str, what: str, field: str, symbol: str, since: Millis, until: Millis
    ) -> Sequence[Level]:
        period, step = pick_period(since, until, "5m", "1h")

        async def page(low: Millis, high: Millis) -> Sequence[Level]:
            asked = {"period": period, "startTime": low, "endTime": high, "limit": POINTS_A_PAGE}
            answer = await self._exchange.ask(f"fapiDataGet{endpoint}", what, symbol=symbol, **asked)
            return [Level(row.moment("timestamp"), row.number(field)) for row in answer.items()]

        span = POINTS_A_PAGE * step
        return await fetch_irregular(f"Binance's {what}", page, since, until, newest_first=False, apart=step, span=span)

    async def _premium(self, symbol: str) -> VendorJson:
        return await self._exchange.ask("fapiPublicGetPremiumIndex", "premium index", symbol=symbol)

    async def _interval(self, symbol: str) -> float:
        """Hours between fundings: the venue lists only the symbols whose interval or caps were ever changed."""
        answer = await self._exchange.ask("fapiPublicGetFundingInfo", "funding intervals")
        listed = {row.text("symbol"): row.number("fundingIntervalHours") for row in answer.items()}
        hours = listed.get(symbol, USUAL_HOURS)
        if not 0 < hours <= 24:
            raise Unavailable(f"Binance says that {symbol} is funded every {hours:g} h, which cannot be")
        return hours


class BinanceTape(VenueTape):
    """Forced and whale trades on one connection. At most one forced order a second: totals are lower bounds."""

    venue = BINANCE

    def listen(self, symbols: Sequence[str]) -> AsyncGenerator[Item]:
        names = [f"{symbol.lower()}@{kind}" for symbol in symbols for kind in ("forceOrder", "aggTrade")]
        stream = StreamAddress("Binance", f"{self.url}/market/stream?streams={'/'.join(names)}")
        feeds = (Feed.LIQUIDATIONS, Feed.WHALES)
        proven = {symbol: [alive(feed, BINANCE, symbol) for feed in feeds] for symbol in symbols}
        return self.listen_to(stream, _parse_message, proven)


def _parse_message(message: VendorJson) -> StreamEvent:
    """One message of the combined stream; anything but the two kinds of trade is an error."""
    data = message.child("data")
    at = data.moment("E")
    match data.text("e"):
        case "forceOrder":
            return StreamMessage(at, data.child("o").text("s"), tuple(_liquidation(data.child("o"))))
        case "aggTrade":
            return StreamMessage(at, data.text("s"), tuple(_whale(data)))
        case kind:
            raise Unavailable(f"Binance's stream sent {kind[:20]!r}, which nobody asked for")


def _liquidation(order: VendorJson) -> Iterator[tuple[Series[TapeEvent], TapeEvent]]:
    """S is the side of the order that closes the position: a sale ends a long one."""
    side = {"SELL": Side.LONG, "BUY": Side.SHORT}[order.choice("S", ("SELL", "BUY"))]
    at, price, quantity = order.moment("T"), order.number("ap"), order.number("z")
    if quantity > 0:
        row = TapeEvent(at, side, price, quantity, price * quantity, f"{side}-{quantity!r}-{price!r}")
        yield liquidations(BINANCE, order.text("s")), row


def _whale(trade: VendorJson) -> Iterator[tuple[Series[TapeEvent], TapeEvent]]:
    """m: the buyer had been waiting in the book, so a seller took."""
    at, price, quantity = trade.moment("T"), trade.number("p"), trade.number("q")
    side = Side.SHORT if trade.flag("m") else Side.LONG
    if price * quantity >= WHALE_USD:
        row = TapeEvent(at, side, price, quantity, price * quantity, str(trade.whole("a")))
        yield whales(BINANCE, trade.text("s")), row
