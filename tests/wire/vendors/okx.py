"""OKX's v5 REST interface and its public stream.

Built from https://www.okx.com/docs-v5/en: Public Data (Get instruments, Get open interest, Get funding rate, Get
funding rate history, Get mark price, Get index tickers), Trading Statistics (Get contract open interest history, Get
contract long/short ratio) and Error Code (50011, 51001); the stream from …/docs-v5/en/#overview-websocket (ping,
subscribe, error 60012), …/#public-data-websocket-liquidation-orders-channel and …-mark-price-channel.
"""

from __future__ import annotations

import json
from typing import Any

from tests.wire.vendors.serving import Query, Route, said
from tests.wire.vendors.world import World
from zuno.trading.model.market import HOUR_MS

SWAP, INDEX = "BTC-USDT-SWAP", "BTC-USDT"
CONTRACT = 0.01
NO_SYMBOL = said({"code": "51001", "data": [], "msg": "Instrument ID doesn't exist."})
LIMITED = said({"code": "50011", "data": [], "msg": "Too Many Requests"}, 429)
LIMITED_POLITELY = said({"code": "50011", "data": [], "msg": "Too Many Requests"})


def routes(world: World, most: int = 100) -> dict[str, Route]:
    def of(answer: Route) -> Route:
        def answered(query: Query) -> Any:
            known = query.get("instId") in (SWAP, INDEX)
            return {"code": "0", "msg": "", "data": answer(query)} if known else NO_SYMBOL

        return answered

    def cut(rows: list[Any], low: int, high: int, query: Query) -> list[Any]:
        """Between both, neither included, newest first."""
        return [row for row in rows if low < row.at < high][::-1][: min(most, int(query["limit"]))]

    def rate(query: Query) -> Any:
        return [
            {
                "instId": SWAP,
                "instType": "SWAP",
                "method": "current_period",
                "fundingRate": f"{world.funding_next.rate:.8f}",
                "nextFundingRate": "",
                "fundingTime": str(world.now + HOUR_MS),
                "nextFundingTime": str(int(world.now + HOUR_MS + world.hours * HOUR_MS)),
                "ts": str(world.now),
            }
        ]

    def rate_history(query: Query) -> Any:
        return [
            {
                "instId": SWAP,
                "instType": "SWAP",
                "fundingRate": f"{row.rate:.8f}",
                "realizedRate": f"{row.rate:.8f}",
                "fundingTime": str(row.at),
                "method": "current_period",
            }
            for row in cut(world.funding, int(query["before"]), int(query["after"]), query)
        ]

    def interest(query: Query) -> Any:
        rows = cut(world.open_interest, int(query["begin"]), int(query["end"]), query)
        return [[str(row.at), repr(row.value / CONTRACT), str(row.value), "4860000000"] for row in rows]

    def ratios(query: Query) -> Any:
        rows = cut(world.long_short, int(query["begin"]), int(query["end"]), query)
        return [[str(row.at), str(row.value)] for row in rows]

    def instruments(query: Query) -> Any:
        return [{"instId": SWAP, "ctVal": str(CONTRACT), "ctValCcy": "BTC", "ctMult": "1", "state": "live"}]

    def marks(query: Query) -> Any:
        return [{"instType": "SWAP", "instId": SWAP, "markPx": str(world.basis.mark), "ts": str(world.now)}]

    def index(query: Query) -> Any:
        return [{"instId": INDEX, "idxPx": str(world.basis.spot), "high24h": "61000", "ts": str(world.now)}]

    def candles(query: Query) -> Any:
        assert query["bar"] in ("1m", "1H", "4H", "1Dutc", "1Wutc")
        lots = 1 if query["instId"] == INDEX else CONTRACT
        return [
            [
                str(bar.at),
                *(str(number) for number in bar[1:5]),
                *((str(bar.volume), "1") if query["instId"] == INDEX else (repr(bar.volume / lots), str(bar.volume))),
                "730000.5",
                str(int(bar.at + world.timeframe.millis <= world.now)),
            ]
            for bar in cut(world.candles, int(query["before"]), int(query["after"]), query)
        ]

    def book(query: Query) -> Any:
        lots, count = 1 if query["instId"] == INDEX else CONTRACT, int(query["sz"])
        sides = {
            name: [[str(price), repr(size / lots), "0", "3"] for price, size in side[:count]]
            for name, side in (("asks", world.book.asks), ("bids", world.book.bids))
        }
        return [{**sides, "ts": str(world.book.at), "seqId": 3_235_851_742}]

    found = {
        "market/history-candles": candles,
        "market/books": book,
        "public/funding-rate": rate,
        "public/funding-rate-history": rate_history,
        "rubik/stat/contracts/open-interest-history": interest,
        "rubik/stat/contracts/long-short-account-ratio-contract": ratios,
        "public/instruments": instruments,
        "public/mark-price": marks,
        "market/index-tickers": index,
    }
    clock = {"/api/v5/public/time": lambda query: {"code": "0", "msg": "", "data": [{"ts": str(world.now)}]}}
    return {f"/api/v5/{path}": of(answer) for path, answer in found.items()} | clock


def taken(channel: str = "liquidation-orders") -> str:
    wish = {"channel": channel} | ({"instType": "SWAP"} if channel == "liquidation-orders" else {"instId": SWAP})
    return json.dumps({"event": "subscribe", "arg": wish, "connId": "a4d3ae55"})


def refused() -> str:
    words = 'Invalid request: {"op": "subscribe"}'
    return json.dumps({"event": "error", "code": "60012", "msg": words, "connId": "a4d3ae55"})


def forced(at: int, side: str = "sell", size: str = "50", price: str = "60000.5", **changes: str) -> str:
    """In contracts. In hedge mode the position is named, else `net`."""
    position = {"sell": "long", "buy": "short"}[side]
    detail = {"bkLoss": "0", "bkPx": price, "ccy": "", "posSide": position, "side": side, "sz": size, "ts": str(at)}
    named = {"instFamily": "BTC-USDT", "instId": SWAP, "instType": "SWAP", "uly": "BTC-USDT"}
    data = [{"details": [detail | changes], **named}]
    return json.dumps({"arg": {"channel": "liquidation-orders", "instType": "SWAP"}, "data": data})


def mark(at: int) -> str:
    data = [{"instType": "SWAP", "instId": SWAP, "markPx": "60003.5", "ts": str(at)}]
    return json.dumps({"arg": {"channel": "mark-price", "instId": SWAP}, "data": data})
