"""A close that ends in one token: a burn, then one swap of what it paid, never under the approved rate."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from tests.unit.lp.execute.test_carrying import dying
from zuno.kernel.errors import Refused, Unavailable
from zuno.lp.execute.checks import check_policy
from zuno.lp.execute.draft import read_onchain_state
from zuno.lp.model.plan import PlanState, Step, StepKind
from zuno.lp.model.plan_events import Action, Instruction, SwapHome
from zuno.lp.plan import calldata


async def swapping(bench: Any, token_id: int, to: int, share: Fraction = Fraction(97, 100)) -> Instruction:
    price = (await bench.position(token_id)).pool.price
    rate = share * (price if to == 1 else 1 / price)
    instruction: Instruction = await bench.told(Action.CLOSE, token_id, swap_home=SwapHome(to=to, least_rate=rate))
    return instruction


@pytest.mark.parametrize("token_id", [1, 2])
@pytest.mark.parametrize("to", [0, 1])
async def test_everything_ends_in_the_one_token(bench: Any, token_id: int, to: int) -> None:
    key = (await bench.position(token_id)).pool.key
    pair = (key.currency0, key.currency1)
    before = (await bench.pond.wallet_state(bench.wallet, pair, ())).holdings
    book = await bench.apply(await bench.approved(await swapping(bench, token_id, to)))
    after = (await bench.pond.wallet_state(bench.wallet, pair, ())).holdings
    assert (book.state, book.over.problems) == (PlanState.CONFIRMED, ())
    assert book.steps[-1].step.kind is StepKind.SWAP
    gained = [after[each] - before[each] for each in pair]
    assert gained[to] > 0
    # Of ether only gas is gone; of a token nothing is left over.
    assert gained[1 - to] == 0 or (pair[1 - to] == "0x" + "0" * 40 and -(10**16) < gained[1 - to] < 0)
    assert token_id not in await bench.owned()


async def test_the_swap_goes_on_where_the_price_ran_further_than_the_drift_but_not_past_its_rate(bench: Any) -> None:
    plan_id = await bench.approved(await swapping(bench, 1, 1, Fraction(9, 10)))
    with pytest.raises(Unavailable):
        await bench.apply(plan_id, **dying(bench, "plan_finishing"))
    await bench.chain.move(Decimal(-3))
    book = await bench.apply(plan_id)
    assert book.state is PlanState.CONFIRMED


async def test_a_swap_under_its_rate_is_not_signed(bench: Any) -> None:
    plan_id = await bench.approved(await swapping(bench, 1, 1))
    with pytest.raises(Unavailable):
        await bench.apply(plan_id, **dying(bench, "plan_finishing"))
    await bench.chain.move(Decimal(-8))
    taken = len(bench.pond.taken)
    with pytest.raises(Refused):
        await bench.apply(plan_id)
    assert len(bench.pond.taken) == taken
    assert (await bench.book(plan_id)).state is PlanState.PARTIAL


@pytest.mark.parametrize("twist", ["less", "elsewhere", "backwards", "value"])
async def test_the_policy_refuses_bytes_that_are_not_that_swap(bench: Any, twist: str) -> None:
    drafted = await bench.drafted(await swapping(bench, 1, 1))
    draft = drafted.draft
    step = draft.later.preview[-1]
    onchain = await read_onchain_state(bench.hands, draft.pool.id, None)
    key, amount = draft.pool.key, step.most_out[0].amount
    least = step.least_in[0].amount
    struct = bench.info.deployment.swap_struct
    forward, taker, value, out = True, bench.wallet, 0, least
    match twist:
        case "less":
            out = int(amount * draft.instruction.swap_home.least_rate) - 1
        case "elsewhere":
            taker = bench.others
        case "backwards":
            forward = False
        case _:
            value = 1
    actions = [
        calldata.swap_exact_in_single(key, forward, amount, out, struct),
        calldata.settle(key.currency0, calldata.OPEN_DELTA, payer_is_user=True),
        calldata.take(key.currency1, taker, calldata.OPEN_DELTA),
    ]
    data = calldata.execute([calldata.v4_swap(actions)], step.deadline)
    forged = Step(step.kind, step.to, value, data, step.deadline, step.needs, (taker,), step.most_out, step.least_in)
    check_policy(bench.hands, step, onchain, draft, draft.proceeds)
    with pytest.raises(Refused):
        check_policy(bench.hands, forged, onchain, draft, draft.proceeds)
