"""Confidence: in [0, 1], monotone in everything it rests on, and known at its corners."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zuno.lp.agents.conclude import score_confidence

ages = st.integers(0, 10_000).map(lambda count: Fraction(count, 100))
shares = st.integers(0, 120).map(lambda count: Fraction(count, 120))
ALL, HALF, NONE = Fraction(1), Fraction(1, 2), Fraction(0)


@pytest.mark.parametrize(
    ("share", "age", "known", "expected"),
    [
        (ALL, NONE, ALL, 1.0),
        (HALF, NONE, ALL, 0.5),
        (NONE, NONE, ALL, 0.0),
        (None, NONE, ALL, 0.0),
        (ALL, ALL, ALL, 0.5),
        (ALL, NONE, NONE, 0.5),
        (HALF, Fraction(1, 4), HALF, 0.3),
        (Fraction(1, 3), Fraction(1, 7), Fraction(3, 4), 0.2552),
    ],
)
def test_golden(share: Fraction | None, age: Fraction, known: Fraction, expected: float) -> None:
    assert score_confidence(share=share, age=age, known=known) == expected


@given(shares, shares, ages, ages, shares, shares)
def test_it_is_a_share_that_grows_with_what_speaks_for_it(
    share: Fraction, more: Fraction, age: Fraction, older: Fraction, known: Fraction, better: Fraction
) -> None:
    here = score_confidence(share=share, age=age, known=known)
    assert 0 <= here <= 1
    assert here <= score_confidence(share=max(share, more), age=age, known=known)
    assert here >= score_confidence(share=share, age=age + older, known=known)
    assert here <= score_confidence(share=share, age=age, known=max(known, better))


@pytest.mark.parametrize(("share", "age", "known"), [(1, -1, 1), (2, 0, 1), (-1, 0, 1), (1, 0, 2), (1, 0, -1)])
def test_what_is_no_share_is_our_own_mistake(share: int, age: int, known: int) -> None:
    with pytest.raises(ValueError, match="shares"):
        score_confidence(share=Fraction(share), age=Fraction(age), known=Fraction(known))
