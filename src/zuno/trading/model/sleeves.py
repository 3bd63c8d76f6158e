"""Sleeves: parts of an account's capital, each with its own strategy, positions, result and record."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Annotated, Final

from pydantic import Field

from zuno.kernel.errors import UsageError
from zuno.kernel.text import plain_text
from zuno.markets.venues import find_near

DEBATE: Final = "debate"
"""The bracket trades of the desk's cycles. It has whatever no other sleeve of an account was given."""
TREND: Final = "trend"
CASH_CARRY: Final = "cash-carry"
LP_HEDGE: Final = "lp-hedge"
"""Shorts against liquidity positions: it has no share, its margin is free cash."""
TWO_LEGGED: Final = (CASH_CARRY, LP_HEDGE)
"""What they hold at a perpetual hedges what lies elsewhere: it has no stop, and no other's stop is to take it."""
WITH_SHARES: Final = (TREND, CASH_CARRY, DEBATE)
_PATTERN: Final = r"^[a-z][a-z0-9-]{0,31}$"
_NAME: Final = re.compile(_PATTERN)
SleeveName = Annotated[str, Field(pattern=_PATTERN)]
SleeveOf = Annotated[SleeveName, Field(exclude_if=lambda name: name == DEBATE)]
"""Left out of records of the debate, which was all there was at first."""


@dataclass(frozen=True, slots=True)
class SleeveShares:
    """What share of an account's capital each sleeve is to have; they add up to 1."""

    shares: tuple[tuple[str, Decimal], ...] = ((DEBATE, Decimal(1)),)

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.shares)

    def __str__(self) -> str:
        return ",".join(f"{name}:{share:f}" for name, share in self.shares)

    def of(self, name: str) -> Decimal:
        return dict(self.shares).get(name, Decimal(0))

    def to_record(self) -> dict[str, Decimal]:
        return dict(self.shares)


DEBATE_ALONE: Final = SleeveShares()
NEW_PAPER: Final = SleeveShares(((TREND, Decimal("0.6")), (DEBATE, Decimal("0.4"))))
"""Of a paper account that is opened without a setting."""
NEW_PAPER_CASH: Final = Decimal(20_000)
"""Dollars that such an account begins with."""


def check_shares(shares: Mapping[str, Decimal]) -> SleeveShares:
    """`UsageError` for shares that are none, do not add up, or are of a sleeve that takes none."""
    for name, share in shares.items():
        if _NAME.fullmatch(name) is None:
            raise UsageError(f"{plain_text(name, 40)!r} is no sleeve: small letters, digits and hyphens.")
        if name == LP_HEDGE:
            raise UsageError(f"{LP_HEDGE} takes no share: its margin is free cash, set aside with each hedge.")
        if not share.is_finite() or not 0 < share <= 1:
            raise UsageError(f"The share of {name} is {share}; shares are above 0 and at most 1.")
    if (total := sum(shares.values(), Decimal(0))) != 1:
        raise UsageError(f"The shares of the sleeves add up to {total.normalize():f}, not to 1.")
    return SleeveShares(tuple(shares.items()))


def parse_sleeves(text: str) -> SleeveShares:
    """`trend:0.5,cash-carry:0.2,debate:0.3`."""
    shares: dict[str, Decimal] = {}
    for word in filter(None, (part.strip() for part in plain_text(text, 1_000).split(","))):
        name, _, share = word.partition(":")
        if name in shares:
            raise UsageError(f"{name} stands twice among the sleeves.")
        try:
            shares[name] = Decimal(share)
        except InvalidOperation:
            raise UsageError(f"{word!r} is no share of a sleeve; write {name or 'trend'}:0.5.") from None
    if not shares:
        raise UsageError("No sleeve is named; write trend:0.6,debate:0.4.")
    return check_shares(shares)


def find_unknown(shares: SleeveShares, own: tuple[str, ...] = ()) -> str | None:
    """What is said of a sleeve that is neither built in nor one of the owner's strategies."""
    known = (*WITH_SHARES, *own)
    for name in shares:
        if name not in known:
            near = find_near(name, known)
            hint = f"did you mean {near[0]}? " if near else ""
            return f"{name} is no sleeve; {hint}there are {', '.join(known)}."
    return None
