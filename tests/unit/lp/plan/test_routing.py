"""Where a plan swaps: the choice never costs more than the own pool, and the policy admits the approved route alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zuno.amm.model import PoolKey, PoolState
from zuno.kernel.errors import Refused, Unavailable
from zuno.kernel.text import NATIVE, Token
from zuno.kernel.units import Address, Pips, SqrtPriceX96, Tick
from zuno.lp.model.chains import SwapStruct
from zuno.lp.model.plan import Step
from zuno.lp.model.plan_events import SwapHome
from zuno.lp.plan import minting, positions
from zuno.lp.plan.calldata import WHOLE_BALANCE
from zuno.lp.plan.calls import (
    DecodedCall,
    Execute,
    MintFromDeltas,
    ModifyLiquidities,
    RouterSwap,
    Settle,
    SwapIn,
    UnwrapEther,
    WrapEther,
)
from zuno.lp.plan.decoding import decode
from zuno.lp.plan.effects import sum_effects
from zuno.lp.plan.inventory import Quote
from zuno.lp.plan.policy import Policy, check, verify_step
from zuno.lp.plan.routing import SwapRoute, build_route, choose_route, may_route

FIVE = SwapStruct.FIVE_FIELDS
STRANGER = Address("0x" + "66" * 20)
LOW = Token(Address("0x" + "05" * 20), "USDX", 6, True)
"""A stable token that sorts before the wrapper and after the native coin."""


def cheaper(pool: PoolState, token0: Token, token1: Token, *, flipped: bool = False) -> PoolState:
    """Another pool at the same price, at a sixth of the fee."""
    price = 2**192 // pool.sqrt_price_x96 if flipped else pool.sqrt_price_x96
    key = PoolKey(token0.address, token1.address, Pips(500), 10)
    tick = -pool.tick - 1 if flipped else pool.tick
    moved: dict[str, Any] = {"sqrt_price_x96": SqrtPriceX96(price), "tick": Tick(tick), "lp_fee": Pips(500)}
    return replace(pool, key=key, token0=token0, token1=token1, **moved)


def pairs(scene: Any) -> dict[str, tuple[PoolState, PoolState]]:
    eth, weth, usdc = scene.eth, scene.weth, scene.usdc
    turned = replace(scene.native, key=replace(scene.native.key, currency1=LOW.address), token1=LOW)
    return {
        "same": (scene.wrapped, cheaper(scene.wrapped, weth, usdc)),
        "wraps": (scene.native, cheaper(scene.native, weth, usdc)),
        "unwraps": (scene.wrapped, cheaper(scene.wrapped, eth, usdc)),
        "turned": (turned, cheaper(turned, LOW, weth, flipped=True)),
    }


def routed_steps(scene: Any) -> Iterator[tuple[str, Step, Policy, PoolState]]:
    """The swap of a create and of an exit, either way, through another pool of every form."""
    for name, (pool, through) in pairs(scene).items():
        terms, route = scene.terms(), build_route(pool, through)
        terms = replace(terms, holdings={**terms.holdings, LOW.address: 10**18})
        for sells_first in (True, False):
            capital = (10**18, 0) if sells_first else (0, 3 * 10**9)
            plan = minting.create(terms, pool, scene.ticks(-201_600, -200_400), *capital, route=route)
            assert plan.route == through.key
            most = {flow.currency: flow.amount for flow in plan.steps[-1].most_out}
            policy = replace(scene.policy(pool.key, plan.steps), most_out=most, route=through.key)
            yield f"{name} {sells_first}", plan.steps[-1], policy, pool
            swap = SwapHome(
                to=1 if sells_first else 0,
                least_rate=Fraction(97, 100) * (pool.price if sells_first else 1 / pool.price),
            )
            held = replace(scene.position_in(pool, scene.ticks(-201_600, -200_400)), fees0=10**18, fees1=3 * 10**9)
            home = positions.close(terms, held, swap, route=route)
            assert home.later is not None
            last = home.later.preview[-1]
            most = {flow.currency: flow.amount for flow in last.most_out}
            policy = replace(policy, most_out=most, swap_home=swap)
            yield f"home {name} {sells_first}", last, policy, pool


def decoded(step: Step) -> DecodedCall:
    return decode(step.to, step.value, step.data, FIVE)


def with_commands(call: DecodedCall, commands: list[Any]) -> DecodedCall:
    assert isinstance(call.call, Execute)
    return replace(call, call=replace(call.call, commands=tuple(commands)))


def test_a_routed_swap_passes_with_its_route_and_with_no_other(scene: Any) -> None:
    for name, step, policy, pool in routed_steps(scene):
        verify_step(step, policy)
        other = replace(policy.route or pool.key, fee=Pips(100))
        for wrong in (None, other, replace(other, hooks=STRANGER)):
            with pytest.raises(Refused):
                verify_step(step, replace(policy, route=wrong))
        changes = sum_effects([decoded(step)], pool, None)
        assert min(changes.values()) < 0, name


def test_what_is_wrapped_is_what_the_swap_takes_and_pays_and_goes_nowhere_else(scene: Any) -> None:
    seen = 0
    for _, step, policy, _ in routed_steps(scene):
        call = decoded(step)
        assert isinstance(call.call, Execute)
        commands = list(call.call.commands)
        for at, command in enumerate(commands):
            if not isinstance(command, WrapEther | UnwrapEther):
                continue
            seen += 1
            amount: dict[str, Any] = (
                {"amount": command.amount - 1} if isinstance(command, WrapEther) else {"least": command.least - 1}
            )
            for changed in (replace(command, recipient=STRANGER), replace(command, **amount)):
                with pytest.raises(Refused):
                    check(with_commands(call, [*commands[:at], changed, *commands[at + 1 :]]), policy)
            with pytest.raises(Refused):
                check(with_commands(call, [*commands[:at], *commands[at + 1 :]]), policy)
        for stray in (WrapEther(STRANGER, WHOLE_BALANCE), UnwrapEther(STRANGER, 1)):
            for at in range(len(commands)):
                with pytest.raises(Refused):
                    check(with_commands(call, [*commands[:at], stray, *commands[at:]]), policy)
    assert seen == 12


def test_the_pool_minted_into_is_guarded_on_both_sides(scene: Any) -> None:
    """Without either of the two small swaps, or with one in another pool, nothing holds the price of the mint."""
    for _, step, policy, pool in routed_steps(scene):
        call = decoded(step)
        assert isinstance(call.call, Execute)
        if not isinstance(call.call.commands[-1], ModifyLiquidities):
            continue
        (at,) = [index for index, each in enumerate(call.call.commands) if isinstance(each, RouterSwap)]
        routed = call.call.commands[at]
        assert isinstance(routed, RouterSwap)
        swaps = [action for action in routed.actions if isinstance(action, SwapIn)]
        assert [swap.key for swap in swaps] == [policy.route, pool.key, pool.key]
        assert swaps[1].zero_for_one != swaps[2].zero_for_one
        for small in swaps[1:]:
            kept = tuple(action for action in routed.actions if action is not small)
            elsewhere = tuple(
                replace(action, key=swaps[0].key) if action is small else action for action in routed.actions
            )
            loose = tuple(replace(action, amount_out_min=1) if action is small else action for action in routed.actions)
            for actions in (kept, elsewhere, loose):
                commands = list(call.call.commands)
                commands[at] = RouterSwap(actions)
                with pytest.raises(Refused):
                    check(with_commands(call, commands), policy)


def minting_calls(scene: Any) -> Iterator[tuple[str, DecodedCall, list[Any], int, Policy]]:
    """Every router call that mints: its commands, and where among them it swaps. What may be minted at most is next to
    nothing, so that no forgery is refused for that."""
    for name, step, policy, pool in routed_steps(scene):
        call = decoded(step)
        assert isinstance(call.call, Execute)
        if isinstance(last := call.call.commands[-1], ModifyLiquidities):
            commands = list(call.call.commands[:-1])
            acts = [
                replace(act, amount0_max=1, amount1_max=1) if isinstance(act, MintFromDeltas) else act
                for act in last.actions
            ]
            commands.append(replace(last, actions=tuple(acts)))
            (at,) = [index for index, each in enumerate(commands) if isinstance(each, RouterSwap)]
            yield (
                name,
                with_commands(call, commands),
                commands,
                at,
                replace(policy, drift=scene.policy(pool.key, ()).drift),
            )


def test_what_is_wrapped_before_the_swap_would_stay_in_the_router(scene: Any) -> None:
    """Ether that the swap pays would go into PositionManager unwrapped, and be anyone's."""
    seen = 0
    for _, call, commands, at, policy in minting_calls(scene):
        check(call, policy)
        behind = commands[at + 1]
        if not isinstance(behind, WrapEther | UnwrapEther):
            continue
        seen += 1
        others = [each for each in commands if each not in (behind, commands[at])]
        for forged in (
            [RouterSwap(()), behind, *others[:-1], commands[at], others[-1]],
            [*others[:-1], behind, commands[at], others[-1]],
            [*commands[: at + 1], RouterSwap(()), *commands[at + 1 :]],
        ):
            with pytest.raises(Refused):
                check(with_commands(call, forged), policy)
    assert seen == 3


def test_two_swaps_in_the_route_hold_no_price_of_the_pool_minted_into(scene: Any) -> None:
    for name, call, commands, at, policy in minting_calls(scene):
        if not name.startswith("same"):
            continue
        (main, probe, *rest) = commands[at].actions
        assert policy.route is not None
        elsewhere = [replace(each, key=policy.route) if isinstance(each, SwapIn) else each for each in rest]
        for actions in ((main, *elsewhere), (main, replace(probe, key=policy.route), *elsewhere)):
            forged = [*commands[:at], RouterSwap(actions), *commands[at + 1 :]]
            with pytest.raises(Refused, match="no swap each way"):
                check(with_commands(call, forged), policy)


def test_nothing_large_is_swapped_in_the_own_pool_where_a_route_was_approved(scene: Any) -> None:
    for name, call, commands, at, policy in minting_calls(scene):
        if not name.startswith("same"):
            continue
        main, probe, *rest = commands[at].actions
        rate = Fraction(probe.amount_out_min, probe.amount_in)
        large = replace(probe, amount_in=main.amount_in, amount_out_min=int(main.amount_in * rate) + 1)
        bigger = replace(probe, amount_in=probe.amount_in * 200, amount_out_min=probe.amount_out_min * 200)
        for actions in ((large, *rest), (main, bigger, *rest)):
            forged = [*commands[:at], RouterSwap(actions), *commands[at + 1 :]]
            with pytest.raises(Refused):
                check(with_commands(call, forged), policy)


def test_the_guard_is_paid_by_the_swap_and_not_by_the_wallet(scene: Any) -> None:
    """What a swap pays is taken away first, so that the swap back would have to be settled by the wallet."""
    for name, call, commands, at, policy in minting_calls(scene):
        if not name.startswith("same"):
            continue
        main, probe, settled, guard, *taken = commands[at].actions
        (got,) = [each for each in taken if each.currency == guard.currencies[0]]
        drawn = Settle(got.currency, 0, payer_is_user=True)
        actions = (main, probe, settled, got, guard, drawn, *(each for each in taken if each is not got))
        forged = with_commands(call, [*commands[:at], RouterSwap(actions), *commands[at + 1 :]])
        with pytest.raises(Refused, match="may be taken"):
            check(forged, policy)


@pytest.mark.parametrize("factor", [Fraction(1, 2), Fraction(98, 100), Fraction(102, 100), Fraction(2)])
def test_a_window_of_prices_lies_around_the_approved_one(scene: Any, factor: Fraction) -> None:
    """All minima moved together leave the same room between them, at a price that somebody would have to make."""
    for _, call, commands, at, policy in minting_calls(scene):
        moved = [
            replace(each, amount_out_min=int(each.amount_out_min * way) + 1)
            for each in commands[at].actions
            if isinstance(each, SwapIn)
            for way in [factor if each.sells_first(policy.pair) == commands[at].actions[0].sells_first(policy.pair)
                        else 1 / factor]
        ]  # fmt: skip
        swaps = iter(moved)
        actions = tuple(next(swaps) if isinstance(each, SwapIn) else each for each in commands[at].actions)
        least, after = moved[0].amount_out_min, []
        for each in commands[at + 1 :]:
            after.append(replace(each, least=least) if isinstance(each, UnwrapEther) else each)
        with pytest.raises(Refused):
            check(with_commands(call, [*commands[:at], RouterSwap(actions), *after]), policy)


def test_a_pool_that_keeps_what_is_swapped_is_no_route(scene: Any) -> None:
    native, wrapped, weth = scene.native.key, scene.wrapped.key, scene.weth.address
    for fee in (10_001, 900_000, 1 << 23):
        assert not may_route(native, replace(wrapped, fee=Pips(fee)), weth)
    assert may_route(native, replace(wrapped, fee=Pips(10_000)), weth)
    assert not may_route(native, replace(wrapped, hooks=STRANGER), weth)


def test_a_route_whose_ticks_were_not_read_leaves_the_others(scene: Any) -> None:
    def unread(way: bool, amount: int) -> Quote:
        raise Unavailable("the swap leaves the ticks that were read")

    def pays(way: bool, amount: int) -> Quote:
        return Quote(amount, 2 * amount, 0, 1)

    key = scene.wrapped.key
    routes = [(SwapRoute(key, unread), Fraction(0)), (SwapRoute(replace(key, fee=Pips(500)), pays), Fraction(0))]
    chosen = choose_route(lambda way, amount: Quote(amount, amount, 0, 1), routes, True, 10**18)
    assert chosen is not None
    assert chosen.key.fee == 500


def test_only_the_native_coin_and_its_wrapper_stand_for_each_other(scene: Any) -> None:
    native, wrapped, weth = scene.native.key, scene.wrapped.key, scene.weth.address
    assert may_route(native, wrapped, weth)
    assert not may_route(native, wrapped, None)
    assert not may_route(native, replace(wrapped, currency1=LOW.address), weth)
    both = PoolKey(NATIVE, weth, Pips(500), 10)
    assert not may_route(both, both, weth)


amounts = st.integers(0, 10**24)


@given(own=amounts, others=st.lists(st.tuples(amounts, st.booleans(), st.fractions(0, 10**20)), max_size=4))
def test_the_choice_never_pays_less_than_the_own_pool_after_gas(
    own: int, others: list[tuple[int, bool, Fraction]]
) -> None:
    def quote(paid: int, whole: bool = True) -> Any:
        return lambda way, amount: Quote(amount if whole else amount - 1, paid, 0, 1)

    key = PoolKey(NATIVE, LOW.address, Pips(500), 10)
    routes = [
        (SwapRoute(replace(key, tick_spacing=at + 1), quote(paid, whole)), gas)
        for at, (paid, whole, gas) in enumerate(others)
    ]
    chosen = choose_route(quote(own), routes, True, 10**18)
    pays = [paid - gas for paid, whole, gas in others if whole]
    best = max([Fraction(own), *pays])
    if chosen is None:
        assert best == own
    else:
        paid, whole, gas = others[chosen.key.tick_spacing - 1]
        assert (whole, paid - gas) == (True, best)
        assert best > own
