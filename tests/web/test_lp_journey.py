"""The liquidity desk from Home to a closed position, on the devnet: a debate watched, plans approved and applied, with
double clicks, two tabs, reloads, a lost connection and an ended login on the way."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.scenario.conftest import built_home, devnet, devnet_home
from tests.wire.browser import (
    SLOWLY,
    OpenPage,
    WebServer,
    log_in,
    run_server,
    type_word,
    wait_until_connected,
    wait_until_drawn,
)
from tests.wire.commands import Zuno

__all__ = ["built_home", "devnet", "devnet_home"]
PLAN = re.compile(r"#/plans/plan_[0-9a-f]{12}$")
POSITION = "#/liquidity/1?chain=devnet"
KINDS = ("plan_approved", "plan_applying", "plan_over")


@pytest.fixture
def server(devnet: Zuno, devnet_home: Path, invented_market: Path) -> Iterator[WebServer]:
    """The home of the running devnet, whose price has left a position's range."""
    assert devnet("devnet", "move", "--percent", "-12").code == 0
    market = devnet_home / "market"
    market.symlink_to(invented_market)
    with run_server(devnet_home) as running:
        yield running
    market.unlink()


def read(page: Page, server: WebServer, path: str) -> Any:
    return page.request.get(f"{server.url}api/v1{path}", headers=server.bearer).json()


def read_plan_id(page: Page) -> str:
    expect(page).to_have_url(PLAN, timeout=SLOWLY)
    wait_until_drawn(page)
    return page.url.rpartition("/")[2]


def count_entries(server: WebServer, plan: str) -> tuple[int, ...]:
    """How often a plan was approved, applied and ended, by the journal."""
    with sqlite3.connect(server.home / "journal.db") as journal:
        rows = journal.execute("SELECT kind FROM entries WHERE request_id = ?", (plan,)).fetchall()
    kinds = [kind for (kind,) in rows]
    return tuple(kinds.count(kind) for kind in KINDS)


def press(page: Page, name: str) -> None:
    page.locator("#carry-out").get_by_role("button", name=re.compile(f"^{name}")).click(timeout=SLOWLY)


def expect_state(page: Page, state: str) -> None:
    expect(page.locator("#carry-out .badge").first).to_have_text(state, timeout=SLOWLY)


def fill_word(page: Page, word: str) -> None:
    page.get_by_role("dialog").get_by_role("textbox").fill(word, timeout=SLOWLY)


def open_tab(page: Page) -> Page:
    """Another tab of the same login, at the same address."""
    tab = page.context.new_page()
    tab.goto(page.url)
    wait_until_drawn(tab)
    return tab


@pytest.mark.slow
def test_a_position_out_of_range_is_argued_about_moved_and_closed_once_whatever_happens(
    server: WebServer, open_page: OpenPage, devnet: Zuno
) -> None:
    page = open_page(server, quiet=False)  # faults are what is tried
    wait_until_drawn(page)
    wait_until_connected(page)
    held = {position["id"] for position in read(page, server, "/lp/positions?chain=devnet")["positions"]}
    expect(page.locator(".notice.urgent").first).to_contain_text("Out of range")
    page.locator("main .acts .primary").first.click()
    expect(page).to_have_url(re.compile(r"#/liquidity/\d+\?chain=devnet$"))
    page.goto(f"{server.url}{POSITION}")
    wait_until_drawn(page)

    # the argument, begun once by a double click and watched to its decision
    page.get_by_role("button", name="Recommend rebalance").dblclick()
    expect(page.locator(".debate.live .thought").first).to_be_visible(timeout=SLOWLY)
    expect(page.locator(".debate-decision h3")).not_to_be_empty(timeout=SLOWLY)
    debates = [job for job in read(page, server, "/jobs")["jobs"] if job["what"] == "recommend"]
    assert len(debates) == 1
    page.get_by_role("link", name="Open the plan").click()
    plan = read_plan_id(page)
    expect(page.locator("#change tbody tr").first).to_contain_text("Range")
    page.locator("#carry-out").get_by_role("button", name="Simulate").dblclick()
    expect(page.locator("#carry-out .notice.good")).to_be_visible(timeout=SLOWLY)

    # a connection lost before the approval is sent, and one lost before its answer comes
    second = open_tab(page)
    press(second, "Approve")
    fill_word(second, "approve")
    press(page, "Approve")
    fill_word(page, "approve")
    page.context.set_offline(True)
    page.get_by_role("dialog").locator("button[type=submit]").click()
    expect(page.locator("#carry-out .notice.bad")).to_contain_text("does not answer", timeout=SLOWLY)
    page.context.set_offline(False)
    wait_until_connected(page)
    assert count_entries(server, plan) == (0, 0, 0)

    def lose(route: Route) -> None:
        if "word" in (route.request.post_data or ""):
            route.fetch()
            route.abort()
        else:
            route.continue_()

    page.route("**/approve", lose)
    press(page, "Approve")
    type_word(page, "approve")
    expect(page.locator("#carry-out .notice.warn", has_text="not known")).to_be_visible(timeout=SLOWLY)
    expect_state(page, "approved")
    page.unroute_all()

    # the tab that is behind
    second.get_by_role("dialog").locator("button[type=submit]").click()
    expect(second.locator("#carry-out .notice.bad")).to_be_visible(timeout=SLOWLY)
    expect_state(second, "approved")
    assert count_entries(server, plan) == (1, 0, 0)
    second.close()

    # a login that ends while the word is typed
    press(page, "Apply")
    fill_word(page, "apply")
    page.context.clear_cookies()
    page.get_by_role("dialog").locator("button[type=submit]").click()
    expect(page.get_by_role("heading", name="Not signed in")).to_be_visible(timeout=SLOWLY)
    assert count_entries(server, plan) == (1, 0, 0)
    log_in(page, server)
    page.goto(f"{server.url}#/")
    wait_until_drawn(page)
    page.locator("#waiting").get_by_role("link").first.click()
    assert read_plan_id(page) == plan

    # applied by a double click, and looked at anew before the answer is there
    press(page, "Apply")
    fill_word(page, "apply")
    with page.expect_request(lambda asked: "word" in (asked.post_data or "")):
        page.get_by_role("dialog").locator("button[type=submit]").dblclick(no_wait_after=True)
    page.reload()
    wait_until_drawn(page)
    expect_state(page, "confirmed")
    assert count_entries(server, plan) == (1, 1, 1)
    done = read(page, server, f"/lp/plans/{plan}/status")
    steps = page.locator("#carry-out table tbody tr")
    expect(steps).to_have_count(len(done["steps"]))
    for step, row in zip(done["steps"], steps.all(), strict=True):
        expect(row).to_contain_text(step["txHash"][:8])
    page.get_by_role("link", name=f"new position {done['newPositionId']}").click()
    wait_until_drawn(page)
    expect(page.locator("main .badge").first).to_have_text("in range")
    opened = {position["id"] for position in read(page, server, "/lp/positions?chain=devnet")["positions"]}
    assert opened == held - {"1"} | {done["newPositionId"]}

    # and closed again
    page.locator("#acts").get_by_role("button", name="Close", exact=True).dblclick()
    anyway = page.get_by_role("button", name="Plan it anyway")
    expect(page.locator("#carry-out").or_(anyway)).to_be_visible(timeout=SLOWLY)
    if anyway.is_visible():
        anyway.click()
    closing = read_plan_id(page)
    press(page, "Simulate")
    expect(page.locator("#carry-out .notice.good")).to_be_visible(timeout=SLOWLY)
    press(page, "Approve")
    type_word(page, "approve")
    expect_state(page, "approved")
    press(page, "Apply")
    type_word(page, "apply")
    expect_state(page, "confirmed")
    page.goto(f"{server.url}#/liquidity/{done['newPositionId']}?chain=devnet")
    wait_until_drawn(page)
    expect(page.locator("main .badge").first).to_have_text("not open")
    page.reload()
    wait_until_drawn(page)
    expect(page.get_by_role("heading", name="Where the money went")).to_be_visible()

    assert count_entries(server, closing) == (1, 1, 1)
    listed = devnet("lp", "positions", "--chain", "devnet", "--json").document
    assert {position["id"] for position in listed["positions"]} == held - {"1"}
    verified = devnet("journal", "verify", "--json")
    assert verified.code == 0, verified.err
    plans = {line["planId"]: line["state"] for line in devnet("plan", "list", "--json").document["plans"]}
    assert plans == {plan: "confirmed", closing: "confirmed"}
