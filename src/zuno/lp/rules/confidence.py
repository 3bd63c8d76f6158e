"""Confidence, computed path by path; never taken from a model.

    confidence = share × freshness × knowledge, each in [0, 1]

    share      of the stress paths on which the choice is worth more than hold; for hold itself, on which its best rival
               stays under the least edge a move must have. 0 where nobody could tell
    freshness  1/(1 + a) with a the age of the oldest fact over that fact's own limit: ½ when it turns stale
    knowledge  (1 + k)/2 with k the share of the facts wanted that are known and not seeded

A coin toss reads about a half of what the data allow, a clear case near all of it.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

PLACES: Final = 4


def score_confidence(*, share: Fraction | None, age: Fraction, known: Fraction = Fraction(1)) -> float:
    """The product above, rounded to four places."""
    if age < 0 or not 0 <= (share or 0) <= 1 or not 0 <= known <= 1:
        raise ValueError("age is at least 0, share and known are shares")
    return float(round((share or 0) / (1 + age) * (1 + known) / 2, PLACES))
