"""Words a person typed, read into values or refused with a sentence that says what would be right."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Literal

from zuno.kernel.arguments import _NUMBER, MAX_DIGITS, PERCENT, parse_amount
from zuno.kernel.errors import UsageError
from zuno.kernel.numbers_text import decimal_text
from zuno.kernel.text import plain_text
from zuno.kernel.units import Address, HexId

if TYPE_CHECKING:
    from zuno.lp.model.debate import OwnRange

_ID = re.compile(r"[0-9]{1,78}")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_POOL_ID = re.compile(r"0x[0-9a-fA-F]{64}")
MAX_ID = (1 << 256) - 1
_FEE = re.compile(r"(?P<number>\S+?)\s*(?P<unit>%|percent|bps?|pips?)", re.IGNORECASE)
_PAIR = re.compile(
    r"(?P<base>0x[0-9a-fA-F]{40}|[A-Za-z0-9.]{1,16})\s*[/-]\s*(?P<quote>0x[0-9a-fA-F]{40}|[A-Za-z0-9.]{1,16})"
)
_PLAN = re.compile(r"plan_[0-9a-f]{12}")
_TX = re.compile(r"0x[0-9a-f]{64}")
_TICK = re.compile(r"[+-]?[0-9]{1,7}")
_CAPITAL = re.compile(r"(?P<amount>\S+?)\s*(?P<token>0x[0-9a-fA-F]{40}|[A-Za-z][A-Za-z0-9.]{0,15})")
NEAR_EDGE: Final = Decimal(15)
"""Percent of a range's width: nearer to an edge than that, the monitor warns."""
MOST_FEE: Final = 100_000
"""Pips. A tenth of every trade is no fee tier but a misread percentage."""
PRICE_FACTORS: Final = (Fraction(1, 100), Fraction(11))
"""How far from today's price a what-if goes: -99 % to +1000 %."""
PIPS_IN: Final = {"%": Decimal(10_000), "percent": Decimal(10_000), "bp": Decimal(100), "bps": Decimal(100)}


def position_id(text: str) -> int:
    """A position id as PositionManager numbers them."""
    if not _ID.fullmatch(text) or not 0 < int(text) <= MAX_ID:
        raise UsageError(f"{text[:80]!r} is not a position id; ids are whole numbers such as 1.")
    return int(text)


def pool_id(text: str) -> HexId:
    if not _POOL_ID.fullmatch(text):
        raise UsageError(f"{text[:80]!r} is not a pool; give its id (0x and 64 hex digits), or a pair and a fee.")
    return HexId(text.lower())


def wallet_address(text: str) -> Address:
    if not _ADDRESS.fullmatch(text):
        raise UsageError(f"{text[:80]!r} is not an address; an address is 0x and 40 hex digits.")
    return Address(text.lower())


def state(text: str | None) -> Callable[[bool, str], bool]:
    """Which positions are meant, told by whether they are in range and by the percent of their width to the edge."""
    states: dict[str | None, Callable[[bool, str], bool]] = {
        None: lambda in_range, edge: True,
        "in-range": lambda in_range, edge: in_range,
        "out-of-range": lambda in_range, edge: not in_range,
        "risky": lambda in_range, edge: not in_range or Decimal(edge) < NEAR_EDGE,
    }
    if text not in states:
        raise UsageError(f"{str(text)[:40]!r} is no state of a position; choose in-range, out-of-range or risky.")
    return states[text]


def hypothetical_price(text: str, today: Fraction) -> Fraction:
    """A price in whole quote tokens, or a change of today's in percent: `2400`, `-20%`."""
    typed = text.strip()
    if PERCENT.fullmatch(typed) and (typed.endswith("%") or typed.startswith(("+", "-"))):
        factor = 1 + Fraction(Decimal(typed.removesuffix("%").rstrip())) / 100
    elif _NUMBER.fullmatch(typed) and len(typed) <= MAX_DIGITS:
        factor = Fraction(Decimal(typed.replace(",", ""))) / today
    else:
        raise UsageError(f"{plain_text(text, 40)!r} is not a price or a change; write 2400, -20% or +5%.")
    low, high = PRICE_FACTORS
    if not low <= factor <= high:
        least, most = (decimal_text(today * bound, 6) for bound in PRICE_FACTORS)
        raise UsageError(
            f"{plain_text(text, 40)} lies beyond -99 % to +1000 % of today's price, {decimal_text(today, 6)}; "
            f"give a price from {least} to {most}."
        )
    return today * factor


def pips_of(number: str, unit: str) -> int:
    """Hundredths of a basis point, as the pool key has them: 5bps is 500, 0.3 % is 3000."""
    pips = parse_amount(number) * PIPS_IN.get(unit.lower(), Decimal(1))
    if pips != int(pips) or not 0 < pips <= MOST_FEE:
        raise UsageError(f"{number} {unit} is no fee tier; fees are such as 5bps, 0.3% or 1%.")
    return int(pips)


def fee_of(text: str) -> int:
    """A fee with its unit, in pips."""
    match = _FEE.fullmatch(text.strip())
    if match is None:
        # 500 may be pips and 5 may be basis points: a bare number once opened the wrong pool.
        raise UsageError(f"{plain_text(text, 40)!r} is not a fee; write it with its unit, such as 5bps or 0.3%.")
    return pips_of(match["number"], match["unit"])


def pair_of(text: str) -> tuple[str, str]:
    """Two tokens, by symbol or address."""
    match = _PAIR.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{plain_text(text, 40)!r} is not a pair; write it like ETH/USDC.")
    from zuno.lp.service.phrase import token_named

    return token_named(match["base"]), token_named(match["quote"])


def plan_id(text: str) -> str:
    if not _PLAN.fullmatch(text):
        raise UsageError(f"{plain_text(text, 40)!r} is not a plan; a plan's id is plan_ and 12 hex digits.")
    return text


def tx_hash(text: str) -> HexId:
    if not _TX.fullmatch(text.strip().lower()):
        raise UsageError(f"{plain_text(text, 80)!r} is not the hash of a transaction: 0x and 64 hex digits.")
    return HexId(text.strip().lower())


def share(text: str) -> Fraction:
    """A part of the whole in percent, above 0 and at most 100."""
    digits = text.strip().removesuffix("%").rstrip()
    if not _NUMBER.fullmatch(digits) or len(digits) > MAX_DIGITS or not 0 < Decimal(digits.replace(",", "")) <= 100:
        raise UsageError(
            f"{plain_text(text, 40)!r} is not a share; write a percentage above 0 and up to 100, such as 50."
        )
    return Fraction(Decimal(digits.replace(",", ""))) / 100


def capital(text: str) -> tuple[Decimal, str]:
    """An amount and its token: `0.5 WETH`."""
    match = _CAPITAL.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{plain_text(text, 40)!r} is not an amount of a token; write it like 0.5 WETH.")
    from zuno.lp.service.phrase import token_named

    return parse_amount(match["amount"]), token_named(match["token"])


def own_range(prices: tuple[str, str] | None, ticks: tuple[str, str] | None) -> OwnRange | None:
    """The owner's own range, by prices or by ticks; None where neither is given."""
    if prices is not None and ticks is not None:
        raise UsageError("Give --range or --ticks, not both.")
    if ticks is not None:
        return _edges("ticks", ticks, _TICK, "whole numbers such as -196640 -195360")
    return None if prices is None else _edges("price", prices, _NUMBER, "prices such as 2800 3400")


def _edges(unit: Literal["price", "ticks"], typed: tuple[str, str], form: re.Pattern[str], wanted: str) -> OwnRange:
    from pydantic import ValidationError

    from zuno.lp.model.debate import OwnRange

    for text in typed:
        if not form.fullmatch(text.strip()) or len(text) > MAX_DIGITS:
            raise UsageError(f"{plain_text(text, 40)!r} is no edge of a range; write two {wanted}.")
    lower, upper = (Decimal(text.strip().replace(",", "")) for text in typed)
    if lower >= upper:
        raise UsageError(f"{typed[0]} to {typed[1]} is upside down or empty; write the lower edge first.")
    try:
        return OwnRange(unit=unit, lower=lower, upper=upper)
    except ValidationError:
        bound = "ticks lie within ±887272" if unit == "ticks" else "a price is above zero"
        raise UsageError(f"{typed[0]} to {typed[1]} is no range: {bound}.") from None
