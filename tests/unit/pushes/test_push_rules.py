"""Which pushes ring: by kind, by the hour, by how bad it is."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from zuno.kernel.errors import UsageError
from zuno.kernel.notify import Notice, NoticeKind, NoticeLabel, Severity
from zuno.kernel.units import Seconds
from zuno.pushes.rules import DEFAULT_MODES, PushMode, PushRules, parse_push_modes, parse_quiet_hours


def at(text: str) -> Seconds:
    return Seconds(int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()))


def notice(kind: NoticeKind = NoticeKind.STOP, severity: Severity = Severity.WARNING) -> Notice:
    return Notice(kind, "title", severity, NoticeLabel.PAPER, at("2026-01-01"))


def test_nothing_said_keeps_the_defaults() -> None:
    assert parse_push_modes("") == parse_push_modes(" , ") == DEFAULT_MODES
    assert DEFAULT_MODES[NoticeKind.FILL] is PushMode.SILENT
    assert DEFAULT_MODES[NoticeKind.STOP] is PushMode.ON


def test_kinds_are_switched_one_by_one_or_all_at_once() -> None:
    modes = parse_push_modes("ALL=off, stop = on,fill=silent")
    assert {kind for kind, mode in modes.items() if mode is PushMode.ON} == {NoticeKind.STOP}
    assert modes[NoticeKind.FILL] is PushMode.SILENT


@pytest.mark.parametrize("text", ["fill", "fill=", "=on", "fill=loud", "fills=on", "fill=on;stop=off", "fill=on=off"])
def test_what_is_no_mode_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_push_modes(text)


@pytest.mark.parametrize(
    ("hours", "moment", "quiet"),
    [
        ("22:00-07:00", "2026-06-01T21:59:59", False),
        ("22:00-07:00", "2026-06-01T22:00", True),
        ("22:00-07:00", "2026-06-01T06:59:59", True),
        ("22:00-07:00", "2026-06-01T07:00", False),
        ("9:00-17:30", "2026-06-01T17:29", True),
        ("9:00-17:30", "2026-06-01T17:30", False),
        ("12:00-12:00", "2026-06-01T12:00", False),
        ("22:00-07:00 Asia/Seoul", "2026-06-01T13:00", True),
        ("22:00-07:00 Asia/Seoul", "2026-06-01T22:00", False),
        ("22:00-07:00 Europe/Zurich", "2026-06-01T20:30", True),  # summer time
        ("22:00-07:00 Europe/Zurich", "2026-01-01T20:30", False),
        ("22:00-07:00 UTC", "2026-06-01T22:00", True),
    ],
)
def test_hours_are_quiet_from_the_first_minute_up_to_the_last(hours: str, moment: str, quiet: bool) -> None:
    rules = PushRules(quiet=parse_quiet_hours(hours))
    assert rules.choose_mode(notice(), at(moment)) is (PushMode.SILENT if quiet else PushMode.ON)
    assert rules.choose_mode(notice(severity=Severity.CRITICAL), at(moment)) is PushMode.ON


def test_what_is_off_stays_off_and_what_is_silent_stays_silent_however_critical() -> None:
    rules = PushRules(parse_push_modes("stop=off,alert=silent"))
    critical = Severity.CRITICAL
    assert rules.choose_mode(notice(severity=critical), at("2026-01-01")) is PushMode.OFF
    assert rules.choose_mode(notice(NoticeKind.ALERT, critical), at("2026-01-01")) is PushMode.SILENT


def test_no_quiet_hours_are_none() -> None:
    assert parse_quiet_hours("  ") is None


@pytest.mark.parametrize(
    "text",
    [
        "22-7",
        "24:00-07:00",
        "22:00-07:60",
        "22:00",
        "22:00-07:00 Nowhere/Land",
        "22:00-07:00 ../../etc/passwd",
        "x" * 99,
    ],
)
def test_what_is_no_span_of_hours_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_quiet_hours(text)
