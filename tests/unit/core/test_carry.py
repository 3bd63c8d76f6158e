"""Carry: fee yield, LVR, one-off cost and break-even, with closed forms; what is unknown stays unknown."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zuno.core.amm.integers import MAX_UINT256, Q128
from zuno.core.carry import (
    MEASURED_GAS,
    breakeven_hours,
    cost_of,
    lvr24h_token1,
    lvr_token1,
    score_token1,
    steps_for,
)
from zuno.core.fee_yield import DAY, WEEK, FeeWindow, GrowthSample, best_window, fee_window, fees24h_token1
from zuno.domain.debate import CandidateKind, Carry, Cost, GasStep, PrepSwap
from zuno.domain.market import GasQuote
from zuno.domain.units import Seconds, Wei

Q96 = 1 << 96
PRICE_4 = 2 * Q96
"""√4: four token1 for one token0."""
SWAP = PrepSwap(True, 100, 390, 1, Fraction(4), Fraction(6), PRICE_4, False)
GWEI = Wei(10**9)
MOVES = (CandidateKind.WIDEN, CandidateKind.TIGHTEN, CandidateKind.SHIFT)

share = st.fractions(0, 1)
liquidities = st.integers(1, 10**24)


A_WEEK = FeeWindow(Q128 // 1000, Q128 // 500, WEEK, "7 d")


def fees(
    window: FeeWindow | None = A_WEEK,
    liquidity: int = 10**6,
    pool: int = 10**9,
    others: int = 10**9,
    time_in_range: Fraction = Fraction(1),
) -> Fraction | None:
    return fees24h_token1(
        window,
        sqrt_price_x96=PRICE_4,
        liquidity=liquidity,
        pool_liquidity=pool,
        others_liquidity=others,
        in_range_share_24h=time_in_range,
    )


def test_a_week_of_growth_is_seven_days_of_fees_in_token1() -> None:
    window = FeeWindow(7 * Q128, 14 * Q128, WEEK, "7 d")
    # Per unit of liquidity and day: 1 token0 at 4, and 2 token1. Half the time, half the pool.
    assert fees(window, liquidity=10, pool=10, others=10, time_in_range=Fraction(1, 2)) == 10 * 6 * Fraction(1, 4)


def test_holding_what_is_already_there_dilutes_nothing() -> None:
    whole = fees(liquidity=10**6, pool=10**9, others=10**9 - 10**6)
    assert whole is not None
    assert whole == 10**6 * Fraction(4 * (Q128 // 1000) + Q128 // 500, Q128) / 7


def test_unknown_growth_is_not_zero() -> None:
    assert fees(None) is None
    assert fees(pool=0, others=0) is None
    assert fees(liquidity=0) == 0
    assert fees(time_in_range=Fraction(0)) == 0


@given(liquidities, liquidities, share)
def test_more_liquidity_earns_more_but_ever_less_per_unit(one: int, more: int, time_in_range: Fraction) -> None:
    few, many = (fees(liquidity=amount, time_in_range=time_in_range) for amount in (one, one + more))
    assert few is not None
    assert many is not None
    assert few <= many
    assert few / one >= many / (one + more)
    total = fees(liquidity=1, others=0, time_in_range=time_in_range)
    assert total is not None
    assert many <= total * 10**9, "nobody earns more than the whole pool did"


def test_growth_that_wrapped_round_is_still_a_difference() -> None:
    then = GrowthSample(Seconds(0), MAX_UINT256 - 4, 7)
    now = GrowthSample(Seconds(DAY), 5, 7)
    assert fee_window(then, now, "24 h") == FeeWindow(10, 0, DAY, "24 h")
    with pytest.raises(ValueError, match="length"):
        fee_window(now, now, "nothing")


@pytest.mark.parametrize(
    ("ages", "seconds", "label"),
    [
        ([WEEK, DAY], WEEK, "7 d of samples"),
        ([WEEK + 5, WEEK + 9, DAY], WEEK + 5, "7 d of samples"),
        ([WEEK - 1, DAY + 3], DAY + 3, "24 h of samples"),
        ([WEEK + DAY + 1, DAY], DAY, "24 h of samples"),
    ],
)
def test_seven_days_are_preferred_to_one(ages: list[int], seconds: int, label: str) -> None:
    now = GrowthSample(Seconds(10**9), 0, 0)
    window = best_window([GrowthSample(Seconds(10**9 - age), 0, 0) for age in ages], now, "samples")
    assert window is not None
    assert (window.seconds, window.label) == (seconds, label)


@pytest.mark.parametrize("ages", [[], [DAY - 1], [3 * DAY], [WEEK - 1]])
def test_no_other_window_is_made_up(ages: list[int]) -> None:
    now = GrowthSample(Seconds(10**9), 0, 0)
    assert best_window([GrowthSample(Seconds(10**9 - age), 0, 0) for age in ages], now, "samples") is None


def test_lvr_is_a_quarter_of_the_variance_of_the_value_it_stands_on() -> None:
    assert lvr_token1(1000, PRICE_4, 0.01) == pytest.approx(0.01 / 4 * 1000 * 2)
    # A full-range position is worth 2·L·√P, so LVR is σ²/8 of it: the textbook figure.
    assert lvr_token1(1000, PRICE_4, 0.01) / (2 * 1000 * 2) == pytest.approx(0.01 / 8)


def test_lvr_is_paid_in_range_only_and_unknown_without_a_variance() -> None:
    half = lvr24h_token1(1000, PRICE_4, 0.01, Fraction(1, 2))
    assert half is not None
    assert float(half) == pytest.approx(2.5)
    assert lvr24h_token1(1000, PRICE_4, None, Fraction(1, 2)) is None
    assert lvr24h_token1(0, PRICE_4, None, Fraction(1)) == 0
    assert lvr24h_token1(1000, PRICE_4, None, Fraction(0)) == 0


def test_the_steps_of_every_kind() -> None:
    approve = (GasStep.APPROVE_PERMIT2, GasStep.PERMIT2_APPROVE)
    assert steps_for(CandidateKind.HOLD, None, 2) == ()
    assert steps_for(CandidateKind.CLOSE, None, 2) == (GasStep.BURN,)
    assert steps_for(CandidateKind.OPEN, None, 1) == (*approve, GasStep.MINT)
    assert steps_for(CandidateKind.OPEN, SWAP, 0) == (GasStep.SWAP_AND_MINT,)
    assert steps_for(CandidateKind.OPEN, SWAP, 1, wraps=True) == (GasStep.WRAP, *approve, GasStep.SWAP_AND_MINT)
    for kind in MOVES:
        assert steps_for(kind, None, 2) == (GasStep.BURN_AND_MINT,)
        assert steps_for(kind, SWAP, 2) == (GasStep.BURN, *approve, *approve, GasStep.SWAP_AND_MINT)


def test_cost_is_gas_and_swap_apart() -> None:
    gas = GasQuote(GWEI, GWEI)
    cost = cost_of([GasStep.BURN, GasStep.SWAP_AND_MINT], gas=gas, native_token1=Fraction(1, 10**9), prep=SWAP)
    assert cost.gas_units == MEASURED_GAS[GasStep.BURN] + MEASURED_GAS[GasStep.SWAP_AND_MINT] == 571_578
    assert cost.gas_wei == 571_578 * 2 * GWEI
    assert cost.gas_token1 == 571_578 * 2
    assert (cost.swap_fee_token1, cost.impact_token1) == (4, 6)
    assert cost.total_token1 == 571_578 * 2 + 10
    assert cost.label == "measured table"


def test_a_rollup_charges_for_bytes_too() -> None:
    plain = cost_of([GasStep.MINT], gas=GasQuote(GWEI, Wei(0)), native_token1=Fraction(1)).gas_wei
    rollup = cost_of([GasStep.MINT], gas=GasQuote(GWEI, Wei(0), Wei(7)), native_token1=Fraction(1)).gas_wei
    assert plain is not None
    assert rollup == plain + 7 * (1060 + 120)


def test_estimates_of_the_node_replace_the_table() -> None:
    cost = cost_of(
        [GasStep.BURN], gas=GasQuote(GWEI, Wei(0)), native_token1=None, units={GasStep.BURN: 5}, label="eth_estimateGas"
    )
    assert (cost.gas_units, cost.gas_wei, cost.label) == (5, 5 * GWEI, "eth_estimateGas")


@pytest.mark.parametrize(("gas", "native"), [(None, Fraction(1)), (GasQuote(GWEI, GWEI), None)])
def test_gas_that_cannot_be_priced_is_unknown_not_free(gas: GasQuote | None, native: Fraction | None) -> None:
    cost = cost_of([GasStep.BURN], gas=gas, native_token1=native)
    assert cost.gas_token1 is None
    assert cost.total_token1 is None
    nothing = cost_of([], gas=gas, native_token1=native)
    assert nothing.total_token1 == 0, "doing nothing is free whatever gas costs"


def test_breakeven() -> None:
    assert breakeven_hours(Fraction(10), Fraction(48), Fraction(24)) == 10
    assert breakeven_hours(Fraction(0), Fraction(48), Fraction(24)) == 0
    assert breakeven_hours(Fraction(10), Fraction(0), Fraction(-24)) == 10, "leaving a loss is a gain"
    for new, old in [(24, 24), (23, 24), (-25, -24)]:
        assert breakeven_hours(Fraction(10), Fraction(new), Fraction(old)) is None
    assert breakeven_hours(None, Fraction(48), Fraction(24)) is None
    assert breakeven_hours(Fraction(10), None, Fraction(24)) is None
    assert breakeven_hours(Fraction(10), Fraction(48), None) is None


@given(st.fractions(0, 1000), st.fractions(-1000, 1000), st.fractions(-1000, 1000))
def test_after_the_breakeven_hours_the_move_is_ahead(cost: Fraction, new: Fraction, old: Fraction) -> None:
    hours = breakeven_hours(cost, new, old)
    assert (hours is None) == (new <= old)
    if hours is not None:
        assert new / 24 * hours - cost == old / 24 * hours


def carry(fees24h: int | None, lvr24h: int | None, gas: int | None) -> Carry:
    def known(value: int | None) -> Fraction | None:
        return None if value is None else Fraction(value)

    cost = Cost((), 0, None, known(gas), Fraction(0), Fraction(0), "")
    return Carry(known(fees24h), known(lvr24h), cost)


def test_net_and_score() -> None:
    assert carry(50, 26, 3).net24h_token1 == 24
    assert score_token1(carry(50, 26, 3), Fraction(100)) == 97
    assert score_token1(carry(0, 0, 3), Fraction(0)) == -3
    assert score_token1(carry(None, 26, 3), Fraction(0)) == -3, "never in range: what it would earn there is no matter"
    for unknown in (carry(None, 26, 3), carry(50, None, 3), carry(50, 26, None)):
        assert score_token1(unknown, Fraction(100)) is None


def test_gas_yield() -> None:
    assert carry(50, 0, 25).gas_yield == Fraction(1, 2)
    for unknown in (carry(0, 0, 25), carry(None, 0, 25), carry(50, 0, None)):
        assert unknown.gas_yield is None
    assert math.isclose(float(carry(3, 0, 1).gas_yield or 0), 1 / 3)
