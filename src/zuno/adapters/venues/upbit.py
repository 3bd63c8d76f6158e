"""Upbit's won markets: bars of the spot, and what a dollar coin costs.

Endpoints: https://docs.upbit.com/reference (candles of minutes, days and weeks; ticker). A bar without a trade is not
made, so a hole is no fault. The venue has no endpoint for its time: a ticker carries it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from zuno.adapters.venues.exchange import ExchangeFeed, ExchangeVendor
from zuno.adapters.venues.paging import fetch_irregular
from zuno.adapters.venues.vendor_json import VendorJson
from zuno.kernel.units import Millis
from zuno.markets.feeds import UPBIT
from zuno.trading.model.market import DAY_MS, SECOND_MS, Candle, Level, Timeframe

VENDOR: Final = ExchangeVendor("upbit", "Upbit", "api.upbit.com")
BARS_A_PAGE: Final = 200
ENDPOINTS: Final = {
    Timeframe.M1: "Minutes1",
    Timeframe.H1: "Minutes60",
    Timeframe.H4: "Minutes240",
    Timeframe.D1: "Days",
    Timeframe.W1: "Weeks",
}


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
            return [_candle(row) for row in answer.items()]

        apart = timeframe.millis
        return await fetch_irregular("Upbit's candles", page, since, Millis(last), newest_first=True, apart=apart)

    async def levels(self, name: str, since: Millis, until: Millis) -> Sequence[Level]:
        """Closes, each when its bar ended: of minutes for up to a day, of hours for more."""
        timeframe = Timeframe.M1 if until - since <= DAY_MS else Timeframe.H1
        step = timeframe.millis
        bars = await self.candles(name, timeframe, Millis(since - step), Millis(until - step))
        return [Level(Millis(bar.at + step), bar.close) for bar in bars]


def _candle(row: VendorJson) -> Candle:
    fields = ("opening_price", "high_price", "low_price", "trade_price", "candle_acc_trade_volume")
    start, high, low, close, volume = map(row.number, fields)
    return Candle(row.moment_of_text("candle_date_time_utc"), start, high, low, close, volume, None)
