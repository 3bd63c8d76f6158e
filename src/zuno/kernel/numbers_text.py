"""Numbers as text, exact or rounded for people."""

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import Final

_CONTEXT = Context(prec=420, rounding=ROUND_HALF_EVEN)  # 256 bits of anything, at any price, with 255 decimals


def decimal_text(value: Fraction, digits: int) -> str:
    """A fraction with `digits` significant digits, in plain notation, without trailing zeros."""
    number = Context(prec=digits, rounding=ROUND_HALF_EVEN).create_decimal(
        _CONTEXT.divide(Decimal(value.numerator), Decimal(value.denominator))
    )
    return plain_digits(number)


def quantity_text(quantity: float, digits: int = 6) -> str:
    """A quantity with `digits` significant digits, never with an exponent: 0.00005 and not 5e-05."""
    return decimal_text(Fraction(quantity), digits)


def money_text(value: Fraction, decimals: int, places: int = 6) -> str:
    """Base units as a whole-token amount rounded to at most `places` places (never more than the token has)."""
    whole = _CONTEXT.divide(Decimal(value.numerator), Decimal(value.denominator * 10**decimals))
    return plain_digits(whole.quantize(Decimal(1).scaleb(-min(places, decimals)), context=_CONTEXT))


def plain_digits(number: Decimal) -> str:
    """Without an exponent, trailing zeros or a minus zero."""
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


# -- rounded for eyes, never for sums; every door prints a figure alike

_SIGNS: Final = {"USD": "$", "KRW": "₩"}
_BARS: Final = "▁▂▃▄▅▆▇█"


def short_text(text: str) -> str:
    """Two places on large numbers, four significant digits on small ones."""
    number = Decimal(text)
    if not number:
        return "0"
    if abs(number) >= 10**15:
        return f"{number:.4g}"  # an absurd pool has absurd prices; nobody reads thirty digits
    if abs(number) >= 100:
        return f"{number:,.2f}" if "." in text else f"{number:,}"
    rounded = f"{round(number, max(0, 3 - number.adjusted())):f}"
    return rounded.rstrip("0").rstrip(".") if "." in rounded else rounded


def thousands_text(text: str) -> str:
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
    return sign + (f"{int(digits):,}" if digits.isdigit() else digits)


def currency_text(amount: float | None, currency: str = "USD") -> str:
    if amount is None:
        return "unknown"
    digits = 0 if currency == "KRW" else 2
    sign = "-" if round(amount, digits) < 0 else ""
    figure = f"{abs(amount):,.{digits}f}"
    return f"{sign}{_SIGNS[currency]}{figure}" if currency in _SIGNS else f"{sign}{figure} {currency}"


def percent_text(share: float | None) -> str:
    return "–" if share is None else f"{share * 100:.1f} %"


def multiple_text(value: float | None) -> str:
    """A result in multiples of R, the risk taken."""
    return "–" if value is None else f"{value:+.2f} R"


def hours_text(hours: float | None) -> str:
    if hours is None:
        return "–"
    return f"{hours:.1f} h" if hours < 48 else f"{hours / 24:.1f} d"


def sparkline(values: Sequence[float], width: int = 60) -> str:
    """A curve in one line of text: the last value of each of so many parts."""
    picked = (
        [values[(place + 1) * len(values) // width - 1] for place in range(width)] if len(values) > width else values
    )
    low, high = min(picked), max(picked)
    if high <= low:
        return _BARS[3] * len(picked)
    return "".join(_BARS[min(7, int((value - low) / (high - low) * 8))] for value in picked)


def format_number(value: float | str | None) -> str:
    """Rounded for eyes: a price, a share, or a word that stands in a figure's place."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    size = abs(value)
    if value == int(value) and size < 1e15:
        return f"{int(value):,}"
    return f"{value:,.0f}" if size >= 100_000 else f"{value:,.2f}" if size >= 10 else f"{value:,.4g}"


def format_signed(value: float | None, places: int = 2) -> str:
    if value is None:
        return "–"
    return f"{value:+,.{places}f}".replace("-", "−") if round(value, places) else f"{0:.{places}f}"


def format_span(seconds: int) -> str:
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def price_text(price: float) -> str:
    """With cents; below 10 with five digits, for levels of a cheap coin differ by less than a cent."""
    if not 0 < price < 10:
        return f"{price:,.2f}"
    digits = 4 - Decimal(str(price)).adjusted()
    whole, _, cents = f"{Decimal(str(price)):.{digits}f}".rstrip("0").partition(".")
    return f"{whole}.{cents:0<2}"
