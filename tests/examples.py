"""How many examples a property is tried on: few after an edit, the same 15 in `make test`, new ones in `make soak`.

`make check` sets HYPOTHESIS_PROFILE=quick, `make soak` sets it to deep. The examples of quick and usual are the same
for everybody: what is green here is green there.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "usual")
QUICK, USUAL, DEEP = 10, 15, 1_000

UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A busy machine makes no property false: what hangs is ended by the test's own timeout."""

settings.register_profile("quick", UNTIMED, max_examples=QUICK, derandomize=True, database=None)
settings.register_profile("usual", UNTIMED, max_examples=USUAL, derandomize=True, database=None)
settings.register_profile("deep", UNTIMED, max_examples=DEEP)
settings.load_profile(PROFILE)


def examples(of_fifty: int) -> int:
    """The number for a property that wants another one than most, in proportion to the profile: so many where others
    have fifty."""
    share = {"quick": QUICK, "deep": DEEP}.get(PROFILE, USUAL)
    return max(2, of_fifty * share // 50)


def pair_in_turn(left: Iterable[Any], right: Iterable[Any], mark: pytest.MarkDecorator = pytest.mark.soak) -> list[Any]:
    """All pairs: each of `right` is tried always with one of `left`, in turn, and with the others where the mark is."""
    lefts = list(left)
    return [
        pytest.param(first, second, marks=() if i % len(lefts) == place else mark)
        for i, second in enumerate(right)
        for place, first in enumerate(lefts)
    ]


def mark_all_but(every: int, values: Iterable[Any], mark: pytest.MarkDecorator) -> list[Any]:
    """Parameters of which each `every`-th is tried always, and the others where the mark is."""
    return [pytest.param(value, marks=() if i % every == 0 else mark) for i, value in enumerate(values)]
