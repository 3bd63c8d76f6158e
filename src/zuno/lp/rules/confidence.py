"""Confidence, computed from margins; never taken from a model.

    confidence = margin × freshness × agreement × knowledge, each in [0, 1]

    margin     (1 + m)/2 with m the share by which the thinner buffer clears its floor, held to −1…1;
               1 where no range is at stake, 0 where the range could not be tested
    freshness  1/(1 + a) with a the age of the oldest fact over that fact's own limit: ½ when it turns stale
    agreement  1 − d/2 with d the disagreement in 0…1
    knowledge  (1 + k)/2 with k the share of the facts wanted that are known and not seeded

It never falls as a margin or the share of known facts grows, and never rises with age or disagreement.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

PLACES: Final = 4


def confidence(
    *, margin: Fraction | None, age: Fraction, disagreement: Fraction, known: Fraction = Fraction(1)
) -> float:
    """The product above, rounded to four places."""
    if age < 0 or not 0 <= disagreement <= 1 or not 0 <= known <= 1:
        raise ValueError("age is at least 0, disagreement and known are shares")
    safe = Fraction(1) if margin is None else (1 + max(Fraction(-1), min(margin, Fraction(1)))) / 2
    return float(round(safe / (1 + age) * (1 - disagreement / 2) * (1 + known) / 2, PLACES))


def disagreement(*, converged: bool, revisions: int, allowed: int, raised: int, candidates: int) -> Fraction:
    """How much was argued: all of it when the debate did not converge, whoever decided in the end.

    Else the mean of the revisions made (of one more than are allowed) and of the share of candidates on which the
    Critic was stricter than the rules (`raised`).
    """
    if not converged:
        return Fraction(1)
    return (Fraction(revisions, allowed + 1) + Fraction(raised, max(candidates, 1))) / 2
