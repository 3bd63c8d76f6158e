"""Acts about positions in the page: one plan for a double click, two tabs, the way back and a lost connection; levels,
mandates, and which pool pays."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.web.test_pages import find_violations
from tests.wire.browser import SLOWLY, OpenPage, WebServer, run_server, type_word, wait_until_drawn
from tests.wire.commands import run_zuno

POSITION = "#/liquidity/2?chain=sim"
PLAN = re.compile(r"#/plans/plan_[0-9a-f]{12}$")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("acts")


@pytest.fixture(scope="module")
def server(home: Path, invented_market: Path) -> Iterator[WebServer]:
    home.mkdir(exist_ok=True)
    (home / "market").symlink_to(invented_market)
    with run_server(home) as running:
        yield running


def read(page: Page, server: WebServer, path: str) -> Any:
    return page.request.get(f"{server.url}api/v1{path}", headers=server.bearer).json()


def count_plans(page: Page, server: WebServer) -> int:
    return len(read(page, server, "/lp/plans?limit=200")["items"])


def press(page: Page, name: str, panel: str = "#acts") -> None:
    page.locator(panel).get_by_role("button", name=name, exact=True).click(timeout=SLOWLY)


def read_plan_id(page: Page) -> str:
    expect(page).to_have_url(PLAN, timeout=SLOWLY)
    return page.url.rpartition("/")[2]


def test_one_plan_is_made_by_a_double_click_two_tabs_and_the_way_back_and_is_carried_out(
    server: WebServer, open_page: OpenPage
) -> None:
    page = open_page(server, POSITION, quiet=False)  # the server asks for words by refusals
    wait_until_drawn(page)
    before = count_plans(page, server)
    other = page.context.new_page()
    other.goto(f"{server.url}{POSITION}")
    wait_until_drawn(other)
    page.locator("#acts").get_by_role("button", name="Collect fees").dblclick()
    press(other, "Collect fees")
    plan = read_plan_id(page)
    assert read_plan_id(other) == plan
    page.go_back()
    wait_until_drawn(page)
    press(page, "Collect fees")
    assert read_plan_id(page) == plan
    assert count_plans(page, server) == before + 1

    wait_until_drawn(page)
    expect(page.locator("h1")).to_contain_text("collect of position 2")
    press(page, "Simulate", "#carry-out")
    expect(page.locator("#carry-out .notice.good")).to_be_visible(timeout=SLOWLY)
    page.locator("#carry-out").get_by_role("button", name=re.compile("^Approve")).click()
    type_word(page, "approve")
    expect(page.locator("#carry-out .badge").first).to_have_text("approved", timeout=SLOWLY)
    page.locator("#carry-out").get_by_role("button", name=re.compile("^Apply")).click()
    type_word(page, "apply")
    expect(page.locator("#carry-out .badge").first).to_have_text("confirmed", timeout=SLOWLY)
    assert float(read(page, server, "/lp/positions/2?chain=sim")["fees0Human"]) == 0


@pytest.mark.slow
def test_an_act_whose_answer_was_lost_is_asked_again_and_makes_no_second_plan(
    server: WebServer, open_page: OpenPage
) -> None:
    page = open_page(
        server, "#/liquidity/1?chain=sim", quiet=False
    )  # a browser says of a lost connection that it is lost
    wait_until_drawn(page)
    before = count_plans(page, server)

    def lose(route: Route) -> None:
        route.fetch()
        route.abort()

    page.route("**/lp/positions/1/remove", lose)
    page.get_by_label("Share of the liquidity to remove, in percent").fill("25")
    press(page, "Remove")
    expect(page.locator("#toasts")).to_contain_text("Whether it was done is not known", timeout=SLOWLY)
    assert count_plans(page, server) == before + 1
    page.unroute_all()
    press(page, "Remove")
    plan = read_plan_id(page)
    assert count_plans(page, server) == before + 1
    assert read(page, server, f"/lp/plans/{plan}/status")["action"] == "remove"


@pytest.mark.slow
def test_an_ended_login_makes_no_plan_and_says_so(server: WebServer, open_page: OpenPage) -> None:
    page = open_page(server, POSITION, quiet=False)  # the refusal is what is tried
    wait_until_drawn(page)
    before = count_plans(page, server)
    page.context.clear_cookies()
    press(page, "Close")
    expect(page.get_by_role("heading", name="Not signed in")).to_be_visible(timeout=SLOWLY)
    assert count_plans(page, server) == before


def test_nonsense_is_refused_beside_its_field_and_what_the_desk_advises_against_is_asked_twice(
    server: WebServer, open_page: OpenPage
) -> None:
    page = open_page(server, POSITION, quiet=False)  # refusals are what is tried
    wait_until_drawn(page)
    before = count_plans(page, server)
    share, said = page.get_by_label("Share of the liquidity to remove, in percent"), page.locator("#acts .notice.bad")
    for typed in ("", "abc", "-5", "101", "1e1", "<img src=x>", "５０"):
        share.fill(typed)
        share.press("Enter")
        expect(said).to_be_visible(timeout=SLOWLY)
        expect(page.locator("#acts [role=group]").last.get_by_role("button")).to_be_enabled(timeout=SLOWLY)
    for typed in ("abc", "-1", "1e3", "0"):
        page.get_by_label("Amount of ETH to add").fill(typed)
        press(page, "Add")
        expect(said).to_be_visible(timeout=SLOWLY)
    assert count_plans(page, server) == before
    answers: list[Any] = []

    def advise_against(route: Route) -> None:
        answers.append(route.request.post_data_json)
        if answers[-1].get("anyway"):
            route.continue_()
        else:
            route.fulfill(status=409, json={"detail": "It never earns back the gas. --anyway does it."})

    page.route("**/lp/positions/2/close", advise_against)
    press(page, "Close")
    anyway = page.locator("#acts").get_by_role("button", name="Plan it anyway")
    expect(anyway).to_be_focused(timeout=SLOWLY)
    page.keyboard.press("Enter")
    read_plan_id(page)
    assert [bool(sent.get("anyway")) for sent in answers] == [False, True]


@pytest.mark.slow
def test_levels_are_set_listed_and_removed(server: WebServer, open_page: OpenPage) -> None:
    page = open_page(server, POSITION, quiet=False)  # refusals are tried too
    wait_until_drawn(page)
    level, panel = page.get_by_label("Level", exact=True), page.locator("#levels")
    for typed in ("", "abc", "-1", "1e3", "<b>"):
        level.fill(typed)
        press(page, "Set level", "#levels")
        expect(panel.locator(".notice.bad")).to_be_visible(timeout=SLOWLY)
    level.fill("4000")
    level.press("Enter")
    expect(panel.locator("tbody tr")).to_have_count(1, timeout=SLOWLY)
    expect(panel.locator("tbody tr")).to_contain_text("price above 4,000.00")
    press(page, "Remove", "#levels")
    expect(panel).to_contain_text("No level is set.", timeout=SLOWLY)
    assert read(page, server, "/lp/alerts")["rules"] == []


def test_a_mandate_is_shown_paused_resumed_and_revoked_and_granted_at_a_terminal(
    server: WebServer, open_page: OpenPage, home: Path
) -> None:
    granted = run_zuno(
        home, "lp", "mandate", "grant", "--position", "1", "--exit-below", "2000", "--worth-per-day", "50000", "--yes"
    )
    assert granted.code == 0, granted.err
    page = open_page(server, "#/liquidity")
    wait_until_drawn(page)
    panel = page.locator("#mandates")
    expect(panel.locator("li").first).to_contain_text("position 1")
    press(page, "Pause", "#mandates")
    expect(panel.locator(".notice.urgent")).to_contain_text("paused", timeout=SLOWLY)
    assert read(page, server, "/lp/mandates")["paused"] is True
    press(page, "Resume", "#mandates")
    expect(panel.get_by_role("button", name="Pause")).to_be_visible(timeout=SLOWLY)
    press(page, "Revoke", "#mandates")
    expect(panel).to_contain_text("No mandate is granted", timeout=SLOWLY)
    expect(panel.locator(".copy code")).to_contain_text("zuno lp mandate grant")


@pytest.mark.slow
def test_pools_are_ranked_with_their_interval_and_one_is_chosen(server: WebServer, open_page: OpenPage) -> None:
    page = open_page(server, "#/liquidity")
    wait_until_drawn(page)
    page.locator("#rank summary").click()
    rows = page.locator("#rank tbody tr")
    ranking = read(page, server, "/lp/pools/rank")["pools"]
    expect(rows).to_have_count(len(ranking), timeout=SLOWLY)
    low, high = ranking[1]["ci80"]
    expect(rows.nth(1)).to_contain_text(f"80 %: {low:.2f} – {high:.2f}")
    rows.nth(1).get_by_role("button", name="Open here").click()
    expect(page.get_by_label("Pool", exact=True)).to_have_value(ranking[1]["pool"]["id"], timeout=SLOWLY)
    page.get_by_label("What to bring").fill("0.5 ETH")
    expect(page.locator(".range-results:not(.old) .stat").first).to_be_visible(timeout=SLOWLY)
    assert find_violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
