"""The page as a person opens it: Debian's Chromium against `zuno web` in a process of its own."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.wire.commands import shell
from tests.wire.forked import ZunoProcess

ABSENT = "chromium is not installed: apt-get install chromium"


@dataclass(frozen=True)
class WebPage:
    """A served home, and the link that logs a browser in."""

    home: Path
    url: str
    link: str


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


@pytest.fixture(scope="module")
def serve() -> Callable[[Path], AbstractContextManager[WebPage]]:
    @contextmanager
    def open_server(home: Path) -> Iterator[WebPage]:
        command = ["web", "--port", "0"]
        with ZunoProcess(command, env=shell(home, {}), stdout=PIPE, stderr=PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                lines = iter(process.stdout.readline, "")
                link = next(word for line in lines for word in line.split() if "/login?token=" in word)
                parts = urlsplit(link)
                yield WebPage(home, f"{parts.scheme}://{parts.netloc}/", link)
            finally:
                process.terminate()
                process.communicate(timeout=30)

    return open_server


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """A page that is logged in. It fails the test on an error of its scripts and on a request to anywhere else."""
    opened: list[Page] = []
    faults: list[str] = []

    def open_new(served: WebPage, hash_: str = "#/", width: int = 1280, theme: str = "light") -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if theme == "dark" else "light"
        )
        page = context.new_page()
        opened.append(page)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda asked: None if asked.url.startswith(served.url) else faults.append(asked.url))
        page.goto(served.link)
        page.goto(f"{served.url}{hash_}")
        return page

    yield open_new
    for page in opened:
        page.context.close()
    assert faults == []
