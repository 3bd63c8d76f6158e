"""What a person types: read exactly, or refused with a sentence that says what would be right."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest

from zuno.kernel import arguments
from zuno.kernel.errors import UsageError
from zuno.kernel.text import parse_units
from zuno.kernel.units import Millis, Seconds
from zuno.lp.service import arguments as asked

NOW = Seconds(1_769_817_600)  # 2026-01-31 00:00 UTC
DAY = 86_400
FULL_WIDTH = str.maketrans("0123456789", "０１２３４５６７８９")
ARABIC = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")


@pytest.mark.parametrize(
    ("text", "value", "shown"),
    [("-6", "-6", "-6"), ("1e1", "10", "10"), ("1E+2 %", "100", "100"), (" 2.50% ", "2.5", "2.5"), ("-0", "0", "0")],
)
def test_a_percentage_is_said_back_in_plain_digits(text: str, value: str, shown: str) -> None:
    assert arguments.parse_percent(text) == Decimal(value)
    assert str(arguments.parse_percent(text)) == shown


@pytest.mark.parametrize(
    "text", ["lots", "", "nan", "inf", "1_0", "--6", "1e999999999", "0e-999999999", "9" * 21, "-100", "1000.1", "1e-7"]
)
def test_what_is_no_move_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        arguments.parse_percent(text)


READERS: list[tuple[Callable[[str], object], str]] = [
    (asked.position_id, "12"),
    (arguments.parse_percent, "12"),
    (arguments.parse_amount, "12.5"),
    (asked.fee_of, "5bps"),
    (lambda text: arguments.parse_moment(text, NOW), "12h"),
    (lambda text: arguments.parse_moment(text, NOW), "2026-01-25"),
    (lambda text: arguments.parse_moment(text, NOW), "1769000000"),
    (lambda text: parse_units(text, 6), "12"),
]


@pytest.mark.parametrize(
    ("read", "text"), READERS, ids=[f"{number} {text}" for number, (_, text) in enumerate(READERS)]
)
@pytest.mark.parametrize("digits", [FULL_WIDTH, ARABIC], ids=["full width", "arabic"])
def test_only_plain_digits_are_digits(read: Callable[[str], object], text: str, digits: dict[int, int]) -> None:
    read(text)
    with pytest.raises((UsageError, ValueError)):
        read(text.translate(digits))


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("7d", NOW - 7 * DAY),
        ("36 h", NOW - 36 * 3600),
        ("2w", NOW - 14 * DAY),
        ("2026-01-30", NOW - DAY),
        ("2026-01-30T01:00+01:00", NOW - DAY),
        (str(NOW), NOW),
        ("today", NOW),
        ("Saturday", NOW),
        ("yesterday", NOW - DAY),
        ("monday", NOW - 5 * DAY),
        ("sunday", NOW - 6 * DAY),
    ],
)
def test_a_moment_counts_from_the_chains_own_time(text: str, moment: int) -> None:
    assert arguments.parse_moment(text, NOW) == moment


@pytest.mark.parametrize("text", ["2026-02-01", "2031-01-01", str(NOW + 1)])
def test_a_moment_that_has_not_come_is_refused_with_advice(text: str) -> None:
    with pytest.raises(UsageError, match="2026-01-31 00:00 UTC"):
        arguments.parse_moment(text, NOW)


def test_an_absurd_clock_does_not_stop_the_advice() -> None:
    with pytest.raises(UsageError, match="2026-01-01"):
        arguments.parse_moment("2026-01-01", Seconds(-(2**70)))


END = Millis(NOW * 1_000 + 250)
EVER_AGO = Millis(0)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("7d", END - 7 * DAY * 1_000),
        ("0m", END),
        ("2026-01-31T00:00:00.250Z", END),
        ("2026-01-31T01:00:00.251+01:00", END + 1),
        ("2026-01-30T23:59:59.999", END - 251),
        (str(END), END),
        (str(NOW), NOW * 1_000),
        ("2009-01-03", 1_230_940_800_000),
    ],
)
def test_a_moment_of_the_market_is_read_to_the_millisecond(text: str, moment: int) -> None:
    assert arguments.parse_market_moment(text, END, Millis(END + 1), EVER_AGO) == moment


@pytest.mark.parametrize("text", [str(END + 1), "2026-01-31T00:00:00.251", "2026-01-31T00:00:01", "9999-12-31"])
def test_a_moment_after_what_is_kept_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="2026-01-31 00:00 UTC"):
        arguments.parse_market_moment(text, END, END, EVER_AGO)


def test_a_moment_before_the_stored_data_is_refused() -> None:
    assert arguments.parse_market_moment("7d", END, END, Millis(END - 7 * DAY * 1_000)) == END - 7 * DAY * 1_000
    with pytest.raises(UsageError, match="2026-01-24 00:00"):
        arguments.parse_market_moment("2010-01-01", END, END, Millis(END - 7 * DAY * 1_000))


@pytest.mark.parametrize(
    "text", ["2026-01-30T00:00:00.1234Z", "2026-01-30T00:00:00,123001", "2026-01-30T00:00:00.123000000009Z"]
)
def test_a_moment_between_two_milliseconds_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="millisecond"):
        arguments.parse_market_moment(text, END, END, EVER_AGO)
    short = text.replace("4Z", "0Z").replace("001", "000").replace("9Z", "0Z")
    assert arguments.parse_market_moment(short, END, END, EVER_AGO) % 1_000 == 123


@pytest.mark.parametrize(
    "text", ["999999w", "0001-01-01", "0001-01-01T00:00+14:00", "2009-01-02T23:59:59.999", "0" * 13]
)
def test_a_moment_before_the_first_coin_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="2009-01-03 00:00 UTC"):
        arguments.parse_market_moment(text, END, END, EVER_AGO)


@pytest.mark.parametrize(
    ("text", "in_range", "edge", "meant"),
    [
        (None, False, "-3.2", True),
        ("in-range", True, "9.1", True),
        ("in-range", False, "-1", False),
        ("out-of-range", False, "-1", True),
        ("out-of-range", True, "0.1", False),
        ("risky", True, "14.9", True),
        ("risky", True, "15.0", False),
        ("risky", False, "-40", True),
    ],
)
def test_a_state_says_which_positions_are_meant(text: str | None, in_range: bool, edge: str, meant: bool) -> None:
    assert asked.state(text)(in_range, edge) is meant


def test_a_state_nobody_knows_is_named() -> None:
    with pytest.raises(UsageError, match="risky"):
        asked.state("soggy")
