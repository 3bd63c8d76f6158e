"""What a plan does to a chain: the bounds it may not leave, its steps, and what has to hold before each is sent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from types import MappingProxyType
from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field

from zuno.amm.model import Block, PoolKey, Range, price_of
from zuno.kernel.errors import UsageError
from zuno.kernel.units import Address, HexId, Seconds

BPS = 10_000
_LONG_AGO: Seconds = Seconds(0)
PlanId = Annotated[str, Field(pattern=r"^plan_[0-9a-f]{12}$")]
PLAN_KIND: Final = "plan"
"""The journal's kind of an entry that says which plan came of a request."""
INSTRUCTED_KIND: Final = "plan_instructed"
"""The same of what the owner asked for directly, without a debate."""
MINED_KIND: Final = "step_mined"
"""The same of a step that is in a block."""
_HEX = re.compile(r"0x([0-9a-f]{2})*")


def _parse_hex(value: object) -> object:
    if not isinstance(value, str):
        return value
    if _HEX.fullmatch(value) is None:
        raise ValueError("not bytes in lower-case hex")
    return bytes.fromhex(value[2:])


HexBytes = Annotated[bytes, BeforeValidator(_parse_hex)]
"""Bytes, on record as 0x-hex."""


class StepKind(StrEnum):
    """One transaction of a plan."""

    WRAP = "wrap"
    APPROVE_PERMIT2 = "approve_permit2"
    PERMIT2_APPROVE = "permit2_approve"
    MINT = "mint"
    SWAP_AND_MINT = "swap_and_mint"
    BURN = "burn"
    BURN_AND_MINT = "burn_and_mint"
    INCREASE = "increase"
    DECREASE = "decrease"
    COLLECT = "collect"
    SWAP = "swap"


MEASURED_GAS: Final[Mapping[StepKind, int]] = MappingProxyType(
    {
        StepKind.WRAP: 51_838,
        StepKind.APPROVE_PERMIT2: 45_903,
        StepKind.PERMIT2_APPROVE: 47_602,
        StepKind.MINT: 419_478,
        StepKind.BURN: 153_578,
        StepKind.BURN_AND_MINT: 393_517,
        StepKind.SWAP_AND_MINT: 440_997,
    }
)
"""Gas units as used by the official contracts on a local chain; an estimate of the node itself is better."""


class StepState(StrEnum):
    """How far a transaction has come. A reorganisation takes `mined` back to `sent` or `handed_out`; nothing takes
    `final` back."""

    PLANNED = "planned"
    HANDED_OUT = "handed_out"
    """Given to a signer elsewhere, and not seen on the chain yet."""
    SIGNED = "signed"
    SENT = "sent"
    MINED = "mined"
    FINAL = "final"
    REVERTED = "reverted"
    SUPERSEDED = "superseded"

    @property
    def over(self) -> bool:
        return self in (StepState.FINAL, StepState.REVERTED, StepState.SUPERSEDED)


class PlanState(StrEnum):
    """How far a plan has come. `rejected` is possible only before anything is signed or handed out, `expired` only
    where nothing was signed here."""

    DRAFTED = "drafted"
    SIMULATED = "simulated"
    APPROVED = "approved"
    APPLYING = "applying"
    HANDED_OUT = "handed_out"
    """A step is with a signer elsewhere: it waits for that signer to send it."""
    PARTIAL = "partial"
    """The first half is final and the second is not: the tokens rest in the wallet."""
    CONFIRMED = "confirmed"
    FAILED = "failed"
    REJECTED = "rejected"
    EXPIRED = "expired"
    CANCELLED = "cancelled"

    @property
    def over(self) -> bool:
        return self in (
            PlanState.CONFIRMED,
            PlanState.FAILED,
            PlanState.REJECTED,
            PlanState.EXPIRED,
            PlanState.CANCELLED,
        )


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far the world may have moved between a plan and its execution."""

    slippage_bps: int = 50
    """Of the price at which liquidity is minted or burned, and of what a swap pays."""
    tick_drift: int = 50
    """Ticks between the pool a plan was made for and the pool it is sent to."""
    deadline_seconds: int = 15 * 60
    """From the head block's time to the last moment the calldata is good for; an approval expires with it."""
    permit2_seconds: int = 30 * 60

    def __post_init__(self) -> None:
        if not 0 <= self.slippage_bps < BPS:
            raise UsageError(f"slippage of {self.slippage_bps} bps is not in [0, {BPS})")
        if min(self.tick_drift, self.deadline_seconds, self.permit2_seconds) < 0:
            raise UsageError("a bound cannot be negative")
        if self.permit2_seconds < self.deadline_seconds:
            raise UsageError(
                f"a permit of {self.permit2_seconds} s ends before the calldata's deadline of {self.deadline_seconds} s"
            )


@dataclass(frozen=True, slots=True)
class Flow:
    """An amount of one currency, in base units."""

    currency: Address
    amount: int


# What has to be true before a step is sent, read from the chain again each time. `need` is its name on record.


@dataclass(frozen=True, slots=True)
class Holds:
    """The wallet has at least this much; gas comes on top."""

    currency: Address
    amount: int
    need: Literal["holds"] = "holds"


@dataclass(frozen=True, slots=True)
class Allows:
    """The token lets Permit2 move at least this much of the wallet's."""

    token: Address
    amount: int
    need: Literal["allows"] = "allows"


@dataclass(frozen=True, slots=True)
class Permits:
    """Permit2 lets the spender move at least this much, until then or longer."""

    token: Address
    spender: Address
    amount: int
    until: Seconds
    need: Literal["permits"] = "permits"


@dataclass(frozen=True, slots=True)
class Owns:
    """The position is the wallet's and holds this liquidity."""

    token_id: int
    liquidity: int
    need: Literal["owns"] = "owns"


@dataclass(frozen=True, slots=True)
class TickWithin:
    """The pool's tick is between these, both included."""

    pool_id: HexId
    low: int
    high: int
    need: Literal["tick"] = "tick"


Need = Annotated[Holds | Allows | Permits | Owns | TickWithin, Field(discriminator="need")]


@dataclass(frozen=True, slots=True)
class Step:
    """One transaction, exactly as it would be signed, and what it can do to the wallet at worst."""

    kind: StepKind
    to: Address
    value: int
    data: HexBytes
    deadline: Seconds | None
    """The calldata's own; None where the contract knows none."""
    needs: tuple[Need, ...] = ()
    recipients: tuple[Address, ...] = ()
    """Recipients of tokens or of a position, in the order of the calldata; placeholders are resolved."""
    most_out: tuple[Flow, ...] = ()
    """The most that leaves the wallet, gas apart."""
    least_in: tuple[Flow, ...] = ()
    """The least that comes home, as long as the step does not revert."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What Permit2 lets a spender move, and until when."""

    amount: int = 0
    until: Seconds = _LONG_AGO


@dataclass(frozen=True, slots=True)
class Allowances:
    """What the wallet has allowed already. What is not listed is not allowed."""

    to_permit2: Mapping[Address, int] = field(default_factory=dict)
    grants: Mapping[tuple[Address, Address], Grant] = field(default_factory=dict)

    def grant(self, token: Address, spender: Address) -> Grant:
        return self.grants.get((token, spender), Grant())


@dataclass(frozen=True, slots=True)
class WalletState:
    """A wallet at one block: what it holds and allows, and how far its transactions are counted."""

    block: Block
    holdings: Mapping[Address, int]
    allowances: Allowances
    nonce: int
    """Transactions mined by that block: the next one to be mined has this number."""
    next_nonce: int
    """The first unused nonce, counting transactions that are pending at the node. Not below `nonce`."""


@dataclass(frozen=True, slots=True)
class SecondHalf:
    """The later steps of a plan: built from what the first half really paid, inside the bounds of the approval."""

    pool_id: HexId
    key: PoolKey
    range: Range | None
    """Where it mints; None where its tokens are swapped and stay in the wallet."""
    tick: int
    """The pool's tick when the plan was made: drift is measured from here, not from the first half's receipt."""
    zero_for_one: bool
    least_rate: Fraction
    """Base units out for one base unit in, slippage taken off: no later swap may promise less."""
    preview: tuple[Step, ...]
    """The steps as they would be if the first half paid exactly what it would have paid at the plan's block."""
    guard_rate: Annotated[Fraction | None, Field(exclude_if=lambda rate: rate is None)] = None
    """The same of the small swap the other way round, which stops the mint at a price that moved in the first swap's
    favour. Absent in plans from before it was made."""
    probe_rate: Annotated[Fraction | None, Field(exclude_if=lambda rate: rate is None)] = None
    """The same of the small swap the first way, where the first itself goes through another pool."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """What a plan leaves in the wallet of the tokens it was to put to work, in base units."""

    amount0: int
    amount1: int
    whole0: int
    whole1: int
    """What burn and swap pay, or what was brought: all of it, the leftover included."""
    sqrt_price_x96: int
    """The price both are counted at."""
    why: str

    @property
    def share(self) -> Fraction:
        whole = self._worth(self.whole0, self.whole1)
        return self._worth(self.amount0, self.amount1) / whole if whole else Fraction(0)

    def _worth(self, amount0: int, amount1: int) -> Fraction:
        return amount0 * price_of(self.sqrt_price_x96) + amount1


@dataclass(frozen=True, slots=True)
class StepPlan:
    """Steps in their order; with a second half the plan is `partial` until its steps are built and done as well."""

    steps: tuple[Step, ...]
    bounds: Bounds
    later: SecondHalf | None = None
    notes: tuple[str, ...] = ()
    leftover: Leftover | None = None
    """None where nothing is put to work."""
    route: PoolKey | None = None
    """The pool it swaps through, where that is not its own."""
