"""What Home says first, on a home whose first position went out of range: a sentence, what is urgent, one act."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.wire.commands import run_zuno
from tests.wire.page_app import BEARER, HOST, open_page_app
from zuno.doors.web.home_view import HomeView
from zuno.doors.web.services import DOCUMENT_TYPE


@pytest.fixture(scope="module")
def home(invented_market: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    (home / "market").symlink_to(invented_market)
    assert run_zuno(home, "sim", "move", "--percent", "-8").code == 0
    return home


@pytest.fixture
def client(home: Path) -> Iterator[TestClient]:
    with open_page_app(home) as opened, TestClient(opened.app, base_url=f"http://{HOST}", headers=BEARER) as client:
        yield client


def read_home(client: TestClient) -> tuple[dict[str, Any], dict[str, Any]]:
    answer = client.get("/api/v1/home", headers={"Accept": DOCUMENT_TYPE}).json()
    return answer["view"], answer["document"]


def test_home_answers_before_it_counts(client: TestClient, home: Path) -> None:
    view, document = read_home(client)
    totals = view["portfolio"]["totals"]
    head = document["headline"]["text"]
    assert head.startswith("1 of 2 liquidity positions in range, worth ")
    assert ("down " if totals["result"].startswith("-") else "up ") in head
    assert "than holding" in head
    assert "Trading: $" in head
    assert document["headline"]["tone"] == "warn"
    assert document["urgent"][0]["text"].startswith("Position 1 in WETH/USDC")
    assert "earning nothing" in document["urgent"][0]["text"]
    (act,) = document["acts"]
    assert act["command"] == "lp recommend rebalance 1 --chain sim"
    clocks = document["context"]["text"]
    assert clocks.count("as of") == 2, "the clocks of two desks in one sentence"
    labels = [[fact["label"] for fact in section["facts"]] for section in document["sections"]]
    assert labels[0][:4] == ["result", "ROI", "against holding", "fees, 7 days"]
    assert labels[1][0] == "equity"

    advised = run_zuno(home, "lp", "recommend", "rebalance", "1", "--json").document
    assert advised["recommended"]["kind"] != "hold"
    _, document = read_home(client)
    assert document["acts"][0]["command"] == f"why {advised['planId']}", "what waits comes first"
    assert any(advised["planId"] in line["text"] for line in document["urgent"])


def test_what_only_a_running_desk_stops_is_said_before_all_else(client: TestClient) -> None:
    view, _ = read_home(client)
    place = {"sleeve": "debate", "exchange": "BINANCE", "symbol": "BTCUSDT", "currency": "USD"}
    uncovered = [{**place, "quantity": 0.005, "value": 100.0, "stop": 19_000.0}]
    trading = {name: told for name, told in view["trading"].items() if name != "candlesOnly"}
    parts = {"trading": {**trading, "uncovered": uncovered}, "performance": None, "positions": None}
    told = HomeView.model_validate({**view, **parts})
    assert "0.005 BTC ($100.00) of debate" in told.to_document().urgent[0].text


def test_what_was_in_the_positions_is_drawn_to_what_is_in_them_now(client: TestClient) -> None:
    portfolio = read_home(client)[0]["portfolio"]
    history, totals = portfolio["history"], portfolio["totals"]
    assert [later["at"] - earlier["at"] for earlier, later in pairwise(history)] == [10_800] * 56
    principal = float(totals["worth"]) - float(totals["uncollected"])
    assert history[-1]["worth"] == pytest.approx(principal, rel=1e-6)
    assert history[0]["worth"] != history[-1]["worth"]


def test_a_part_that_cannot_be_read_is_said_and_stops_no_other(home: Path) -> None:
    broken = home / "broken"
    broken.mkdir(exist_ok=True)
    (broken / "market").symlink_to((home / "market").resolve())
    (broken / "sim.json").write_text("{}", encoding="utf-8")
    with open_page_app(broken) as opened, TestClient(opened.app, base_url=f"http://{HOST}", headers=BEARER) as client:
        view, document = read_home(client)
    assert view["portfolio"] is None
    assert document["headline"]["text"].startswith("Liquidity could not be read. Trading: $")
    assert any("sim.json" in note["text"] for note in document["notes"])
