"""The documentation at /docs in a real browser: read, searched with the keyboard, on a phone, in both themes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.wire.browser import OpenPage, WebServer, run_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    with run_server(tmp_path_factory.mktemp("docs")) as running:
        yield running


def test_the_documentation_is_searched_and_read(server: WebServer, open_page: OpenPage) -> None:
    page = open_page(server, "docs/")
    expect(page.get_by_role("heading", level=1)).to_have_text("Documentation")
    page.keyboard.press("/")
    page.keyboard.type("fee cover")
    first = page.locator("#found a").first
    expect(first).to_be_visible()
    for typed in ("<img src=x onerror=alert(1)>", "zzzz nothing", "☃" * 300):
        page.locator("#search").fill(typed)
        expect(page.locator("#found")).to_have_text("Nothing found.")
    page.locator("#search").fill("kill switch")
    expect(page.locator("#found a small").first).not_to_be_empty()
    page.keyboard.press("Enter")
    expect(page.locator("#found")).to_be_hidden()
    page.wait_for_url("**/docs/*.html#*")
    page.goto(f"{server.url}docs/guides/first-hour.html")
    expect(page.locator("nav [aria-current=page]")).to_have_text("The first hour")
    page.locator("#search").fill("mandate")
    link = page.locator("#found a").first.get_attribute("href")
    assert link is not None
    assert link.startswith("../")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_it_can_be_read_everywhere(server: WebServer, open_page: OpenPage, width: int, theme: str) -> None:
    page = open_page(server, "docs/", width=width, theme=theme)
    for place in ("web.html", "commands.html", "about.html", "decisions/index.html"):
        page.goto(f"{server.url}docs/{place}")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), place
    page.goto(f"{server.url}docs/web.html")
    found = Axe().run(page).response["violations"]
    assert [(each["id"], [node["html"][:100] for node in each["nodes"]][:3]) for each in found] == []
