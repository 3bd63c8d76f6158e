"""Stretches of blocks: what was searched and what is left, against a plain set of numbers."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from zuno.adapters.chain.rpc.scan import add_span, gaps

stretches = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12)).map(lambda at: (at[0], at[0] + at[1])))


def blocks(runs: list[tuple[int, int]]) -> set[int]:
    return {at for low, high in runs for at in range(low, high + 1)}


@given(stretches)
def test_merging_keeps_every_block_and_leaves_no_two_runs_that_touch(runs: list[tuple[int, int]]) -> None:
    merged: list[tuple[int, int]] = []
    for low, high in runs:
        merged = add_span(merged, low, high)
    assert blocks(merged) == blocks(runs)
    assert all(left[1] + 1 < right[0] for left, right in pairwise(merged))


@given(stretches, st.integers(0, 40), st.integers(0, 40))
def test_gaps_are_what_is_missing_newest_first(runs: list[tuple[int, int]], first: int, width: int) -> None:
    last = first + width
    merged: list[tuple[int, int]] = []
    for low, high in runs:
        merged = add_span(merged, low, high)
    missing = gaps(merged, first, last)
    assert blocks(missing) == set(range(first, last + 1)) - blocks(runs)
    assert [low for low, _ in missing] == sorted((low for low, _ in missing), reverse=True)
    assert all(low <= high for low, high in missing)
