"""Lists of the page: sorted, filtered and saved, also where they are drawn anew meanwhile."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.wire.browser import OpenPage, WebServer, run_server, wait_until_drawn

WORTHS = "[...document.querySelectorAll('.table-wrap[aria-label=\"Liquidity positions\"] tbody tr:not([hidden]) th a')]"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, invented_market: Path) -> Iterator[WebServer]:
    home = tmp_path_factory.mktemp("lists")
    (home / "market").symlink_to(invented_market)
    with run_server(home) as running:
        yield running


def list_shown(page: Page) -> list[str]:
    return [text.split("#")[1].split(" ")[0] for text in page.evaluate(f"{WORTHS}.map((link) => link.innerText)")]


def test_positions_are_sorted_filtered_and_saved_with_all_digits(
    server: WebServer, open_page: OpenPage, tmp_path: Path
) -> None:
    page = open_page(server, "#/liquidity")
    wait_until_drawn(page)
    positions = page.request.get(f"{server.url}api/v1/lp/positions", headers=server.bearer).json()["positions"]
    assert len(positions) == 2
    assert list_shown(page) == [position["id"] for position in positions]
    head = page.get_by_role("columnheader", name="Range", exact=True).first
    worth = page.get_by_role("button", name="Worth", exact=True)
    worth.focus()
    page.keyboard.press("Enter")
    column = page.locator("th[aria-sort=descending]")
    expect(column).to_have_text("Worth")
    falling = sorted(positions, key=lambda position: -float(position["valueHuman"]))
    assert list_shown(page) == [position["id"] for position in falling]
    page.keyboard.press("Enter")
    assert list_shown(page) == [position["id"] for position in reversed(falling)]
    page.keyboard.press("Enter")
    assert list_shown(page) == [position["id"] for position in positions], "the list's own order comes back"
    expect(head).to_have_attribute("aria-sort", "none")
    field = page.get_by_label("Filter positions")
    field.fill("no such <b>word</b> \u202e 'x'")
    assert list_shown(page) == []
    field.fill(f"#{positions[1]['id']} ")
    assert list_shown(page) == [positions[1]["id"]]
    expect(page.locator(".list-filter [role=status]").first).to_have_text(f"1 of {len(positions)}")
    page.evaluate("location.hash = '#/lab'")
    page.evaluate("location.hash = '#/liquidity'")
    expect(page.get_by_label("Filter positions")).to_have_value(f"#{positions[1]['id']} ")
    with page.expect_download() as begun:
        page.locator(".listed", has=page.get_by_label("Filter positions")).get_by_role("button", name="CSV").click()
    saved = tmp_path / "saved.csv"
    begun.value.save_as(saved)
    with saved.open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["id"] for line in lines] == [position["id"] for position in positions]
    assert lines[0]["valueHuman"] == positions[0]["valueHuman"]
    assert lines[0]["pool.currency0.symbol"] == positions[0]["pool"]["currency0"]["symbol"]


def test_a_strangers_text_is_no_formula_in_a_saved_list(server: WebServer, open_page: OpenPage) -> None:
    page = open_page(server, "#/lab")
    documents = [{"name": '=HYPERLINK("//x")', "worth": "-12.5", "sub": {"list": ["@a", "+1e3"]}, "none": None}]
    text = page.evaluate("async (documents) => (await import('/list_tools.js')).toCsv(documents)", documents)
    row = next(csv.DictReader(text.splitlines()))
    assert row == {
        "name": '\'=HYPERLINK("//x")',
        "worth": "-12.5",
        "sub.list.0": "'@a",
        "sub.list.1": "+1e3",
        "none": "",
    }, json.dumps(row)


def test_prices_are_turned_over_in_lists_and_charts_and_stay_so(server: WebServer, open_page: OpenPage) -> None:
    page = open_page(server, "#/liquidity")
    wait_until_drawn(page)
    price = float(
        page.request.get(f"{server.url}api/v1/lp/positions", headers=server.bearer).json()["positions"][0]["price"]
    )
    cell = page.locator(".table-wrap[aria-label='Liquidity positions'] tbody tr").first.locator("td").nth(1)
    expect(cell).to_have_text(f"{price:,.2f}")
    page.get_by_role("button", name="Invert prices").click()
    expect(cell).to_have_text(f"{1 / price:.8f}".rstrip("0"))
    page.goto(f"{server.url}#/liquidity/2?chain=sim")
    page.reload()
    wait_until_drawn(page)
    expect(page.get_by_role("button", name="Invert prices")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("img", name="Price of ETH/USDC")).to_have_attribute(
        "aria-label", re.compile("ETH per USDC")
    )
    page.locator("#own-range summary").first.click()
    expect(page.locator("#range-unit")).to_have_text("ETH per USDC")
    page.get_by_role("button", name="Invert prices").click()
    wait_until_drawn(page)
    expect(page.get_by_role("img", name="Price of ETH/USDC")).to_have_attribute(
        "aria-label", re.compile("USDC per ETH")
    )
