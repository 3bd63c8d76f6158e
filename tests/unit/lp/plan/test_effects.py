"""What our own arithmetic says steps do, against what happens when the same bytes are tried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pytest

from zuno.adapters.chain.sim.chain import SimChain
from zuno.adapters.chain.sim.world_file import SimFile
from zuno.adapters.chain.sim.writer import SimWriter
from zuno.adapters.chain.world import DEPLOYMENT, WALLET, WETH
from zuno.amm.model import LpPosition, PoolState, Range
from zuno.kernel.errors import Refused
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Address, Amount, Tick
from zuno.lp.model.plan import Bounds, Step, StepKind, StepPlan
from zuno.lp.plan import minting, positions
from zuno.lp.plan.context import PlanContext
from zuno.lp.plan.decoding import decode
from zuno.lp.plan.effects import sum_effects
from zuno.lp.plan.inventory import quotes
from zuno.lp.ports.spending import Call

EDGE, INSIDE = 1, 2


@dataclass(frozen=True)
class Scene:
    writer: SimWriter
    position: LpPosition
    terms: PlanContext

    @property
    def pool(self) -> PoolState:
        return self.position.pool

    def around(self, reach: int, off: int = 0) -> Range:
        spacing = self.pool.key.tick_spacing
        middle = (self.pool.tick // spacing + off) * spacing
        return Range(Tick(middle - reach * spacing), Tick(middle + reach * spacing))

    def said(self, steps: tuple[Step, ...]) -> Mapping[Address, int]:
        calls = [decode(step.to, step.value, step.data, DEPLOYMENT.swap_struct) for step in steps]
        return sum_effects(calls, self.pool, self.position)

    async def tried(self, steps: tuple[Step, ...]) -> Mapping[Address, int]:
        key = self.pool.key
        calls = [Call(step.to, step.value, step.data) for step in steps]
        asked = tuple(dict.fromkeys((key.currency0, key.currency1, NATIVE)))
        simulation = await self.writer.simulate(WALLET, calls, asked, self.pool.id)
        assert [call.error for call in simulation.calls] == [None] * len(steps)
        return simulation.changes


@pytest.fixture(params=[EDGE, INSIDE], ids=["tokens", "ether"])
async def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Scene:
    chain = SimChain(SimFile(tmp_path))
    writer = SimWriter(chain)
    (position,) = (await chain.positions([request.param])).positions
    key = position.pool.key
    spenders = (DEPLOYMENT.position_manager, DEPLOYMENT.universal_router)
    wallet_state = await writer.wallet_state(WALLET, (key.currency0, key.currency1, NATIVE), spenders)
    terms = PlanContext(
        DEPLOYMENT,
        WALLET,
        wallet_state.block.timestamp,
        wallet_state.holdings,
        wallet_state.allowances,
        Bounds(),
        WETH.address,
    )
    return Scene(writer, position, terms)


@pytest.mark.parametrize("kind", ["collect", "remove", "close", "add", "add much", "create"])
async def test_liquidity_is_counted_to_the_last_unit(scene: Scene, kind: str) -> None:
    terms, position = scene.terms, scene.position
    plans: dict[str, StepPlan] = {
        "collect": positions.collect(terms, position),
        "remove": positions.remove(terms, position, Fraction(2, 7)),
        "close": positions.close(terms, position),
        "add": positions.add(terms, position, 10**17, 300 * 10**6),
        "add much": positions.add(terms, position, 10**18, 3 * 10**9),
        "create": minting.create(terms, scene.pool, scene.around(500), 10**18, 3 * 10**9),
    }
    steps = plans[kind].steps
    assert scene.said(steps) == await scene.tried(steps)


@pytest.mark.parametrize("scene", [EDGE], indirect=True, ids=["tokens"])
async def test_ether_wrapped_for_a_pool_of_tokens_is_counted_to_the_last_unit(scene: Scene) -> None:
    steps = minting.create(scene.terms, scene.pool, scene.around(500), 10**18, 3 * 10**9, brings_ether=True).steps
    assert scene.said(steps) == await scene.tried(steps)


@pytest.mark.soak(every=2)
@pytest.mark.slow
async def test_a_move_in_one_transaction_is_counted_to_the_last_unit(scene: Scene) -> None:
    """Every range on the position's own side of the price: its tokens need no swap there."""
    band, spacing = scene.position.range, scene.pool.key.tick_spacing
    found = 0
    for width in range(1, 120):
        wider = Range(Tick(band.lower - spacing), Tick((scene.pool.tick // spacing + width) * spacing))
        if wider == band or wider.upper <= wider.lower:
            continue
        plan = positions.rebalance(scene.terms, scene.position, wider)
        if plan.later is None:
            assert scene.said(plan.steps) == await scene.tried(plan.steps)
            found += 1
    assert found


async def test_fees_are_paid_once_by_whichever_step_comes_first(scene: Scene) -> None:
    held = scene.terms
    first = positions.remove(held, scene.position, Fraction(1, 2)).steps
    once, twice = scene.said(first), scene.said((*first, *positions.collect(held, scene.position).steps))
    assert once == twice == await scene.tried(first)


async def test_a_swap_counts_for_the_least_it_may_pay(scene: Scene) -> None:
    """The swap moves the price under the mint, and the market pays more than the least: a little more is left over."""
    quote = quotes(await scene.writer.depth(scene.pool.id), None)
    plan = minting.create(scene.terms, scene.pool, scene.around(20), 10**18, 0, quotes=quote)
    said, tried = scene.said(plan.steps), await scene.tried(plan.steps)
    paid, bought = scene.pool.key.currency0, scene.pool.key.currency1
    brought = 10**18 * scene.pool.price
    counted, found = (each[paid] * scene.pool.price + each[bought] for each in (said, tried))
    assert brought // 1000 > brought + found >= 0, "next to nothing is left over"
    assert brought // 20 > brought + counted > brought + found


async def test_two_tokens_are_put_to_work_and_what_is_left_is_as_planned(scene: Scene) -> None:
    """At the price of the draft the shorter of the two goes in whole, and as much of the other as goes with it."""
    price, key = scene.pool.price, scene.pool.key
    for capital in ((10**18, 3 * 10**9), (10**17, 3 * 10**9), (10**18, 10**8)):
        for plan in (
            minting.create(scene.terms, scene.pool, scene.around(5), *capital),
            positions.add(scene.terms, scene.position, *capital),
        ):
            left = plan.leftover
            assert left is not None
            changes, fees = await scene.tried(plan.steps), (scene.position.fees0, scene.position.fees1)
            if StepKind.SWAP_AND_MINT in [step.kind for step in plan.steps]:
                fees = (Amount(0), Amount(0))
            home0, home1 = (
                amount + changes[currency] - paid
                for amount, currency, paid in zip(capital, (key.currency0, key.currency1), fees, strict=True)
            )
            whole = capital[0] * price + capital[1]
            off = (home0 - left.amount0) * price + home1 - left.amount1
            assert abs(off) < whole / 5_000
            assert min(Fraction(left.amount0, left.whole0), Fraction(left.amount1, left.whole1)) < Fraction(1, 5_000)


async def test_a_step_about_a_position_nobody_named_is_refused(scene: Scene) -> None:
    step = positions.collect(scene.terms, scene.position).steps[0]
    with pytest.raises(Refused, match="touches"):
        sum_effects([decode(step.to, step.value, step.data, DEPLOYMENT.swap_struct)], scene.pool, None)
