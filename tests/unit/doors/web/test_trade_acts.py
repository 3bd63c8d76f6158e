"""What the page does with trades, orders, levels, the mandate and the desk on paper, with the words of the terminal."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.unit.doors.web.test_interface import API, problem
from tests.wire.account_home import write_account_home
from tests.wire.page_app import BEARER, HOST, open_page_app

pytestmark = pytest.mark.slow


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """A script at a home with an open long of BTC, bought at 59,500, stop 58,900, target 61,500."""
    asyncio.run(write_account_home(tmp_path))
    monkeypatch.setenv("ZUNO_RECORDING", "own")
    with open_page_app(tmp_path) as page, TestClient(page.app, base_url=f"http://{HOST}", headers=BEARER) as opened:
        yield opened


def find_trade(client: TestClient) -> Any:
    (held,) = client.get(f"{API}/trading/positions").json()["positions"]
    return held


def test_levels_are_tightened_at_once_and_loosened_by_their_word(client: TestClient) -> None:
    held = find_trade(client)
    named = {"position": held["id"]}
    tighter = client.post(f"{API}/trading/levels", json=named | {"stop": "59200"})
    assert tighter.status_code == 200, tighter.text
    assert find_trade(client)["stop"] == 59_200
    for words in ({}, {"word": "set"}, {"word": "yes"}):
        asked = client.post(f"{API}/trading/levels", json=named | {"stop": "58000"} | words)
        assert problem(asked) == (409, "confirmation")
        assert asked.json()["word"] == "loosen"
        assert "59200 to 58000" in asked.json()["detail"]
        assert find_trade(client)["stop"] == 59_200
    loosened = client.post(f"{API}/trading/levels", json=named | {"stop": "58000", "word": "loosen"})
    assert loosened.status_code == 200
    moved = find_trade(client)
    assert (moved["stop"], moved["target"]) == (58_000, held["target"])


NONSENSE = ("abc", "-59000", "NaN", "Infinity", "0", "", "1e5", "59.000.1", "9" * 60, "<img>")


def test_pasted_nonsense_moves_no_level(client: TestClient) -> None:
    held = find_trade(client)
    named = {"position": held["id"]}
    for level in ("stop", "target"):
        for typed in NONSENSE:
            answer = client.post(f"{API}/trading/levels", json=named | {level: typed, "word": "loosen"})
            assert problem(answer) == (400, "usage"), typed
    assert problem(client.post(f"{API}/trading/levels", json=named | {"stop": 59_000})) == (422, "usage")
    assert problem(client.post(f"{API}/trading/levels", json=named)) == (400, "usage")
    assert find_trade(client) == held


def test_a_level_on_the_wrong_side_of_the_market_is_refused(client: TestClient) -> None:
    held = find_trade(client)
    for level in ({"stop": "60500"}, {"target": "59000"}):
        answer = client.post(f"{API}/trading/levels", json={"position": held["id"], "word": "loosen", **level})
        assert problem(answer) == (409, "refused")
    assert find_trade(client) == held


def test_a_trade_is_closed_once_however_often_it_is_asked(client: TestClient) -> None:
    """The record of this market ends here, so the order to close waits for a price that never comes."""
    held = find_trade(client)
    for _ in range(3):
        told = client.post(f"{API}/trading/close", json={"which": held["id"]})
        assert told.status_code == 200
        assert any(said.startswith(held["id"]) for said in told.json()["said"])
    orders = client.get(f"{API}/trading/orders", params={"everything": True}).json()["items"]
    assert [order["purpose"] for order in orders].count("exit") == 1
    assert problem(client.post(f"{API}/trading/close", json={"which": "trd_none"}))[0] in (404, 409)


def test_an_order_that_waits_is_cancelled_and_a_stop_is_not(client: TestClient) -> None:
    entry = {"held": find_trade(client)["stopOrder"], "none": "ord_none"}
    assert problem(client.post(f"{API}/trading/cancel", json={"order": entry["held"]})) == (409, "refused")
    assert problem(client.post(f"{API}/trading/cancel", json={"order": "strange"})) == (404, "unknown")
    assert find_trade(client)["stopOrder"] == entry["held"]


def test_with_money_a_close_wants_its_word_and_a_mandate_is_revoked_where_one_stands(client: TestClient) -> None:
    asked = client.post(f"{API}/trading/close", json={"which": "all", "account": "live"})
    assert problem(asked) == (409, "confirmation")
    assert (asked.json()["word"], asked.json()["detail"][:5]) == ("close", "LIVE:")
    for account in ("live", "paper"):
        assert problem(client.post(f"{API}/trading/revoke", json={"account": account})) == (409, "refused")


def test_a_desk_is_started_on_paper_alone(client: TestClient) -> None:
    for account in ("live", "demo"):
        refused = client.post(f"{API}/trading/start", json={"account": account})
        assert problem(refused) == (409, "refused")
        assert "zuno trade start" in refused.json()["detail"]
    assert problem(client.post(f"{API}/trading/start", json={"symbols": ["DOGEUSDT"]}))[0] == 400
    assert problem(client.post(f"{API}/trading/start", json={"live": True})) == (422, "usage")
    jobs = client.get(f"{API}/jobs").json()["jobs"]
    assert [job["state"] for job in jobs] == ["failed"] * 3
    assert client.post(f"{API}/trading/stop", json={}).status_code == 200


def test_a_desk_on_paper_runs_once_until_the_server_ends(invented_market: Path, tmp_path: Path) -> None:
    (tmp_path / "market").symlink_to(invented_market)
    named = {"account": "fresh", "symbols": ["BTCUSDT"]}
    with open_page_app(tmp_path) as page, TestClient(page.app, base_url=f"http://{HOST}", headers=BEARER) as client:
        begun = client.post(f"{API}/trading/start", json=named)
        assert (begun.status_code, begun.json()["state"]) == (202, "running")
        client.post(f"{API}/trading/start", json=named)  # a second tab; a busy machine says only later that it may not
        until = time.monotonic() + 60
        while (second := client.get(f"{API}/jobs").json()["jobs"][0])["state"] != "failed":
            assert time.monotonic() < until
            time.sleep(0.2)
        assert "running already" in second["error"]
        assert client.get(f"{API}/trading/account", params={"account": "fresh"}).json()["running"]
        asyncio.run_coroutine_threadsafe(page.services.end_work(), page.loop).result(60)
        states = {job["id"]: job["state"] for job in client.get(f"{API}/jobs").json()["jobs"]}
        assert states[begun.json()["id"]] == "ended"
        assert client.get(f"{API}/trading/account", params={"account": "fresh"}).json()["running"] is None
