"""Upbit's quotation interface.

Built from https://docs.upbit.com/reference: minute candles (no candle without a trade; `to` is exclusive; 200 at most,
newest first), day and week candles, ticker, and https://docs.upbit.com/docs/rest-api-errors (404, 429).
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tests.wire.vendors.serving import Query, Route, said
from tests.wire.vendors.world import World

MARKETS = ("KRW-BTC", "KRW-USDT")
NO_MARKET = said({"error": {"name": 404, "message": "Code not found"}}, 404)
LIMITED = said({"error": {"name": 429, "message": "Too many API requests."}}, 429)


def routes(world: World, most: int = 200) -> dict[str, Route]:
    def iso(at: float) -> str:
        return datetime.fromtimestamp(at / 1_000, UTC).strftime("%Y-%m-%dT%H:%M:%S")

    def candles(query: Query) -> Any:
        if query["market"] not in MARKETS:
            return NO_MARKET
        to = datetime.fromisoformat(query["to"]).timestamp() * 1_000
        rows = [bar for bar in world.candles if bar.at < to][::-1][: min(most, int(query["count"]))]
        return [
            {
                "market": query["market"],
                "candle_date_time_utc": iso(bar.at),
                "candle_date_time_kst": iso(bar.at + 9 * 3_600_000),
                "opening_price": bar.open,
                "high_price": bar.high,
                "low_price": bar.low,
                "trade_price": bar.close,
                "timestamp": bar.at + 59_000,
                "candle_acc_trade_price": 1_234_567.5,
                "candle_acc_trade_volume": bar.volume,
                "unit": 60,
            }
            for bar in rows
        ]

    def ticker(query: Query) -> Any:
        if query["markets"] not in MARKETS:
            return NO_MARKET
        return [
            {
                "market": query["markets"],
                "trade_price": 90_000_000.0,
                "trade_timestamp": world.now - 250,
                "timestamp": world.now,
                "change": "RISE",
            }
        ]

    paths = ("minutes/1", "minutes/60", "minutes/240", "days", "weeks")
    return {"/v1/ticker": ticker, **{f"/v1/candles/{path}": candles for path in paths}}
