"""Words a person typed, read into values or refused with a sentence that says what would be right."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Final

from zuno.app.figures import time_text
from zuno.app.phrases import token_named
from zuno.domain.alerts import is_alert_id
from zuno.domain.errors import Usage
from zuno.domain.tokens import plain_text
from zuno.domain.units import Address, HexId, Millis, Seconds

_ID = re.compile(r"[0-9]{1,78}")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_POOL_ID = re.compile(r"0x[0-9a-fA-F]{64}")
_SPAN = re.compile(r"([0-9]{1,6}) *(m|h|d|w)")
_UNIX = re.compile(r"[0-9]{9,11}")
_UNIX_MILLIS = re.compile(r"[0-9]{13}")
_FINER = re.compile(r"[.,][0-9]{3,}[1-9]")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PERCENT = re.compile(r"[+-]?(?:[0-9]{1,20}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})(?:[eE][+-]?[0-9]{1,2})? *%?")
_SPAN_SECONDS = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}
MAX_ID = (1 << 256) - 1
_NUMBER = re.compile(r"(?:[0-9]+|[1-9][0-9]{0,2}(?:,[0-9]{3})+)(?:\.[0-9]+)?|\.[0-9]+")
_FEE = re.compile(r"(?P<number>\S+?)\s*(?P<unit>%|percent|bps?|pips?)", re.IGNORECASE)
_PAIR = re.compile(
    r"(?P<base>0x[0-9a-fA-F]{40}|[A-Za-z0-9.]{1,16})\s*[/-]\s*(?P<quote>0x[0-9a-fA-F]{40}|[A-Za-z0-9.]{1,16})"
)
_PLAN = re.compile(r"plan_[0-9a-f]{12}")
_CAPITAL = re.compile(r"(?P<amount>\S+?)\s*(?P<token>0x[0-9a-fA-F]{40}|[A-Za-z][A-Za-z0-9.]{0,15})")
MOST_TOKENS: Final = Decimal(10) ** 15
"""Nobody brings a quadrillion of anything: a slip of the keyboard."""
MAX_DIGITS: Final = 60
FIRST_COIN: Final = Seconds(1_230_940_800)
NEAR_EDGE: Final = Decimal(15)
"""Percent of a range's width: nearer to an edge than that, the monitor warns."""
MOST_FEE: Final = 100_000
"""Pips. A tenth of every trade is no fee tier but a misread percentage."""
PIPS_IN: Final = {"%": Decimal(10_000), "percent": Decimal(10_000), "bp": Decimal(100), "bps": Decimal(100)}


def position_id(text: str) -> int:
    """A position id as PositionManager numbers them."""
    if not _ID.fullmatch(text) or not 0 < int(text) <= MAX_ID:
        raise Usage(f"{text[:80]!r} is not a position id; ids are whole numbers such as 1.")
    return int(text)


def pool_id(text: str) -> HexId:
    if not _POOL_ID.fullmatch(text):
        raise Usage(f"{text[:80]!r} is not a pool; give its id (0x and 64 hex digits), or a pair and a fee.")
    return HexId(text.lower())


def wallet_address(text: str) -> Address:
    if not _ADDRESS.fullmatch(text):
        raise Usage(f"{text[:80]!r} is not an address; an address is 0x and 40 hex digits.")
    return Address(text.lower())


def alert_id(text: str) -> str:
    if not is_alert_id(text.strip()):
        raise Usage(f"{plain_text(text, 40)!r} is not an alert; an alert's id is alert_ and 12 hex digits.")
    return text.strip()


def span(text: str) -> Seconds:
    """A length of time: `90m`, `6h`, `2d`."""
    found = _SPAN.fullmatch(text.strip().lower())
    if found is None:
        raise Usage(f"{plain_text(text, 40)!r} is not a length of time; write 90m, 6h or 2d.")
    return Seconds(int(found[1]) * _SPAN_SECONDS[found[2]])


def moment(text: str, now: Seconds) -> Seconds:
    """A point in the past: `7d`, `36h`, a date, an ISO time (UTC unless it says otherwise) or unix seconds.

    `now` is the chain's own time: a local world's is not today's, and nothing has happened after it.
    """
    wanted = Seconds(_moment(text.strip(), Millis(now * 1_000)) // 1_000)
    if wanted > now:
        raise Usage(_too_late(text, f"the chain's own time, {time_text(now)}"))
    return wanted


def market_moment(text: str, end: Millis, latest: Millis) -> Millis:
    """The same, to the millisecond, of the market's past: counted back from the end of what is kept of it, and not
    after `latest`."""
    wanted = _moment(text.strip(), end)
    if wanted > latest:
        raise Usage(_too_late(text, f"the end of what is kept, {time_text(latest // 1_000)}"))
    if wanted < FIRST_COIN * 1_000:
        raise Usage(_too_early(text))
    return wanted


def stretch(since: str, until: str | None, now: Seconds) -> tuple[Seconds, Seconds]:
    """A time of the market's past, the end outside it and now where none is said."""
    today = Millis(now * 1_000)
    first = Seconds(_moment(since.strip(), today) // 1_000)
    last = now if until is None else Seconds(_moment(until.strip(), today) // 1_000)
    for moment, written in ((first, since), (last, until)):
        if moment > now and written is not None:
            raise Usage(f"{plain_text(written, 40)!r} has not come yet: it is {time_text(now)}; give an earlier date.")
    if first < FIRST_COIN:
        raise Usage(_too_early(since))
    if first >= last:
        raise Usage(f"From {time_text(first)} to {time_text(last)} is no time at all; write the earlier date first.")
    return first, last


def _too_late(text: str, end: str) -> str:
    return f"{text[:80]!r} lies after {end}; count back from there, as in 7d, or give an earlier date."


def _too_early(text: str) -> str:
    return f"{plain_text(text, 40)!r} is before {time_text(FIRST_COIN)}, when there was no coin yet."


def _moment(text: str, now: Millis) -> Millis:
    if span := _SPAN.fullmatch(text.lower()):
        return Millis(now - int(span[1]) * _SPAN_SECONDS[span[2]] * 1_000)
    if _UNIX_MILLIS.fullmatch(text):
        return Millis(int(text))
    if _UNIX.fullmatch(text):
        return Millis(int(text) * 1_000)
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise Usage(f"{text[:80]!r} is not a time; write 7d, 36h, 2026-01-25 or 2026-01-25T12:00.") from None
    if _FINER.search(text):
        raise Usage(f"{text[:80]!r} is finer than a millisecond, which is how moments are kept; give three decimals.")
    return Millis(((parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)) - _EPOCH) // timedelta(milliseconds=1))


def percent(text: str) -> Decimal:
    """A price move in percent, without an exponent or idle zeros."""
    if not _PERCENT.fullmatch(text.strip()):
        raise Usage(f"{text[:80]!r} is not a percentage; write -6 or 2.5.")
    value = Decimal(text.strip().removesuffix("%").rstrip())
    if not -100 < value <= 1000:
        raise Usage("A move lies above -100 % and at most at 1000 %.")
    if value != round(value, 6):
        raise Usage("A move has at most six decimals.")
    return Decimal(f"{value.normalize() + 0:f}")


def state(text: str | None) -> Callable[[bool, str], bool]:
    """Which positions are meant, told by whether they are in range and by the percent of their width to the edge."""
    states: dict[str | None, Callable[[bool, str], bool]] = {
        None: lambda in_range, edge: True,
        "in-range": lambda in_range, edge: in_range,
        "out-of-range": lambda in_range, edge: not in_range,
        "risky": lambda in_range, edge: not in_range or Decimal(edge) < NEAR_EDGE,
    }
    if text not in states:
        raise Usage(f"{str(text)[:40]!r} is no state of a position; choose in-range, out-of-range or risky.")
    return states[text]


def amount_in(text: str) -> Decimal:
    """An exact amount above zero, in plain digits."""
    shown = plain_text(text, 40)
    digits = text.strip().removeprefix("+")
    if digits.startswith("-"):
        raise Usage(f"An amount is above zero, {shown} is not.")
    if not _NUMBER.fullmatch(digits) or len(digits) > MAX_DIGITS:
        raise Usage(f"{shown!r} is not an amount; write plain digits such as 0.05 or 1,250.5.")
    value = Decimal(digits.replace(",", ""))
    if value == 0:
        raise Usage("An amount of 0 opens nothing; say how much you bring.")
    if value >= MOST_TOKENS:
        raise Usage(f"{shown} is more than anybody has; check the amount.")
    return value


def pips_of(number: str, unit: str) -> int:
    """Hundredths of a basis point, as the pool key has them: 5bps is 500, 0.3 % is 3000."""
    pips = amount_in(number) * PIPS_IN.get(unit.lower(), Decimal(1))
    if pips != int(pips) or not 0 < pips <= MOST_FEE:
        raise Usage(f"{number} {unit} is no fee tier; fees are such as 5bps, 0.3% or 1%.")
    return int(pips)


def fee_of(text: str) -> int:
    """A fee with its unit, in pips."""
    found = _FEE.fullmatch(text.strip())
    if found is None:
        # 500 may be pips and 5 may be basis points: a bare number once opened the wrong pool.
        raise Usage(f"{plain_text(text, 40)!r} is not a fee; write it with its unit, such as 5bps or 0.3%.")
    return pips_of(found["number"], found["unit"])


def pair_of(text: str) -> tuple[str, str]:
    """Two tokens, by symbol or address."""
    found = _PAIR.fullmatch(text.strip())
    if found is None:
        raise Usage(f"{plain_text(text, 40)!r} is not a pair; write it like ETH/USDC.")
    return token_named(found["base"]), token_named(found["quote"])


def plan_id(text: str) -> str:
    if not _PLAN.fullmatch(text):
        raise Usage(f"{plain_text(text, 40)!r} is not a plan; a plan's id is plan_ and 12 hex digits.")
    return text


def share(text: str) -> Fraction:
    """A part of the whole in percent, above 0 and at most 100."""
    digits = text.strip().removesuffix("%").rstrip()
    if not _NUMBER.fullmatch(digits) or len(digits) > MAX_DIGITS or not 0 < Decimal(digits.replace(",", "")) <= 100:
        raise Usage(f"{plain_text(text, 40)!r} is not a share; write a percentage above 0 and up to 100, such as 50.")
    return Fraction(Decimal(digits.replace(",", ""))) / 100


def capital(text: str) -> tuple[Decimal, str]:
    """An amount and its token: `0.5 WETH`."""
    found = _CAPITAL.fullmatch(text.strip())
    if found is None:
        raise Usage(f"{plain_text(text, 40)!r} is not an amount of a token; write it like 0.5 WETH.")
    return amount_in(found["amount"]), token_named(found["token"])
