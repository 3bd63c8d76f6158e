"""The interface on a demo home: documents of `--json`, problems, pages, limits; nothing needs a key or the network."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest
from starlette.testclient import TestClient

from tests.paths import CHECKOUT
from tests.wire.account_home import write_account_home
from tests.wire.commands import run_zuno
from tests.wire.dust import plan_dust
from tests.wire.page_app import BEARER, HOST, TOKEN, PageApp, log_in, open_page_app
from zuno.adapters.chain.world import SIM
from zuno.doors.web.access import MOST_BODY_BYTES
from zuno.doors.web.jobs import MOST_RUNNING, Jobs
from zuno.doors.web.page_files import PageFiles
from zuno.doors.web.problems import Problem
from zuno.doors.web.services import DOCUMENT_TYPE
from zuno.doors.zuno import Zuno
from zuno.journal.port import Author
from zuno.kernel.units import Millis

API = "/api/v1"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageApp]:
    with open_page_app(tmp_path_factory.mktemp("page")) as opened:
        yield opened


@pytest.fixture
def client(page: PageApp) -> Iterator[TestClient]:
    """A script with the token."""
    page.clocks.seconds += 3600.0
    with TestClient(page.app, base_url=f"http://{HOST}", headers=BEARER, raise_server_exceptions=False) as opened:
        yield opened


def problem(answer: Any) -> tuple[int, str]:
    """The status and the kind of a problem document, checked."""
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert told["status"] == answer.status_code
    assert told["title"]
    assert told["detail"]
    assert "Traceback" not in answer.text
    return answer.status_code, told["type"].removeprefix("urn:zuno:problem:")


def test_a_view_is_answered_with_its_document_where_that_is_accepted(client: TestClient) -> None:
    asked = {"Accept": f"{DOCUMENT_TYPE}, application/json;q=0.5"}
    plain = client.get(f"{API}/trust/journal/verify")
    both = client.get(f"{API}/trust/journal/verify", headers=asked)
    assert plain.headers["content-type"] == "application/json"
    assert both.headers["content-type"] == DOCUMENT_TYPE
    assert plain.headers["vary"] == both.headers["vary"] == "Accept"
    assert both.json()["view"] == plain.json(), "scripts read what they always did"
    document = both.json()["document"]
    assert document["headline"]["text"]
    assert {"urgent", "sections", "notes", "acts", "asOf"} <= document.keys()
    session = client.get(f"{API}/session", headers=asked).json()
    assert session["view"]["scope"] == "act"
    assert session["document"] is None, "it is a state of the page, and has no words"
    assert problem(client.get(f"{API}/lp/plans/plan_000000000000", headers=asked))[0] == 404


@pytest.mark.slow
def test_positions_are_the_document_of_the_command(client: TestClient, page: PageApp) -> None:
    printed = run_zuno(Path(page.zuno.config().home), "lp", "positions", "--json")
    assert client.get(f"{API}/lp/positions").text == printed.out.rstrip("\n")


@pytest.mark.slow
def test_a_browser_logs_in_by_the_link_and_out(page: PageApp) -> None:
    code = page.logins.link("act").url.partition("#login=")[2]
    with TestClient(page.app, base_url=f"http://{HOST}") as browser:
        assert problem(browser.get(f"{API}/session")) == (401, "unauthorized")
        assert problem(browser.post("/login", json={"code": "wrong"})) == (401, "unauthorized")
        assert problem(browser.post("/login", json={"code": code}, headers={"Origin": "http://127.0.0.1:9"}))[0] == 403
        assert browser.get(f"/login?token={TOKEN}").status_code == 404
        landed = browser.post("/login", json={"code": code})
        assert landed.status_code == 200
        given = landed.headers["set-cookie"].lower()
        assert "httponly" in given
        assert "samesite=strict" in given
        header = {"X-Zuno-Session": landed.json()["secret"]}
        assert problem(browser.post("/login", json={"code": code})) == (401, "unauthorized")
        assert problem(browser.get(f"{API}/session")) == (401, "unauthorized")
        session = browser.get(f"{API}/session", headers=header)
        assert (session.json()["scope"], session.json()["mayAct"]) == ("act", True)
        for secret in (header["X-Zuno-Session"], *browser.cookies.values()):
            assert secret not in session.text
        assert browser.delete(f"{API}/session", headers=header).status_code == 204
        cookie = {"Cookie": landed.headers["set-cookie"].partition(";")[0]}
        assert problem(browser.get(f"{API}/session", headers=header | cookie)) == (401, "unauthorized")


def test_a_link_of_two_minutes_ago_is_no_login(page: PageApp) -> None:
    page.clocks.seconds += 3600.0
    link = page.logins.link("act")
    page.clocks.millis = link.expires
    with TestClient(page.app, base_url=f"http://{HOST}") as browser:
        late = browser.post("/login", json={"code": link.url.partition("#login=")[2]})
        assert problem(late) == (401, "unauthorized")
        assert "set-cookie" not in late.headers
        wrong: tuple[Any, ...] = ({}, {"code": 5}, {"code": "x" * 201}, {"code": "x", "more": 1}, [])
        for body in wrong:
            assert problem(browser.post("/login", json=body)) == (422, "usage")


RAISES_RISK = re.compile(
    "mandate|grant|live|limit|raise|cap|budget|deposit|withdraw|transfer|key|wallet", re.IGNORECASE
)
CHANGES = {
    "DELETE /api/v1/session",
    "POST /api/v1/lp/alerts",
    "POST /api/v1/lp/alerts/{id}/{answer}",
    "POST /api/v1/lp/allowances/revoke",
    "POST /api/v1/lp/mandates/pause",
    "POST /api/v1/lp/mandates/resume",
    "POST /api/v1/lp/mandates/revoke",
    "POST /api/v1/lp/plans/{plan}/apply",
    "POST /api/v1/lp/plans/{plan}/approve",
    "POST /api/v1/lp/plans/{plan}/cancel",
    "POST /api/v1/lp/plans/{plan}/simulate",
    "POST /api/v1/lp/positions/{position}/{act}",
    "POST /api/v1/lp/recommend",
    "POST /api/v1/sessions/end",
    "POST /api/v1/trading/analyze",
    "POST /api/v1/trading/cancel",
    "POST /api/v1/trading/close",
    "POST /api/v1/trading/kill",
    "POST /api/v1/trading/levels",
    "POST /api/v1/trading/pause",
    "POST /api/v1/trading/resume",
    "POST /api/v1/trading/revoke",
    "POST /api/v1/trading/start",
    "POST /api/v1/trading/stop",
    "POST /api/v1/trading/unlock",
}


def list_changes(page: PageApp) -> set[str]:
    routes = page.app.openapi()["paths"].items()
    return {f"{method.upper()} {path}" for path, methods in routes for method in methods if method != "get"}


def test_mandates_live_trading_and_limits_are_the_terminals_alone(page: PageApp) -> None:
    assert list_changes(page) == CHANGES
    fields = json.dumps(
        [page.app.openapi()["components"]["schemas"][name] for name in ("AnalyzeBody", "UnlockBody", "StartBody")]
    )
    ends = {f"POST /api/v1/lp/mandates/{act}" for act in ("pause", "resume", "revoke")}
    assert {change for change in CHANGES if RAISES_RISK.search(change)} == ends, "of a mandate what it ends or wakes"
    assert set(re.findall(RAISES_RISK, fields)) <= {"live"}, "an account's name"


def test_whoever_may_look_changes_nothing(page: PageApp) -> None:
    page.clocks.seconds += 3600.0
    cookie, header = log_in(page.logins, "look")
    looker = {"Authorization": f"Bearer {page.logins.create_token('looker', 'look').token}"}
    for headers in ({"Cookie": cookie, **header}, looker):
        with TestClient(page.app, base_url=f"http://{HOST}", headers=headers) as client:
            assert client.get(f"{API}/session").json()["mayAct"] is False
            assert client.get("/metrics").status_code == 200
            for change in sorted(CHANGES - {"DELETE /api/v1/session"}):
                path = change.removeprefix("POST ").replace("{plan}", "plan_000000000000").replace("{act}", "close")
                assert problem(client.post(path, json={})) == (403, "forbidden"), path


def test_with_real_money_acting_waits_for_leave_and_lowering_risk_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZUNO_BASE_RPC_URL", "http://127.0.0.1:9")
    free = {f"POST {API}/trading/{act}" for act in ("kill", "pause", "cancel", "revoke")}
    free |= {f"POST {API}/lp/{act}" for act in ("plans/{plan}/cancel", "mandates/pause", "mandates/revoke")}
    refused = CHANGES - free - {"DELETE /api/v1/session"}
    with open_page_app(tmp_path) as page:
        cookie, header = log_in(page.logins)
        with TestClient(page.app, base_url=f"http://{HOST}", headers={"Cookie": cookie, **header}) as client:

            def act() -> set[str]:
                """What is refused for want of leave."""
                page.clocks.seconds += 3600.0
                answers = {
                    change: client.post(
                        change.removeprefix("POST ").replace("{plan}", "plan_000000000000"), json={"account": "<"}
                    )
                    for change in sorted(CHANGES - {"DELETE /api/v1/session"})
                }
                return {name for name, answer in answers.items() if answer.status_code == 403}

            session = client.get(f"{API}/session").json()
            assert (session["mode"], session["mayAct"]) == ("live", False)
            assert act() == refused
            told = client.post(f"{API}/trading/resume", json={})
            assert problem(told) == (403, "forbidden")
            assert "zuno web allow --for 30m" in told.json()["detail"]
            page.logins.allow("30m")
            assert client.get(f"{API}/session").json()["mayAct"] is True
            assert act() == set()
            page.logins.allow(end=True)
            assert act() == refused
            page.logins.allow("30m")
            page.clocks.millis += 30 * 60_000
            assert act() == refused


def test_every_answer_carries_the_policy(client: TestClient) -> None:
    for path in ("/", "/healthz", f"{API}/session", f"{API}/nothing", "/none"):
        headers = client.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/lp/positions/999", (404, "unknown")),
        ("/lp/positions/none", (400, "usage")),
        (f"/lp/positions/{'9' * 81}", (422, "usage")),
        (f"/lp/positions?chain={'x' * 10_000}", (422, "usage")),
        ("/lp/positions?chain=nowhere", (400, "usage")),
        ("/lp/plans/plan_000000000000", (404, "unknown")),
        ("/trading/runs/run_0000000000000000", (404, "unknown")),
        (f"/trading/chart?symbol={'B' * 10_000}", (422, "usage")),
        ("/trading/chart?symbol=%3Cscript%3E", (400, "usage")),
        ("/trading/chart", (422, "usage")),
        ("/trust/journal?cursor=-1", (400, "usage")),
        ("/trust/journal?limit=0", (422, "usage")),
        ("/lp/plans?cursor=plan_none", (400, "usage")),
        ("/jobs/req_none", (404, "unknown")),
        ("/nothing", (404, "unknown")),
    ],
)
def test_what_cannot_be_answered_is_a_problem(client: TestClient, path: str, expected: tuple[int, str]) -> None:
    assert problem(client.get(API + path)) == expected


@pytest.mark.parametrize(
    "path",
    [
        "/../web-logins.json",
        "/..%2f..%2fweb-logins.json",
        "/%2e%2e/%2e%2e/pyproject.toml",
        "/docs/../../pyproject.toml",
        "/docs//etc/passwd",
    ],
)
def test_no_path_leads_out_of_the_pages_folder(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code in (404, 405)
    assert TOKEN not in answer.text


def test_a_large_body_is_refused_before_it_is_read(client: TestClient) -> None:
    for body in (b"x" * 1_000_000, json.dumps({"symbol": "B" * MOST_BODY_BYTES}).encode()):
        assert problem(client.post(f"{API}/trading/analyze", content=body)) == (413, "too-large")

    def parts() -> Iterator[bytes]:
        yield from (b"x" * 1_000 for _ in range(200))

    assert problem(client.post(f"{API}/trading/analyze", content=parts())) == (413, "too-large")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"symbol": "B" * 10_000},
        {"symbol": 5},
        {"symbol": "BTC", "more": 1},
        {"symbol": "BTC", "execute": "yes"},
        [],
    ],
)
def test_a_body_that_cannot_be_read_is_a_problem(client: TestClient, body: Any) -> None:
    assert problem(client.post(f"{API}/trading/analyze", json=body)) == (422, "usage")


MARKUP = "<img src=x onerror=hurt=true>"
PLAN = "/lp/plans/plan_000000000000"


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        ("/trading/analyze", {"symbol": MARKUP}, (400, "usage")),
        ("/trading/analyze", {"symbol": "BTC", "mode": MARKUP}, (400, "usage")),
        ("/lp/recommend", {"position": "1", "kind": MARKUP}, (422, "usage")),
        ("/lp/recommend", {"position": MARKUP, "wish": MARKUP}, (422, "usage")),
        (f"{PLAN}/approve", {"word": MARKUP}, (422, "usage")),
        (f"{PLAN}/approve", {"word": "approve", "approvalHash": MARKUP}, (409, "refused")),
        (f"{PLAN}/apply", {"word": "<b>"}, (409, "confirmation")),
        (f"{PLAN}/apply", {"word": "x" * 21}, (422, "usage")),
        ("/lp/plans/%3Cscript%3E/simulate", {}, (400, "usage")),
        ("/trading/pause", {"account": MARKUP}, (400, "usage")),
        ("/trading/resume", {"account": MARKUP}, (400, "usage")),
        ("/trading/kill", {"account": MARKUP, "word": "kill"}, (400, "usage")),
        ("/trading/unlock", {"account": MARKUP, "protection": MARKUP}, (400, "usage")),
    ],
)
def test_markup_in_a_body_is_a_problem_of_a_kind(
    client: TestClient, path: str, body: Any, expected: tuple[int, str]
) -> None:
    assert problem(client.post(API + path, json=body)) == expected


@pytest.mark.parametrize(
    "body", [{"position": MARKUP}, {"kind": "create", "wish": MARKUP}, {"position": "1", "chain": MARKUP}]
)
def test_markup_that_only_a_desk_can_judge_fails_its_job(client: TestClient, body: Any) -> None:
    started = client.post(f"{API}/lp/recommend", json=body)
    assert started.status_code == 202
    job = started.json()
    while job["state"] == "running":
        job = client.get(f"{API}/jobs/{job['id']}").json()
    assert job["state"] == "failed"
    record = client.get(f"{API}/lp/debates/{job['id']}")
    assert (record.status_code, record.json()["plan"]) == (200, None)


@pytest.mark.slow
def test_a_stale_tab_cannot_approve_or_apply_what_has_run_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZUNO_APPROVAL_SECONDS", "30")
    with open_page_app(tmp_path) as page, TestClient(page.app, base_url=f"http://{HOST}", headers=BEARER) as client:

        async def instruct(zuno: Any) -> list[str]:
            return [str((await zuno.execution().collect(position, None)).plan_id) for position in ("1", "2")]

        async def let_time_pass(zuno: Any) -> None:
            for _ in range(3):
                await zuno.sim().move("0.01")

        def show(plan: str) -> dict[str, str]:
            return {"approvalHash": client.post(f"{API}/lp/plans/{plan}/approve", json={}).json()["approvalHash"]}

        def act(plan: str, word: str, shown: dict[str, str]) -> Any:
            return client.post(f"{API}/lp/plans/{plan}/{word}", json={"word": word, **shown})

        approved, seen = page.ask(instruct)
        first, second = show(approved), show(seen)
        assert act(approved, "approve", first).status_code == 200
        assert problem(act(approved, "approve", first)) == (409, "refused")  # an offer is signed once
        page.ask(let_time_pass)
        assert problem(act(approved, "apply", first)) == (409, "refused")
        assert problem(act(seen, "approve", second)) == (409, "refused")
        waiting = client.get(f"{API}/lp/plans/waiting").json()["plans"]
        assert [plan["planId"] for plan in waiting] == [seen]


@pytest.mark.slow
def test_what_costs_more_than_it_moves_needs_its_second_word(tmp_path: Path) -> None:
    with open_page_app(tmp_path) as page, TestClient(page.app, base_url=f"http://{HOST}", headers=BEARER) as client:
        dust = page.ask(plan_dust)
        at = f"{API}/lp/plans/{dust}"
        shown = client.post(f"{at}/approve", json={}).json()
        assert (shown["cost"]["exceedsMoved"], shown["asks"]) == (True, ["approve", "costs-more"])
        signed = {"approvalHash": shown["approvalHash"]}
        for words, missing in (
            ({"word": "approve"}, "costs-more"),
            ({"word": "approve", "secondWord": "approve"}, "costs-more"),
            ({"word": "no", "secondWord": "costs-more"}, "approve"),
            ({"secondWord": "costs-more"}, "approve"),
        ):
            asked = client.post(f"{at}/approve", json={**signed, **words})
            assert problem(asked) == (409, "confirmation")
            assert asked.json()["word"] == missing
            assert client.get(f"{at}/status").json()["state"] == "drafted"
        agreed = client.post(f"{at}/approve", json={**signed, "word": "approve", "secondWord": "costs-more"})
        assert (agreed.status_code, agreed.json()["state"]) == (200, "approved")


@pytest.mark.slow
def test_a_plan_of_real_money_is_called_off_by_its_word(tmp_path: Path) -> None:
    with open_page_app(tmp_path) as page, TestClient(page.app, base_url=f"http://{HOST}", headers=BEARER) as client:

        async def instruct(zuno: Any) -> list[str]:
            return [str((await zuno.execution().collect(position, None)).plan_id) for position in ("1", "2")]

        play, real = (f"{API}/lp/plans/{plan}/cancel" for plan in page.ask(instruct))
        assert client.post(play, json={}).json()["state"] == "cancelled"
        object.__setattr__(SIM, "testnet", False)
        try:
            for body in ({}, {"word": "approve"}):
                asked = client.post(real, json=body)
                assert problem(asked) == (409, "confirmation")
                assert asked.json()["word"] == "cancel"
            assert client.get(real.replace("cancel", "status")).json()["state"] != "cancelled"
            assert client.post(real, json={"word": "cancel"}).json()["state"] == "cancelled"
        finally:
            object.__setattr__(SIM, "testnet", True)


def test_real_money_is_not_traded_from_the_page(client: TestClient) -> None:
    body = {"symbol": "BTC", "execute": True, "account": "live"}
    assert problem(client.post(f"{API}/trading/analyze", json=body)) == (409, "refused")


def test_an_approval_that_was_not_shown_is_not_signed(client: TestClient) -> None:
    at = f"{API}/lp/plans/plan_000000000000/approve"
    assert problem(client.post(at, json={"approvalHash": "0" * 64})) == (409, "confirmation")
    assert problem(client.post(at, json={"approvalHash": "0" * 64, "word": "approve"})) == (409, "refused")


@pytest.mark.slow
def test_a_run_that_is_not_on_record_yet_has_a_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that follows it from its first moment is never told that there is no such run."""
    monkeypatch.setenv("ZUNO_RECORDING", "own")  # in which nothing is: the run ends before it begins
    with open_page_app(tmp_path) as page, TestClient(page.app, base_url=f"http://{HOST}", headers=BEARER) as client:
        started = client.post(f"{API}/trading/analyze", json={"symbol": "BTC"})
        assert started.status_code == 202
        run = started.json()["id"]
        seen: list[Any] = []
        while not seen or seen[-1]["state"] == "starting":
            answer = client.get(f"{API}/trading/runs/{run}")
            assert answer.status_code == 200
            seen.append(answer.json())
        assert (seen[-1]["state"], seen[-1]["runId"], seen[-1]["run"]) == ("failed", run, None)
        assert (seen[-1]["symbol"], seen[-1]["mode"]) == ("BTCUSDT", "swing")
        assert seen[-1]["error"]


@pytest.mark.soak(every=4)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "trading", "liquidity", "mode"),
    [
        ({}, "synthetic", "synthetic", "synthetic"),
        ({"CHAIN_ID": "devnet"}, "synthetic", "synthetic", "synthetic"),
        ({"SEPOLIA_RPC_URL": "http://127.0.0.1:1"}, "synthetic", "test", "paper"),
        ({"ARBITRUM_RPC_URL": "http://127.0.0.1:1"}, "synthetic", "real", "live"),
        ({"ARBITRUM_RPC_URL": "http://127.0.0.1:1", "CHAIN_ID": "sim"}, "synthetic", "real", "live"),
        (
            {"BASE_RPC_URL": "http://127.0.0.1:1", "SEPOLIA_RPC_URL": "http://127.0.0.1:1", "CHAIN_ID": "sepolia"},
            "synthetic",
            "real",
            "live",
        ),
        ({"RECORDING": "own"}, "paper", "synthetic", "paper"),
        ({"MARKET": "live"}, "paper", "synthetic", "paper"),
        ({"LIVE": "true"}, "live", "synthetic", "live"),
    ],
)
def test_a_session_says_of_each_desk_what_is_real(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], trading: str, liquidity: str, mode: str
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(f"ZUNO_{name}", value)
    with open_page_app(tmp_path) as page, TestClient(page.app, base_url=f"http://{HOST}", headers=BEARER) as client:
        told = client.get(f"{API}/session").json()
    assert (told["trading"], told["liquidity"], told["mode"]) == (trading, liquidity, mode)
    paper = {"name": "paper", "mode": "paper"}
    assert told["accounts"] == ([{"name": "live", "mode": "live"}, paper] if trading == "live" else [paper])


@pytest.mark.slow
def test_an_account_at_an_exchange_can_be_chosen_once_anything_happened_there(tmp_path: Path) -> None:
    with open_page_app(tmp_path) as page, TestClient(page.app, base_url=f"http://{HOST}", headers=BEARER) as client:
        assert client.post(f"{API}/trading/pause", json={"account": "demo"}).status_code == 200
        told = client.get(f"{API}/session").json()["accounts"]
    assert told == [{"name": "paper", "mode": "paper"}, {"name": "demo", "mode": "demo"}]


LOOKS = (
    "account",
    "balance",
    "positions",
    "trades",
    "orders",
    "fills",
    "ledger",
    "equity",
    "curves",
    "daily",
    "protections",
)


@pytest.fixture(scope="module")
def accounts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A script at a home with a small recorded market."""
    home = tmp_path_factory.mktemp("accounts")
    asyncio.run(write_account_home(home))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ZUNO_RECORDING", "own")
        with open_page_app(home) as page, TestClient(page.app, base_url=f"http://{HOST}", headers=BEARER) as opened:
            yield opened


@pytest.mark.slow
def test_every_look_at_an_account_and_every_act_on_it_names_it(accounts: TestClient) -> None:
    own = accounts.get(f"{API}/trading/account").json()["account"]
    for look in LOOKS:
        for given, mode in (("paper", "paper"), ("second", "paper"), ("demo", "demo"), ("live", "live")):
            answer = accounts.get(f"{API}/trading/{look}", params={"account": given}).json()
            head = answer.get("head", answer)
            assert head["mode"] == mode
            assert head["account"] == {"paper": own, "second": f"{own}:second"}.get(given, given)
    for act in ("pause", "resume", "unlock"):
        for given, name in (("paper", own), ("second", f"{own}:second"), ("demo", "demo")):
            told = accounts.post(f"{API}/trading/{act}", json={"account": given, "word": act}).json()
            assert told["account"] == name
            assert any(name in said for said in told["said"])


@pytest.mark.slow
def test_a_killed_account_is_named_before_and_after(accounts: TestClient) -> None:
    own = accounts.get(f"{API}/trading/account").json()["account"]
    for given, name, mode in (("second", f"{own}:second", "PAPER"), ("demo", "demo", "DEMO"), ("live", "live", "LIVE")):
        asked = accounts.post(f"{API}/trading/kill", json={"account": given})
        assert problem(asked) == (409, "confirmation")
        assert name in asked.json()["detail"]
        assert mode in asked.json()["detail"]
    before = accounts.get(f"{API}/trading/protections?account=paper").json()["protections"]
    told = accounts.post(f"{API}/trading/kill", json={"account": "second", "word": "kill"}).json()
    assert any(f"{own}:second" in said for said in told["said"])
    assert accounts.get(f"{API}/trading/protections?account=second").json()["protections"]
    assert accounts.get(f"{API}/trading/protections?account=paper").json()["protections"] == before


def test_no_number_of_debates_keeps_the_kill_switch_waiting(page: PageApp) -> None:
    held, drawn = asyncio.Event(), itertools.count()

    async def argue(zuno: Zuno) -> None:
        await held.wait()

    async def kill(zuno: Zuno) -> str:
        return "killed"

    async def act() -> None:
        jobs = Jobs(
            page.services, page.feed, lambda: Millis(0), lambda count: next(drawn).to_bytes(count), lambda *_: None
        )
        for _ in range(MOST_RUNNING):
            jobs.start(jobs.new_id("req_"), "recommend", "", argue)
        with pytest.raises(Problem) as refused:
            jobs.start(jobs.new_id("run_"), "analyze", "", argue)
        assert refused.value.view.status == 429
        assert await jobs.finish(jobs.new_id("job_"), "kill", "", kill) == "killed"
        page.loop.call_soon_threadsafe(held.set)

    asyncio.run(act())


def test_the_journal_is_searched_by_kind_and_request_and_read_entry_by_entry(client: TestClient, page: PageApp) -> None:
    async def write(zuno: Any) -> None:
        for name in ("one", "two"):
            await zuno.journal().append(kind=f"kind_{name}", author=Author("test"), payload={name: 1}, request_id=name)

    page.ask(write)
    for about in ({"kind": "kind_two"}, {"request": "two"}):
        (found,) = client.get(f"{API}/trust/journal", params=about).json()["items"]
        assert (found["kind"], found["requestId"]) == ("kind_two", "two")
    assert client.get(f"{API}/trust/journal", params={"kind": "<img>"}).json()["items"] == []
    whole = client.get(f"{API}/trust/journal/{found['seq']}").json()
    assert whole.items() >= found.items()
    assert whole["payload"] == {"two": 1}
    before = client.get(f"{API}/trust/journal/{found['seq'] - 1}").json()
    assert whole["prev"] == before["hash"]
    assert problem(client.get(f"{API}/trust/journal/{found['seq'] + 99}")) == (404, "unknown")
    for strange in ("0", "-1", "NaN", "abc", str(2**60)):
        assert client.get(f"{API}/trust/journal/{strange}").status_code in (404, 422)


def test_sessions_are_listed_without_secrets_and_ended(client: TestClient, page: PageApp) -> None:
    cookie, header = log_in(page.logins)
    with TestClient(page.app, base_url=f"http://{HOST}", headers={"Cookie": cookie, **header}) as browser:
        own = browser.get(f"{API}/session").json()["login"]
        listed = browser.get(f"{API}/sessions")
        assert own in [login["name"] for login in listed.json()["logins"]]
        assert header["X-Zuno-Session"] not in listed.text
        assert cookie.partition("=")[2] not in listed.text
        assert problem(browser.post(f"{API}/sessions/end", json={"id": "strange"})) == (404, "unknown")
        assert problem(browser.post(f"{API}/sessions/end", json={})) == (422, "usage")
        left = client.post(f"{API}/sessions/end", json={"id": own}).json()["logins"]
        assert own not in [login["name"] for login in left]
        assert problem(browser.get(f"{API}/session")) == (401, "unauthorized")


def test_the_journal_is_paged_without_gap_or_repeat(client: TestClient, page: PageApp) -> None:
    async def write(zuno: Any) -> None:
        for number in range(7):
            await zuno.journal().append(kind="note", author=Author("test"), payload={"number": number})

    page.ask(write)
    seen: list[int] = []
    cursor: str | None = None
    for _ in range(99):
        found = client.get(
            f"{API}/trust/journal", params={"limit": 3} | ({} if cursor is None else {"cursor": cursor})
        ).json()
        seen += [entry["seq"] for entry in found["items"]]
        cursor = found["nextCursor"]
        if cursor is None:
            break
    assert seen == list(range(len(seen), 0, -1))
    assert len(seen) >= 7


def test_health_pages_and_llms_txt_are_open_and_metrics_are_not(client: TestClient, page: PageApp) -> None:
    with TestClient(page.app, base_url=f"http://{HOST}") as stranger:
        assert stranger.get("/healthz").text == "ok\n"
        assert problem(stranger.get("/metrics")) == (401, "unauthorized")
        index = stranger.get("/llms.txt").text
        pages = [*(CHECKOUT / "docs").glob("*.md"), *(CHECKOUT / "docs" / "guides").glob("*.md")]
        for path in pages:
            assert f"](/docs/{path.relative_to(CHECKOUT / 'docs')})" in index
        assert stranger.get("/docs/web.md").text == (CHECKOUT / "docs" / "web.md").read_text(encoding="utf-8")
        assert "llms-full.txt" not in index
        assert stranger.get("/llms-full.txt").text == stranger.get("/docs/llms-full.txt").text
        start = stranger.get("/docs/")
        assert start.headers["content-type"] == "text/html; charset=utf-8"
        assert "The first hour" in start.text
        assert "script-src 'self'" in start.headers["content-security-policy"]
        for name, kind in (("site.js", "javascript"), ("site.css", "css"), ("search.json", "json")):
            assert kind in stranger.get(f"/docs/{name}").headers["content-type"]
        assert problem(stranger.get("/docs/none.html"))[0] == 404
        assert str(stranger.get("/docs").url).endswith("/docs/")


@pytest.mark.slow
def test_what_the_pages_link_to_is_there(client: TestClient) -> None:
    links = set()
    for path in (CHECKOUT / "docs").rglob("*.md"):
        at = f"http://{HOST}/docs/{path.relative_to(CHECKOUT / 'docs').as_posix()}"
        text = re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        links |= {urljoin(at, link) for link in re.findall(r"\]\(([^)#\s]+)", text)}
    own = sorted(link for link in links if link.startswith(f"http://{HOST}/"))
    assert len(own) > 10
    assert [link for link in own if client.get(link).status_code != 200] == []


def test_metrics_have_units_in_their_names_and_no_id_in_their_labels(client: TestClient) -> None:
    client.get(f"{API}/lp/plans/plan_00000000beef")
    client.get("/wallet/0x39dde55bf9d7add0a554ed9e2fc6a23c72f2519c")
    text = client.get("/metrics").text
    names = re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)
    assert names
    counted = {"zuno_event_streams", "zuno_active_locks", "zuno_waiting_notices"}
    units = re.compile(r"zuno_\w+_(seconds|bytes|usd|ratio)|zuno_\w+_total")
    assert [name for name in names if not units.fullmatch(name) and name not in counted] == []
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)", text, re.MULTILINE))
    assert {name: kind for name, kind in kinds.items() if name.endswith("_total") != (kind == "counter")} == {}
    assert len(names) == len(set(names)) == len(re.findall(r"^# HELP \S+ \S", text, re.MULTILINE))
    assert "zuno_journal_size_bytes" in names
    assert "beef" not in text
    assert "0x39" not in text
    assert '/lp/plans/{plan}"' in text


def test_the_pages_files_are_packed_once_and_read_again_when_they_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pages").mkdir()
    for name in ("index.html", "app.css", "pages/home.js"):
        (tmp_path / name).write_text(f"/* {name} */" * 100)
    packings: list[bytes] = []
    pack = gzip.compress

    def count(content: bytes, **more: int) -> bytes:
        packings.append(content)
        return pack(content, **more)

    monkeypatch.setattr(gzip, "compress", count)
    browser = TestClient(PageFiles(tmp_path))
    for name in ("app.css", "pages/home.js", "", "app.css"):
        answer = browser.get(f"/{name}")
        assert answer.headers["content-encoding"] == "gzip"
        assert answer.text == (tmp_path / (name or "index.html")).read_text()
    assert len(packings) == 3
    plain = browser.get("/app.css", headers={"Accept-Encoding": "identity"})
    assert plain.text == (tmp_path / "app.css").read_text()
    assert "content-encoding" not in plain.headers
    kept = {"If-None-Match": plain.headers["etag"]}
    assert browser.get("/app.css", headers=kept).status_code == 304
    (tmp_path / "app.css").write_text("small")
    os.utime(tmp_path / "app.css", (1, 1))
    changed = browser.get("/app.css", headers=kept)
    assert (changed.status_code, changed.text) == (200, "small")
    assert "content-encoding" not in changed.headers
    assert browser.head("/app.css").headers["content-length"] == "5"
    refused = TestClient(PageFiles(tmp_path), raise_server_exceptions=False)
    assert refused.post("/app.css").status_code != 200
    assert refused.get("/pages/../../etc/hosts").status_code != 200
