"""Codes of an authenticator app: RFC 6238's own vectors, each once, few guesses, clocks that differ."""

from __future__ import annotations

import stat
from base64 import b32encode
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.wire.page_app import NOW, Clocks, build_logins
from zuno.doors.web_logins import LOCKED_MS, MOST_WRONG, STEP_MS, Factors, match_step, write_code
from zuno.kernel.errors import Broken, NotFound, Refused, UsageError
from zuno.wiring.web import FACTORS_FILE
from zuno.wiring.web import build_logins as open_logins

RFC_SECRET = b32encode(b"12345678901234567890").decode()


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


@pytest.fixture
def factors(clocks: Clocks, tmp_path: Path) -> Factors:
    return build_logins(tmp_path, clocks).factors


@pytest.mark.parametrize(
    ("seconds", "code"),
    [
        (59, "94287082"),
        (1111111109, "07081804"),
        (1111111111, "14050471"),
        (1234567890, "89005924"),
        (2000000000, "69279037"),
        (20000000000, "65353130"),
    ],
)
def test_codes_are_those_of_the_standard(seconds: int, code: str) -> None:
    """Appendix B gives eight digits; six are the last of them."""
    assert write_code(RFC_SECRET, seconds // 30) == code[-6:]


@pytest.mark.parametrize(
    ("steps", "verdict"), [(-3, "wrong"), (-2, "wrong"), (-1, "right"), (0, "right"), (1, "right"), (2, "wrong")]
)
def test_clocks_may_differ_by_a_step_and_not_by_a_minute(factors: Factors, steps: int, verdict: str) -> None:
    secret = factors.add("totp", "phone").secret
    assert factors.take(write_code(secret, NOW // STEP_MS + steps)) == verdict


def test_a_code_is_good_once_and_no_older_one_after_it(factors: Factors, clocks: Clocks) -> None:
    secret, step = factors.add("totp", "phone").secret, NOW // STEP_MS
    assert factors.take(write_code(secret, step)) == "right"
    assert factors.take(write_code(secret, step)) == "used"
    assert factors.take(write_code(secret, step - 1)) == "used"
    assert factors.list().wrong == 0, "who types it twice guesses nothing"
    clocks.millis += STEP_MS
    assert factors.take(write_code(secret, step)) == "used"
    assert factors.take(write_code(secret, step + 1)) == "right"
    clocks.millis = NOW - 10 * STEP_MS
    assert factors.take(write_code(secret, step - 10)) == "used", "a clock that was set back brings none back"


def test_of_many_who_have_the_same_code_one_acts(tmp_path: Path) -> None:
    secret = open_logins(tmp_path).factors.add("totp", "phone").secret
    code = write_code(secret, open_logins(tmp_path).now() // STEP_MS)
    with ThreadPoolExecutor(8) as tabs:
        verdicts = list(tabs.map(lambda _: open_logins(tmp_path).factors.take(code), range(8)))
    assert sorted(verdicts) == ["right", *["used"] * 7]


def test_after_wrong_codes_none_is_taken_for_a_time(factors: Factors, clocks: Clocks, tmp_path: Path) -> None:
    secret = factors.add("totp", "phone").secret
    right = write_code(secret, NOW // STEP_MS)
    wrong = f"{(int(right) + 1) % 1_000_000:06}"
    assert match_step(secret, wrong, NOW) is None
    for given in (wrong, "", "12345", f"{right}0", "１２３４５６")[: MOST_WRONG - 1]:
        assert factors.take(given) == "wrong"
    assert factors.take(wrong) == "wrong"
    assert factors.take(right) == "locked"
    assert build_logins(tmp_path, clocks).factors.take(right) == "locked", "a restart does not lift it"
    assert factors.list().locked == (NOW, NOW + LOCKED_MS)
    clocks.millis += LOCKED_MS
    assert factors.list().locked is None
    assert factors.take(write_code(secret, clocks.millis // STEP_MS)) == "right"


def test_a_right_code_forgets_the_wrong_ones(factors: Factors, clocks: Clocks) -> None:
    secret = factors.add("totp", "phone").secret
    for _ in range(3):
        assert [factors.take("x") for _ in range(MOST_WRONG - 1)] == ["wrong"] * (MOST_WRONG - 1)
        assert factors.take(write_code(secret, clocks.millis // STEP_MS)) == "right"
        clocks.millis += STEP_MS


def test_factors_are_added_listed_and_removed(factors: Factors, tmp_path: Path) -> None:
    assert factors.take("000000") == "none"
    made = factors.add("totp", "phone")
    words = str(made.to_document())
    assert f"otpauth://totp/Zuno:phone?secret={made.secret}&issuer=Zuno&algorithm=SHA1&digits=6&period=30" in words
    assert len(made.secret) == 32
    file = tmp_path / FACTORS_FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert made.secret not in factors.list().model_dump_json()
    assert made.secret not in (tmp_path / "web-logins.json").read_text()
    with pytest.raises(Refused):
        factors.add("totp", "phone")
    other = factors.add("totp", "key")
    assert factors.take(write_code(other.secret, NOW // STEP_MS)) == "right"
    assert [factor.name for factor in factors.remove("phone").factors] == ["key"]
    with pytest.raises(NotFound):
        factors.remove("phone")
    file.write_text("{")
    with pytest.raises(Broken):
        factors.take("000000")


@pytest.mark.parametrize(
    ("kind", "name"), [("sms", "phone"), ("passkey", "phone"), ("totp", ""), ("totp", "a b"), ("totp", "a:b")]
)
def test_an_unknown_kind_or_a_bad_name_is_refused(factors: Factors, kind: str, name: str) -> None:
    with pytest.raises(UsageError):
        factors.add(kind, name)
    assert factors.list().factors == ()
