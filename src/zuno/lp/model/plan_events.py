"""Journal records of a plan's execution: the instruction, what was approved, and what became of every step.

The journal is the store of these: an entry is on disk, chained and signed before the next thing is done. A plan's state
is what its entries add up to, so that a crash and a start are the same path.
"""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from zuno.amm.model import Block, LpPosition, PoolKey, PoolState, Range
from zuno.kernel.units import Address, Wei
from zuno.kernel.wire import Hex64, Wire
from zuno.lp.model.plan import (
    INSTRUCTED_KIND,
    MINED_KIND,
    Bounds,
    Flow,
    HexBytes,
    Leftover,
    PlanId,
    PlanState,
    SecondHalf,
    Step,
    StepState,
)

HexText = Annotated[str, Field(pattern=r"^0x([0-9a-f]{2})*$")]


class Action(StrEnum):
    """What a plan does to a position."""

    REBALANCE = "rebalance"
    CREATE = "create"
    ADD = "add"
    REMOVE = "remove"
    COLLECT = "collect"
    CLOSE = "close"
    COMPOUND = "compound"
    """Puts a position's fees back into it."""
    REVOKE = "revoke"
    """Takes back what others may take of the wallet's tokens."""
    HOLD = "hold"
    """Nothing: never drafted, approved or applied."""


LEAVING: Final = frozenset({Action.REMOVE, Action.COLLECT, Action.CLOSE, Action.REVOKE})  # they put nothing in


class PlanPosition(Wire):
    """A further position that a plan is about, and its pool's tick when it was decided."""

    position_id: int
    pool_id: str
    tick: int


class SwapHome(Wire):
    """After a close: what it pays of the other token is swapped into this one."""

    to: Literal[0, 1]
    least_rate: Fraction
    """Base units out for one in: no swap may promise less, however far the price has run by then."""


class InstructedHedge(Wire):
    """The short perpetual that goes with a range."""

    market: str
    side: Literal[0, 1]
    """Which of the pool's tokens is sold."""
    amount: int
    """To begin with, in base units of that token."""
    most: int
    """What it is counted to reach, for which margin is set aside."""


class Instruction(Wire):
    """What is to be done, in terms that code alone has computed: the end of a debate, or the owner's own words."""

    action: Action
    chain: str
    pool_id: str
    tick: int
    """The pool's when it was decided: drift is measured from here."""
    position_id: int | None = None
    range: Range | None = None
    """Where liquidity is to lie after a rebalance or a create."""
    capital0: int = 0
    capital1: int = 0
    """The most that may be taken from the wallet, in base units (create, add)."""
    counterpart: Annotated[Literal[0, 1] | None, Field(exclude_if=lambda side: side is None)] = None
    """The side whose capital nobody named: it was fixed as what goes with the other's (add). Absent where there is
    none, so that instructions from before it was recorded keep their bytes."""
    brings_ether: bool = False
    """The wrapped side's capital comes as ether."""
    use_all: Annotated[bool, Field(exclude_if=lambda use_all: not use_all)] = False
    """Of two tokens all goes in, after a swap (create)."""
    share: Fraction | None = None
    """Of the liquidity, to be removed."""
    others: Annotated[tuple[PlanPosition, ...], Field(exclude_if=lambda others: not others)] = ()
    """Further positions to which the same is done (collect, close)."""
    tokens: Annotated[tuple[str, ...], Field(exclude_if=lambda tokens: not tokens)] = ()
    """Those of which nobody may take anything any more (revoke)."""
    anyway: Annotated[bool, Field(exclude_if=lambda anyway: not anyway)] = False
    """The owner wants it at whatever price the pool has (remove, close), or although it was vetoed."""
    swap_home: Annotated[SwapHome | None, Field(exclude_if=lambda swap: swap is None)] = None
    """Which token everything is to end in (close)."""
    in_a_crash: Annotated[bool, Field(exclude_if=lambda crash: not crash)] = False
    """The pool may be further off the reference than usual, as the mandate it is done under says (close)."""
    hedge: Annotated[InstructedHedge | None, Field(exclude_if=lambda hedge: hedge is None)] = None
    """Approved with the range (rebalance, create)."""

    def each(self) -> tuple[Instruction, ...]:
        """The same for one position at a time."""
        return (
            self.model_copy(update={"others": ()}),
            *(self.model_copy(update={**target.model_dump(by_alias=False), "others": ()}) for target in self.others),
        )

    @property
    def leaves_anyway(self) -> bool:
        """It only brings liquidity home, and needs no reference price to bear out the pool's."""
        return self.anyway and self.action in (Action.REMOVE, Action.CLOSE)

    @property
    def named_amounts(self) -> dict[int, int]:
        """What the owner named of each side of the pool."""
        sides = ((0, self.capital0), (1, self.capital1))
        return {side: amount for side, amount in sides if amount and side != self.counterpart}


class GasBound(Wire):
    """The most a plan's transactions may cost in gas."""

    max_fee: Wei
    """For a unit of gas."""
    units: tuple[int, ...]
    """For each step the most it may use; later steps are those of the preview."""
    data_fee: Wei = Wei(0)
    """What a rollup may charge at most for posting all of it."""


class ExitWorth(Wire):
    """What leaving at whatever price the pool has brings home, in whole tokens of `unit` counted at the reference."""

    position_id: str
    reference_price: str
    """As people quote the pair; the pool's own where there is no reference, and `source` says why."""
    source: str
    gap_percent: str
    unit: str
    worth: str
    worst: str
    """At the worst price that the calldata's minimums let through."""
    sandwich_cost: str
    sandwich_percent: str


class Draft(Wire):
    """A plan as exact transactions on top of one block: everything an approval is about."""

    plan_id: PlanId
    plan_hash: Hex64
    instruction: Instruction
    chain_id: int
    genesis: str
    wallet: str
    block: Block
    pool: PoolState
    position: LpPosition | None
    bounds: Bounds
    expires: int
    """Unix time of the chain: the approval's end and the calldata's deadline."""
    caps: tuple[Flow, ...]
    """The most of each currency that may leave the wallet in any one step."""
    proceeds: tuple[Flow, ...] = ()
    """What the first half may pay at most inside the bounds: what the second may spend at most."""
    gas: GasBound
    steps: tuple[Step, ...]
    later: SecondHalf | None = None
    notes: tuple[str, ...] = ()
    leftover: Annotated[Leftover | None, Field(exclude_if=lambda left: left is None)] = None
    """Absent where nothing is put to work, and in drafts from before it was recorded."""
    route: Annotated[PoolKey | None, Field(exclude_if=lambda route: route is None)] = None
    """The pool its main swap goes through; absent where that is its own."""
    others: Annotated[tuple[LpPosition, ...], Field(exclude_if=lambda others: not others)] = ()
    """Further positions that its steps are about, each in its own pool."""
    exits: Annotated[tuple[ExitWorth, ...], Field(exclude_if=lambda exits: not exits)] = ()
    """For each position, where it is left at whatever price the pool has."""


class Approval(Wire):
    """The owner's word: this plan, these bytes, these bounds, on this chain, until then. What is signed is this."""

    plan_id: PlanId
    plan_hash: Hex64
    draft: Hex64
    """Of the draft's canonical bytes: the calldata, the decoded bounds of later steps, the wallet."""
    chain_id: int
    genesis: str
    wallet: str
    expires: int
    who: str
    """How the owner spoke: the front end, and the node whose key signs."""
    mandate: Annotated[Hex64 | None, Field(exclude_if=lambda mandate: mandate is None)] = None
    """The mandate it is given under, where the owner did not speak for this plan itself."""


class PlanEvent(Wire):
    """An entry about a plan; its kind in the journal is `kind`."""

    kind: ClassVar[str]
    plan_id: PlanId


class PlanInstructed(PlanEvent):
    """The owner asked for something directly, without a debate."""

    kind = INSTRUCTED_KIND
    plan_hash: Hex64
    instruction: Instruction


class PlanSimulated(PlanEvent):
    kind = "plan_simulated"
    block: Block
    ok: bool
    why: str = ""


class PlanApproved(PlanEvent):
    """The entry's bundle holds the draft."""

    kind = "plan_approved"
    approval: Approval
    signature: Annotated[str, Field(pattern=r"^[0-9a-f]{128}$")]


class PlanApplying(PlanEvent):
    """The intent: from here on something may be signed."""

    kind = "plan_applying"
    block: Block
    spend_usd: Decimal | None = None
    """The most that may leave the wallet by it; None where it is play money nobody can price."""
    play_money: bool = False
    """On a test network or a local world: it counts against no cap of real money."""


class PlanCalledOff(PlanEvent):
    """The owner wants no more of it, whatever still arrives."""

    kind = "plan_called_off"


class PlanFinishing(PlanEvent):
    """The later half, built from what the first half paid."""

    kind = "plan_finishing"
    block: Block
    paid: tuple[Flow, ...]
    steps: tuple[Step, ...]


class PlanRevoking(PlanEvent):
    """Allowances that a plan granted and did not use up are taken back."""

    kind = "plan_revoking"
    steps: tuple[Step, ...]


class StepSigned(PlanEvent):
    """Signed bytes. They are on disk before any node has seen them."""

    kind = "step_signed"
    step: int
    nonce: int
    hash: str
    raw: HexText
    gas: int
    max_fee: Wei
    tip: Wei
    cancels: bool = False
    """True: these bytes only take the nonce, so that the step's own can never be mined."""
    holdings: tuple[Flow, ...] = ()
    """What the wallet held of the pair just before."""


class StepHandedOut(PlanEvent):
    """A step given to a signer elsewhere, on disk before anybody was shown it. Target, value and calldata are what it
    is recognised by; number and fees are advice, which the signer's own wallet may overrule."""

    kind = "handed_out"
    step: int
    to: Address
    value: int
    data: HexBytes
    deadline: int
    """The step's own, else that of the part of the plan it belongs to."""
    block: Block
    """The head when it was handed out."""
    nonce: int
    gas: int
    max_fee: Wei
    tip: Wei
    batch: bool = False
    """One of the calls of a Safe's transaction, which runs all of them or none."""
    holdings: tuple[Flow, ...] = ()
    """What the wallet held of the pair just before."""


class StepSent(PlanEvent):
    kind = "step_sent"
    step: int
    hash: str


class StepMined(PlanEvent):
    kind = MINED_KIND
    step: int
    hash: str
    block: Block
    success: bool
    gas_used: int
    cost: Wei
    minted: tuple[int, ...] = ()


class StepUnmined(PlanEvent):
    """A reorganisation took the block back: the same bytes are sent again, or awaited again."""

    kind = "step_unmined"
    step: int
    hash: str


class StepWaits(PlanEvent):
    """What a step, its cancel or a revocation would cost is above a bound, and is tried again; written once."""

    kind = "step_waits"
    step: int
    why: str


class StepExpired(PlanEvent):
    """The deadline in its calldata passed before it was mined: it can only revert any more. It may still hold its
    number, which the wallet's next transaction takes."""

    kind = "step_expired"
    step: int


class StepOver(PlanEvent):
    kind = "step_over"
    step: int
    state: Literal[StepState.FINAL, StepState.REVERTED, StepState.SUPERSEDED]
    why: str = ""


class PlanOver(PlanEvent):
    """How a plan ended; nothing follows but its outcome."""

    kind = "plan_over"
    state: Literal[
        PlanState.CONFIRMED,
        PlanState.PARTIAL,
        PlanState.FAILED,
        PlanState.REJECTED,
        PlanState.EXPIRED,
        PlanState.CANCELLED,
    ]
    why: str = ""
    new_position_id: int | None = None
    problems: tuple[str, ...] = ()
    """What the chain shows that is not what was asked."""
    leftover: Annotated[Leftover | None, Field(exclude_if=lambda left: left is None)] = None
    """What stayed in the wallet beside a new position, as the chain shows it."""


class PositionOutcome(Wire):
    """What came of one more position of a plan about several."""

    position_id: int
    attribution: dict[str, object] | None
    why: str = ""


class PlanOutcome(PlanEvent):
    """What came of it in money: the attribution of the position that was closed or touched."""

    kind = "plan_outcome"
    position_id: int
    gas_cost: Wei
    attribution: dict[str, object] | None
    """As `zuno lp pnl --json` has it; None where it could not be had, and why."""
    why: str = ""
    others: Annotated[tuple[PositionOutcome, ...], Field(exclude_if=lambda others: not others)] = ()


EVENTS: tuple[type[PlanEvent], ...] = tuple(PlanEvent.__subclasses__())


# -- for a signer elsewhere, in the words that other wallets read


class UnsignedTransaction(Wire):
    """EIP-1559 in the names and the hex of JSON-RPC, and the same as bytes."""

    type: Literal["0x2"] = "0x2"
    chain_id: str
    from_: str = Field(alias="from")
    nonce: str
    to: str
    value: str
    data: str
    gas: str
    max_fee_per_gas: str
    max_priority_fee_per_gas: str
    serialized: str
    """0x02 and the fields as RLP: what an offline signer takes."""
    signing_hash: str
    """What is signed, for a screen to compare."""


class SafeMeta(Wire):
    name: str
    description: str
    tx_builder_version: str
    created_from_safe_address: str
    created_from_owner_address: str = ""
    checksum: str


class SafeTransaction(Wire):
    """Raw bytes: without a method the builder shows and sends `data` as it is."""

    to: str
    value: str
    """Wei, in decimal."""
    data: str
    contract_method: None = None
    contract_inputs_values: None = None


class SafeBatch(Wire):
    """A file for the Transaction Builder of a Safe, which makes one atomic transaction of it."""

    version: Literal["1.0"] = "1.0"
    chain_id: str
    created_at: int
    meta: SafeMeta
    transactions: tuple[SafeTransaction, ...]
