"""Exact numbers turned into the decimal strings that people and scripts read."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

_CONTEXT = Context(prec=420, rounding=ROUND_HALF_EVEN)  # 256 bits of anything, at any price, with 255 decimals


def decimal_text(value: Fraction, digits: int) -> str:
    """A fraction with `digits` significant digits, in plain notation, without trailing zeros."""
    number = Context(prec=digits, rounding=ROUND_HALF_EVEN).create_decimal(
        _CONTEXT.divide(Decimal(value.numerator), Decimal(value.denominator))
    )
    return _plain(number)


def money_text(value: Fraction, decimals: int, places: int = 6) -> str:
    """Base units as a whole-token amount rounded to at most `places` places (never more than the token has)."""
    whole = _CONTEXT.divide(Decimal(value.numerator), Decimal(value.denominator * 10**decimals))
    return _plain(whole.quantize(Decimal(1).scaleb(-min(places, decimals)), context=_CONTEXT))


def _plain(number: Decimal) -> str:
    text = format(number, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in {"-0", ""} else text


def time_text(timestamp: int) -> str:
    """A UTC time for people; a timestamp outside the calendar stays a number."""
    try:
        return datetime.fromtimestamp(timestamp, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (ValueError, OverflowError, OSError):
        return f"{timestamp} s (unix)"
