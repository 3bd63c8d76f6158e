"""A node that lies never makes the desk sign more than the approval and the owner's caps allow, whatever is signed."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.unit.lp.execute.test_carrying import Instead, allowed, begun, numbers
from tests.wire.hostile_gas import GWEI, KINDS, LEAVING, LIES, PATIENT, LyingNode, sign_under_lies
from zuno.adapters.file_lock import wallet_lock
from zuno.kernel.errors import Refused, Unavailable, ZunoError
from zuno.kernel.units import Wei
from zuno.lp.execute.plan_run import PlanRun
from zuno.lp.model.chains import DataFee
from zuno.lp.model.plan import PlanState
from zuno.lp.model.plan_events import Action

ETHER = 10**18
CAPS = {False: (20 * GWEI, ETHER // 10), True: (100 * GWEI, ETHER // 2)}
"""By whether it leaves: the tip and the whole transaction, as the chain's row has them."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lie", LIES)
async def test_a_lying_node_is_signed_for_inside_the_bounds_alone(tmp_path: Path, kind: str, lie: str) -> None:
    done = await sign_under_lies(tmp_path, kind, lie)
    tip, whole = CAPS[kind in LEAVING]
    assert done.tip <= tip
    assert done.wei <= whole
    assert done.max_fee <= done.approved, "nothing has risen since: no block has passed by this machine's clock"
    if kind == "past its deadline":
        assert done.count == 0, "what its own deadline kills is not paid for again"


async def test_a_cancel_of_what_a_node_withheld_does_not_burn_42_ether(bench: Any) -> None:
    """6 gwei were approved for a unit of gas, and 2,000,002 were signed."""
    plan_id: str = await bench.approved(await bench.told(Action.CLOSE))
    bench.pond.answers = [Unavailable("no answer")]
    with pytest.raises(Unavailable):
        await bench.apply(plan_id)
    node = LyingNode(bench, "tip")
    await node.lie()
    with pytest.raises(ZunoError):
        await bench.cancel(plan_id, **node.changes)
    signed = (await bench.book(plan_id)).steps[0].signed
    assert max(each.max_fee for each in signed) <= 6 * GWEI
    assert (await bench.cancel(plan_id)).state is PlanState.CANCELLED, "an honest node later: it is cancelled"


async def test_a_revocation_is_not_signed_at_33_334_times_its_price(bench: Any) -> None:
    """A tip of 100,000 gwei: 6.1 ETH for an allowance."""
    plan_id = await begun(bench)

    async def gas() -> Any:
        told = await bench.chain.gas()
        return type(told)(told.base_fee, type(told.base_fee)(100_000 * GWEI))

    with pytest.raises(Refused):
        await bench.cancel(plan_id, chain=Instead(bench.chain, gas=gas))
    book = await bench.book(plan_id)
    assert max(each.gas * each.max_fee for step in book.steps for each in step.signed) < ETHER // 100
    assert book.over is None, "it waits"
    waits = [entry.payload async for entry in bench.journal.entries(request_id=plan_id, kind="step_waits")]
    assert ["ZUNO_MAX_TIP_GWEI=sim=126" in str(entry["why"]) for entry in waits] == [True]
    assert "block explorer" in str(waits[0]["why"]), "one node alone says so"
    assert (await bench.cancel(plan_id)).state is PlanState.CANCELLED
    assert not any((await allowed(bench)).values())


async def test_plans_of_two_wallets_that_begin_at_once_share_one_cap_of_a_day(bench: Any, tmp_path: Path) -> None:
    """Each fits into the day alone: the second is refused while the first is counted, and then by the cap."""
    first, second = [await bench.approved(await bench.creation(capital0=10**17)) for _ in range(2)]
    honest = bench.hands.feeds_of

    async def spot(pair: Any, now: Any) -> Any:
        await asyncio.sleep(0)  # as any feed does: others go on meanwhile
        return await honest("").prices.spot(pair, now)

    def feeds(pool_id: Any) -> Any:
        return replace(honest(pool_id), prices=Instead(honest(pool_id).prices, spot=spot))

    limits = replace(bench.hands.limits, usd_per_day=Decimal(400))
    context = replace(bench.hands, feeds_of=feeds, lock=lambda name: wallet_lock(tmp_path, name), limits=limits)
    books = [await bench.book(plan_id) for plan_id in (first, second)]
    runs = [PlanRun(context, book, book.draft, bench.heard.append) for book in books]
    done = await asyncio.gather(*(run.record_intent() for run in runs), return_exceptions=True)
    assert [type(each) for each in done] == [type(None), Refused]
    with pytest.raises(Refused, match="ZUNO_SPEND_USD_PER_DAY"):
        await runs[1].record_intent()


async def test_what_is_sent_next_takes_the_number_of_what_a_deadline_killed(bench: Any) -> None:
    """A mint withheld until its deadline: the revocation has its number and outbids it, and only one can be mined."""
    plan_id = await begun(bench)
    bench.pond.answers = [Unavailable("no answer")]
    with pytest.raises(Unavailable):
        await bench.apply(plan_id)
    minted = (await bench.book(plan_id)).steps[1].newest
    bench.pond.taken.clear()
    bench.pond.later = 10_000
    with pytest.raises(Refused, match=f"{plan_id} ended as {PlanState.FAILED}"):
        await bench.apply(plan_id)
    book = await bench.book(plan_id)
    revoked = book.steps[-1].newest
    assert book.steps[1].expired
    assert set(numbers(book)[1:]) == {minted.nonce}
    assert 8 * revoked.max_fee > 9 * minted.max_fee
    assert not revoked.cancels
    assert len(bench.pond.taken) == 1
    assert not any((await allowed(bench)).values())


async def test_the_next_plan_takes_the_number_where_nothing_is_left_to_revoke(bench: Any) -> None:
    plan_id: str = await bench.approved(await bench.told(Action.CLOSE))
    bench.pond.answers = [Unavailable("no answer")]
    with pytest.raises(Unavailable):
        await bench.apply(plan_id)
    killed = (await bench.book(plan_id)).steps[0].newest
    bench.pond.later = 10_000
    with pytest.raises(Refused):
        await bench.apply(plan_id)
    bench.pond.later = 0
    book = await bench.apply(await bench.approved(await bench.told(Action.COLLECT, bench.inside)))
    (first,) = book.steps[0].signed
    assert (first.nonce, 8 * first.tip > 9 * killed.tip) == (killed.nonce, True)
    again = await bench.apply(await bench.approved(await bench.told(Action.CLOSE)))
    assert again.steps[0].nonce == killed.nonce + 1, "mined: the number is free for good"


def at_price(bench: Any, times: int) -> Any:
    """The bench's chain, where a unit of gas costs so many times as much."""

    async def gas() -> Any:
        told = await bench.chain.gas()
        return replace(told, base_fee=Wei(told.base_fee * times))

    return Instead(bench.chain, gas=gas)


async def test_an_exit_goes_on_though_what_holds_its_number_was_far_dearer(bench: Any) -> None:
    """Killed by its deadline while gas was at its peak; what replaces it there would be above the new approval."""
    bench.hands = replace(bench.hands, chain=at_price(bench, 30))
    plan_id: str = await bench.approved(await bench.told(Action.CLOSE))
    bench.pond.answers = [Unavailable("no answer")]
    with pytest.raises(Unavailable):
        await bench.apply(plan_id)
    killed = (await bench.book(plan_id)).steps[0].newest
    bench.pond.later = 10_000
    with pytest.raises(Refused):
        await bench.apply(plan_id)
    bench.pond.later = 0
    bench.hands = replace(bench.hands, chain=bench.chain)
    book = await bench.apply(await bench.approved(await bench.told(Action.CLOSE)))
    assert (book.state, book.steps[0].nonce) == (PlanState.CONFIRMED, killed.nonce)
    assert book.steps[0].newest.max_fee < killed.max_fee


async def test_of_two_nodes_the_one_that_says_too_little_keeps_nothing_waiting(bench: Any) -> None:
    """A node that lies low, or lags behind a rise: what the chain charges is the larger, and a tip rises when it is
    late."""
    told = await bench.chain.gas()
    quotes = [replace(told, base_fee=Wei(1), priority_fee=Wei(0), l1_fee_per_byte=Wei(7)), told]

    async def list_gas() -> Any:
        return quotes

    context = replace(bench.hands, writer=Instead(bench.pond, list_gas=list_gas))
    assert await context.read_gas() == replace(told, priority_fee=Wei(0), l1_fee_per_byte=Wei(7))
    assert (await context.read_gas(late=True)).priority_fee == told.priority_fee


async def test_a_cancel_has_the_gas_that_the_chain_asks_for(bench: Any) -> None:
    """On Arbitrum gas pays for the data as well: no node takes a transaction of 21,000 there."""
    arbitrum = Instead(bench.chain, info=replace(bench.info, data_fee=DataFee.ARBITRUM))

    async def estimate(wallet: Any, call: Any) -> int:
        return 90_000 if not call.data else await bench.pond.estimate(wallet, call)

    for chain, gas in ((bench.chain, 21_000), (arbitrum, 90_000)):
        plan_id: str = await bench.approved(await bench.told(Action.CLOSE))
        bench.pond.answers = [Unavailable("no answer")]
        with pytest.raises(Unavailable):
            await bench.apply(plan_id)
        book = await bench.cancel(plan_id, chain=chain, writer=Instead(bench.pond, estimate=estimate))
        assert (book.state, book.steps[0].newest.gas) == (PlanState.CANCELLED, gas)


async def test_a_wait_is_told_again_once_something_was_signed_since(bench: Any) -> None:
    plan_id: str = await bench.approved(await bench.told(Action.CLOSE))
    bench.pond.holding = True
    prices = [1_000, 1_000, 1, 1_000]

    def pass_time() -> None:
        bench.wait(31)
        bench.hands.chain.gas = at_price(bench, prices.pop(0)).gas

    bench.hands = replace(bench.hands, chain=Instead(bench.chain))
    bench.asleep = [pass_time] * len(prices)
    with pytest.raises(Unavailable):
        await bench.apply(plan_id, timeouts=replace(PATIENT, patience=125))
    entries = [entry.kind async for entry in bench.journal.entries(request_id=plan_id)]
    told = [kind for kind in entries if kind in ("step_signed", "step_waits")]
    assert told == ["step_signed", "step_waits", "step_signed", "step_waits"]
