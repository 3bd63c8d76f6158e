"""Upbit's won markets: bars of the spot, and what a dollar coin costs.

Endpoints: https://docs.upbit.com/reference (candles of minutes, days and weeks; ticker). A bar without a trade is not
made, so a hole is no fault. The venue has no endpoint for its time: a ticker carries it.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from zuno.adapters.venues.exchange import ExchangeFeed, ExchangeVendor
from zuno.adapters.venues.paging import fetch_irregular, read_closes
from zuno.adapters.venues.vendor_json import parse_bar
from zuno.kernel.units import Millis
from zuno.markets.feeds import UPBIT
from zuno.trading.model.market import SECOND_MS, Candle, Level, Timeframe

VENDOR: Final = ExchangeVendor("upbit", "Upbit", "api.upbit.com")
BARS_A_PAGE: Final = 200
ENDPOINTS: Final = dict(zip(Timeframe, ("Minutes1", "Minutes60", "Minutes240", "Days", "Weeks"), strict=True))
FIELDS: Final = ("opening_price", "high_price", "low_price", "trade_price", "candle_acc_trade_volume")


class Upbit(ExchangeFeed):
    venue = UPBIT

    async def candles(self, symbol: str, timeframe: Timeframe, since: Millis, until: Millis) -> Sequence[Candle]:
        tickers = await self._exchange.ask("publicGetTicker", "ticker", markets=symbol)
        last = min(until, tickers.only().moment("timestamp") - timeframe.millis)

        async def page(low: Millis, high: Millis) -> Sequence[Candle]:
            end = datetime.fromtimestamp(high // SECOND_MS + 1, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            answer = await self._exchange.ask(
                f"publicGetCandles{ENDPOINTS[timeframe]}", "candles", market=symbol, to=end, count=BARS_A_PAGE
            )
            return [parse_bar(row, row.moment_of_text("candle_date_time_utc"), FIELDS) for row in answer.items()]

        apart = timeframe.millis
        return await fetch_irregular("Upbit's candles", page, since, Millis(last), newest_first=True, apart=apart)

    async def levels(self, name: str, since: Millis, until: Millis) -> Sequence[Level]:
        return await read_closes(self.candles, name, since, until)
