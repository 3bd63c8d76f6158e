"""How soon the page is there: `python -m benchmarks.page`.

Chromium with an empty cache opens the first page of the demo world, several times. Bars: everything but charts drawn
within 1.5 s of the request and at most 200 kB over the wire for it, charts drawn within 4 s, and a node of a cycle lit
within 1 s of its button, each in the middle of several. Then Home of 200 positions on a local chain and an account of
20,000 events, while no block comes: the least of several looks, which is what it takes where nothing else runs, within
0.7 s. Beside it, without a bar, stand the middle of them and that of looks at a new block each, where the local chain,
which is written in Python, answers anew who owns the positions. Milliseconds are absolute because the promise is; the
yardstick beside them is the bar.
"""

from __future__ import annotations

import asyncio
import json
import os
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

import httpx2
from playwright.sync_api import Browser, sync_playwright

from benchmarks.chain import build
from benchmarks.figure import report
from benchmarks.records import MANY, fill_home
from zuno.adapters.file_lock import FileLock
from zuno.settings import read_settings
from zuno.wiring import Application
from zuno.wiring.web import build_logins
from zuno_devnet.node import DevnetNode
from zuno_devnet.server import serve

VIEWS, LOOKS, CYCLES = 7, 15, 5
FIRST_VIEW_MS, CHARTS_MS, WIRE_BYTES = 1_500, 4_000, 200_000
POSITIONS, LARGE_MS, LIGHT_MS = 200, 700, 1_000
HOURS = 8 * 24
"""Of the local chain: longer than the week that Home looks back."""
PATIENCE_MS = 300_000
MARKS = "() => Object.fromEntries(performance.getEntriesByType('mark').map((mark) => [mark.name, mark.startTime]))"
WATCH_LIGHT = """() => {
    const button = [...document.querySelectorAll("button")].find((each) => each.textContent === "Run a cycle");
    button.addEventListener("click", () => {
        const began = performance.now();
        const look = () => {
            if (document.querySelector(".node[data-state]")) window.lit = performance.now() - began;
            else requestAnimationFrame(look);
        };
        look();
    }, { capture: true });
}"""


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


def open_first_page(browser: Browser, home: Path, url: str, chain: str | None = None) -> tuple[float, float, int]:
    """Milliseconds to the first view and to its charts, and the bytes that came over the wire by then; with `chain`,
    after another block on it."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    wire = {"bytes": 0}

    def count(event: dict[str, Any]) -> None:
        wire["bytes"] += int(event["encodedDataLength"])

    page.goto(build_logins(home).link("look").url, wait_until="commit")
    page.locator("main[data-shown]").wait_for(timeout=PATIENCE_MS)
    page.goto("about:blank")
    if chain is not None:
        mine_block(chain)
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


def light_cycle(browser: Browser, home: Path, url: str) -> float:
    """Milliseconds from the button to the first node that is said to be at work."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.goto(build_logins(home).link("act").url, wait_until="commit")
    page.locator("#mode:not(:empty)").wait_for(timeout=PATIENCE_MS)
    page.goto(f"{url}#/trading")
    page.locator("main[data-shown=trading]").wait_for(timeout=PATIENCE_MS)
    page.evaluate(WATCH_LIGHT)
    page.get_by_role("button", name="Run a cycle").click()
    page.locator("p.answer").wait_for(timeout=PATIENCE_MS)
    lit: float = page.evaluate("window.lit")
    context.close()
    return lit


@contextmanager
def fill_large_home(home: Path) -> Iterator[str]:
    """An account of many events, and the address of a running local chain on which the wallet has many positions."""

    async def fill() -> None:
        house = Application(read_settings({"ZUNO_DETERMINISTIC": "true"}, home))
        await fill_home(house, MANY)
        await house.close()

    asyncio.run(fill())
    chain = build(POSITIONS).chain
    for _ in range(HOURS):
        chain.apply_block([], chain.head.timestamp + 3_600)
    with FileLock(home / "devnet.lock"), serve(DevnetNode(chain)) as url:
        (home / "devnet.json").write_text(json.dumps({"url": url, "pid": os.getpid()}))
        yield url


def mine_block(chain: str) -> None:
    """So that no answer about the head can be one that was kept."""
    httpx2.post(chain, json={"jsonrpc": "2.0", "id": 1, "method": "evm_mine", "params": []}).raise_for_status()


def main() -> int:
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.stderr.write("chromium is not installed: apt-get install chromium\n")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        demo, large = Path(folder) / "demo", Path(folder) / "large"
        demo.mkdir()
        large.mkdir()
        with (
            fill_large_home(large) as chain,
            serve_demo(demo) as url,
            serve_demo(large) as place,
            sync_playwright() as driver,
        ):
            browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            open_first_page(browser, demo, url)  # invents the market and plays the chain
            views = [open_first_page(browser, demo, url) for _ in range(VIEWS)]
            lights = [light_cycle(browser, demo, url) for _ in range(CYCLES)]
            open_first_page(browser, large, place)
            homes = [open_first_page(browser, large, place) for _ in range(LOOKS)]
            moved = [open_first_page(browser, large, place, chain) for _ in range(VIEWS)]
            browser.close()
    first, charts = (statistics.median(view[place] for view in views) for place in (0, 1))
    light, wire = statistics.median(lights), max(view[2] for view in (*views, *homes))
    middle, later = (round(statistics.median(view[0] for view in views)) for views in (homes, moved))
    about = {"positions": POSITIONS, "events": MANY, "p50": middle, "at_a_new_block": later}
    unit, home = f"ms, p50 of {VIEWS}", min(view[0] for view in homes)  # what else runs here can only add to it
    return (
        0
        if all(
            (
                report("page first view", first, unit, FIRST_VIEW_MS, "the bar", 1),
                report("page charts drawn", charts, unit, CHARTS_MS, "the bar", 1),
                report("page over the wire", wire, "bytes", WIRE_BYTES, "the bar", 1),
                report(
                    "page, a cycle's first light",
                    light,
                    f"ms, p50 of {CYCLES}",
                    LIGHT_MS,
                    "the bar",
                    1,
                ),
                report("page, a large home complete", home, f"ms, least of {LOOKS}", LARGE_MS, "the bar", 1, **about),
            )
        )
        else 1
    )


if __name__ == "__main__":
    sys.exit(main())
