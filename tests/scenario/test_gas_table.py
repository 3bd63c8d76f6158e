"""The simulation's gas table against the real contracts: every kind of step that plans send."""

# ruff: noqa: F401, F811

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import pytest

pytest.importorskip("eth", reason="py-evm is the devnet extra")

from tests.scenario.test_plan_steps import Stage, around, needs_no_swap, outside, stage, world
from zuno.adapters.chain.sim.gas import gas_needed
from zuno.adapters.chain.world import DEPLOYMENT, USDC, WETH, pool_specs
from zuno.amm.model import PoolKey
from zuno.kernel.units import Address
from zuno.lp.model.plan import Step
from zuno.lp.model.plan_events import SwapHome
from zuno.lp.plan import minting, positions
from zuno.lp.plan.approvals import build_revocations, build_wrap_step
from zuno.lp.plan.calls import Permit
from zuno.lp.plan.decoding import decode
from zuno.lp.plan.routing import build_route
from zuno_devnet.chain import ETHER

TOLERANCE = Fraction(9, 100)
"""What a step uses depends on the state it meets: ticks that are new, tokens that were there before."""
CHEAP, DEAR, NATIVE_POOL = (spec.key for spec in pool_specs())


Sent = Iterator[tuple[str, int, int]]


def send(stage: Stage, steps: tuple[Step, ...], permits: set[tuple[Address, Address]]) -> Sent:
    """Every step by its kind: what the contracts use, and what the table says."""
    for step in steps:
        before = {token: stage.balance(token) for token in stage.tokens}
        used = int(stage.do(step.to, step.data, step.value)["gasUsed"], 16)
        call = decode(step.to, step.value, step.data, DEPLOYMENT.swap_struct).call
        paid = sum(stage.balance(token) > had for token, had in before.items())
        permitted = isinstance(call, Permit) and (call.token, call.spender) in permits
        permits |= {(call.token, call.spender)} if isinstance(call, Permit) else set()
        yield step.kind, used, gas_needed(call, permitted_before=permitted, pays_one=paid == 1)


def every_plan(stage: Stage, key: PoolKey, through: PoolKey) -> Sent:
    def pair(ether: int, usdc: int) -> tuple[int, int]:
        return (ether, usdc) if key.currency1 == USDC.address else (usdc, ether)

    permits = {(token, DEPLOYMENT.position_manager) for token in (WETH.address, USDC.address)}

    def sent(*steps: Step) -> Sent:
        return send(stage, steps, permits)

    def forget() -> Sent:
        return sent(*build_revocations(stage.terms(), (WETH.address, USDC.address)))

    pool = stage.pool(key)
    route = build_route(pool, stage.pool(through))

    def create(below: int, above: int, ether: int, usdc: int, routed: bool = False) -> Sent:
        plan = minting.create(
            stage.terms(),
            stage.pool(key),
            around(pool, below, above),
            *pair(ether, usdc),
            route=route if routed else None,
        )
        return sent(*plan.steps)

    yield from create(12, 12, 2 * ETHER, 6_000 * 10**6)
    yield from forget()
    yield from create(1_000, 1_000, 2 * ETHER, 6_000 * 10**6)
    for routed in (False, True):
        for ether, usdc in ((2 * ETHER, 0), (0, 6_000 * 10**6)):
            yield from forget()
            yield from create(14, 14, ether, usdc, routed)
    held = stage.next_id() - 1
    yield from sent(build_wrap_step(WETH.address, ETHER))
    stage.trade(key, 2)
    yield from forget()
    yield from sent(*positions.add(stage.terms(), stage.position(held), *pair(ETHER, 3_000 * 10**6)).steps)
    stage.trade(key, 2)
    yield from sent(*positions.collect(stage.terms(), stage.position(held)).steps)
    stage.trade(key, 2)
    yield from sent(*positions.compound(stage.terms(), stage.position(held)).steps)
    yield from sent(*positions.remove(stage.terms(), stage.position(held), Fraction(1, 2)).steps)
    yield from forget()
    little = positions.add(stage.terms(), stage.position(held), *pair(ETHER // 100, 3 * 10**6))
    yield from sent(*little.steps)
    position = stage.position(held)
    yield from sent(*positions.rebalance(stage.terms(), position, needs_no_swap(position)).steps)
    held += 1
    for to in (0, 1):
        for routed in (False, True):
            before, position = stage.node.snapshot(), stage.position(held)
            price = position.pool.price
            swap = SwapHome(to=to, least_rate=Fraction(95, 100) * (price if to else 1 / price))
            plan = positions.close(stage.terms(), position, swap, route=route if routed else None)
            assert plan.later is not None
            yield from sent(*plan.steps, *plan.later.preview)
            assert stage.node.revert(before)
    for above in (False, True):
        before = stage.node.snapshot()
        outside(stage, key, stage.position(held).range, above=above)
        position = stage.position(held)
        plan = positions.rebalance(stage.terms(), position, around(position.pool, 30, 30))
        assert plan.later is not None
        yield from sent(*plan.steps, *plan.later.preview)
        assert stage.node.revert(before)


@pytest.mark.parametrize(
    ("key", "through"), [(CHEAP, DEAR), (NATIVE_POOL, CHEAP), (CHEAP, NATIVE_POOL)], ids=["weth", "native", "unwrapped"]
)
def test_the_table_is_what_the_contracts_use(stage: Stage, key: PoolKey, through: PoolKey) -> None:
    off = []
    for kind, used, said in every_plan(stage, key, through):
        if abs(said - used) > used * TOLERANCE:
            off.append((kind, used, said))
    assert off == []
