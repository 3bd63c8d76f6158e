"""What was learned, in words by a model or by rules: the post-mortem of a closed trade (SETUP is measured; OUTCOME and
FUTURE CONSTRAINT are put into words), a lesson, and what later outcomes did to it. Figures and verdicts are code's."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Annotated, Final, Literal

from pydantic import Field

from zuno.kernel.errors import Broken
from zuno.llm.ask import ModelContext
from zuno.llm.prompts import strip_fences
from zuno.llm.question import Opinion, SourcedAnswer
from zuno.provenance.facts import Unit
from zuno.provenance.slots import cited_ids, render
from zuno.trading.agents import prompt_facts
from zuno.trading.agents.ask import WHY_CHARS, ask_agent, keep_fields
from zuno.trading.agents.prompt_budget import Line, Section
from zuno.trading.model.cycle import LONG_TEXT, Regime
from zuno.trading.model.known import derive
from zuno.trading.model.memory import Lesson, LessonReview, LessonStanding, PostMortem, RealisedPath, Verdict
from zuno.trading.model.trade_events import ExitReason, TradeSummary
from zuno.trading.rules.lessons import describe_review, mean_r
from zuno.trading.rules.trade_outcomes import percent_move

ROLE: Final = "post_mortem"
NEVER_AHEAD: Final = 0.25
NEARLY_STOPPED: Final = 0.75
"""Shares of the distance to the stop."""
_CLOSED_BY: Final[Mapping[ExitReason, str]] = {
    ExitReason.STOP: "its stop", ExitReason.TARGET: "its target", ExitReason.HOLD_OVER: "time",
    ExitReason.DECISION: "a later decision", ExitReason.OWNER: "its owner", ExitReason.KILL_SWITCH: "the kill switch",
    ExitReason.LIQUIDATION: "liquidation", ExitReason.UNDONE: "the desk, as it could not be protected",
    ExitReason.MANUAL: "hand",
}  # fmt: skip
_PRAISE: Final = r"success\w*|profitable|a win(?:ner|ning trade)?|won|paid off|worked out"
_BLAME: Final = r"fail\w*|unprofitable|los(?:s|ing trade|t money)|lost|did not work"
_CONTRADICTIONS: Final[Mapping[Verdict, re.Pattern[str]]] = {
    Verdict.SUCCESS: re.compile(rf"\b(?:{_BLAME})\b", re.IGNORECASE),
    Verdict.FAILURE: re.compile(rf"\b(?:{_PRAISE})\b", re.IGNORECASE),
    Verdict.FLAT: re.compile(r"\b(?:success\w*|fail\w*)\b", re.IGNORECASE),
}

_TOUCHED_BEFORE: Final = {ExitReason.STOP: ("stop", "target"), ExitReason.TARGET: ("target",)}
"""What may be touched first of a trade that a level closed: of one that runs on behind its target the target."""
_DENIALS: Final = {
    reason: re.compile(
        rf"\b(?:neither|no) (?:level|stop)\b|\b{reason.value} (?:was|is) (?:not|never) (?:touched|reached|hit|met)\b",
        re.IGNORECASE,
    )
    for reason in _TOUCHED_BEFORE
}
"""Words that deny the level which closed a trade."""

_Words = Annotated[str, Field(min_length=1, max_length=2 * LONG_TEXT)]


class PostMortemOpinion(Opinion):
    verdict: Verdict
    """Has to be the one that stands."""
    outcome: _Words
    constraint: _Words


@dataclass(frozen=True, slots=True)
class ClosedCase:
    summary: TradeSummary
    path: RealisedPath
    verdict: Verdict
    setup: str
    regime: Regime | None

    def __post_init__(self) -> None:
        """`Broken` where the level that closed the trade was not touched."""
        reason, touched = self.summary.reason, self.path.first_touch
        if touched not in _TOUCHED_BEFORE.get(reason, (touched,)):
            raise Broken(f"{self.summary.trade} was closed by its {reason}, and the first level touched is {touched}.")

    @property
    def stop_pct(self) -> float | None:
        """From entry to the first stop, above zero."""
        stop, entry = self.summary.stop, self.summary.entry
        if stop is None or stop == entry:
            return None
        return abs(percent_move(float(stop), float(entry), self.summary.side.sign))


@dataclass(frozen=True, slots=True)
class WrittenPostMortem:
    outcome: str
    constraint: str
    source: Literal["model", "rules"]
    why_rules: str


async def write_post_mortem(case: ClosedCase, model_context: ModelContext) -> WrittenPostMortem:
    sections = (_trade_section(case), _setup_section("trade.setup", case.setup))
    spoken = await ask_agent(
        model_context,
        role=ROLE,
        sections=lambda: sections,
        output=PostMortemOpinion,
        fallback=lambda: answer_by_rules(case),
        prose=lambda opinion, keep: keep_fields(opinion, None, keep, outcome=LONG_TEXT, constraint=LONG_TEXT),
        judge=lambda opinion: (
            "" if opinion.verdict is case.verdict else f"the verdict is {case.verdict}, by its outcome"
        ),
    )
    lost = "" if spoken.model is None else _explain_loss(spoken.value, case)
    written = answer_by_rules(case) if lost else spoken.value
    why = "; ".join(filter(None, (spoken.why, lost)))[:WHY_CHARS]
    facts = prompt_facts.build_sheet(sections)
    return WrittenPostMortem(
        outcome=render(written.outcome, facts)[:LONG_TEXT],
        constraint=render(written.constraint, facts)[:LONG_TEXT],
        source="rules" if lost or spoken.model is None else "model",
        why_rules=why if lost or spoken.source == "fallback" else "",
    )


def answer_by_rules(case: ClosedCase) -> PostMortemOpinion:
    return PostMortemOpinion(
        verdict=case.verdict, outcome=" ".join(_describe_outcome(case)), constraint=_find_constraint(case)
    )


def _explain_loss(opinion: PostMortemOpinion, case: ClosedCase) -> str:
    """Why a model's words cannot be used; empty where they can."""
    if not opinion.outcome or not opinion.constraint:
        return "no sentence of it is left"
    if not any(cited_ids([opinion.outcome])):
        return "outcome cites no figure"
    contradiction = _CONTRADICTIONS[case.verdict].search(opinion.outcome)
    if contradiction:
        return f"outcome says {contradiction[0]!r}, and the verdict is {case.verdict}"
    reason = case.summary.reason
    if reason in _DENIALS and (denial := _DENIALS[reason].search(opinion.outcome)):
        return f"outcome says {denial[0]!r}, and it was closed by its {reason}"
    return ""


# -- what is told


@prompt_facts.section("trade", 100)
def _trade_section(case: ClosedCase) -> Iterator[Line]:
    summary, path = case.summary, case.path
    regime = "regime unknown" if case.regime is None else f"regime {case.regime}"
    yield Line(f"{summary.side} {summary.symbol}, {regime}, verdict {case.verdict}")
    yield Line(f"closed by {_CLOSED_BY[summary.reason]}; first level touched: {path.first_touch or 'none'}")
    yield prompt_facts.fact("trade.mfe", path.mfe_pct, Unit.PERCENT, note="the most it was ahead")
    yield prompt_facts.fact("trade.mae", path.mae_pct, Unit.PERCENT, note="the most it was behind")
    yield prompt_facts.fact("trade.exit", path.exit_pct, Unit.PERCENT, signed=True, note="from entry to exit")
    yield prompt_facts.fact("trade.hold", path.hold_hours, Unit.HOURS, 1)
    if path.r is not None:
        yield prompt_facts.fact("trade.r", path.r, Unit.NUMBER, signed=True, note="R after fees and funding")
    if case.stop_pct is not None:
        yield prompt_facts.fact("trade.stop", case.stop_pct, Unit.PERCENT, note="from entry to its first stop")
    costs = float(100 * (summary.fees - summary.funding) / (summary.quantity * summary.entry))
    yield prompt_facts.fact("trade.costs", costs, Unit.PERCENT, 3, note="fees and funding, of the notional")


def _setup_section(id_: str, setup: str) -> Section:
    return Section("setup", 90, (prompt_facts.remark(id_, setup),))


# -- the rules


def _describe_outcome(case: ClosedCase) -> Iterator[str]:
    path = case.path
    touched = {"stop": "The stop was touched first", "target": "The target was touched first"}
    yield f"{touched.get(path.first_touch or '', 'Neither level was touched')}:"
    yield "it was ahead by {trade.mfe} at most and behind by {trade.mae} at most, and was closed by"
    yield f"{_CLOSED_BY[case.summary.reason]} after {{trade.hold}} at {{trade.exit}} from its entry"
    yield "before costs." if path.r is None else "before costs: {trade.r} R after fees and funding."


def _find_constraint(case: ClosedCase) -> str:
    """What would have helped this trade; a single case supports more care and never more size."""
    summary, path = case.summary, case.path
    trade = f"A {summary.side} in this setup"
    if case.verdict is Verdict.SUCCESS:
        if case.stop_pct is not None and path.mae_pct >= NEARLY_STOPPED * case.stop_pct:
            return f"{trade} was near its first stop, behind by {{trade.mae}}: no larger size than this is supported."
        came = "reached its target" if summary.reason is ExitReason.TARGET else "was ahead when it ended"
        return f"{trade} {came}: the same levels are supported, a larger size is not."
    if case.verdict is Verdict.FLAT:
        return f"{trade} needs more room to its target than fees and funding take."
    if summary.reason is ExitReason.LIQUIDATION:
        return f"{trade} needs less leverage: it was liquidated."
    if path.exit_pct > 0:
        return f"{trade} needs a farther target: costs of {{trade.costs}} took more than the price gave."
    if case.stop_pct is not None and path.mfe_pct >= case.stop_pct:
        return f"{trade} needs a nearer target or a stop that follows: it was ahead by {{trade.mfe}} and came back."
    if summary.reason is ExitReason.HOLD_OVER:
        return f"{trade} needs a shorter hold or another confirmation: the time ran out behind its entry."
    if case.stop_pct is None or path.mfe_pct < NEVER_AHEAD * case.stop_pct:
        return f"{trade} needs another confirmation: the price went against it from the start."
    return f"{trade} needs less conviction: it was ahead by no more than {{trade.mfe}} before it turned."


LESSON_ROLE: Final = "self_correction"
REVIEWER: Final = "feedback"
MOST_QUOTED: Final = 8
"""Cases whose own constraints are told."""


class ReviewOpinion(Opinion):
    text: _Words


class LessonOpinion(Opinion):
    verdict: Verdict
    """Has to be the one the cases agree on."""
    text: _Words


async def word_lesson(lesson: Lesson, cases: Sequence[PostMortem], model_context: ModelContext) -> Lesson:
    """The lesson in a model's words; in the rules' where none can be used. `cases`: those it was drawn from."""
    # The post-mortems of the newest cases ask for something in the desk's own words, in which figures are printed.
    newest = [case for case in cases if case.id in lesson.cases][-MOST_QUOTED:]
    quoted = Section("constraints of its cases", 50, tuple(Line(strip_fences(case.constraint)) for case in newest))
    sections = (_lesson_section(lesson, cases), _setup_section("lesson.setup", lesson.condition), quoted)
    spoken = await ask_agent(
        model_context,
        role=LESSON_ROLE,
        sections=lambda: sections,
        output=LessonOpinion,
        fallback=lambda: LessonOpinion(verdict=lesson.verdict, text=lesson.text),
        prose=lambda opinion, keep: keep_fields(opinion, None, keep, text=LONG_TEXT),
        judge=lambda opinion: "" if opinion.verdict is lesson.verdict else f"the cases came out {lesson.verdict}",
    )
    text, why = _take_words(spoken, sections, "lesson.agree")
    return lesson.model_copy(update={"text": text, "source": "model"} if text else {"why_rules": why})


async def word_review(
    standing: LessonStanding, cases: Sequence[PostMortem], model_context: ModelContext
) -> LessonReview:
    """What became of a lesson that was contradicted. `cases`: the later ones, whichever way they came out."""
    lesson, rules_text = standing.lesson, describe_review(standing)
    sections = (_outcome_section(standing, cases), _setup_section("lesson.setup", lesson.condition))
    spoken = await ask_agent(
        model_context,
        role=REVIEWER,
        sections=lambda: sections,
        output=ReviewOpinion,
        fallback=lambda: ReviewOpinion(text=rules_text),
        prose=lambda opinion, keep: keep_fields(opinion, None, keep, text=LONG_TEXT),
    )
    text, why = _take_words(spoken, sections, "later.against")
    return derive(
        LessonReview,
        standing,
        id=lesson.id,
        at=standing.since,
        text=text or rules_text[:LONG_TEXT],
        source="model" if text else "rules",
        why_rules=why,
    )


def _take_words(
    spoken: SourcedAnswer[LessonOpinion] | SourcedAnswer[ReviewOpinion], sections: Sequence[Section], needed: str
) -> tuple[str, str]:
    """A model's words with their figures printed, which cite what they have to; else none, and why."""
    text = spoken.value.text
    if spoken.model is not None and needed in cited_ids([text]):
        return render(text, prompt_facts.build_sheet(sections))[:LONG_TEXT], ""
    why = spoken.why or f"text does not cite {{{needed}}}"
    return "", "" if spoken.source == "deterministic" else why[:WHY_CHARS]


# -- what is told


@prompt_facts.section("lesson", 100)
def _lesson_section(lesson: Lesson, cases: Sequence[PostMortem]) -> Iterator[Line]:
    agree, count = [case for case in cases if case.id in lesson.cases], len(lesson.cases)
    yield Line(f"{lesson.side}, verdict {lesson.verdict}")
    yield prompt_facts.fact("lesson.agree", float(count), Unit.NUMBER, 0, note="cases that came out so")
    yield prompt_facts.fact("lesson.cases", float(count + len(lesson.against)), Unit.NUMBER, 0, note="of this setup")
    yield from _r_lines("lesson", agree)
    for name, note in (("mfe", "the most they were ahead, on average"), ("mae", "behind, on average")):
        if agree:
            mean = round(fsum(getattr(case.path, f"{name}_pct") for case in agree) / len(agree), 4)
            yield prompt_facts.fact(f"lesson.{name}", mean, Unit.PERCENT, note=note)


@prompt_facts.section("later outcomes", 100)
def _outcome_section(standing: LessonStanding, cases: Sequence[PostMortem]) -> Iterator[Line]:
    lesson = standing.lesson
    for_it, against = float(len(standing.confirmed)), float(len(standing.contradicted))
    yield Line(f"the lesson: {lesson.side}, verdict {lesson.verdict}")
    yield prompt_facts.fact("later.agree", for_it, Unit.NUMBER, 0, note="later cases that came out so too")
    yield prompt_facts.fact("later.against", against, Unit.NUMBER, 0, note="that did not")
    yield from _r_lines("later", cases)


def _r_lines(subject: str, cases: Sequence[PostMortem]) -> Iterator[Line]:
    if (mean := mean_r(cases)) is not None:
        note = "R after costs, on average"
        yield prompt_facts.fact(f"{subject}.mean_r", mean, Unit.NUMBER, signed=True, note=note)
