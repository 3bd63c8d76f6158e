"""Plans on the simulated chain that swap in another pool than their own."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from zuno.adapters.chain.world import pool_specs
from zuno.amm.model import Range
from zuno.kernel.canonical import canonical
from zuno.kernel.units import Tick, Wei
from zuno.lp.execute.draft import all_steps, build_draft
from zuno.lp.execute.routes import native_token1
from zuno.lp.model.plan import PlanState
from zuno.lp.model.plan_events import Action
from zuno.lp.service.act_cost import weigh_cost

CHEAP, DEAR, NATIVE_POOL = (spec.key for spec in pool_specs())
INSIDE = 2


async def moved(bench: Any, token_id: int) -> Any:
    position = await bench.position(token_id)
    spacing = position.pool.key.tick_spacing
    here = position.pool.tick // spacing * spacing
    return await bench.told(
        Action.REBALANCE, token_id, range=Range(Tick(here - 40 * spacing), Tick(here + 10 * spacing))
    )


async def test_a_rebalance_goes_through_the_cheapest_pool_of_the_pair(bench: Any) -> None:
    plan_id = await bench.approved(await moved(bench, INSIDE))
    book = await bench.book(plan_id)
    assert book.draft.route == CHEAP
    assert book.draft.later.probe_rate is not None
    before = (await bench.position(INSIDE)).pool.sqrt_price_x96
    book = await bench.apply(plan_id)
    assert (book.state, book.over.problems) == (PlanState.CONFIRMED, ())
    new = await bench.position(book.over.new_position_id)
    assert abs(new.pool.sqrt_price_x96 - before) * 10_000 < before
    assert book.over.leftover.share < Fraction(1, 1_000)


async def test_a_draft_without_a_route_has_the_bytes_it_always_had(bench: Any) -> None:
    drafted = await bench.drafted(await bench.told(Action.CLOSE, INSIDE))
    assert drafted.draft.route is None
    assert b'"route"' not in canonical(drafted.draft)


async def test_the_cost_is_gas_and_what_the_swap_loses(bench: Any) -> None:
    drafted = await bench.drafted(await moved(bench, INSIDE))
    gas = await bench.chain.gas()
    native = await native_token1(bench.hands, drafted.draft.pool)
    assert native is not None
    cost = weigh_cost(drafted, gas, native)
    wei = sum(drafted.gas_used) * gas.price
    assert cost.gas is not None
    assert cost.total is not None
    assert cost.swap is not None
    assert cost.percent is not None
    assert float(cost.gas) == pytest.approx(float(wei * native / 10**6), abs=0.01)
    assert float(cost.total) == pytest.approx(float(cost.gas) + float(cost.swap), abs=0.011)
    assert 0 < float(cost.percent) < 1
    assert (cost.unit, cost.exceeds_moved) == ("USDC", False)
    assert cost.text.startswith(f"costs {cost.total} USDC ({cost.percent} %): gas {cost.gas}")
    unpriced = weigh_cost(drafted, gas, None)
    assert (unpriced.total, unpriced.percent, unpriced.exceeds_moved) == (None, None, False)


async def test_what_costs_more_than_it_moves_says_so(bench: Any) -> None:
    drafted = await bench.drafted(await bench.told(Action.COLLECT, INSIDE))
    assert len(all_steps(drafted.draft)) == 1
    gas = await bench.chain.gas()
    native = await native_token1(bench.hands, drafted.draft.pool)
    assert not weigh_cost(drafted, gas, native).exceeds_moved
    assert weigh_cost(drafted, replace(gas, base_fee=Wei(10**15)), native).exceeds_moved


async def test_a_route_that_loses_too_much_leaves_the_plan_its_own_pool(bench: Any) -> None:
    """A swap so large that the route moves by more than the policy lets it lose."""
    routes = []
    for ether in (1, 300):
        told = await bench.creation(INSIDE, capital0=ether * 10**18)
        drafted = await build_draft(bench.hands, "plan_000000000000", "0" * 64, told)
        assert drafted.error is None
        routes.append(drafted.draft.route)
    assert routes == [CHEAP, None]
