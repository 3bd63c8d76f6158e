"""A plan's record in the journal, and its view: stored when the debate ends, read by every look."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict, Field

from zuno.kernel.canonical import canonical
from zuno.kernel.view import ForeignText, RecordedView, View
from zuno.kernel.wire import Hex64, Wire
from zuno.lp.service.views import LeftoverView, PoolKeyView

PLAN_KIND = "plan"
"""The journal's kind of an entry that says which plan came of a request."""
REFUSED_KIND = "choice_refused"


class PlanRecord(Wire):
    """What is remembered of a plan beside its debate: its name, the message it stands on, and the owner's own choice
    where there was one. A request has one."""

    plan_id: str
    hash: str
    kind: str
    chain: str
    position_id: str | None
    verdict: str
    choice: str
    decided_by: str
    owner_choice: int | None = None
    message: Hex64 | None = None
    """The sha256 of the `plan_ready`, as it was signed, that was checked; an id alone could be given twice by whoever
    holds the key. None: written before this was recorded."""
    doubts: tuple[str, ...] = Field((), exclude_if=lambda doubts: not doubts)
    """What the owner's own sources do not bear out of a plan that peers elsewhere made."""


class ChoiceRefused(Wire):
    """The owner chose what cannot be chosen: there is no plan, and the debate stands as it was checked."""

    message: Hex64
    choice: int
    why: str


def hash_decided(context: Mapping[str, Any], ready: Mapping[str, Any]) -> str:
    """The same of a debate as it is on record, whatever this Zuno's own shapes are."""
    rounds, decision = ready["debate"]["rounds"], ready["decision"]
    sources = [{name: note[name] for name in ("feed", "source", "stale")} for note in context["sources"]]
    decided = {
        "context": {**context, "sources": sources},
        "rounds": rounds,
        "candidates": len(rounds[-1]["candidates"]),
        "decision": {name: decision[name] for name in ("index", "verdict", "decidedBy", "cautions")},
    }
    return hashlib.sha256(canonical(decided)).hexdigest()


def plan_id_of(request_id: str, digest: str) -> str:
    return "plan_" + hashlib.sha256(f"{request_id} {digest}".encode()).hexdigest()[:12]


class StressPointView(View):
    median_hours: int
    p10_hours: int
    p_exit24h: float = Field(alias="pExit24h")
    in_range_share: float
    censored: bool


class StressView(View):
    x1: StressPointView
    x2: StressPointView
    x3: StressPointView


class CarryView(View):
    """Whole token1 as decimal strings; null when unknown."""

    fees24h: str | None = Field(alias="fees24h")
    lvr24h: str | None = Field(alias="lvr24h")
    net24h: str | None = Field(alias="net24h")
    cost: str | None
    worth: str | None
    """Until the horizon, after the cost."""
    breakeven_hours: str | None
    token: str


class EdgeView(View):
    """What the choice is worth more than holding until the horizon, after its cost, in whole token1."""

    worth: str | None
    cost: str | None
    breakeven_hours: str | None
    token: str


class CandidateView(View):
    index: int
    kind: str
    pool: PoolKeyView
    tick_lower: int | None
    tick_upper: int | None
    price_lower: str | None
    price_upper: str | None
    stress: StressView | None
    carry: CarryView
    verdict: str
    reason: ForeignText
    own: bool = False
    """The range the owner named."""


class RecommendedView(CandidateView):
    amount0: str
    amount1: str
    amount0_human: str
    amount1_human: str
    leftover: LeftoverView | None
    """What stays in the wallet; None where nothing is put to work."""
    prep_action: str | None


class RecordView(View):
    """Fields of a record under their own names, safe to print; `model_validate` reads them off it."""

    model_config = ConfigDict(defer_build=True, from_attributes=True, coerce_numbers_to_str=True)


class ThoughtView(RecordView):
    role: str
    round: int
    text: ForeignText
    speaker: str


class SourceView(RecordView):
    feed: ForeignText
    source: ForeignText | None
    as_of: int | None
    age_seconds: int | None
    stale: bool | None
    notes: tuple[ForeignText, ...]


class SpeakerView(RecordView):
    role: str
    round: int
    speaker: str
    why: ForeignText
    model: ForeignText | None
    tokens: int
    usd: str | None


class EarlierView(View):
    """What an earlier round proposed, and why it did not do."""

    round: int
    index: int
    kind: str
    pool: str
    tick_lower: int
    tick_upper: int
    price_lower: str
    price_upper: str
    verdict: str
    reason: ForeignText


class PoolRegimeView(View):
    pool: str
    regime: str
    why: ForeignText


class PlanView(RecordedView):
    plan_id: str
    request_id: str
    kind: str
    chain: str
    position_id: str | None
    profile: str
    verdict: str
    confidence: float
    over_runner_up: float | None
    edge_over_hold: EdgeView | None
    """None where the choice is to hold."""
    because: ForeignText
    """Why this and not hold, or why not to move, in one sentence."""
    decided_by: str
    cautions: tuple[ForeignText, ...]
    rounds: int
    regime: str
    recommended: RecommendedView
    candidates: tuple[CandidateView, ...]
    earlier: tuple[EarlierView, ...]
    """The moves of the rounds before the last, which the candidates above do not hold."""
    transcript: tuple[ThoughtView, ...]
    voices: tuple[SpeakerView, ...]
    sources: tuple[SourceView, ...]
    block: int
    timestamp: int
    regimes: tuple[PoolRegimeView, ...] = ()
    """Of every pool that was argued about."""
    own_range: str | None = None
    """Where the range that the owner named lies on the pool's grid."""
