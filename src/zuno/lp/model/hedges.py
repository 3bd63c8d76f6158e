"""Hedges of liquidity: what a perpetual costs, what was approved beside a plan, and the shorts that are kept."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar, Literal

from zuno.kernel.wire import Wire
from zuno.lp.model.plan import PlanId


@dataclass(frozen=True, slots=True)
class PerpetualQuote:
    """What a coin can be sold short by, as `HedgeTerms` has it."""

    market: str
    cost: Fraction
    funding_hour: Fraction
    source: str


@dataclass(frozen=True, slots=True)
class ShortState:
    """What is sold short of one market, in whole coins."""

    held: Decimal
    lot: Decimal
    why: str = ""
    """Why it is not what was asked for."""
    over: bool = True
    """Nothing is being done about it any more: it has to be asked for anew."""


@dataclass(frozen=True, slots=True)
class ShortResult:
    """What the shorts of one market have made, in dollars."""

    ledger: Decimal
    """By the account's ledger, funding included, open ones at the mark."""
    trades: Decimal
    """By the fills and the mark, fees taken off."""
    funding: Decimal


class HedgeApproved(Wire):
    """The owner approved a plan with its hedge, and margin is set aside for it."""

    kind: ClassVar[str] = "hedge_approved"
    plan_id: PlanId
    chain: str
    account: str
    position_id: int | None
    """The position that the plan changes."""
    market: str
    symbol: str
    """The token's, as messages name it."""
    side: Literal[0, 1]
    decimals: int
    most: Decimal
    """Of the token in whole coins, what the short is counted to reach."""


class Short(Wire):
    plan_id: PlanId
    chain: str
    position_id: int
    market: str
    symbol: str
    side: Literal[0, 1]
    decimals: int
    quantity: Decimal
    most: Decimal


class HedgeSet(Wire):
    """What an account is to hold short, each time it changes: written before it is asked for."""

    kind: ClassVar[str] = "hedge_set"
    account: str
    decided: int
    """Names the orders: the same again are not sent twice."""
    shorts: tuple[Short, ...]
    ended: tuple[PlanId, ...]
