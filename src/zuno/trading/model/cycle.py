"""One cycle of the trading desk: what a model may answer (`…Opinion`), the same on record with what code adds, and the
outcome under a hash. Fields follow the desk's published schemas. Texts cite their figures in slots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Final, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from zuno.kernel.canonical import Digest, canonical, digest
from zuno.kernel.units import Millis
from zuno.llm.question import Opinion, Source
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.market import Mode, Side

EDITION: Final = 9
"""Of the trading desk's rules, reasons, prompts and schemas: raised when a change of theirs changes decided bytes."""
STARTED: Final = "cycle_started"
"""The journal's kind of a run's first entry."""
ENDED: Final = "cycle_ended"
"""And of its last."""


class Node(StrEnum):
    """The steps of a cycle, by the names they have on record."""

    COLLECT_DATA = "collect_data"
    CONTEXT_GATHERING = "context_gathering"
    META_AGENT = "meta_agent"
    TRIAGE = "triage"
    LIQUIDITY_EXPERT = "liquidity_expert"
    MICROSTRUCTURE_EXPERT = "microstructure_expert"
    MACRO_EXPERT = "macro_expert"
    GENERATE_CHART = "generate_chart"
    VLM_EXPERT = "vlm_expert"
    BLACKBOARD_SYNTHESIS = "blackboard_synthesis"
    JUDGE_AGENT = "judge_agent"
    RISK_MANAGER = "risk_manager"
    PORTFOLIO_LEVERAGE_GUARD = "portfolio_leverage_guard"
    EXECUTE_TRADE = "execute_trade"
    GENERATE_REPORT = "generate_report"
    DATA_SYNTHESIS = "data_synthesis"


class Expert(StrEnum):
    """Who writes on the blackboard."""

    LIQUIDITY = "liquidity"
    MICROSTRUCTURE = "microstructure"
    MACRO = "macro"
    GEOMETRY = "vlm_geometry"

    @property
    def numeric(self) -> bool:
        """Whether it reads numbers; the other one looks at a picture."""
        return self is not Expert.GEOMETRY


class Call(StrEnum):
    """What the Judge can decide."""

    LONG = "LONG"
    SHORT = "SHORT"
    HOLD = "HOLD"
    CANCEL_AND_CLOSE = "CANCEL_AND_CLOSE"

    @property
    def side(self) -> Side | None:
        """Which way new risk would look; None where there is none."""
        return {Call.LONG: Side.LONG, Call.SHORT: Side.SHORT}.get(self)


class Regime(StrEnum):
    """What kind of market it is."""

    BULL_MOMENTUM = "BULL_MOMENTUM"
    BEAR_MOMENTUM = "BEAR_MOMENTUM"
    RANGE_BOUND = "RANGE_BOUND"
    VOLATILITY_PANIC = "VOLATILITY_PANIC"
    SIDEWAYS_ACCUMULATION = "SIDEWAYS_ACCUMULATION"

    @property
    def family(self) -> RegimeFamily:
        """Regimes whose trades are judged by one record."""
        if self in (Regime.BULL_MOMENTUM, Regime.BEAR_MOMENTUM):
            return RegimeFamily.MOMENTUM
        return RegimeFamily.PANIC if self is Regime.VOLATILITY_PANIC else RegimeFamily.RANGE


class RegimeFamily(StrEnum):
    MOMENTUM = "momentum"
    RANGE = "range"
    PANIC = "panic"


class JudgeKind(StrEnum):
    """Who decided a trade: each has a record of its own."""

    MODEL = "model"
    RULES = "rules"


class RiskBias(StrEnum):
    AGGRESSIVE = "AGGRESSIVE"
    NEUTRAL = "NEUTRAL"
    CONSERVATIVE = "CONSERVATIVE"


class Target(StrEnum):
    """Where a ruling goes: one exchange, or half to each."""

    BINANCE = "BINANCE"
    UPBIT = "UPBIT"
    SPLIT = "SPLIT"


class Style(StrEnum):
    """How an order would be worked, the cheapest first; the last is for exits alone."""

    PASSIVE_MAKER = "PASSIVE_MAKER"
    SMART_DCA = "SMART_DCA"
    MOMENTUM_SNIPER = "MOMENTUM_SNIPER"
    CASINO_EXIT = "CASINO_EXIT"

    @property
    def opens(self) -> bool:
        return self is not Style.CASINO_EXIT


CONVICTION: Final[Mapping[Mode, tuple[Expert, Expert, Expert, Expert]]] = {
    Mode.SWING: (Expert.MICROSTRUCTURE, Expert.LIQUIDITY, Expert.MACRO, Expert.GEOMETRY),
    Mode.POSITION: (Expert.MACRO, Expert.LIQUIDITY, Expert.GEOMETRY, Expert.MICROSTRUCTURE),
}
"""Whose word weighs most, first."""
WEIGHTS: Final = (0.4, 0.3, 0.2, 0.1)
"""In the order of conviction."""
LEVERAGE_CAP: Final[Mapping[Mode, int]] = {Mode.SWING: 3, Mode.POSITION: 1}
VALID_MINUTES: Final[Mapping[Mode, int]] = {Mode.SWING: 15, Mode.POSITION: 60}
"""How long a ruling is good for after its as-of."""
DEFAULT_HOLD: Final[Mapping[Mode, str]] = {Mode.SWING: "5d", Mode.POSITION: "6w"}
LONG_TEXT: Final = 600
SHORT_TEXT: Final = 280
"""Characters of a text as it is printed. With slots it may be twice as long, so that ids cost nobody words."""

Rationale = Annotated[str, Field(min_length=1, max_length=2 * LONG_TEXT)]
Remark = Annotated[str, Field(min_length=1, max_length=2 * SHORT_TEXT)]
Stance = Literal[-1, 0, 1]
Confidence = Annotated[float, Field(ge=0, le=1)]
Percent = Annotated[int, Field(ge=0, le=100)]
Leverage = Annotated[int, Field(ge=1, le=3)]
Price = Annotated[float, Field(gt=0, lt=1e9)]
"""Of the menu, or it is taken for none."""
EvPolicy = Literal["record", "seed"]
Policy = Annotated[EvPolicy, Field(exclude_if=lambda policy: policy == "record")]
"""What an expected value goes by: the edge that the record of closed trades supports, or the Judge's own odds."""
Direction = Literal["UP", "DOWN", "NEUTRAL"]
Signal = Literal["BULLISH", "BEARISH", "NEUTRAL"]

FlowAnomaly = Literal["whale_cvd_divergence", "liquidation_hunting", "none"]
BookAnomaly = Literal["microstructure_imbalance", "fake_wall", "none"]
MacroAnomaly = Literal["options_panic", "macro_divergence", "none"]
ShapeAnomaly = Literal[
    "geometric_trap", "fake_breakout", "exhaustion_top", "capitulation_bottom", "clean_breakout", "accumulation_range",
    "none",
]  # fmt: skip
Pattern = Literal[
    "H&S", "inv_H&S", "double_top", "double_bottom", "bull_flag", "bear_flag", "ascending_triangle", "wedge", "none",
    "other",
]  # fmt: skip
CvdSignal = Literal["divergence_bullish", "divergence_bearish", "confirming", "neutral"]
FundingLook = Literal["extreme_positive", "high_positive", "neutral", "negative", "extreme_negative"]


class Part(BaseModel):
    """A part of a cycle's record: frozen, closed, without NaN."""

    model_config = ConfigDict(
        defer_build=True, frozen=True, extra="forbid", strict=False, allow_inf_nan=False, validate_by_name=True
    )


class AnswerSource(Part):
    """Who spoke for a role and what it cost."""

    role: str
    source: Source
    why: str
    """Why it was not the model, where it was not."""
    model: str | None
    tokens: int
    usd: float | None
    """None: the price is not known."""


V = TypeVar("V")


class AgentAnswer(Part, Generic[V]):
    """What an agent answered, and who spoke for it."""

    value: V
    voice: AnswerSource


class Sourced(Part):
    """What every answer on record carries beside itself."""

    source: Source
    why: str


class DirectiveOpinion(Opinion):
    expert: Expert
    note: Remark


class MetaOpinion(Opinion):
    regime: Regime
    rationale: Rationale
    trust_directive: DirectiveOpinion
    risk_budget_pct: Percent
    risk_bias: RiskBias


class Meta(MetaOpinion, Sourced):
    pass


class LiquidityOpinion(Opinion):
    anomaly: FlowAnomaly
    confidence: Confidence
    target_entry: Price | None
    rationale: Rationale


class LiquidityEntry(LiquidityOpinion, Sourced):
    stance: Stance


class MicrostructureOpinion(Opinion):
    anomaly: BookAnomaly
    confidence: Confidence
    directional_bias: Direction
    rationale: Rationale


class MicrostructureEntry(MicrostructureOpinion, Sourced):
    stance: Stance


class MacroOpinion(Opinion):
    anomaly: MacroAnomaly
    options_bias: Signal
    confidence: Confidence
    rationale: Rationale


class MacroEntry(MacroOpinion, Sourced):
    stance: Stance


class KeyLevelsOpinion(Opinion):
    immediate_support: Price | None
    immediate_resistance: Price | None
    major_support: Price | None
    major_resistance: Price | None
    liquidation_pool_above: Price | None
    liquidation_pool_below: Price | None
    volume_poc: Price | None


class GeometryOpinion(Opinion):
    anomaly: ShapeAnomaly
    directional_bias: Signal
    confidence: Confidence
    key_levels: KeyLevelsOpinion
    fibonacci_context: Rationale
    pattern: Pattern
    cvd_signal: CvdSignal | None
    """None: the panel is absent."""
    funding_visual: FundingLook | None
    rationale: Rationale


class GeometryEntry(GeometryOpinion, Sourced):
    stance: Stance


class ConflictOpinion(Opinion):
    between: Annotated[list[Expert], Field(min_length=2, max_length=2)]
    expert_a_claim: Remark
    expert_b_claim: Remark
    tiebreaker: Remark


class SynthesisOpinion(Opinion):
    consensus_signals: Annotated[list[Remark], Field(max_length=6)]
    conflicts: Annotated[list[ConflictOpinion], Field(max_length=6)]
    highest_confidence_expert: Expert
    key_uncertainty: Remark
    regime_note: Remark
    dominant_signal: Signal | None = None
    """Part of the desk's schema, and taken from nobody: code computes it."""


class Synthesis(SynthesisOpinion, Sourced):
    dominant_signal: Signal
    score: float
    """Σ weight · stance · confidence, over all four experts."""
    heard_score: Annotated[float | None, Field(exclude_if=lambda score: score is None)] = None
    """The same over those who have data, which the dominant signal is the sign of; None where all have."""


class Blackboard(Part):
    """An expert who is absent is null and weighs nothing."""

    liquidity: LiquidityEntry | None
    microstructure: MicrostructureEntry | None
    macro: MacroEntry | None
    vlm_geometry: GeometryEntry | None
    synthesis: Synthesis | None = None


class ReasoningOpinion(Opinion):
    counter_scenario: Annotated[str, Field(max_length=2 * LONG_TEXT)]
    """Empty for a HOLD; for LONG and SHORT the rules insist on it."""
    meta_agent_context: Rationale
    technical: Rationale
    derivatives: Rationale
    experts: Rationale
    narrative: Rationale
    final_logic: Rationale


class Reasoning(ReasoningOpinion):
    """On record, where an exit may be without words."""

    meta_agent_context: str
    technical: str
    derivatives: str
    experts: str
    narrative: str
    final_logic: str


class JudgeOpinion(Opinion):
    decision: Call
    allocation_pct: Percent
    leverage: Leverage
    entry_price: Price | None
    stop_loss: Price | None
    take_profit: Price | None
    hold_duration: Annotated[str, Field(min_length=1, max_length=20)]
    reasoning: ReasoningOpinion
    win_probability_pct: Percent
    expected_profit_pct: Annotated[float, Field(ge=-1_000, le=1_000)]
    expected_loss_pct: Annotated[float, Field(ge=-1_000, le=1_000)]
    ev_rationale: Rationale
    key_factors: Annotated[list[Remark], Field(max_length=8)]


class Decision(JudgeOpinion, Sourced):
    """The Judge as validated: before expectancy, budget, CRO and guard."""

    reasoning: Reasoning
    ev_rationale: str


class RiskOpinion(Opinion):
    """What the risk officer asks for; what is more than the draft has is cut to it. A costlier style or route is taken
    where the expectation stays above zero."""

    allocation_pct: Percent
    leverage: Leverage
    veto: bool
    execution_style: Style
    target_exchange: Target | None = None
    """Another route than the draft's; null leaves it."""
    rationale: Rationale


class Expectation(Part):
    """What a trade is worth, with its parts. Percent of the notional; shares are fractions.

    `ev_pct = fill · (gross − costs)`; gross is `lambda · edge · (profit + loss)`, by the policy `seed`
    `p_judge · profit − (1 − p_judge) · loss`, and was `lambda · edge · (profit + loss) · resolved` in older editions.
    """

    p_judge: float
    fair: float
    """How often the target comes first without drift, by the distances alone."""
    edge: float
    """The Judge's probability less the fair one, at most 0.2 either way."""
    lambda_: Annotated[float, Field(alias="lambda")]
    """How much of an edge the record of closed trades supports."""
    beta: float | None
    """Slope of what trades came to on the edge that was claimed; None without any."""
    beta_se: float | None
    n: int
    """Closed trades of this judge."""
    duration_hours: float
    """Expected time until target, stop or the end of the hold."""
    resolved: float
    """Share of paths that touch target or stop before the hold is over."""
    timed_out: float
    """Share that ends by time."""
    standard_error: float
    """Of the shares, and of the duration as a share of the hold: the larger."""
    fill: float
    """Probability that a waiting order is filled; 1 for one that takes."""
    profit_pct: float
    """From entry to target."""
    loss_pct: float
    """From entry to stop; above zero."""
    fees_pct: float
    slippage_pct: float
    """Half a spread of adverse selection included where the order waits."""
    funding_pct: float
    """What holding it for the expected time costs; below zero where it is paid for, at most what fees and slippage
    cost."""
    llm_cost_usd: float
    ev_pct: float
    exploration: bool = False
    """Opened on paper for the record's sake, without a proven edge."""
    gross_pct: Annotated[float | None, Field(exclude_if=lambda gross: gross is None)] = None
    """Before costs; None in records of older editions."""
    policy: Policy = "record"


class FirstExpectation(Part):
    """What a trade was worth by the rules of editions 1 and 2, as it is on record."""

    p_judge: float
    p0: float
    """How often the target was touched first on drawn paths."""
    p: float
    """The Judge's opinion, shrunk towards p0."""
    profit_pct: float
    """Net of costs."""
    loss_pct: float
    """Costs included; above zero."""
    fees_pct: float
    slippage_pct: float
    funding_pct: float
    llm_cost_usd: float
    ev_pct: float


class Leg(Part):
    """What one exchange would carry. Money in the exchange's own currency."""

    venue: Venue
    side: Side
    currency: str
    margin: float
    notional: float
    leverage: float
    quantity: float | None = None
    """Of the base currency, in whole lots; None before it was worked out."""


class TradeCard(Part):
    """The trade that a ruling opens, in one place. Prices in dollars and on the tick, quantities in whole lots."""

    side: Side
    entry: float
    stop: float
    target: float
    stop_pct: float
    """From the entry, signed as the price would move."""
    target_pct: float
    quantity: float
    """Of the base currency, all legs."""
    notional_usd: float
    margin_usd: float
    leverage: float
    loss_at_stop_usd: float
    """Fees and slippage included."""
    loss_at_stop_pct: float
    """Of the debate's equity, which is the account's where there is no other sleeve."""
    reward_risk: float
    liquidation: float | None
    """Estimated liquidation price of the borrowed leg; None where nothing is borrowed."""
    hold: str
    duration_hours: float
    fair: float
    edge: float
    ev_pct: float
    gross_pct: float
    """EV before costs."""
    fees_pct: float
    slippage_pct: float
    funding_pct: float
    llm_cost_pct: float
    fill: float
    exploration: bool
    policy: Policy = "record"


class Closing(Part):
    """What of the account an exit ends: a position is closed, an order cancelled."""

    venue: Venue
    what: Literal["position", "order"]
    id: str
    side: Side
    """The way it stands."""
    quantity: float
    """Of the base currency."""


class RuleChange(Part):
    """One figure that a rule changed, and why."""

    by: str
    field: str
    from_: Annotated[float | str | None, Field(alias="from")]
    to: float | str | None
    why: str


class Ruling(Part):
    """What the desk would do now; the end of a cycle until orders are enabled."""

    decision: Call
    allocation_pct: float
    """Margin as a percentage of the equity at the exchange that carries it."""
    leverage: float
    target_exchange: Target | None
    execution_style: Style | None
    legs: tuple[Leg, ...]
    """What would be opened."""
    card: TradeCard | None = None
    """None where nothing is opened."""
    closes: tuple[Closing, ...] = ()
    """What an exit ends, as the account stood; an exit without any ends whatever is found."""
    veto: str | None
    """The rule that turned it into a HOLD."""
    valid_until: str
    changes: tuple[RuleChange, ...]


NodeState = Literal["waits", "speaks", "done", "skipped"]
DIGITS: Final = 9
"""Significant digits of a float that enter the hash."""


@dataclass(frozen=True, slots=True)
class NodeEvent:
    """What whoever watches a run is told of one of its nodes."""

    node: Node
    state: NodeState
    """`waits`: for a model or a painter; `speaks`: an agent has answered; `done`; `skipped`: it had nothing to do."""
    source: Source | None = None
    usd: float | None = None
    note: str = ""


class AnomalyRecord(Part):
    """One anomaly of triage."""

    rule: str
    label: str | None
    said: str


class MissingInput(Part):
    """Something the desk had to do without."""

    what: str
    why: str


class Chart(Part):
    """The picture that was looked at."""

    sha256: str
    media_type: str


class Outcome(Part):
    """A finished run. Everything below `chart` is about this run of it, not about what was decided."""

    symbol: Symbol
    mode: Mode
    as_of: Millis
    origin: str
    bundle: str
    """The hash of the input."""
    meta: Meta
    anomalies: tuple[AnomalyRecord, ...]
    board: Blackboard
    decision: Decision
    expectation: Expectation | FirstExpectation | None
    """None: nothing was to be opened."""
    ruling: Ruling
    degraded: tuple[MissingInput, ...]
    voices: tuple[AnswerSource, ...]
    chart: Chart | None
    run_id: str
    code: str
    """The version of Zuno that decided it."""
    hash: str
    notes: tuple[str, ...] = ()


_OF_THE_RUN: Final = frozenset({"chart", "run_id", "code", "hash", "notes"})
_COST: Final = frozenset({"tokens", "usd"})
_COST_IN_EXPECTATION: Final = frozenset({"llm_cost_usd", "ev_pct"})
_COST_IN_CARD: Final = frozenset({"llm_cost_pct", "ev_pct"})
"""Expectancy holds the model's cost; everything else it is made of stays."""


def content_for_hash(outcome: Outcome) -> bytes:
    """The canonical bytes of what was decided: no id, no cost, no clock on a wall, no image; floats rounded."""
    return recorded_content(outcome.model_dump(by_alias=True))


def recorded_content(outcome: Mapping[str, Any]) -> bytes:
    """The same of an outcome as it is on record, whatever this Zuno's own shapes are."""
    kept = _without(outcome, _OF_THE_RUN)
    kept["voices"] = [_without(voice, _COST) for voice in kept["voices"]]
    if kept["expectation"] is not None:
        kept["expectation"] = _without(kept["expectation"], _COST_IN_EXPECTATION)
    kept["ruling"] = _ruling_content(kept["ruling"])
    return canonical(_round_floats(kept))


def _ruling_content(ruling: Mapping[str, Any]) -> dict[str, Any]:
    """Without the fields that older editions did not have, where they are empty."""
    kept = dict(ruling)
    card = kept.pop("card", None)
    if card is not None:
        kept["card"] = _without(card, _COST_IN_CARD)
    kept["legs"] = [
        _without(leg, frozenset({"quantity"})) if leg.get("quantity") is None else leg for leg in kept["legs"]
    ]
    return kept


def _without(fields: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in names}


def hash_of(outcome: Outcome) -> Digest:
    return digest(content_for_hash(outcome))


def with_hash(outcome: Outcome) -> Outcome:
    return outcome.model_copy(update={"hash": hash_of(outcome)})


def _round_floats(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: _round_floats(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_round_floats(item) for item in value]
    return value
