"""Sleeves, strategies and the table of trades in a browser, on an account with two sleeves and a shadow."""

from __future__ import annotations

import asyncio
import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.web.test_pages import WIDE_TABLES, find_violations
from tests.wire.browser import SLOWLY, OpenPage, WebServer, run_server, wait_until_drawn
from tests.wire.commands import run_zuno
from tests.wire.sleeve_home import write_sleeve_home

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    home = tmp_path_factory.mktemp("sleeves")
    asyncio.run(write_sleeve_home(home))
    (home / "zuno.toml").write_text('[trading]\nrecording = "own"\n')
    wishes = home / "wishes.csv"
    wishes.write_text("time,market,weight\n2025-12-01,BTCUSDT,0.3\n")
    assert run_zuno(home, "strategy", "add", "mine", "--csv", str(wishes)).code == 0
    with run_server(home) as running:
        yield running


def look(page: Page, server: WebServer, path: str) -> Any:
    return page.request.get(f"{server.url}api/v1/trading/{path}", headers=server.bearer).json()


def test_sleeves_stand_with_their_record_and_strategies_with_their_targets(
    server: WebServer, open_page: OpenPage
) -> None:
    page = open_page(server, "#/trading")
    wait_until_drawn(page)
    curves, account = look(page, server, "curves"), look(page, server, "account")
    lines = {line["name"]: line for line in curves["lines"]}
    assert list(lines) == ["desk", "core", "hold", "debate", "trend"]
    assert {len(line["usd"]) for line in lines.values()} == {len(curves["at"])}
    assert lines["desk"]["usd"][-1] == pytest.approx(account["equityUsd"])
    equity = look(page, server, "equity")
    assert [line["returnPct"] for line in equity["lines"]] == [line["returnPct"] for line in curves["lines"][:3]]
    shown = page.locator("#sleeves")
    for sleeve in account["sleeves"]:
        row = shown.get_by_role("row").filter(has_text=f"{sleeve['name']}")
        expect(row.first).to_contain_text(f"{sleeve['equityUsd']:,.2f}")
        expect(row.first).to_contain_text(f"{lines[sleeve['name']]['returnPct']:+,.2f} %".replace("-", "−"))
    for sleeve in look(page, server, "targets")["sleeves"]:
        expect(shown).to_contain_text(sleeve["rule"])
        for target in sleeve["targets"]:
            expect(shown).to_contain_text(target["why"])
    (shadow,) = look(page, server, "shadows")["shadows"]
    assert shadow["asked"] is None, "a look asks nobody"
    expect(shown).to_contain_text("mine")
    expect(shown.locator(".legend li")).to_have_text(list(lines))


def test_trades_are_chosen_by_state_and_sleeve_sorted_filtered_and_saved(
    server: WebServer, open_page: OpenPage, tmp_path: Path
) -> None:
    page = open_page(server, "#/trading")
    wait_until_drawn(page)
    held, closed = look(page, server, "positions")["positions"], look(page, server, "trades")["items"]
    book = page.get_by_role("tabpanel")
    rows = book.locator("tbody tr:visible")
    expect(rows).to_have_count(len(held) + len(closed), timeout=SLOWLY)
    book.get_by_role("button", name="open", exact=True).click()
    expect(rows).to_have_count(len(held))
    book.get_by_role("button", name="closed", exact=True).click()
    book.get_by_role("button", name="trend", exact=True).click()
    trend = [trade for trade in closed if trade["sleeve"] == "trend"]
    assert 0 < len(trend) < len(closed)
    expect(rows).to_have_count(len(trend))
    book.get_by_role("button", name="Net PnL").click()
    best = max(trade["netPnl"] for trade in trend)
    expect(rows.first).to_contain_text(f"{abs(best):,.2f}")
    with page.expect_download() as saved:
        book.get_by_role("button", name="CSV").click()
    file = tmp_path / "trades.csv"
    saved.value.save_as(file)
    lines = list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))
    assert {line["id"]: float(line["netPnl"]) for line in lines} == {trade["id"]: trade["netPnl"] for trade in trend}
    book.get_by_role("searchbox").fill("zzz")
    expect(rows).to_have_count(0)
    book.get_by_role("searchbox").fill("")
    rows.first.get_by_role("button").click()
    expect(page.locator("h2", has_text="closed by")).to_be_visible(timeout=SLOWLY)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_on_a_phone_no_column_is_clipped(server: WebServer, open_page: OpenPage, theme: str) -> None:
    page = open_page(server, "#/trading", width=390, theme=theme)
    wait_until_drawn(page)
    page.get_by_role("button", name="Levels …").first.click()
    assert page.evaluate(WIDE_TABLES) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert find_violations(page) == []
