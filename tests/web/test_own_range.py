"""A range of one's own: dragged, typed and moved by keys while the price runs, answered by the desk and approved."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.web.test_pages import find_violations, hide_page, press_until
from tests.wire.browser import SLOWLY, OpenPage, WebServer, run_server, wait_until_connected, wait_until_drawn
from tests.wire.commands import run_zuno

POSITION = "#/liquidity/2?chain=sim"
NONSENSE = (
    "abc",
    "-3000",
    "",
    "1e3",
    "3.0.0",
    "9" * 39,
    "<img src=x onerror=hurt=true>",
    "３０００",
    "3000 USDC",
    "\u202e0003",
)


SLOW = """() => { const real = window.fetch; window.fetch = async (...asked) => { const answer = await real(...asked);
    if (String(asked[0]).includes("/lp/range")) await new Promise((done) => setTimeout(done, 800));
    return answer; }; }"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("range")


@pytest.fixture(scope="module")
def server(home: Path, invented_market: Path) -> Iterator[WebServer]:
    home.mkdir(exist_ok=True)
    (home / "market").symlink_to(invented_market)
    with run_server(home) as running:
        yield running


def open_picker(server: WebServer, open_page: OpenPage, **options: Any) -> Page:
    page = open_page(server, POSITION, **options)
    wait_until_drawn(page)
    page.locator("#own-range summary").first.click()
    wait_for_answer(page)
    return page


def wait_for_answer(page: Page) -> None:
    expect(page.locator(".range-results:not(.old) .stat").first).to_be_visible(timeout=SLOWLY)


def handle(page: Page, edge: str) -> Locator:
    return page.get_by_role("slider", name=f"{edge} edge")


def read_edges(page: Page) -> tuple[float, float]:
    values = [handle(page, edge).get_attribute("aria-valuenow") for edge in ("Lower", "Upper")]
    return float(values[0] or 0), float(values[1] or 0)


def ask_server(page: Page, server: WebServer, **query: Any) -> Any:
    return page.request.get(
        f"{server.url}api/v1/lp/range", params={"position": "2", **query}, headers=server.bearer
    ).json()


def read_figure(page: Page, name: str) -> str:
    return (
        page.locator(".range-results .stat", has=page.get_by_text(name, exact=True)).locator(".stat-value").inner_text()
    )


def take_hold(page: Page, edge: str, by: int) -> None:
    """Press the pointer on an edge and move it, without letting go."""
    handle(page, edge).scroll_into_view_if_needed()
    box = handle(page, edge).bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + by, y, steps=4)


def test_edges_are_dragged_moved_by_keys_and_typed_and_the_servers_figures_are_shown(
    server: WebServer, open_page: OpenPage
) -> None:
    page = open_picker(server, open_page)
    expect(page.locator(".range-results .badge").first).to_have_text("held now")
    lower, upper = read_edges(page)
    take_hold(page, "Upper", -60)
    page.mouse.up()
    wait_for_answer(page)
    dragged = read_edges(page)
    assert dragged[0] == lower
    assert dragged[1] < upper - 20
    handle(page, "Lower").focus()
    page.keyboard.press("ArrowRight")
    spacing = ask_server(page, server, lower="2500", upper="3500")["candidate"]["pool"]["tickSpacing"]
    assert read_edges(page)[0] == pytest.approx(lower * 1.0001**spacing, rel=1e-4)
    page.keyboard.press("PageDown")
    assert read_edges(page)[0] == pytest.approx(lower * 1.0001 ** (spacing * -9), rel=1e-4)
    fields = page.locator(".range-fields input")
    fields.nth(0).fill("2,900")
    fields.nth(1).fill("3300.5")
    page.wait_for_timeout(200)
    wait_for_answer(page)
    asked = ask_server(page, server, lower="2900", upper="3300.5")
    assert read_figure(page, "Fees, 24 h") == f"{float(asked['candidate']['carry']['fees24h']):,.2f} USDC"
    assert read_figure(page, "Fee cover") == f"{asked['cover']['ratio']:.2f}"
    low, high = (f"{float(asked['candidate'][name]):,.2f}" for name in ("priceLower", "priceUpper"))
    expect(page.locator(".range-results b").first).to_contain_text(f"{low} – {high} USDC per ETH")
    assert read_figure(page, "Buffer") == "−{:.1f} % / +{:.1f} %".format(
        abs(float(asked["bufferLower"])), float(asked["bufferUpper"])
    )
    page.keyboard.press("Tab")
    handle(page, "Lower").focus()
    for _ in range(40):
        page.keyboard.press("PageUp")
    low_edge, high_edge = read_edges(page)
    assert low_edge < high_edge, "an edge does not pass the other"


def test_a_price_that_runs_leaves_what_is_dragged_in_the_hand(
    server: WebServer, open_page: OpenPage, home: Path
) -> None:
    page = open_picker(server, open_page)
    wait_until_connected(page)
    before = page.locator(".range-stage svg text.strong").text_content()
    take_hold(page, "Lower", 50)
    held = read_edges(page)
    typed = page.locator(".range-fields input").nth(0).input_value()
    assert run_zuno(home, "sim", "move", "--percent", "1.5").code == 0
    hide_page(page, hidden=True)
    hide_page(page, hidden=False)
    expect(page.locator(".range-stage svg text.strong")).not_to_have_text(before or "", timeout=SLOWLY)
    assert read_edges(page) == held
    assert page.locator(".range-fields input").nth(0).input_value() == typed
    page.mouse.up()
    wait_for_answer(page)
    assert read_edges(page) == held


def test_prices_are_turned_over_and_the_range_stays(server: WebServer, open_page: OpenPage) -> None:
    page = open_picker(server, open_page)
    page.locator(".range-fields input").nth(0).fill("2800")
    page.locator(".range-fields input").nth(1).fill("3400")
    page.wait_for_timeout(200)
    wait_for_answer(page)
    fees = read_figure(page, "Fees, 24 h")
    turn = page.get_by_role("button", name="Invert", exact=True)
    turn.click()
    expect(turn).to_have_attribute("aria-pressed", "true")
    low, high = read_edges(page)
    assert (low, high) == (pytest.approx(1 / 3400, rel=1e-4), pytest.approx(1 / 2800, rel=1e-4))
    expect(page.locator(".range-results b").first).to_contain_text("ETH per USDC")
    page.locator(".range-fields input").nth(0).fill("0.0003")
    page.wait_for_timeout(200)
    wait_for_answer(page)
    assert read_figure(page, "Fees, 24 h") != fees
    turn.click()
    assert read_edges(page)[1] == pytest.approx(1 / 0.0003, rel=1e-4)


def test_pasted_nonsense_is_refused_in_words_and_may_be_corrected(server: WebServer, open_page: OpenPage) -> None:
    page = open_picker(server, open_page, quiet=False)  # refusals are what is tried
    field, said = page.locator(".range-fields input").nth(0), page.locator("#range-said .notice")
    for turned in (False, True):
        for typed in NONSENSE:
            field.fill(typed)
            expect(said).to_be_visible(timeout=SLOWLY)
            expect(field).to_have_attribute("aria-invalid", "true")
            field.fill("0.0003" if turned else "2900")
            expect(said).to_have_count(0, timeout=SLOWLY)
            wait_for_answer(page)
        page.get_by_role("button", name="Invert", exact=True).click()
    assert page.evaluate("window.hurt") is None
    field.fill("0.00028")
    page.locator(".range-fields input").nth(1).fill("0.00035")
    expect(said).to_contain_text("other way round", timeout=SLOWLY)


@pytest.mark.slow
def test_the_desk_answers_the_own_range_and_it_is_approved_by_keyboard_alone(
    server: WebServer, open_page: OpenPage
) -> None:
    page = open_picker(server, open_page, quiet=False)  # the server asks for words by refusals
    page.locator(".range-fields input").nth(0).fill("2600")
    page.locator(".range-fields input").nth(1).fill("3600")
    page.get_by_label("take mine, even against its advice").check()
    go = page.get_by_role("button", name="Let the desk answer")
    go.dblclick()
    page.locator("#own-range").get_by_role("link", name="Open the plan").click(timeout=SLOWLY)
    expect(page).to_have_url(re.compile(r"#/plans/plan_[0-9a-f]{12}$"), timeout=SLOWLY)
    wait_until_drawn(page)
    plan = page.request.get(f"{server.url}api/v1/lp/plans/{page.url.rpartition('/')[2]}", headers=server.bearer).json()
    assert plan["recommended"]["own"] is True
    own = ask_server(page, server, lower="2600", upper="3600")["candidate"]
    assert [plan["recommended"][edge] for edge in ("tickLower", "tickUpper")] == [own["tickLower"], own["tickUpper"]]
    debates = page.request.get(f"{server.url}api/v1/jobs", headers=server.bearer).json()["jobs"]
    assert len([job for job in debates if job["what"] == "recommend"]) == 1, "a double click argues once"

    approve = page.get_by_role("button", name=re.compile("^Approve"))
    page.locator("main").focus()
    press_until(page, approve)
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    word = dialog.get_by_role("textbox")
    expect(word).to_be_focused(timeout=SLOWLY)
    assert dialog.get_attribute("aria-labelledby")
    assert word.evaluate("(field) => field.labels[0].textContent") == "Type anyway to go on", "it was advised against"
    assert word.evaluate("(field) => document.getElementById(field.getAttribute('aria-describedby')).textContent")
    page.keyboard.type("anyway")
    page.keyboard.press("Enter")
    expect(page.locator("#carry-out .badge").first).to_have_text("approved", timeout=SLOWLY)
    expect(page.locator("#toasts")).to_contain_text("Approved")
    expect(page.get_by_role("button", name=re.compile("^Apply"))).to_be_focused(timeout=SLOWLY)


def test_the_desk_is_asked_about_the_edges_that_are_shown_last(server: WebServer, open_page: OpenPage) -> None:
    page = open_picker(server, open_page)
    page.evaluate(SLOW)
    handle(page, "Upper").press("PageUp")
    with page.expect_request("**/lp/recommend", timeout=SLOWLY) as asked:
        page.get_by_role("button", name="Let the desk answer").click()
        handle(page, "Upper").press("PageUp")
    lower, upper = read_edges(page)
    shown = ask_server(page, server, lower=f"{lower:f}", upper=f"{upper:f}")["candidate"]
    sent = [int(tick) for tick in asked.value.post_data_json["range"]]
    assert sent == pytest.approx([shown["tickLower"], shown["tickUpper"]], abs=60), (
        "a step of what is shown in six digits"
    )


def test_an_opened_picker_is_readable_in_both_themes_and_at_both_widths(server: WebServer, open_page: OpenPage) -> None:
    for width in (1280, 390):
        page = open_picker(server, open_page, width=width)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
        assert find_violations(page) == [], f"{width}, light"
        page.emulate_media(color_scheme="dark")
        assert find_violations(page, {"runOnly": ["color-contrast"]}) == [], f"{width}, dark"
