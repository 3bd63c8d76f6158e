"""What a candidate promises to put in is what its plan puts in, and what it leaves over is little."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from zuno.amm.model import Range
from zuno.kernel.errors import Refused
from zuno.kernel.units import Tick
from zuno.lp.model.ballot import CandidateKind, Deposit
from zuno.lp.model.plan import Leftover
from zuno.lp.plan import minting, positions
from zuno.lp.rules.candidates import PoolInputs as Weighed
from zuno.lp.rules.candidates import create_ballot, rebalance_ballot
from zuno.lp.rules.ranges import Move

SPACING = 60
bands = st.tuples(st.integers(-40, 20), st.integers(4, 80)).map(
    lambda pair: Range(Tick(-201_000 + pair[0] * SPACING), Tick(-201_000 + (pair[0] + pair[1]) * SPACING))
)


def check_same_left(put_in: Deposit, left: Leftover) -> None:
    """The same to the unit, what is swapped back to hold the price included."""
    assert (left.amount0, left.amount1) == (put_in.left0, put_in.left1)
    assert (left.whole0, left.whole1) == (put_in.amount0 + put_in.left0, put_in.amount1 + put_in.left1)


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(old=bands, new=bands, fees=st.tuples(st.integers(0, 10**17), st.integers(0, 10**9)))
def test_a_move_leaves_what_its_candidate_says(scene: Any, old: Range, new: Range, fees: tuple[int, int]) -> None:
    held = scene.position_in(scene.wrapped, old, fees=fees)
    kind = CandidateKind.SHIFT
    *_, candidate = rebalance_ballot(Weighed(held.pool, held), [Move(kind, new)])
    try:
        plan = positions.rebalance(scene.terms(), held, new)
    except Refused:
        assert new == old or candidate.deposit.liquidity == 0
        return
    put_in, left = candidate.deposit, plan.leftover
    assert left is not None
    check_same_left(put_in, left)
    prep = put_in.prep
    assert (plan.later is None) == (prep is None)
    if prep is None:
        assert (left.whole0, left.whole1) == (held.amount0 + held.fees0, held.amount1 + held.fees1)
    assert 0 <= left.share <= (Fraction(2, 100) if put_in.notes == () else 1)


@pytest.mark.parametrize(
    ("capital0", "capital1", "half"),
    [(10**18, 0, 600), (0, 3 * 10**9, 600), (10**18, 3 * 10**9, 600), (10**18, 3 * 10**9, 30_000)],
)
def test_an_opening_leaves_what_its_candidate_says(scene: Any, capital0: int, capital1: int, half: int) -> None:
    band = scene.ticks(-201_000 - half, -201_000 + half)
    weighed = Weighed(scene.wrapped, capital0=capital0, capital1=capital1)
    _, candidate = create_ballot([weighed], [Move(CandidateKind.OPEN, band)])
    plan = minting.create(scene.terms(), scene.wrapped, band, capital0, capital1)
    assert plan.leftover is not None
    check_same_left(candidate.deposit, plan.leftover)
