"""What the trading desk learned, in a chat: memories, lessons, evaluations, calibration, the veto ledger."""

from __future__ import annotations

from typing import Final

from zuno.doors.telegram.layout import bold, code, command, fact, italic, join, note, paragraphs, quote, text
from zuno.doors.telegram.reply import Button, Reply
from zuno.trading.service.memory_view import (
    ForgottenView,
    LessonsView,
    MemoriesView,
    MemoryView,
    PostMortemView,
    SearchView,
)
from zuno.trading.service.report import format_signed

MOST_MEMORIES: Final = 8


def show_memories(view: MemoriesView) -> Reply:
    if not view.memories:
        return Reply(f"No trade was learned from yet; {command('/evaluate')} learns from every trade that has closed.")
    shown = view.memories[:MOST_MEMORIES]
    more = italic(f"{len(shown)} of {len(view.memories)}") if len(shown) < len(view.memories) else ""
    return Reply(
        paragraphs(bold("Memory, newest first"), *map(_memory, shown), more), (Button("Lessons", "/memory lessons"),)
    )


def show_search(view: SearchView) -> Reply:
    head = bold(f"Memory: {view.query}")
    told = note(view.note) if view.note else ""
    if not view.memories:
        return Reply(paragraphs(head, "Nothing like it is remembered.", told))
    return Reply(paragraphs(head, *map(_memory, view.memories), join(italic(f"from {view.source}"), told)))


def show_post_mortem(view: PostMortemView) -> Reply:
    path = view.path
    label = "SYNTHETIC" if view.market.startswith("SYNTHETIC") else ""
    touched = "neither stop nor target" if path.first_touch is None else path.first_touch
    return Reply(
        paragraphs(
            join(bold(f"{label} {view.side} {view.symbol}: {view.verdict}".strip()), italic(view.account)),
            join(
                fact("OUTCOME", view.outcome),
                fact("FUTURE CONSTRAINT", view.constraint),
                bold("SETUP"),
                quote(text(view.setup)),
            ),
            join(
                fact("result", f"{format_signed(path.r)} R, {format_signed(path.exit_pct)} % before costs"),
                fact("net PnL", f"{view.net_pnl}, fees {view.fees}, funding {view.funding}"),
                fact("first touch", f"{touched}; closed by {view.exit_reason}"),
                fact("MFE, MAE", f"{path.mfe_pct:.2f} % ahead, {path.mae_pct:.2f} % behind, of {path.bars} bars"),
                fact("held", f"{path.hold_hours:.1f} h, {view.opened} to {view.closed} at {view.exchange}"),
                fact("not recorded", f"{path.uncovered_hours:.1f} h of it") if path.uncovered_hours else "",
                fact("regime", f"{view.regime or 'not known'}, {view.mode or 'no mode'}"),
                fact("written by", f"{view.source} ({view.why_rules})" if view.why_rules else view.source),
                f"{bold('memory')}: {code(view.id)}",
                "" if view.run_id is None else f"{bold('run')}: {code(view.run_id)}",
            ),
        ),
        () if view.run_id is None else (Button("Why it was opened", f"/why {view.run_id}"),),
    )


def show_lessons(view: LessonsView) -> Reply:
    if not view.lessons:
        return Reply("No lesson yet: one needs five closed trades of alike setups that came out the same way.")
    lessons = [
        join(
            bold(f"{lesson.side}, {lesson.state} since {lesson.since}"),
            text(lesson.text),
            fact(
                "cases",
                f"{len(lesson.cases)}; since then {len(lesson.confirmed)} confirmed it, "
                f"{len(lesson.contradicted)} did not",
            ),
            text(lesson.review),
            code(lesson.id),
        )
        for lesson in view.lessons
    ]
    return Reply(paragraphs(bold("Lessons"), *lessons))


def show_forgotten(view: ForgottenView) -> Reply:
    return Reply(f"{code(view.id)} is forgotten: nothing recalls it and no lesson is drawn from it any more.")


# -- parts


def _memory(memory: MemoryView) -> str:
    alike = "" if memory.similarity is None else f", similarity {memory.similarity:.2f}"
    return join(
        bold(f"{memory.verdict}: {memory.side} {memory.symbol}, {format_signed(memory.r)} R"),
        text(memory.constraint),
        italic(f"closed {memory.closed}{alike}"),
        code(memory.id),
    )
