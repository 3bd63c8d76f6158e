"""What is on record, in a browser: reports compared, entries of the journal read, logins ended."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.web.test_pages import WIDE_TABLES, find_violations
from tests.wire.browser import SLOWLY, OpenPage, WebServer, run_server, type_word, wait_until_drawn
from tests.wire.hostile_home import FLAG, IMAGE
from zuno.adapters.store.report_files import FolderOfReports
from zuno.journal.port import Author
from zuno.lab.reports import LabReport, LabReports
from zuno.wiring import open_zuno

pytestmark = pytest.mark.slow
IDS = ("trade-0123456789ab", "trade-ba9876543210")


def write_report(home: Path, place: int, **body: Any) -> None:
    report = LabReport(
        id=IDS[place], kind="trade", title=f"Report {place}", command="zuno lab trade", partial=False, body=body
    )
    LabReports(FolderOfReports(home / "lab")).save(report, "<!doctype html>")


async def write_entries(home: Path) -> None:
    zuno = open_zuno(str(home))
    journal = zuno.journal()
    await journal.append(kind="note", author=Author("test"), payload={"said": IMAGE}, request_id="req_mine")
    for number in range(20):
        await journal.append(kind="count", author=Author("test"), payload={"number": number})
    await zuno.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, invented_market: Path) -> Iterator[WebServer]:
    home = tmp_path_factory.mktemp("records")
    (home / "market").symlink_to(invented_market)
    asyncio.run(write_entries(home))
    arms = [
        {"arm": "debate", "netPnlUsd": 10.0, "ci95": [-5.0, 25.0]},
        {"arm": IMAGE, "netPnlUsd": 1.0, "ci95": [0, 2]},
    ]
    write_report(home, 0, days=30, arms=arms, equity=[1.0, 2.0, 3.0])
    arms = [
        {"arm": IMAGE, "netPnlUsd": 9.0, "ci95": [8, 10]},
        {"arm": "debate", "netPnlUsd": 4.0, "ci95": [-9.0, 17.0]},
    ]
    write_report(home, 1, days=30, arms=arms, equity=[1.0, 2.0, 3.0], trials=7)
    with run_server(home) as running:
        yield running


def test_two_reports_are_compared_by_the_names_of_their_arms(server: WebServer, open_page: OpenPage) -> None:
    page = open_page(server, "#/lab")
    wait_until_drawn(page)
    compare = page.get_by_role("button", name="Compare two")
    expect(compare).to_be_disabled()
    for place in (0, 1):
        page.get_by_role("checkbox", name=f"Report {place}").check()
    compare.click()
    wait_until_drawn(page)
    table = page.get_by_role("group", name="Intervals of both")
    debate, other = (table.locator("tbody tr", has_text=text) for text in ("debate", IMAGE.lower()))
    expect(debate).to_contain_text("overlap")
    expect(debate).to_contain_text("−6.00")
    expect(other).to_contain_text("apart")
    expect(other).to_contain_text("+8.00")
    differ = page.get_by_role("group", name="Figures that differ").locator("tbody tr")
    expect(differ).to_have_count(2)
    expect(page.locator("main")).to_contain_text("0 in the first, 1 in the second")
    assert page.evaluate(f"window.{FLAG}") is None
    assert find_violations(page) == []
    page.go_back()
    expect(page.get_by_role("checkbox")).to_have_count(2, timeout=SLOWLY)


def test_an_entry_is_found_and_shown_as_it_was_written(server: WebServer, open_page: OpenPage) -> None:
    page = open_page(server, "#/trust", width=390)
    wait_until_drawn(page)
    page.get_by_role("searchbox", name="Kind of entry").fill("note")
    page.keyboard.press("Enter")
    rows = page.get_by_role("group", name="Entries of the journal").locator("tbody tr")
    expect(rows).to_have_count(1, timeout=SLOWLY)
    rows.get_by_role("button").first.click()
    answer = page.request.get(f"{server.url}api/v1/trust/journal?kind=note", headers=server.bearer).json()
    expect(page.locator("main")).to_contain_text(answer["items"][0]["hash"], timeout=SLOWLY)
    expect(page.locator("pre.entry")).to_contain_text(IMAGE)
    assert page.evaluate(f"window.{FLAG}") is None
    assert page.evaluate(WIDE_TABLES) == []
    assert find_violations(page) == []
    page.get_by_role("searchbox", name="Kind of entry").fill("<img src=x>")
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_contain_text("No entry is of that kind", timeout=SLOWLY)


def test_another_browser_is_logged_out_and_then_this_one(server: WebServer, open_page: OpenPage) -> None:
    other, page = open_page(server, "#/trust", quiet=False), open_page(server, "#/trust", quiet=False)
    wait_until_drawn(other)
    wait_until_drawn(page)
    rows = page.get_by_role("group", name="Browsers that are logged in").locator("tbody tr")
    before = rows.count()
    assert before >= 2
    expect(rows.filter(has_text="this browser").get_by_role("button")).to_have_count(0)
    rows.get_by_role("button", name="End", exact=True).last.click()
    expect(rows).to_have_count(before - 1, timeout=SLOWLY)
    page.get_by_role("button", name="End all").click()
    type_word(page, "end")
    expect(page.get_by_role("heading", name="Not signed in")).to_be_visible(timeout=SLOWLY)
    other.get_by_role("link", name="Home", exact=True).first.click()
    expect(other.get_by_role("heading", name="Not signed in")).to_be_visible(timeout=SLOWLY)
