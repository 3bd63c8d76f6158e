"""Lessons by rule from post-mortems. A lesson is dated by the last of its cases and judged by those that closed later,
so that cutting the future changes nothing before it."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb, fsum
from typing import Final

from zuno.kernel.units import Millis
from zuno.trading.model.market import DAY_MS, Side
from zuno.trading.model.memory import Lesson, LessonStanding, LessonState, PostMortem, Verdict
from zuno.trading.model.trade_events import ExitReason

MIN_CASES: Final = 5
"""Resolved cases that agree, at least."""
MIN_SHARE: Final = Fraction(4, 5)
"""Of the cases of a setup that came out the same way."""
MAX_P_VALUE: Final = Fraction(1, 20)
"""Of so many equal outcomes by chance: at even odds, or at those of other setups of that side if they are more
one-sided."""
MIN_PHRASES: Final = 3
"""Phrases a setup needs to have a lesson of its own."""
CASE_DAYS: Final = 365
"""Older cases teach nothing new."""
LESSON_DAYS: Final = 90
"""Of the market's clock, until a lesson expires."""
MIN_LATER: Final = 3
"""Later outcomes from which on a lesson can be contradicted: when no more than half of them agree."""
MOST_ADVICE: Final = 3
_PAST: Final = {Verdict.SUCCESS: "succeeded", Verdict.FAILURE: "failed"}


@dataclass(frozen=True, slots=True)
class _Case:
    post_mortem: PostMortem
    phrases: frozenset[str]

    @property
    def closed(self) -> Millis:
        return self.post_mortem.closed


def split_setup(setup: str) -> tuple[str, ...]:
    """The phrases of a setup, in their order."""
    return tuple(phrase for phrase in setup.split("; ") if phrase)


def list_resolved(post_mortems: Iterable[PostMortem], origin: str) -> tuple[PostMortem, ...]:
    """Cases of a market in the order they closed. An entry at two exchanges, or of two accounts at one moment, is one
    case: what closed first counts. Undone entries are none."""
    resolved: list[PostMortem] = []
    seen: set[tuple[str, ...]] = set()
    for post_mortem in sorted(post_mortems, key=lambda each: (each.closed, each.id)):
        summary = post_mortem.summary
        keys = {
            (post_mortem.account, summary.intent),
            (post_mortem.symbol, post_mortem.side, str(post_mortem.mode), str(summary.opened)),
        }
        if post_mortem.origin != origin or summary.reason is ExitReason.UNDONE or keys & seen:
            continue
        seen |= keys
        resolved.append(post_mortem)
    return tuple(resolved)


def derive_lessons(post_mortems: Iterable[PostMortem], origin: str) -> tuple[Lesson, ...]:
    """Every lesson of a market in the order it could be written: what each case shares with the most similar earlier
    ones, if they came out alike. No second lesson of a setup until the first expires or is contradicted."""
    written: list[tuple[int, Lesson]] = []
    earlier: dict[Side, list[_Case]] = {side: [] for side in Side}
    resolved = list_resolved(post_mortems, origin)
    for place, post_mortem in enumerate(resolved):
        case = _Case(post_mortem, _find_phrases(post_mortem.setup))
        known = [each for each in earlier[post_mortem.side] if case.closed - each.closed <= CASE_DAYS * DAY_MS]
        earlier[post_mortem.side] = [*known, case]
        standings = [
            review_lesson(lesson, resolved[at:place], case.closed)
            for at, lesson in written
            if lesson.side is post_mortem.side and fits_setup(lesson, post_mortem.setup)
        ]
        lesson = _draw_new_lesson(case, known, standings)
        if lesson is not None:
            written.append((place, lesson))
    return tuple(lesson for _, lesson in written)


def _draw_new_lesson(case: _Case, known: Sequence[_Case], standings: Sequence[LessonStanding]) -> Lesson | None:
    """A lesson that none of these says already. One that was contradicted gives way to what cases since then say."""
    lesson = _draw_lesson(case, known)
    if lesson is not None and not any(_includes(standing.lesson, lesson) for standing in standings):
        return lesson
    fallen = [standing for standing in standings if standing.state is LessonState.CONTRADICTED]
    for standing in sorted(fallen, key=lambda each: each.since):
        lesson = _draw_lesson(case, [each for each in known if each.closed > standing.since])
        if lesson is None or not _includes(standing.lesson, lesson):
            continue
        covering = [each for each in standings if _includes(each.lesson, lesson)]
        if all(each.state is LessonState.CONTRADICTED and each.since <= standing.since for each in covering):
            return lesson
    return None


def _draw_lesson(case: _Case, known: Sequence[_Case]) -> Lesson | None:
    nearest = sorted(known, key=lambda each: (-_similarity(case, each), each.post_mortem.id))[: MIN_CASES - 1]
    if len(nearest) < MIN_CASES - 1:
        return None
    shared = case.phrases.intersection(*(each.phrases for each in nearest))
    if len(shared) < MIN_PHRASES:
        return None
    alike = [each for each in (*known, case) if shared <= each.phrases]
    rest = [each for each in known if not shared <= each.phrases]
    for verdict in (Verdict.FAILURE, Verdict.SUCCESS):
        agree = _with_verdict(alike, verdict)
        if len(agree) < MIN_CASES or Fraction(len(agree), len(alike)) < MIN_SHARE:
            continue
        usual = max(Fraction(1, 2), Fraction(len(_with_verdict(rest, verdict)) + 1, len(rest) + 2))
        if binomial_tail(len(alike), len(agree), usual) <= MAX_P_VALUE:
            against = tuple(each.post_mortem.id for each in alike if each not in agree)
            return _build_lesson(case.post_mortem, shared, verdict, [each.post_mortem for each in agree], against)
    return None


def _similarity(case: _Case, other: _Case) -> int:
    """The share of phrases both have, in millionths: whole numbers compare alike everywhere."""
    return 1_000_000 * len(case.phrases & other.phrases) // max(1, len(case.phrases | other.phrases))


def _with_verdict(cases: Sequence[_Case], verdict: Verdict) -> list[_Case]:
    return [case for case in cases if case.post_mortem.verdict is verdict]


def binomial_tail(count: int, least: int, rate: Fraction) -> Fraction:
    """How likely `least` or more of `count` independent cases come out so, each at a rate."""
    return sum((comb(count, k) * rate**k * (1 - rate) ** (count - k) for k in range(least, count + 1)), Fraction(0))


def _build_lesson(
    last: PostMortem, shared: frozenset[str], verdict: Verdict, agree: Sequence[PostMortem], against: tuple[str, ...]
) -> Lesson:
    mean = mean_r(agree)
    average = "" if mean is None else f", at {mean:+.2f} R on average"
    advice = "claim less edge for it" if verdict is Verdict.FAILURE else "it has paid so far"
    condition = "; ".join(phrase for phrase in split_setup(last.setup) if phrase in shared)
    name = "\n".join((last.origin, last.side, verdict, condition, str(last.closed)))
    return Lesson(
        id=f"les_{hashlib.sha256(name.encode()).hexdigest()[:16]}",
        origin=last.origin,
        written=last.closed,
        expires=Millis(last.closed + LESSON_DAYS * DAY_MS),
        condition=condition,
        side=last.side,
        verdict=verdict,
        text=f"A {last.side} in this setup {_PAST[verdict]} in {len(agree)} of {len(agree) + len(against)} "
        f"cases{average}: {advice}.",
        cases=tuple(case.id for case in agree),
        against=against,
        source="rules",
    )


def mean_r(cases: Sequence[PostMortem]) -> float | None:
    """In two decimals, over the cases that had a stop."""
    known = [case.path.r for case in cases if case.path.r is not None]
    return round(fsum(known) / len(known), 2) if known else None


def _includes(lesson: Lesson, later: Lesson) -> bool:
    """Whether a lesson that has not expired says the same of these setups, or of more."""
    alike = (lesson.side, lesson.verdict) == (later.side, later.verdict) and later.written < lesson.expires
    return alike and fits_setup(lesson, later.condition)


# -- what became of it


def review_lessons(
    lessons: Iterable[Lesson], post_mortems: Iterable[PostMortem], before: Millis
) -> tuple[LessonStanding, ...]:
    """Every lesson written strictly before a moment, as it stood then, the newest first."""
    written = sorted((each for each in lessons if each.written < before), key=lambda each: (-each.written, each.id))
    kept = [case for case in post_mortems if case.closed < before] if written else []
    by_origin = {origin: list_resolved(kept, origin) for origin in {lesson.origin for lesson in written}}
    return tuple(review_lesson(lesson, by_origin[lesson.origin], before) for lesson in written)


def review_lesson(lesson: Lesson, cases: Sequence[PostMortem], before: Millis) -> LessonStanding:
    """A lesson's state by the resolved cases since. Once contradicted it stays so."""
    confirmed: list[str] = []
    contradicted: list[str] = []
    drawn = {*lesson.cases, *lesson.against}
    fallen: Millis | None = None
    for case in cases:
        if not lesson.written <= case.closed < min(before, lesson.expires) or case.id in drawn:
            continue
        if case.side is not lesson.side or not fits_setup(lesson, case.setup):
            continue
        (confirmed if case.verdict is lesson.verdict else contradicted).append(case.id)
        later = len(confirmed) + len(contradicted)
        if fallen is None and later >= MIN_LATER and 2 * len(confirmed) <= later:
            fallen = case.closed
    state, since = LessonState.ACTIVE, lesson.written
    if fallen is not None:
        state, since = LessonState.CONTRADICTED, fallen
    elif lesson.expires <= before:
        state, since = LessonState.EXPIRED, lesson.expires
    elif sum(case.id in lesson.cases for case in cases) < MIN_CASES:
        state = LessonState.WITHDRAWN
    return LessonStanding(
        lesson=lesson, state=state, since=since, confirmed=tuple(confirmed), contradicted=tuple(contradicted)
    )


def describe_review(standing: LessonStanding) -> str:
    """What became of a contradicted lesson, in the rules' own words."""
    agreed, later = len(standing.confirmed), len(standing.confirmed) + len(standing.contradicted)
    past = _PAST[standing.lesson.verdict]
    return f"Since it was written only {agreed} of {later} such trades {past}: it is no advice any more."


# -- which of them are advice


def fits_setup(lesson: Lesson, setup: str) -> bool:
    """Whether a setup has every phrase of the lesson's condition."""
    return _find_phrases(lesson.condition) <= _find_phrases(setup)


@lru_cache(maxsize=8192)
def _find_phrases(setup: str) -> frozenset[str]:
    return frozenset(split_setup(setup))


def choose_advice(standings: Iterable[LessonStanding], setup: str) -> tuple[LessonStanding, ...]:
    """The active lessons that fit a setup: the most particular first, then those of more cases."""
    fitting = [each for each in standings if each.state is LessonState.ACTIVE and fits_setup(each.lesson, setup)]
    fitting.sort(key=lambda each: (-len(split_setup(each.lesson.condition)), -len(each.lesson.cases), each.lesson.id))
    return tuple(fitting[:MOST_ADVICE])
