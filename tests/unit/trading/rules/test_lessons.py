"""Lessons by rule: from which cases, for how long, and what later outcomes make of them."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.wire.post_mortems import CALM, CROWDED, ORIGIN, START, closed_at, post_mortem
from zuno.kernel.units import Millis
from zuno.markets.market import DEFAULT_SYMBOLS
from zuno.trading.model.market import DAY_MS, Side
from zuno.trading.model.memory import LessonState, PostMortem, Verdict
from zuno.trading.model.trade_events import ExitReason
from zuno.trading.rules.lessons import (
    CASE_DAYS,
    LESSON_DAYS,
    binomial_tail,
    choose_advice,
    derive_lessons,
    fits_setup,
    mean_r,
    review_lessons,
)

WON, LOST, FLAT = Verdict.SUCCESS, Verdict.FAILURE, Verdict.FLAT
FIVE = [post_mortem(number) for number in range(5)]


def test_five_cases_that_agree_are_a_lesson_and_four_are_none() -> None:
    assert derive_lessons(FIVE[:4], ORIGIN) == ()
    (lesson,) = derive_lessons(FIVE, ORIGIN)
    assert lesson.cases == tuple(case.id for case in FIVE)
    assert (lesson.side, lesson.verdict, lesson.against, lesson.source) == (Side.LONG, LOST, (), "rules")
    assert lesson.written == FIVE[-1].closed
    assert lesson.expires - lesson.written == LESSON_DAYS * DAY_MS
    assert lesson.condition == CROWDED
    assert mean_r(FIVE) == -1.1


@pytest.mark.parametrize(
    ("verdicts", "taught"),
    [
        ([LOST] * 5, True),
        ([WON] * 5, True),
        ([FLAT] * 6, False),
        ([LOST] * 4 + [WON, LOST], False),  # five of six may well be chance
        ([LOST] * 4 + [WON] + [LOST] * 4, True),
        ([LOST, WON] * 5, False),
        ([LOST] * 3 + [WON] + [LOST] * 3 + [WON] + [LOST] * 2, False),  # four of five, but not rare enough
    ],
    ids=["lost", "won", "flat", "five of six", "eight of nine", "mixed", "eight of ten"],
)
def test_how_many_have_to_agree(verdicts: list[Verdict], taught: bool) -> None:
    cases = [post_mortem(number, verdict=verdict) for number, verdict in enumerate(verdicts)]
    assert bool(derive_lessons(cases, ORIGIN)) is taught


def test_what_fails_everywhere_is_no_lesson_about_one_setup() -> None:
    elsewhere = [post_mortem(50 + number, CALM, day=number / 10) for number in range(20)]
    about_calm = derive_lessons(elsewhere, ORIGIN)
    assert [lesson.condition for lesson in about_calm] == [CALM]
    crowded = [post_mortem(number, day=10 + number) for number in range(5)]
    assert [lesson.condition for lesson in derive_lessons([*elsewhere, *crowded], ORIGIN)] == [CALM]
    paying = [post_mortem(50 + number, CALM, verdict=(WON, LOST)[number % 2], day=number / 10) for number in range(20)]
    assert [lesson.condition for lesson in derive_lessons([*paying, *crowded], ORIGIN)] == [CROWDED]


def test_a_lesson_is_about_one_side_of_one_market_and_of_trades_that_were_made() -> None:
    mixed = [post_mortem(number, side=(Side.LONG, Side.SHORT)[number % 2]) for number in range(8)]
    assert derive_lessons(mixed, ORIGIN) == ()
    assert derive_lessons(FIVE, "SYNTHETIC seed 2") == ()
    undone = [post_mortem(number, reason=ExitReason.UNDONE) for number in range(5)]
    assert derive_lessons(undone, ORIGIN) == ()


def test_one_decision_is_one_case_however_often_it_was_carried_out() -> None:
    legs = [post_mortem(number, intent=f"int_{number // 2}") for number in range(8)]
    assert derive_lessons(legs, ORIGIN) == ()
    accounts = [
        post_mortem(number, day=number // 2, opened=START, account=f"paper:{ORIGIN}:{number % 2}")
        for number in range(8)
    ]
    assert derive_lessons(accounts, ORIGIN) == ()


def test_old_cases_teach_nothing_new() -> None:
    old = [post_mortem(number) for number in range(4)]
    assert derive_lessons([*old, post_mortem(9, day=CASE_DAYS + 3)], ORIGIN) == ()
    assert derive_lessons([*old, post_mortem(9, day=CASE_DAYS)], ORIGIN)


@pytest.mark.slow
def test_a_setup_gets_one_lesson_until_it_expires() -> None:
    cases = [post_mortem(number, day=number * 2) for number in range(80)]
    first, second, *_ = lessons = derive_lessons(cases, ORIGIN)
    assert len(lessons) == 2
    assert second.written >= first.expires
    assert second.id != first.id


def test_a_lesson_is_contradicted_by_later_outcomes_and_stays_so() -> None:
    (lesson,) = derive_lessons(FIVE, ORIGIN)
    later = [post_mortem(10 + number, verdict=verdict) for number, verdict in enumerate([WON, LOST, FLAT, LOST, LOST])]
    states = []
    for count in range(6):
        (standing,) = review_lessons([lesson], [*FIVE, *later[:count]], closed_at(40))
        states.append(standing.state)
    active, contradicted = LessonState.ACTIVE, LessonState.CONTRADICTED
    assert states == [active, active, active, contradicted, contradicted, contradicted]
    assert standing.since == later[2].closed
    assert standing.confirmed == tuple(later[place].id for place in (1, 3, 4))
    assert standing.contradicted == tuple(later[place].id for place in (0, 2))
    (before,) = review_lessons([lesson], [*FIVE, *later], later[2].closed)
    assert before.state is active, "what closes at the moment itself is not known yet"
    assert choose_advice([standing], CROWDED) == ()
    assert choose_advice([before], CROWDED) == (before,)


def test_fresh_cases_give_a_contradicted_lesson_a_successor() -> None:
    against = [post_mortem(10 + number, verdict=WON) for number in range(3)]
    again = [post_mortem(20 + number) for number in range(5)]
    assert len(derive_lessons([*FIVE, *against, *again[:4]], ORIGIN)) == 1, "what fell is not propped up by old cases"
    first, second = derive_lessons([*FIVE, *against, *again], ORIGIN)
    assert (second.verdict, second.condition) == (first.verdict, first.condition)
    assert second.cases == tuple(case.id for case in again)
    assert second.written < first.expires
    newest, oldest = review_lessons([first, second], [*FIVE, *against, *again], closed_at(40))
    assert (oldest.state, newest.state) == (LessonState.CONTRADICTED, LessonState.ACTIVE)
    assert choose_advice([newest, oldest], CROWDED) == (newest,)


def test_a_lesson_expires_and_is_advice_no_more() -> None:
    (lesson,) = derive_lessons(FIVE, ORIGIN)
    (there,) = review_lessons([lesson], FIVE, Millis(lesson.expires - 1))
    (over,) = review_lessons([lesson], FIVE, lesson.expires)
    assert (there.state, over.state) == (LessonState.ACTIVE, LessonState.EXPIRED)
    assert over.since == lesson.expires
    assert choose_advice([there], CROWDED)
    assert not choose_advice([over], CROWDED)


def test_a_lesson_whose_cases_were_forgotten_is_withdrawn() -> None:
    (lesson,) = derive_lessons(FIVE, ORIGIN)
    (standing,) = review_lessons([lesson], FIVE[1:], closed_at(9))
    assert standing.state is LessonState.WITHDRAWN
    assert choose_advice([standing], CROWDED) == ()


def test_advice_fits_the_setup() -> None:
    (lesson,) = derive_lessons(FIVE, ORIGIN)
    standings = review_lessons([lesson], FIVE, closed_at(9))
    assert choose_advice(standings, f"greed; {CROWDED}; puts dear") == standings
    assert choose_advice(standings, CROWDED.replace("funding high", "funding neutral")) == ()
    assert choose_advice(standings, CALM) == ()
    assert not fits_setup(lesson, "")


def test_the_tail_is_the_binomials() -> None:
    half = Fraction(1, 2)
    assert binomial_tail(5, 5, half) == Fraction(1, 32)
    assert binomial_tail(8, 7, half) == Fraction(9, 256)
    assert binomial_tail(3, 0, Fraction(1, 7)) == 1


PHRASES = ("funding high", "funding neutral", "greed", "fear", "squeeze 4h", "puts dear", "whales buying")


@st.composite
def histories(draw: st.DrawFn) -> list[PostMortem]:
    """Trades of few setups, so that lessons are common."""
    count = draw(st.integers(5, 30))
    cases = []
    for number in range(count):
        kept = draw(st.sampled_from([PHRASES[:4], PHRASES[2:], PHRASES[:5], PHRASES]))
        cases.append(
            post_mortem(
                number,
                "; ".join(kept),
                draw(st.sampled_from([LOST, LOST, LOST, WON, FLAT])),
                day=draw(st.integers(0, 120)),
                side=draw(st.sampled_from([Side.LONG, Side.LONG, Side.SHORT])),
                symbol=draw(st.sampled_from(DEFAULT_SYMBOLS)),
                opened=closed_at(-number - 1),
            )
        )
    return cases


@pytest.mark.slow
@settings(max_examples=40)
@given(histories(), st.integers(0, 125))
def test_cutting_the_future_changes_no_lesson_and_no_state(cases: list[PostMortem], day: int) -> None:
    moment = closed_at(day)
    known = [case for case in cases if case.closed < moment]
    whole, cut = derive_lessons(cases, ORIGIN), derive_lessons(known, ORIGIN)
    assert tuple(lesson for lesson in whole if lesson.written < moment) == cut
    assert review_lessons(whole, cases, moment) == review_lessons(cut, known, moment)
    assert derive_lessons(reversed(cases), ORIGIN) == whole, "the order they are read in does not matter"
    for lesson in whole:
        drawn = {case.id: case for case in cases}
        assert len(lesson.cases) >= 5
        assert all(drawn[id].verdict is lesson.verdict for id in lesson.cases)
        assert all(fits_setup(lesson, drawn[id].setup) for id in (*lesson.cases, *lesson.against))
        assert 4 * (len(lesson.cases) + len(lesson.against)) <= 5 * len(lesson.cases)
