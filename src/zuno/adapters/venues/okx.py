"""OKX's linear perpetuals and spot, and its stream of liquidations.

Endpoints: https://www.okx.com/docs-v5/en (Get candlesticks history, Get order book, Get system time, Get funding rate,
Get funding rate history, Get open interest history, Get contract long/short ratio, Get mark price, Get index tickers,
Get instruments). Open interest and the sizes of a swap's book are told in contracts; one contract is `ctVal` of the
base currency. Days and weeks open in Hong Kong unless they are asked for by UTC.
Stream: …/docs-v5/en/#public-data-websocket (Liquidation orders channel, Mark price channel) and …/#overview-websocket
(ping, subscribe, error). Its liquidations are a part of all there are, by OKX's own word, and not in the order of time.
"""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

from zuno.adapters.venues import streams
from zuno.adapters.venues.exchange import ExchangeFeed, ExchangeVendor, NotListed
from zuno.adapters.venues.paging import fetch_irregular, pick_period
from zuno.adapters.venues.vendor_json import VendorJson, parse_bar, parse_book
from zuno.kernel.errors import Malformed, Unavailable
from zuno.kernel.units import Millis
from zuno.markets.feeds import OKX
from zuno.trading.model.market import (
    DAY_MS,
    HOUR_MS,
    Book,
    Candle,
    Feed,
    Funding,
    Level,
    MarkAndIndex,
    Quote,
    Series,
    Side,
    TapeEvent,
    Timeframe,
    alive,
    liquidations,
)

VENDOR: Final = ExchangeVendor("okx", "OKX", "www.okx.com", envelope="code")
POINTS_A_PAGE: Final = 100
MOST_LEVELS: Final = 400
BARS: Final = {Timeframe.M1: "1m", Timeframe.H1: "1H", Timeframe.H4: "4H", Timeframe.D1: "1Dutc", Timeframe.W1: "1Wutc"}
QUOTES: Final = ("USDT", "USDC", "EUR", "USD", "BTC", "ETH")
FORCED: Final = "liquidation-orders"
MARKS: Final = "mark-price"


class OkxSpot(ExchangeFeed):
    """It does not say which side took, so bars have no taker volume."""

    venue = "okx-spot"
    volume = 5

    async def candles(self, symbol: str, timeframe: Timeframe, since: Millis, until: Millis) -> Sequence[Candle]:
        step = timeframe.millis
        now = _only(await self._ask("PublicTime", "time"), symbol).moment("ts")

        async def page(low: Millis, high: Millis) -> Sequence[Candle]:
            asked = {"before": low - 1, "after": high + 1, "bar": BARS[timeframe]}
            rows = await self._ask_page("MarketHistoryCandles", "candles", symbol, **asked)
            closed = (row for row in rows if row.choice(8, ("0", "1")) == "1")
            return [parse_bar(row, row.moment(0), (1, 2, 3, 4, self.volume)) for row in closed]

        last = Millis(min(until, now - step))
        return await fetch_irregular("OKX's candles", page, since, last, newest_first=True, apart=step)

    def instrument(self, symbol: str) -> str:
        return "-".join(_split(symbol))

    async def contract(self, symbol: str) -> float:
        """How much of the base currency one unit of size is."""
        return 1.0

    async def book(self, symbol: str, depth: int) -> Book:
        contract, levels = await self.contract(symbol), min(depth, MOST_LEVELS)
        rows = await self._ask("MarketBooks", "book", instId=self.instrument(symbol), sz=levels)
        answer = _only(rows, symbol)
        book = parse_book(answer, answer.moment("ts"), "bids", "asks", depth)
        sides = ([Quote(price, size * contract) for price, size in side] for side in (book.bids, book.asks))
        return Book(book.at, *map(tuple, sides))

    async def _ask(self, endpoint: str, what: str, **params: object) -> list[VendorJson]:
        return (await self._exchange.ask(f"publicGet{endpoint}", what, **params)).children("data")

    async def _ask_page(self, endpoint: str, what: str, symbol: str, **params: object) -> list[VendorJson]:
        return await self._ask(endpoint, what, instId=self.instrument(symbol), limit=POINTS_A_PAGE, **params)


class Okx(OkxSpot):
    venue = OKX
    volume = 6

    def instrument(self, symbol: str) -> str:
        return _swap(symbol)

    async def funding(self, symbol: str, since: Millis, until: Millis) -> Sequence[Funding]:
        """The rate that was paid, with the interval the venue has now."""
        hours = _interval(await self._rate(symbol))

        async def page(low: Millis, high: Millis) -> Sequence[Funding]:
            asked = {"before": low - 1, "after": high + 1}
            answer = await self._ask_page("PublicFundingRateHistory", "rates", symbol, **asked)
            return [Funding(row.moment("fundingTime"), row.number("realizedRate"), hours) for row in answer]

        return await fetch_irregular("OKX's rates of funding", page, since, until, newest_first=True)

    async def funding_next(self, symbol: str) -> Funding:
        rate = await self._rate(symbol)
        return Funding(rate.moment("ts"), rate.number("fundingRate"), _interval(rate))

    async def open_interest(self, symbol: str, since: Millis, until: Millis) -> Sequence[Level]:
        contract = await self.contract(symbol)
        return await self._points(symbol, since, until, "OpenInterestHistory", "open interest", contract)

    async def long_short(self, symbol: str, since: Millis, until: Millis) -> Sequence[Level]:
        endpoint = "LongShortAccountRatioContract"
        return await self._points(symbol, since, until, endpoint, "long/short ratios", 1.0)

    async def basis(self, symbol: str) -> MarkAndIndex:
        marks = await self._ask("PublicMarkPrice", "marks", instType="SWAP", instId=_swap(symbol))
        index = await self._ask("MarketIndexTickers", "index", instId=_swap(symbol).removesuffix("-SWAP"))
        mark, spot = _only(marks, symbol), _only(index, symbol)
        return MarkAndIndex(mark.moment("ts"), mark.number("markPx"), spot.number("idxPx"))

    async def _rate(self, symbol: str) -> VendorJson:
        return _only(await self._ask("PublicFundingRate", "rate", instId=_swap(symbol)), symbol)

    async def contract(self, symbol: str) -> float:
        rows = await self._ask("PublicInstruments", "instruments", instType="SWAP", instId=_swap(symbol))
        listed = _only(rows, symbol)
        base, size = listed.text("ctValCcy"), listed.number("ctVal")
        if base != _split(symbol)[0] or size <= 0:
            raise Malformed(
                f"OKX says that a contract of {symbol} is {size:g} {base[:10]}, which is not its base currency"
            )
        return size

    async def _points(
        self, symbol: str, since: Millis, until: Millis, endpoint: str, what: str, times: float
    ) -> Sequence[Level]:
        period, step = pick_period(since, until, "5m", "1H")

        async def page(low: Millis, high: Millis) -> Sequence[Level]:
            asked = {"begin": low - 1, "end": high + 1, "period": period}
            rows = await self._ask_page(f"RubikStatContracts{endpoint}", what, symbol, **asked)
            return [Level(row.moment(0), row.number(1) * times) for row in rows]

        span = POINTS_A_PAGE * step
        return await fetch_irregular(f"OKX's {what}", page, since, until, newest_first=True, apart=step, span=span)


@dataclass(eq=False, kw_only=True)
class OkxTape(streams.VenueTape):
    """Forced trades by the position that was closed. The channel covers every perpetual; a symbol's mark price, which
    is stamped and frequent, shows that it is served. `contract`: the base currency of one contract of a symbol."""

    contract: Callable[[str], Awaitable[float]]

    venue = OKX

    async def listen(self, symbols: Sequence[str]) -> AsyncGenerator[streams.Item]:
        sizes: dict[str, tuple[str, float]] = {}
        for symbol in symbols:
            with suppress(NotListed):  # the others are heard all the same
                sizes[_swap(symbol)] = symbol, await self.contract(symbol)
        marks = [{"channel": MARKS, "instId": swap} for swap in sizes]
        hello = json.dumps({"op": "subscribe", "args": [{"channel": FORCED, "instType": "SWAP"}, *marks]})
        stream = streams.StreamAddress("OKX", f"{self.url}/ws/v5/public", hello, ping="ping", pong="pong")
        proven = {symbol: [alive(Feed.LIQUIDATIONS, OKX, symbol)] for symbol, _ in sizes.values()}
        async for item in self.listen_to(stream, partial(_parse_message, sizes), proven):
            yield item


def _parse_message(sizes: Mapping[str, tuple[str, float]], message: VendorJson) -> streams.StreamEvent:
    if isinstance(message.value, dict) and "event" in message.value:
        if message.choice("event", ("subscribe", "error", "notice")) == "error":
            raise Unavailable("OKX's stream does not take that wish; check the symbols")
        taken = message.text("event") == "subscribe" and message.child("arg").text("channel") == FORCED
        return streams.StreamSign.SUBSCRIBED if taken else streams.StreamSign.ASIDE
    if message.child("arg").choice("channel", (FORCED, MARKS)) == MARKS:
        mark = message.child("data").only()
        return streams.StreamMessage(mark.moment("ts"), sizes[mark.choice("instId", tuple(sizes))][0], ())
    rows = [
        _liquidation(detail, *sizes[swap], place)
        for instrument in message.children("data")
        if (swap := instrument.text("instId")) in sizes
        for place, detail in enumerate(instrument.children("details"))
    ]
    return streams.StreamMessage(None, "", tuple(rows)) if rows else streams.StreamSign.ASIDE


def _liquidation(detail: VendorJson, symbol: str, contract: float, place: int) -> tuple[Series[TapeEvent], TapeEvent]:
    """`side` is the order's: a sell closes a long. In hedge mode `posSide` names the position, and must agree."""
    side = {"sell": Side.LONG, "buy": Side.SHORT}[detail.choice("side", ("sell", "buy"))]
    position = detail.choice("posSide", ("long", "short", "net"))
    if position not in ("net", side):
        raise Malformed(f"{detail.what}: a {position} position is not closed by a {detail.text('side')}")
    at, price, quantity = detail.moment("ts"), detail.number("bkPx"), detail.number("sz") * contract
    name = f"{side}-{quantity!r}-{price!r}-{place}"
    return liquidations(OKX, symbol), TapeEvent(at, side, price, quantity, price * quantity, name)


def _swap(symbol: str) -> str:
    return f"{'-'.join(_split(symbol))}-SWAP"


def _split(symbol: str) -> tuple[str, str]:
    """Base and quote of a name that has nothing between them."""
    for quote in QUOTES:
        if (base := symbol.removesuffix(quote)) not in ("", symbol):
            return base, quote
    raise Unavailable(f"OKX is not asked for {symbol[:20]}: its quote currency is none of {', '.join(QUOTES)}")


def _only(rows: list[VendorJson], symbol: str) -> VendorJson:
    if not rows:
        raise Unavailable(f"OKX says nothing of {symbol}")
    return VendorJson(rows[0].what, [row.value for row in rows]).only()


def _interval(rate: VendorJson) -> float:
    """Hours from the coming settlement to the one after it."""
    span = rate.moment("nextFundingTime") - rate.moment("fundingTime")
    if not 0 < span <= DAY_MS:
        raise Malformed(f"OKX says that {span} ms lie between two fundings, which cannot be")
    return span / HOUR_MS
