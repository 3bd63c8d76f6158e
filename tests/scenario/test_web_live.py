"""The page's acts at an exchange: the account is live, the exchange a fake one on loopback, the words those of the
terminal."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.scenario.test_live_trading import rule_entry
from tests.wire.exchanges import binance
from tests.wire.exchanges.binance import FakeBinance
from tests.wire.exchanges.serving import serve_exchange
from tests.wire.live_home import remembered
from tests.wire.page_app import BEARER, HOST, PageApp, open_page_app
from tests.wire.vendors.living import Living, venues
from zuno.adapters.clock.system import unix_millis
from zuno.kernel.units import Millis
from zuno.wiring import Application

pytestmark = pytest.mark.slow
API = "/api/v1/trading"


async def grant(zuno: Application) -> None:
    desk = zuno.account("live")
    limits = ("700", "900", "50", "7d", "venue")
    mandate = desk.build_mandate(["BTCUSDT"], ["BINANCE"], *limits, judge_fallback=False)
    await desk.grant_mandate(mandate, lambda word, what: True)


async def send_entries(zuno: Application) -> None:
    gate = await zuno._open_gate("live", lambda: Millis(unix_millis()), entries=True)
    await gate.reconcile()


def act(page: PageApp, home: Path, fake: FakeBinance) -> None:
    page.ask(grant)
    asyncio.run(rule_entry(home))
    page.ask(send_entries)
    page.logins.allow("30m")
    with TestClient(page.app, base_url=f"http://{HOST}", headers=BEARER) as client:

        def post(path: str, **body: Any) -> Any:
            return client.post(f"{API}/{path}", json={"account": "live", **body})

        def look(path: str) -> Any:
            return client.get(f"{API}/{path}", params={"account": "live"}).json()

        (held,) = look("positions")["positions"]
        tighter, looser = "59000", "58000"
        for level, word in ((tighter, "set"), (looser, "loosen")):
            asked = post("levels", position=held["id"], stop=level)
            assert (asked.status_code, asked.json()["word"]) == (409, word)
            moved = post("levels", position=held["id"], stop=level, word=word)
            assert moved.status_code == 200, moved.text
            assert look("positions")["positions"][0]["stop"] == float(level)
            stops = [algo for algo in fake.engine.algos.values() if algo.status == "NEW"]
            assert any(float(algo.trigger) == float(level) for algo in stops), "at the exchange too"

        page.logins.allow(end=True)
        waiting = [order for order in look("orders")["items"] if order["purpose"] == "entry"]
        assert len(waiting) == 2
        for order in waiting:
            assert post("cancel", order=order["id"]).status_code == 200, "it lowers risk, so no leave is needed"
        assert not [order for order in fake.engine.orders.values() if order.status == "NEW"]
        assert post("close", which=held["id"], word="close").status_code == 403
        told = post("revoke")
        assert (told.status_code, told.json()["mandate"]) == (200, None)

        page.logins.allow("30m")
        asked = post("close", which=held["id"])
        assert (asked.status_code, asked.json()["word"]) == (409, "close")
        assert held["id"] in asked.json()["detail"]
        assert post("close", which=held["id"], word="yes").status_code == 409
        assert look("positions")["positions"]
        assert post("close", which=held["id"], word="close").status_code == 200
        assert look("positions")["positions"] == []
        assert all(not position.amount for position in fake.engine.positions.values())


async def test_a_live_trade_is_moved_cancelled_revoked_and_closed_from_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await remembered(tmp_path, Living())
    fake = FakeBinance()
    async with venues() as here, serve_exchange(fake.server):
        settings = {
            **here.environment,
            "ZUNO_BINANCE_API_KEY": binance.KEY,
            "ZUNO_BINANCE_API_SECRET": binance.SECRET,
            "ZUNO_BINANCE_ORDER_URL": fake.server.url,
            "ZUNO_MARKET": "live",
            "ZUNO_LIVE": "1",
        }
        for name, value in settings.items():
            monkeypatch.setenv(name, value)

        def open_and_act() -> None:
            with open_page_app(tmp_path) as page:
                act(page, tmp_path, fake)

        await asyncio.to_thread(open_and_act)
