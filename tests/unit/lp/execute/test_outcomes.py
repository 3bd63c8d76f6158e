"""What came of a position is written down whenever a plan has closed it, however the plan ended."""

from __future__ import annotations

from typing import Any

import pytest

from zuno.kernel.errors import Refused, Unavailable
from zuno.lp.model.plan import PlanState
from zuno.lp.model.plan_events import Action, PlanOutcome
from zuno.lp.ports.spending import Call
from zuno.lp.service.execution import Execution
from zuno.lp.service.positions import LpDesk


def execution(bench: Any) -> Execution:
    async def journal() -> Any:
        return bench.journal

    async def hands(chain: str) -> Any:
        return bench.hands

    archive: Any = None  # plans without a debate are not looked for there
    return Execution(
        journal, archive, hands, lambda chain: LpDesk(bench.chain, bench.hands.feeds_of), "sim", lambda count: b"1"
    )


async def halfway(bench: Any) -> str:
    """A rebalance whose burn is final, and whose mint no node would try."""
    plan_id: str = await bench.approved(await bench.two_steps())
    estimate = bench.pond.writer.estimate

    async def refusing(wallet: Any, call: Call) -> int:
        if any(step.signed for step in (await bench.book(plan_id)).steps):
            raise Refused("The call would revert: no.")
        return int(await estimate(wallet, call))

    bench.pond.writer.estimate = refusing
    with pytest.raises(Refused, match=f"{plan_id} is {PlanState.PARTIAL}"):
        await bench.apply(plan_id)
    bench.pond.writer.estimate = estimate
    return plan_id


def heard(line: str) -> None:
    """Nobody listens."""


async def outcomes(bench: Any) -> int:
    return len([one async for one in bench.journal.entries(kind=PlanOutcome.kind)])


@pytest.mark.slow
async def test_a_plan_called_off_after_its_first_half_tells_what_became_of_the_position(bench: Any) -> None:
    plan_id = await halfway(bench)
    view = await execution(bench).cancel(plan_id, heard)
    assert view.state == PlanState.CANCELLED
    assert view.outcome is not None
    assert view.outcome["id"] == str(bench.edge)
    assert view.outcome["inToken1"]["residual"] in ("0", "0.0")
    assert await outcomes(bench) == 1


async def test_a_plan_called_off_before_anything_has_no_outcome(bench: Any) -> None:
    plan_id = await bench.approved(await bench.told(Action.CLOSE))
    view = await execution(bench).cancel(plan_id, heard)
    assert view.state == PlanState.CANCELLED
    assert view.outcome is None
    assert await outcomes(bench) == 0


@pytest.mark.slow
async def test_a_plan_that_was_done_before_it_could_be_called_off_has_its_outcome(bench: Any) -> None:
    plan_id = await bench.approved(await bench.told(Action.CLOSE))
    bench.pond.answers = [Unavailable("no answer")]
    with pytest.raises(Unavailable):
        await bench.apply(plan_id)
    await bench.pond.writer.send(bench.pond.taken[-1])
    view = await execution(bench).cancel(plan_id, heard)
    assert view.state == PlanState.CONFIRMED
    assert view.outcome is not None
    assert await outcomes(bench) == 1
