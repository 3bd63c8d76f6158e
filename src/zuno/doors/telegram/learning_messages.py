"""What the trading desk learned, in a chat: memories, lessons, evaluations, calibration, the veto ledger."""

from __future__ import annotations

from zuno.doors.telegram.layout import bold, code, italic, join, note, paragraphs, table, text
from zuno.doors.telegram.reply import Reply
from zuno.trading.model.market import Symbol
from zuno.trading.service.learning_view import (
    EvaluationView,
    LearnedTradeView,
    LearningView,
    TradeCalibrationView,
    VetoesView,
    VetoScoreView,
)
from zuno.trading.service.report import format_signed


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
