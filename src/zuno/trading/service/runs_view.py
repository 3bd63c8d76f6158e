"""What one cycle of the trading desk came to, in the names of the public JSON: camel case around the desk's own parts.

Every text in it may be a model's: one printable line, bounded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, FieldSerializationInfo, field_serializer

from zuno.journal.decision_view import DECISION_VIEW, DecisionRecord, Facts
from zuno.kernel.errors import Refused
from zuno.kernel.units import Millis
from zuno.kernel.view import ForeignText, RecordedView, View, sanitise
from zuno.llm.port import Attempt
from zuno.provenance.facts import FactSheet
from zuno.provenance.slots import list_cited, render
from zuno.trading.agents.case import Case, build_case
from zuno.trading.agents.judge import judge_facts, own_figures
from zuno.trading.agents.prompt_budget import Section
from zuno.trading.agents.prompt_facts import build_sheet
from zuno.trading.agents.risk_manager import account_section, change_lines, draft_lines
from zuno.trading.model.bundle import CANDLES_ONLY
from zuno.trading.model.cycle import (
    STARTED,
    AnswerSource,
    Blackboard,
    Decision,
    Expectation,
    FirstExpectation,
    Meta,
    MissingInput,
    Node,
    Outcome,
    RuleChange,
    Ruling,
)
from zuno.trading.model.market import Mode, Symbol
from zuno.trading.rules.draft import RuleName
from zuno.trading.run.record import ENDED, RunJournal, RunRequest, RunSummary, load_bundle
from zuno.trading.service.features_view import AnomalyView, SourceView, absent_views, anomaly_view, iso, source_views
from zuno.trading.service.memory_view import ReadMemoryView, read_memory_view
from zuno.trading.service.origin_view import OriginView

P = TypeVar("P", bound=BaseModel)


class RulingExecutionView(View):
    """What came of a ruling at the order gate."""

    state: str
    """held, refused, working, open, closing, closed or ended."""
    reason: ForeignText
    intent: str | None
    account: str | None = None
    """Who acted, by its whole name."""


class RunView(OriginView, RecordedView):
    """A run that has ended."""

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
    ev: Expectation | FirstExpectation | None
    """None: nothing was to be opened. JSON then has nulls, beside what the models cost."""
    ruling: Ruling
    sources: tuple[SourceView, ...]
    absent: tuple[MissingInput, ...]
    degraded: tuple[MissingInput, ...]
    voices: tuple[AnswerSource, ...]
    chart: str | None
    """Where the picture was put; null where there is none."""
    trade_chart: str | None = None
    """Where the picture of the trade was put; null where nothing was to be opened."""
    report: str | None
    """Where the page was put."""
    code: str
    """The version of Zuno that decided it."""
    notes: tuple[ForeignText, ...] = ()
    execution: RulingExecutionView | None = None
    """Null where nobody was to act on the ruling."""
    memory: ReadMemoryView | None = None
    """What the Judge read of closed trades; null where the desk was not asked."""

    @property
    def llm_cost_usd(self) -> float:
        """A voice whose price nobody knows adds nothing."""
        return self.ev.llm_cost_usd if self.ev else sum(voice.usd or 0.0 for voice in self.voices)

    @field_serializer("ev")
    def _ev_fields(
        self, ev: Expectation | FirstExpectation | None, info: FieldSerializationInfo
    ) -> dict[str, bool | int | float | None] | None:
        if ev is not None or info.round_trip:
            return None if ev is None else ev.model_dump(by_alias=True)
        names = [field.alias or name for name, field in Expectation.model_fields.items()]
        return {**dict.fromkeys(names), "llm_cost_usd": self.llm_cost_usd}


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


class CycleWhyView(OriginView):
    """The argument of a run as the journal has it; no model is asked."""

    run_id: str
    symbol: str
    mode: str
    as_of: str
    bundle_hash: str | None
    state: str
    started: str
    attempts: tuple[AttemptView, ...]
    rules: tuple[RuleChange, ...]
    """What fired, in that order, and what each changed."""
    run: RunView | None
    """Null while it has not ended."""
    reached: tuple[str, ...] = ()
    """The steps that are on record."""
    waiting: tuple[str, ...] = ()
    """Those that are not."""


class RunLineView(View):
    run_id: str
    symbol: str
    mode: str
    as_of: str | None
    """Null: it was cut off before the moment was known."""
    started: str
    state: str
    synthetic: bool | None
    candles_only: bool | None
    """Both null: it was cut off before the moment was known."""
    regime: str | None
    decision: str | None
    ruling: str | None
    allocation_pct: float | None
    leverage: float | None
    veto: ForeignText | None
    hash: str | None


class RunsView(View):
    runs: tuple[RunLineView, ...]
    more: bool = False
    """Whether older runs are left out."""


@dataclass(frozen=True, slots=True)
class RunLine:
    """One run as the journal knows it."""

    run_id: str
    symbol: Symbol
    mode: Mode
    as_of: Millis | None
    """None: it was cut off before the moment was known."""
    at: Millis
    """When it was started, by the clock on the wall."""
    state: Literal["ended", "unfinished", "expired"]
    """`expired`: an older edition began it, and nobody can finish it any more."""
    end: RunSummary | None
    """None as long as it has not ended."""
    origin: str | None = None
    """Whose past it is about; None as long as the moment is not known."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """Everything that is on record of a run: for a report or for whoever asks why."""

    line: RunLine
    outcome: Outcome | None
    """None as long as it has not ended."""
    view: RunView | None
    """As it is shown; None as long as it has not ended."""
    attempts: tuple[Attempt, ...]
    """What models were asked and said, in that order."""
    picture: bytes | None
    nodes: tuple[Node, ...] = ()
    """The steps that are on record."""
    live: bool = False


def run_view(record: RunRecord) -> RunView:
    """A run as it is shown; where its picture and its page are put is their reader's affair."""
    if record.view is None:
        raise Refused(
            f"{record.line.run_id} has not ended; `zuno trade resume {record.line.run_id}` takes it up again."
        )
    return record.view


def compute_run_view(
    outcome: Outcome, case: Case, *, live: bool = False, execution: RulingExecutionView | None = None
) -> tuple[RunView, Facts]:
    """The view of an outcome by today's code, and the facts that it cites."""
    facts, bundle = run_facts(case, outcome), case.bundle
    changes = _printed_changes(outcome, facts)
    view = RunView(
        synthetic=bundle.synthetic,
        live=live,
        origin=outcome.origin,
        run_id=outcome.run_id,
        symbol=outcome.symbol,
        mode=outcome.mode,
        as_of=iso(outcome.as_of),
        bundle_hash=outcome.bundle,
        meta=sanitise_part(outcome.meta, facts),
        regime=outcome.meta.regime,
        anomalies=tuple(
            anomaly_view(bundle, anomaly.rule, anomaly.label, sanitise(anomaly.said)) for anomaly in outcome.anomalies
        ),
        blackboard=sanitise_part(outcome.board, facts),
        decision=sanitise_part(outcome.decision, facts),
        ev=outcome.expectation,
        ruling=sanitise_part(outcome.ruling.model_copy(update={"changes": changes})),
        sources=source_views(bundle),
        absent=absent_views(bundle),
        degraded=tuple(map(sanitise_part, outcome.degraded)),
        voices=tuple(map(sanitise_part, outcome.voices)),
        chart=None,
        report=None,
        hash=outcome.hash,
        code=outcome.code,
        notes=outcome.notes,
        execution=execution,
        memory=read_memory_view(bundle, outcome.decision, facts),
    )
    said = (outcome.meta, outcome.board, outcome.decision, outcome.ruling)
    return view, list_cited((text for part in said for text in _texts(part.model_dump())), facts)


def view_run_journal(notebook: RunJournal, outcome: Outcome, case: Case) -> tuple[RunView, Facts]:
    """The same of a run in its journal, which has come to its end."""
    asked, done = notebook.read(STARTED, RunRequest), notebook.read_execution()
    execution = None if done is None else RulingExecutionView(**done.model_dump(), account=asked.account)
    return compute_run_view(outcome, case, live=asked.live, execution=execution)


def run_decision(notebook: RunJournal, outcome: Outcome) -> DecisionRecord[RunView]:
    async def compute() -> tuple[RunView, Facts]:
        bundle = await load_bundle(notebook.journal, outcome.bundle)
        # On a thread: a desk that runs is not held up by views of runs before.
        return await asyncio.to_thread(lambda: view_run_journal(notebook, outcome, build_case(bundle)))

    stored = notebook.raw(DECISION_VIEW) if notebook.has(DECISION_VIEW) else None
    return DecisionRecord(RunView, notebook.read(ENDED, RunSummary).hash, stored, compute)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def run_facts(case: Case, outcome: Outcome) -> FactSheet:
    """The facts of a finished run: its texts are printed from these."""
    decision = outcome.decision
    before_review = []
    for change in outcome.ruling.changes:
        if change.by == RuleName.TIGHTENED.value:
            break
        before_review.append(change)
    sizes = {"allocation_pct": float(decision.allocation_pct), "leverage": float(decision.leverage)}
    sizes |= {
        change.field: float(change.to)
        for change in before_review
        if change.field in sizes and isinstance(change.to, int | float)
    }
    drafted = draft_lines(decision, sizes["allocation_pct"], sizes["leverage"], outcome.expectation)
    draft = Section("draft", 0, (*drafted, *change_lines(before_review)))
    judged = judge_facts(case, outcome.meta, outcome.board)
    return build_sheet((draft, account_section(case)), (*judged.values(), *own_figures(decision, case)))


def why_view(record: RunRecord) -> CycleWhyView:
    line, run, origin = record.line, record.view, record.line.origin or ""
    return CycleWhyView(
        synthetic=origin.startswith("SYNTHETIC"),
        live=record.live,
        origin=origin,
        run_id=line.run_id,
        symbol=line.symbol,
        mode=line.mode,
        as_of="" if line.as_of is None else iso(line.as_of),
        bundle_hash=None if run is None else run.bundle_hash,
        state=line.state,
        started=iso(line.at),
        attempts=tuple(map(_attempt_view, record.attempts)),
        rules=() if run is None else run.ruling.changes,
        run=run,
        reached=record.nodes,
        waiting=tuple(node for node in Node if node not in record.nodes),
    )


def runs_view(lines: Sequence[RunLine], most: int | None = None) -> RunsView:
    """The first `most` of them; any further one says that there are more."""
    shown = lines[:most]
    return RunsView(runs=tuple(map(_line_view, shown)), more=len(lines) > len(shown))


def _printed_changes(outcome: Outcome, facts: FactSheet) -> tuple[RuleChange, ...]:
    """What the rules changed; the risk officer's reasons cite facts."""
    changes = outcome.ruling.changes
    return tuple(change.model_copy(update={"why": render(change.why, facts)}) for change in changes)


def sanitise_part(part: P, facts: FactSheet | None = None) -> P:
    """The same part with every text in it safe for a screen, and its figures printed. Why a model was not heard is no
    text of an agent, and quotes what was wrong with one."""
    return part.model_copy(
        update={name: _sanitise_value(value, None if name == "why" else facts) for name, value in part}
    )


def _sanitise_value(value: Any, facts: FactSheet | None) -> Any:
    if isinstance(value, BaseModel):
        return sanitise_part(value, facts)
    if isinstance(value, str) and not isinstance(value, Enum):
        return sanitise(value if facts is None else render(value, facts))
    return type(value)(_sanitise_value(item, facts) for item in value) if isinstance(value, list | tuple) else value


def _attempt_view(attempt: Attempt) -> AttemptView:
    return AttemptView(
        role=attempt.role,
        attempt=attempt.attempt,
        model=attempt.model,
        outcome=attempt.outcome,
        why=attempt.why,
        said=attempt.raw,
        tokens=attempt.tokens_in + attempt.tokens_out,
        usd=None if attempt.usd is None else float(attempt.usd),
        estimated=attempt.estimated,
        latency_ms=attempt.latency_ms,
    )


def _line_view(line: RunLine) -> RunLineView:
    end, origin = line.end, line.origin
    return RunLineView(
        run_id=line.run_id,
        symbol=line.symbol,
        mode=line.mode,
        as_of=None if line.as_of is None else iso(line.as_of),
        started=iso(line.at),
        state=line.state,
        synthetic=None if origin is None else origin.startswith("SYNTHETIC"),
        candles_only=None if origin is None else origin.startswith(CANDLES_ONLY),
        regime=None if end is None else end.regime,
        decision=None if end is None else end.decision,
        ruling=None if end is None else end.ruling,
        allocation_pct=None if end is None else end.allocation_pct,
        leverage=None if end is None else end.leverage,
        veto=None if end is None else end.veto,
        hash=None if end is None else end.hash,
    )
