"""Hyperliquid's perpetuals: bars, funding, open interest, mark and oracle, and the book.

Endpoint: https://hyperliquid.gitbook.io/hyperliquid-docs/for-developers/api/info-endpoint (candleSnapshot, l2Book) and
…/info-endpoint/perpetuals (metaAndAssetCtxs, fundingHistory). It tells no long/short ratio, no past open interest and
no forced trades. Only a book carries the venue's time. A coin by the thousand is kPEPE there and 1000PEPE here.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from zuno.adapters.venues.exchange import ExchangeFeed, ExchangeVendor
from zuno.adapters.venues.paging import fetch_bars, fetch_irregular
from zuno.adapters.venues.vendor_json import VendorJson, parse_bar, parse_book
from zuno.kernel.errors import Malformed, Unavailable
from zuno.kernel.units import Millis
from zuno.markets.feeds import HYPERLIQUID, ROWS
from zuno.trading.measure.bars import aggregate
from zuno.trading.model.market import MINUTE_MS, Book, Candle, Funding, Level, MarkAndIndex, Timeframe

VENDOR: Final = ExchangeVendor("hyperliquid", "Hyperliquid", "api.hyperliquid.xyz")
BARS_A_PAGE: Final = 5_000
HOURS: Final = 1.0
"""Between two fundings of any coin."""
DAYS_A_WEEK: Final = 7


class Hyperliquid(ExchangeFeed):
    """It does not say which side took, so bars have no taker volume. The newest 5,000 bars of a length are served."""

    venue = HYPERLIQUID

    async def candles(self, symbol: str, timeframe: Timeframe, since: Millis, until: Millis) -> Sequence[Candle]:
        if timeframe is Timeframe.W1:  # it does not say on which day its weeks open
            first = timeframe.floor(since + timeframe.millis - 1)
            end = timeframe.floor(until) + timeframe.millis - 1
            days = await self.candles(symbol, Timeframe.D1, first, Millis(end))
            return _join_weeks(days)
        coin = _coin(symbol)
        now = (await self._read_book(coin)).moment("time")

        async def page(low: Millis, high: Millis) -> Sequence[Candle]:
            asked = {"coin": coin, "interval": str(timeframe), "startTime": low, "endTime": high}
            answer = await self._ask("candleSnapshot", "candles", req=asked)
            return [parse_bar(row, row.moment("t"), "ohlcv") for row in answer.items() if row.moment("T") < now]

        return await fetch_bars("Hyperliquid's candles", page, timeframe, since, until, now, BARS_A_PAGE)

    async def funding(self, symbol: str, since: Millis, until: Millis) -> Sequence[Funding]:
        coin = _coin(symbol)
        await self._read_book(coin)

        async def page(low: Millis, high: Millis) -> Sequence[Funding]:
            answer = await self._ask("fundingHistory", "rates", coin=coin, startTime=low, endTime=high)
            return [Funding(row.moment("time"), row.number("fundingRate"), HOURS) for row in answer.items()]

        return await fetch_irregular("Hyperliquid's rates of funding", page, since, until, newest_first=False)

    async def funding_next(self, symbol: str) -> Funding:
        at, context = await self._read_context(symbol)
        return Funding(at, context.number("funding"), HOURS)

    async def open_interest(self, symbol: str, since: Millis, until: Millis) -> Sequence[Level]:
        """What is open now, if that time is within a minute of now: it tells no past."""
        at, context = await self._read_context(symbol)
        if not since - MINUTE_MS <= at <= until + MINUTE_MS:
            return []
        return [Level(Millis(min(max(at, since), until)), context.number("openInterest"))]

    async def long_short(self, symbol: str, since: Millis, until: Millis) -> Sequence[Level]:
        raise Unavailable("Hyperliquid tells no long/short ratio")

    async def basis(self, symbol: str) -> MarkAndIndex:
        at, context = await self._read_context(symbol)
        return MarkAndIndex(at, context.number("markPx"), context.number("oraclePx"))

    async def book(self, symbol: str, depth: int) -> Book:
        """At most 20 levels a side."""
        answer = await self._read_book(_coin(symbol))
        if len(sides := answer.children("levels")) != 2:
            raise Malformed(f"{answer.what} has {len(sides)} sides")
        named = {
            name: [[level["px"], level["sz"]] for level in side.items()]
            for name, side in zip(("bids", "asks"), sides, strict=True)
        }
        return parse_book(VendorJson(answer.what, named), answer.moment("time"), "bids", "asks", depth)

    async def _ask(self, kind: str, what: str, **params: object) -> VendorJson:
        return await self._exchange.ask("publicPostInfo", what, type=kind, **params)

    async def _read_book(self, coin: str) -> VendorJson:
        answer = await self._ask("l2Book", "book", coin=coin)
        if answer.value in (None, "null"):
            raise Unavailable(f"Hyperliquid lists no {coin}")
        return answer

    async def _read_context(self, symbol: str) -> tuple[Millis, VendorJson]:
        """When it was asked by the venue's clock, and what it says of a coin."""
        coin = _coin(symbol)
        at = (await self._read_book(coin)).moment("time")
        answer = await self._ask("metaAndAssetCtxs", "markets")
        names = [row.text("name") for row in answer.child(0).children("universe")]
        contexts = answer.children(1)
        if len(names) != len(contexts):
            raise Malformed(f"{answer.what} names {len(names)} coins and tells of {len(contexts)}")
        if coin not in names:
            raise Unavailable(f"Hyperliquid lists no {coin}")
        return at, contexts[names.index(coin)]


def _coin(symbol: str) -> str:
    base = symbol.removesuffix(ROWS[HYPERLIQUID].quote)
    return f"k{base.removeprefix('1000')}" if base.startswith("1000") else base


def _join_weeks(days: Sequence[Candle]) -> list[Candle]:
    """Whole weeks alone."""
    weeks = ((at, list(bars)) for at, bars in groupby(days, lambda day: Timeframe.W1.floor(day.at)))
    return [aggregate(at, bars) for at, bars in weeks if len(bars) == DAYS_A_WEEK]
