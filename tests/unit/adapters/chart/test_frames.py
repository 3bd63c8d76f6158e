"""Labels in a narrow place: apart, in order, inside, and no further from home than they must be."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zuno.adapters.chart.frames import spread_labels

wishes = st.lists(st.floats(0, 500, allow_nan=False), max_size=30)


@given(wishes)
def test_labels_are_apart_in_order_and_inside(wanted: list[float]) -> None:
    found = spread_labels(wanted, 15, 0, 500)
    order = sorted(range(len(wanted)), key=lambda place: wanted[place])
    placed = [found[place] for place in order]
    assert all(two - one >= 15 - 1e-6 for one, two in pairwise(placed))
    assert all(-1e-6 <= place <= 500 + 1e-6 for place in placed)


@given(wishes)
def test_labels_that_have_room_stay_at_home(wanted: list[float]) -> None:
    far = sorted({round(one / 20) * 20.0 for one in wanted})
    assert spread_labels(far, 15, 0, 500) == far


@pytest.mark.parametrize("count", [2, 40, 200])
def test_too_many_share_what_there_is(count: int) -> None:
    found = spread_labels([250.0] * count, 15, 0, 500)
    gap = min(15.0, 500 / (count - 1))
    assert all(two - one == pytest.approx(gap) for one, two in pairwise(sorted(found)))
    assert sum(found) / count == pytest.approx(250.0)


def test_a_heap_lies_around_the_mean_of_its_wishes() -> None:
    assert spread_labels([100.0, 102.0, 104.0], 10, 0, 500) == [92.0, 102.0, 112.0]
    assert spread_labels([104.0, 100.0], 10, 0, 500) == [107.0, 97.0]
    assert spread_labels([1.0, 1.0], 10, 0, 500) == [0.0, 10.0]
    assert spread_labels([499.0, 499.0], 10, 0, 500) == [490.0, 500.0]
    assert spread_labels([], 10, 0, 500) == []
