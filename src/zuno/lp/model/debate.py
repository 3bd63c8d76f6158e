"""What is said in a debate: the frozen context, the rounds so far, and the payload of each of the ten kinds.

Every structural message carries the whole debate up to it, so a handler needs nothing but the message and the context
it names by hash; a lost `agent_thought` is lost narration and nothing else.

Every list has a bound, and so has every number that sets how much is computed: a context of a few kilobytes must not
cost whoever reads it a gigabyte.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Annotated, ClassVar, Final, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from zuno.amm.model import Block, LpPosition, PoolState
from zuno.amm.ticks import MAX_TICK
from zuno.kernel.text import MAX_DECIMALS
from zuno.kernel.wire import Hex64, Wire
from zuno.lp.model.ballot import Candidate, Decision, Exposure, HedgeTerms, Judgment, Regime, RiskProfile
from zuno.lp.model.cover import PoolDay
from zuno.lp.model.market import GasQuote

MOST_REVISIONS: Final = 10
MOST_CONTEXT_POOLS: Final = 5
"""Pools of one survey. Each has its paths drawn, which take eight megabytes."""
MOST_RETURNS: Final = 720
"""Hours of a price history: thirty days."""
MOST_DAYS: Final = 14
"""Of a pool's fees and LVR."""
MOST_SOURCES: Final = 48
"""Seven of each pool and one of the survey are asked."""
MOST_NOTES: Final = 64
"""Of one source, one candidate or one decision, which may have a doubt about each source."""
MOST_MOVES: Final = 15
"""Of the rules, three widths in each of five pools; a model names at most five."""
MOST_CANDIDATES: Final = MOST_MOVES + 3
"""Hold, close, the moves and the owner's own range."""
MOST_THOUGHTS: Final = 400
"""The Scout's and the Arbiter's, and in each of eleven rounds 16 of the Strategist's and 19 of the Critic's."""
MOST_VOICES: Final = 2 * (MOST_REVISIONS + 1) + 2
_DECIMAL_REACH: Final = 1_000
"""Digits before or after the point, as in canonical bytes."""


class Role(StrEnum):
    """Who speaks."""

    CLI = "cli"
    SCOUT = "scout"
    STRATEGIST = "strategist"
    CRITIC = "critic"
    ARBITER = "arbiter"


class Kind(StrEnum):
    """The ten kinds."""

    FLOW_START = "flow_start"
    FLOW_CREATE_START = "flow_create_start"
    CONTEXT_OBSERVED = "context_observed"
    PROPOSAL = "proposal"
    CRITIQUE = "critique"
    REVISION = "revision"
    DEADLOCK = "deadlock"
    PLAN_READY = "plan_ready"
    FLOW_FAILED = "flow_failed"
    AGENT_THOUGHT = "agent_thought"


Flow = Literal["rebalance", "create"]
Speaker = Literal["model", "repaired", "fallback", "deterministic"]


def _spelled_out(amount: Decimal) -> Decimal:
    """Some characters may be a number of a billion digits."""
    exponent = amount.as_tuple().exponent
    if not isinstance(exponent, int) or max(abs(exponent), abs(amount.adjusted())) > _DECIMAL_REACH:
        raise ValueError(f"a number of more than {_DECIMAL_REACH} digits")
    return amount


Name = Annotated[str, Field(min_length=1, max_length=64)]
Note = Annotated[str, Field(max_length=16_384)]
"""A sentence or several; reasons of feeds that failed may be long."""
Notes = Annotated[tuple[Note, ...], Field(max_length=MOST_NOTES)]
Digits = Annotated[Decimal, AfterValidator(_spelled_out)]
Return = Annotated[int, Field(ge=-(10**10), le=10**10)]
"""An hourly log return in 1e-9; beyond a factor of e^10 an hour is no price."""
Revisions = Annotated[int, Field(ge=0, le=MOST_REVISIONS)]


class Capital(Wire):
    """What the owner brings: a token by symbol or address, and how much of it, as typed."""

    token: Name
    amount: Annotated[Digits, Field(gt=0)]


class PositionRequest(Wire):
    """What the owner asked to open."""

    capital: tuple[Capital, ...] = Field(min_length=1, max_length=2)
    pair: tuple[Name, Name] | None = None
    fee: int | None = None
    """Pips."""
    exposure: Exposure | None = None
    use_all: Annotated[bool, Field(exclude_if=lambda use_all: not use_all)] = False
    """Two tokens are swapped so that all of both goes in."""


class OwnRange(Wire):
    """A range the owner wants judged beside the others: by prices as people quote the pair, or by ticks."""

    unit: Literal["price", "ticks"]
    lower: Digits
    upper: Digits

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.lower >= self.upper or (self.unit == "price" and self.lower <= 0):
            raise ValueError("a range goes from its lower edge to its upper one")
        if self.unit == "ticks" and any(edge != int(edge) or abs(edge) > MAX_TICK for edge in (self.lower, self.upper)):
            raise ValueError("a tick is a whole number within ±887272")
        return self

    def __str__(self) -> str:
        return f"{'The ticks' if self.unit == 'ticks' else 'The range'} {self.lower:f} to {self.upper:f}"


AskedRange = Annotated[OwnRange | None, Field(exclude_if=lambda own: own is None)]
"""Absent where the owner named none, so that records from before keep their bytes."""
TrustedHooks = Annotated[
    tuple[Annotated[str, Field(pattern=r"^0x[0-9a-f]{40}$")], ...],
    Field(max_length=64, exclude_if=lambda hooks: not hooks),
]
"""Hook contracts the owner trusts: pools with others are not argued about. Absent where there are none."""
WantsHedge = Annotated[bool, Field(exclude_if=lambda hedged: not hedged)]
"""Every range that is proposed is hedged by a short perpetual."""


@dataclass(frozen=True, slots=True)
class FeeWindow:
    """A pool's fee growth per unit of in-range liquidity over one window."""

    growth0_x128: int
    growth1_x128: int
    seconds: int
    label: Note
    """The window and where it was read: "7 d of own samples"."""

    def __post_init__(self) -> None:
        if self.seconds <= 0:
            raise ValueError("a fee window has a length")


class PoolCover(Wire):
    """A pool's last days, and what their LVR was measured by. Days are those of the fee window."""

    days: Annotated[tuple[PoolDay, ...], Field(max_length=MOST_DAYS)]
    variance: float | None = Field(ge=0, le=100)
    """Of the log price, in a day, over all of them. None: no price moves enough to be measured by."""
    source: Note
    """Of the prices: "seed", an exchange, or the pool's own."""
    minutes: int | None = None
    """Between the prices of a return; None: every change counts."""
    rewarded: bool = Field(False, exclude_if=lambda value: not value)
    """Rewards that the owner named are among the fees."""


class PoolFacts(Wire):
    """One pool and everything its candidates are weighed by. What is not known is None, and stays unknown."""

    pool: PoolState
    position: LpPosition | None = None
    capital0: int = 0
    capital1: int = 0
    returns_nano: Annotated[tuple[Return, ...], Field(max_length=MOST_RETURNS)] = ()
    """Hourly log returns in 1e-9, in the pool's own direction, oldest first."""
    fees: FeeWindow | None = None
    cover: Annotated[PoolCover | None, Field(exclude_if=lambda cover: cover is None)] = None
    """None, too, in records of editions up to 5."""
    gas: GasQuote | None = None
    gas_median: Fraction | None = None
    """Of our own samples, in wei."""
    native_token1: Fraction | None = None
    reference_gap: Fraction | None = None
    """How far the pool's price is from the reference, as a share of the reference."""
    regime: Regime
    regime_why: Note
    """With slots, like every text an agent writes."""
    regime_notes: Notes = ()
    hedge: Annotated[HedgeTerms | None, Field(exclude_if=lambda terms: terms is None)] = None

    @model_validator(mode="after")
    def _countable(self) -> Self:
        """Ten to the power of a token's decimals is computed: on chain they are a byte."""
        pools = (self.pool, *(() if self.position is None else (self.position.pool,)))
        if not all(0 <= token.decimals <= MAX_DECIMALS for pool in pools for token in (pool.token0, pool.token1)):
            raise ValueError(f"a token has fewer than 0 or more than {MAX_DECIMALS} decimals")
        return self


class SourceNote(Wire):
    """Where a feed's figures came from; without a source, why there are none."""

    feed: Note
    source: Note | None
    as_of: int | None
    age_seconds: int | None
    limit_seconds: int | None
    stale: bool | None
    notes: Notes = ()


class Context(Wire):
    """The world as the Scout froze it at one block. Its canonical bytes are the bundle that everybody reads."""

    flow: Flow
    chain: Note
    chain_id: int
    block: Block
    profile: RiskProfile
    max_rounds: Revisions
    scenes: tuple[PoolFacts, ...] = Field(min_length=1, max_length=MOST_CONTEXT_POOLS)
    wish: PositionRequest | None = None
    sources: tuple[SourceNote, ...] = Field(max_length=MOST_SOURCES)
    seeded: bool
    """Some figure comes from a seeded series: the verdict is capped."""
    own_range: AskedRange = None


class Thought(Wire):
    """One line of narration. Ordered by (round, role's turn, seq) it is the transcript."""

    role: Role
    round: int = Field(ge=0)
    seq: int = Field(ge=0)
    text: str = Field(max_length=4_000)
    """With slots; in a live preview as its speaker prints it."""
    speaker: Speaker


class SpeakerRecord(Wire):
    """Who spoke for a role in a round, why it was not a model where it was not, and what it cost."""

    role: Role
    round: int
    speaker: Speaker
    why: str
    model: str | None = None
    tokens: int = 0
    usd: Digits | None = Decimal(0)


class Round(Wire):
    """A proposal and what the Critic made of it: nothing yet, or a word on every candidate, each in its place."""

    candidates: tuple[Candidate, ...] = Field(min_length=1, max_length=MOST_CANDIDATES)
    mechanical: tuple[Judgment, ...] = Field((), max_length=MOST_CANDIDATES)
    judgments: tuple[Judgment, ...] = Field((), max_length=MOST_CANDIDATES)
    suggestions: tuple[str, ...] = Field((), max_length=MOST_CANDIDATES)

    @model_validator(mode="after")
    def _brief(self) -> Self:
        for candidate in self.candidates:
            notes = (
                candidate.deposit.notes,
                candidate.carry.notes,
                candidate.carry.cost.steps,
                candidate.stress.notes if candidate.stress else (),
            )
            if max(map(len, notes)) > MOST_NOTES:
                raise ValueError(f"a candidate has more than {MOST_NOTES} notes")
        return self

    @model_validator(mode="after")
    def _in_place(self) -> Round:
        places = list(range(len(self.candidates)))
        if [candidate.index for candidate in self.candidates] != places:
            raise ValueError("a candidate's index is not its place")
        for given in (self.mechanical, self.judgments):
            if given and [judgment.index for judgment in given] != places:
                raise ValueError("the judgments are not one for each candidate, in order")
        if len(self.mechanical) != len(self.judgments):
            raise ValueError("the rules and the Critic judged different ballots")
        return self

    @property
    def is_judged(self) -> bool:
        return bool(self.judgments)


class Debate(Wire):
    flow: Flow
    context: Hex64
    rounds: tuple[Round, ...] = Field((), max_length=MOST_REVISIONS + 1)
    transcript: tuple[Thought, ...] = Field((), max_length=MOST_THOUGHTS)
    spoke: tuple[SpeakerRecord, ...] = Field((), max_length=MOST_VOICES)


class Asking(Wire):
    chain: Note
    profile: RiskProfile
    max_rounds: Revisions
    own_range: AskedRange = None
    hooks: TrustedHooks = ()
    hedged: WantsHedge = False


class FlowStart(Asking):
    kind: Literal[Kind.FLOW_START] = Kind.FLOW_START
    position_id: int = Field(gt=0)
    short: Annotated[int, Field(ge=0, exclude_if=lambda amount: not amount)] = 0
    """Sold short for the position already, in base units of its volatile token."""


class FlowCreateStart(Asking):
    kind: Literal[Kind.FLOW_CREATE_START] = Kind.FLOW_CREATE_START
    wish: PositionRequest


Start = FlowStart | FlowCreateStart


class Arguing(Wire):
    """A message that carries the debate. Its kind says how far it has come, and the debate must have come so far."""

    debate: Debate

    @model_validator(mode="after")
    def _so_far(self) -> Self:
        judged = [round_.is_judged for round_ in self.debate.rounds]
        if len(judged) < self._least_rounds or (judged and not self._least_rounds):
            raise ValueError(f"the debate has {len(judged)} rounds")
        if judged and judged != [*[True] * (len(judged) - 1), self._last_judged]:
            raise ValueError("a round is judged that should not be, or is not that should")
        return self

    _least_rounds: ClassVar[int] = 1
    _last_judged: ClassVar[bool] = True


class ContextObserved(Arguing):
    kind: Literal[Kind.CONTEXT_OBSERVED] = Kind.CONTEXT_OBSERVED
    _least_rounds: ClassVar[int] = 0


class Proposal(Arguing):
    kind: Literal[Kind.PROPOSAL] = Kind.PROPOSAL
    _last_judged: ClassVar[bool] = False


class Revision(Arguing):
    kind: Literal[Kind.REVISION] = Kind.REVISION
    _least_rounds: ClassVar[int] = 2
    _last_judged: ClassVar[bool] = False


class Critique(Arguing):
    kind: Literal[Kind.CRITIQUE] = Kind.CRITIQUE


class Deadlock(Arguing):
    kind: Literal[Kind.DEADLOCK] = Kind.DEADLOCK


class PlanReady(Arguing):
    kind: Literal[Kind.PLAN_READY] = Kind.PLAN_READY
    decision: Decision
    confidence: float = Field(ge=0, le=1)
    over_runner_up: float | None = Field(None, ge=0, le=1, exclude_if=lambda value: value is None)
    """Share of the stress paths on which the choice is worth more than the best of the others; None: not known."""

    @model_validator(mode="after")
    def _on_the_ballot(self) -> Self:
        if not 0 <= self.decision.index < len(self.debate.rounds[-1].candidates):
            raise ValueError(f"candidate {self.decision.index} is not on the latest ballot")
        if len(self.decision.cautions) > MOST_NOTES:
            raise ValueError(f"a decision has more than {MOST_NOTES} cautions")
        return self


class FlowFailed(Wire):
    kind: Literal[Kind.FLOW_FAILED] = Kind.FLOW_FAILED
    at: Role
    error: Literal["usage", "refused", "unavailable", "broken"]
    reason: str


class AgentThought(Wire):
    kind: Literal[Kind.AGENT_THOUGHT] = Kind.AGENT_THOUGHT
    thought: Thought


Payload = Annotated[
    FlowStart
    | FlowCreateStart
    | ContextObserved
    | Proposal
    | Revision
    | Critique
    | Deadlock
    | PlanReady
    | FlowFailed
    | AgentThought,
    Field(discriminator="kind"),
]
