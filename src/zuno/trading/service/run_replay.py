"""A recorded run argued again from its record, and what differs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zuno.journal.decision_view import ReplayView, list_differences
from zuno.journal.port import Journal
from zuno.kernel.canonical import Digest, decode_canonical, digest
from zuno.kernel.errors import ZunoError
from zuno.kernel.units import Millis
from zuno.llm.ask import ModelContext
from zuno.llm.port import Attempt
from zuno.trading.agents.case import Case, build_case
from zuno.trading.model.bundle import Bundle
from zuno.trading.model.cycle import STARTED, Decision, Node, Outcome, content_for_hash, recorded_content
from zuno.trading.model.memory import Exploration
from zuno.trading.run.nodes import Cycle, CycleSources, outcome_at_end
from zuno.trading.run.record import (
    ENDED,
    BundleName,
    CasesRecord,
    ChartRecord,
    GuardRecord,
    JudgeRecord,
    MarketMoment,
    ReportRecord,
    RunJournal,
    RunRequest,
    RunSummary,
    load_bundle,
    load_image,
)
from zuno.trading.service.run_to_view import run_decision


@dataclass(frozen=True, slots=True)
class ReplayContext:
    """Where a recorded run is held again: a journal that is forgotten, models that say what was said."""

    journal: Journal
    model_context: Callable[[RunJournal], ModelContext]
    differences: Callable[[], tuple[str, ...]]


async def replay_run(
    notebook: RunJournal,
    then: Outcome,
    rehearse: Callable[[Sequence[Attempt], Mapping[str, str]], Awaitable[ReplayContext]],
    code: str,
) -> ReplayView:
    """Compare what is decided with `then`, the outcome on record. A run of an older edition is verified alone."""
    journal, run_id = notebook.journal, notebook.run_id
    (first,), (last,) = [await journal.latest(1, request_id=run_id, kind=kind) for kind in (STARTED, ENDED)]
    await journal.verify_range(first.seq, last.seq)
    asked = notebook.read(STARTED, RunRequest)
    now: Outcome | None = None
    if asked.older:
        problems = _record_problems(notebook)
    else:
        whys = {voice.role: voice.why for voice in then.voices if voice.source == "deterministic"}
        # Who was asked and then not seated when the run went on has attempts on record, and did not speak.
        attempts = [attempt for attempt in counted_attempts(notebook.attempts) if attempt.role not in whys]
        rehearsal = await rehearse(attempts, whys)
        try:
            again = RunJournal(rehearsal.journal, run_id)
            sources = _recorded_sources(notebook, journal)
            cycle = Cycle(again, sources, rehearsal.model_context(again), lambda event: None, code)
            await cycle.take_steps(None)
            now = outcome_at_end(cycle.outcome, notebook.read(ENDED, RunSummary))
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


def _record_problems(notebook: RunJournal) -> list[str]:
    """What of an older edition's run does not hold: its hash must follow from the outcome on record, and its end name
    it, unless it came too late."""
    outcome: Any = notebook.raw(Node.GENERATE_REPORT)["outcome"]
    end = notebook.read(ENDED, RunSummary)
    problems = []
    if digest(recorded_content(outcome)) != outcome["hash"]:
        problems.append("the outcome of record has another hash than its content gives")
    if not end.expired and end.hash != outcome["hash"]:
        problems.append(f"its end names {end.hash[:12]}…, its report {outcome['hash'][:12]}…")
    return problems


def _recorded_sources(notebook: RunJournal, journal: Journal) -> CycleSources:
    """The sources of a recorded run: what came from outside comes from the record."""

    async def collect() -> MarketMoment:
        return notebook.read(Node.COLLECT_DATA, MarketMoment)

    async def gather(moment: MarketMoment) -> tuple[Digest, Case]:
        name = notebook.read(Node.CONTEXT_GATHERING, BundleName).bundle
        return Digest(name), build_case(await load_bundle(journal, name))

    async def paint(bundle: Bundle) -> ChartRecord:
        return notebook.read(Node.GENERATE_CHART, ChartRecord)

    async def ahead(decision: Decision) -> float:
        return notebook.read(Node.JUDGE_AGENT, JudgeRecord).ahead_usd

    async def claim_exploration(own: Exploration) -> tuple[Exploration, ...]:
        return notebook.read(Node.PORTFOLIO_LEVERAGE_GUARD, GuardRecord).explored or ()

    def now(node: Node, as_of: Millis) -> Millis:
        if node is Node.PORTFOLIO_LEVERAGE_GUARD:
            return notebook.read(node, GuardRecord).at
        return notebook.read(Node.GENERATE_REPORT, ReportRecord).at

    async def new_cases() -> tuple[str, ...]:
        if not notebook.has(Node.DATA_SYNTHESIS) or "skipped" in notebook.raw(Node.DATA_SYNTHESIS):
            return ()
        return notebook.read(Node.DATA_SYNTHESIS, CasesRecord).records

    return CycleSources(
        collect=collect,
        gather=gather,
        recorded=lambda name: load_bundle(journal, name),
        paint=paint,
        image=lambda painted: load_image(journal, painted),
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
