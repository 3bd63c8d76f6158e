"""What was learned, as it is shown: evaluations, calibration of agents, the veto ledger."""

from __future__ import annotations

from typing import Literal

from zuno.kernel.view import ForeignText, View
from zuno.trading.service.origin_view import OriginView


class LearningView(OriginView):
    """What every answer about an account's lessons says."""

    account: str
    mode: Literal["paper", "demo", "live"]
    as_of: str
    said: ForeignText
    notes: tuple[ForeignText, ...] = ()


class LearnedTradeView(View):
    """A closed trade with its post-mortem."""

    id: str
    trade: str
    symbol: str
    side: str
    closed: str
    verdict: str
    first_touch: str | None
    r: float | None
    """Net of fees and funding."""
    outcome: ForeignText
    constraint: ForeignText
    source: Literal["model", "rules"]
    why_rules: ForeignText
    """Why rules wrote it where a model was to."""


class VetoRuleView(View):
    """How much of a wanted trade a rule took away."""

    rule: str
    owner: str
    share: float


class VetoScoreView(View):
    """A decision that was vetoed or cut, and how its trade would have come out."""

    run: str
    symbol: str
    side: str
    regime: str
    decided: str
    resolved: str
    exit: str
    r: float
    pct: float
    rules: tuple[VetoRuleView, ...]


class NewLessonView(View):
    id: str
    cases: int
    text: ForeignText


class EvaluationView(LearningView):
    """What resolved since the last evaluation."""

    post_mortems: tuple[LearnedTradeView, ...]
    vetoes: tuple[VetoScoreView, ...]
    lessons: tuple[NewLessonView, ...]
    """That enough cases agree on since."""
    waiting: int
    """Decisions whose trade would not be over yet."""


class ReliabilityBinView(View):
    low: float
    high: float
    n: int
    claimed: float
    came: float


class AgentCalibrationView(View):
    role: str
    source: str
    regime: str
    """`all`, or one regime."""
    n: int
    brier: float
    skill: float | None
    ece: float
    bins: tuple[ReliabilityBinView, ...]
    enough: bool
    """Whether there are outcomes enough for a verdict."""


class TradeCalibrationView(LearningView):
    outcomes: int
    """Closed trades that were scored."""
    agents: tuple[AgentCalibrationView, ...]
    file: str | None = None
    """The picture."""


class VetoTotalsView(View):
    """One rule. Above zero is saved, below zero is cost."""

    rule: str
    owner: str
    n: int
    vetoes: int
    cuts: int
    unfilled: int
    saved_trades: int
    cost_trades: int
    total_r: float
    mean_r: float
    error_r: float | None
    mean_pct: float
    """Of the notional that was wanted."""
    enough: bool


class VetoesView(LearningView):
    outcomes: int
    """Decisions that were scored."""
    rules: tuple[VetoTotalsView, ...]
    scores: tuple[VetoScoreView, ...]
    """The newest."""
