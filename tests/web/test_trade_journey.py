"""The trading desk from a cycle to a killed account, at a fake exchange over loopback: a ruling watched, trades opened,
moved, closed and killed, with double clicks, two tabs, reloads, a lost connection and an ended login on the way."""

from __future__ import annotations

import asyncio
import csv
import re
import shlex
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE
from threading import Thread
from typing import Any, TypeVar

import pytest
from playwright.sync_api import Page, expect

from tests.scenario.test_live_trading import entries, rule_entry, stops, terminal
from tests.wire.browser import (
    SLOWLY,
    OpenPage,
    WebServer,
    log_in,
    run_server,
    wait_until_connected,
    wait_until_drawn,
)
from tests.wire.commands import run_zuno, shell
from tests.wire.exchanges import binance
from tests.wire.exchanges.binance import FakeBinance
from tests.wire.exchanges.serving import serve_exchange
from tests.wire.forked import ZunoProcess
from tests.wire.live_home import remembered
from tests.wire.vendors.living import Living, venues

pytestmark = pytest.mark.slow
T = TypeVar("T")
RUN = re.compile(r"#/runs/run_[0-9a-f]{16}$")


@dataclass
class DemoDesk:
    """An account at a fake exchange's demo trading, its page, and commands in its home."""

    fake: FakeBinance
    server: WebServer
    environment: dict[str, str]
    run: Callable[[Coroutine[Any, Any, Any]], Any]

    def zuno(self, *words: str) -> Any:
        return run_zuno(self.server.home, *words, **self.environment)

    def rule(self, name: str) -> None:
        """An entry that the desk opens when it starts."""
        self.run(rule_entry(self.server.home, account="demo", name=name))

    def start(self, page: Page) -> ZunoProcess:
        """The desk, by the command that the page shows."""
        command = page.locator(".copy code", has_text="trade start").inner_text()
        words = [*shlex.split(command)[1:], "--symbols", "BTCUSDT"]
        return ZunoProcess(words, env=shell(self.server.home, self.environment), stdout=PIPE, stderr=PIPE, text=True)

    def held(self) -> bool:
        return self.fake.engine.position("BTCUSDT").amount != 0

    def count_sold(self) -> int:
        return sum(order.side == "SELL" and order.filled > 0 for order in self.fake.engine.orders.values())

    def wait(self, page: Page, resting: int, protective: int) -> None:
        for _ in range(SLOWLY // 100):
            if (len(entries(self.fake)), len(stops(self.fake))) == (resting, protective):
                return
            page.wait_for_timeout(100)
        raise AssertionError(f"{entries(self.fake)} {stops(self.fake)}")

    def find_stop(self) -> Any:
        (stop,) = (algo for algo in stops(self.fake) if algo.type == "STOP_MARKET")
        return stop.trigger


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoDesk]:
    """Fakes answer in a thread: the browser of these tests keeps the main one. Each test leaves nothing open."""
    home = tmp_path_factory.mktemp("demo")
    loop, stack, fake = asyncio.new_event_loop(), AsyncExitStack(), FakeBinance()
    thread = Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def run(work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, loop).result(240)

    async def open_world() -> dict[str, str]:
        await remembered(home, Living())
        here = await stack.enter_async_context(venues())
        await stack.enter_async_context(serve_exchange(fake.server))
        keys = {
            **here.environment,
            "ZUNO_BINANCE_API_KEY": binance.KEY,
            "ZUNO_BINANCE_API_SECRET": binance.SECRET,
            "ZUNO_BINANCE_ORDER_URL": fake.server.url,
            "ZUNO_BINANCE_DEMO": "true",
            "ZUNO_MARKET": "live",
            "ZUNO_SLEEVES": "debate:1",
        }
        words = ("--symbol", "BTCUSDT", "--margin-per-trade", "700", "--margin-per-day", "2000", "--account", "demo")
        async with terminal(home, keys, "trade", "mandate", "grant", *words) as screen:
            await screen.expect("Type grant")
            screen.type("grant")
            assert await screen.wait() == 0, screen.screen
        return keys

    environment = run(open_world())
    try:
        with run_server(home, **environment) as server:
            yield DemoDesk(fake, server, environment, run)
    finally:
        run(stack.aclose())
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
        loop.close()


def open_trading(page: Page, desk: DemoDesk) -> None:
    """The account at the exchange, chosen beside the paper one."""
    page.goto(f"{desk.server.url}#/trading")
    wait_until_drawn(page)
    page.get_by_role("group", name="Account").get_by_role("button", name="demo").click()
    wait_until_drawn(page)
    wait_until_connected(page)


def press_kill(page: Page) -> None:
    page.get_by_role("button", name="Kill switch").click()
    page.get_by_role("dialog").get_by_role("textbox").fill("kill", timeout=SLOWLY)


def test_a_cycle_is_begun_once_and_watched_across_a_reload(desk: DemoDesk, open_page: OpenPage) -> None:
    page = open_page(desk.server, "#/lab")
    open_trading(page, desk)
    expect(page.get_by_label("execute")).to_be_disabled()
    page.get_by_role("button", name="Run a cycle").dblclick()
    expect(page).to_have_url(RUN, timeout=SLOWLY)
    page.reload()
    expect(page.get_by_role("heading", name="Ruling", exact=True).first).to_be_visible(timeout=SLOWLY)
    jobs = page.request.get(f"{desk.server.url}api/v1/jobs", headers=desk.server.bearer).json()["jobs"]
    assert [job["what"] for job in jobs].count("analyze") == 1
    assert not entries(desk.fake), "a cycle in the page places nothing at an exchange"


@pytest.mark.soak
def test_a_trade_is_opened_by_the_desk_moved_and_closed_once_whatever_happens(
    desk: DemoDesk, open_page: OpenPage, tmp_path: Path
) -> None:
    page = open_page(desk.server, "#/lab", quiet=False)  # faults are what is tried
    desk.rule("int_first")
    open_trading(page, desk)
    expect(page.locator("main")).to_contain_text("No position is open.")
    before = desk.count_sold()
    with desk.start(page) as started:
        desk.wait(page, 2, 2)
        expect(page.get_by_role("button", name="Levels …")).to_be_visible(timeout=SLOWLY)
        expect(page.locator("main")).to_contain_text("LONG BTCUSDT")
        stop = desk.find_stop()

        # an entry that waits is cancelled once
        page.get_by_role("button", name="Cancel", exact=True).first.dblclick()
        desk.wait(page, 1, 2)

        # a connection lost before a stop is moved moves nothing
        page.get_by_role("button", name="Levels …").click()
        page.get_by_label("Stop", exact=True).fill("59200")
        page.context.set_offline(True)
        page.get_by_role("button", name="Move", exact=True).click()
        expect(page.locator(".toast.bad").last).to_contain_text("not known", timeout=SLOWLY)
        assert desk.find_stop() == stop
        page.context.set_offline(False)
        wait_until_connected(page)
        page.get_by_role("button", name="Move", exact=True).dblclick()
        expect(page.locator("td", has_text="59,200.00").first).to_be_visible(timeout=SLOWLY)
        desk.wait(page, 1, 2)
        assert desk.find_stop() == 59_200

        # closed by a double click; the tab that is behind is told so
        behind = page.context.new_page()
        open_trading(behind, desk)
        behind.route("**/api/v1/events*", lambda route: route.abort())
        behind.route("**/api/v1/trading/positions*", lambda route: None)
        page.reload()
        open_trading(page, desk)
        page.get_by_role("button", name="Close", exact=True).dblclick()
        expect(page.locator("main")).to_contain_text("No position is open.", timeout=SLOWLY)
        behind.get_by_role("button", name="Close", exact=True).click()
        expect(behind.locator(".toast.bad")).to_contain_text("closed already", timeout=SLOWLY)
        behind.close()
        desk.wait(page, 0, 0)
        assert not desk.held()
        page.get_by_role("button", name="Stop the desk").click()
        assert started.wait(120) == 0
    assert desk.count_sold() == before + 1

    # the table of trades, saved, is what the terminal says
    trades = desk.zuno("trade", "trades", "--account", "demo", "--json").document["trades"]
    book = page.get_by_role("tabpanel")
    expect(book.locator("tbody tr:visible")).to_have_count(len(trades), timeout=SLOWLY)
    with page.expect_download() as saved:
        book.get_by_role("button", name="CSV").click()
    saved.value.save_as(tmp_path / "trades.csv")
    lines = list(csv.DictReader((tmp_path / "trades.csv").read_text(encoding="utf-8").splitlines()))
    assert [(line["id"], float(line["netPnl"])) for line in lines] == [(t["id"], t["netPnl"]) for t in trades]
    assert desk.zuno("journal", "verify").code == 0


@pytest.mark.soak
def test_a_trade_is_killed_by_whoever_is_signed_in_and_connected_and_unlocked_by_the_command_shown(
    desk: DemoDesk, open_page: OpenPage
) -> None:
    page = open_page(desk.server, "#/lab", quiet=False)  # faults are what is tried
    desk.rule("int_second")
    open_trading(page, desk)
    before = desk.count_sold()
    with desk.start(page) as started:
        desk.wait(page, 2, 2)
        press_kill(page)
        page.context.clear_cookies()
        page.get_by_role("dialog").locator("button[type=submit]").click()
        expect(page.get_by_role("heading", name="Not signed in")).to_be_visible(timeout=SLOWLY)
        log_in(page, desk.server)
        open_trading(page, desk)
        press_kill(page)
        page.context.set_offline(True)
        page.get_by_role("dialog").locator("button[type=submit]").click()
        expect(page.locator("main .notice.bad").first).to_contain_text("does not answer", timeout=SLOWLY)
        assert desk.held()
        page.context.set_offline(False)
        wait_until_connected(page)
        press_kill(page)
        page.get_by_role("dialog").locator("button[type=submit]").dblclick(no_wait_after=True)
        expect(page.locator(".notice.good", has_text="Kill switch")).to_contain_text(
            "No position and no order is left.", timeout=SLOWLY
        )
        desk.wait(page, 0, 0)
        assert not desk.held()
        assert desk.zuno("trade", "stop", "--account", "demo").code == 0
        assert started.wait(120) == 0
    assert desk.count_sold() == before + 1

    page.reload()
    open_trading(page, desk)
    locked = page.locator(".notice", has_text="kill_switch")
    expect(locked).to_be_visible()
    lifted = desk.zuno(*shlex.split(locked.locator("code").inner_text())[1:])
    assert lifted.code == 0, lifted.err
    expect(locked).to_have_count(0, timeout=SLOWLY)
    assert desk.zuno("journal", "verify").code == 0
