"""Bybit's v5 REST interface and its public stream.

Built from https://bybit-exchange.github.io/docs/v5/market (kline, history-fund-rate, instrument, tickers,
open-interest, long-short-ratio, orderbook), …/v5/error (10001, 10006), …/v5/websocket/public/all-liquidation,
…/public/ticker and …/v5/ws/connect.
"""

from __future__ import annotations

import json
from typing import Any

from tests.wire.vendors.serving import Query, Route, said
from tests.wire.vendors.world import SYMBOL, World


def reply(result: Any, now: int, code: int = 0, words: str = "OK") -> Any:
    return {"retCode": code, "retMsg": words, "result": result, "retExtInfo": {}, "time": now}


NO_SYMBOL = said(reply({}, 1_760_000_000_000, 10001, "params error: symbol invalid"))
LIMITED = said(reply({}, 1_760_000_000_000, 10006, "Too many visits!"))


def routes(world: World, most: int = 1_000, category: str = "linear") -> dict[str, Route]:
    def of_symbol(answer: Route) -> Route:
        def answered(query: Query) -> Any:
            assert query["category"] == category
            return reply(answer(query), world.now) if query.get("symbol") == SYMBOL else NO_SYMBOL

        return answered

    def cut(rows: list[Any], query: Query, start: str = "startTime", end: str = "endTime") -> list[Any]:
        """Newest first, and the newest of a long time."""
        low, high = int(query[start]), int(query[end])
        return [row for row in rows if low <= row.at <= high][::-1][: min(most, int(query["limit"]))]

    def listed(rows: list[Any]) -> Any:
        return {"symbol": SYMBOL, "category": category, "list": rows, "nextPageCursor": ""}

    def kline(query: Query) -> Any:
        rows = cut(world.candles, query, "start", "end")
        return listed([[str(bar.at), *(f"{n:.4f}" for n in bar[1:6]), "730000.5"] for bar in rows])

    def rate_history(query: Query) -> Any:
        rows = cut(world.funding, query)
        return listed(
            [{"symbol": SYMBOL, "fundingRate": f"{row.rate:.8f}", "fundingRateTimestamp": str(row.at)} for row in rows]
        )

    def instrument(query: Query) -> Any:
        terms = {"contractType": "LinearPerpetual", "status": "Trading", "baseCoin": "BTC"}
        return listed([{"symbol": SYMBOL, **terms, "fundingInterval": int(world.hours * 60)}])

    def tickers(query: Query) -> Any:
        ticker = {
            "symbol": SYMBOL,
            "lastPrice": "60003.50",
            "indexPrice": str(world.basis.spot),
            "markPrice": str(world.basis.mark),
            "openInterest": "81000.5",
            "fundingRate": f"{world.funding_next.rate:.8f}",
            "nextFundingTime": str(world.now + 1_800_000),
        }
        return listed([ticker])

    def interest(query: Query) -> Any:
        rows = cut(world.open_interest, query)
        return listed([{"openInterest": f"{row.value:.8f}", "timestamp": str(row.at)} for row in rows])

    def ratios(query: Query) -> Any:
        rows = [(row.at, row.value / (1 + row.value)) for row in cut(world.long_short, query)]
        return listed(
            [
                {"symbol": SYMBOL, "buyRatio": f"{share:.12f}", "sellRatio": f"{1 - share:.12f}", "timestamp": str(at)}
                for at, share in rows
            ]
        )

    def book(query: Query) -> Any:
        count = int(query["limit"])
        return {
            "s": SYMBOL,
            "b": [[str(price), str(size)] for price, size in world.book.bids[:count]],
            "a": [[str(price), str(size)] for price, size in world.book.asks[:count]],
            "ts": world.book.at,
            "u": 18_521_288,
            "seq": 7_961_638_724,
            "cts": world.book.at - 2,
        }

    found = {
        "kline": kline,
        "funding/history": rate_history,
        "instruments-info": instrument,
        "tickers": tickers,
        "open-interest": interest,
        "account-ratio": ratios,
        "orderbook": book,
    }
    return {f"/v5/market/{path}": of_symbol(answer) for path, answer in found.items()}


def taken(success: bool = True, op: str = "subscribe") -> str:
    words = "pong" if op == "ping" else "" if success else "error:handler not found,topic:allLiquidation.NOPE"
    return json.dumps({"success": success, "ret_msg": words, "conn_id": "ab-12", "req_id": "", "op": op})


def forced(at: int, side: str = "Buy", size: str = "0.5", price: str = "60000.5") -> str:
    data = [{"T": at, "s": SYMBOL, "S": side, "v": size, "p": price}]
    return json.dumps({"topic": f"allLiquidation.{SYMBOL}", "type": "snapshot", "ts": at + 4, "data": data})


def ticker(at: int) -> str:
    """What of it changed; it comes ten times a second."""
    data = {"symbol": SYMBOL, "lastPrice": "60003.50", "turnover24h": "15324.1"}
    head = {"topic": f"tickers.{SYMBOL}", "type": "delta", "ts": at, "cs": 24_987_956_059}
    return json.dumps({**head, "data": data})
