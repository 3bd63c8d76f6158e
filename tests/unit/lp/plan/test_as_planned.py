"""What a candidate promises to put in is what its plan's transactions mint, to the last unit."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from zuno.amm.model import Range
from zuno.kernel.errors import Refused
from zuno.kernel.units import Tick
from zuno.lp.model.ballot import CandidateKind
from zuno.lp.model.chains import SwapStruct
from zuno.lp.model.plan import StepPlan
from zuno.lp.plan import minting, positions
from zuno.lp.plan.calls import Execute, Mint, ModifyLiquidities
from zuno.lp.plan.decoding import decode
from zuno.lp.rules.candidates import PoolInputs as Weighed
from zuno.lp.rules.candidates import create_ballot, rebalance_ballot
from zuno.lp.rules.ranges import Move


def minted(plan: StepPlan) -> Mint:
    """The one mint of a plan, read from its bytes."""
    found = []
    for step in (*plan.steps, *(plan.later.preview if plan.later else ())):
        call = decode(step.to, step.value, step.data, SwapStruct.FIVE_FIELDS).call
        calls = call.commands if isinstance(call, Execute) else (call,)
        for one in calls:
            if isinstance(one, ModifyLiquidities):
                found += [action for action in one.actions if isinstance(action, Mint)]
    (mint,) = found
    return mint


SPACING = 60
bands = st.tuples(st.integers(-40, 20), st.integers(4, 80)).map(
    lambda pair: Range(Tick(-201_000 + pair[0] * SPACING), Tick(-201_000 + (pair[0] + pair[1]) * SPACING))
)


@settings(max_examples=examples(150), deadline=None)
@given(old=bands, new=bands, fees=st.tuples(st.integers(0, 10**17), st.integers(0, 10**9)))
def test_a_move_s_liquidity_is_the_plan_s(scene: Any, old: Range, new: Range, fees: tuple[int, int]) -> None:
    held = scene.position_in(scene.wrapped, old, fees=fees)
    kind = CandidateKind.SHIFT
    *_, candidate = rebalance_ballot(Weighed(held.pool, held), [Move(kind, new)])
    try:
        mint = minted(positions.rebalance(scene.terms(), held, new))
    except Refused:
        assert new == old or candidate.deposit.liquidity == 0
        return
    assert candidate.deposit.liquidity == mint.liquidity
    whole0, whole1 = held.amount0 + held.fees0, held.amount1 + held.fees1
    prep = candidate.deposit.prep
    if prep is not None:
        whole0 += -prep.amount_in if prep.zero_for_one else prep.amount_out
        whole1 += prep.amount_out if prep.zero_for_one else -prep.amount_in
    put_in = candidate.deposit
    assert (put_in.amount0 + put_in.left0, put_in.amount1 + put_in.left1) == (whole0, whole1)
    assert put_in.amount0 <= mint.amount0_max
    assert put_in.amount1 <= mint.amount1_max


@pytest.mark.parametrize(("capital0", "capital1"), [(10**18, 0), (0, 3 * 10**9), (10**18, 3 * 10**9)])
def test_an_opening_s_liquidity_is_the_plan_s(scene: Any, capital0: int, capital1: int) -> None:
    band = scene.ticks(-201_600, -200_400)
    weighed = Weighed(scene.wrapped, capital0=capital0, capital1=capital1)
    _, candidate = create_ballot([weighed], [Move(CandidateKind.OPEN, band)])
    plan = minting.create(scene.terms(), scene.wrapped, band, capital0, capital1)
    assert candidate.deposit.liquidity == minted(plan).liquidity
