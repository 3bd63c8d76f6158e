"""Plans that swap through another pool of the pair, on the real contracts: what they cost, and where they stop."""

# ruff: noqa: F401, F811

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

pytest.importorskip("eth", reason="py-evm is the devnet extra")

from tests.scenario.test_plan_steps import Stage, around, outside, share_in, stage, world
from zuno.adapters.chain.world import DEPLOYMENT, OTHERS, USDC, WETH, pool_specs
from zuno.amm.model import LpPosition, PoolKey
from zuno.kernel.errors import Refused
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Address
from zuno.lp.model.plan import SecondHalf, Step, StepKind
from zuno.lp.model.plan_events import SwapHome
from zuno.lp.plan import calldata, minting, positions
from zuno.lp.plan.calls import Execute, RouterSwap, SwapIn
from zuno.lp.plan.decoding import decode
from zuno.lp.plan.policy import Policy, verify_step
from zuno.lp.plan.routing import SwapRoute, build_route
from zuno_devnet.chain import ETHER

CHEAP, DEAR, NATIVE_POOL = (spec.key for spec in pool_specs())
"""WETH/USDC at 0.05 % and at 0.30 %, and ETH/USDC at 0.30 %."""
WAYS = [(DEAR, CHEAP), (NATIVE_POOL, CHEAP), (CHEAP, NATIVE_POOL)]
IDS = ["same tokens", "ether wrapped", "wrapper unwrapped"]
FOREVER = (1 << 48) - 1


def policy(stage: Stage, steps: tuple[Step, ...], key: PoolKey, route: PoolKey | None) -> Policy:
    return replace(stage.policy(steps, key), route=route)


def send(stage: Stage, steps: tuple[Step, ...], judged: Policy) -> dict[Address, int]:
    """Judge and send each step; what the wallet gained, gas apart."""
    gained = dict.fromkeys(stage.tokens, 0)
    for step in steps:
        verify_step(step, judged)
        for currency, change in stage.send(step).items():
            gained[currency] += change
    stage.check_nothing_stays()
    return gained


def route_to(stage: Stage, key: PoolKey, through: PoolKey) -> SwapRoute:
    return build_route(stage.pool(key), stage.pool(through))


def emptied(stage: Stage, key: PoolKey, *, above: bool) -> LpPosition:
    """A position of the wallet that the price has left."""
    pool = stage.pool(key)
    ether, usdc = 5 * ETHER, 15_000 * 10**6
    amounts = (ether, usdc) if key.currency1 == USDC.address else (usdc, ether)
    stage.run(minting.create(stage.terms(), pool, around(pool, 12, 12), *amounts).steps, key)
    stage.forget_allowances()
    new = stage.position(stage.next_id() - 1)
    outside(stage, key, new.range, above=above)
    price = stage.pool(key).sqrt_price_x96
    for other in {CHEAP, DEAR, NATIVE_POOL} - {key}:  # as arbitrage would have them
        same_order = (other.currency1 == USDC.address) == (key.currency1 == USDC.address)
        stage.push(other, price if same_order else 2**192 // price)
    return stage.position(new.id)


def first_half(stage: Stage, position: LpPosition, route: SwapRoute) -> tuple[SecondHalf, PoolKey, tuple[int, int]]:
    plan = positions.rebalance(stage.terms(), position, around(position.pool, 30, 30), route=route)
    assert plan.later is not None
    assert plan.route == route.key
    paid = stage.run(plan.steps, position.pool.key, position)
    return plan.later, plan.route, (paid[position.pool.key.currency0], paid[position.pool.key.currency1])


@pytest.mark.parametrize("above", [False, True])
@pytest.mark.parametrize(("key", "through"), WAYS, ids=IDS)
def test_a_routed_rebalance_puts_all_to_work_and_cannot_be_sandwiched(
    stage: Stage,
    key: PoolKey,
    through: PoolKey,
    above: bool,
) -> None:
    position = emptied(stage, key, above=above)
    half, route, paid = first_half(stage, position, route_to(stage, key, through))
    again = route_to(stage, key, through)
    steps = positions.finish_rebalance(half, stage.terms(), stage.pool(key), *paid, route=again)
    *allowing, last = steps
    assert last.kind is StepKind.SWAP_AND_MINT
    judged = policy(stage, steps, key, route)
    with pytest.raises(Refused):
        verify_step(last, replace(judged, route=None))
    send(stage, tuple(allowing), judged)
    before = stage.node.snapshot()
    for bps in (-100, 100):
        stage.nudge(key, bps)
        assert stage.reverts(last), bps
        assert stage.node.revert(before)
        before = stage.node.snapshot()
    new_id = stage.next_id()
    by_hand = cheapest_by_hand(stage, last, key)
    gained = send(stage, (last,), judged)
    new = stage.position(new_id)
    left = [paid[side] + gained[currency] for side, currency in enumerate((key.currency0, key.currency1))]
    assert min(left) >= 0
    if through == CHEAP:
        price = position.pool.price
        cost = (paid[0] - left[0] - new.amount0) * price + paid[1] - left[1] - new.amount1
        assert 0 < cost <= Fraction(12, 10) * by_hand
    assert share_in(new, *left) > Fraction(99, 100)
    for token in (WETH.address, USDC.address):
        assert (stage.allowed(token), stage.grant(token, DEPLOYMENT.universal_router).amount) == (0, 0)


@pytest.mark.parametrize("to", [0, 1])
@pytest.mark.parametrize(("key", "through"), WAYS, ids=IDS)
def test_a_routed_exit_brings_one_token_home(
    stage: Stage,
    key: PoolKey,
    through: PoolKey,
    to: int,
) -> None:
    pool = stage.pool(key)
    amounts = (2 * ETHER, 6_000 * 10**6) if key.currency1 == USDC.address else (6_000 * 10**6, 2 * ETHER)
    stage.run(minting.create(stage.terms(), pool, around(pool, 12, 12), *amounts).steps, key)
    position = stage.position(stage.next_id() - 1)
    price = position.pool.price
    swap = SwapHome(to=1 if to else 0, least_rate=Fraction(97, 100) * (price if to else 1 / price))
    plan = positions.close(stage.terms(), position, swap, route=route_to(stage, key, through))
    assert plan.later is not None
    pair = (key.currency0, key.currency1)
    paid = stage.run(plan.steps, key, position)
    had = (paid[pair[0]], paid[pair[1]])
    route = route_to(stage, key, through)
    steps = positions.finish_close(plan.later, stage.terms(), stage.pool(key), had, route=route)
    judged = replace(policy(stage, steps, key, through), swap_home=swap)
    gained = send(stage, steps, judged)
    assert gained[pair[1 - to]] == -had[1 - to]
    assert gained[pair[to]] >= steps[-1].least_in[0].amount > 0


def cheapest_by_hand(stage: Stage, step: Step, key: PoolKey) -> Fraction:
    """What the same swap costs at least, all by itself, in base units of token1 at the pool's price."""
    call = decode(step.to, step.value, step.data, DEPLOYMENT.swap_struct).call
    assert isinstance(call, Execute)
    acts = [act for command in call.commands if isinstance(command, RouterSwap) for act in command.actions]
    main, probe, _ = [act for act in acts if isinstance(act, SwapIn)]
    amount, price = main.amount_in + probe.amount_in, stage.pool(key).price
    first = main.sells_first((key.currency0, key.currency1))
    sells_ether = first == (key.currency1 == USDC.address)
    got = max(swap_by_hand(stage, through, sells_ether, amount) for through in (CHEAP, DEAR, NATIVE_POOL))
    return amount * price - got if first else amount - got * price


def swap_by_hand(stage: Stage, through: PoolKey, sells_ether: bool, amount: int) -> int:
    """What a plain swap in one pool pays, all by itself."""
    ether = NATIVE if NATIVE in (through.currency0, through.currency1) else WETH.address
    paid, got = (ether, USDC.address) if sells_ether else (USDC.address, ether)
    acts = [
        calldata.swap_exact_in_single(through, paid == through.currency0, amount, 0, DEPLOYMENT.swap_struct),
        calldata.settle(paid, calldata.OPEN_DELTA, payer_is_user=True),
        calldata.take(got, calldata.SENDER, calldata.OPEN_DELTA),
    ]
    before, had = stage.node.snapshot(), stage.balance(got, OTHERS)
    data, value = calldata.execute([calldata.v4_swap(acts)], FOREVER), amount if paid == NATIVE else 0
    receipt = stage.do(DEPLOYMENT.universal_router, data, value, OTHERS)
    spent = int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16) if got == NATIVE else 0
    gained = stage.balance(got, OTHERS) - had + spent
    assert stage.node.revert(before)
    return gained
