"""Written numbers read exactly: thousands, decimals, exponents, and lists that only look like numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

LONGEST = 60
"""A longer run of digits is no figure anyone reads."""
_LARGEST_EXPONENT = 60

_SPLIT = re.compile(r"([0-9.,'_\u202f]+)(?:[eE]([+-]?[0-9]+))?")
_GROUPED = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]{1,3}(?:['_\u202f][0-9]{3})+(?:\.[0-9]+)?")
_CONTINENTAL = re.compile(r"[0-9]{1,3}(?:\.[0-9]{3})+,[0-9]+|[0-9]{1,3}(?:\.[0-9]{3}){2,}")
_DECIMAL_COMMA = re.compile(r"[0-9]{1,3},[0-9]{1,2}|0,[0-9]+")


@dataclass(frozen=True, slots=True)
class Numeral:
    """A number and the place of its last printed digit."""

    start: int
    end: int
    value: Fraction
    unit_in_last_place: Fraction
    unit_in_last_nonzero: Fraction
    """The same for whole numbers with their trailing zeros taken as rounding, as "about 2,400" means them."""

    @property
    def whole(self) -> bool:
        return self.unit_in_last_place == 1


def numerals(text: str, start: int = 0) -> tuple[Numeral, ...] | None:
    """The number a run of digits and separators spells, or the several of a list ("12,26,9"); None if it is neither."""
    parts = _SPLIT.fullmatch(text) if len(text) <= LONGEST else None
    if parts is None:
        return None
    digits, exponent = parts[1], int(parts[2] or 0)
    if abs(exponent) > _LARGEST_EXPONENT:
        return None
    plain = _decimal(digits)
    if plain is not None:
        return (_numeral(plain, exponent, start, start + len(text)),)
    if "," not in digits or parts[2] is not None:
        return None
    found: list[Numeral] = []
    at = start
    for item in digits.split(","):
        plain = _decimal(item)
        if plain is None:
            return None
        found.append(_numeral(plain, 0, at, at + len(item)))
        at += len(item) + 1
    return tuple(found)


def _decimal(digits: str) -> str | None:
    """The same number with a decimal point and no other separator."""
    if digits.isdigit() or (digits.count(".") == 1 and digits.replace(".", "").isdigit()):
        return digits
    if _GROUPED.fullmatch(digits):
        return re.sub(r"[,'_\u202f]", "", digits)
    if _CONTINENTAL.fullmatch(digits):
        return digits.replace(".", "").replace(",", ".")
    if _DECIMAL_COMMA.fullmatch(digits):
        return digits.replace(",", ".")
    return None


def _numeral(plain: str, exponent: int, start: int, end: int) -> Numeral:
    whole, _, decimals = plain.partition(".")
    value = Fraction(int(whole + decimals or "0")) * Fraction(10) ** (exponent - len(decimals))
    last = Fraction(10) ** (exponent - len(decimals))
    nonzero = last
    if not decimals and exponent == 0 and value:
        nonzero = Fraction(10 ** (len(whole) - len(whole.rstrip("0"))))
    return Numeral(start, end, value, last, nonzero)
