"""Hyperliquid's info endpoint.

Built from https://hyperliquid.gitbook.io/hyperliquid-docs/for-developers/api/info-endpoint (candleSnapshot, l2Book) and
…/info-endpoint/perpetuals (metaAndAssetCtxs, fundingHistory). An unknown coin has no book: the answer is null.
"""

from __future__ import annotations

from typing import Any

from tests.wire.vendors.serving import Query, Route
from tests.wire.vendors.world import World

COIN = "BTC"
SYMBOL = "BTCUSDC"


def routes(world: World, most: int = 500, coin: str = COIN) -> dict[str, Route]:
    def candles(asked: Any) -> Any:
        if asked["coin"] != coin:
            return []
        bars = [bar for bar in world.candles if asked["startTime"] <= bar.at <= asked["endTime"]]
        numbers = {"o": "open", "h": "high", "l": "low", "c": "close", "v": "volume"}
        return [
            {"t": bar.at, "T": bar.at + world.timeframe.millis - 1, "s": coin, "i": asked["interval"], "n": 46}
            | {short: str(getattr(bar, name)) for short, name in numbers.items()}
            for bar in bars[:most]
        ]

    def book(query: Any) -> Any:
        if query["coin"] != coin:
            return None
        sides = (world.book.bids, world.book.asks)
        levels = [[{"px": str(price), "sz": str(size), "n": 3} for price, size in side[:20]] for side in sides]
        return {"coin": coin, "time": world.now, "levels": levels}

    def rates(query: Any) -> Any:
        rows = [row for row in world.funding if query["startTime"] <= row.at <= query["endTime"]]
        return [
            {"coin": coin, "fundingRate": f"{row.rate:.8f}", "premium": "0.00057962", "time": row.at}
            for row in rows[:most]
        ]

    def contexts(query: Any) -> Any:
        universe = [{"name": name, "szDecimals": 5, "maxLeverage": 40} for name in ("ETH", coin)]
        told = {
            "dayNtlVlm": "9450588.2273",
            "funding": f"{world.funding_next.rate:.8f}",
            "impactPxs": ["60000.0", "60001.0"],
            "markPx": str(world.basis.mark),
            "midPx": "60000.5",
            "openInterest": str(world.open_interest[-1].value),
            "oraclePx": str(world.basis.spot),
            "premium": "0.00055561",
            "prevDayPx": "59000.0",
        }
        return [{"universe": universe}, [{**told, "markPx": "3000.0", "oraclePx": "3001.0"}, told]]

    def info(query: Query) -> Any:
        found: dict[str, Any] = {"l2Book": book, "fundingHistory": rates, "metaAndAssetCtxs": contexts}
        kind = query["type"]
        return candles(query["req"]) if kind == "candleSnapshot" else found[kind](query)

    return {"/info": info}
