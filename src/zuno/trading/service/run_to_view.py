"""A run's view as today's code computes it: when the run ends, in a replay, and for an old record that has none."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from enum import Enum
from functools import partial
from typing import Any, TypeVar

from pydantic import BaseModel

from zuno.journal.decision_view import DECISION_VIEW, DecisionRecord, Facts
from zuno.kernel.clock import iso
from zuno.kernel.view import sanitise
from zuno.provenance.facts import FactSheet
from zuno.provenance.slots import cited_ids, list_cited, render
from zuno.trading.agents.case import Case, build_case
from zuno.trading.agents.judge import judge_facts, own_figures
from zuno.trading.agents.learned import describe_cut, find_cut, lesson_id, memory_id, read_feedback, read_memories
from zuno.trading.agents.prompt_budget import Section
from zuno.trading.agents.prompt_facts import build_sheet
from zuno.trading.agents.risk_manager import account_section, change_lines, draft_lines
from zuno.trading.model.bundle import Bundle
from zuno.trading.model.cycle import STARTED, Decision, Outcome
from zuno.trading.model.known import pick
from zuno.trading.rules.draft import RuleName
from zuno.trading.run.record import ENDED, RunJournal, RunRequest, RunSummary, load_bundle
from zuno.trading.service.features_to_view import absent_views, anomaly_view, source_views
from zuno.trading.service.memory_view import ReadMemoryView, lesson_view, memory_view
from zuno.trading.service.run_view import RulingExecutionView, RunView

P = TypeVar("P", bound=BaseModel)


def compute_run_view(
    outcome: Outcome, case: Case, *, live: bool = False, execution: RulingExecutionView | None = None
) -> tuple[RunView, Facts]:
    """The view of an outcome by today's code, and the facts that it cites."""
    facts, bundle = run_facts(case, outcome), case.bundle
    # The risk officer's reasons cite facts.
    changes = [change.model_copy(update={"why": render(change.why, facts)}) for change in outcome.ruling.changes]
    view = RunView(
        **pick(outcome, "origin", "run_id", "symbol", "mode", "hash", "code", "notes"),
        synthetic=bundle.synthetic,
        live=live,
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
        ruling=sanitise_part(outcome.ruling.model_copy(update={"changes": tuple(changes)})),
        sources=source_views(bundle),
        absent=absent_views(bundle),
        degraded=tuple(map(sanitise_part, outcome.degraded)),
        voices=tuple(map(sanitise_part, outcome.voices)),
        chart=None,
        report=None,
        execution=execution,
        memory=read_memory_view(bundle, outcome.decision, facts),
    )
    parts = (outcome.meta, outcome.board, outcome.decision, outcome.ruling)
    return view, list_cited((text for part in parts for text in _texts(part.model_dump())), facts)


def view_run_journal(notebook: RunJournal, outcome: Outcome, case: Case) -> tuple[RunView, Facts]:
    """The same of a run in its journal, which has come to its end."""
    asked, done = notebook.read(STARTED, RunRequest), notebook.read_execution()
    execution = None if done is None else RulingExecutionView(**done.model_dump(), account=asked.account)
    return compute_run_view(outcome, case, live=asked.live, execution=execution)


def run_decision(notebook: RunJournal, outcome: Outcome) -> DecisionRecord[RunView]:
    """The stored view of a run that ended; a record without one is the only reason for a look to compute."""
    stored = notebook.raw(DECISION_VIEW) if notebook.has(DECISION_VIEW) else None
    compute = partial(_compute_recorded_view, notebook, outcome)
    return DecisionRecord(RunView, notebook.read(ENDED, RunSummary).hash, stored, compute)


async def _compute_recorded_view(notebook: RunJournal, outcome: Outcome) -> tuple[RunView, Facts]:
    bundle = await load_bundle(notebook.journal, outcome.bundle)
    # On a thread: a desk that runs is not held up by views of runs before.
    return await asyncio.to_thread(lambda: view_run_journal(notebook, outcome, build_case(bundle)))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def run_facts(case: Case, outcome: Outcome) -> FactSheet:
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


def read_memory_view(bundle: Bundle, decision: Decision, facts: FactSheet) -> ReadMemoryView | None:
    """None: the desk was not asked what it remembers."""
    recalled, feedback = read_memories(bundle), read_feedback(bundle)
    if recalled is None:
        return None
    names = {memory_id(place): note.id for place, note in enumerate(recalled.memories, 1)}
    names |= {lesson_id(place): note.id for place, note in enumerate(feedback.lessons, 1)}
    argued = decision.model_dump(include={"reasoning", "ev_rationale", "key_factors"})
    used = {id_.partition(".")[0] for id_ in cited_ids(_texts(argued))}
    return ReadMemoryView(
        setup=recalled.setup,
        source=recalled.source,
        note=recalled.note,
        memories=tuple(map(memory_view, recalled.memories)),
        lessons=tuple(map(lesson_view, feedback.lessons)),
        cited=tuple(id_ for name, id_ in names.items() if name in used),
        changed=sanitise(render(_describe_change(bundle, decision), facts)),
    )


def _describe_change(bundle: Bundle, decision: Decision) -> str:
    """Of the rules, whose Judge claims less by a rule of its own; a model's words say it themselves."""
    side = decision.decision.side
    if side is None or decision.source in ("model", "repaired"):
        return ""
    cut = find_cut(bundle, side)
    return "" if cut is None else describe_cut(cut)
