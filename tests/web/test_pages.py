"""Every page in a browser, on a home that strangers wrote in: drawn, sourced, accessible, and operated by keyboard."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, Request, Route, expect

from tests.crash.learning import open_position
from tests.wire.browser import SLOWLY, OpenPage, WebServer, run_server, wait_until_connected, wait_until_drawn
from tests.wire.commands import run_zuno
from tests.wire.hostile_home import FLAG, IMAGE, SPOKEN, HostileHome, write_hostile_home
from zuno.doors.web.services import DOCUMENT_TYPE

POSITION = "#/liquidity/2?chain=sim"
RUN = re.compile(r"#/runs/run_[0-9a-f]{16}$")
WATCH_NODES = """() => {
    window.seen = new Set();
    const look = () => {
        for (const node of document.querySelectorAll(".node[data-state]")) window.seen.add(node.dataset.state);
    };
    new MutationObserver(look).observe(document.body, { subtree: true, attributes: true, childList: true });
}"""
"""Notes every state that a node of the graph was in."""
WATCH_ENTRIES = """(() => {
    window.entries = [];
    const whole = window.fetch;
    const note = async (reader) => {
        for (let text = ""; ;) {
            const { done, value } = await reader.read();
            if (done) return;
            const events = (text + value).split("\\n\\n");
            text = events.pop();
            for (const event of events) {
                if (/^event: entry$/m.test(event)) window.entries.push(/^id: (.*)$/m.exec(event)[1]);
            }
        }
    };
    window.fetch = async (address, options) => {
        const answer = await whole(address, options);
        if (!String(address).endsWith("/events") || !answer.ok) return answer;
        const [read, noted] = answer.body.tee();
        note(noted.pipeThrough(new TextDecoderStream()).getReader()).catch(() => {});
        return new Response(read, answer);
    };
})()"""
"""Notes the id of every kept event that arrives, before the page's own scripts run."""
UNSOURCED = """() => [...document.querySelectorAll("main .panel, main .figures-strip")]
    .filter((box) => /\\d/.test([...box.querySelectorAll("td, dd, svg text")].map((part) => part.textContent).join("")))
    .filter((box) => !box.querySelector(".source a[href^='#/document/']"))
    .map((box) => box.querySelector("h2, dt")?.textContent ?? box.className)"""
"""Boxes with numbers that name no document as their source."""
WIDE_TABLES = """() => [...document.querySelectorAll("main .table-wrap")]
    .filter((wrap) => wrap.checkVisibility() && wrap.scrollWidth > wrap.clientWidth + 1)
    .map((wrap) => wrap.getAttribute("aria-label"))"""


@pytest.fixture(scope="module")
def written(invented_market: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, HostileHome]:
    """The demo world with a position at the edge of its range, an open long, and texts of strangers everywhere."""
    home = tmp_path_factory.mktemp("page")
    (home / "market").symlink_to(invented_market)
    assert run_zuno(home, "sim", "move", "--percent", "-0.6").code == 0
    asyncio.run(open_position(home))
    return home, asyncio.run(write_hostile_home(home))


@pytest.fixture(scope="module")
def server(written: tuple[Path, HostileHome]) -> Iterator[WebServer]:
    with run_server(written[0]) as running:
        yield running


def list_pages(hostile: HostileHome) -> dict[str, tuple[str, ...]]:
    """Addresses, and what of strangers' texts is read there."""
    return {
        "#/": (),
        "#/liquidity": (),
        POSITION: (),
        f"#/plans/{hostile.plan_id}": (IMAGE, SPOKEN),
        "#/trading": (),
        f"#/runs/{hostile.run_id}": (),
        "#/trust": (IMAGE,),
        "#/lab": (IMAGE,),
        f"#/lab/{hostile.report_id}": (IMAGE,),
    }


def find_violations(page: Page, options: dict[str, Any] | None = None) -> list[str]:
    found = Axe().run(page, options=options).response["violations"]
    return [f"{rule['id']}: {rule['nodes'][0]['html'][:200]}" for rule in found if rule["impact"] != "minor"]


@pytest.mark.soak(every=2)
@pytest.mark.slow
@pytest.mark.parametrize("width", [1440, 390])
def test_every_page_is_drawn_sourced_and_readable_and_runs_nothing_of_strangers(
    server: WebServer, written: tuple[Path, HostileHome], open_page: OpenPage, width: int
) -> None:
    page = open_page(server, "#/", width=width)
    for address, texts in list_pages(written[1]).items():
        page.goto(f"{server.url}{address}")
        wait_until_drawn(page)
        expect(page.locator("#mode")).to_have_text("SYNTHETIC")
        expect(page.locator("main .notice.bad")).to_have_count(0)
        assert page.evaluate(UNSOURCED) == [], address
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{address} is wider than {width}"
        if not texts:  # a stranger's word may be as long as it likes
            assert page.evaluate(WIDE_TABLES) == [], address
        for text in texts:
            expect(page.locator("main")).to_contain_text(text)
        assert page.locator("main img, main script, main iframe, main [onload], main [onerror]").count() == 0
        assert page.evaluate(f"window.{FLAG}") is None, address
        page.emulate_media(color_scheme="light")
        assert find_violations(page) == [], f"{address}, light"
        page.emulate_media(color_scheme="dark")
        assert find_violations(page, {"runOnly": ["color-contrast"]}) == [], f"{address}, dark"


@pytest.mark.slow
def test_a_cycle_is_followed_to_its_ruling_acted_on_and_replayed(server: WebServer, open_page: OpenPage) -> None:
    page = open_page(server, "#/trading")
    page.get_by_label("execute").check(timeout=SLOWLY)
    page.evaluate(WATCH_NODES)  # before there is a run: on a busy machine it may be half over when its page is there
    page.get_by_role("button", name="Run a cycle").click()
    expect(page).to_have_url(RUN, timeout=SLOWLY)
    expect(page.locator(".node[data-state]").first).to_be_visible(timeout=SLOWLY)
    expect(page.get_by_role("heading", name="Ruling", exact=True).first).to_be_visible(timeout=SLOWLY)
    run_id = page.url.rpartition("/")[2]
    document = page.request.get(f"{server.url}api/v1/trading/runs/{run_id}", headers=server.bearer).json()["run"]
    verdicts = page.locator(".verdict").all_inner_texts()
    assert document["decision"]["decision"] in verdicts
    assert document["ruling"]["decision"] in verdicts
    assert document["execution"] is not None, "it was to be executed"
    expect(page.locator(".node[data-state=waits]")).to_have_count(0)
    expect(page.locator(".node:not([data-state])")).to_have_count(0)
    expect(page.locator("p.answer")).to_contain_text(document["symbol"])
    expect(page.locator("main .acts a.primary")).to_have_count(1)
    assert {"waits", "speaks", "done"} <= set(page.evaluate("[...window.seen]")), "nodes were not told live"
    for change in document["ruling"]["changes"]:
        expect(page.locator(".changes")).to_contain_text(change["why"])
    page.get_by_role("button", name="Replay").click()
    expect(page.locator(".notice.good")).to_contain_text("same bytes", timeout=SLOWLY)
    page.goto(f"{server.url}#/trust")
    page.get_by_role("button", name="Verify the journal").click(timeout=SLOWLY)
    expect(page.locator(".notice.good")).to_contain_text("entries hold", timeout=SLOWLY)


def test_a_page_shows_headline_urgent_lines_facts_and_acts_of_the_document(
    server: WebServer, open_page: OpenPage
) -> None:
    page = open_page(server, "#/trading")
    wait_until_drawn(page)
    headers = {**server.bearer, "Accept": DOCUMENT_TYPE}
    document = page.request.get(f"{server.url}api/v1/trading/account", headers=headers).json()["document"]
    expect(page.locator("h1")).to_have_text(document["headline"]["text"])
    figures = [fact["label"] for section in document["sections"] for fact in section["facts"] if fact["figure"]]
    shown = page.locator(".figures-strip").first.locator("dt").all_inner_texts()
    assert [label.lower() for label in shown[: len(figures)]] == [label.lower() for label in figures]
    names = page.locator(".acts > *").all_inner_texts()
    assert names[: len(document["acts"])] == [act["label"] for act in document["acts"]]

    def answer_hostile(route: Route) -> None:
        answer = route.fetch().json()
        value = {"text": IMAGE, "tone": "warn", "kind": "foreign"}
        acts = [
            {"label": "Run", "command": "trade why run_0000000000000000"},
            {"label": IMAGE, "command": f"trade {IMAGE}"},
        ]
        if "document" in answer:  # a panel asks for the view alone
            answer["document"] |= {"headline": value, "urgent": [value], "notes": [value], "acts": acts}
        route.fulfill(json=answer)

    page.route("**/api/v1/trading/account*", answer_hostile)
    page.reload()
    wait_until_drawn(page)
    for place in ("h1", ".notice.urgent", ".acts .copy code"):
        expect(page.locator(place).first).to_contain_text(IMAGE)
    assert page.locator(".acts a").first.get_attribute("href") == "#/runs/run_0000000000000000"
    assert page.evaluate(f"window.{FLAG}") is None
    assert page.locator("main img").count() == 0


def press_until(page: Page, wanted: Locator, most: int = 60) -> None:
    """Tab on until `wanted` has the focus, which can be seen wherever it is."""
    for _ in range(most):
        page.keyboard.press("Tab")
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none", page.evaluate("document.activeElement.outerHTML.slice(0, 200)")
        if wanted.evaluate("(element) => element === document.activeElement"):
            return
    raise AssertionError(f"no way to {wanted} by Tab")


@pytest.mark.slow
def test_the_page_is_operated_by_keyboard_alone(server: WebServer, open_page: OpenPage) -> None:
    page = open_page(server)
    page.reload()  # whoever came by a link of the page begins in its content
    wait_until_drawn(page)
    press_until(page, page.locator("#skip"), 1)
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("2")
    expect(page).to_have_url(re.compile("#/liquidity$"))
    wait_until_drawn(page)
    press_until(page, page.get_by_role("link", name="ETH/USDC 0.30").last)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"#/liquidity/2\?chain=sim$"))
    wait_until_drawn(page)
    press_until(page, page.locator(".chart[tabindex]").first)
    page.keyboard.press("End")
    history = page.request.get(f"{server.url}api/v1/lp/positions/2/history", headers=server.bearer).json()
    expect(page.locator(".readout").first).to_contain_text(f"{float(history['prices'][-1]['price']):,.2f}")
    press_until(page, page.get_by_label("Change of the price in percent"))
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    tried = page.request.get(
        f"{server.url}api/v1/lp/positions/2/whatif", params={"move": "-3%"}, headers=server.bearer
    ).json()
    expect(page.locator(".split")).to_contain_text(f"{float(tried['worth']):,.2f}", timeout=SLOWLY)


@pytest.mark.slow
def test_the_kill_switch_asks_for_its_word_by_keyboard(server: WebServer, open_page: OpenPage) -> None:
    page = open_page(server, "#/trading", quiet=False)  # the server asks for the word by a refusal

    def count_open() -> int:
        return len(page.request.get(f"{server.url}api/v1/trading/positions", headers=server.bearer).json()["positions"])

    wait_until_drawn(page)
    before = count_open()
    assert before
    switch = page.get_by_role("button", name="Kill switch")
    press_until(page, switch)
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("textbox")).to_be_focused(timeout=SLOWLY)
    page.keyboard.type("kil")
    page.keyboard.press("Enter")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(switch).to_be_focused()
    assert count_open() == before, "nothing happens without the word"
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("textbox")).to_be_focused(timeout=SLOWLY)
    page.keyboard.type("kill")
    page.keyboard.press("Enter")
    expect(page.locator(".notice.good")).to_contain_text("No position and no order is left.", timeout=SLOWLY)
    expect(page.locator(".notice.warn", has_text="kill_switch")).to_be_visible(timeout=SLOWLY)
    expect(page.locator("main")).to_contain_text("No position is open.", timeout=SLOWLY)
    assert count_open() == 0


@pytest.mark.soak
def test_a_page_that_watches_outlives_its_server_and_misses_nothing(server: WebServer, open_page: OpenPage) -> None:
    page = open_page(server, "#/lab", quiet=False)  # a browser says of a lost connection that it is lost
    page.add_init_script(WATCH_ENTRIES)
    asked: list[Request] = []
    page.goto(f"{server.url}{POSITION}")
    page.reload()
    page.on("request", lambda request: asked.append(request))
    page.evaluate("window.unbroken = true")
    wait_until_drawn(page)
    wait_until_connected(page)
    page.get_by_role("button", name="Recommend rebalance").click()
    expect(page.locator(".debate.live .thought").first).to_be_visible(timeout=SLOWLY)
    server.stop(signal.SIGKILL)
    expect(page.locator("#wire")).to_have_text("reconnecting", timeout=SLOWLY)
    made = run_zuno(server.home, "lp", "recommend", "create", "2 ETH safely", "--json").document
    server.start()
    wait_until_connected(page)
    expect(page.locator(".debate-state")).to_contain_text(re.compile("Open the plan|Ask again"), timeout=SLOWLY)
    page.get_by_role("link", name="Liquidity", exact=True).first.click()
    expect(page.locator("main")).to_contain_text(made["planId"][-4:], timeout=SLOWLY)
    with sqlite3.connect(server.home / "journal.db") as journal:
        rows = journal.execute("SELECT seq, hash FROM entries ORDER BY seq").fetchall()
    kept = [f"{seq}-{digest[:16]}" for seq, digest in rows]
    page.wait_for_timeout(400)  # the reader of the journal looks three times a second
    streams = [request.all_headers() for request in asked if "/api/v1/events" in request.url]
    assert any("last-event-id" in headers for headers in streams)
    told = page.evaluate("window.entries")
    assert told == kept[-len(told) :], "each once, in their order, none left out"
    assert made["requestId"] in {row[0] for row in _requests(server.home, rows[-len(told)][0])}
    assert page.evaluate("window.unbroken"), "nothing was loaded again"


def hide_page(page: Page, *, hidden: bool) -> None:
    """As a tab behind another one, or in front again."""
    page.evaluate(
        """(hidden) => {
            Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
            document.dispatchEvent(new Event("visibilitychange"));
        }""",
        hidden,
    )


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
def test_home_says_one_sentence_what_is_urgent_and_one_act_above_every_figure(
    server: WebServer, open_page: OpenPage, width: int
) -> None:
    page = open_page(server, width=width)
    wait_until_drawn(page)
    headers = {**server.bearer, "Accept": DOCUMENT_TYPE}
    document = page.request.get(f"{server.url}api/v1/home", headers=headers).json()["document"]
    expect(page.locator("h1")).to_have_text(document["headline"]["text"])
    # A command in a line is a box of its own, and the space beside it is the page's.
    notices = ["".join(text.split()) for text in page.locator(".notice.urgent").all_inner_texts()]
    assert notices == ["".join(line["text"].replace("`", "").split()) for line in document["urgent"]]
    assert page.locator("main .acts > *").all_inner_texts() == [document["acts"][0]["label"]]
    first = page.locator(".figures-strip").first.bounding_box()
    for place in page.locator("h1, .notice.urgent, main .acts > *").all():
        box = place.bounding_box()
        assert box is not None
        assert first is not None
        assert box["y"] + box["height"] <= first["y"]
    page.locator("main .acts > *").click()
    expect(page).not_to_have_url(re.compile("#/$"))
    page.go_back()
    expect(page.locator("h1")).to_have_text(document["headline"]["text"], timeout=SLOWLY)


@pytest.mark.soak
def test_home_is_asked_for_again_when_its_tab_is_looked_at(server: WebServer, open_page: OpenPage) -> None:
    page = open_page(server)
    wait_until_drawn(page)
    wait_until_connected(page)
    with page.expect_request(re.compile("/api/v1/home"), timeout=SLOWLY):
        hide_page(page, hidden=True)
        hide_page(page, hidden=False)


@pytest.mark.soak
def test_a_page_follows_its_server_into_another_mode_and_out_of_its_login(
    server: WebServer, open_page: OpenPage
) -> None:
    page = open_page(server, "#/trading", quiet=False)  # refusals are what is tried
    wait_until_drawn(page)
    wait_until_connected(page)
    expect(page.locator("#mode")).to_have_text("SYNTHETIC")
    page.locator("time[data-at]").first.evaluate("(shown) => { shown.dataset.at = String(Date.now() - 3600e3); }")
    expect(page.locator("time[data-at]").first).to_have_text("60 m ago")

    def answer_live(route: Route) -> None:
        accounts = [{"name": "live", "mode": "live"}, {"name": "paper", "mode": "paper"}]
        real = {"mode": "live", "trading": "live", "liquidity": "synthetic", "accounts": accounts}
        route.fulfill(json={**route.fetch().json(), **real})

    def ask_word(route: Route) -> None:
        acts.append(route.request.post_data_json)
        route.fulfill(status=409, json={"detail": "Close everything?", "word": "kill"})

    acts: list[Any] = []
    page.route("**/api/v1/session", answer_live)
    page.route(
        re.compile("/trading/.*account=live"),
        lambda route: route.continue_(url=route.request.url.replace("account=live", "")),
    )
    page.route("**/api/v1/trading/kill", ask_word)
    hide_page(page, hidden=True)
    expect(page.locator("#wire")).to_have_text("reconnecting")
    with (
        page.expect_request(lambda asked: asked.url.endswith("/events") and "last-event-id" in asked.headers),
        page.expect_request(re.compile("account=live")),
    ):
        hide_page(page, hidden=False)
    wait_until_connected(page)
    expect(page.locator("#mode")).to_have_text("LIVE")
    expect(page.locator(".banner-parts")).to_have_text("Trading: live. Liquidity: sim, play money.")
    expect(page.locator(".accounts [aria-pressed=true]")).to_have_text("live")
    wait_until_drawn(page)
    page.get_by_role("button", name="Kill switch").click()
    expect(page.get_by_role("dialog").locator(".facts dd").first).to_have_text("live")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="paper", exact=True).click()
    wait_until_drawn(page)
    page.get_by_role("button", name="Kill switch").click()
    expect(page.get_by_role("dialog").locator(".facts dd").first).to_have_text("paper")
    page.keyboard.press("Escape")
    assert acts == [{"account": "live"}, {"account": "paper"}]
    page.unroute_all()
    page.context.clear_cookies()
    page.get_by_role("link", name="Trust", exact=True).click()
    expect(page.get_by_role("heading", name="Not signed in")).to_be_visible()
    expect(page.locator("#wire")).to_have_text("reconnecting")


def _requests(home: Path, first: int) -> list[tuple[str]]:
    with sqlite3.connect(home / "journal.db") as journal:
        return journal.execute("SELECT DISTINCT request_id FROM entries WHERE seq >= ?", (first,)).fetchall()


def test_a_debate_that_waits_says_for_whom_and_for_how_long(server: WebServer, open_page: OpenPage) -> None:
    page = open_page(server, "#/lab")
    waits = [("req_2", "the scout for 3 s"), ("req_1", "the critic for 12 s"), ("req_2", "the scout for 4 s")]
    told = [{"id": debate, "roles": [], "seconds": 0, "text": f"asking {text}"} for debate, text in waits]
    events = "retry: 200\n" + "".join(f"event: waiting\ndata: {json.dumps(data)}\n\n" for data in told)
    page.route("**/api/v1/lp/recommend", lambda route: route.fulfill(status=202, json={"id": "req_1"}))
    page.goto(f"{server.url}{POSITION}")
    wait_until_drawn(page)
    page.route("**/api/v1/events*", lambda route: route.fulfill(content_type="text/event-stream", body=events))
    page.reload()
    wait_until_drawn(page)
    page.get_by_role("button", name="Recommend rebalance").click()
    expect(page.locator(".debate-waiting")).to_have_text("asking the critic for 12 s", timeout=SLOWLY)


@pytest.mark.slow
def test_what_is_said_live_is_shown_as_text(server: WebServer, open_page: OpenPage) -> None:
    page = open_page(server, "#/lab")
    said = {"id": "req_1", "role": IMAGE, "round": 0, "key": "1", "text": f"{IMAGE} veto"}
    events = f"retry: 200\nevent: thought\ndata: {json.dumps(said)}\n\n"
    events += f"event: debate\ndata: {json.dumps({'id': 'req_1', 'planId': None, 'error': IMAGE})}\n\n"
    page.route("**/api/v1/lp/recommend", lambda route: route.fulfill(status=202, json={"id": "req_1"}))
    page.goto(f"{server.url}{POSITION}")
    wait_until_drawn(page)
    page.route("**/api/v1/events*", lambda route: route.fulfill(content_type="text/event-stream", body=events))
    page.reload()
    wait_until_drawn(page)
    page.get_by_role("button", name="Recommend rebalance").click()
    expect(page.locator(".debate.live")).to_contain_text(IMAGE, timeout=SLOWLY)
    expect(page.locator(".debate-state")).to_contain_text(IMAGE, timeout=SLOWLY)
    assert page.evaluate(f"window.{FLAG}") is None
    assert page.locator("main img").count() == 0


def test_a_debate_that_overtakes_the_answer_to_its_request_still_ends(
    server: WebServer, written: tuple[Path, HostileHome], open_page: OpenPage
) -> None:
    page = open_page(server, "#/lab")
    plan, streams = written[1].plan_id, list[Route]()
    told = {"id": "req_2", "planId": None, "error": "of another"}, {"id": "req_1", "planId": plan}
    events = "retry: 60000\n" + "".join(f"event: debate\ndata: {json.dumps(data)}\n\n" for data in told)

    def answer_late(route: Route) -> None:
        streams.pop().fulfill(content_type="text/event-stream", body=events)
        page.wait_for_timeout(500)
        route.fulfill(status=202, json={"id": "req_1"})

    page.route("**/api/v1/lp/recommend", answer_late)
    page.route("**/api/v1/events*", lambda route: streams.append(route))
    page.goto(f"{server.url}{POSITION}")
    page.reload()
    wait_until_drawn(page)
    page.get_by_role("button", name="Recommend rebalance").click()
    link = page.get_by_role("link", name="Open the plan")
    expect(link).to_have_attribute("href", f"#/plans/{plan}", timeout=3_000)
    expect(page.locator(".debate-decision h3")).not_to_be_empty(timeout=SLOWLY)


@pytest.mark.slow
def test_the_prefilled_example_leads_to_a_plan_that_opens_something(server: WebServer, open_page: OpenPage) -> None:
    page = open_page(server, "#/liquidity")
    wait_until_drawn(page)
    expect(page.get_by_label("What to open, in words")).not_to_have_value("")
    page.get_by_role("button", name="Recommend", exact=True).dblclick()
    expect(page.locator(".debate-decision h3")).to_contain_text("open ", timeout=SLOWLY)
    expect(page.locator(".debate-decision h3")).not_to_contain_text("nothing")
    expect(page.locator(".debate-decision")).to_contain_text("Runner-up")
