"""What an owner lets the monitor do with positions by itself: a signed, expiring mandate, and what happens under it.

The journal is the store of these, as of plans; a mandate stands until its end, unless it is revoked or replaced.
"""

from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import Field

from zuno.amm.model import Block
from zuno.kernel.units import HexId, Millis, Seconds, Wei
from zuno.kernel.wire import Hex64, Wire
from zuno.lp.model.plan import PlanId

MANDATE_ENTRY: Final = "lp_mandate"
"""The journal's kind of an entry about mandates: granted, revoked, paused, and what was done under them."""
BLOCKED_ENTRY: Final = "lp_mandate_blocked"
"""The same of an act that could not be done; apart, because one is written each round."""
Positive = Annotated[Decimal, Field(gt=0)]


class MandatedAct(StrEnum):
    EXIT = "exit"
    REBALANCE = "rebalance"
    COMPOUND = "compound"
    HEDGE = "hedge"


ExitInto = Literal["as-is", "token0", "token1"]


class ExitTerms(Wire):
    """When a position is left, and what it ends in."""

    below: Positive | None = None
    above: Positive | None = None
    when_close_wins: bool = False
    """Where the debate's winner is to close."""
    to: ExitInto = "as-is"
    worst_percent: Annotated[Decimal, Field(gt=0, lt=100)]
    """How far beyond its level, or for a swap beyond the price of the decision, an exit may still be done."""
    in_a_crash: bool = False
    """The reference may be 5 % off, not 1 %."""
    unit: str = ""
    """Of the levels: quote per base."""


class LpMandate(Wire):
    """What is signed; every approval under it cites its hash."""

    chain: str
    chain_id: int
    genesis: str
    wallet: str
    positions: tuple[int, ...] = ()
    """And what they are rebalanced into under this mandate."""
    pools: tuple[HexId, ...] = ()
    """Every position of the wallet in them."""
    pair: tuple[str, str] | None = None
    """The currencies that the levels are about."""
    acts: tuple[MandatedAct, ...]
    exit: ExitTerms | None = None
    worth_usd_per_day: Positive
    gas_per_day: Annotated[Wei, Field(gt=0)]
    """At most, as the approvals of 24 hours bound it, or as what was signed for them does where that is more."""
    least_gap: Annotated[Seconds, Field(gt=0)]
    """Between two acts; an exit at a price waits for none. The desk is asked as often."""
    granted: Millis
    expires: Millis
    """At most thirty days later."""
    exit_gas_per_day: Annotated[Wei | None, Field(gt=0, exclude_if=lambda gas: gas is None)] = None
    """The same of exits alone, which no other act then uses up. None, as in mandates from before it was recorded: exits
    count with the rest."""

    def gas_cap(self, act: MandatedAct) -> Wei:
        """What acts of this kind may cost in gas within 24 hours."""
        return (self.exit_gas_per_day or self.gas_per_day) if act is MandatedAct.EXIT else self.gas_per_day


class MandateGranted(Wire):
    event: Literal["granted"] = "granted"
    mandate: LpMandate
    hash: Hex64
    signature: Annotated[str, Field(pattern=r"^[0-9a-f]{128}$")]
    """The node's, over the mandate."""


class MandateRevoked(Wire):
    event: Literal["revoked"] = "revoked"
    hash: Hex64


class ActsPaused(Wire):
    """No act begins under any mandate of this home while `paused`."""

    event: Literal["paused"] = "paused"
    paused: bool


class LevelSeen(Wire):
    """The first look at a price beyond its level; without a block the price is back."""

    event: Literal["seen"] = "seen"
    hash: Hex64
    position_id: int
    block: Block | None


class DeskAsked(Wire):
    event: Literal["asked"] = "asked"
    hash: Hex64
    position_id: int


class ActDecided(Wire):
    """The intent: written under the wallet's lock, before the approval that cites the mandate."""

    event: Literal["act"] = "act"
    hash: Hex64
    plan_id: PlanId
    position_id: int
    act: MandatedAct
    why: str
    argument: tuple[str, ...] = ()
    worth_usd: Decimal
    gas: Wei
    """At most, by the approval."""


class ActBlocked(Wire):
    hash: Hex64
    position_id: int
    act: MandatedAct
    why: str
    plan_id: PlanId | None = None
    """Where something of it is signed already."""
    argument: tuple[str, ...] = ()


MandateEvent = Annotated[
    MandateGranted | MandateRevoked | ActsPaused | LevelSeen | DeskAsked | ActDecided, Field(discriminator="event")
]


class MandateRecord(Wire):
    of: MandateEvent
