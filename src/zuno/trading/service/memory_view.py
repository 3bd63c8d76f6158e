"""Memories and lessons in the names of the public JSON. Their sentences may be a model's: one printable line each."""

from __future__ import annotations

from collections.abc import Iterator

from zuno.kernel.clock import iso
from zuno.kernel.view import ForeignText, View, sanitise
from zuno.provenance.facts import FactSheet
from zuno.provenance.slots import cited_ids, render
from zuno.trading.agents.learned import describe_cut, find_cut, lesson_id, memory_id, read_feedback, read_memories
from zuno.trading.model.bundle import Bundle
from zuno.trading.model.cycle import Decision
from zuno.trading.model.memory_slots import LessonNote, MemoryNote


class MemoryView(View):
    """A post-mortem that was recalled."""

    id: str
    symbol: str
    closed: str
    setup: str
    outcome: ForeignText
    constraint: ForeignText
    r: float | None
    similarity: float | None
    """Null: found by its age alone."""
    side: str
    verdict: str


class LessonView(View):
    id: str
    side: str
    condition: str
    text: ForeignText
    verdict: str
    cases: tuple[str, ...]
    """The post-mortems it was drawn from."""
    written: str
    expires: str


class ReadMemoryView(View):
    """What the Judge of a run read of the desk's memory, and what came of it."""

    setup: str
    source: str
    note: ForeignText
    memories: tuple[MemoryView, ...]
    lessons: tuple[LessonView, ...]
    cited: tuple[str, ...]
    """Ids of those that its words cite."""
    changed: ForeignText
    """What it changed, as far as code can say; empty: nothing."""


def memory_view(note: MemoryNote) -> MemoryView:
    return MemoryView(
        id=note.id,
        symbol=note.symbol,
        closed=iso(note.closed),
        setup=note.setup,
        outcome=note.outcome,
        constraint=note.constraint,
        r=note.r,
        similarity=note.similarity,
        side=note.side,
        verdict=note.verdict,
    )


def lesson_view(note: LessonNote) -> LessonView:
    return LessonView(
        id=note.id,
        side=note.side,
        condition=note.condition,
        text=note.text,
        verdict=note.verdict,
        cases=note.cases,
        written=iso(note.written),
        expires=iso(note.expires),
    )


def read_memory_view(bundle: Bundle, decision: Decision, facts: FactSheet) -> ReadMemoryView | None:
    """None: the desk was not asked what it remembers."""
    recalled, feedback = read_memories(bundle), read_feedback(bundle)
    if recalled is None:
        return None
    names = {memory_id(place): note.id for place, note in enumerate(recalled.memories, 1)}
    names |= {lesson_id(place): note.id for place, note in enumerate(feedback.lessons, 1)}
    used = {id_.partition(".")[0] for id_ in cited_ids(_texts(decision))}
    return ReadMemoryView(
        setup=recalled.setup,
        source=recalled.source,
        note="; ".join(filter(None, (recalled.note, feedback.note))),
        memories=tuple(map(memory_view, recalled.memories)),
        lessons=tuple(map(lesson_view, feedback.lessons)),
        cited=tuple(id_ for name, id_ in names.items() if name in used),
        changed=sanitise(render(_describe_change(bundle, decision), facts)),
    )


def _texts(decision: Decision) -> Iterator[str]:
    yield from decision.reasoning.model_dump().values()
    yield decision.ev_rationale
    yield from decision.key_factors


def _describe_change(bundle: Bundle, decision: Decision) -> str:
    """Of the rules, whose Judge claims less by a rule of its own; a model's words say it themselves."""
    side = decision.decision.side
    if side is None or decision.source in ("model", "repaired"):
        return ""
    cut = find_cut(bundle, side)
    return "" if cut is None else describe_cut(cut)
