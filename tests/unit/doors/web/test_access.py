"""Who may ask the page: this machine's own names, a login or a token, no other site, and not too often."""

from __future__ import annotations

import stat
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.wire.page_app import BEARER, COOKIE, HOST, TOKEN, Clocks, build_access, build_logins, log_in
from zuno.adapters.file_lock import FileLock
from zuno.doors.web.access import SESSION_HEADER, Access
from zuno.doors.web.problems import Problem
from zuno.doors.web_logins import (
    CLOCK_TOLERANCE_MS,
    CODE_MS,
    DAY_MS,
    IDLE_MS,
    LONGEST_ALLOWANCE_MS,
    SEEN_MS,
    SESSION_MS,
    Logins,
    hash_secret,
)
from zuno.kernel.errors import Broken, NotFound, Refused, UsageError
from zuno.wiring.web import LOGINS_FILE, OLD_TOKEN_FILE, name_cookie, remove_old_token
from zuno.wiring.web import build_logins as open_logins

LOOK, ACT = "/api/v1/session", "/api/v1/trading/unlock"
STOPS = (
    *(f"/api/v1/trading/{act}" for act in ("kill", "pause", "cancel", "revoke")),
    "/api/v1/lp/plans/plan_000000000000/cancel",
    "/api/v1/lp/mandates/pause",
    "/api/v1/lp/mandates/revoke",
)
NO_STOPS = tuple(
    f"/api/v1/{path}"
    for path in (
        "trading/close",
        "trading/levels",
        "trading/start",
        "trading/stop",
        "trading/cancel/all",
        "lp/cancel",
        "lp/mandates/resume",
        "lp/mandates/grant",
        "lp/positions/1/close",
        "lp/allowances/revoke",
        "lp/alerts/rule_0/remove",
    )
)
"""Closing one leg of a hedge, a looser stop or a desk that watches stops no more can raise risk."""


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


@pytest.fixture
def logins(clocks: Clocks, tmp_path: Path) -> Logins:
    return build_logins(tmp_path, clocks)


@pytest.fixture
def access(logins: Logins, clocks: Clocks) -> Access:
    return build_access(logins, clocks)


def refusal(access: Access, method: str = "GET", path: str = LOOK, cookies: str = "", **headers: str) -> int:
    """The status of the refusal; 200 where there is none."""
    given = {"host": HOST, **{name.replace("_", "-").lower(): value for name, value in headers.items()}}
    try:
        access.check(method, path, given, cookies)
    except Problem as problem:
        return problem.view.status
    return 200


def ask(access: Access, login: tuple[str, dict[str, str]], method: str = "GET", path: str = LOOK, **more: str) -> int:
    return refusal(access, method, path, login[0], **login[1], **more)


def test_a_script_with_the_token_may_look_and_act(access: Access) -> None:
    bearer = BEARER["Authorization"]
    assert refusal(access, authorization=bearer) == 200
    assert refusal(access, "POST", ACT, authorization=bearer) == 200


@pytest.mark.parametrize(
    "given", ["", "Bearer", f"Bearer {TOKEN[:-1]}", f"Bearer {TOKEN}0", f"Basic {TOKEN}", "Bearer é", "Bearer \udcff"]
)
def test_a_wrong_token_is_nobody(access: Access, given: str) -> None:
    assert refusal(access, authorization=given) == 401


def test_without_a_login_nothing_is_told(access: Access) -> None:
    assert refusal(access) == 401
    assert refusal(access, path="/metrics") == 401
    assert refusal(access, path="/healthz") == 200
    with pytest.raises(Problem) as refused:
        access.check("GET", LOOK, {"host": HOST}, "")
    assert "zuno web token create" in refused.value.view.detail


def test_a_browser_needs_its_cookie_and_its_header(access: Access, logins: Logins) -> None:
    mine, other = log_in(logins), log_in(logins)
    cookie, header = mine
    for method, path in (("GET", LOOK), ("GET", "/metrics"), ("POST", ACT), ("POST", STOPS[0])):
        assert ask(access, mine, method, path) == 200
        assert refusal(access, method, path, cookie) == 401
        assert refusal(access, method, path, "", **header) == 401
        assert refusal(access, method, path, cookie, **{SESSION_HEADER: ""}) == 401
        assert refusal(access, method, path, cookie, **{SESSION_HEADER: cookie.partition("=")[2]}) == 401
        assert refusal(access, method, path, f"{COOKIE}={header['X-Zuno-Session']}", **header) == 401
        assert refusal(access, method, path, cookie, **other[1]) == 401


@pytest.mark.parametrize(
    "host", ["", "evil.example", "evil.example:8420", "127.0.0.1.evil.example", "localhost@evil.example", "127.0.0.2"]
)
def test_a_foreign_name_for_this_machine_is_refused(access: Access, logins: Logins, host: str) -> None:
    """DNS rebinding: the browser believes that the other site is here."""
    assert ask(access, log_in(logins), host=host) == 421
    assert refusal(access, path="/", host=host) == 421


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:1", "LOCALHOST:8420", "[::1]:8420"])
def test_a_tunnel_may_have_another_port(access: Access, logins: Logins, host: str) -> None:
    assert ask(access, log_in(logins), host=host) == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:9999", f"https://{HOST}"])
def test_another_site_may_not_ask(access: Access, logins: Logins, origin: str) -> None:
    assert ask(access, log_in(logins), origin=origin) == 403
    assert refusal(access, authorization=BEARER["Authorization"], origin=origin) == 403
    assert refusal(access, "POST", "/login", origin=origin) == 403


def test_its_own_origin_may(access: Access, logins: Logins) -> None:
    mine = log_in(logins)
    assert ask(access, mine, origin=f"http://{HOST}", sec_fetch_site="same-origin") == 200
    assert ask(access, mine, sec_fetch_site="cross-site") == 403
    assert ask(access, mine, sec_fetch_site="same-site") == 403


def test_a_code_is_good_once_and_for_two_minutes(logins: Logins, clocks: Clocks) -> None:
    first, second, third = (logins.link("act") for _ in range(3))
    codes = [link.url.partition("#login=")[2] for link in (first, second, third)]
    assert first.expires == clocks.millis + CODE_MS == clocks.millis + 120_000
    assert logins.find(hash_secret(codes[0]), "code")
    assert logins.log_in(codes[0]) is not None
    assert not logins.find(hash_secret(codes[0]), "code")
    assert logins.log_in(codes[0]) is None
    clocks.millis += CODE_MS - 1
    assert logins.log_in(codes[1]) is not None
    clocks.millis += 1
    assert not logins.find(hash_secret(codes[2]), "code")
    assert logins.log_in(codes[2]) is None
    assert logins.log_in("") is None


def test_a_code_is_no_token_and_a_token_no_code(access: Access, logins: Logins) -> None:
    code = logins.link("act").url.partition("#login=")[2]
    assert refusal(access, authorization=f"Bearer {code}") == 401
    assert logins.log_in(TOKEN) is None
    cookie, header = log_in(logins)
    both = f"{cookie.partition('=')[2]}\n{header['X-Zuno-Session']}"
    assert refusal(access, authorization=f"Bearer {both}") == 401


def test_of_many_who_have_the_same_code_one_is_logged_in(tmp_path: Path) -> None:
    logins = open_logins(tmp_path)
    logins.start(f"http://{HOST}/", end_sessions=False)
    code = build_logins(tmp_path, Clocks(millis=logins.now())).link("act").url.partition("#login=")[2]
    with ThreadPoolExecutor(8) as tabs:
        given = list(tabs.map(lambda _: open_logins(tmp_path).log_in(code), range(8)))
    assert len([login for login in given if login is not None]) == 1


def create_tokens(home: str, first: int) -> None:
    logins = open_logins(Path(home))
    for number in range(first, first + 10):
        logins.create_token(f"t{number}", "look")


def test_two_processes_change_the_logins_and_nothing_is_lost(tmp_path: Path) -> None:
    with ProcessPoolExecutor(2) as processes:
        list(processes.map(create_tokens, [str(tmp_path)] * 2, (0, 100)))
    logins = open_logins(tmp_path)
    assert len(logins.list("token").logins) == 20
    file = tmp_path / LOGINS_FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert {path.name for path in tmp_path.iterdir()} == {LOGINS_FILE, "web-logins.lock"}


def test_no_secret_lies_in_the_home(tmp_path: Path, logins: Logins) -> None:
    link = logins.link("act").url.partition("#login=")[2]
    cookie, header = log_in(logins)
    token = logins.create_token("grafana", "look").token
    assert token
    kept = (tmp_path / LOGINS_FILE).read_text()
    for secret in (link, cookie.partition("=")[2], *header.values(), token, TOKEN):
        assert secret not in kept
    assert token not in logins.list("token").model_dump_json()


def test_a_login_outlives_a_restart_but_not_where_real_money_is(
    access: Access, logins: Logins, clocks: Clocks, tmp_path: Path
) -> None:
    mine = log_in(logins)
    again = build_logins(tmp_path, clocks)
    again.start(f"http://{HOST}/", end_sessions=False)
    assert ask(build_access(again, clocks), mine) == 200
    again.start(f"http://{HOST}/", end_sessions=True)
    assert ask(build_access(again, clocks), mine) == 401
    assert ask(access, mine) == 401
    assert refusal(access, authorization=BEARER["Authorization"]) == 200, "a token is no session"


def test_a_login_ends_when_it_is_idle_in_time_and_bears_a_clock_that_was_set_back(
    access: Access, logins: Logins, clocks: Clocks
) -> None:
    mine, begun = log_in(logins), clocks.millis
    for moved, expected in (
        (-CLOCK_TOLERANCE_MS, 200),
        (-CLOCK_TOLERANCE_MS - 1, 401),
        (0, 200),
        (IDLE_MS, 401),
        (IDLE_MS - 1, 200),  # used: the week begins anew
        (2 * IDLE_MS - 2, 200),
        (3 * IDLE_MS - 3, 200),
        (4 * IDLE_MS - 4, 200),
        (SESSION_MS - 1, 200),
        (SESSION_MS, 401),
    ):
        clocks.millis = begun + moved
        assert ask(access, mine) == expected, moved
    assert (IDLE_MS, SESSION_MS) == (7 * DAY_MS, 30 * DAY_MS)


def test_the_use_of_a_login_is_written_down_once_an_hour_and_never_waited_for(
    access: Access, logins: Logins, clocks: Clocks, tmp_path: Path
) -> None:
    mine, file = log_in(logins), tmp_path / LOGINS_FILE
    before = file.read_bytes()
    clocks.millis += SEEN_MS - 1
    assert ask(access, mine) == 200
    assert file.read_bytes() == before
    clocks.millis += 1
    assert ask(access, mine) == 200
    assert build_logins(tmp_path, clocks).list("session").logins[0].seen == clocks.millis
    clocks.millis += SEEN_MS
    with FileLock(tmp_path / "web-logins.lock"):
        assert ask(access, mine) == 200


def test_sessions_are_listed_and_ended(access: Access, logins: Logins) -> None:
    first, second, third = log_in(logins), log_in(logins, "look"), log_in(logins)
    listed = logins.list("session").logins
    assert [session.scope for session in listed] == ["act", "look", "act"]
    callers = [access.check("GET", LOOK, {"host": HOST, SESSION_HEADER: h["X-Zuno-Session"]}, c) for c, h in (first,)]
    assert callers[0] is not None
    assert access.lasts(callers[0])
    assert logins.list("session", listed[0].name).logins == listed[1:]
    assert [ask(access, login) for login in (first, second, third)] == [401, 200, 200]
    assert not access.lasts(callers[0])
    with pytest.raises(NotFound):
        logins.list("session", listed[0].name)
    assert logins.list("session", "all").logins == ()
    assert [ask(access, login) for login in (second, third)] == [401, 401]


def test_a_token_has_a_name_and_a_scope_until_it_is_revoked(access: Access, logins: Logins) -> None:
    made = logins.create_token("grafana", "look")
    bearer = f"Bearer {made.token}"
    assert refusal(access, authorization=bearer) == 200
    assert refusal(access, path="/metrics", authorization=bearer) == 200
    assert refusal(access, "POST", ACT, authorization=bearer) == 403
    assert refusal(access, "POST", STOPS[0], authorization=bearer) == 403
    with pytest.raises(Refused):
        logins.create_token("grafana", "act")
    for name in ("", " ", "a b", "é", "-x", "x" * 41, "../x"):
        with pytest.raises(UsageError):
            logins.create_token(name, "look")
    assert [token.name for token in logins.list("token", "grafana").logins] == ["script"]
    assert refusal(access, authorization=bearer) == 401
    for name in ("grafana", "all"):
        with pytest.raises(NotFound):
            logins.list("token", name)


@pytest.mark.parametrize("span", ["0m", "25h", "2d", "1w", "soon", "", "-5m", "30"])
def test_leave_to_act_is_for_a_day_at_most(logins: Logins, span: str) -> None:
    with pytest.raises(UsageError):
        logins.allow(span)
    with pytest.raises(UsageError):
        logins.allow("30m", end=True)
    assert logins.allow().until is None


def test_leave_to_act_ends_in_time_and_bears_no_clock_that_was_set_back(logins: Logins, clocks: Clocks) -> None:
    began = clocks.millis
    assert logins.allow("1d").until == began + LONGEST_ALLOWANCE_MS
    assert logins.allow("30m").until == began + 30 * 60_000
    for moved, until in ((0, 30 * 60_000), (30 * 60_000 - 1, 30 * 60_000), (30 * 60_000, None), (-1, None)):
        clocks.millis = began + moved
        assert logins.allow().until == (None if until is None else began + until)


def test_where_real_money_is_only_what_lowers_risk_needs_no_leave(logins: Logins, clocks: Clocks) -> None:
    access, mine, look = build_access(logins, clocks, real_money=True), log_in(logins), log_in(logins, "look")
    bearer = BEARER["Authorization"]
    assert ask(access, mine, "POST", ACT) == 403
    assert refusal(access, "POST", ACT, authorization=bearer) == 403
    assert [ask(access, mine, "POST", stop) for stop in STOPS] == [200] * len(STOPS)
    assert [refusal(access, "POST", stop, authorization=bearer) for stop in STOPS] == [200] * len(STOPS)
    assert [ask(access, look, "POST", stop) for stop in STOPS] == [403] * len(STOPS)
    assert [ask(access, mine, "POST", path) for path in NO_STOPS] == [403] * len(NO_STOPS)
    assert ask(access, look, "DELETE", LOOK) == 200, "its own end"
    logins.allow("30m")
    assert ask(access, mine, "POST", ACT) == 200
    assert ask(access, look, "POST", ACT) == 403


def test_a_file_that_is_spoiled_while_the_page_runs_leaves_its_logins(
    access: Access, logins: Logins, clocks: Clocks, tmp_path: Path
) -> None:
    mine, file = log_in(logins), tmp_path / LOGINS_FILE
    assert ask(access, mine) == 200
    whole = file.read_bytes()
    for spoiled in (b"{", b'{"format": 2}', b"\xff"):
        file.write_bytes(spoiled)
        assert ask(access, mine) == 200
        with pytest.raises(Broken):
            build_logins(tmp_path, clocks).list("session")
        with pytest.raises(Broken):
            logins.create_token("x", "look")
    file.write_bytes(whole)
    assert ask(access, mine) == 200
    file.unlink()
    assert ask(access, mine) == 401


def test_no_link_is_made_where_no_page_is_served(tmp_path: Path) -> None:
    logins = open_logins(tmp_path)
    with pytest.raises(Refused):
        logins.link("act")
    logins.start(f"http://{HOST}/", end_sessions=False)
    with pytest.raises(Refused):
        logins.link("act")


def test_the_old_token_is_void_and_removed(access: Access, tmp_path: Path) -> None:
    old = tmp_path / OLD_TOKEN_FILE
    old.write_text("cd" * 32 + "\n")
    assert refusal(access, authorization=f"Bearer {'cd' * 32}") == 401
    (note,) = remove_old_token(tmp_path)
    assert "zuno web token create" in note
    assert not old.exists()
    assert remove_old_token(tmp_path) == ()


def test_two_homes_on_a_machine_have_two_cookies(tmp_path: Path) -> None:
    homes = [tmp_path / name for name in ("a", "b")]
    assert len({name_cookie(home) for home in homes}) == 2
    assert name_cookie(tmp_path / "x" / ".." / "a") == name_cookie(homes[0])


@pytest.mark.parametrize(
    "foreign", ['prefs={"theme":"dark"}', "é", "=", '"', "a b=c", "x=[1,2]", "zuno_=1", "expires=Thu, 01 Jan", ""]
)
def test_a_cookie_of_another_server_on_this_machine_locks_nobody_out(
    access: Access, logins: Logins, foreign: str
) -> None:
    own, header = log_in(logins)
    assert refusal(access, cookies=f"{foreign}; {own}", **header) == 200
    assert refusal(access, cookies=f"{own};{foreign}", **header) == 200
    assert refusal(access, cookies=f"{COOKIE}=tossed; {own}", **header) == 200
    assert refusal(access, cookies=f"x{own}; {foreign}", **header) == 401


@pytest.mark.parametrize("session", ["", "1.2.3", "9" * 17, "1800000000000." + "0" * 32 + "." + "0" * 64, '"', "é"])
def test_a_made_up_session_is_none(access: Access, logins: Logins, session: str) -> None:
    assert refusal(access, cookies=f"{COOKIE}={session}", **log_in(logins)[1]) == 401
    assert refusal(access, cookies=log_in(logins)[0], **{SESSION_HEADER: session}) == 401


async def test_guessing_is_slowed_and_the_owner_is_not(access: Access, logins: Logins, clocks: Clocks) -> None:
    async def guess(code: str) -> int:
        try:
            await access.log_in(code)
        except Problem as problem:
            return problem.view.status
        return 200

    mine = log_in(logins)
    assert [refusal(access, authorization="Bearer 00") for _ in range(5)] == [401] * 5
    assert [await guess("00") for _ in range(7)] == [401] * 5 + [429] * 2
    assert refusal(access, authorization="Bearer 00") == 429
    assert refusal(access, authorization=BEARER["Authorization"]) == 200
    assert ask(access, mine) == 200
    assert await guess(logins.link("act").url.partition("#login=")[2]) == 200
    clocks.seconds += 6.0
    assert refusal(access, authorization="Bearer 00") == 401


def test_too_many_acts_wait_for_their_turn(access: Access, clocks: Clocks) -> None:
    bearer = BEARER["Authorization"]
    answers = [refusal(access, "POST", ACT, authorization=bearer) for _ in range(31)]
    assert answers == [200] * 30 + [429]
    assert refusal(access, authorization=bearer) == 200
    clocks.seconds += 0.5
    assert refusal(access, "POST", ACT, authorization=bearer) == 200


@pytest.mark.parametrize("stop", STOPS)
def test_what_lowers_risk_waits_for_nothing_else(access: Access, stop: str) -> None:
    bearer = BEARER["Authorization"]
    for _ in range(500):
        refusal(access, "POST", ACT, authorization=bearer)
        refusal(access, authorization=bearer)
    assert refusal(access, "POST", ACT, authorization=bearer) == 429
    assert refusal(access, "POST", stop, authorization=bearer) == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "0", "", "::", "::0", "::ffff:0.0.0.0"])
def test_every_address_at_once_is_no_name_to_be_asked_by(host: str) -> None:
    from zuno.doors.web.server import open_port

    with pytest.raises(UsageError):
        open_port(host, 0)


def test_a_port_in_use_is_refused_in_a_sentence() -> None:
    from zuno.doors.web.server import open_port

    with open_port("127.0.0.1", 0) as taken, pytest.raises(Refused, match=r"--port"):
        open_port("127.0.0.1", taken.getsockname()[1])
