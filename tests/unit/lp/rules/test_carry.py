"""Carry: fee yield, LVR, one-off cost and break-even, with closed forms; what is unknown stays unknown."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from zuno.amm.fees import swap_fee
from zuno.amm.integers import MAX_UINT256, Q128
from zuno.amm.model import Block, PoolKey, PoolState
from zuno.amm.pool import Pool
from zuno.amm.ticks import MAX_SQRT_PRICE, MIN_SQRT_PRICE
from zuno.kernel.text import Token
from zuno.kernel.units import Address, HexId, Liquidity, Pips, Seconds, SqrtPriceX96, Tick, Wei
from zuno.lp.model.ballot import CandidateKind, Carry, Cost, PrepSwap
from zuno.lp.model.debate import FeeWindow
from zuno.lp.model.history import GrowthSample, SwapEvent
from zuno.lp.model.market import GasQuote
from zuno.lp.model.plan import MEASURED_GAS, StepKind
from zuno.lp.rules.carry import cost_of, lvr_hour_token1, steps_for
from zuno.lp.rules.fee_yield import (
    DAY,
    WEEK,
    fee_window,
    fees_hour_token1,
    find_sample,
    growth_of_swaps,
    reach_of,
)
from zuno.lp.rules.lvr import lvr_token1

Q96 = 1 << 96
PRICE_4 = 2 * Q96
"""√4: four token1 for one token0."""
SWAP = PrepSwap(True, 100, 390, 1, Fraction(4), Fraction(6), PRICE_4, False)
GWEI = Wei(10**9)
MOVES = (CandidateKind.WIDEN, CandidateKind.TIGHTEN, CandidateKind.SHIFT)

liquidities = st.integers(1, 10**24)


A_WEEK = FeeWindow(Q128 // 1000, Q128 // 500, WEEK, "7 d")


def fees(
    window: FeeWindow | None = A_WEEK,
    liquidity: int = 10**6,
    pool: int = 10**9,
    others: int = 10**9,
) -> Fraction | None:
    """Of 24 h in range."""
    hour = fees_hour_token1(
        window, sqrt_price_x96=PRICE_4, liquidity=liquidity, pool_liquidity=pool, others_liquidity=others
    )
    return None if hour is None else 24 * hour


def test_a_week_of_growth_is_seven_days_of_fees_in_token1() -> None:
    window = FeeWindow(7 * Q128, 14 * Q128, WEEK, "7 d")
    # Per unit of liquidity and day: 1 token0 at 4, and 2 token1. Half the pool.
    assert fees(window, liquidity=10, pool=10, others=10) == 10 * 6 * Fraction(1, 2)


def test_holding_what_is_already_there_dilutes_nothing() -> None:
    whole = fees(liquidity=10**6, pool=10**9, others=10**9 - 10**6)
    assert whole is not None
    assert whole == 10**6 * Fraction(4 * (Q128 // 1000) + Q128 // 500, Q128) / 7


def test_unknown_growth_is_not_zero() -> None:
    assert fees(None) is None
    assert fees(pool=0, others=0) is None
    assert fees(liquidity=0) == 0


@given(liquidities, liquidities)
def test_more_liquidity_earns_more_but_ever_less_per_unit(least: int, more: int) -> None:
    few, many = (fees(liquidity=amount) for amount in (least, least + more))
    assert few is not None
    assert many is not None
    assert few <= many
    assert few / least >= many / (least + more)
    total = fees(liquidity=1, others=0)
    assert total is not None
    assert many <= total * 10**9, "nobody earns more than the whole pool did"


def test_growth_that_wrapped_round_is_still_a_difference() -> None:
    then = GrowthSample(Seconds(0), MAX_UINT256 - 4, 7)
    now = GrowthSample(Seconds(DAY), 5, 7)
    assert fee_window(then, now, "24 h") == FeeWindow(10, 0, DAY, "24 h")
    with pytest.raises(ValueError, match="length"):
        fee_window(now, now, "nothing")


def samples_of(*ages: int) -> list[GrowthSample]:
    return [GrowthSample(Seconds(10**9 - age), 0, 0) for age in ages]


@pytest.mark.parametrize(
    ("ages", "wanted", "seconds"),
    [
        ((WEEK,), WEEK, WEEK),
        ((WEEK + 9, WEEK - 5, DAY), WEEK, WEEK - 5),
        ((WEEK + 5, WEEK - 5), WEEK, WEEK + 5),
        ((WEEK + WEEK // 8,), WEEK, WEEK + WEEK // 8),
        ((DAY - DAY // 8,), DAY, DAY - DAY // 8),
    ],
)
def test_our_own_sample_nearest_to_the_wanted_moment_opens_the_window(
    ages: tuple[int, ...], wanted: int, seconds: int
) -> None:
    found = find_sample(samples_of(*ages), 10**9 - wanted, reach_of(wanted))
    assert found is not None
    assert found.at == 10**9 - seconds


@pytest.mark.parametrize("ages", [(), (0,), (3 * DAY,), (WEEK + WEEK // 8 + 1,), (WEEK - WEEK // 8 - 1,)])
def test_no_other_window_is_made_up(ages: tuple[int, ...]) -> None:
    for wanted in (WEEK, DAY):
        assert find_sample(samples_of(*ages), 10**9 - wanted, reach_of(wanted)) is None


def test_lvr_is_a_quarter_of_the_variance_of_the_value_it_stands_on() -> None:
    assert lvr_token1(1000, PRICE_4, 0.01) == pytest.approx(0.01 / 4 * 1000 * 2)
    # A full-range position is worth 2·L·√P, so LVR is σ²/8 of it: the textbook figure.
    assert lvr_token1(1000, PRICE_4, 0.01) / (2 * 1000 * 2) == pytest.approx(0.01 / 8)


def test_lvr_of_an_hour_is_unknown_without_a_variance() -> None:
    hour = lvr_hour_token1(1000, PRICE_4, 0.01)
    assert hour is not None
    assert float(hour) == pytest.approx(5 / 24)
    assert lvr_hour_token1(1000, PRICE_4, None) is None
    assert lvr_hour_token1(0, PRICE_4, None) == 0


def test_the_steps_of_every_kind() -> None:
    approve = (StepKind.APPROVE_PERMIT2, StepKind.PERMIT2_APPROVE)
    assert steps_for(CandidateKind.HOLD, None, 2) == ()
    assert steps_for(CandidateKind.CLOSE, None, 2) == (StepKind.BURN,)
    assert steps_for(CandidateKind.OPEN, None, 1) == (*approve, StepKind.MINT)
    assert steps_for(CandidateKind.OPEN, SWAP, 0) == (StepKind.SWAP_AND_MINT,)
    assert steps_for(CandidateKind.OPEN, SWAP, 1, wraps=True) == (StepKind.WRAP, *approve, StepKind.SWAP_AND_MINT)
    for kind in MOVES:
        assert steps_for(kind, None, 2) == (StepKind.BURN_AND_MINT,)
        assert steps_for(kind, SWAP, 2) == (StepKind.BURN, *approve, *approve, StepKind.SWAP_AND_MINT)


def test_cost_is_gas_and_swap_apart() -> None:
    gas = GasQuote(GWEI, GWEI)
    cost = cost_of([StepKind.BURN, StepKind.SWAP_AND_MINT], gas=gas, native_token1=Fraction(1, 10**9), prep=SWAP)
    assert cost.gas_units == MEASURED_GAS[StepKind.BURN] + MEASURED_GAS[StepKind.SWAP_AND_MINT] == 594_575
    assert cost.gas_wei == 594_575 * 2 * GWEI
    assert cost.gas_token1 == 594_575 * 2
    assert (cost.swap_fee_token1, cost.impact_token1) == (4, 6)
    assert cost.total_token1 == 594_575 * 2 + 10
    assert cost.label == "measured table"


def test_a_rollup_charges_for_bytes_too() -> None:
    plain = cost_of([StepKind.MINT], gas=GasQuote(GWEI, Wei(0)), native_token1=Fraction(1)).gas_wei
    rollup = cost_of([StepKind.MINT], gas=GasQuote(GWEI, Wei(0), Wei(7)), native_token1=Fraction(1)).gas_wei
    assert plain is not None
    assert rollup == plain + 7 * (1060 + 120)


@pytest.mark.parametrize(("gas", "native"), [(None, Fraction(1)), (GasQuote(GWEI, GWEI), None)])
def test_gas_that_cannot_be_priced_is_unknown_not_free(gas: GasQuote | None, native: Fraction | None) -> None:
    cost = cost_of([StepKind.BURN], gas=gas, native_token1=native)
    assert cost.gas_token1 is None
    assert cost.total_token1 is None
    nothing = cost_of([], gas=gas, native_token1=native)
    assert nothing.total_token1 == 0, "doing nothing is free whatever gas costs"


def carry(fees24h: int | None, lvr24h: int | None, gas: int | None) -> Carry:
    def known(value: int | None) -> Fraction | None:
        return None if value is None else Fraction(value)

    cost = Cost((), 0, None, known(gas), Fraction(0), Fraction(0), "")
    return Carry(known(fees24h), known(lvr24h), cost)


def test_net() -> None:
    assert carry(50, 26, 3).net24h_token1 == 24
    assert carry(None, 26, 3).net24h_token1 is None


def test_gas_yield() -> None:
    assert carry(50, 0, 25).gas_yield == Fraction(1, 2)
    for unknown in (carry(0, 0, 25), carry(None, 0, 25), carry(50, 0, None)):
        assert unknown.gas_yield is None
    assert math.isclose(float(carry(3, 0, 1).gas_yield or 0), 1 / 3)


# ── fee growth told by swaps ──────────────────────────────────────────────────────────────────────────────────────

WIDE = (-60_000, 60_000)
NARROW = (-600, 600)


def traded(
    pool: Pool, trades: list[tuple[bool, int]], fee_of: Callable[[bool], int]
) -> tuple[list[SwapEvent], tuple[int, int]]:
    """The swaps as their events tell them, and what the state shows of those after the first."""
    seen, start = [], (0, 0)
    for zero_for_one, amount in trades:
        limit = MIN_SQRT_PRICE + 1 if zero_for_one else MAX_SQRT_PRICE - 1
        result = pool.swap(zero_for_one, -amount, limit)
        seen.append(SwapEvent(-result.amount0, -result.amount1, pool.liquidity, fee_of(zero_for_one)))
        if len(seen) == 1:
            start = (pool.fee_growth_global0_x128, pool.fee_growth_global1_x128)
    return seen, (pool.fee_growth_global0_x128 - start[0], pool.fee_growth_global1_x128 - start[1])


def state_of(pool: Pool, fee: int) -> PoolState:
    key = PoolKey(Address("0x" + "01" * 20), Address("0x" + "02" * 20), Pips(fee), 60)
    token0, token1 = (Token(currency, "T", 18, verified=True) for currency in (key.currency0, key.currency1))
    slot0 = pool.slot0
    return PoolState(
        *(HexId("0x" + "ab" * 32), key, token0, token1, SqrtPriceX96(slot0.sqrt_price_x96), Tick(slot0.tick)),
        *(slot0.protocol_fee, Pips(slot0.lp_fee), Liquidity(pool.liquidity), 0, 0, NOW_BLOCK),
    )


NOW_BLOCK = Block(9, HexId("0x" + "09" * 32), Seconds(10**9))
trades_made = st.lists(st.tuples(st.booleans(), st.integers(10**12, 10**17)), min_size=2, max_size=12)


@pytest.mark.slow
@settings(max_examples=examples(60))
@given(trades_made, st.sampled_from([100, 500, 3000]), st.integers(0, 1000), st.integers(0, 1000))
def test_swaps_within_one_stretch_of_liquidity_tell_the_growth_to_the_rounding(
    trades: list[tuple[bool, int]], fee: int, protocol0: int, protocol1: int
) -> None:
    """Whatever the protocol took then: its share is read from the events, and today's is another."""
    pool = Pool.initialize(fee, 60, Q96)
    pool.modify_liquidity("0x01", *WIDE, 10**20, 0)
    pool.set_protocol_fee(protocol0, protocol1)
    seen, grown = traded(pool, trades, lambda down: swap_fee(protocol0 if down else protocol1, fee))
    pool.set_protocol_fee(0, 1000)
    *told, uneven = growth_of_swaps(seen, state_of(pool, fee))
    assert uneven == 0
    for side, (said, true) in enumerate(zip(told, grown, strict=True)):
        rounding = len(trades) * 3 * Q128 // 10**20
        share, pip = (protocol0, protocol1)[side], 0
        if swap_fee(share + 1, fee) == swap_fee(share, fee):  # the event cannot tell these two apart
            pip = sum(amount for down, amount in trades if down is not bool(side)) * Q128 // 10**20 // 10**6
        assert -rounding - pip <= said - true <= rounding


def test_a_protocol_share_that_an_event_cannot_tell_is_todays_or_the_larger() -> None:
    assert swap_fee(999, 3000) == swap_fee(1000, 3000) == 3997
    paid = 10**18
    swaps = [SwapEvent(paid, -paid, 10**20, 3997)] * 2
    for today, share in ((999, 999), (1000, 1000), (0, 1000)):
        pool = Pool.initialize(3000, 60, Q96)
        pool.set_protocol_fee(today, 0)
        growth, _, _ = growth_of_swaps(swaps, state_of(pool, 3000))
        assert growth == paid * (3997 - share) // 10**6 * Q128 // 10**20


def test_swaps_across_ticks_are_counted_and_shared_by_the_mean() -> None:
    pool = Pool.initialize(3000, 60, Q96)
    pool.modify_liquidity("0x01", *WIDE, 10**20, 0)
    pool.modify_liquidity("0x01", *NARROW, 10**21, 1)
    trades = [(True, 10**18), (True, 10**20), (False, 10**20), (False, 10**18)]
    seen, grown = traded(pool, trades, lambda down: 3000)
    *told, uneven = growth_of_swaps(seen, state_of(pool, 3000))
    assert uneven == 2
    for said, true, paid in zip(told, grown, (10**20, 10**20), strict=True):
        assert said != true
        # Between all of it falling to the thick and all of it to the thin liquidity.
        assert paid * 3 // 1000 * Q128 // (11 * 10**20) < said < (paid + 10**18) * 3 // 1000 * Q128 // 10**20
    assert growth_of_swaps(seen[:1], state_of(pool, 3000)) == (0, 0, 0)


def test_a_swap_that_ended_in_no_liquidity_is_shared_by_where_it_began() -> None:
    pool = state_of(Pool.initialize(3000, 60, Q96), 3000)
    empty = [SwapEvent(10**18, -(10**17), 10**18, 3000), SwapEvent(10**18, -(10**17), 0, 3000)]
    assert growth_of_swaps(empty, pool) == (3 * 10**15 * Q128 // 10**18, 0, 1)
    assert growth_of_swaps([empty[1], empty[1]], pool) == (0, 0, 0)
