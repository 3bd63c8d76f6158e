"""The nouns of provenance: the facts a text may speak of, the figures it speaks, and what came of the comparison."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from functools import cached_property


class Measure(StrEnum):
    """What can be compared with what: 5 bps and 0.05 % are one share, 90 minutes and 1.5 h one time."""

    SHARE = "share"
    TIME = "time"
    MONEY = "money"
    TICK = "tick"
    BLOCK = "block"
    GAS = "gas"
    COUNT = "count"


class Unit(StrEnum):
    """What a value counts."""

    PRICE = "price"
    """Whole quote tokens for one whole base token; `symbol` is the quote's."""
    AMOUNT = "amount"
    """Whole tokens of `symbol`."""
    PERCENT = "percent"
    BPS = "bps"
    PIPS = "pips"
    RATIO = "ratio"
    HOURS = "hours"
    SECONDS = "seconds"
    TICK = "tick"
    BLOCK = "block"
    GWEI = "gwei"
    COUNT = "count"
    """Anything else that is only a number: returns, paths, ids, an oscillator's level."""

    @property
    def measure(self) -> Measure:
        return _MEASURES[self][0]

    @property
    def scale(self) -> Fraction:
        """How much of the measure's own unit (1 for shares, the hour for times) one of this is."""
        return _MEASURES[self][1]


_ONE = Fraction(1)
_MEASURES: dict[Unit, tuple[Measure, Fraction]] = {
    Unit.PRICE: (Measure.MONEY, _ONE),
    Unit.AMOUNT: (Measure.MONEY, _ONE),
    Unit.PERCENT: (Measure.SHARE, Fraction(1, 100)),
    Unit.BPS: (Measure.SHARE, Fraction(1, 10_000)),
    Unit.PIPS: (Measure.SHARE, Fraction(1, 1_000_000)),
    Unit.RATIO: (Measure.SHARE, _ONE),
    Unit.HOURS: (Measure.TIME, _ONE),
    Unit.SECONDS: (Measure.TIME, Fraction(1, 3600)),
    Unit.TICK: (Measure.TICK, _ONE),
    Unit.BLOCK: (Measure.BLOCK, _ONE),
    Unit.GWEI: (Measure.GAS, _ONE),
    Unit.COUNT: (Measure.COUNT, _ONE),
}


@dataclass(frozen=True)  # no slots: the exact value is worked out once
class Figure:
    """A fact with a number in it, as the context gave it."""

    name: str
    """Plain words, a stress multiple among them: "lower price", "buffer 2×". A text names a fact by these words."""
    value: Fraction | Decimal | int | float
    unit: Unit
    source: str
    news: bool = False
    """News counts only beside its source, and never as a price or a size."""
    symbol: str = ""
    """The token an amount counts, or a price is quoted in; empty fits every symbol."""
    about: str = ""
    """Whose fact it is ("candidate 2", "hold"); empty when it belongs to all."""
    per_day: Fraction | int | None = None
    """How often a day the value is earned; what has none is no rate and is never annualised."""

    @cached_property
    def exact(self) -> Fraction:
        """The value in its own unit. A value that is not finite is our bug and raises."""
        return Fraction(self.value)

    @cached_property
    def canonical(self) -> Fraction:
        """The value in its measure's own unit."""
        return self.exact * self.unit.scale


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read a written figure, in the unit it is written in."""

    value: Fraction
    """Never negative: the sign is the claim's."""
    tolerance: Fraction
    """Half the last printed digit."""
    measure: Measure | None
    """None for a bare figure, which fits every unit."""
    unit: Unit | None = None
    symbol: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """A figure, or an address or id, as the text has it."""

    start: int
    end: int
    text: str
    readings: tuple[Reading, ...]
    """Most have one; "15m" has two; an id, or a figure that cannot be read, has none."""
    sign: str = ""
    """"-", "+", "±" as written, or empty."""
    problem: str = ""
    """Why nothing backs it; empty while something does."""


class Derivation(StrEnum):
    """How a fact, or two, give a figure."""

    FACT = "a"
    DIFFERENCE = "a−b"
    RATIO = "a/b"
    CHANGE = "(a−b)/b"
    ANNUAL = "rate·periods·365"
    ID = "id"


@dataclass(frozen=True, slots=True)
class Backing:
    """A claim and what it rests on."""

    claim: Claim
    derivation: Derivation
    facts: tuple[Figure, ...]
    """a, then b; empty for an id."""


@dataclass(frozen=True, slots=True)
class Exempt:
    """Digits that claim nothing: an indicator's parameter, a timeframe, a date, an ordinal, a small count."""

    start: int
    end: int
    text: str
    why: str


@dataclass(frozen=True, slots=True)
class Checked:
    """What a text says in figures. It may be used when `unsupported` is empty."""

    unsupported: tuple[Claim, ...]
    supported: tuple[Backing, ...]
    exempt: tuple[Exempt, ...]

    @property
    def ok(self) -> bool:
        return not self.unsupported

    @property
    def complaint(self) -> str:
        """The offending figures by name, for the one repair a model is granted; empty when there are none."""
        return "; ".join(f"{_short(claim.text)}: {claim.problem}" for claim in self.unsupported[:MOST_NAMED])


MOST_NAMED = 12
LONGEST_NAMED = 48
"""A complaint goes back into a prompt: a text of nothing but figures must not fill it."""


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_NAMED else f"{text[: LONGEST_NAMED - 1]}…"
