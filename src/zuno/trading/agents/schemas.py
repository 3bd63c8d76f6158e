"""The shapes a model may return to the trading desk: the desk's schemas, field for field; the rest is computed."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from zuno.llm.question import Opinion
from zuno.trading.model.cycle import (
    BookAnomaly,
    Call,
    CvdSignal,
    Expert,
    FlowAnomaly,
    FundingLook,
    Lean,
    MacroAnomaly,
    Pattern,
    Regime,
    RiskBias,
    ShapeAnomaly,
    Style,
)

LONG_TEXT: Final = 600
SHORT_TEXT: Final = 280

"""Characters of a text as it is printed. With slots it may be twice as long, so that ids cost nobody words."""

Rationale = Annotated[str, Field(min_length=1, max_length=2 * LONG_TEXT)]
Remark = Annotated[str, Field(min_length=1, max_length=2 * SHORT_TEXT)]
Direction = Literal["UP", "DOWN", "NEUTRAL"]
Confidence = Annotated[float, Field(ge=0, le=1)]
Percent = Annotated[int, Field(ge=0, le=100)]
Price = Annotated[float, Field(gt=0, lt=1e9)]
"""Of the menu, or it is taken for none."""


class DirectiveOpinion(Opinion):
    expert: Expert
    note: Remark


class MetaOpinion(Opinion):
    regime: Regime
    rationale: Rationale
    trust_directive: DirectiveOpinion
    risk_budget_pct: Percent
    risk_bias: RiskBias


class LiquidityOpinion(Opinion):
    anomaly: FlowAnomaly
    confidence: Confidence
    target_entry: Price | None
    rationale: Rationale


class MicrostructureOpinion(Opinion):
    anomaly: BookAnomaly
    confidence: Confidence
    directional_bias: Direction
    rationale: Rationale


class MacroOpinion(Opinion):
    anomaly: MacroAnomaly
    options_bias: Lean
    confidence: Confidence
    rationale: Rationale


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
    directional_bias: Lean
    confidence: Confidence
    key_levels: KeyLevelsOpinion
    fibonacci_context: Rationale
    pattern: Pattern
    cvd_signal: CvdSignal | None
    funding_visual: FundingLook | None
    rationale: Rationale


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
    dominant_signal: Lean | None = None
    """Part of the desk's schema, and taken from nobody: code computes it."""


class ReasoningOpinion(Opinion):
    counter_scenario: Annotated[str, Field(max_length=2 * LONG_TEXT)]
    """Empty for a HOLD; for LONG and SHORT the rules insist on it."""
    meta_agent_context: Rationale
    technical: Rationale
    derivatives: Rationale
    experts: Rationale
    narrative: Rationale
    final_logic: Rationale


class JudgeOpinion(Opinion):
    decision: Call
    allocation_pct: Percent
    leverage: Annotated[int, Field(ge=1, le=3)]
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


class RiskOpinion(Opinion):
    """What the risk officer asks for; what is more than the draft has is cut to it."""

    allocation_pct: Percent
    leverage: Annotated[int, Field(ge=1, le=3)]
    veto: bool
    execution_style: Style
    rationale: Rationale
