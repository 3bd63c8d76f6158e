"""Deribit's public REST interface.

Built from https://docs.deribit.com/api-reference/market-data (get_instruments, get_book_summary_by_currency,
get_volatility_index_data), …/supporting/public-get_time and …/articles/errors (−32602, 10028).
"""

from __future__ import annotations

from typing import Any

from tests.wire.vendors.serving import Query, Route, said
from tests.wire.vendors.world import World
from zuno.trading.model.market import HOUR_MS

NO_CURRENCY = said(
    {
        "jsonrpc": "2.0",
        "error": {
            "message": "Invalid params",
            "data": {"reason": "invalid currency", "param": "currency"},
            "code": -32602,
        },
        "testnet": False,
        "usIn": 1,
        "usOut": 2,
        "usDiff": 1,
    },
    400,
)
LIMITED = said({"jsonrpc": "2.0", "error": {"message": "too_many_requests", "code": 10028}}, 400)


def routes(world: World, most: int = 1_000) -> dict[str, Route]:
    def reply(result: Any) -> Any:
        used = world.now * 1_000
        return {"jsonrpc": "2.0", "result": result, "usIn": used - 300, "usOut": used, "usDiff": 300, "testnet": False}

    def of_currency(answer: Route) -> Route:
        return lambda query: reply(answer(query)) if query.get("currency") == "BTC" else NO_CURRENCY

    def instruments(query: Query) -> Any:
        assert query["kind"] == "option"
        return [
            {
                "instrument_name": quote.name,
                "kind": "option",
                "option_type": "call" if quote.call else "put",
                "strike": quote.strike,
                "expiration_timestamp": quote.expiry,
                "creation_timestamp": world.now - 9_000_000,
                "is_active": True,
                "base_currency": "BTC",
                "settlement_period": "week",
            }
            for quote in world.chain.quotes
            if quote.expiry is not None
        ]

    def summary(query: Query) -> Any:
        return [
            {
                "instrument_name": quote.name,
                "base_currency": "BTC",
                "quote_currency": "BTC",
                "mark_price": 0.0312,
                "mark_iv": quote.mark_iv,
                "underlying_price": quote.underlying,
                "underlying_index": "SYN.BTC",
                "open_interest": quote.open_interest,
                "volume": quote.volume,
                "volume_usd": 12_345.5,
                "interest_rate": 0.0,
                "bid_price": None,
                "ask_price": 0.033,
                "creation_timestamp": world.now,
            }
            for quote in world.chain.quotes
        ]

    def index(query: Query) -> Any:
        """Candles by when they opened; ours are dated when they ended. The one that runs is listed too."""
        low, high = int(query["start_timestamp"]), int(query["end_timestamp"])
        assert query["resolution"] == "3600"
        listed = [(row.at - HOUR_MS, row.value) for row in world.dvol]
        listed.append((listed[-1][0] + HOUR_MS, 99.0))
        rows = [[at, value - 0.5, value + 1, value - 1, value] for at, value in listed if low <= at <= high]
        return {"data": rows[-most:], "continuation": None}

    return {
        "/api/v2/public/get_instruments": of_currency(instruments),
        "/api/v2/public/get_book_summary_by_currency": of_currency(summary),
        "/api/v2/public/get_volatility_index_data": of_currency(index),
        "/api/v2/public/get_time": lambda query: reply(world.now),
    }
