"""The page as a person opens it: Debian's Chromium against `zuno web` in a process of its own."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect, sync_playwright

from tests.wire.commands import shell
from tests.wire.forked import ZunoProcess
from zuno.doors.web_logins import LoginScope
from zuno.wiring.web import build_logins

ABSENT = "chromium is not installed: apt-get install chromium"
SLOWLY = 90_000
"""Milliseconds that a debate, a cycle or the first look at a market may take on a busy machine."""
OpenPage = Callable[..., Page]


class WebServer:
    """`zuno web` on a home. It keeps its port when it is killed and started again."""

    def __init__(self, home: Path, **environment: str) -> None:
        self.home = home
        self._environment = environment
        self.url = ""
        self.bearer: dict[str, str] = {}
        self._port = "0"
        self._process: ZunoProcess | None = None

    def start(self) -> None:
        command = ["web", "--port", self._port]
        self._process = ZunoProcess(
            command, env=shell(self.home, self._environment), stdout=PIPE, stderr=PIPE, text=True
        )
        assert self._process.stdout is not None
        lines = iter(self._process.stdout.readline, "")
        link = next(word for line in lines for word in line.split() if "#login=" in word)
        self.url = link.partition("#")[0]
        self._port = str(urlsplit(link).port)
        if not self.bearer:
            token = build_logins(self.home).create_token("tests", "act").token
            self.bearer = {"Authorization": f"Bearer {token}"}

    def make_link(self, scope: LoginScope = "act") -> str:
        return build_logins(self.home).link(scope).url

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        assert self._process is not None
        self._process.send_signal(number)
        self._process.communicate(timeout=60)


@contextmanager
def run_server(home: Path, **environment: str) -> Iterator[WebServer]:
    server = WebServer(home, **environment)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """For tests that are plain functions: it has an event loop of its own."""
    found = shutil.which("chromium")
    if found is None:
        pytest.skip(ABSENT)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield launched
        launched.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[OpenPage]:
    """A page that is logged in. It fails the test on an error of its scripts, on anything its console says against it
    (`quiet=False` where a refusal is what is tried), and on a request to anywhere else."""
    opened: list[Page] = []
    faults: list[str] = []

    def open_new(
        server: WebServer, hash_: str = "#/", *, width: int = 1280, theme: str = "light", quiet: bool = True
    ) -> Page:
        def check_request(asked: Request) -> None:
            if not asked.url.startswith(server.url):
                faults.append(f"asked {asked.url}")

        def note_complaint(line: ConsoleMessage) -> None:
            if line.type == "error" and not line.location["url"].endswith("/favicon.ico"):  # of where it logs in
                faults.append(line.text)

        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if theme == "dark" else "light"
        )
        context.on("request", check_request)
        page = context.new_page()
        opened.append(page)
        page.on("pageerror", lambda error: faults.append(str(error)))
        if quiet:
            page.on("console", note_complaint)
        log_in(page, server)
        page.goto(f"{server.url}{hash_}")
        return page

    yield open_new
    for page in opened:
        page.context.close()
    assert not faults, faults


LOG_IN = """async (code) => {
    const answer = await fetch("/login", { method: "POST", body: JSON.stringify({ code }),
        headers: { "Content-Type": "application/json" } });
    localStorage.setItem("zuno-session", (await answer.json()).secret);
}"""


def log_in(page: Page, server: WebServer, scope: LoginScope = "act") -> None:
    """As the page does by its link, without the first page being drawn for it."""
    page.goto(f"{server.url}icon.svg")
    page.evaluate(LOG_IN, server.make_link(scope).partition("#login=")[2])


def wait_until_drawn(page: Page) -> None:
    expect(page.locator("main[data-shown]")).to_be_visible(timeout=SLOWLY)
    expect(page.locator("main .loading")).to_have_count(0, timeout=SLOWLY)
    expect(page.locator(".chart-figure:not([data-drawn])")).to_have_count(0, timeout=SLOWLY)


def wait_until_connected(page: Page) -> None:
    expect(page.locator("#wire")).to_have_text("connected", timeout=SLOWLY)


def type_word(page: Page, word: str) -> None:
    """Into the dialog that asks for it: its button waits for the whole word."""
    dialog = page.get_by_role("dialog")
    act = dialog.locator("button[type=submit]")
    expect(act).to_be_disabled(timeout=SLOWLY)
    dialog.get_by_role("textbox").fill(word[:-1])
    expect(act).to_be_disabled()
    dialog.get_by_role("textbox").fill(word)
    act.click()
