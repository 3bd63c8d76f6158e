"""Binance's futures and spot REST interfaces, and its futures streams.

Built from https://developers.binance.com/docs/derivatives/usds-margined-futures/market-data/rest-api
(Check-Server-Time, Kline-Candlestick-Data, Get-Funding-Rate-History, Get-Funding-Rate-Info, Mark-Price,
Open-Interest-Statistics, Long-Short-Ratio, Order-Book), …/error-code (−1121), …/general-info (429, 418, Retry-After),
and …/websocket-market-streams (Liquidation-Order-Streams, Aggregate-Trade-Streams).
"""

from __future__ import annotations

import json
from typing import Any

from tests.wire.vendors.serving import Query, Route, said
from tests.wire.vendors.world import SYMBOL, World

NO_SYMBOL = said({"code": -1121, "msg": "Invalid symbol."}, 400)
LIMITED = said({"code": -1003, "msg": "Too many requests."}, 429, extra="retry-after: 7\r\n")
BANNED = said({"code": -1003, "msg": "Way too many requests; banned."}, 418, extra="retry-after: 120\r\n")


def routes(world: World, most: int = 1_500) -> dict[str, Route]:
    """`most`: rows a page has at most, whatever was asked for."""

    def of_symbol(answer: Route) -> Route:
        return lambda query: answer(query) if query.get("symbol") in (SYMBOL, "USDCUSDT") else NO_SYMBOL

    def cut(rows: list[Any], query: Query) -> list[Any]:
        low, high = int(query.get("startTime", 0)), int(query.get("endTime", world.now))
        return [row for row in rows if low <= row.at <= high][: min(most, int(query.get("limit", 500)))]

    def klines(query: Query) -> Any:
        step = world.timeframe.millis
        assert query["interval"] == world.timeframe
        return [
            [
                bar.at,
                *(f"{number:.2f}" for number in bar[1:5]),
                f"{bar.volume:.3f}",
                bar.at + step - 1,
                "2434.19055334",
                308,
                f"{bar.taker_buy:.4f}",
                "92.5",
                "0",
            ]
            for bar in cut(world.candles, query)
        ]

    def rate_history(query: Query) -> Any:
        return [
            {"symbol": SYMBOL, "fundingRate": f"{row.rate:.8f}", "fundingTime": row.at, "markPrice": "60000.50"}
            for row in cut(world.funding, query)
        ]

    def intervals(query: Query) -> Any:
        return [
            {
                "symbol": SYMBOL,
                "adjustedFundingRateCap": "0.02500000",
                "adjustedFundingRateFloor": "-0.02500000",
                "fundingIntervalHours": int(world.hours),
                "disclaimer": False,
            }
        ]

    def premium(query: Query) -> Any:
        return {
            "symbol": SYMBOL,
            "markPrice": f"{world.basis.mark:.8f}",
            "indexPrice": f"{world.basis.spot:.8f}",
            "estimatedSettlePrice": "60000.16404010",
            "lastFundingRate": f"{world.funding_next.rate:.8f}",
            "interestRate": "0.00010000",
            "nextFundingTime": world.now + 1_800_000,
            "time": world.now,
        }

    def interest(query: Query) -> Any:
        return [
            {
                "symbol": SYMBOL,
                "sumOpenInterest": f"{row.value:.8f}",
                "sumOpenInterestValue": "4860000000.5",
                "CMCCirculatingSupply": "19900000.0",
                "timestamp": row.at,
            }
            for row in cut(world.open_interest, query)
        ]

    def ratios(query: Query) -> Any:
        return [
            {
                "symbol": SYMBOL,
                "longShortRatio": f"{row.value:.6f}",
                "longAccount": "0.6",
                "shortAccount": "0.4",
                "timestamp": str(row.at),
            }
            for row in cut(world.long_short, query)
        ]

    def depth(query: Query) -> Any:
        count = int(query["limit"])
        return {
            "lastUpdateId": 1_027_024,
            "E": world.now + 3,
            "T": world.book.at,
            "bids": [[f"{price:.2f}", f"{size:.3f}"] for price, size in world.book.bids[:count]],
            "asks": [[f"{price:.2f}", f"{size:.3f}"] for price, size in world.book.asks[:count]],
        }

    return {
        "/fapi/v1/time": lambda query: {"serverTime": world.now},
        "/fapi/v1/klines": of_symbol(klines),
        "/fapi/v1/fundingRate": of_symbol(rate_history),
        "/fapi/v1/fundingInfo": intervals,
        "/fapi/v1/premiumIndex": of_symbol(premium),
        "/futures/data/openInterestHist": of_symbol(interest),
        "/futures/data/globalLongShortAccountRatio": of_symbol(ratios),
        "/fapi/v1/depth": of_symbol(depth),
        "/api/v3/time": lambda query: {"serverTime": world.now},
        "/api/v3/klines": of_symbol(klines),
        "/api/v3/depth": of_symbol(
            lambda query: {name: told for name, told in depth(query).items() if name not in ("E", "T")}
        ),
    }


def forced(at: int, side: str = "SELL", filled: str = "0.014", average: str = "60000.5", symbol: str = SYMBOL) -> str:
    order = {
        "s": symbol,
        "S": side,
        "o": "LIMIT",
        "f": "IOC",
        "q": "0.020",
        "p": "59910",
        "ap": average,
        "X": "FILLED",
        "l": "0.014",
        "z": filled,
        "T": at,
    }
    data = {"e": "forceOrder", "E": at + 5, "o": order}
    return json.dumps({"stream": f"{symbol.lower()}@forceOrder", "data": data})


def traded(
    at: int, quantity: str = "0.001", price: str = "60000.0", seller: bool = False, number: int = 5_933_014
) -> str:
    data = {
        "e": "aggTrade",
        "E": at + 5,
        "s": SYMBOL,
        "a": number,
        "p": price,
        "q": quantity,
        "f": 100,
        "l": 105,
        "T": at,
        "m": seller,
    }
    return json.dumps({"stream": f"{SYMBOL.lower()}@aggTrade", "data": data})
