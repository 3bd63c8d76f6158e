"""The trading desk's views as facts."""

from __future__ import annotations

from collections.abc import Sequence

from zuno.doors.chat.facts import MAX_ROWS, FactWriter, ToolFacts
from zuno.trading.service.memory_view import LessonsView, MemoriesView, MemoryView, SearchView
from zuno.trading.service.runs_view import CycleWhyView, RunsView, RunView


def write_runs(view: RunsView, facts: FactWriter) -> ToolFacts:
    facts.line(facts.rows(view.runs, "runs, newest first"))
    for number, run in enumerate(view.runs[:MAX_ROWS], 1):
        own = f"r{number}"
        facts.id(run.run_id, run.symbol)
        facts.line(
            f"{own}: {run.symbol} {run.mode}, {run.state}",
            facts.words(f"{own}.id", run.run_id),
            facts.words(f"{own}.as_of", run.as_of),
            f"Judge {run.decision or 'none'}, ruling {run.ruling or 'none'}",
            f"regime {run.regime or 'none'}",
            f"vetoed by {facts.name(run.veto)}" if run.veto else "",
            facts.percent(f"{own}.allocation", run.allocation_pct),
            facts.number(f"{own}.leverage", run.leverage),
        )
    return facts.build()


def write_cycle_why(view: CycleWhyView, facts: FactWriter) -> ToolFacts:
    facts.id(view.run_id, view.symbol)
    facts.line(
        f"run of {view.symbol} {view.mode}, {view.state}",
        facts.words("id", view.run_id),
        facts.words("as_of", view.as_of),
    )
    for rule in view.rules[:MAX_ROWS]:
        facts.line(f"rule {rule.by} changed {rule.field}: {facts.stranger(rule.why)}")
    if view.run is not None:
        _write_run(view.run, facts)
        for computed in view.run.computed_notes:
            facts.line(facts.words("shown", computed))
    return facts.build(view.as_of)


def write_memories(view: MemoriesView, facts: FactWriter) -> ToolFacts:
    return _write_list(view.memories, "post-mortems of closed trades, newest first", facts)


def write_search(view: SearchView, facts: FactWriter) -> ToolFacts:
    return _write_list(view.memories, "post-mortems of trades like that, the best first", facts)


def write_lessons(view: LessonsView, facts: FactWriter) -> ToolFacts:
    facts.line(facts.rows(view.lessons, "lessons"))
    for number, lesson in enumerate(view.lessons[:MAX_ROWS], 1):
        facts.line(
            f"l{number}: {lesson.side}, {lesson.state}, {lesson.verdict}",
            facts.words(f"l{number}.condition", lesson.condition),
            facts.count(f"l{number}.cases", len(lesson.cases)),
            facts.words(f"l{number}.expires", lesson.expires),
            facts.stranger(lesson.text),
        )
    return facts.build()


def _write_list(memories: Sequence[MemoryView], title: str, facts: FactWriter) -> ToolFacts:
    facts.line(facts.rows(memories, title))
    for number, memory in enumerate(memories[:MAX_ROWS], 1):
        own = f"m{number}"
        facts.id(memory.id)
        facts.line(
            f"{own}: {memory.side} {memory.symbol}, {memory.verdict}",
            facts.words(f"{own}.id", memory.id),
            facts.words(f"{own}.closed", memory.closed),
            facts.number(f"{own}.r", memory.r, signed=True) + " R",
            f"outcome: {facts.stranger(memory.outcome)}",
            f"constraint: {facts.stranger(memory.constraint)}",
        )
    return facts.build()


def _write_run(run: RunView, facts: FactWriter) -> None:
    ruling, card = run.ruling, run.ruling.card
    facts.line(
        f"Judge {run.decision.decision}, ruling {ruling.decision}, regime {run.regime}",
        f"vetoed by {facts.name(ruling.veto)}" if ruling.veto else "",
        facts.percent("allocation", ruling.allocation_pct),
        facts.number("leverage", ruling.leverage),
    )
    if run.ev is not None:
        facts.line(facts.percent("ev", run.ev.ev_pct, signed=True) + " of the notional")
    if card is not None:
        facts.line(
            f"trade card: {card.side}",
            facts.price("entry_price", card.entry, "USD"),
            facts.price("stop_price", card.stop, "USD"),
            facts.price("target_price", card.target, "USD"),
            facts.usd("margin", card.margin_usd),
            facts.usd("loss_at_stop", card.loss_at_stop_usd),
            facts.number("reward_risk", card.reward_risk),
        )
    facts.line(f"the Judge's reason: {facts.stranger(run.decision.reasoning.final_logic)}")
    facts.line(f"the case against: {facts.stranger(run.decision.reasoning.counter_scenario) or 'none'}")
