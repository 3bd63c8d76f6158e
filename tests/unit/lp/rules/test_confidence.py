"""Confidence: in [0, 1], monotone in everything it rests on, and known at its corners."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zuno.lp.rules.confidence import confidence, disagreement

finite = st.integers(-200, 1_000).map(lambda count: Fraction(count, 100))
margins = st.none() | finite
ages = st.integers(0, 10_000).map(lambda count: Fraction(count, 100))
shares = st.integers(0, 120).map(lambda count: Fraction(count, 120))
ONE, HALF, NONE = Fraction(1), Fraction(1, 2), Fraction(0)


@pytest.mark.parametrize(
    ("margin", "age", "argued", "known", "expected"),
    [
        (ONE, NONE, NONE, ONE, 1.0),
        (None, NONE, NONE, ONE, 1.0),
        (Fraction(9), NONE, NONE, ONE, 1.0),
        (NONE, NONE, NONE, ONE, 0.5),
        (Fraction(-1), NONE, NONE, ONE, 0.0),
        (Fraction(-7), NONE, NONE, ONE, 0.0),
        (ONE, ONE, NONE, ONE, 0.5),
        (ONE, NONE, ONE, ONE, 0.5),
        (ONE, NONE, NONE, NONE, 0.5),
        (HALF, Fraction(1, 4), HALF, HALF, 0.3375),
        (Fraction(1, 3), Fraction(1, 7), Fraction(1, 6), Fraction(3, 4), 0.4679),
    ],
)
def test_golden(margin: Fraction | None, age: Fraction, argued: Fraction, known: Fraction, expected: float) -> None:
    assert confidence(margin=margin, age=age, disagreement=argued, known=known) == expected


@given(margins, ages, shares, shares)
def test_it_is_a_share(margin: Fraction | None, age: Fraction, argued: Fraction, known: Fraction) -> None:
    assert 0 <= confidence(margin=margin, age=age, disagreement=argued, known=known) <= 1


@given(finite, ages, ages, shares, shares)
def test_a_wider_margin_never_lowers_it(
    margin: Fraction, more: Fraction, age: Fraction, argued: Fraction, known: Fraction
) -> None:
    less = confidence(margin=margin, age=age, disagreement=argued, known=known)
    assert less <= confidence(margin=margin + more, age=age, disagreement=argued, known=known)


@given(margins, ages, ages, shares, shares)
def test_older_data_never_raises_it(
    margin: Fraction | None, age: Fraction, more: Fraction, argued: Fraction, known: Fraction
) -> None:
    fresh = confidence(margin=margin, age=age, disagreement=argued, known=known)
    assert fresh >= confidence(margin=margin, age=age + more, disagreement=argued, known=known)


@given(margins, ages, shares, shares, shares)
def test_more_argument_never_raises_it(
    margin: Fraction | None, age: Fraction, one: Fraction, other: Fraction, known: Fraction
) -> None:
    calm, loud = (confidence(margin=margin, age=age, disagreement=one, known=known) for one in sorted((one, other)))
    assert calm >= loud


@given(margins, ages, shares, shares, shares)
def test_knowing_more_never_lowers_it(
    margin: Fraction | None, age: Fraction, argued: Fraction, one: Fraction, other: Fraction
) -> None:
    less, more = (confidence(margin=margin, age=age, disagreement=argued, known=one) for one in sorted((one, other)))
    assert less <= more


@pytest.mark.parametrize(("age", "argued", "known"), [(-1, 0, 1), (0, 2, 1), (0, -1, 1), (0, 0, 2), (0, 0, -1)])
def test_what_is_no_share_is_our_own_mistake(age: int, argued: int, known: int) -> None:
    with pytest.raises(ValueError, match="shares"):
        confidence(margin=None, age=Fraction(age), disagreement=Fraction(argued), known=Fraction(known))


def argued(*, converged: bool = True, revisions: int = 0, raised: int = 0) -> Fraction:
    return disagreement(converged=converged, revisions=revisions, allowed=2, raised=raised, candidates=5)


def test_disagreement() -> None:
    assert argued() == 0
    assert argued(revisions=2) == Fraction(1, 3)
    assert argued(raised=5) == HALF
    assert argued(converged=False) == 1
    assert argued(revisions=1, raised=1) == (Fraction(1, 3) + Fraction(1, 5)) / 2
    assert disagreement(converged=True, revisions=0, allowed=0, raised=0, candidates=0) == 0


@given(st.integers(0, 5), st.integers(0, 5), st.integers(0, 9), st.integers(0, 9))
def test_disagreement_is_a_share_and_grows(revisions: int, spare: int, raised: int, others: int) -> None:
    allowed, candidates = revisions + spare, raised + others
    here = disagreement(converged=True, revisions=revisions, allowed=allowed, raised=raised, candidates=candidates)
    assert 0 <= here <= 1
    if spare and others:
        for more in ((1, 0), (0, 1)):
            assert here <= disagreement(
                converged=True,
                revisions=revisions + more[0],
                allowed=allowed,
                raised=raised + more[1],
                candidates=candidates,
            )
