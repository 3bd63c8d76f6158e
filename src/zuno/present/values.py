"""Values of a document: a number with its unit, rounded for eyes once, and texts by who wrote them. Each function is
named by what it makes, so that a document reads as what it shows: `money(5)`, `good("in range")`, `when(moment)`."""

from dataclasses import replace
from decimal import Decimal
from functools import partial

from zuno.kernel.numbers_text import (
    currency_text,
    hours_text,
    multiple_text,
    percent_text,
    price_text,
    short_text,
    time_text,
)
from zuno.present.document import Kind, Tone, Value

Number = float | int | str | Decimal


good = partial(Value, tone=Tone.GOOD)
bad = partial(Value, tone=Tone.BAD)
warn = partial(Value, tone=Tone.WARN)
quiet = partial(Value, tone=Tone.QUIET)
strong = partial(Value, tone=Tone.STRONG)
name = partial(Value, kind=Kind.NAME)
"""A name that we gave and that prose may repeat."""
id_ = partial(Value, kind=Kind.ID)


def foreign(text: str, tone: Tone = Tone.PLAIN) -> Value:
    """A text that we did not write, or a sentence of ours that quotes one: always one line."""
    return Value(text.replace("\n", " "), tone, Kind.FOREIGN)


def money(amount: float | None, currency: str = "USD") -> Value:
    """An amount of a currency; None: unknown."""
    if amount is None:
        return bad("unknown")
    unit = "USD" if currency == "USDT" else currency
    return _figure(currency_text(amount, currency), amount, unit, 0 if currency == "KRW" else 2)


def price(amount: float | None, currency: str = "USD") -> Value:
    """Like money; of a coin below 10 with five digits, for its entry, stop and mark differ by less than a cent."""
    value = money(amount, currency)
    if amount is None or not 0 < amount < 10:
        return value
    return replace(value, text=value.text[:1] + price_text(amount), digits=4 - Decimal(str(amount)).adjusted())


def gain(amount: float | None, currency: str = "USD") -> Value:
    """A profit or a loss."""
    value = money(amount, currency)
    if value.number is None or not any(digit in value.text for digit in "123456789"):  # $0.00 is neither
        return value
    return replace(value, tone=Tone.GOOD if value.number > 0 else Tone.BAD, signed=True)


def amount(text: str | None, symbol: str, *, exact: bool = False) -> Value:
    """A decimal text of tokens, rounded unless `exact`; None: unknown."""
    if text is None:
        return quiet("unknown")
    return _figure(f"{text if exact else short_text(text)} {symbol}".rstrip(), text, symbol, 4)


def percent(value: Number | None, digits: int = 2, *, signed: bool = False) -> Value:
    """Per cent, given as such; None: not known."""
    if value is None:
        return quiet("–")
    text = f"{Decimal(str(value)):{'+' if signed else ''}z.{digits}f} %"
    return _figure(text, value, "%", digits, signed=signed)


def share(value: float | None, *, signed: bool = False) -> Value:
    """A share of one, in per cent; None: not known."""
    if value is None:
        return quiet("–")
    if signed:
        return percent(Decimal(str(value)) * 100, 1, signed=True)
    return _figure(percent_text(value), Decimal(str(value)) * 100, "%", 1)


def count(value: int) -> Value:
    return _figure(f"{value:,}", value, "", 0)


def number(value: Number | None, digits: int = 2, *, unit: str = "", signed: bool = False) -> Value:
    """A plain number, or one of a unit that is written behind it; None: not known."""
    if value is None:
        return quiet("–")
    text = f"{Decimal(str(value)):{'+' if signed else ''}z,.{digits}f}"
    return _figure(f"{text}{'' if unit in ('', '×') else ' '}{unit}", value, unit, digits, signed=signed)


def multiple(value: float | None) -> Value:
    """A result in R, the risk that was taken."""
    return quiet("–") if value is None else _figure(multiple_text(value), value, "R", signed=True)


def hours(value: float | None) -> Value:
    return quiet("–") if value is None else _figure(hours_text(value), value, "h", 1)


def when(timestamp: int | None) -> Value:
    return quiet("–") if timestamp is None else Value(time_text(timestamp))


def _figure(text: str, value: Number, unit: str, digits: int = 2, *, signed: bool = False) -> Value:
    return Value(text, number=Decimal(str(value)), unit=unit, digits=digits, signed=signed)
