"""What the trading desk learned, in a chat: memories, lessons, evaluations, calibration, the veto ledger."""

from __future__ import annotations

from typing import Final

from zuno.doors.telegram.layout import bold, code, command, fact, italic, join, note, paragraphs, quote, table, text
from zuno.doors.telegram.reply import Button, Reply
from zuno.trading.model.market import Symbol
from zuno.trading.service.learning_view import (
    EvaluationView,
    LearnedTradeView,
    LearningView,
    TradeCalibrationView,
    VetoesView,
    VetoScoreView,
)
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


def show_evaluation(view: EvaluationView) -> Reply:
    lessons = [text(f"lesson {lesson.id}, from {lesson.cases} trades: {lesson.text}") for lesson in view.lessons]
    vetoes = join(bold("Vetoes and cuts"), _scores(view.vetoes)) if view.vetoes else ""
    return _message(view, "Evaluation", *map(_learned, view.post_mortems), *lessons, vetoes)


def show_calibration(view: TradeCalibrationView) -> Reply:
    rows = [
        (agent.role, str(agent.n), f"{agent.brier:.3f}", format_signed(agent.skill), f"{agent.ece:.2f}", agent.source)
        for agent in view.agents
        if agent.regime == "all"
    ]
    columns = ("agent", "n", "Brier", "skill", "ECE", "spoke")
    return _message(view, "Calibration", table(columns, rows, spare=("spoke", "ECE", "skill")) if rows else "")


def show_vetoes(view: VetoesView) -> Reply:
    rows = [
        (row.rule, str(row.n), str(row.saved_trades), str(row.cost_trades), format_signed(row.total_r))
        for row in view.rules
    ]
    listed = table(("rule", "n", "saved", "cost", "R"), rows, spare=("cost", "saved")) if rows else ""
    key = italic("R above zero: losses that were not made; below zero: gains that were not") if rows else ""
    newest = join(bold("The newest"), _scores(view.scores)) if view.scores else ""
    return _message(view, "Vetoes", join(listed, key), newest)


# -- parts


def _message(view: LearningView, title: str, *parts: str) -> Reply:
    label = f"SYNTHETIC {view.mode.upper()}" if view.synthetic else view.mode.upper()
    head = join(bold(f"{label} · {title}"), italic(f"{view.account}, as of {view.as_of} · {view.market}"))
    return Reply(paragraphs(head, text(view.said), *parts, join(*map(note, view.notes))))


def _memory(memory: MemoryView) -> str:
    alike = "" if memory.similarity is None else f", similarity {memory.similarity:.2f}"
    return join(
        bold(f"{memory.verdict}: {memory.side} {memory.symbol}, {format_signed(memory.r)} R"),
        text(memory.constraint),
        italic(f"closed {memory.closed}{alike}"),
        code(memory.id),
    )


def _learned(learned: LearnedTradeView) -> str:
    r = "" if learned.r is None else f", {format_signed(learned.r)} R"
    return join(
        bold(f"{learned.verdict}: {learned.side} {learned.symbol}{r}"),
        text(learned.outcome),
        text(learned.constraint),
        italic(f"closed {learned.closed}, written by {learned.source}"),
        code(learned.id),
    )


def _scores(scores: tuple[VetoScoreView, ...]) -> str:
    rows = [
        (
            f"{score.side} {Symbol(score.symbol).base}",
            format_signed(score.r),
            ", ".join(part.rule for part in score.rules),
        )
        for score in scores
    ]
    return table(("trade", "R", "taken away by"), rows, left=("taken away by",))
