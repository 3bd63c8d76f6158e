"""One plan for several positions, and one that takes back every allowance: each step once, on its own pool."""

from __future__ import annotations

from typing import Any

import pytest

from zuno.kernel.errors import Refused, Unavailable
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Address
from zuno.lp.execute.draft import plan_currencies
from zuno.lp.model.plan import Flow, PlanState, StepKind
from zuno.lp.model.plan_events import Action, Instruction, PlanPosition
from zuno.lp.plan.calls import Approve, Permit
from zuno.lp.plan.decoding import decode


async def told_all(bench: Any, action: Action) -> Instruction:
    other = await bench.position(bench.inside)
    target = PlanPosition(position_id=other.id, pool_id=other.pool.id, tick=other.pool.tick)
    told: Instruction = (await bench.told(action)).model_copy(update={"others": (target,)})
    return told


async def revoking(bench: Any, *tokens: str) -> Instruction:
    pool = (await bench.position()).pool
    return Instruction(action=Action.REVOKE, chain="sim", pool_id=pool.id, tick=pool.tick, tokens=tokens)


async def holdings(bench: Any, currencies: Any) -> dict[Address, int]:
    return dict((await bench.pond.wallet_state(bench.wallet, currencies, ())).holdings)


@pytest.mark.parametrize("action", [Action.COLLECT, Action.CLOSE])
async def test_one_plan_is_done_to_every_position_once(bench: Any, action: Action) -> None:
    held = [await bench.position(token_id) for token_id in (bench.edge, bench.inside)]
    drafted = await bench.drafted(await told_all(bench, action))
    draft = drafted.draft
    currencies = plan_currencies(draft)
    assert len(draft.steps) == 2
    assert set(currencies) == {
        currency for each in held for currency in (each.pool.key.currency0, each.pool.key.currency1)
    } | {NATIVE}
    due = dict.fromkeys(currencies, 0)
    for each in held:
        due[each.pool.key.currency0] += each.fees0 + (each.amount0 if action is Action.CLOSE else 0)
        due[each.pool.key.currency1] += each.fees1 + (each.amount1 if action is Action.CLOSE else 0)
    assert dict(drafted.changes) == due
    before = await holdings(bench, currencies)
    gate = bench.gate()
    await gate.approve(draft, gate.approval(draft, "test"))
    book = await bench.apply(draft.plan_id)
    assert (book.state, book.over.problems) == (PlanState.CONFIRMED, ())
    after = await holdings(bench, currencies)
    gas = sum(step.mined.cost for step in book.steps)
    gained = {currency: after[currency] - before[currency] for currency in currencies}
    assert {**gained, NATIVE: gained[NATIVE] + gas} == due
    assert await bench.owned() == (set() if action is Action.CLOSE else {bench.edge, bench.inside})
    with pytest.raises(Refused, match="never"):
        await bench.apply(draft.plan_id)


class Torn:
    """A disk that is full from the second signature on."""

    def __init__(self, journal: Any) -> None:
        self._journal, self.signed = journal, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)

    async def append(self, *, kind: str, **entry: Any) -> Any:
        self.signed += kind == "step_signed"
        if self.signed > 1:
            raise Unavailable("the disk is full")
        return await self._journal.append(kind=kind, **entry)


async def test_a_plan_that_stopped_between_positions_goes_on_with_the_next(bench: Any) -> None:
    plan_id = await bench.approved(await told_all(bench, Action.CLOSE))
    with pytest.raises(Unavailable):
        await bench.apply(plan_id, journal=Torn(bench.journal))
    assert await bench.owned() == {bench.inside}
    book = await bench.apply(plan_id)
    assert book.state is PlanState.CONFIRMED
    assert [len(step.signed) for step in book.steps] == [1, 1]
    assert await bench.owned() == set()


async def test_a_position_that_changed_since_is_refused_before_anything_is_signed(bench: Any) -> None:
    plan_id = await bench.approved(await told_all(bench, Action.CLOSE))
    await bench.apply(await bench.approved(await bench.told(Action.CLOSE, bench.inside)))
    with pytest.raises(Refused, match="changed"):
        await bench.apply(plan_id)
    assert await bench.owned() == {bench.edge}


async def test_every_allowance_goes_to_zero_and_then_there_is_nothing_to_revoke(bench: Any) -> None:
    at, tokens = bench.info.deployment, [each.address for each in bench.info.tokens if not each.native]
    spenders = (at.position_manager, at.universal_router)
    told = await revoking(bench, *tokens)
    draft = (await bench.drafted(told)).draft
    assert {step.kind for step in draft.steps} == {StepKind.APPROVE_PERMIT2, StepKind.PERMIT2_APPROVE}
    for step in draft.steps:
        match decode(step.to, step.value, step.data, at.swap_struct).call:
            case Approve(spender, amount):
                assert (step.to in tokens, spender, amount) == (True, at.permit2, 0)
            case Permit(token, spender, amount, until):
                assert (token in tokens, spender in spenders, amount, until) == (True, True, 0, 0)
            case other:
                raise AssertionError(other)
    gate = bench.gate()
    await gate.approve(draft, gate.approval(draft, "test"))
    book = await bench.apply(draft.plan_id)
    assert (book.state, book.over.problems) == (PlanState.CONFIRMED, ())
    left = (await bench.pond.wallet_state(bench.wallet, tokens, spenders)).allowances
    assert not any(left.to_permit2.values())
    assert not any(grant.amount for grant in left.grants.values())
    with pytest.raises(Refused, match="revoke"):
        await bench.drafted(told)


async def test_what_is_revoked_is_never_allowed(bench: Any) -> None:
    """The tokens of a revocation are open to zero alone."""
    from dataclasses import replace

    from zuno.lp.execute.checks import check_policy
    from zuno.lp.execute.draft import read_onchain_state
    from zuno.lp.plan import calldata

    weth = next(token.address for token in bench.info.tokens if token.symbol == "WETH")
    pool = (await bench.position(bench.inside)).pool
    assert weth not in (pool.key.currency0, pool.key.currency1)
    told = Instruction(action=Action.REVOKE, chain="sim", pool_id=pool.id, tick=pool.tick, tokens=(weth,))
    draft = (await bench.drafted(told)).draft
    onchain = await read_onchain_state(bench.hands, pool.id, None, (weth,))
    first = next(step for step in draft.steps if step.to == weth)
    check_policy(bench.hands, first, onchain, draft, draft.caps)
    greedy = replace(first, data=calldata.approve(bench.info.deployment.permit2, 1))
    with pytest.raises(Refused, match="pair"):
        check_policy(bench.hands, greedy, onchain, draft, (Flow(weth, 10**30),))
    elsewhere = draft.model_copy(update={"instruction": told.model_copy(update={"tokens": ()})})
    with pytest.raises(Refused, match="pair"):
        check_policy(bench.hands, first, onchain, elsewhere, draft.caps)
