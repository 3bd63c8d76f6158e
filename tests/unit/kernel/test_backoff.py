"""Backoff: a pure schedule that doubles, is bounded, and spreads by the draw it is given."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zuno.kernel.backoff import SPREAD, Backoff

SECONDS = st.floats(1e-6, 1e6)
FAILURES = st.integers(1, 10_000)
CHANCE = st.floats(0.0, 1.0, exclude_max=True)


def test_it_doubles_up_to_its_bound() -> None:
    waits = Backoff(0.5, 5.0)
    assert [waits.delay(failures) for failures in range(7)] == [0.0, 0.5, 1.0, 2.0, 4.0, 5.0, 5.0]


@pytest.mark.parametrize(("chance", "wait"), [(0.0, 1.0), (0.5, 1.5), (1.0, 2.0)])
def test_jitter_is_over_the_upper_half(chance: float, wait: float) -> None:
    assert Backoff(1.0, 60.0, SPREAD).delay(2, chance) == wait


def test_jitter_may_lie_around_the_delay() -> None:
    waits = Backoff(250, 5_000, jitter=(0.75, 1.25))
    assert [waits.delay(20, chance) for chance in (0.0, 0.5, 1.0)] == [3_750, 5_000, 6_250]


@given(SECONDS, SECONDS, FAILURES)
def test_without_jitter_it_never_shrinks_whatever_the_draw(first: float, longest: float, failures: int) -> None:
    waits = Backoff(first, longest)
    assert min(first, longest) <= waits.delay(failures) <= waits.delay(failures + 1) <= longest
    assert waits.delay(failures) == waits.delay(failures, 0.99)


@given(SECONDS, SECONDS, FAILURES, CHANCE)
def test_jitter_stays_within_its_bounds(first: float, longest: float, failures: int, chance: float) -> None:
    full = Backoff(first, longest).delay(failures)
    assert full / 2 <= Backoff(first, longest, SPREAD).delay(failures, chance) <= full


@given(SECONDS, FAILURES, CHANCE, CHANCE)
def test_a_higher_draw_waits_no_less(first: float, failures: int, draw: float, other: float) -> None:
    waits = Backoff(first, 1e6, SPREAD)
    low, high = sorted((draw, other))
    assert waits.delay(failures, low) <= waits.delay(failures, high)


@pytest.mark.parametrize("failures", [0, -1, -100])
def test_no_failure_is_no_wait(failures: int) -> None:
    assert Backoff(1.0, 60.0, SPREAD).delay(failures, 0.5) == 0.0


def test_any_count_of_failures_is_bounded() -> None:
    assert Backoff(900.0, 1e9).delay(10**9) == 1e9
