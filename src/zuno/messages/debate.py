"""What is said in a debate: the frozen context, the rounds so far, and the payload of each of the ten kinds.

Every structural message carries the whole debate up to it, so a handler needs nothing but the message and the context
it names by hash; a lost `agent_thought` is lost narration and nothing else.
"""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from zuno.domain.debate import Candidate, Decision, Exposure, Judgment, Regime, RiskProfile
from zuno.domain.market import GasQuote
from zuno.domain.pool import Block, LpPosition, PoolState
from zuno.messages.record import Hex64
from zuno.messages.wire import Wire


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


class Capital(Wire):
    """What the owner brings: a token by symbol or address, and how much of it, as typed."""

    token: Annotated[str, Field(min_length=1, max_length=64)]
    amount: Decimal = Field(gt=0)


class Wish(Wire):
    """What the owner asked to open."""

    capital: tuple[Capital, ...] = Field(min_length=1, max_length=2)
    pair: tuple[str, str] | None = None
    fee: int | None = None
    """Pips."""
    exposure: Exposure | None = None


class FeesObserved(Wire):
    """A pool's fee growth per unit of in-range liquidity over one window."""

    growth0_x128: int
    growth1_x128: int
    seconds: int = Field(gt=0)
    label: str


class SceneFacts(Wire):
    """One pool and everything its candidates are weighed by. What is not known is None, and stays unknown."""

    pool: PoolState
    position: LpPosition | None = None
    capital0: int = 0
    capital1: int = 0
    returns_nano: tuple[int, ...] = ()
    """Hourly log returns in 1e-9, in the pool's own direction, oldest first."""
    fees: FeesObserved | None = None
    gas: GasQuote | None = None
    native_token1: Fraction | None = None
    reference_gap: Fraction | None = None
    """How far the pool's price is from the reference, as a share of the reference."""
    regime: Regime
    regime_why: str
    regime_notes: tuple[str, ...] = ()


class SourceNote(Wire):
    """Where a feed's figures came from; without a source, why there are none."""

    feed: str
    source: str | None
    as_of: int | None
    age_seconds: int | None
    limit_seconds: int | None
    stale: bool | None
    notes: tuple[str, ...] = ()


class Context(Wire):
    """The world as the Scout froze it at one block. Its canonical bytes are the bundle that everybody reads."""

    flow: Flow
    chain: str
    chain_id: int
    block: Block
    profile: RiskProfile
    max_rounds: int = Field(ge=0)
    scenes: tuple[SceneFacts, ...] = Field(min_length=1)
    wish: Wish | None = None
    sources: tuple[SourceNote, ...]
    seeded: bool
    """Some figure comes from a seeded series: the verdict is capped."""


class Thought(Wire):
    """One line of narration. Ordered by (round, role's turn, seq) it is the transcript."""

    role: Role
    round: int = Field(ge=0)
    seq: int = Field(ge=0)
    text: str = Field(max_length=2_000)
    speaker: Speaker


class Spoke(Wire):
    """Who spoke for a role in a round, why it was not a model where it was not, and what it cost."""

    role: Role
    round: int
    speaker: Speaker
    why: str
    model: str | None = None
    tokens: int = 0
    usd: Decimal | None = Decimal(0)


class Round(Wire):
    """A proposal and what the Critic made of it: nothing yet, or a word on every candidate, each in its place."""

    candidates: tuple[Candidate, ...] = Field(min_length=1)
    mechanical: tuple[Judgment, ...] = ()
    judgments: tuple[Judgment, ...] = ()
    suggestions: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _in_place(self) -> Round:
        places = list(range(len(self.candidates)))
        if [one.index for one in self.candidates] != places:
            raise ValueError("a candidate's index is not its place")
        for judged in (self.mechanical, self.judgments):
            if judged and [one.index for one in judged] != places:
                raise ValueError("the judgments are not one for each candidate, in order")
        if len(self.mechanical) != len(self.judgments):
            raise ValueError("the rules and the Critic judged different ballots")
        return self

    @property
    def judged(self) -> bool:
        return bool(self.judgments)


class Debate(Wire):
    """The argument so far."""

    flow: Flow
    context: Hex64
    rounds: tuple[Round, ...] = ()
    transcript: tuple[Thought, ...] = ()
    spoke: tuple[Spoke, ...] = ()


class FlowStart(Wire):
    kind: Literal[Kind.FLOW_START] = Kind.FLOW_START
    chain: str
    position_id: int = Field(gt=0)
    profile: RiskProfile
    max_rounds: int = Field(ge=0, le=10)


class FlowCreateStart(Wire):
    kind: Literal[Kind.FLOW_CREATE_START] = Kind.FLOW_CREATE_START
    chain: str
    wish: Wish
    profile: RiskProfile
    max_rounds: int = Field(ge=0, le=10)


class Arguing(Wire):
    """A message that carries the debate. Its kind says how far it has come, and the debate must have come so far."""

    debate: Debate

    @model_validator(mode="after")
    def _so_far(self) -> Self:
        judged = [round_.judged for round_ in self.debate.rounds]
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

    @model_validator(mode="after")
    def _on_the_ballot(self) -> Self:
        if not 0 <= self.decision.index < len(self.debate.rounds[-1].candidates):
            raise ValueError(f"candidate {self.decision.index} is not on the latest ballot")
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
