"""Take the pictures of the page in docs/ anew: `make pictures`. Needs Chromium; look at each before it is kept."""

from __future__ import annotations

import asyncio
import shutil
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from tests.crash.learning import open_position
from tests.wire.browser import SLOWLY, WebServer, log_in, run_server, wait_until_connected, wait_until_drawn
from tests.wire.commands import run_zuno

DOCS = Path(__file__).parents[1] / "docs"
WIDTH, PHONE = 1280, (390, 844)
GAP = 12
COLOURS = 96
"""Of a picture, the rare ones too: all six stay below 300 kB."""


def prepare(home: Path) -> dict[str, tuple[str, int]]:
    """A home with a position at its edge, a plan, an open trade and a run; addresses and heights of the pictures."""
    run_zuno(home, "data", "synth", "--seed", "7")
    run_zuno(home, "sim", "move", "--percent", "-0.6")
    plan = run_zuno(home, "lp", "recommend", "rebalance", "1", "--profile", "conservative", "--json").document["planId"]
    run_zuno(home, "plan", "simulate", plan)
    asyncio.run(open_position(home))
    run = run_zuno(home, "trade", "run", "BTCUSDT", "--json").document["runId"]
    return {
        "home": ("#/", 800),
        "plan": (f"#/plans/{plan}", 860),
        "position": ("#/liquidity/1?chain=sim", 680),
        "run": (f"#/runs/{run}", 960),
        "trading": ("#/trading", 960),
    }


def take(
    browser: Browser,
    server: WebServer,
    address: str,
    size: tuple[int, int],
    *,
    dark: bool = False,
    scroll: str = "",
    debate: bool = False,
) -> Image.Image:
    """What a browser shows at an address, scrolled to an element or after a debate if that is asked for."""
    width, height = size
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light")
    page: Page = context.new_page()
    log_in(page, server)
    page.goto(f"{server.url}{address}")
    wait_until_drawn(page)
    wait_until_connected(page)
    if debate:
        page.get_by_role("button", name="Recommend rebalance").click()
        page.get_by_role("link", name="Open the plan").wait_for(timeout=SLOWLY)
    if scroll:
        page.locator(scroll).first.evaluate("node => scrollTo(0, scrollY + node.getBoundingClientRect().top - 60)")
    page.wait_for_timeout(500)
    picture = Image.open(BytesIO(page.screenshot()))
    context.close()
    return picture.convert("RGB")


def save(picture: Image.Image, name: str) -> None:
    few = picture.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(DOCS / f"page-{name}.png", optimize=True)


def main() -> None:
    with TemporaryDirectory() as folder:
        home = Path(folder)
        picture_all(home, prepare(home))


def picture_all(home: Path, pages: dict[str, tuple[str, int]]) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        with run_server(home) as server:
            for name, (address, height) in pages.items():
                dark, debate = name in ("trading", "run"), name == "position"
                save(take(browser, server, address, (WIDTH, height), dark=dark, debate=debate), name)
            phones = [
                take(browser, server, pages["home"][0], PHONE, dark=True),
                take(browser, server, pages["trading"][0], PHONE, dark=True, scroll='h2:text-is("Market")'),
                take(browser, server, pages["position"][0], PHONE, dark=True),
            ]
        strip = Image.new("RGB", (len(phones) * (PHONE[0] + GAP) - GAP, PHONE[1]), "white")
        for place, picture in enumerate(phones):
            strip.paste(picture, (place * (PHONE[0] + GAP), 0))
        save(strip, "phone")


if __name__ == "__main__":
    main()
