"""The page behind a public URL: its name and base path, proxies that lie, the second factor, readiness."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from tests.unit.doors.web.test_interface import CHANGES, problem
from tests.wire.commands import run_zuno
from tests.wire.page_app import BEARER, COOKIE, HOST, PageApp, log_in, open_page_app
from zuno.doors.web.access import KEPT_SECONDS, SHOWN_HEADER, Guard
from zuno.doors.web.metrics import Metrics
from zuno.doors.web_logins import LOCKED_MS, MOST_WRONG, STEP_MS, write_code
from zuno.kernel.errors import Broken
from zuno.kernel.public_site import parse_public_url

SITE = parse_public_url("https://zuno.example/desk", ["127.0.0.1", "10.0.0.0/24"])
BASE, API = "/desk", "/desk/api/v1"
PROXY, NEIGHBOUR, STRANGER, CLIENT = "127.0.0.1", "127.0.0.2", "198.51.100.9", "203.0.113.7"
FORWARDED = {"X-Forwarded-For": CLIENT, "X-Forwarded-Proto": "https", "X-Forwarded-Host": "zuno.example"}
NOBODY = {"account": "<"}
"""An account that no act gets further than."""
LOWER_RISK = {
    "POST /api/v1/lp/plans/{plan}/cancel",
    "POST /api/v1/lp/mandates/pause",
    "POST /api/v1/lp/mandates/revoke",
    "POST /api/v1/trading/cancel",
    "POST /api/v1/trading/kill",
    "POST /api/v1/trading/pause",
    "POST /api/v1/trading/revoke",
    "DELETE /api/v1/session",
}
"""The acts that need no second factor: the last one ends the caller's own login."""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageApp]:
    with open_page_app(tmp_path_factory.mktemp("page"), SITE) as opened:
        yield opened


def connect(page: PageApp, peer: str = PROXY, **headers: str) -> TestClient:
    page.clocks.seconds += 3600.0
    given = FORWARDED | {name.replace("_", "-"): value for name, value in headers.items()}
    address = (peer, 50_000)
    return TestClient(page.app, f"http://{HOST}", raise_server_exceptions=False, headers=given, client=address)


@pytest.fixture
def secret(page: PageApp) -> Iterator[str]:
    """Of the home's one factor, at a time whose code was not used."""
    page.clocks.millis += 10 * STEP_MS
    yield page.logins.factors.add("totp", "phone").secret
    page.logins.factors.remove("phone")


def make_code(page: PageApp, secret: str, steps: int = 0) -> dict[str, str]:
    return {"X-Zuno-Factor": write_code(secret, page.clocks.millis // STEP_MS + steps)}


def fill(change: str) -> str:
    return f"{BASE}{change.partition(' ')[2].replace('{plan}', 'plan_000000000000')}"


def test_everything_is_under_the_base_path_whether_the_proxy_cuts_it_off_or_not(page: PageApp) -> None:
    with connect(page) as client:
        for path in ("/", "/app.js", "/pages/home.js", "/livez", "/llms.txt", "/docs/web.md"):
            whole, cut = client.get(f"{BASE}{path}"), client.get(path)
            assert (whole.status_code, whole.content) == (200, cut.content), path
        assert f"]({BASE}/docs/web.md)" in client.get(f"{BASE}/llms.txt").text
        for path in ("", "/docs"):
            moved = client.get(f"{BASE}{path}", follow_redirects=False)
            assert (moved.status_code, moved.headers["location"]) == (307, f"{BASE}{path}/")
        index = client.get(f"{BASE}/").text
        assert 'href="/' not in index
        assert 'src="/' not in index
        described = client.get(f"{API}/openapi.json", headers=BEARER).json()
        assert described["servers"] == [{"url": BASE}]
        assert client.get(f"{API}/session", headers=BEARER).status_code == 200
        assert problem(client.get(f"{BASE}x/api/v1/session", headers=BEARER)) == (404, "unknown")
        assert problem(client.get(f"{API}/session")) == (401, "unauthorized")
        assert client.get(f"{BASE}/../web-logins.json").status_code == 404


def test_a_login_has_a_cookie_for_the_base_path_over_tls_alone_and_names_its_client(page: PageApp) -> None:
    with connect(page, Origin="https://zuno.example") as browser:
        code = page.logins.link("act").url.partition("#login=")[2]
        landed = browser.post(f"{BASE}/login", json={"code": code})
        assert landed.status_code == 200
        attributes = {part.strip().lower() for part in landed.headers["set-cookie"].split(";")[1:]}
        assert {"httponly", "secure", "samesite=strict", "path=/desk/"} <= attributes
        assert [session.client for session in page.logins.list("session").logins] == [CLIENT]
        headers = {"X-Zuno-Session": landed.json()["secret"], "Cookie": landed.headers["set-cookie"].partition(";")[0]}
        gone = browser.delete(f"{API}/session", headers=headers)
        assert gone.status_code == 204
        assert "path=/desk/" in gone.headers["set-cookie"].lower()
        assert COOKIE in gone.headers["set-cookie"]
    assert page.logins.list("session").logins == ()


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("zuno.example", 200),
        ("ZUNO.example:443", 200),
        ("127.0.0.1:8420", 200),
        ("evil.example", 421),
        ("zuno.example.evil.example", 421),
        ("desk", 421),
        ("", 421),
    ],
)
def test_the_public_name_and_this_machine_are_the_only_hosts(page: PageApp, host: str, status: int) -> None:
    with connect(page) as client:
        del client.headers["X-Forwarded-Host"]
        assert client.get(f"{BASE}/livez", headers={"Host": host}).status_code == status
        if host:
            assert client.get(f"{BASE}/livez", headers={"X-Forwarded-Host": host}).status_code == status


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("https://zuno.example", 200),
        ("https://zuno.example:444", 403),
        ("http://zuno.example", 403),
        ("https://evil.example", 403),
        ("null", 403),
    ],
)
def test_the_public_origin_alone_may_ask(page: PageApp, origin: str, status: int) -> None:
    with connect(page) as client:
        assert client.get(f"{API}/session", headers=BEARER | {"Origin": origin}).status_code == status
        assert client.get(f"{API}/session", headers=BEARER | {"Sec-Fetch-Site": "same-site"}).status_code == 403


def test_a_client_without_tls_is_refused(page: PageApp) -> None:
    with connect(page, X_Forwarded_Proto="http") as client:
        assert problem(client.get(f"{BASE}/")) == (403, "tls")
        assert problem(client.get(f"{API}/session", headers=BEARER)) == (403, "tls")
    with connect(page, STRANGER, X_Forwarded_Proto="https") as client:  # past the proxy, where nothing is encrypted
        assert problem(client.get(f"{API}/session", headers=BEARER)) == (403, "tls")


def guess(client: TestClient, **headers: str) -> int:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.get(f"{API}/session", headers={"Authorization": "Bearer x"} | given).status_code


def test_guesses_are_counted_for_the_true_client(page: PageApp) -> None:
    with connect(page) as client:
        assert [guess(client) for _ in range(11)] == [401] * 10 + [429]
        assert guess(client, X_Forwarded_For="203.0.113.8") == 401, "another client behind the same proxy"
        lies = [guess(client, X_Forwarded_For=f"192.0.2.{number}, {CLIENT}") for number in range(5)]
        assert lies == [429] * 5, "what a client writes itself changes nothing"


def test_of_a_peer_that_is_no_proxy_the_headers_are_worth_nothing(page: PageApp) -> None:
    with connect(page, NEIGHBOUR) as liar:
        answers = [guess(liar, X_Forwarded_For=f"192.0.2.{number}") for number in range(11)]
        assert answers == [401] * 10 + [429]
        assert liar.get(f"{BASE}/livez", headers={"Host": "evil.example"}).status_code == 421
        assert liar.get(f"{BASE}/livez", headers={"X-Forwarded-Host": "evil.example"}).status_code == 200
        assert liar.get(f"{BASE}/livez", headers={"X-Forwarded-Proto": "http"}).status_code == 200
        code = page.logins.link("look").url.partition("#login=")[2]
        assert liar.post(f"{BASE}/login", json={"code": code}).status_code == 200
    assert [session.client for session in page.logins.list("session").logins] == [NEIGHBOUR]
    page.logins.list("session", "all")


def test_every_act_but_those_that_lower_risk_needs_the_factor(page: PageApp, secret: str) -> None:
    cookie, header = log_in(page.logins)
    for login in (BEARER, {"Cookie": cookie, **header}):
        with connect(page, **login) as client:
            needing = set()
            for change in sorted(CHANGES):
                page.clocks.seconds += 60
                if change != "DELETE /api/v1/session":
                    answer = client.post(fill(change), json=NOBODY)
                    if answer.status_code == 403:
                        assert problem(answer) == (403, "factor")
                        needing.add(change)
            assert needing == CHANGES - LOWER_RISK
    page.logins.list("session", "all")


def test_without_a_factor_the_way_to_one_is_said(page: PageApp) -> None:
    with connect(page, **BEARER) as client:
        refused = client.post(f"{API}/trading/resume", json={}, headers={"X-Zuno-Factor": "123456"})
        assert problem(refused) == (403, "factor-missing")
        assert "zuno web factor add totp" in refused.json()["detail"]
        assert problem(client.post(f"{API}/trading/pause", json=NOBODY)) == (400, "usage"), "no factor was asked for"


def test_a_code_is_good_for_one_act(page: PageApp, secret: str) -> None:
    with connect(page, **BEARER) as client:

        def resume(code: dict[str, str]) -> Any:
            return client.post(f"{API}/trading/resume", json=NOBODY, headers=code)

        def approve(code: dict[str, str]) -> tuple[int, str]:
            body = {"approvalHash": "0x00"}
            return problem(client.post(f"{API}/lp/plans/plan_000000000000/approve", json=body, headers=code))

        code = make_code(page, secret)
        assert approve(code) == (409, "confirmation"), "the word is missing"
        assert problem(resume(code)) == (403, "factor"), "it was given for another act"
        assert approve(code) == (409, "confirmation"), "nothing was done by it yet"
        page.clocks.seconds += KEPT_SECONDS
        assert approve(code) == (403, "factor"), "a confirmation has its time"
    assert page.logins.factors.list().wrong == 0


@pytest.mark.parametrize(
    ("status", "headers", "again"),
    [(200, {}, 403), (500, {}, 403), (409, {}, 200), (404, {}, 200), (200, {SHOWN_HEADER: "1"}, 200)],
)
def test_a_code_stays_good_while_nothing_was_done_by_it(
    page: PageApp, secret: str, status: int, headers: dict[str, str], again: int
) -> None:
    answers = iter([PlainTextResponse("", status, headers), PlainTextResponse("")])

    async def act(scope: Scope, receive: Receive, send: Send) -> None:
        await next(answers)(scope, receive, send)

    page.clocks.seconds += 3600.0
    guard = Guard(act, page.access, Metrics(lambda: 0.0), bytes)
    client = TestClient(guard, f"http://{HOST}", headers=FORWARDED | BEARER, client=(PROXY, 1))
    code = make_code(page, secret)
    assert client.post(f"{API}/lp/recommend", headers=code).status_code == status
    assert client.post(f"{API}/lp/recommend", headers=code).status_code == again


def test_a_code_is_used_up_by_an_act_that_ended_in_a_bug(page: PageApp, secret: str) -> None:
    async def act(scope: Scope, receive: Receive, send: Send) -> None:
        raise RuntimeError

    page.clocks.seconds += 3600.0
    guard = Guard(act, page.access, Metrics(lambda: 0.0), bytes)
    client = TestClient(guard, f"http://{HOST}", headers=FORWARDED | BEARER, client=(PROXY, 1))
    code = make_code(page, secret)
    with pytest.raises(RuntimeError):
        client.post(f"{API}/lp/recommend", headers=code)
    assert problem(client.post(f"{API}/lp/recommend", headers=code)) == (403, "factor")


def test_wrong_codes_lock_acting_and_never_lowering_risk(page: PageApp, secret: str) -> None:
    with connect(page, **BEARER) as client:

        def resume(code: dict[str, str]) -> tuple[int, str]:
            page.clocks.seconds += 60
            return problem(client.post(f"{API}/trading/resume", json=NOBODY, headers=code))

        minute_off = make_code(page, secret, 2), make_code(page, secret, -2)
        wrong = [*minute_off, *({"X-Zuno-Factor": text} for text in ("", "x", "0" * 500))]
        assert len(wrong) == MOST_WRONG
        assert [resume(code) for code in wrong] == [(403, "factor")] * MOST_WRONG
        assert resume(make_code(page, secret)) == (429, "factor-locked")
        for stop in ("kill", "pause"):
            assert problem(client.post(f"{API}/trading/{stop}", json=NOBODY)) == (400, "usage"), stop
        page.clocks.millis += LOCKED_MS
        assert resume(make_code(page, secret)) == (400, "usage")


def test_leave_to_act_with_real_money_is_needed_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZUNO_BASE_RPC_URL", "http://127.0.0.1:9")
    with open_page_app(tmp_path, SITE) as page:
        secret = page.logins.factors.add("totp", "phone").secret
        with connect(page, **BEARER) as client:
            refused = client.post(f"{API}/trading/resume", json=NOBODY, headers=make_code(page, secret))
            assert problem(refused) == (403, "forbidden")
            page.logins.allow("30m")
            assert problem(client.post(f"{API}/trading/resume", json=NOBODY)) == (403, "factor")
            passed = client.post(f"{API}/trading/resume", json=NOBODY, headers=make_code(page, secret))
            assert passed.status_code not in (401, 403)


def test_probes_say_alive_and_ready_in_codes_alone(
    page: PageApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Path(page.zuno.config().home)

    def ask() -> tuple[int, Any]:
        page.clocks.millis += 2_000
        page.clocks.seconds += 60
        answer = stranger.get("/readyz", headers={"Host": HOST})
        assert str(home) not in answer.text
        return answer.status_code, answer.json()

    with connect(page, STRANGER) as stranger:
        assert ask() == (200, {"ready": True, "faults": []})
        (home / "kill.lock").write_text("")
        assert ask() == (503, {"ready": False, "faults": ["kill-lock"]})
        assert stranger.get("/livez").text == stranger.get("/healthz").text == "ok\n"
        (home / "kill.lock").unlink()
        assert ask()[0] == 200

        async def fail() -> Any:
            raise Broken("secret")

        with monkeypatch.context() as broken:
            broken.setattr(page.zuno.journal(), "start", fail)
            assert ask() == (503, {"ready": False, "faults": ["journal"]})
            assert stranger.get("/livez").status_code == 200
        assert ask()[0] == 200
        assert [stranger.get("/readyz").status_code for _ in range(30)].count(429) >= 9
        assert problem(stranger.get("/livez")) == (429, "too-many-requests")


@pytest.mark.parametrize(
    "part", ["http://zuno.example", "https://a:b@zuno.example", "https://zuno.example?x", "ftp://x"]
)
def test_a_public_url_without_tls_or_with_more_is_no_way_to_start(tmp_path: Path, part: str) -> None:
    assert run_zuno(tmp_path, "web", "--port", "0", "--public-url", part).code == 2


def test_settings_that_cannot_be_meant_are_named(tmp_path: Path) -> None:
    for name, value in (("ZUNO_WEB_PUBLIC_URL", "http://zuno.example"), ("ZUNO_WEB_PROXIES", "proxy.example")):
        refused = run_zuno(tmp_path, "doctor", **{name: value})
        assert refused.code == 2
        assert name in refused.err


def test_factors_are_the_terminals(tmp_path: Path) -> None:
    made = run_zuno(tmp_path, "web", "factor", "add", "totp", "phone")
    assert made.code == 0
    assert "otpauth://totp/Zuno:phone?secret=" in made.out
    assert run_zuno(tmp_path, "web", "factor", "add", "sms", "phone").code == 2
    listed = run_zuno(tmp_path, "web", "factor", "list")
    assert "phone" in listed.out
    assert "otpauth" not in listed.out
    assert run_zuno(tmp_path, "web", "factor", "remove", "phone").code == 0
    assert run_zuno(tmp_path, "web", "factor", "remove", "phone").code != 0
