"""Self-correction puts a lesson of the rules into words, and feedback what later outcomes did to it; figures, cases and
verdicts are the rules' own."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from typing import Annotated, Final

from pydantic import Field

from zuno.llm.ask import ModelContext
from zuno.llm.prompts import strip_fences
from zuno.llm.question import Opinion, SourcedAnswer
from zuno.provenance.facts import Unit
from zuno.provenance.slots import cited_ids, render
from zuno.trading.agents import prompt_facts
from zuno.trading.agents.ask import WHY_CHARS, AgentQuestion, ask_agent, keep_fields
from zuno.trading.agents.prompt_budget import Line, Section
from zuno.trading.model.cycle import LONG_TEXT
from zuno.trading.model.memory import Lesson, LessonReview, LessonStanding, PostMortem, Verdict
from zuno.trading.rules.lessons import describe_review, mean_r

ROLE: Final = "self_correction"
REVIEWER: Final = "feedback"
MOST_QUOTED: Final = 8
"""Cases whose own constraints are told."""


class LessonOpinion(Opinion):
    verdict: Verdict
    """Has to be the one the cases agree on."""
    text: Annotated[str, Field(min_length=1, max_length=2 * LONG_TEXT)]


class ReviewOpinion(Opinion):
    text: Annotated[str, Field(min_length=1, max_length=2 * LONG_TEXT)]


async def word_lesson(lesson: Lesson, cases: Sequence[PostMortem], model_context: ModelContext) -> Lesson:
    """The lesson in a model's words; in the rules' where none can be used. `cases`: those it was drawn from."""
    sections = (_lesson_section(lesson, cases), _setup_section(lesson), _cases_section(lesson, cases))
    spoken = await ask_agent(
        AgentQuestion(
            role=ROLE,
            sections=lambda: sections,
            output=LessonOpinion,
            fallback=lambda: LessonOpinion(verdict=lesson.verdict, text=lesson.text),
            prose=lambda opinion, keep: keep_fields(opinion, None, keep, text=LONG_TEXT),
            judge=lambda opinion: "" if opinion.verdict is lesson.verdict else f"the cases came out {lesson.verdict}",
        ),
        model_context,
    )
    if not _is_by_model(spoken, "lesson.agree"):
        return lesson.model_copy(update={"why_rules": _why_rules(spoken, "lesson.agree")})
    text = render(spoken.value.text, prompt_facts.build_sheet(sections))
    return lesson.model_copy(update={"text": text[:LONG_TEXT], "source": "model"})


async def word_review(
    standing: LessonStanding, cases: Sequence[PostMortem], model_context: ModelContext
) -> LessonReview:
    """What became of a lesson that was contradicted. `cases`: the later ones, whichever way they came out."""
    lesson, rules_text = standing.lesson, describe_review(standing)
    sections = (_outcome_section(standing, cases), _setup_section(lesson))
    spoken = await ask_agent(
        AgentQuestion(
            role=REVIEWER,
            sections=lambda: sections,
            output=ReviewOpinion,
            fallback=lambda: ReviewOpinion(text=rules_text),
            prose=lambda opinion, keep: keep_fields(opinion, None, keep, text=LONG_TEXT),
        ),
        model_context,
    )
    by_model = _is_by_model(spoken, "later.against")
    text = render(spoken.value.text, prompt_facts.build_sheet(sections)) if by_model else rules_text
    return LessonReview(
        id=lesson.id,
        at=standing.since,
        text=text[:LONG_TEXT],
        confirmed=standing.confirmed,
        contradicted=standing.contradicted,
        source="model" if by_model else "rules",
        why_rules="" if by_model else _why_rules(spoken, "later.against"),
    )


def _is_by_model(spoken: SourcedAnswer[LessonOpinion] | SourcedAnswer[ReviewOpinion], needed: str) -> bool:
    """Whether a model's words are left, and they cite what they have to."""
    return spoken.model is not None and needed in cited_ids([spoken.value.text])


def _why_rules(spoken: SourcedAnswer[LessonOpinion] | SourcedAnswer[ReviewOpinion], needed: str) -> str:
    if spoken.source == "deterministic":
        return ""
    return (spoken.why or f"text does not cite {{{needed}}}")[:WHY_CHARS]


# -- what is told


def _lesson_section(lesson: Lesson, cases: Sequence[PostMortem]) -> Section:
    agree = [case for case in cases if case.id in lesson.cases]
    return Section(
        "lesson",
        100,
        (
            Line(f"{lesson.side}, verdict {lesson.verdict}"),
            prompt_facts.fact("lesson.agree", float(len(lesson.cases)), Unit.NUMBER, 0, note="cases that came out so"),
            prompt_facts.fact(
                "lesson.cases", float(len(lesson.cases) + len(lesson.against)), Unit.NUMBER, 0, note="of this setup"
            ),
            *_r_lines("lesson", agree),
            *(
                prompt_facts.fact(
                    f"lesson.{name}",
                    _mean([getattr(case.path, f"{name}_pct") for case in agree]),
                    Unit.PERCENT,
                    note=note,
                )
                for name, note in (("mfe", "the most they were ahead, on average"), ("mae", "behind, on average"))
                if agree
            ),
        ),
    )


def _outcome_section(standing: LessonStanding, cases: Sequence[PostMortem]) -> Section:
    lesson = standing.lesson
    for_it, against = float(len(standing.confirmed)), float(len(standing.contradicted))
    return Section(
        "later outcomes",
        100,
        (
            Line(f"the lesson: {lesson.side}, verdict {lesson.verdict}"),
            prompt_facts.fact("later.agree", for_it, Unit.NUMBER, 0, note="later cases that came out so too"),
            prompt_facts.fact("later.against", against, Unit.NUMBER, 0, note="that did not"),
            *_r_lines("later", cases),
        ),
    )


def _setup_section(lesson: Lesson) -> Section:
    return Section("setup", 90, (prompt_facts.remark("lesson.setup", lesson.condition),))


def _cases_section(lesson: Lesson, cases: Sequence[PostMortem]) -> Section:
    """What the post-mortems of the newest cases ask for: the desk's own words, in which figures are printed."""
    newest = [case for case in cases if case.id in lesson.cases][-MOST_QUOTED:]
    return Section("constraints of its cases", 50, tuple(Line(strip_fences(case.constraint)) for case in newest))


def _r_lines(subject: str, cases: Sequence[PostMortem]) -> tuple[Line, ...]:
    mean = mean_r(cases)
    if mean is None:
        return ()
    return (prompt_facts.fact(f"{subject}.mean_r", mean, Unit.NUMBER, signed=True, note="R after costs, on average"),)


def _mean(values: Sequence[float]) -> float:
    return round(fsum(values) / len(values), 4)
