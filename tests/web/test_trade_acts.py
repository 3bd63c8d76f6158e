"""Acts of the trading desk in a browser: with double clicks, two tabs, a lost connection and pasted nonsense."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.crash.learning import open_position
from tests.wire.browser import SLOWLY, OpenPage, WebServer, run_server, type_word, wait_until_drawn

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def opened(invented_market: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with an open long of BTC."""
    home = tmp_path_factory.mktemp("opened")
    (home / "market").symlink_to(invented_market)
    asyncio.run(open_position(home))
    return home


@pytest.fixture
def server(opened: Path, tmp_path: Path) -> Iterator[WebServer]:
    with run_server(shutil.copytree(opened, tmp_path / "home", symlinks=True)) as running:
        yield running


def look(page: Page, server: WebServer, path: str) -> Any:
    return page.request.get(f"{server.url}api/v1/trading/{path}", headers=server.bearer).json()


def find_trade(page: Page, server: WebServer) -> Any:
    (held,) = look(page, server, "positions")["positions"]
    return held


def count_closed(page: Page, server: WebServer) -> int:
    return len(look(page, server, "trades")["items"])


def test_levels_are_moved_by_a_form_that_takes_prices_alone_and_asks_before_it_loosens(
    server: WebServer, open_page: OpenPage
) -> None:
    page = open_page(server, "#/lab", quiet=False)  # the word is asked for by a refusal
    page.goto(f"{server.url}#/trading")
    wait_until_drawn(page)
    held = find_trade(page, server)
    page.get_by_role("button", name="Levels …").click()
    stop, move = page.get_by_label("Stop", exact=True), page.get_by_role("button", name="Move", exact=True)
    expect(stop).to_be_focused()
    sent: list[Any] = []
    page.on("request", lambda asked: sent.append(asked.post_data_json) if asked.url.endswith("/levels") else None)
    for typed in ("abc", "-5", "NaN", "1e5", "Infinity", "<img src=x>"):
        stop.fill(typed)
        expect(page.locator("form .bullets")).to_contain_text("is no price")
        move.click()
        expect(page.locator(".toast.bad").last).to_contain_text("no price")
        expect(stop).to_be_focused()
    stop.fill(str(held["mark"] * 1.01))
    expect(page.locator("form .bullets")).to_contain_text("wrong side")
    assert sent == []

    tighter, looser = round(held["stop"] * 1.005), round(held["stop"] * 0.99)
    stop.fill(str(tighter))
    page.keyboard.press("Enter")
    expect(page.locator(".toast.good")).to_contain_text(held["id"], timeout=SLOWLY)
    expect(stop).to_have_count(0)
    assert find_trade(page, server)["stop"] == tighter
    assert sent == [{"position": held["id"], "stop": str(tighter), "account": "paper"}], "the target stays as it was"

    page.get_by_role("button", name="Levels …").click()
    stop.fill(str(looser))
    expect(page.locator("form .bullets")).to_contain_text("looser")
    move.click()
    expect(page.get_by_role("dialog")).to_contain_text(str(looser), timeout=SLOWLY)
    page.go_back()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert find_trade(page, server)["stop"] == tighter, "whoever went back agreed to nothing"
    page.go_forward()
    wait_until_drawn(page)
    page.get_by_role("button", name="Levels …").click()
    stop.fill(str(looser))
    move.click()
    type_word(page, "loosen")
    expect(page.locator("td", has_text=f"{looser:,}.00").first).to_be_visible(timeout=SLOWLY)
    assert find_trade(page, server)["stop"] == looser


def test_a_trade_is_closed_once_by_a_double_click_and_a_second_tab(server: WebServer, open_page: OpenPage) -> None:
    first, second = (open_page(server, "#/trading", quiet=False) for _ in range(2))
    wait_until_drawn(first)
    wait_until_drawn(second)
    sent: list[str] = []
    first.on("request", lambda asked: sent.append(asked.url) if asked.url.endswith("/close") else None)
    second.route("**/api/v1/events*", lambda route: route.abort())
    second.route("**/api/v1/trading/positions*", lambda route: None)  # a tab that is behind
    first.get_by_role("button", name="Close", exact=True).dblclick()
    expect(first.locator("main")).to_contain_text("No position is open.", timeout=SLOWLY)
    assert len(sent) == 1
    assert count_closed(first, server) == 1
    second.get_by_role("button", name="Close", exact=True).click()
    expect(second.locator(".toast.bad")).to_contain_text("closed already", timeout=SLOWLY)
    assert count_closed(first, server) == 1


def test_a_connection_that_is_lost_in_the_middle_of_a_close_is_said_and_looked_at_again(
    server: WebServer, open_page: OpenPage
) -> None:
    page = open_page(server, "#/trading", quiet=False)
    wait_until_drawn(page)

    def cut(route: Route) -> None:
        route.fetch()  # it is done, and the answer never comes
        route.abort()

    page.route("**/api/v1/trading/close", cut)
    page.get_by_role("button", name="Close", exact=True).click()
    expect(page.locator(".toast.bad")).to_contain_text("not known", timeout=SLOWLY)
    expect(page.locator("main")).to_contain_text("No position is open.", timeout=SLOWLY)
    assert count_closed(page, server) == 1


def test_an_act_of_a_login_that_has_ended_does_nothing(server: WebServer, open_page: OpenPage) -> None:
    page = open_page(server, "#/trading", quiet=False)
    wait_until_drawn(page)
    page.context.clear_cookies()
    page.get_by_role("button", name="Close", exact=True).click()
    expect(page.get_by_role("heading", name="Not signed in")).to_be_visible()
    assert find_trade(page, server)
    assert count_closed(page, server) == 0


def test_a_desk_that_refuses_its_start_says_why_beside_it(server: WebServer, open_page: OpenPage) -> None:
    """The account has come to the end of the recording."""
    page = open_page(server, "#/trading", quiet=False)
    wait_until_drawn(page)
    page.get_by_role("button", name="Run its last day").click()
    expect(page.locator(".toast.bad")).to_contain_text(re.compile("written forward"), timeout=SLOWLY)
    expect(page.locator(".desk-log")).to_contain_text("written forward", timeout=SLOWLY)
