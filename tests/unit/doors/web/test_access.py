"""Who may ask the page: this machine's own names, a login or the token, no other site, and not too often."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.wire.page_app import BEARER, HOST, TOKEN, Clocks, build_access
from zuno.doors.web.access import CLOCK_TOLERANCE_MS, CSRF_HEADER, SESSION_MS, Access
from zuno.doors.web.problems import Problem
from zuno.kernel.errors import Refused, UsageError
from zuno.wiring.web import TOKEN_FILE, read_token

LOOK, ACT = "/api/v1/session", "/api/v1/trading/unlock"
STOPS = ("/api/v1/trading/kill", "/api/v1/trading/pause", "/api/v1/lp/plans/plan_000000000000/cancel")


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


@pytest.fixture
def access(clocks: Clocks) -> Access:
    return build_access(clocks)


def refusal(access: Access, method: str = "GET", path: str = LOOK, cookies: str = "", **headers: str) -> int:
    """The status of the refusal; 200 where there is none."""
    given = {"host": HOST, **{name.replace("_", "-"): value for name, value in headers.items()}}
    try:
        access.check(method, path, given, cookies)
    except Problem as problem:
        return problem.view.status
    return 200


def cookie_of(access: Access) -> str:
    return f"{access.cookie}={access.login(TOKEN)}"


def test_a_script_with_the_token_may_look_and_act(access: Access) -> None:
    bearer = BEARER["Authorization"]
    assert refusal(access, authorization=bearer) == 200
    assert refusal(access, "POST", ACT, authorization=bearer) == 200


@pytest.mark.parametrize(
    "given", ["", "Bearer", f"Bearer {TOKEN[:-1]}", f"Bearer {TOKEN}0", f"Basic {TOKEN}", "Bearer é"]
)
def test_a_wrong_token_is_nobody(access: Access, given: str) -> None:
    assert refusal(access, authorization=given) == 401


def test_without_a_login_nothing_is_told(access: Access) -> None:
    assert refusal(access) == 401
    assert refusal(access, path="/metrics") == 401
    assert refusal(access, path="/healthz") == 200


def test_a_login_looks_and_acts_with_its_second_word_alone(access: Access) -> None:
    cookie = cookie_of(access)
    session = cookie.partition("=")[2]
    assert refusal(access, cookies=cookie) == 200
    assert refusal(access, "POST", ACT, cookie) == 403
    assert refusal(access, "POST", ACT, cookie, x_csrf_token="00") == 403
    assert refusal(access, "POST", ACT, cookie, x_csrf_token=access.csrf_token(session)) == 200
    other = access.csrf_token(f"1{session}")
    assert refusal(access, "POST", ACT, cookie, x_csrf_token=other) == 403
    assert CSRF_HEADER == "x-csrf-token"


@pytest.mark.parametrize(
    "host", ["", "evil.example", "evil.example:8420", "127.0.0.1.evil.example", "localhost@evil.example", "127.0.0.2"]
)
def test_a_foreign_name_for_this_machine_is_refused(access: Access, host: str) -> None:
    """DNS rebinding: the browser believes that the other site is here."""
    assert refusal(access, cookies=cookie_of(access), host=host) == 421
    assert refusal(access, path="/", host=host) == 421


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:1", "LOCALHOST:8420", "[::1]:8420"])
def test_a_tunnel_may_have_another_port(access: Access, host: str) -> None:
    assert refusal(access, cookies=cookie_of(access), host=host) == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:9999", f"https://{HOST}"])
def test_another_site_may_not_ask(access: Access, origin: str) -> None:
    assert refusal(access, cookies=cookie_of(access), origin=origin) == 403
    assert refusal(access, authorization=BEARER["Authorization"], origin=origin) == 403


def test_its_own_origin_may(access: Access) -> None:
    assert refusal(access, cookies=cookie_of(access), origin=f"http://{HOST}", sec_fetch_site="same-origin") == 200
    assert refusal(access, cookies=cookie_of(access), sec_fetch_site="cross-site") == 403
    assert refusal(access, cookies=cookie_of(access), sec_fetch_site="same-site") == 403


def test_a_login_outlives_a_restart_and_ends_with_the_token(access: Access, clocks: Clocks) -> None:
    cookie = cookie_of(access)
    assert refusal(build_access(clocks), cookies=cookie) == 200
    changed = build_access(clocks, "cd" * 32)
    assert refusal(changed, cookies=cookie) == 401
    assert refusal(changed, cookies=f"{changed.cookie}={cookie.partition('=')[2]}") == 401


def test_a_login_ends_in_time_and_bears_a_clock_that_was_set_back(access: Access, clocks: Clocks) -> None:
    cookie, begun = cookie_of(access), clocks.millis
    for moved, expected in (
        (SESSION_MS - 1, 200),
        (SESSION_MS, 401),
        (-CLOCK_TOLERANCE_MS, 200),
        (-CLOCK_TOLERANCE_MS - 1, 401),
    ):
        clocks.millis = begun + moved
        assert refusal(access, cookies=cookie) == expected


@pytest.mark.parametrize(
    "foreign", ['prefs={"theme":"dark"}', "é", "=", '"', "a b=c", "x=[1,2]", "zuno_=1", "expires=Thu, 01 Jan", ""]
)
def test_a_cookie_of_another_server_on_this_machine_locks_nobody_out(access: Access, foreign: str) -> None:
    own = cookie_of(access)
    assert refusal(access, cookies=f"{foreign}; {own}") == 200
    assert refusal(access, cookies=f"{own};{foreign}") == 200
    assert refusal(access, cookies=f"x{own}; {foreign}") == 401


@pytest.mark.parametrize("session", ["", "1.2.3", "9" * 17, "1800000000000." + "0" * 32 + "." + "0" * 64, '"', "é"])
def test_a_made_up_session_is_none(access: Access, session: str) -> None:
    assert refusal(access, cookies=f"{access.cookie}={session}") == 401


def test_guessing_is_slowed_and_the_owner_is_not(access: Access, clocks: Clocks) -> None:
    cookie = cookie_of(access)
    assert [refusal(access, authorization="Bearer 00") for _ in range(12)] == [401] * 10 + [429] * 2
    assert refusal(access, authorization=BEARER["Authorization"]) == 200
    assert refusal(access, cookies=cookie) == 200
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


def test_the_token_is_made_once_and_is_its_owners_alone(tmp_path: Path) -> None:
    token = read_token(tmp_path)
    assert read_token(tmp_path) == token
    assert stat.S_IMODE((tmp_path / TOKEN_FILE).stat().st_mode) == 0o600


def test_a_token_that_was_lost_or_seen_or_spoiled_is_made_anew(tmp_path: Path) -> None:
    path, first = tmp_path / TOKEN_FILE, read_token(tmp_path)
    path.unlink()
    second = read_token(tmp_path)
    path.chmod(0o644)
    third = read_token(tmp_path)
    path.write_bytes(b"\xff\x00 not a token")
    fourth = read_token(tmp_path)
    assert len({first, second, third, fourth}) == 4
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("host", ["0.0.0.0", "0", "", "::", "::0", "::ffff:0.0.0.0"])
def test_every_address_at_once_is_no_name_to_be_asked_by(host: str) -> None:
    from zuno.doors.web.server import open_port

    with pytest.raises(UsageError):
        open_port(host, 0)


def test_a_port_in_use_is_refused_in_a_sentence() -> None:
    from zuno.doors.web.server import open_port

    with open_port("127.0.0.1", 0) as taken, pytest.raises(Refused, match=r"--port"):
        open_port("127.0.0.1", taken.getsockname()[1])
