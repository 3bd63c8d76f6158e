"""What each plan consists of: its steps in their order, read from their bytes, and when there is no plan at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from zuno.amm.ticks import sqrt_price_at_tick
from zuno.kernel.errors import Refused, UsageError
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Amount, Liquidity, Seconds, SqrtPriceX96, Tick
from zuno.lp.model.ballot import CandidateKind
from zuno.lp.model.chains import SwapStruct
from zuno.lp.model.plan import (
    Allowances,
    Allows,
    Bounds,
    Flow,
    Grant,
    Holds,
    Owns,
    Permits,
    Step,
    StepKind,
    TickWithin,
)
from zuno.lp.plan import calldata, calls, minting, positions
from zuno.lp.plan.approvals import build_revocations
from zuno.lp.plan.decoding import decode
from zuno.lp.plan.inventory import (
    GUARD_LIMIT,
    NO_ROOM_NOTE,
    UNGUARDED_NOTE,
    burn_proceeds,
    market_without_us,
    min_swap_output,
    plan_swap_and_deposit,
)
from zuno.lp.plan.sizing import burn_holds_price, most_used, size_mint
from zuno.lp.rules.carry import steps_for

APPROVE, PERMIT = StepKind.APPROVE_PERMIT2, StepKind.PERMIT2_APPROVE


def said(step: Step) -> Any:
    return decode(step.to, step.value, step.data, SwapStruct.FIVE_FIELDS).call


def kinds(steps: tuple[Step, ...]) -> list[StepKind]:
    return [step.kind for step in steps]


@pytest.fixture
def near(scene: Any) -> Any:
    return scene.ticks(-201_600, -200_400)


def test_the_bounds_are_the_stated_ones() -> None:
    assert Bounds() == Bounds(slippage_bps=50, tick_drift=50, deadline_seconds=900, permit2_seconds=1800)


@pytest.mark.parametrize(
    "wrong",
    [{"slippage_bps": -1}, {"slippage_bps": 10_000}, {"tick_drift": -1}, {"deadline_seconds": 1801}],
)
def test_bounds_that_bind_nothing_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        Bounds(**wrong)


def test_a_close_says_whose_what_and_until_when(scene: Any, near: Any) -> None:
    held = scene.position_in(scene.native, near)
    (step,) = positions.close(scene.terms(), held).steps
    call = said(step)
    burn, *closes = call.actions
    assert isinstance(burn, calls.Burn)
    assert burn.token_id == held.id
    assert 0 < burn.amount0_min < held.amount0
    assert 0 < burn.amount1_min < held.amount1
    assert closes == [calls.CloseCurrency(NATIVE), calls.CloseCurrency(scene.usdc.address)]
    assert call.deadline == step.deadline == scene.now + 900
    assert step.needs == (
        Owns(held.id, held.liquidity),
        TickWithin(scene.native.id, scene.tick - 50, scene.tick + 50),
    )
    assert step.least_in == (
        Flow(NATIVE, burn.amount0_min + held.fees0),
        Flow(scene.usdc.address, burn.amount1_min + held.fees1),
    )


def test_a_rebalance_burns_mints_and_closes(scene: Any, near: Any) -> None:
    held = replace(scene.position_in(scene.native, near), fees0=Amount(0), fees1=Amount(0))
    wide = scene.ticks(-202_200, -199_800)
    plan = positions.rebalance(scene.terms(), held, wide)
    burn, mint, *closes = said(plan.steps[0]).actions
    assert (burn.token_id, mint.key, mint.range, mint.owner) == (held.id, scene.native.key, wide, scene.wallet)
    assert len(closes) == 2
    assert plan.steps[0].value == 0
    assert not [need for need in plan.steps[0].needs if isinstance(need, Holds | Allows | Permits)]


def test_a_two_step_rebalance_shows_its_second_half_and_cooks_it_from_what_was_paid(scene: Any, near: Any) -> None:
    gone = scene.position_in(scene.wrapped, scene.ticks(-199_980, -199_020), fees=(0, 0))
    plan = positions.rebalance(scene.terms(), gone, near)
    later = plan.later
    assert kinds(plan.steps) == [StepKind.BURN]
    assert later is not None
    assert kinds(later.preview) == [APPROVE, PERMIT, StepKind.SWAP_AND_MINT]
    paid0, paid1 = burn_proceeds(gone)
    assert positions.finish_rebalance(later, scene.terms(), scene.wrapped, paid0, paid1) == later.preview
    less = positions.finish_rebalance(later, scene.terms(), scene.wrapped, paid0 // 2, paid1 // 2)
    for whole, half in zip(later.preview[-1].most_out, less[-1].most_out, strict=True):
        assert half.currency == whole.currency
        assert half.amount <= whole.amount * 51 // 100


def test_the_second_half_promises_no_less_than_was_approved(scene: Any, near: Any) -> None:
    """A price that fell inside the drift must not lower the minimum once more."""
    gone = scene.position_in(scene.wrapped, scene.ticks(-199_980, -199_020))
    plan = positions.rebalance(scene.terms(), gone, near)
    assert plan.later is not None
    lower = replace(
        scene.wrapped,
        tick=Tick(scene.tick - 30),
        sqrt_price_x96=type(scene.wrapped.sqrt_price_x96)(scene.wrapped.sqrt_price_x96 * 9985 // 10_000),
    )
    steps = positions.finish_rebalance(plan.later, scene.terms(), lower, *burn_proceeds(gone))
    swap, back = (each for each in said(steps[-1]).commands[0].actions if isinstance(each, calls.SwapIn))
    assert Fraction(swap.amount_out_min, swap.amount_in) >= plan.later.least_rate
    assert plan.later.guard_rate is not None
    assert Fraction(back.amount_out_min, back.amount_in) >= plan.later.guard_rate
    with pytest.raises(UsageError):
        positions.finish_rebalance(plan.later, scene.terms(), scene.native, 1, 1)


def test_a_swap_is_quoted_without_the_liquidity_that_will_be_gone(scene: Any, near: Any) -> None:
    pool = replace(scene.wrapped, liquidity=Liquidity(2 * 10**15))
    half = scene.position_in(pool, near, 10**15)
    band = scene.ticks(-201_900, -200_940)
    later = positions.rebalance(scene.terms(), half, band).later
    assert later is not None
    alone, flattered = (
        plan_swap_and_deposit(market, band, *burn_proceeds(half), may_swap=True).prep
        for market in (market_without_us(pool, half), market_without_us(pool))
    )
    assert alone is not None
    assert flattered is not None
    assert later.least_rate == Fraction(min_swap_output(alone.amount_out, 50), alone.amount_in)
    assert later.least_rate < Fraction(min_swap_output(flattered.amount_out, 50), flattered.amount_in)


def test_a_second_half_that_needs_no_swap_swaps_a_little_for_its_bounds(scene: Any, near: Any) -> None:
    gone = scene.position_in(scene.wrapped, scene.ticks(-199_980, -199_020))
    later = positions.rebalance(scene.terms(), gone, near).later
    assert later is not None
    fits = plan_swap_and_deposit(market_without_us(scene.wrapped), near, 10**30, 3 * 10**9, may_swap=False)
    steps = positions.finish_rebalance(later, scene.terms(), scene.wrapped, fits.amount0, fits.amount1)
    assert steps[-1].kind is StepKind.SWAP_AND_MINT
    swap, back = (each for each in said(steps[-1]).commands[0].actions if isinstance(each, calls.SwapIn))
    assert (swap.zero_for_one, back.zero_for_one) == (later.zero_for_one, not later.zero_for_one)
    assert swap.amount_in <= (fits.amount0 if swap.zero_for_one else fits.amount1) // 5_000
    deserted = replace(scene.wrapped, liquidity=Liquidity(0))
    alone = positions.finish_rebalance(later, scene.terms(), deserted, fits.amount0, fits.amount1)
    assert alone[-1].kind is StepKind.MINT, "nobody is there to swap with"


@pytest.mark.parametrize("capital", [(10**18, 0), (0, 3 * 10**9), (10**15, 0), (0, 3_000_000)])
def test_the_swaps_and_the_mint_add_up(scene: Any, near: Any, capital: tuple[int, int]) -> None:
    """All that was brought is sent to PositionManager or swapped into it, and no more than the first swap pays is
    swapped back."""
    plan = minting.create(scene.terms(), scene.wrapped, near, *capital)
    call = said(plan.steps[-1])
    swapped, *sent, opened = call.commands
    swap, settle, back, *taken = swapped.actions
    settle0, settle1, mint, home = opened.actions
    assert (settle.payer_is_user, settle.amount) == (True, 0)
    assert (swap.zero_for_one, back.zero_for_one) == (capital[1] == 0, capital[1] > 0)
    assert swap.amount_in + sum(each.amount for each in sent) == sum(capital)
    assert 0 < back.amount_in * GUARD_LIMIT <= swap.amount_out_min
    assert back.amount_out_min > 0
    assert {each.recipient for each in (*taken, *sent)} == {scene.at.position_manager}
    assert {each.currency for each in taken} == {scene.weth.address, scene.usdc.address}
    assert (settle0.payer_is_user, settle1.payer_is_user) == (False, False)
    assert settle0.amount == settle1.amount == calldata.WHOLE_BALANCE
    assert (home.recipient, mint.owner) == (scene.wallet, scene.wallet)


@pytest.mark.parametrize(("decimals", "amount"), [(8, 10**7), (8, 10**5), (2, 10**5), (0, 1000)])
def test_what_is_swapped_back_is_on_the_card_or_nothing_is_swapped(scene: Any, decimals: int, amount: int) -> None:
    """Of a token with few decimals the least swap that tells the price is worth something."""
    pool = replace(
        scene.wrapped,
        token0=replace(scene.weth, decimals=decimals),
        sqrt_price_x96=SqrtPriceX96(sqrt_price_at_tick(6960)),
        tick=Tick(6960),
    )
    band = scene.ticks(6360, 7560)
    if amount < 10**6:
        with pytest.raises(Refused, match=UNGUARDED_NOTE):
            minting.create(scene.terms(), pool, band, amount, 0)
        return
    plan = minting.create(scene.terms(), pool, band, amount, 0)
    swap, back = (each for each in said(plan.steps[-1]).commands[0].actions if isinstance(each, calls.SwapIn))
    assert plan.leftover is not None
    idle = Fraction(back.amount_in, swap.amount_out_min)
    assert idle <= Fraction(1, 100)
    assert idle * 9 / 10 <= plan.leftover.share <= idle * 11 / 10


def test_a_swap_without_any_room_is_refused_where_it_is_planned(scene: Any, near: Any) -> None:
    exact = scene.terms(bounds=Bounds(slippage_bps=0))
    with pytest.raises(Refused, match=NO_ROOM_NOTE):
        minting.create(exact, scene.wrapped, near, 10**18, 0)
    with pytest.raises(Refused, match=UNGUARDED_NOTE):
        minting.create(scene.terms(), scene.wrapped, near, 10**10, 0)


def test_a_burn_holds_the_price_by_two_minima(scene: Any, near: Any) -> None:
    assert burn_holds_price(scene.position_in(scene.wrapped, near), 50)
    assert not burn_holds_price(scene.position_in(scene.wrapped, near, 10**5), 50), "one of them is nothing"


def test_a_move_near_the_edge_is_held_by_a_mint_of_fixed_size(scene: Any, near: Any) -> None:
    """The minima of a burn bound the price as long as its range covers the bounds, and no further."""
    pool = scene.wrapped
    held = scene.position_in(pool, near, fees=(0, 0))
    (inside,) = positions.rebalance(scene.terms(), held, scene.ticks(-202_200, -199_800)).steps
    assert [type(each) for each in said(inside).actions[:2]] == [calls.Burn, calls.MintFromDeltas]
    edging = scene.position_in(pool, scene.ticks(-201_000, -200_400), fees=(0, 0))
    (step,) = positions.rebalance(scene.terms(), edging, scene.ticks(-201_000, -200_340)).steps
    burn, mint, *closing = said(step).actions
    assert [type(each) for each in closing] == [calls.CloseCurrency] * 2
    assert burn.token_id == edging.id
    assert mint.liquidity > 0


@pytest.mark.parametrize("amount0", [0, 10**18])
def test_ether_is_in_the_value_and_comes_back(scene: Any, near: Any, amount0: int) -> None:
    (*_, step) = minting.create(scene.terms(), scene.native, near, amount0, 3 * 10**9).steps
    out = {flow.currency: flow.amount for flow in step.most_out}
    assert step.value == out.get(NATIVE, 0)
    if step.kind is StepKind.MINT:
        assert said(step).actions[-1] == calls.Sweep(NATIVE, scene.wallet)


def test_only_what_is_missing_is_allowed_and_no_more(scene: Any) -> None:
    wide = scene.ticks(-231_000, -171_000)
    bare = minting.create(scene.terms(), scene.wrapped, wide, 10**18, 3 * 10**9).steps
    assert kinds(bare) == [APPROVE, PERMIT, APPROVE, PERMIT, StepKind.MINT]
    out = {flow.currency: flow.amount for flow in bare[-1].most_out}
    assert said(bare[0]) == calls.Approve(scene.at.permit2, out[scene.weth.address])
    manager = scene.at.position_manager
    assert said(bare[1]) == calls.Permit(scene.weth.address, manager, out[scene.weth.address], scene.now + 1800)
    weth, usdc = scene.weth.address, scene.usdc.address
    plenty = Grant(out[weth], Seconds(scene.now + 900))
    some = Allowances(
        {weth: out[weth], usdc: out[usdc] - 1},
        {(weth, manager): plenty, (usdc, manager): Grant(10**18, Seconds(scene.now + 899))},
    )
    steps = minting.create(scene.terms(some), scene.wrapped, wide, 10**18, 3 * 10**9).steps
    assert kinds(steps) == [APPROVE, APPROVE, PERMIT, StepKind.MINT]
    assert [said(step).amount for step in steps[:3]] == [0, out[usdc], out[usdc]]
    elsewhere = Allowances({weth: out[weth], usdc: out[usdc]}, {(weth, scene.at.universal_router): plenty})
    assert kinds(minting.create(scene.terms(elsewhere), scene.wrapped, wide, 10**18, 3 * 10**9).steps) == [
        *(PERMIT, PERMIT, StepKind.MINT)
    ]


def test_what_is_left_of_allowances_is_taken_back(scene: Any) -> None:
    weth, usdc = scene.weth.address, scene.usdc.address
    manager, router = scene.at.position_manager, scene.at.universal_router
    left = Allowances({weth: 5, usdc: 0}, {(weth, router): Grant(3, scene.now), (usdc, manager): Grant(0, scene.now)})
    steps = build_revocations(scene.terms(left), (weth, usdc))
    assert [said(step) for step in steps] == [
        calls.Approve(scene.at.permit2, 0),
        calls.Permit(weth, router, 0, Seconds(0)),
    ]


def test_adding_is_paid_by_fees_first(scene: Any, near: Any) -> None:
    held = scene.position_in(scene.native, near, fees=(10**17, 5 * 10**9))
    (*_, step) = positions.add(scene.terms(), held, 10**18, 3 * 10**9).steps
    most = most_used(scene.native, near, (10**18, 3 * 10**9), 50)
    assert step.most_out == (Flow(NATIVE, most[0] - 10**17),)
    assert step.least_in == (Flow(scene.usdc.address, 5 * 10**9 - most[1]),)
    settled, _, taken, *_ = said(step).actions
    assert settled == calls.Settle(NATIVE, most[0] - 10**17, True)
    assert taken == calls.Take(scene.usdc.address, scene.wallet, 5 * 10**9 - most[1])


def test_an_addition_is_held_by_its_first_part_and_the_rest_follows_from_credit(scene: Any, near: Any) -> None:
    held = scene.position_in(scene.native, near, fees=(10**17, 5 * 10**8))
    (*_, step) = positions.add(scene.terms(), held, 10**18, 3 * 10**9).steps
    size = size_mint(scene.native.sqrt_price_x96, near, 10**18, 3 * 10**9, 50)
    most = most_used(scene.native, near, (10**18, 3 * 10**9), 50)
    assert step.value == most[0] - 10**17
    assert said(step).actions == (
        calls.Settle(NATIVE, most[0] - 10**17, True),
        calls.Settle(scene.usdc.address, most[1] - 5 * 10**8, True),
        calls.Increase(held.id, size.liquidity, size.most0, size.most1),
        calls.IncreaseFromDeltas(held.id, *most),
        calls.CloseCurrency(NATIVE),
        calls.CloseCurrency(scene.usdc.address),
        calls.Sweep(NATIVE, scene.wallet),
    )


def test_removing_and_collecting_take_both_tokens_to_the_wallet(scene: Any, near: Any) -> None:
    held = scene.position_in(scene.wrapped, near)
    home = calls.TakePair(scene.weth.address, scene.usdc.address, scene.wallet)
    (collected,) = positions.collect(scene.terms(), held).steps
    assert said(collected).actions == (calls.Decrease(held.id, 0, 0, 0), home)
    assert not [need for need in collected.needs if isinstance(need, TickWithin)], "fees are the same at any price"
    (removed,) = positions.remove(scene.terms(), held, Fraction(3, 10)).steps
    decrease, taken = said(removed).actions
    assert (decrease.liquidity, taken) == (held.liquidity * 3 // 10, home)
    assert positions.remove(scene.terms(), held, Fraction(1)) == positions.close(scene.terms(), held)


def test_the_steps_are_those_whose_cost_was_shown(scene: Any, near: Any) -> None:
    gone = scene.position_in(scene.native, scene.ticks(-199_980, -199_020), fees=(0, 0))
    planned = plan_swap_and_deposit(market_without_us(gone.pool, gone), near, *burn_proceeds(gone), may_swap=True)
    plan = positions.rebalance(scene.terms(), gone, near)
    assert plan.later is not None
    shown = steps_for(CandidateKind.SHIFT, planned.prep, 0)
    assert [str(kind) for kind in kinds((*plan.steps, *plan.later.preview))] == [str(step) for step in shown]
    for band, prep in ((near, planned.prep), (scene.ticks(-231_000, -171_000), None)):
        both = steps_for(CandidateKind.OPEN, prep, 2, wraps=True)
        made = minting.create(scene.terms(), scene.wrapped, band, 10**18, 3 * 10**9, brings_ether=True)
        assert [str(kind) for kind in kinds(made.steps)] == [str(step) for step in both]


def test_a_staked_position_is_warned_about(scene: Any, near: Any) -> None:
    staked = replace(scene.position_in(scene.native, near), subscribed=True)
    wide = scene.ticks(-203_400, -198_600)
    for plan in (positions.close(scene.terms(), staked), positions.rebalance(scene.terms(), staked, wide)):
        assert ["position 7" in note for note in plan.notes] == [True]
    assert positions.close(scene.terms(), replace(staked, subscribed=False)).notes == ()


def test_a_pool_of_our_own_has_nobody_to_swap_with_and_the_plan_says_so(scene: Any, near: Any) -> None:
    pool = replace(scene.wrapped, liquidity=Liquidity(10**15))
    alone = scene.position_in(pool, near, 10**15)
    plan = positions.rebalance(scene.terms(), alone, scene.ticks(-201_900, -200_940))
    assert plan.later is None
    assert ["liquidity" in note for note in plan.notes] == [True]


def test_there_is_no_plan_for_what_cannot_be(scene: Any, near: Any) -> None:
    terms = scene.terms()
    held = scene.position_in(scene.native, near)
    alien = replace(held, owner=scene.address("99"))
    empty = replace(held, liquidity=Liquidity(0))
    of_alien: list[Callable[[], object]] = [
        lambda: positions.close(terms, alien),
        lambda: positions.collect(terms, alien),
        lambda: positions.add(terms, alien, 1, 1),
        lambda: positions.remove(terms, alien, Fraction(1, 2)),
        lambda: positions.rebalance(terms, alien, scene.ticks(-202_200, -199_800)),
    ]
    for make in of_alien:
        with pytest.raises(Refused, match="0x99"):
            make()
    of_empty: list[Callable[[], object]] = [
        lambda: positions.collect(terms, empty),
        lambda: positions.remove(terms, empty, Fraction(1, 2)),
        lambda: positions.add(terms, empty, 10**18, 10**9),
    ]
    for make in of_empty:
        with pytest.raises(Refused, match="liquidity"):
            make()
    with pytest.raises(Refused, match="fees"):
        positions.collect(terms, replace(held, fees0=Amount(0), fees1=Amount(0)))
    with pytest.raises(Refused, match="already"):
        positions.rebalance(terms, held, near)
    with pytest.raises(Refused, match=rf"{Fraction(1, 10**18)} .*\b{held.id}\b"):
        positions.remove(terms, held, Fraction(1, 10**18))
    for share in (Fraction(0), Fraction(-1, 2), Fraction(3, 2)):
        with pytest.raises(UsageError):
            positions.remove(terms, held, share)
    poor = replace(terms, holdings={NATIVE: 5, scene.usdc.address: 10**18})
    with pytest.raises(Refused, match=r"\b0\.0{17}5 ETH"):
        minting.create(poor, scene.native, near, 10**18, 3 * 10**9)
    with pytest.raises(Refused, match=r"\b0\.0{17}5 ETH"):
        positions.add(poor, held, 10**18, 3 * 10**9)
    with pytest.raises(Refused, match=r"\b0\.0{17}5 ETH"):
        minting.create(poor, scene.wrapped, near, 10**18, 3 * 10**9, brings_ether=True)
