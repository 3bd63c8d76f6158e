"""Parse times, spans, percentages and amounts typed by a person. `UsageError` names the expected form."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Final, TypeVar

from zuno.kernel.errors import UsageError
from zuno.kernel.numbers_text import time_text
from zuno.kernel.text import plain_text
from zuno.kernel.units import Millis, Seconds

E = TypeVar("E", bound=StrEnum)
_SPAN = re.compile(r"([0-9]{1,6}) *(m|h|d|w)")
_UNIX = re.compile(r"[0-9]{9,11}")
_UNIX_MILLIS = re.compile(r"[0-9]{13}")
_BELOW_MILLISECOND = re.compile(r"[.,][0-9]{3,}[1-9]")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PERCENT = re.compile(r"[+-]?(?:[0-9]{1,20}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})(?:[eE][+-]?[0-9]{1,2})? *%?")
_SPAN_SECONDS = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_NUMBER = re.compile(r"(?:[0-9]+|[1-9][0-9]{0,2}(?:,[0-9]{3})+)(?:\.[0-9]+)?|\.[0-9]+")
MAX_TOKENS: Final = Decimal(10) ** 15
"""A larger amount is a typing mistake."""
MAX_DIGITS: Final = 60
BITCOIN_GENESIS: Final = Seconds(1_230_940_800)
WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
DAYS: Final = ("today", "yesterday")


def parse_span(text: str) -> Seconds:
    """A length of time: `90m`, `6h`, `2d`."""
    match = _SPAN.fullmatch(text.strip().lower())
    if match is None:
        raise UsageError(f"{plain_text(text, 40)!r} is not a length of time; write 90m, 6h or 2d.")
    return Seconds(int(match[1]) * _SPAN_SECONDS[match[2]])


def parse_moment(text: str, now: Seconds) -> Seconds:
    """A point in the past: `7d`, `36h`, `monday`, a date, an ISO time (UTC by default) or unix seconds.

    `now` is the chain's time, which on a local chain is not today's.
    """
    wanted = Seconds(_parse_point(text.strip(), Millis(now * 1_000)) // 1_000)
    if wanted > now:
        raise UsageError(_after_end_message(text, f"the chain's own time, {time_text(now)}"))
    return wanted


def parse_market_moment(text: str, end: Millis, latest: Millis, first: Millis) -> Millis:
    """The same in milliseconds, counted back from the end of the stored market data, not after `latest` and not before
    `first`."""
    wanted = _parse_point(text.strip(), end)
    if wanted > latest:
        raise UsageError(_after_end_message(text, f"the end of the stored data, {time_text(latest // 1_000)}"))
    if wanted < BITCOIN_GENESIS * 1_000:
        raise UsageError(_before_genesis_message(text))
    if wanted < first:
        raise UsageError(
            f"{plain_text(text, 40)!r} is before the stored data, which begins at {time_text(-(-first // 1_000))}; "
            "give a later date."
        )
    return wanted


def parse_period(since: str, until: str | None, now: Seconds) -> tuple[Seconds, Seconds]:
    """A period `[since, until)` of market data; without `until` it ends now."""
    today = Millis(now * 1_000)
    first = Seconds(_parse_point(since.strip(), today) // 1_000)
    last = now if until is None else Seconds(_parse_point(until.strip(), today) // 1_000)
    for point, written in ((first, since), (last, until)):
        if point > now and written is not None:
            raise UsageError(
                f"{plain_text(written, 40)!r} is in the future: it is {time_text(now)}; give an earlier date."
            )
    if first < BITCOIN_GENESIS:
        raise UsageError(_before_genesis_message(since))
    if first >= last:
        raise UsageError(
            f"From {time_text(first)} to {time_text(last)} is an empty period; write the earlier date first."
        )
    return first, last


def _after_end_message(text: str, end: str) -> str:
    return f"{text[:80]!r} lies after {end}; count back from there, as in 7d, or give an earlier date."


def _before_genesis_message(text: str) -> str:
    return f"{plain_text(text, 40)!r} is before {time_text(BITCOIN_GENESIS)}, the first Bitcoin block."


def _parse_point(text: str, now: Millis) -> Millis:
    if match := _SPAN.fullmatch(text.lower()):
        return Millis(now - int(match[1]) * _SPAN_SECONDS[match[2]] * 1_000)
    if (days := _days_back(text.lower(), now)) is not None:
        return Millis(now - now % 86_400_000 - days * 86_400_000)
    return parse_time(text, "7d, 36h, monday, 2026-01-25 or 2026-01-25T12:00")


def parse_time(text: str, forms: str = "2026-01-25 or 2026-01-25T12:00") -> Millis:
    """A point in time that is not counted from now: a date, an ISO time (UTC by default), unix seconds or
    milliseconds."""
    if _UNIX_MILLIS.fullmatch(text):
        return Millis(int(text))
    if _UNIX.fullmatch(text):
        return Millis(int(text) * 1_000)
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text[:80]!r} is not a time; write {forms}.") from None
    if _BELOW_MILLISECOND.search(text):
        raise UsageError(f"{text[:80]!r} is finer than a millisecond; give at most three decimals.")
    return Millis(((parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)) - _EPOCH) // timedelta(milliseconds=1))


def _days_back(day: str, now: Millis) -> int | None:
    """Days since a day's name last began; None where it is no day's name."""
    if day in DAYS:
        return DAYS.index(day)
    if day not in WEEKDAYS:
        return None
    today = now // 86_400_000 + 3  # the epoch was a Thursday
    return (today - WEEKDAYS.index(day)) % 7


def parse_percent(text: str) -> Decimal:
    """A price move in percent, without an exponent or trailing zeros."""
    if not PERCENT.fullmatch(text.strip()):
        raise UsageError(f"{text[:80]!r} is not a percentage; write -6 or 2.5.")
    value = Decimal(text.strip().removesuffix("%").rstrip())
    if not -100 < value <= 1000:
        raise UsageError("A move lies above -100 % and at most at 1000 %.")
    if value != round(value, 6):
        raise UsageError("A move has at most six decimals.")
    return Decimal(f"{value.normalize() + 0:f}")


def parse_amount(text: str) -> Decimal:
    """An exact amount above zero, in plain digits."""
    shown = plain_text(text, 40)
    digits = text.strip().removeprefix("+")
    if digits.startswith("-"):
        raise UsageError(f"An amount is above zero, {shown} is not.")
    if not _NUMBER.fullmatch(digits) or len(digits) > MAX_DIGITS:
        raise UsageError(f"{shown!r} is not an amount; write plain digits such as 0.05 or 1,250.5.")
    value = Decimal(digits.replace(",", ""))
    if value == 0:
        raise UsageError("An amount of 0 opens nothing; give an amount above zero.")
    if value >= MAX_TOKENS:
        raise UsageError(f"{shown} is too large; check the amount.")
    return value


def parse_word(words: type[E], text: str, hint: str) -> E:
    """The member of an enumeration that was typed, in any case and with either dash; `hint`: what it should be."""
    typed = text.strip().lower().replace("-", "_")
    for word in words:
        if word.value.lower() == typed:
            return word
    raise UsageError(f"{plain_text(text, 40)!r} is no {hint}.")
