"""Heartbeats in runs are the rows they stand for."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from zuno.kernel.units import Millis
from zuno.trading.model.market import MINUTE_MS, Heartbeat, Heartbeats

rows = st.lists(
    st.integers(0, 40).map(lambda minute: Heartbeat(Millis(minute * MINUTE_MS + minute // 20))), max_size=30
)
ends = st.none() | st.integers(-35, 35)


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(rows, ends, ends, st.sampled_from([None, 1, 2, -1]))
def test_runs_are_the_rows_they_were_made_of(
    given_rows: list[Heartbeat], start: int | None, stop: int | None, step: int | None
) -> None:
    plain = tuple(given_rows)
    runs = Heartbeats.of(plain)
    assert runs == plain == runs
    assert tuple(runs) == plain
    assert hash(runs) == hash(plain)
    assert len(runs) == len(plain)
    assert bool(runs) is bool(plain)
    assert [runs[place] for place in range(-len(plain), len(plain))] == [*plain, *plain]
    assert runs[start:stop:step] == plain[start:stop:step]
    assert pickle.loads(pickle.dumps(runs)) == runs
    assert runs != (*plain, Heartbeat(Millis(1)))
    for outside in (len(plain), -len(plain) - 1):
        with pytest.raises(IndexError):
            _ = runs[outside]


def test_a_run_ends_where_a_minute_is_missing() -> None:
    minutes = [Heartbeat(Millis(minute * MINUTE_MS)) for minute in (1, 2, 3, 5, 6)]
    assert Heartbeats.of(minutes).runs == ((MINUTE_MS, 3), (5 * MINUTE_MS, 2))
