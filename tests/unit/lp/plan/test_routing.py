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
from zuno.kernel.errors import Refused
from zuno.kernel.text import NATIVE, Token
from zuno.kernel.units import Address, Pips, SqrtPriceX96, Tick
from zuno.lp.model.chains import SwapStruct
from zuno.lp.model.plan import Step
from zuno.lp.model.plan_events import SwapHome
from zuno.lp.plan import minting, positions
from zuno.lp.plan.calldata import WHOLE_BALANCE
from zuno.lp.plan.calls import DecodedCall, Execute, ModifyLiquidities, RouterSwap, SwapIn, UnwrapEther, WrapEther
from zuno.lp.plan.decoding import decode
from zuno.lp.plan.effects import sum_effects
from zuno.lp.plan.inventory import Quote
from zuno.lp.plan.policy import Policy, check, verify_step
from zuno.lp.plan.routing import SwapRoute, build_route, choose_route, trades_same_pair

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


def test_only_the_native_coin_and_its_wrapper_stand_for_each_other(scene: Any) -> None:
    native, wrapped, weth = scene.native.key, scene.wrapped.key, scene.weth.address
    assert trades_same_pair(native, wrapped, weth)
    assert not trades_same_pair(native, wrapped, None)
    assert not trades_same_pair(native, replace(wrapped, currency1=LOW.address), weth)
    both = PoolKey(NATIVE, weth, Pips(500), 10)
    assert not trades_same_pair(both, both, weth)


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
