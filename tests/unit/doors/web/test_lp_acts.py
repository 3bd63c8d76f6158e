"""What the page does about positions: plans without a debate, one for a request however often it is sent; mandates,
levels, ranges of one's own."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.unit.doors.web.test_interface import API, problem
from tests.wire.page_app import BEARER, HOST, PageApp, open_page_app
from zuno.doors.web.routes.lp_acts import AGAIN_MS

pytestmark = pytest.mark.slow
NONSENSE = ("abc", "-3000", "NaN", "Infinity", "0", "1e3", "3.0.0", "9" * 55, "<img src=x>", "３０００", "3000 USDC")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageApp]:
    with open_page_app(tmp_path_factory.mktemp("acts")) as opened:
        yield opened


@pytest.fixture
def client(page: PageApp) -> Iterator[TestClient]:
    page.clocks.seconds += 3600.0
    page.clocks.millis += AGAIN_MS
    with TestClient(page.app, base_url=f"http://{HOST}", headers=BEARER) as opened:
        yield opened


def count_plans(client: TestClient) -> int:
    return len(client.get(f"{API}/lp/plans", params={"limit": 200}).json()["items"])


def ask_range(client: TestClient, **query: Any) -> Any:
    return client.get(f"{API}/lp/range", params=query)


def test_acts_become_plans_and_nothing_is_signed(client: TestClient) -> None:
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("1/collect", {}, "collect"),
        ("1/compound", {"anyway": True}, "compound"),
        ("1/add", {"amounts": ["0.1 WETH"]}, "add"),
        ("1/remove", {"percent": "40"}, "remove"),
        ("1/remove", {"percent": "100"}, "close"),
        ("2/close", {}, "close"),
        ("all/close", {}, "close"),
        ("all/collect", {}, "collect"),
    ]
    for path, body, action in cases:
        made = client.post(f"{API}/lp/positions/{path}", json=body)
        assert made.status_code == 200, made.text
        assert (made.json()["action"], made.json()["state"]) == (action, "drafted")
        assert client.post(f"{API}/lp/plans/{made.json()['planId']}/simulate", json={}).json()["ok"] is True
    revoked = client.post(f"{API}/lp/allowances/revoke", json={})
    assert revoked.json()["action"] == "revoke"


def test_a_request_that_is_repeated_makes_one_plan(page: PageApp, client: TestClient) -> None:
    before, collect = count_plans(client), f"{API}/lp/positions/1/collect"
    with ThreadPoolExecutor(4) as pool:  # a double click, and two tabs
        answers = list(pool.map(lambda _: client.post(collect, json={}), range(4)))
    ids = {answer.json()["planId"] for answer in answers}
    assert len(ids) == 1
    assert count_plans(client) == before + 1
    (first,) = ids
    page.clocks.millis += AGAIN_MS
    later = client.post(collect, json={}).json()["planId"]
    assert later != first, "asked for anew, minutes later"
    assert client.post(f"{API}/lp/plans/{later}/cancel", json={}).json()["state"] == "cancelled"
    assert client.post(collect, json={}).json()["planId"] not in {first, later}, "what was called off is not offered"
    assert client.post(f"{API}/lp/positions/2/collect", json={}).json()["planId"] not in {first, later}
    other = client.post(f"{API}/lp/positions/1/remove", json={"percent": "10"}).json()["planId"]
    assert client.post(f"{API}/lp/positions/1/remove", json={"percent": "11"}).json()["planId"] != other


def test_nonsense_makes_no_plan_and_may_be_corrected(client: TestClient) -> None:
    before = count_plans(client)
    for typed in NONSENSE[:9]:
        assert problem(client.post(f"{API}/lp/positions/1/remove", json={"percent": typed}))[0] == 400, typed
        amounts = [f"{typed} WETH"] if typed not in ("1e3",) else [typed]
        answer = client.post(f"{API}/lp/positions/1/add", json={"amounts": amounts})
        assert answer.status_code in (400, 409), typed
    for path in ("1/add", "1/remove", "x/close", "all/compound", "1/burn"):
        assert client.post(f"{API}/lp/positions/{path}", json={}).status_code in (400, 422), path
    assert client.post(f"{API}/lp/positions/1/add", json={"amounts": ["1 WETH", "2 WETH"]}).status_code == 400
    assert count_plans(client) == before
    assert client.post(f"{API}/lp/positions/1/remove", json={"percent": "33"}).status_code == 200


def test_mandates_are_paused_and_revoked_and_never_granted(client: TestClient) -> None:
    assert client.get(f"{API}/lp/mandates").json()["mandates"] == []
    assert client.post(f"{API}/lp/mandates/pause", json={}).json()["paused"] is True
    assert client.get(f"{API}/lp/mandates").json()["paused"] is True
    assert client.post(f"{API}/lp/mandates/resume", json={}).json()["paused"] is False
    assert problem(client.post(f"{API}/lp/mandates/revoke", json={"chain": "sim"})) == (409, "refused")
    assert client.post(f"{API}/lp/mandates/grant", json={}).status_code in (404, 405)


def test_a_level_is_set_once_listed_and_removed(client: TestClient) -> None:
    level = {"position": "1", "condition": "price_above", "level": "4000"}
    added = client.post(f"{API}/lp/alerts", json=level).json()["rule"]
    assert client.post(f"{API}/lp/alerts", json=level).json()["rule"]["id"] == added["id"]
    (rule,) = client.get(f"{API}/lp/alerts").json()["rules"]
    assert (rule["id"], rule["level"], rule["condition"]) == (added["id"], "4000", "price_above")
    for typed in NONSENSE[:9]:
        assert problem(client.post(f"{API}/lp/alerts", json={**level, "level": typed})) == (400, "usage"), typed
    assert problem(client.post(f"{API}/lp/alerts", json={**level, "condition": "out_of_range"})) == (422, "usage")
    assert client.post(f"{API}/lp/alerts/{added['id']}/remove", json={}).status_code == 200
    assert client.get(f"{API}/lp/alerts").json()["rules"] == []
    assert problem(client.post(f"{API}/lp/alerts/{added['id']}/remove", json={})) == (404, "unknown")
    assert problem(client.post(f"{API}/lp/alerts/alert_000000000000/snooze", json={"span": "6h"})) == (404, "unknown")


def test_a_range_of_ones_own_is_judged_by_the_rules_before_anybody_argues(client: TestClient) -> None:
    shown = ask_range(client, position="1", lower="2900", upper="3500").json()
    spacing = shown["candidate"]["pool"]["tickSpacing"]
    assert shown["candidate"]["tickLower"] % spacing == shown["candidate"]["tickUpper"] % spacing == 0
    assert Decimal(shown["candidate"]["priceLower"]) <= 2900, "widened, never narrowed"
    assert Decimal(shown["candidate"]["priceUpper"]) >= 3500
    price = Decimal(shown["price"])
    assert abs((Decimal(shown["candidate"]["priceLower"]) / price - 1) * 100 - Decimal(shown["bufferLower"])) < Decimal(
        "0.001"
    )
    assert shown["cover"]["low"] <= shown["cover"]["ratio"] <= shown["cover"]["high"]
    assert shown["candidate"]["own"] is True
    rows = {row["percent"]: row for row in shown["table"]}
    assert Decimal(rows["-50"]["worth"]) < Decimal(rows["-10"]["worth"]) < Decimal(rows["0"]["worth"])
    for row in rows.values():
        assert Decimal(row["divergenceLoss"]) > Decimal("-0.01"), "a range is worth less than its tokens"
    ticks = {name: shown["candidate"][name] for name in ("tickLower", "tickUpper")}
    same = ask_range(client, position="1", lower=ticks["tickLower"], upper=ticks["tickUpper"], ticks=True).json()
    assert same["candidate"] == shown["candidate"]
    held = client.get(f"{API}/lp/positions/1").json()
    kept = ask_range(client, position="1", lower=held["tickLower"], upper=held["tickUpper"], ticks=True).json()
    assert kept["candidate"]["kind"] == "hold"
    assert Decimal(kept["candidate"]["carry"]["cost"]) == 0


def test_a_preview_says_what_the_debate_then_says(client: TestClient, page: PageApp) -> None:
    shown = ask_range(client, position="1", lower="2700", upper="3700").json()
    asked = {"position": "1", "range": ["2700", "3700"]}
    job = client.post(f"{API}/lp/recommend", json=asked).json()["id"]
    while client.get(f"{API}/jobs/{job}").json()["state"] == "running":
        pass
    plan = client.get(f"{API}/lp/debates/{job}").json()["plan"]
    (own,) = [candidate for candidate in plan["candidates"] if candidate["own"]]
    for name in ("kind", "tickLower", "tickUpper", "stress", "carry"):
        assert own[name] == shown["candidate"][name], name


def test_an_opening_in_a_pool_is_shown_for_this_pool_alone(client: TestClient) -> None:
    for pool in client.get(f"{API}/lp/pools").json()["pools"]:
        shown = ask_range(client, pool=pool["id"], wish="0.5 ETH", lower="2800", upper="3400")
        assert shown.status_code == 200, shown.text
        assert shown.json()["candidate"]["pool"]["id"] == pool["id"]
        assert shown.json()["positionId"] is None
        assert shown.json()["candidate"]["kind"] == "open"


def test_a_range_that_is_nonsense_is_refused_in_words(client: TestClient) -> None:
    for typed in NONSENSE:
        assert ask_range(client, position="1", lower=typed, upper="3500").status_code in (400, 409), typed
        assert ask_range(client, position="1", lower="2900", upper=typed).status_code in (400, 409, 422), typed
    turned = ask_range(client, position="1", lower="0.00028", upper="0.00035")
    assert problem(turned) == (409, "refused")
    assert "other way round" in turned.json()["detail"]
    assert problem(ask_range(client, position="1", lower="3500", upper="2900")) == (400, "usage")
    for query in ({}, {"position": "1", "wish": "1 ETH"}, {"pool": "0x1"}, {"wish": "1 ETH"}):
        assert ask_range(client, lower="2900", upper="3500", **query).status_code == 422
    for body in (
        {"range": ["1"]},
        {"range": ["a", "b"]},
        {"range": ["2", "1"]},
        {"range": [1, 2]},
        {"range": [None, "1"]},
    ):
        assert client.post(f"{API}/lp/recommend", json={"position": "1", **body}).status_code in (400, 422)


def test_pools_are_ranked_with_the_interval_of_their_fee_cover(client: TestClient) -> None:
    ranking = client.get(f"{API}/lp/pools/rank", params={"wanted": "ETH"}).json()
    lows = [pool["ci80"][0] for pool in ranking["pools"] if pool["ci80"]]
    assert lows == sorted(lows, reverse=True)
    assert len(lows) == ranking["ranked"] > 0
    assert problem(client.get(f"{API}/lp/pools/rank", params={"amount": "a lot"})) == (400, "usage")
