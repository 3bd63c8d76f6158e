"""What was learned, as it is shown: evaluations, calibration of agents, the veto ledger."""

from collections.abc import Iterable
from typing import Final, Literal

from zuno.kernel.view import ForeignText, IsoTime, View
from zuno.present.document import (
    Document,
    Part,
    Picture,
    Row,
    Section,
    Table,
    Tone,
    Value,
    document,
    facts,
    lines,
    row,
    section,
    table,
)
from zuno.present.values import count, foreign, id_, multiple, number, quiet
from zuno.trading.model.memory import RuleShare
from zuno.trading.rules.calibration import EVERY_REGIME, Reliability
from zuno.trading.rules.trade_outcomes import VetoTotals
from zuno.trading.service.memory_view import LearnedView
from zuno.trading.service.origin_view import OriginView

_TONES: Final = {"SUCCESS": Tone.GOOD, "FAILURE": Tone.BAD}


class LearningView(OriginView):
    account: str
    mode: Literal["paper", "demo", "live"]
    as_of: str
    said: ForeignText
    notes: tuple[ForeignText, ...] = ()

    def write(self, title: str, *parts: Part, pictures: Iterable[Picture] = ()) -> Document:
        label = f"SYNTHETIC {self.mode.upper()}" if self.synthetic else self.mode.upper()
        return document(
            Value(f"{label} · {title}", Tone.STRONG if self.mode == "paper" else Tone.BAD),
            lines(foreign(self.said)),
            *parts,
            context=foreign(f"{self.account}, as of {self.as_of} · {self.market}"),
            notes=map(foreign, self.notes),
            pictures=pictures,
            as_of=self.as_of,
        )


class LearnedTradeView(LearnedView):
    """A closed trade with its post-mortem."""

    trade: str
    first_touch: str | None
    r: float | None
    """Net of fees and funding."""
    source: Literal["model", "rules"]
    why_rules: ForeignText
    """Why rules wrote it where a model was to."""

    def write_section(self) -> Section:
        written = self.source if not self.why_rules else f"{self.source}: {self.why_rules}"
        return section(
            f"{self.symbol} {self.side}, closed {self.closed}",
            facts(
                ("verdict", Value(self.verdict, _TONES.get(self.verdict, Tone.PLAIN))),
                ("result", multiple(self.r)),
                ("outcome", foreign(self.outcome)),
                ("constraint", foreign(self.constraint)),
                ("written by", foreign(written, Tone.QUIET)),
                ("id", id_(self.id)),
            ),
        )


class VetoScoreView(View):
    """A decision that was vetoed or cut, and how its trade would have come out."""

    run: str
    symbol: str
    side: str
    regime: str
    decided: IsoTime
    resolved: IsoTime
    exit: str
    r: float
    pct: float
    rules: tuple[RuleShare, ...]
    wanted_usd: float | None
    left_usd: float | None


class NewLessonView(View):
    id: str
    cases: int
    text: ForeignText


class EvaluationView(LearningView):
    post_mortems: tuple[LearnedTradeView, ...]
    vetoes: tuple[VetoScoreView, ...]
    lessons: tuple[NewLessonView, ...]
    """That enough cases agree on since."""
    waiting: int
    """Decisions whose trade would not be over yet."""

    def to_document(self) -> Document:
        lessons = (foreign(f"lesson {lesson.id}, from {lesson.cases} trades: {lesson.text}") for lesson in self.lessons)
        vetoes = section("Vetoes and cuts", _write_scores(self.vetoes)) if self.vetoes else None
        learned = (learned.write_section() for learned in self.post_mortems)
        return self.write("Evaluation", *learned, section("", lines(*lessons)), vetoes)


class JudgeRecordView(View):
    """How far a judge's claims are believed, and what regime families would say by themselves."""

    judge: str
    family: str
    """`all`: what decides. Any other is for looking at."""
    n: int
    beta: float | None
    """Slope of what trades came to on the edge that was claimed; 1: as claimed."""
    error: float | None
    weight: float | None
    """λ: the share of a claimed edge that counts; None of a family, which decides nothing."""

    def write_row(self) -> Row:
        figures = (number(self.beta, signed=True), number(self.error), number(self.weight, 3))
        tone = Tone.PLAIN if self.family == EVERY_REGIME else Tone.QUIET
        return row(self.judge, self.family, count(self.n), *figures, tone=tone)


class TiltView(View):
    """What the debate said of a market on the last day that was scored."""

    market: str
    tilt: float
    """τ, −1 to +1."""
    says: str
    """keep, less, more or out."""
    residual: float | None
    """τ̃: what was said beyond the core's trend."""
    multiplier: float
    """Of the core's weight on the day that follows."""


class TiltsView(View):
    """What tilts of the core were worth on the day after theirs, all markets together."""

    beta: float | None
    """Standard deviations of a day that a full tilt earned; null: nothing was said that the core did not hold."""
    error: float | None
    weight: float
    """λ_τ: how much of a tilt counts."""
    days: int
    day: IsoTime
    markets: tuple[TiltView, ...]

    def write_section(self) -> Section:
        rows = (
            (
                tilt.market,
                tilt.says,
                number(tilt.tilt, signed=True),
                number(tilt.residual, signed=True),
                number(tilt.multiplier),
            )
            for tilt in self.markets
        )
        record = (number(self.beta, 4, signed=True), number(self.error, 4), number(self.weight, 3), count(self.days))
        return section(
            f"Tilt of the core, last of {self.day}",
            table(("β, σ of the next day", "error", "λ_τ", "days"), [record]),
            table(("market", "says", "τ", "beyond the core", "core's weight times"), rows),
        )


class TradeCalibrationView(LearningView):
    outcomes: int
    records: tuple[JudgeRecordView, ...] = ()
    agents: tuple[Reliability, ...]
    tilts: TiltsView | None = None
    """Null: no day was scored yet."""
    file: str | None = None

    def to_document(self) -> Document:
        rows = (
            row(
                agent.role,
                count(agent.n),
                number(agent.brier, 3),
                number(agent.skill, signed=True),
                number(agent.ece),
                agent.source,
                agent.regime,
                tone=Tone.PLAIN if agent.regime == "all" else Tone.QUIET,
            )
            for agent in self.agents
        )
        bins = (
            (
                f"{agent.role} ({agent.source})",
                ", ".join(f"{part.claimed:.2f} → {part.came:.2f} ({part.n})" for part in agent.bins),
            )
            for agent in self.agents
            if agent.regime == "all"
        )
        columns = ("agent", "n", "Brier", "skill", "ECE", "spoke", "regime")
        records = table(("judge", "family", "n", "slope", "±", "λ"), [record.write_row() for record in self.records])
        return self.write(
            "Calibration",
            table(columns, rows, spare=("ECE", "spoke")) if self.agents else None,
            section("Claimed → came (n), over all regimes", facts(*bins)) if self.agents else None,
            section("Record by judge: λ decides, families do not", records) if self.records else None,
            None if self.tilts is None else self.tilts.write_section(),
            pictures=() if self.file is None else (Picture(self.file),),
        )


class VetoesView(LearningView):
    outcomes: int
    rules: tuple[VetoTotals, ...]
    scores: tuple[VetoScoreView, ...]
    """The newest."""

    def to_document(self) -> Document:
        columns = ("rule", "of", "n", "vetoed", "cut", "saved", "cost", "R in all", "$ in all", "R each", "±", "% each")
        rows = (
            row(
                rule.rule,
                rule.owner,
                *map(count, (rule.n, rule.vetoes, rule.cuts, rule.saved_trades, rule.cost_trades)),
                _judge_number(rule.total_r),
                quiet("–") if rule.total_usd is None else _judge_number(rule.total_usd),
                _judge_number(rule.mean_r),
                number(rule.error_r),
                _judge_number(rule.mean_pct),
            )
            for rule in self.rules
        )
        spare = ("±", "% each", "vetoed", "cut", "of", "R each", "cost", "saved")
        key = quiet("above zero: losses that were not made; below zero: gains that were not")
        return self.write(
            "Vetoes",
            table(columns, rows, spare=spare) if self.rules else None,
            lines(key) if self.rules else None,
            section("The newest", _write_scores(self.scores)) if self.scores else None,
        )


def _write_scores(scores: tuple[VetoScoreView, ...]) -> Table:
    columns = ("trade", "R", "taken away by", "$ wanted", "$ left", "%", "decided", "ended by", "run")
    rows = (
        (
            f"{score.side} {score.symbol}",
            number(score.r, signed=True),
            ", ".join(map(RuleShare.describe, score.rules)),
            number(score.wanted_usd, 0),
            number(score.left_usd, 0),
            number(score.pct, signed=True),
            score.decided,
            score.exit,
            id_(score.run),
        )
        for score in scores
    )
    return table(columns, rows, spare=("%", "decided", "ended by", "run", "$ left", "$ wanted"))


def _judge_number(value: float) -> Value:
    return number(value, signed=True).with_tone(Tone.GOOD if value > 0 else Tone.BAD if value < 0 else Tone.PLAIN)
