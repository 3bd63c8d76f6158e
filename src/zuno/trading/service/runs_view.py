"""What one cycle of the trading desk came to, in the names of the public JSON: camel case around the desk's own parts.

Every text in it may be a model's: one printable line, bounded.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

from zuno.kernel.errors import Refused
from zuno.kernel.view import ForeignText, View, sanitise
from zuno.llm.port import Attempt
from zuno.provenance.facts import FactSheet
from zuno.provenance.slots import render
from zuno.trading.agents.case import build_case
from zuno.trading.agents.printing import run_facts
from zuno.trading.model.cycle import Blackboard, Change, Decision, Expectation, Meta, Part, Ruling, Voice
from zuno.trading.model.outcome import Degraded, Outcome
from zuno.trading.service.features_view import (
    AbsentView,
    AnomalyView,
    SourceView,
    absent_views,
    anomaly_view,
    iso,
    source_views,
)

if TYPE_CHECKING:
    from zuno.trading.service.runs import RunLine, Told

P = TypeVar("P", bound=BaseModel)


class Ev(Part):
    """What the trade is worth, with its parts; all but the cost are null where nothing was to be opened."""

    p_judge: float | None = None
    p0: float | None = None
    p: float | None = None
    profit_pct: float | None = None
    loss_pct: float | None = None
    fees_pct: float | None = None
    slippage_pct: float | None = None
    funding_pct: float | None = None
    llm_cost_usd: float
    ev_pct: float | None = None


class RunView(View):
    """A run that has ended."""

    synthetic: bool
    origin: ForeignText
    run_id: str
    symbol: str
    mode: str
    as_of: str
    bundle_hash: str
    meta: Meta
    regime: str
    anomalies: tuple[AnomalyView, ...]
    blackboard: Blackboard
    decision: Decision
    """The Judge as validated: before expectancy, budget, CRO and guard."""
    ev: Ev
    ruling: Ruling
    sources: tuple[SourceView, ...]
    absent: tuple[AbsentView, ...]
    degraded: tuple[Degraded, ...]
    voices: tuple[Voice, ...]
    chart: str | None
    """Where the picture was put; null where there is none."""
    report: str | None
    """Where the page was put."""
    hash: str
    code: str
    """The version of Zuno that decided it."""
    notes: tuple[ForeignText, ...] = ()


class AttemptView(View):
    """One question to one model."""

    role: str
    attempt: int
    model: ForeignText
    outcome: str
    why: ForeignText
    said: ForeignText
    """What it wrote, its beginning."""
    tokens: int
    usd: float | None
    """Null: the price is not known."""
    estimated: bool
    """Whether tokens and dollars are the reservation, because the model did not say."""
    latency_ms: int


class CycleWhyView(View):
    """The argument of a run as the journal has it; no model is asked."""

    synthetic: bool
    origin: ForeignText
    run_id: str
    symbol: str
    mode: str
    as_of: str
    bundle_hash: str | None
    state: str
    started: str
    attempts: tuple[AttemptView, ...]
    rules: tuple[Change, ...]
    """What fired, in that order, and what each changed."""
    run: RunView | None
    """Null while it has not ended."""


class RunLineView(View):
    run_id: str
    symbol: str
    mode: str
    as_of: str | None
    """Null: it was cut off before the moment was known."""
    started: str
    state: str
    synthetic: bool | None
    """Null while it has not ended."""
    regime: str | None
    decision: str | None
    ruling: str | None
    allocation_pct: float | None
    leverage: float | None
    veto: ForeignText | None
    hash: str | None


class RunsView(View):
    runs: tuple[RunLineView, ...]


def run_view(told: Told) -> RunView:
    """A run as it is shown; where its picture and its page are put is their reader's affair."""
    outcome, bundle = told.line.outcome, told.bundle
    if outcome is None:
        raise Refused(f"{told.line.run_id} has not ended; `zuno trade resume {told.line.run_id}` takes it up again.")
    facts = run_facts(build_case(bundle), outcome)
    return RunView(
        synthetic=bundle.synthetic,
        origin=outcome.origin,
        run_id=outcome.run_id,
        symbol=outcome.symbol,
        mode=outcome.mode,
        as_of=iso(outcome.as_of),
        bundle_hash=outcome.bundle,
        meta=tamed(outcome.meta, facts),
        regime=outcome.meta.regime,
        anomalies=tuple(
            anomaly_view(bundle, anomaly.rule, anomaly.label, sanitise(anomaly.said)) for anomaly in outcome.anomalies
        ),
        blackboard=tamed(outcome.board, facts),
        decision=tamed(outcome.decision, facts),
        ev=_ev(outcome),
        ruling=tamed(outcome.ruling.model_copy(update={"changes": _printed_changes(outcome, facts)})),
        sources=source_views(bundle),
        absent=absent_views(bundle),
        degraded=tuple(map(tamed, outcome.degraded)),
        voices=tuple(map(tamed, outcome.voices)),
        chart=None,
        report=None,
        hash=outcome.hash,
        code=outcome.code,
        notes=outcome.notes,
    )


def why_view(told: Told) -> CycleWhyView:
    line = told.line
    run = None if line.outcome is None else run_view(told)
    return CycleWhyView(
        synthetic=told.bundle.synthetic,
        origin=told.bundle.origin,
        run_id=line.run_id,
        symbol=line.symbol,
        mode=line.mode,
        as_of=iso(told.bundle.as_of),
        bundle_hash=None if line.outcome is None else line.outcome.bundle,
        state=line.state,
        started=iso(line.at),
        attempts=tuple(map(_attempt, told.attempts)),
        rules=() if run is None else run.ruling.changes,
        run=run,
    )


def runs_view(lines: Iterable[RunLine]) -> RunsView:
    return RunsView(runs=tuple(map(_line, lines)))


def _printed_changes(outcome: Outcome, facts: FactSheet) -> tuple[Change, ...]:
    """What the rules changed; the risk officer's reasons cite facts."""
    changes = outcome.ruling.changes
    return tuple(change.model_copy(update={"why": render(change.why, facts)}) for change in changes)


def tamed(part: P, facts: FactSheet | None = None) -> P:
    """The same part with every text in it safe for a screen, and its figures printed. Why a model was not heard is no
    text of an agent, and quotes what was wrong with one."""
    return part.model_copy(update={name: _tamed(value, None if name == "why" else facts) for name, value in part})


def _tamed(value: Any, facts: FactSheet | None) -> Any:
    if isinstance(value, BaseModel):
        return tamed(value, facts)
    if isinstance(value, str) and not isinstance(value, Enum):
        return sanitise(value if facts is None else render(value, facts))
    return type(value)(_tamed(item, facts) for item in value) if isinstance(value, list | tuple) else value


def _ev(outcome: Outcome) -> Ev:
    """The cost is told whatever came of the run; of a voice whose price nobody knows nothing is added."""
    found: Expectation | None = outcome.expectation
    if found is None:
        return Ev(llm_cost_usd=sum(voice.usd or 0.0 for voice in outcome.voices))
    return Ev.model_validate(found.model_dump())


def _attempt(one: Attempt) -> AttemptView:
    return AttemptView(
        role=one.role,
        attempt=one.attempt,
        model=one.model,
        outcome=one.outcome,
        why=one.why,
        said=one.raw,
        tokens=one.tokens_in + one.tokens_out,
        usd=None if one.usd is None else float(one.usd),
        estimated=one.estimated,
        latency_ms=one.latency_ms,
    )


def _line(line: RunLine) -> RunLineView:
    outcome = line.outcome
    ruling = None if outcome is None else outcome.ruling
    origin = line.origin if outcome is None else outcome.origin
    return RunLineView(
        run_id=line.run_id,
        symbol=line.symbol,
        mode=line.mode,
        as_of=None if line.as_of is None else iso(line.as_of),
        started=iso(line.at),
        state=line.state,
        synthetic=None if origin is None else origin.startswith("SYNTHETIC"),
        regime=None if outcome is None else outcome.meta.regime,
        decision=None if outcome is None else outcome.decision.decision,
        ruling=None if ruling is None else ruling.decision,
        allocation_pct=None if ruling is None else ruling.allocation_pct,
        leverage=None if ruling is None else ruling.leverage,
        veto=None if ruling is None else ruling.veto,
        hash=None if outcome is None else outcome.hash,
    )
