"""A run's view as today's code computes it: when the run ends, in a replay, and for an old record that has none. And a
recorded run argued again from its record."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from itertools import takewhile
from typing import Any, TypeVar

from pydantic import BaseModel

from zuno.journal.decision_view import DECISION_VIEW, DecisionRecord, Facts, ReplayView, list_differences
from zuno.journal.port import Journal
from zuno.kernel.canonical import Digest, decode_canonical, digest
from zuno.kernel.clock import iso
from zuno.kernel.errors import ZunoError
from zuno.kernel.units import Millis
from zuno.kernel.view import sanitise
from zuno.llm.ask import ModelContext
from zuno.llm.port import Attempt
from zuno.provenance.facts import FactSheet
from zuno.provenance.slots import cited_ids, list_cited, render
from zuno.trading.agents.case import Case, build_case
from zuno.trading.agents.judge import judge_facts, own_figures
from zuno.trading.agents.learned import describe_cut, find_cut, lesson_id, memory_id, read_feedback, read_memories
from zuno.trading.agents.prompt_budget import Section
from zuno.trading.agents.prompt_facts import build_sheet
from zuno.trading.agents.risk_manager import account_section, change_lines, draft_lines
from zuno.trading.model.bundle import Bundle
from zuno.trading.model.cycle import STARTED, Decision, Node, Outcome, Part, content_for_hash, recorded_content
from zuno.trading.model.known import derive
from zuno.trading.model.memory import Exploration
from zuno.trading.rules.draft import RuleName
from zuno.trading.run import record
from zuno.trading.run.nodes import Cycle, CycleSources, outcome_at_end
from zuno.trading.service.features_to_view import absent_views, anomaly_view, source_views
from zuno.trading.service.memory_view import LessonView, MemoryView, ReadMemoryView
from zuno.trading.service.run_view import RulingExecutionView, RunView

P = TypeVar("P", bound=BaseModel)
R = TypeVar("R", bound=Part)


def compute_run_view(
    outcome: Outcome, case: Case, *, live: bool = False, execution: RulingExecutionView | None = None
) -> tuple[RunView, Facts]:
    """The view of an outcome by today's code, and the facts that it cites."""
    facts, bundle = run_facts(case, outcome), case.bundle
    # The risk officer's reasons cite facts.
    changes = [change.model_copy(update={"why": render(change.why, facts)}) for change in outcome.ruling.changes]
    view = derive(
        RunView,
        outcome,
        bundle,
        live=live,
        as_of=iso(outcome.as_of),
        bundle_hash=outcome.bundle,
        meta=sanitise_part(outcome.meta, facts),
        regime=outcome.meta.regime,
        anomalies=tuple(anomaly_view(bundle, each.rule, each.label, sanitise(each.said)) for each in outcome.anomalies),
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


def view_run_journal(notebook: record.RunJournal, outcome: Outcome, case: Case) -> tuple[RunView, Facts]:
    """The same of a run in its journal, which has come to its end."""
    asked, done = notebook.read(STARTED, record.RunRequest), notebook.read_execution()
    execution = None if done is None else RulingExecutionView(**done.model_dump(), account=asked.account)
    return compute_run_view(outcome, case, live=asked.live, execution=execution)


def run_decision(notebook: record.RunJournal, outcome: Outcome) -> DecisionRecord[RunView]:
    """The stored view of a run that ended; a record without one is the only reason for a look to compute."""
    stored = notebook.raw(DECISION_VIEW) if notebook.has(DECISION_VIEW) else None
    compute = partial(_compute_recorded_view, notebook, outcome)
    return DecisionRecord(RunView, notebook.read(record.ENDED, record.RunSummary).hash, stored, compute)


async def _compute_recorded_view(notebook: record.RunJournal, outcome: Outcome) -> tuple[RunView, Facts]:
    bundle = await record.load_bundle(notebook.journal, outcome.bundle)
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
    before_review = [*takewhile(lambda change: change.by != RuleName.TIGHTENED.value, outcome.ruling.changes)]
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
    safe = {name: _sanitise_value(value, None if name == "why" else facts) for name, value in part}
    return part.model_copy(update=safe)


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
    side = decision.decision.side
    # The rules' Judge claims less by a rule of its own; a model's words say it themselves.
    cut = None if side is None or decision.source in ("model", "repaired") else find_cut(bundle, side)
    return derive(
        ReadMemoryView,
        recalled,
        memories=tuple(derive(MemoryView, note) for note in recalled.memories),
        lessons=tuple(derive(LessonView, note) for note in feedback.lessons),
        cited=tuple(id_ for name, id_ in names.items() if name in used),
        changed=sanitise(render("" if cut is None else describe_cut(cut), facts)),
    )


@dataclass(frozen=True, slots=True)
class ReplayContext:
    """Where a recorded run is held again: a journal that is forgotten, models that say what was said."""

    journal: Journal
    model_context: Callable[[record.RunJournal], ModelContext]
    differences: Callable[[], tuple[str, ...]]


async def replay_run(
    notebook: record.RunJournal,
    then: Outcome,
    rehearse: Callable[[Sequence[Attempt], Mapping[str, str]], Awaitable[ReplayContext]],
    code: str,
) -> ReplayView:
    """Compare what is decided with `then`, the outcome on record. A run of an older edition is verified alone."""
    journal, run_id = notebook.journal, notebook.run_id
    (first,), (last,) = [await journal.latest(1, request_id=run_id, kind=kind) for kind in (STARTED, record.ENDED)]
    await journal.verify_range(first.seq, last.seq)
    asked = notebook.read(STARTED, record.RunRequest)
    now: Outcome | None = None
    if asked.older:
        problems = _record_problems(notebook)
    else:
        whys = {voice.role: voice.why for voice in then.voices if voice.source == "deterministic"}
        # Who was asked and then not seated when the run went on has attempts on record, and did not speak.
        attempts = [attempt for attempt in counted_attempts(notebook.attempts) if attempt.role not in whys]
        rehearsal = await rehearse(attempts, whys)
        try:
            again = record.RunJournal(rehearsal.journal, run_id)
            sources = _recorded_sources(notebook, journal)
            cycle = Cycle(again, sources, rehearsal.model_context(again), lambda event: None, code)
            await cycle.take_steps(None)
            now = outcome_at_end(cycle.outcome, notebook.read(record.ENDED, record.RunSummary))
        except ZunoError as error:
            problems = [f"the replay ended in an error: {error}"]
        else:
            problems = [*rehearsal.differences(), *_list_differences(then, now)]
    return ReplayView(
        ok=not problems,
        identical=None if asked.older else not problems,
        edition=asked.edition,
        request_id=then.run_id,
        hash=then.hash,
        replayed_hash=None if now is None else now.hash,
        code_then=then.code,
        code_now=code,
        differences=tuple(problems),
        view_differences=await run_decision(notebook, then).compare(),
    )


def _record_problems(notebook: record.RunJournal) -> list[str]:
    """What of an older edition's run does not hold: its hash must follow from the outcome on record, and its end name
    it, unless it came too late."""
    outcome: Any = notebook.raw(Node.GENERATE_REPORT)["outcome"]
    end = notebook.read(record.ENDED, record.RunSummary)
    problems = []
    if digest(recorded_content(outcome)) != outcome["hash"]:
        problems.append("the outcome of record has another hash than its content gives")
    if not end.expired and end.hash != outcome["hash"]:
        problems.append(f"its end names {end.hash[:12]}…, its report {outcome['hash'][:12]}…")
    return problems


def _recorded_sources(notebook: record.RunJournal, journal: Journal) -> CycleSources:
    """The sources of a recorded run: what came from outside comes from the record."""

    async def read(node: Node, shape: type[R]) -> R:
        return notebook.read(node, shape)

    async def gather(moment: record.MarketMoment) -> tuple[Digest, Case]:
        name = notebook.read(Node.CONTEXT_GATHERING, record.BundleName).bundle
        return Digest(name), build_case(await record.load_bundle(journal, name))

    async def ahead(decision: Decision) -> float:
        return notebook.read(Node.JUDGE_AGENT, record.JudgeRecord).ahead_usd

    async def claim_exploration(own: Exploration) -> tuple[Exploration, ...]:
        return notebook.read(Node.PORTFOLIO_LEVERAGE_GUARD, record.GuardRecord).explored or ()

    def now(node: Node, as_of: Millis) -> Millis:
        if node is Node.PORTFOLIO_LEVERAGE_GUARD:
            return notebook.read(node, record.GuardRecord).at
        return notebook.read(Node.GENERATE_REPORT, record.ReportRecord).at

    async def new_cases() -> tuple[str, ...]:
        if not notebook.has(Node.DATA_SYNTHESIS) or "skipped" in notebook.raw(Node.DATA_SYNTHESIS):
            return ()
        return notebook.read(Node.DATA_SYNTHESIS, record.CasesRecord).records

    return CycleSources(
        collect=lambda: read(Node.COLLECT_DATA, record.MarketMoment),
        gather=gather,
        recorded=lambda name: record.load_bundle(journal, name),
        paint=lambda bundle: read(Node.GENERATE_CHART, record.ChartRecord),
        image=lambda painted: record.load_image(journal, painted),
        ahead=ahead,
        claim_exploration=claim_exploration,
        new_cases=new_cases,
        now=now,
    )


def counted_attempts(attempts: Sequence[Attempt]) -> tuple[Attempt, ...]:
    """The attempts that count: a question that was begun anew, because other models sat when the run was resumed, has
    those of its last asking alone."""
    kept: dict[tuple[str, int], list[Attempt]] = {}
    for attempt in attempts:
        theirs = kept.setdefault((attempt.role, attempt.round), [])
        theirs[:] = [their for their in theirs if their.attempt < attempt.attempt]
        theirs.append(attempt)
    return tuple(attempt for theirs in kept.values() for attempt in theirs)


def _list_differences(then: Outcome, now: Outcome) -> list[str]:
    if then.hash == now.hash:
        return []
    before: Any = decode_canonical(content_for_hash(then))
    after: Any = decode_canonical(content_for_hash(now))
    parts = [name for name in before if before[name] != after.get(name)]
    if not parts:
        return ["the outcome of record has another hash than its content gives"]
    return [f"{name}: {next(list_differences(before[name], after.get(name)))}" for name in parts]
