"""Home, Liquidity, a position and a plan in a browser: a debate followed to its plan, the plan approved and applied."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, Route, expect

from tests.web.conftest import WebPage
from tests.wire.commands import run_zuno

OpenPage = Callable[..., Page]
SLOWLY = 60_000
HOSTILE = '<img src="x" onerror="window.hurt = true"><script>window.hurt = true</script>'
POSITION = "#/liquidity/2?chain=sim"


@pytest.fixture(scope="module")
def served(
    serve: Callable[[Path], AbstractContextManager[WebPage]],
    invented_market: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[WebPage]:
    """The demo world with its first position at the edge of its range."""
    home = tmp_path_factory.mktemp("page")
    (home / "market").symlink_to(invented_market)
    assert run_zuno(home, "sim", "move", "--percent", "-0.6").code == 0
    with serve(home) as page:
        yield page


@pytest.fixture(scope="module")
def plan_address(served: WebPage) -> dict[str, str]:
    """Where the plan of the first story is, for those after it."""
    return {}


def wait_until_drawn(page: Page) -> None:
    expect(page.locator("main .loading")).to_have_count(0, timeout=SLOWLY)
    expect(page.locator(".chart-figure:not([data-drawn])")).to_have_count(0, timeout=SLOWLY)


def collect_errors(page: Page) -> list[str]:
    """What the console says against the page: a script's error, a refused style, a request that failed."""
    said: list[str] = []
    page.on("console", lambda line: said.append(line.text) if line.type == "error" else None)
    return said


def type_word(page: Page, word: str) -> None:
    dialog = page.get_by_role("dialog")
    act = dialog.get_by_role("button", name=word, exact=False).last
    expect(act).to_be_disabled(timeout=SLOWLY)
    dialog.get_by_role("textbox").fill(word[:-1])
    expect(act).to_be_disabled()
    dialog.get_by_role("textbox").fill(word)
    act.click()


def test_a_debate_is_followed_and_its_plan_is_applied(
    served: WebPage, open_page: OpenPage, plan_address: dict[str, str]
) -> None:
    page = open_page(served, "#/liquidity/1?chain=sim")
    errors = collect_errors(page)
    wait_until_drawn(page)
    expect(page.locator("#mode")).to_have_text("SYNTHETIC")
    expect(page.locator("#wire")).to_have_text("live", timeout=SLOWLY)
    page.get_by_label("Risk profile").select_option("conservative")
    page.get_by_role("button", name="Recommend rebalance").click()
    expect(page.locator(".debate.live .vetoed").first).to_be_visible(timeout=SLOWLY)
    page.get_by_role("link", name="Open the plan").click(timeout=SLOWLY)
    expect(page).to_have_url(re.compile(r"#/plans/plan_[0-9a-f]{12}$"), timeout=SLOWLY)
    wait_until_drawn(page)
    plan_id = page.url.rpartition("/")[2]
    plan_address["hash"] = f"#/plans/{plan_id}"
    plan = page.request.get(f"{served.url}api/v1/lp/plans/{plan_id}").json()
    expect(page.locator(".because")).to_have_text(plan["because"])
    assert page.locator(".thought").count() == len(plan["transcript"])
    page.get_by_role("button", name="Simulate").click()
    expect(page.locator("#carry-out .notice.good")).to_be_visible(timeout=SLOWLY)
    page.get_by_role("button", name="Approve").click()
    type_word(page, "approve")
    expect(page.locator("#carry-out .badge").first).to_have_text("approved", timeout=SLOWLY)
    page.get_by_role("button", name="Apply").click()
    type_word(page, "apply")
    expect(page.locator("#carry-out .badge").first).to_have_text("confirmed", timeout=SLOWLY)
    status = page.request.get(f"{served.url}api/v1/lp/plans/{plan_id}/status").json()
    expect(page.get_by_role("link", name=f"new position {status['newPositionId']}")).to_be_visible()
    assert errors == []


def test_a_chart_is_read_and_a_price_is_tried_by_keyboard(served: WebPage, open_page: OpenPage) -> None:
    page = open_page(served, POSITION)
    wait_until_drawn(page)
    chart = page.locator(".chart[tabindex]").first
    chart.focus()
    page.keyboard.press("End")
    history = page.request.get(f"{served.url}api/v1/lp/positions/2/history").json()
    last = float(history["prices"][-1]["price"])
    expect(page.locator(".readout").first).to_contain_text(f"{last:,.2f}")
    page.get_by_label("Change of the price in percent").focus()
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    tried = page.request.get(f"{served.url}api/v1/lp/positions/2/whatif", params={"move": "-3%"}).json()
    expect(page.locator(".split")).to_contain_text(f"{float(tried['worth']):,.2f}", timeout=SLOWLY)


@pytest.mark.parametrize(("width", "theme"), [(1440, "dark"), (390, "light")])
def test_every_page_can_be_read_by_everybody(
    served: WebPage, open_page: OpenPage, plan_address: dict[str, str], width: int, theme: str
) -> None:
    for address in ("#/", "#/liquidity", POSITION, plan_address.get("hash", "#/")):
        page = open_page(served, address, width, theme)
        wait_until_drawn(page)
        found = Axe().run(page).response["violations"]
        grave = [f"{rule['id']}: {rule['nodes'][0]['html'][:200]}" for rule in found if rule["impact"] != "minor"]
        assert grave == [], address
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{address} is wider than {width}"


def test_markup_in_any_text_is_shown_as_text(
    served: WebPage, open_page: OpenPage, plan_address: dict[str, str]
) -> None:
    def spoil(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: spoil(item, key) for key, item in value.items()}
        if isinstance(value, list):
            return [spoil(item, name) for item in value]
        spoiled = isinstance(value, str) and (" " in value or name in ("symbol", "role", "kind", "state", "chain"))
        return f"{value} {HOSTILE}" if spoiled else value

    def answer(route: Route) -> None:
        response = route.fetch()
        route.fulfill(response=response, body=json.dumps(spoil(response.json())))

    for address in ("#/", "#/liquidity", POSITION, plan_address.get("hash", "#/")):
        page = open_page(served, "#/lab")
        page.route(re.compile(r"/api/v1/(?!events|session)"), answer)
        page.goto(f"{served.url}{address}")
        wait_until_drawn(page)
        expect(page.locator("main")).to_contain_text("<img src=", timeout=SLOWLY)
        assert page.evaluate("window.hurt") is None
        assert page.locator("img, main script").count() == 0
