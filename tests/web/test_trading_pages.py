"""Trading, Run, Trust and Lab in a browser: a cycle followed to its ruling, the journal verified, the kill switch."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, Route, expect

from tests.crash.learning import open_position
from tests.web.conftest import WebPage

OpenPage = Callable[..., Page]
SLOWLY = 60_000
"""Milliseconds that a cycle, or the first look at a market, may take on a busy machine."""
HOSTILE = '<img src="x" onerror="window.hurt = true"><script>window.hurt = true</script>'
WATCH_NODES = """() => {
    window.seen = new Set();
    const look = () => {
        for (const node of document.querySelectorAll(".node[data-state]")) window.seen.add(node.dataset.state);
    };
    new MutationObserver(look).observe(document.body, { subtree: true, attributes: true, childList: true });
}"""
"""Notes every state that a node of the graph was in."""
RUN = re.compile(r"#/runs/run_[0-9a-f]{16}$")


@pytest.fixture(scope="module")
def served(
    serve: Callable[[Path], AbstractContextManager[WebPage]],
    invented_market: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[WebPage]:
    """A home whose paper account holds a long."""
    home = tmp_path_factory.mktemp("page")
    (home / "market").symlink_to(invented_market)
    asyncio.run(open_position(home))
    with serve(home) as page:
        yield page


@pytest.fixture(scope="module")
def run_address(served: WebPage) -> dict[str, str]:
    """Where the run of the first story is, for those after it."""
    return {}


def wait_until_drawn(page: Page) -> None:
    expect(page.locator("main .loading")).to_have_count(0, timeout=SLOWLY)


def list_violations(page: Page) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [
        f"{rule['id']}: {rule['nodes'][0]['html'][:200]}" for rule in found if rule["impact"] in ("serious", "critical")
    ]


def test_a_cycle_is_followed_to_its_ruling_and_replayed(
    served: WebPage, open_page: OpenPage, run_address: dict[str, str]
) -> None:
    page = open_page(served, "#/trading")
    page.get_by_label("execute").check(timeout=SLOWLY)
    page.get_by_role("button", name="Run a cycle").click()
    expect(page).to_have_url(RUN, timeout=SLOWLY)
    page.evaluate(WATCH_NODES)
    ruling = page.get_by_role("heading", name="Ruling", exact=True)
    expect(ruling.first).to_be_visible(timeout=SLOWLY)
    run_id = page.url.rpartition("/")[2]
    run_address["hash"] = f"#/runs/{run_id}"
    document = page.request.get(f"{served.url}api/v1/trading/runs/{run_id}").json()["run"]
    verdicts = page.locator(".verdict").all_inner_texts()
    assert document["decision"]["decision"] in verdicts
    assert document["ruling"]["decision"] in verdicts
    assert document["execution"] is not None, "it was to be executed"
    expect(page.locator(".node[data-state=waits]")).to_have_count(0)
    expect(page.locator(".node:not([data-state])")).to_have_count(0)
    assert {"waits", "speaks", "done"} <= set(page.evaluate("[...window.seen]")), "nodes were not told live"
    for change in document["ruling"]["changes"]:
        expect(page.locator(".changes")).to_contain_text(change["why"])
    page.get_by_role("button", name="Replay").click()
    expect(page.locator(".notice.good")).to_contain_text("same bytes", timeout=SLOWLY)


def test_the_journal_is_verified_in_the_page(served: WebPage, open_page: OpenPage) -> None:
    page = open_page(served, "#/trust")
    page.get_by_role("button", name="Verify the journal").click(timeout=SLOWLY)
    verdict = page.request.get(f"{served.url}api/v1/trust/journal/verify").json()
    assert verdict["ok"]
    expect(page.locator(".notice.good")).to_contain_text("entries hold", timeout=SLOWLY)


@pytest.mark.parametrize(("width", "theme"), [(1440, "light"), (390, "dark")])
def test_every_page_can_be_read_by_everybody(
    served: WebPage, open_page: OpenPage, run_address: dict[str, str], width: int, theme: str
) -> None:
    for address in ("#/trading", run_address.get("hash", "#/lab"), "#/trust", "#/lab"):
        page = open_page(served, address, width, theme)
        wait_until_drawn(page)
        assert list_violations(page) == [], address
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{address} is wider than {width}"


def test_markup_in_any_text_is_shown_as_text(served: WebPage, open_page: OpenPage, run_address: dict[str, str]) -> None:
    def spoil(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: spoil(item) for name, item in value.items()}
        if isinstance(value, list):
            return [spoil(item) for item in value]
        return f"{value} {HOSTILE}" if isinstance(value, str) and " " in value else value

    def answer(route: Route) -> None:
        response = route.fetch()
        document = response.json()
        if "/trust/memories" in route.request.url:
            document["items"] = [MEMORY]
        route.fulfill(response=response, body=json.dumps(spoil(document)))

    for address in ("#/trading", run_address.get("hash", "#/trading"), "#/trust"):
        page = open_page(served, "#/lab")
        page.route(re.compile(r"/api/v1/(?!events|session)"), answer)
        page.goto(f"{served.url}{address}")
        wait_until_drawn(page)
        expect(page.locator("main")).to_contain_text("<img src=", timeout=SLOWLY)
        assert page.evaluate("window.hurt") is None
        assert page.locator("img, main script").count() == 0


MEMORY = {
    "id": "pm_1",
    "symbol": "BTCUSDT",
    "closed": "2025-12-29T17:46:00Z",
    "setup": "a setup",
    "outcome": "an outcome",
    "constraint": "a constraint",
    "r": -1.1,
    "similarity": None,
    "side": "short",
    "verdict": "FAILURE",
}


def test_the_kill_switch_asks_for_its_word(served: WebPage, open_page: OpenPage) -> None:
    page = open_page(served, "#/trading")

    def count_open() -> int:
        return len(page.request.get(f"{served.url}api/v1/trading/positions").json()["positions"])

    before = count_open()
    assert before
    page.get_by_role("button", name="Kill switch").click(timeout=SLOWLY)
    dialog = page.get_by_role("dialog")
    act = dialog.get_by_role("button", name="Close everything")
    expect(act).to_be_disabled(timeout=SLOWLY)
    dialog.get_by_role("textbox").fill("kil")
    expect(act).to_be_disabled()
    dialog.get_by_role("button", name="Not now").click()
    assert count_open() == before, "nothing happens without the word"
    page.get_by_role("button", name="Kill switch").click()
    dialog.get_by_role("textbox").fill("kill", timeout=SLOWLY)
    act.click()
    expect(page.locator(".notice.warn", has_text="kill switch")).to_be_visible(timeout=SLOWLY)
    assert count_open() == 0
