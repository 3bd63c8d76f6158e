"""The pool by example: its names, its signs, its quirks and its refusals."""

from __future__ import annotations

from typing import Any

import pytest

from zuno.amm.fees import DYNAMIC_FEE_FLAG
from zuno.amm.liquidity import max_liquidity_per_tick
from zuno.amm.pool import Pool, PositionInfo, PositionKey, Slot0
from zuno.amm.ticks import (
    MAX_SQRT_PRICE,
    MAX_TICK,
    MIN_SQRT_PRICE,
    MIN_TICK,
    max_usable_tick,
    min_usable_tick,
    sqrt_price_at_tick,
)
from zuno.kernel import errors

ALICE = "0x" + "a1" * 20
BOB = "0x" + "b0" * 20
ONE = 1 << 96
DOWN, UP = MIN_SQRT_PRICE + 1, MAX_SQRT_PRICE - 1


def pool_with_liquidity(fee: int = 3000, spacing: int = 60, liquidity: int = 10**21) -> Pool:
    pool = Pool.initialize(fee, spacing, ONE)
    pool.modify_liquidity(ALICE, -100 * spacing, 100 * spacing, liquidity, 0)
    return pool


def test_a_new_pool_is_empty() -> None:
    pool = Pool.initialize(fee=3000, tick_spacing=60, sqrt_price_x96=ONE)
    assert pool.slot0 == Slot0(sqrt_price_x96=ONE, tick=0, protocol_fee=0, lp_fee=3000)
    assert (pool.liquidity, pool.fee_growth_global0_x128, pool.fee_growth_global1_x128) == (0, 0, 0)
    assert not pool.ticks
    assert not pool.positions


def test_paid_in_is_negative_and_fees_are_in_the_amounts() -> None:
    pool = pool_with_liquidity()
    result = pool.swap(zero_for_one=True, amount_specified=-(10**18), sqrt_price_limit_x96=DOWN)
    assert result.amount0 == -(10**18)
    assert 0 < result.amount1 < 10**18
    assert result.fee_amount == 3 * 10**15
    owed = pool.fees_owed(ALICE, -6000, 6000, 0)
    assert 3 * 10**15 - 2 <= owed[0] <= 3 * 10**15
    assert owed[1] == 0
    change = pool.modify_liquidity(owner=ALICE, tick_lower=-6000, tick_upper=6000, liquidity_delta=0, salt=0)
    assert (change.amount0, change.amount1) == (change.fees0, change.fees1) == owed
    assert pool.fees_owed(ALICE, -6000, 6000, 0) == (0, 0)


def test_exact_output_pays_out_what_was_asked() -> None:
    pool = pool_with_liquidity()
    result = pool.swap(False, 10**18, UP)
    assert result.amount0 == 10**18
    assert result.amount1 < -(10**18)


def test_the_owners_case_does_not_matter_but_the_salt_does() -> None:
    pool = pool_with_liquidity()
    assert pool.position(ALICE.upper().replace("0X", "0x"), -6000, 6000, 0).liquidity == 10**21
    assert pool.position(ALICE, -6000, 6000, 1).liquidity == 0
    pool.modify_liquidity(ALICE.upper(), -6000, 6000, 5, 1)
    assert pool.position(ALICE, -6000, 6000, 1).liquidity == 5
    assert set(pool.positions) == {PositionKey(ALICE, -6000, 6000, 0), PositionKey(ALICE, -6000, 6000, 1)}


def test_two_salts_of_one_range_share_the_fees_by_liquidity() -> None:
    pool = Pool.initialize(3000, 60, ONE)
    pool.modify_liquidity(ALICE, -600, 600, 10**20, 1)
    pool.modify_liquidity(ALICE, -600, 600, 3 * 10**20, 2)
    pool.swap(True, -(10**17), DOWN)
    first, second = pool.fees_owed(ALICE, -600, 600, 1)[0], pool.fees_owed(ALICE, -600, 600, 2)[0]
    assert first > 0
    assert 0 <= second - 3 * first <= 3


def test_a_fall_that_stops_on_a_tick_stores_the_tick_below() -> None:
    pool = pool_with_liquidity()
    pool.modify_liquidity(BOB, -120, 120, 10**18, 0)
    price = sqrt_price_at_tick(-120)
    pool.swap(True, -(10**21), price)
    assert pool.slot0[:2] == (price, -121)
    assert pool.liquidity == 10**21, "and has already left the range above it"
    pool.swap(False, -1, UP)
    assert pool.liquidity == 10**21 + 10**18


def test_a_rise_that_stops_on_a_tick_stores_that_tick() -> None:
    pool = pool_with_liquidity()
    price = sqrt_price_at_tick(120)
    pool.swap(False, -(10**21), price)
    assert pool.slot0[:2] == (price, 120)


def test_the_edge_of_a_bitmap_word_counts_as_a_tick_it_stops_on() -> None:
    pool = Pool.initialize(3000, 1, sqrt_price_at_tick(300))
    pool.modify_liquidity(ALICE, 0, 1000, 10**18, 0)
    pool.swap(True, -(10**21), sqrt_price_at_tick(256))
    assert pool.slot0.tick == 255
    pool.swap(True, -(10**21), sqrt_price_at_tick(200))
    assert pool.slot0.tick == 200, "an ordinary tick does not"


def test_price_passes_through_emptiness_for_free() -> None:
    pool = Pool.initialize(3000, 60, ONE)
    result = pool.swap(True, -(10**18), sqrt_price_at_tick(-500_000))
    assert (result.amount0, result.amount1) == (0, 0)
    assert pool.slot0.tick == -500_000


def test_protocol_fees_are_packed_and_leave_the_fee() -> None:
    pool = pool_with_liquidity()
    pool.set_protocol_fee(zero_for_one=1000, one_for_zero=500)
    assert pool.slot0.protocol_fee == 500 << 12 | 1000
    result = pool.swap(True, -(10**18), DOWN)
    assert result.protocol_fee_amount == pool.protocol_fees_accrued0 == 10**15
    assert result.fee_amount == 3_997 * 10**12  # 1000 + 3000 - 1000·3000/10^6 pips
    pool.swap(False, -(10**18), UP)
    assert pool.protocol_fees_accrued1 == 5 * 10**14


def test_without_an_lp_fee_the_protocol_takes_all_of_it() -> None:
    pool = pool_with_liquidity(fee=0)
    pool.set_protocol_fee(1000, 1000)
    result = pool.swap(True, -999_999_999, DOWN)
    assert result.protocol_fee_amount == result.fee_amount > 0
    assert pool.fee_growth_global0_x128 == 0


def test_a_dynamic_fee_starts_at_nothing_and_can_be_set() -> None:
    pool = pool_with_liquidity(fee=DYNAMIC_FEE_FLAG)
    assert pool.slot0.lp_fee == 0
    assert pool.swap(True, -(10**18), DOWN).fee_amount == 0
    pool.set_lp_fee(10_000)
    assert pool.swap(True, -(10**18), DOWN).fee_amount == 10**16


def test_a_burned_pool_keeps_no_ticks() -> None:
    pool = pool_with_liquidity()
    pool.swap(True, -(10**18), DOWN)
    pool.modify_liquidity(ALICE, -6000, 6000, -(10**21), 0)
    assert not pool.ticks
    assert pool.liquidity == 0
    assert pool._words == {}
    assert pool.position(ALICE, -6000, 6000, 0).liquidity == 0


def test_fee_growth_wraps_round_without_losing_a_wei() -> None:
    """With one unit of liquidity and a fee of 100 %, two large swaps carry the growth past 2^256."""
    pool = pool_with_liquidity(fee=1_000_000, liquidity=1)
    paid = (1 << 127) - 1
    pool.swap(True, -paid, DOWN)
    assert pool.fees_owed(ALICE, -6000, 6000, 0) == (paid, 0)
    before = pool.fee_growth_global0_x128
    pool.modify_liquidity(ALICE, -6000, 6000, 0, 0)
    pool.swap(True, -paid, DOWN)
    pool.modify_liquidity(ALICE, -6000, 6000, 0, 0)
    pool.swap(True, -paid, DOWN)
    assert pool.fee_growth_global0_x128 < before
    assert pool.fees_owed(ALICE, -6000, 6000, 0) == (paid, 0)


def test_the_full_range_reaches_both_ends() -> None:
    pool = Pool.initialize(500, 10, ONE)
    pool.modify_liquidity(ALICE, min_usable_tick(10), max_usable_tick(10), 10**12, 0)
    pool.swap(True, -((1 << 127) - 1), DOWN)
    assert pool.slot0.sqrt_price_x96 == DOWN
    pool.swap(False, -((1 << 127) - 1), UP)
    assert pool.slot0.sqrt_price_x96 == UP


REFUSALS: list[tuple[str, str, tuple[Any, ...]]] = [
    ("SwapAmountCannotBeZero", "swap", (True, 0, DOWN)),
    ("PriceLimitAlreadyExceeded", "swap", (True, -1, ONE)),
    ("PriceLimitAlreadyExceeded", "swap", (False, -1, ONE)),
    ("PriceLimitAlreadyExceeded", "swap", (True, -1, 1 << 200)),
    ("PriceLimitAlreadyExceeded", "swap", (False, -1, -1)),
    ("PriceLimitOutOfBounds", "swap", (True, -1, MIN_SQRT_PRICE)),
    ("PriceLimitOutOfBounds", "swap", (False, -1, MAX_SQRT_PRICE)),
    ("SafeCastOverflow", "swap", (True, 1 << 255, DOWN)),
    ("SafeCastOverflow", "swap", (True, -(1 << 255) - 1, DOWN)),
    ("TicksMisordered", "modify_liquidity", (ALICE, 60, 60, 1, 0)),
    ("TicksMisordered", "modify_liquidity", (ALICE, 120, 60, 1, 0)),
    ("TickLowerOutOfBounds", "modify_liquidity", (ALICE, MIN_TICK - 1, 60, 1, 0)),
    ("TickUpperOutOfBounds", "modify_liquidity", (ALICE, 60, MAX_TICK + 1, 1, 0)),
    ("TickMisaligned", "modify_liquidity", (ALICE, 61, 120, 1, 0)),
    ("TickMisaligned", "modify_liquidity", (ALICE, 60, 121, 1, 0)),
    ("TickLiquidityOverflow", "modify_liquidity", (ALICE, 60, 120, max_liquidity_per_tick(60) + 1, 0)),
    ("TickLiquidityOverflow", "modify_liquidity", (ALICE, -6000, 120, max_liquidity_per_tick(60), 0)),
    ("Panic", "modify_liquidity", (ALICE, -6000, 120, (1 << 127) - 1, 0)),
    ("SafeCastOverflow", "modify_liquidity", (ALICE, 60, 120, 1 << 127, 0)),
    ("SafeCastOverflow", "modify_liquidity", (ALICE, -6000, 6000, -(10**21) - 1, 0)),
    ("SafeCastOverflow", "modify_liquidity", (BOB, -6000, 6000, -1, 0)),
    ("SafeCastOverflow", "modify_liquidity", (ALICE, -6000, 6000, 1, 1 << 256)),
    ("SafeCastOverflow", "modify_liquidity", (ALICE, -6000, 6000, 1, -1)),
    ("CannotUpdateEmptyPosition", "modify_liquidity", (BOB, -6000, 6000, 0, 0)),
    ("CannotUpdateEmptyPosition", "modify_liquidity", (ALICE, 1, 2, 0, 0)),
    ("UsageError", "modify_liquidity", ("alice", -6000, 6000, 1, 0)),
    ("UsageError", "modify_liquidity", ("0x" + "a1" * 21, -6000, 6000, 1, 0)),
    ("ProtocolFeeTooLarge", "set_protocol_fee", (1001, 0)),
    ("ProtocolFeeTooLarge", "set_protocol_fee", (0, 1001)),
    ("SafeCastOverflow", "set_protocol_fee", (-1, 0)),
    ("UnauthorizedDynamicLPFeeUpdate", "set_lp_fee", (3000,)),
]


@pytest.mark.parametrize(("error", "method", "arguments"), REFUSALS)
def test_a_refusal_has_the_contracts_name_and_leaves_no_trace(
    error: str, method: str, arguments: tuple[Any, ...]
) -> None:
    pool = pool_with_liquidity()
    before = pool.copy()
    with pytest.raises(getattr(errors, error)):
        getattr(pool, method)(*arguments)
    assert pool == before


def test_a_swap_refused_after_its_last_step_leaves_no_trace() -> None:
    """The amounts are judged once the price has travelled, ticks have been crossed and fees have grown."""
    pool = Pool.initialize(3000, 200, ONE)
    pool.modify_liquidity(ALICE, 400_000, 410_000, 1 << 97, 0)
    pool.modify_liquidity(BOB, 410_000, 430_000, 1 << 100, 0)
    before = pool.copy()
    with pytest.raises(errors.SafeCastOverflow):
        pool.swap(False, -(1 << 200), UP)
    assert pool == before
    assert pool.swap(False, -(1 << 100), UP).ticks_crossed == 1


def test_all_of_the_input_as_fee_leaves_exact_output_impossible() -> None:
    pool = pool_with_liquidity(fee=1_000_000)
    with pytest.raises(errors.InvalidFeeForExactOut):
        pool.swap(True, 1, DOWN)
    assert pool.swap(True, -5, DOWN).amount0 == -5


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((3000, 0, ONE), errors.TickSpacingTooSmall),
        ((3000, 32_768, ONE), errors.TickSpacingTooLarge),
        ((1_000_001, 60, ONE), errors.LPFeeTooLarge),
        ((DYNAMIC_FEE_FLAG + 1, 60, ONE), errors.LPFeeTooLarge),
        ((-1, 60, ONE), errors.SafeCastOverflow),
        ((3000, 60, MIN_SQRT_PRICE - 1), errors.InvalidSqrtPrice),
        ((3000, 60, MAX_SQRT_PRICE), errors.InvalidSqrtPrice),
    ],
)
def test_an_impossible_pool_is_refused(arguments: tuple[int, int, int], error: type[Exception]) -> None:
    with pytest.raises(error):
        Pool.initialize(*arguments)


def test_a_dynamic_fee_above_everything_is_refused() -> None:
    pool = Pool.initialize(DYNAMIC_FEE_FLAG, 60, ONE)
    with pytest.raises(errors.LPFeeTooLarge):
        pool.set_lp_fee(1_000_001)


@pytest.mark.parametrize("wrong", [1.5, "1", None])
def test_numbers_that_are_no_integers_raise_type_error(wrong: Any) -> None:
    pool = pool_with_liquidity()
    before = pool.copy()
    for method, arguments in (
        ("swap", (True, wrong, DOWN)),
        ("swap", (True, -1, wrong)),
        ("modify_liquidity", (ALICE, wrong, 60, 1, 0)),
        ("modify_liquidity", (ALICE, -60, wrong, 1, 0)),
        ("modify_liquidity", (ALICE, -60, 60, wrong, 0)),
        ("modify_liquidity", (ALICE, -60, 60, 1, wrong)),
        ("set_protocol_fee", (wrong, 0)),
    ):
        with pytest.raises(TypeError):
            getattr(pool, method)(*arguments)
    with pytest.raises(TypeError):
        pool.modify_liquidity(12, -60, 60, 1, 0)  # type: ignore[arg-type]
    assert pool == before


def test_a_copy_is_another_pool() -> None:
    pool = pool_with_liquidity()
    twin = pool.copy()
    assert twin == pool
    assert twin is not pool
    twin.swap(True, -(10**18), DOWN)
    twin.modify_liquidity(BOB, -60, 60, 1, 0)
    assert twin != pool
    assert pool == pool_with_liquidity()
    assert pool != "a pool"


def test_views_cannot_be_written() -> None:
    pool = pool_with_liquidity()
    with pytest.raises(TypeError):
        pool.ticks[0] = pool.ticks[-6000]  # type: ignore[index]
    with pytest.raises(TypeError):
        pool.positions[PositionKey(BOB, 0, 60, 0)] = PositionInfo(1, 0, 0)  # type: ignore[index]


def test_a_pool_of_its_ticks_swaps_as_the_one_they_were_read_from() -> None:
    pool = pool_with_liquidity()
    pool.swap(True, -(10**18), DOWN)
    assert pool.position(ALICE, -6000, 6000, 0) == PositionInfo(10**21, 0, 0)
    assert "Pool(fee=3000" in repr(pool)
    net = {tick: info.liquidity_net for tick, info in pool.ticks.items()}
    read = Pool.from_depth(3000, 60, pool.slot0, pool.liquidity, net)
    assert read.ticks.keys() == pool.ticks.keys()
    assert read.swap(True, -(10**18), DOWN) == pool.swap(True, -(10**18), DOWN)


@pytest.mark.parametrize(
    "damage",
    [
        {"liquidity": -5},
        {"tick_spacing": 0},
        {"net": {1: 1}},
        {"net": {60: 1 << 127}},
        {"slot0": Slot0(ONE, 7, 0, 3000)},
        {"slot0": Slot0(0, 0, 0, 3000)},
        {"slot0": Slot0(ONE, 0, 0, 1_000_001)},
        {"slot0": Slot0(ONE, 0, 0xFFF, 3000)},
    ],
)
def test_a_damaged_state_is_malformed(damage: dict[str, Any]) -> None:
    state = {"fee": 3000, "tick_spacing": 60, "slot0": Slot0(ONE, 0, 0, 3000), "liquidity": 5, "net": {60: -5, -60: 5}}
    assert Pool.from_depth(**state).liquidity == 5  # type: ignore[arg-type]
    with pytest.raises(errors.Malformed):
        Pool.from_depth(**state | damage)  # type: ignore[arg-type]


def test_a_swap_may_pay_and_receive_to_the_last_unit_of_int128() -> None:
    """int128 reaches from −2^127, which may be paid, to 2^127 − 1, which may be received."""
    cheap = Pool.initialize(0, 60, sqrt_price_at_tick(-600_000))
    cheap.modify_liquidity(ALICE, -887_220, -600_000, 1 << 112, 0)
    low = sqrt_price_at_tick(-887_000)
    assert cheap.copy().swap(True, -(1 << 127), low).amount0 == -(1 << 127)
    with pytest.raises(errors.SafeCastOverflow):
        cheap.swap(True, -(1 << 127) - 1, low)
    dear = Pool.initialize(0, 60, sqrt_price_at_tick(600_000))
    for salt in range(40):
        dear.modify_liquidity(ALICE, 0, 600_000, 1 << 82, salt)
    assert dear.copy().swap(True, (1 << 127) - 1, low).amount1 == (1 << 127) - 1
    with pytest.raises(errors.SafeCastOverflow):
        dear.swap(True, 1 << 127, low)
