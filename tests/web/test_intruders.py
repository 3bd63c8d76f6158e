"""Another server on this machine, which an owner's browser visits, gets nothing of worth; a login is by a link once, in
every tab, until it is ended."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.web.test_pages import find_violations, hide_page
from tests.wire.browser import SLOWLY, OpenPage, WebServer, log_in, run_server, wait_until_connected, wait_until_drawn
from tests.wire.commands import run_zuno
from tests.wire.hostile_home import FLAG

GUARDED = (
    ("GET", "/api/v1/session"),
    ("GET", "/api/v1/home"),
    ("GET", "/api/v1/events"),
    ("GET", "/api/v1/openapi.json"),
    ("GET", "/api/v1/lab/reports"),
    ("GET", "/metrics"),
    ("POST", "/api/v1/trading/kill"),
    ("POST", "/api/v1/trading/unlock"),
    ("POST", "/api/v1/lp/plans/plan_000000000000/approve"),
    ("POST", "/api/v1/lp/plans/plan_000000000000/apply"),
    ("DELETE", "/api/v1/session"),
)
TRY_EVERYTHING = """async ([zuno, guarded]) => {
    const got = [];
    const attempt = async (name, action) => {
        try {
            const value = await action();
            if (value) got.push(`${name}: ${value}`);
        } catch { /* refused */ }
    };
    for (const [method, path] of guarded) {
        for (const mode of ["cors", "no-cors"]) {
            const body = method === "GET" ? undefined : "{}";
            const options = { method, mode, body, credentials: "include" };
            await attempt(`${mode} ${method} ${path}`, async () => (await fetch(zuno + path, options)).text());
        }
    }
    const sent = { method: "POST", credentials: "include", headers: { "X-Zuno-Session": "x" }, body: "{}" };
    await attempt("header", async () => (await fetch(zuno + "/api/v1/trading/kill", sent)).text());
    await attempt("storage", () => localStorage.getItem("zuno-session"));
    await attempt("cookie", () => document.cookie);
    for (const path of ["/", "/report.html", "/api/v1/session"]) {
        await attempt(`frame ${path}`, () => new Promise((resolve) => {
            const frame = document.createElement("iframe");
            frame.src = zuno + path;
            frame.onload = () => {
                let inside = null;
                try { inside = frame.contentWindow.localStorage.getItem("zuno-session"); } catch { /* not its own */ }
                resolve(inside);
            };
            setTimeout(() => resolve(null), 2000);
            document.body.append(frame);
        }));
    }
    return got;
}"""


class Intruder(ThreadingHTTPServer):
    """A server on another port, which keeps whatever cookies it is sent."""

    cookies: str = ""


class _Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Intruder)
        self.server.cookies = self.headers.get("Cookie", "") or self.server.cookies
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>innocent</title><body></body>")

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


@contextmanager
def run_intruder() -> Iterator[Intruder]:
    server = Intruder(("127.0.0.1", 0), _Answer)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join(30)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, invented_market: Path) -> Iterator[WebServer]:
    home = tmp_path_factory.mktemp("intruders")
    (home / "market").symlink_to(invented_market)
    with run_server(home) as running:
        yield running


def ask(server: WebServer, method: str, path: str, **headers: str) -> int:
    """As a process on this machine asks, with whatever headers it likes."""
    parts = urlsplit(server.url)
    connection = HTTPConnection(str(parts.hostname), parts.port, timeout=60)
    try:
        connection.request(method, path, None if method == "GET" else "{}", headers)
        return connection.getresponse().status
    finally:
        connection.close()


def read_secret(page: Page) -> str:
    return str(page.evaluate("localStorage.getItem('zuno-session')"))


def test_another_server_on_this_machine_gets_nothing_of_worth(server: WebServer, browser: Browser) -> None:
    context = browser.new_context()
    with run_intruder() as intruder:
        page = context.new_page()
        log_in(page, server)
        secret = read_secret(page)
        answers: list[tuple[str, str, int]] = []
        origin = server.url.rstrip("/")
        visit = context.new_page()
        visit.on("response", lambda got: answers.append((got.request.method, got.url, got.status)))
        visit.goto(f"http://127.0.0.1:{intruder.server_port}/")
        assert "zuno_" in intruder.cookies, "cookies know no ports: this is what it has to be worth nothing for"
        assert secret not in intruder.cookies
        assert visit.evaluate(TRY_EVERYTHING, [origin, GUARDED]) == []
        guarded = [answer for answer in answers if "/api/" in answer[1] or "/metrics" in answer[1]]
        assert guarded
        assert {status for _, _, status in guarded} <= {401, 403}, guarded
        for method, path in GUARDED:
            for more in (
                {},
                {"Origin": origin},
                {"Origin": origin, "Sec-Fetch-Site": "same-origin", "Referer": f"{origin}/"},
                {"X-Zuno-Session": ""},
                {"X-Zuno-Session": intruder.cookies.partition("=")[2]},
                {"Authorization": f"Bearer {intruder.cookies.partition('=')[2]}"},
                {"X-CSRF-Token": "x"},
            ):
                assert ask(server, method, path, Cookie=intruder.cookies, **more) in (401, 403, 429), (path, more)
            assert ask(server, method, path, **{"X-Zuno-Session": secret}) == 401, path
        assert ask(server, "GET", "/api/v1/session", Cookie=intruder.cookies, **{"X-Zuno-Session": secret}) == 200
    context.close()


def test_a_link_is_used_once_and_leaves_the_address_and_the_history(server: WebServer, browser: Browser) -> None:
    first, second = browser.new_context(), browser.new_context()
    link = server.make_link()
    page, late = first.new_page(), second.new_page()
    addresses: list[str] = []
    page.on("framenavigated", lambda frame: addresses.append(frame.url))
    page.goto(link)
    expect(page.locator("#mode")).not_to_be_empty(timeout=SLOWLY)
    assert page.evaluate("location.hash") == "#/"
    page.goto(f"{server.url}#/lab")
    page.go_back()
    assert page.evaluate("location.href") == f"{server.url}#/"
    late.goto(link)
    expect(late.get_by_role("heading", name="Not signed in")).to_be_visible(timeout=SLOWLY)
    assert late.evaluate("localStorage.getItem('zuno-session')") is None
    late.goto(server.make_link("look"))  # in a tab where the page is open already
    expect(late.locator(".banner-limits")).to_be_visible(timeout=SLOWLY)
    first.close()
    second.close()


def test_tabs_share_a_login_and_its_end_closes_their_streams(server: WebServer, browser: Browser) -> None:
    run_zuno(server.home, "web", "sessions", "--end", "all", "--json")
    context = browser.new_context()
    page, tab = context.new_page(), context.new_page()
    log_in(page, server)
    for opened in (page, tab):
        opened.goto(f"{server.url}#/lab")
        wait_until_connected(opened)
    (session,) = run_zuno(server.home, "web", "sessions", "--json").document["logins"]
    assert run_zuno(server.home, "web", "sessions", "--end", session["name"], "--json").document["logins"] == []
    for opened in (page, tab):
        expect(opened.get_by_role("heading", name="Not signed in")).to_be_visible(timeout=10_000)
    context.close()


def test_a_login_from_a_terminal_beside_the_service(server: WebServer, browser: Browser) -> None:
    told = run_zuno(server.home, "web", "link", "--scope", "look", "--json").document
    assert told["url"].startswith(f"{server.url}#login=")
    page = browser.new_page()
    page.goto(told["url"])
    expect(page.locator("#mode")).not_to_be_empty(timeout=SLOWLY)
    status = page.evaluate(
        """async () => (await fetch("/api/v1/trading/pause", { method: "POST", body: "{}",
            headers: { "Content-Type": "application/json", "X-Zuno-Session": localStorage.getItem("zuno-session") },
        })).status"""
    )
    assert status == 403
    page.context.close()


def test_a_source_is_shown_as_it_was_sent(server: WebServer, open_page: OpenPage) -> None:
    page = open_page(server, "#/liquidity")
    wait_until_drawn(page)
    link = page.locator(".source a[href*='positions']").first
    with page.context.expect_page() as opened:
        link.click()
    shown = opened.value
    expect(shown.locator("pre.document")).to_contain_text('"positions"', timeout=SLOWLY)
    sent = page.request.get(f"{server.url}api/v1/lp/positions", headers=server.bearer).json()
    told = json.loads(shown.locator("pre.document").inner_text())
    assert told["positions"] == sent["positions"]
    assert find_violations(shown) == []


SCRIPTED = f"""<!doctype html><html><head><title>r</title><style>h1 {{ color: rgb(1, 2, 3) }}</style>
<meta http-equiv="refresh" content="0; url=/#/lab"><base href="http://127.0.0.1:9/"></head>
<body onload="parent.parent.{FLAG} = 1"><h1 id="kept">A report</h1>
<script>parent.parent.{FLAG} = localStorage.length + 1; top.{FLAG} = 1; document.title = "ran";</script>
<script src="/app.js"></script><img src="x" onerror="top.{FLAG} = 1">
<img id="dot" alt="" src="data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' width='7' height='7'/>">
<iframe srcdoc="<script>top.{FLAG} = 1</script>"></iframe><svg onload="top.{FLAG} = 1"></svg>
<form action="/login" method="post"><button id="send">send</button></form>
<a id="out" target="_top" href="javascript:top.{FLAG} = 1">out</a></body></html>"""


def test_a_report_is_shown_with_its_styles_and_runs_nothing(server: WebServer, open_page: OpenPage) -> None:
    report = "lp-0123456789ab"
    page = open_page(server, "#/lab", quiet=False)  # the browser says what it blocks
    page.route(
        f"**/api/v1/lab/reports/{report}/page", lambda route: route.fulfill(content_type="text/html", body=SCRIPTED)
    )
    page.goto(f"{server.url}#/lab/{report}/page")
    inner = page.frame_locator("iframe.report").frame_locator("iframe")
    expect(inner.locator("#kept")).to_have_css("color", "rgb(1, 2, 3)", timeout=SLOWLY)
    assert inner.locator("#dot").evaluate("(image) => image.naturalWidth") == 7, "its pictures are inside it"
    inner.locator("#send").click()
    inner.locator("#out").click()
    page.wait_for_timeout(500)
    assert page.evaluate(f"window.{FLAG}") is None
    assert page.url == f"{server.url}#/lab/{report}/page"
    (frame,) = [
        frame for frame in page.frames if frame.parent_frame and frame.parent_frame.url.endswith("/report.html")
    ]
    assert frame.title() == "r"
    assert frame.evaluate("origin") == "null", "it is of no origin"
    assert frame.evaluate("(() => { try { return localStorage.length; } catch (error) { return error.name; } })()") == (
        "SecurityError"
    )


def test_a_hidden_tab_gives_its_stream_back_and_asks_again_with_its_login(
    server: WebServer, open_page: OpenPage
) -> None:
    page = open_page(server, "#/lab")
    wait_until_connected(page)
    hide_page(page, hidden=True)
    expect(page.locator("#wire")).to_have_text("reconnecting")
    with page.expect_request(lambda asked: asked.url.endswith("/events")) as resumed:
        hide_page(page, hidden=False)
    wait_until_connected(page)
    assert "x-zuno-session" in resumed.value.headers
