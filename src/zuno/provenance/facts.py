"""The facts an agent was given: each has an id that says what it is of, a value and a unit, and is printed by code."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from typing import Final

ID: Final = re.compile(r"[a-z0-9][a-z0-9_]*(?:\.[a-z0-9][a-z0-9_]*)*")
LONGEST_ID: Final = 64
_SYMBOL: Final = re.compile(r"[A-Za-z][A-Za-z0-9.]{0,11}")
_CANDIDATE: Final = re.compile(r"(?:r(\d+)\.)?c(\d+)\.")
_STRESS: Final = re.compile(r"_(\d)x\b")
_TRIMMED: Final = frozenset({"price", "hours", "ratio", "gwei", "seconds"})
"""Units printed without zeros at the end."""
_SMALL_DIGITS: Final = 4
"""Significant digits of an amount below one."""


class Unit(StrEnum):
    PRICE = "price"
    """Of one whole base token; `symbol` is the quote's."""
    AMOUNT = "amount"
    """Whole tokens, or dollars, of `symbol`."""
    PERCENT = "percent"
    BPS = "bps"
    RATIO = "ratio"
    DAYS = "days"
    HOURS = "hours"
    SECONDS = "seconds"
    TICKS = "ticks"
    BARS = "bars"
    POINTS = "points"
    GWEI = "gwei"
    NUMBER = "number"
    """Only a number: an oscillator's level, a count, a block."""
    WORDS = "words"
    """A sentence that code wrote, figures included; `value` is a string."""


_SUFFIX: Final[Mapping[Unit, str]] = {
    Unit.PERCENT: " %",
    Unit.BPS: " bps",
    Unit.RATIO: "×",
    Unit.DAYS: " days",
    Unit.HOURS: " h",
    Unit.SECONDS: " s",
    Unit.TICKS: " ticks",
    Unit.BARS: " bars",
    Unit.POINTS: " points",
    Unit.GWEI: " gwei",
}


@dataclass(frozen=True, slots=True)
class Figure:
    id: str
    """Dotted, what it is of first: `c2.buffer_2x`, `4h.rsi14`."""
    value: Fraction | Decimal | int | float | str
    unit: Unit
    symbol: str = ""
    """The token of an amount or a quote; untrusted."""
    digits: int = 2
    signed: bool = False
    """Printed with a plus where it is above zero."""
    derived: bool = False
    """A difference, ratio or distance of two others."""
    least: bool = False
    """The value is a lower bound."""
    note: str = ""
    """What a brief says beside the id."""

    def __post_init__(self) -> None:
        if not ID.fullmatch(self.id) or len(self.id) > LONGEST_ID:
            raise ValueError(f"{self.id[:80]!r} is no id for a fact")
        if isinstance(self.value, str) is not (self.unit is Unit.WORDS):
            raise ValueError(f"{self.id} is {self.value!r}, which is not {self.unit}")

    @property
    def number(self) -> Fraction:
        return Fraction(0) if isinstance(self.value, str) else Fraction(self.value)

    @property
    def candidate(self) -> int | None:
        match = _CANDIDATE.match(self.id)
        return int(match[2]) if match else None

    @property
    def round(self) -> int | None:
        match = _CANDIDATE.match(self.id)
        return int(match[1]) if match and match[1] else None

    @property
    def subject(self) -> str:
        """What it is of: `c2`, `4h`, `binance`; empty for a fact of the whole."""
        plain = re.sub(r"^r\d+\.", "", self.id)
        return plain.partition(".")[0] if "." in plain else ""

    @property
    def stress(self) -> int | None:
        match = _STRESS.search(self.id)
        return int(match[1]) if match else None

    def print(self, *, absolute: bool = False) -> str:
        if isinstance(self.value, str):
            return self.value
        number = float(self.value)
        sign = "" if absolute else "-" if number < 0 else "+" if self.signed and number > 0 else ""
        digits = self._digits(abs(number))
        if sign == "-" and not any(digit in "123456789" for digit in digits):
            sign = ""
        least = "at least " if self.least else ""
        symbol = self.symbol if _SYMBOL.fullmatch(self.symbol) else ""
        if self.unit is Unit.AMOUNT and symbol == "USD":
            return f"{least}{sign}${digits}"
        if self.unit in (Unit.PRICE, Unit.AMOUNT) and symbol and symbol != "USD":
            return f"{least}{sign}{digits} {symbol}"
        return f"{least}{sign}{digits}{_SUFFIX.get(self.unit, '')}"

    def _digits(self, value: float) -> str:
        if self.unit in (Unit.PRICE, Unit.AMOUNT) and 0 < value < 1:
            return f"{Decimal(f'{value:.{_SMALL_DIGITS}g}'):f}"
        text = f"{value:,.{self.digits}f}"
        return text.rstrip("0").rstrip(".") if self.unit in _TRIMMED and "." in text else text


class FactSheet(Mapping[str, Figure]):
    """The facts of one context by id, and other names its texts may use."""

    def __init__(
        self,
        facts: Iterable[Figure],
        *,
        names: Iterable[str] = (),
        aliases: Mapping[str, int] | None = None,
        rounds: int = 0,
    ) -> None:
        """`names` are printed names with digits in them, `aliases` words for a candidate ("hold")."""
        self._facts: dict[str, Figure] = {}
        for fact in facts:
            known = self._facts.setdefault(fact.id, fact)
            if known is not fact and known != fact:
                raise ValueError(f"two facts are called {fact.id}")
        self.names = tuple(sorted({*names}, key=len, reverse=True))
        self.aliases = dict(aliases or {})
        self.rounds = rounds

    @cached_property
    def candidates(self) -> frozenset[int]:
        return frozenset(fact.candidate for fact in self.values() if fact.candidate is not None)

    @cached_property
    def subjects(self) -> frozenset[str]:
        return frozenset(fact.subject for fact in self.values() if fact.subject and fact.candidate is None)

    def __getitem__(self, key: str) -> Figure:
        return self._facts[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)
