"""A desk that asks live venues, on loopback: what they say, who failed and why, and nothing in anybody's place."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.wire.live_home import BARS, ran, remembered
from tests.wire.model_server import http
from tests.wire.vendors.living import Living, Venues, venues
from tests.wire.vendors.serving import said
from zuno.trading.model.market import Timeframe


async def test_a_live_desk_asks_everybody_and_says_who_failed(home: Path) -> None:
    await remembered(home, Living())
    async with venues() as here:
        here.rest["DERIBIT"].mood = said("<html>maintenance</html>", 503)
        here.rest["BYBIT"].mood = http(200, b"<html>Please log in to the portal</html>", "text/html")
        here.rest["YAHOO"].change = lambda path, document: {"chart": None}
        live = await ran(home, here, "trade", "features", "BTC", "--json", ZUNO_MARKET="live")
        assert live.code == 0, live.err
        view = live.document
        absent = {one["what"]: one["why"] for one in view["absent"]}
        assert "Deribit" in absent["options/deribit/BTC"]
        assert "Yahoo" in absent["macro/yahoo/DXY"]
        assert "'retCode'" in absent["basis/bybit/BTCUSDT"]
        notes = {one["series"]: one["notes"] for one in view["sources"]}
        assert "retCode" in str(notes["open_interest/bybit/BTCUSDT"])
        assert "portal" not in live.out
        assert any("from deribit" in note for note in view["notes"])
        assert not any("from binance" in note for note in view["notes"])
        assert view["live"] is True
        assert "zuno data collect" in absent["liquidations/binance/BTCUSDT"]
        fresh = {one["series"] for one in view["sources"] if not one["stale"]}
        assert {str(BARS[Timeframe.M1]), "book/binance/BTCUSDT", "funding/okx/BTCUSDT/next"} <= fresh
        assert "SYNTHETIC" not in live.out


@pytest.mark.soak
async def test_where_nobody_is_reached_that_is_said_and_nothing_invented(home: Path) -> None:
    names = ("BINANCE", "BYBIT", "OKX", "UPBIT", "DERIBIT", "YAHOO", "FEAR_GREED")
    nobody = Venues({f"ZUNO_{name}_URL": "http://127.0.0.1:9" for name in names})
    live, once = await asyncio.gather(
        ran(home, nobody, "trade", "features", "BTC", "--json", ZUNO_MARKET="live"),
        ran(home, nobody, "data", "collect", "--once", "--symbol", "BTC", "--json"),
    )
    assert live.code == 4, live.err
    (line,) = live.err.splitlines()
    assert "binance" in line
    assert "fred" not in line.lower(), "who was not asked has not been silent"
    assert not (home / "market" / "synthetic").exists()
    assert (once.code, once.document["answered"], once.document["series"]) == (4, 0, 31)
    assert set(once.document["unasked"]) == {"fred", "search", "channels"}
