"""How soon the page is there: `python -m benchmarks.page`.

Chromium with an empty cache opens the first page of the demo world, several times. Bars: everything but charts drawn
within 1.5 s of the request and at most 300 kB over the wire for it, charts drawn within 4 s. Milliseconds are absolute
because the promise is; the yardstick beside them is the bar.
"""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright

from benchmarks.figure import report
from zuno.wiring.web import build_logins

VIEWS = 7
FIRST_VIEW_MS, CHARTS_MS, WIRE_BYTES = 1_500, 4_000, 300_000
PATIENCE_MS = 300_000
MARKS = "() => Object.fromEntries(performance.getEntriesByType('mark').map((mark) => [mark.name, mark.startTime]))"


@contextmanager
def serve_demo(home: Path) -> Iterator[str]:
    """The address of a server of its own."""
    command = [sys.executable, "-m", "zuno", "web", "--port", "0", "--home", str(home)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield next(found[0] for line in server.stdout if (found := re.search(r"http\S+/(?=#login=)", line)))
        finally:
            server.terminate()


def open_first_page(browser: Browser, home: Path, url: str) -> tuple[float, float, int]:
    """Milliseconds to the first view and to its charts, and the bytes that came over the wire by then."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    wire = {"bytes": 0}

    def count(event: dict[str, Any]) -> None:
        wire["bytes"] += int(event["encodedDataLength"])

    page.goto(build_logins(home).link("look").url, wait_until="commit")
    page.locator("#mode:not(:empty)").wait_for(timeout=PATIENCE_MS)
    page.goto("about:blank")
    session = context.new_cdp_session(page)
    session.send("Network.enable")
    session.send("Network.setCacheDisabled", {"cacheDisabled": True})
    session.on("Network.loadingFinished", count)
    page.goto(url, wait_until="commit")
    page.locator(".chart-figure[data-drawn]").first.wait_for(timeout=PATIENCE_MS)
    page.locator("main[data-shown]").wait_for(timeout=PATIENCE_MS)
    marks = page.evaluate(MARKS)
    context.close()
    return marks["page-shown"], marks["chart-drawn"], wire["bytes"]


def main() -> int:
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.stderr.write("chromium is not installed: apt-get install chromium\n")
        return 1
    with tempfile.TemporaryDirectory() as folder, serve_demo(Path(folder)) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        open_first_page(browser, Path(folder), url)  # invents the market and plays the chain
        views = [open_first_page(browser, Path(folder), url) for _ in range(VIEWS)]
        browser.close()
    first, charts = (statistics.median(view[place] for view in views) for place in (0, 1))
    wire = max(view[2] for view in views)
    unit = f"ms, p50 of {VIEWS}"
    return (
        0
        if all(
            (
                report("page first view", first, unit, FIRST_VIEW_MS, "the bar", 1),
                report("page charts drawn", charts, unit, CHARTS_MS, "the bar", 1),
                report("page over the wire", wire, "bytes", WIRE_BYTES, "the bar", 1),
            )
        )
        else 1
    )


if __name__ == "__main__":
    sys.exit(main())
