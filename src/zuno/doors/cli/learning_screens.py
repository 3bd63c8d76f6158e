"""What was learned, for eyes: evaluations, calibration, the veto ledger."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from zuno.doors.cli.layout import BAD, GOOD, QUIET, Rows, grid, heading, notes_block
from zuno.trading.service.learning_view import (
    AgentCalibrationView,
    EvaluationView,
    LearnedTradeView,
    LearningView,
    TradeCalibrationView,
    VetoesView,
    VetoScoreView,
)
from zuno.trading.service.report import format_signed

_STYLES = {"SUCCESS": GOOD, "FAILURE": BAD}


def show_evaluation(view: EvaluationView) -> RenderableType:
    parts: list[RenderableType] = [Text(view.said)]
    for learned in view.post_mortems:
        parts += [heading(f"{learned.symbol} {learned.side}, closed {learned.closed}"), _post_mortem(learned)]
    parts += [Text(f"lesson {lesson.id}, from {lesson.cases} trades: {lesson.text}") for lesson in view.lessons]
    if view.vetoes:
        parts += [heading("Vetoes and cuts"), _scores(view.vetoes)]
    return _screen(view, "Evaluation", *parts)


def show_calibration(view: TradeCalibrationView) -> RenderableType:
    parts: list[RenderableType] = [Text(view.said)] if view.said else []
    if view.agents:
        table = Rows("agent", "spoke", "regime", "n", "Brier", "skill", "ECE")
        for agent in view.agents:
            table.add_row(
                agent.role,
                agent.source,
                agent.regime,
                str(agent.n),
                f"{agent.brier:.3f}",
                format_signed(agent.skill),
                f"{agent.ece:.2f}",
                style="" if agent.regime == "all" else QUIET,
            )
        bins = grid()
        for agent in view.agents:
            if agent.regime == "all":
                bins.add_row(f"{agent.role} ({agent.source})", _bins(agent))
        parts += [table, heading("Claimed → came (n), over all regimes"), bins]
    if view.file is not None:
        facts = grid()
        facts.add_row("picture", view.file)
        parts.append(facts)
    return _screen(view, "Calibration", *parts)


def show_vetoes(view: VetoesView) -> RenderableType:
    parts: list[RenderableType] = [Text(view.said)] if view.said else []
    if view.rules:
        table = Rows("rule", "of", "n", "vetoed", "cut", "saved", "cost", "R in all", "R each", "% each")
        for row in view.rules:
            spread = "" if row.error_r is None else f" ± {row.error_r:.2f}"
            table.add_row(
                row.rule,
                row.owner,
                str(row.n),
                str(row.vetoes),
                str(row.cuts),
                str(row.saved_trades),
                str(row.cost_trades),
                _color_signed(row.total_r),
                Text.assemble(_color_signed(row.mean_r), spread),
                _color_signed(row.mean_pct),
            )
        parts += [table, Text("above zero: losses that were not made; below zero: gains that were not", style=QUIET)]
    if view.scores:
        parts += [heading("The newest"), _scores(view.scores)]
    return _screen(view, "Vetoes", *parts)


# -- parts


def _post_mortem(learned: LearnedTradeView) -> RenderableType:
    facts = grid()
    r = "" if learned.r is None else f", {format_signed(learned.r)} R"
    facts.add_row("verdict", Text(f"{learned.verdict}{r}", style=_STYLES.get(learned.verdict, "")))
    facts.add_row("outcome", Text(learned.outcome))
    facts.add_row("constraint", Text(learned.constraint))
    written = learned.source if not learned.why_rules else f"{learned.source}: {learned.why_rules}"
    facts.add_row("written by", Text(written, style=QUIET))
    facts.add_row("id", Text(learned.id, style=QUIET))
    return facts


def _scores(scores: tuple[VetoScoreView, ...]) -> RenderableType:
    table = Rows("run", "trade", "decided", "ended by", "R", "%", "taken away by", spare=("%", "decided", "ended by"))
    for score in scores:
        rules = ", ".join(
            part.rule if part.share == 1 else f"{part.rule} {100 * part.share:.0f} %" for part in score.rules
        )
        trade = f"{score.side} {score.symbol}"
        table.add_row(
            score.run, trade, score.decided, score.exit, format_signed(score.r), format_signed(score.pct), rules
        )
    return table


def _bins(agent: AgentCalibrationView) -> str:
    return "  ".join(f"{each.claimed:.2f} → {each.came:.2f} ({each.n})" for each in agent.bins)


def _color_signed(value: float) -> Text:
    return Text(format_signed(value), style=GOOD if value > 0 else BAD if value < 0 else "")


def _screen(view: LearningView, title: str, *parts: RenderableType) -> RenderableType:
    label = Text(view.mode.upper(), style="bold" if view.mode == "paper" else f"bold {BAD}")
    line = Text.assemble(label, (f" · {title} of {view.account}, as of {view.as_of} · {view.market}", "bold"))
    return Group(line, *parts, *notes_block(view.notes))
