"""The page on the devnet: a debate followed live, its plan simulated, approved and applied, from two tabs."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.scenario.conftest import ask
from tests.wire.browser import (
    SLOWLY,
    OpenPage,
    WebServer,
    browser,
    open_page,
    run_server,
    type_word,
    wait_until_connected,
    wait_until_drawn,
)

__all__ = ["browser", "open_page"]
LATE_SECONDS = 1_200
"""Later than an approval lasts."""


@pytest.fixture
def server(devnet: Any, devnet_home: Path, invented_market: Path) -> Iterator[WebServer]:
    """The home of the running devnet, whose price has left a position's range."""
    assert devnet("devnet", "move", "--percent", "-12").code == 0
    market = devnet_home / "market"
    market.symlink_to(invented_market)
    with run_server(devnet_home) as running:
        yield running
    market.unlink()


@pytest.mark.soak
def test_a_debate_is_followed_and_its_plan_is_applied_by_one_of_two_tabs(
    server: WebServer, open_page: OpenPage
) -> None:
    page = open_page(server, "#/liquidity/1?chain=devnet", quiet=False)  # two of the tabs are refused
    wait_until_drawn(page)
    wait_until_connected(page)
    page.get_by_role("button", name="Recommend rebalance").click()
    expect(page.locator(".debate.live .thought").first).to_be_visible(timeout=SLOWLY)
    page.get_by_role("link", name="Open the plan").click(timeout=SLOWLY)
    expect(page).to_have_url(re.compile(r"#/plans/plan_[0-9a-f]{12}$"), timeout=SLOWLY)
    wait_until_drawn(page)
    plan_id = page.url.rpartition("/")[2]
    plan = page.request.get(f"{server.url}api/v1/lp/plans/{plan_id}", headers=server.bearer).json()
    expect(page.locator(".because")).to_have_text(plan["because"])
    assert page.locator(".thought").count() == len(plan["transcript"])
    page.get_by_role("button", name="Simulate").click()
    expect(page.locator("#carry-out .notice.good")).to_be_visible(timeout=SLOWLY)

    stale = page.context.new_page()
    stale.goto(page.url)
    wait_until_drawn(stale)
    stale.get_by_role("button", name="Approve").click()
    expect(stale.get_by_role("dialog")).to_be_visible(timeout=SLOWLY)
    node = json.loads((server.home / "devnet.json").read_text())["url"]
    ask(node, "evm_increaseTime", hex(LATE_SECONDS))
    ask(node, "evm_mine")
    type_word(stale, "approve")
    expect(stale.locator("#carry-out .notice.bad")).to_contain_text("expired", timeout=SLOWLY)
    status = f"{server.url}api/v1/lp/plans/{plan_id}/status"
    assert page.request.get(status, headers=server.bearer).json()["state"] != "approved"

    page.get_by_role("button", name="Approve").click()
    type_word(page, "approve")
    tabs = (page, stale)
    for tab in tabs:
        expect(tab.locator("#carry-out .badge").first).to_have_text("approved", timeout=SLOWLY)
        tab.get_by_role("button", name="Apply").click()
        tab.get_by_role("dialog").get_by_role("textbox").fill("apply", timeout=SLOWLY)
    for tab in tabs:
        tab.get_by_role("dialog").locator("button[type=submit]").click(no_wait_after=True)
    for tab in tabs:
        expect(tab.locator("#carry-out .badge").first).to_have_text("confirmed", timeout=SLOWLY)
    told = [tab.locator("#carry-out .notice.bad").count() for tab in tabs]
    assert sorted(told) == [0, 1], "one applies it, the other says so"
    done = page.request.get(status, headers=server.bearer).json()
    expect(page.get_by_role("link", name=f"new position {done['newPositionId']}")).to_be_visible()
    with sqlite3.connect(server.home / "journal.db") as journal:
        asked = "SELECT COUNT(*) FROM entries WHERE kind = 'plan_applying' AND request_id = ?"
        (applied,) = journal.execute(asked, (plan_id,)).fetchone()
    assert applied == 1


@pytest.mark.soak
def test_a_position_is_opened_with_a_range_of_ones_own_added_to_and_closed(
    devnet: Any, devnet_home: Path, open_page: OpenPage
) -> None:
    def carry_out() -> Any:
        """Approve and apply the plan that is shown."""
        wait_until_drawn(page)
        page.get_by_role("button", name=re.compile("^Approve")).click()
        code = page.get_by_role("dialog").locator("label code")
        type_word(page, code.inner_text(timeout=SLOWLY))
        expect(page.locator("#carry-out .badge").first).to_have_text("approved", timeout=SLOWLY)
        page.get_by_role("button", name=re.compile("^Apply")).click()
        type_word(page, "apply")
        expect(page.locator("#carry-out .badge").first).to_have_text("confirmed", timeout=SLOWLY)
        return read(f"/lp/plans/{page.url.rpartition('/')[2]}/status")

    with run_server(devnet_home) as server:
        page = open_page(server, "#/liquidity?chain=devnet", quiet=False)  # words are asked for by refusals

        def read(path: str) -> Any:
            return page.request.get(f"{server.url}api/v1{path}", headers=server.bearer).json()

        wait_until_drawn(page)
        pool = next(pool for pool in read("/lp/pools?chain=devnet")["pools"] if pool["label"] == "ETH/USDC 0.30 %")
        price = float(pool["price"])
        page.locator("#open-own summary").first.click()
        page.get_by_label("Pool", exact=True).select_option(pool["id"])
        page.get_by_label("What to bring").fill("0.5 ETH")
        for field, share in ((0, 0.8), (1, 1.25)):
            page.locator(".range-fields input").nth(field).fill(f"{price * share:.2f}")
        expect(page.locator(".range-results:not(.old) .stat").first).to_be_visible(timeout=SLOWLY)
        page.get_by_label("take mine, even against its advice").check()
        page.get_by_role("button", name="Let the desk answer").click()
        page.locator("#open-own").get_by_role("link", name="Open the plan").click(timeout=SLOWLY)
        opened = carry_out()["newPositionId"]
        position = read(f"/lp/positions/{opened}?chain=devnet")
        assert position["pool"]["id"] == pool["id"]
        assert float(position["priceLower"]) <= price * 0.8 * 1.0001
        assert float(position["priceUpper"]) >= price * 1.25 * 0.9999

        page.goto(f"{server.url}#/liquidity/{opened}?chain=devnet")
        wait_until_drawn(page)
        page.get_by_label("Amount of ETH to add").fill("0.1")
        page.locator("#acts").get_by_role("button", name="Add", exact=True).click()
        carry_out()
        more = read(f"/lp/positions/{opened}?chain=devnet")
        assert int(more["liquidity"]) > int(position["liquidity"])
        page.goto(f"{server.url}#/liquidity/{opened}?chain=devnet")
        wait_until_drawn(page)
        page.locator("#acts").get_by_role("button", name="Close", exact=True).click()
        carry_out()
        held = read("/lp/positions?chain=devnet")["positions"]
        assert opened not in {each["id"] for each in held if int(each["liquidity"])}
