"""Steps on their way, plans given up, and processes that die over either: one number, one end, nothing left allowed."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from zuno.adapters.file_lock import wallet_lock
from zuno.kernel.errors import Refused, Unavailable
from zuno.kernel.units import HexId
from zuno.lp.execute import checks
from zuno.lp.execute.context import Timeouts
from zuno.lp.execute.plan_run import PlanRun
from zuno.lp.execute.plan_state import PlanPart, PlanProgress
from zuno.lp.model.plan import PlanState, StepState
from zuno.lp.model.plan_events import Action
from zuno.lp.ports.spending import SendResult


class Full:
    """A disk that is full when an entry of this kind is to be written, after so many of them."""

    def __init__(self, journal: Any, kind: str, after: int = 0) -> None:
        self._journal = journal
        self._kind = kind
        self._left = after

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)

    async def append(self, *, kind: str, **entry: Any) -> Any:
        if kind == self._kind:
            self._left -= 1
            if self._left < 0:
                raise Unavailable("the disk is full")
        return await self._journal.append(kind=kind, **entry)


def dying(bench: Any, kind: str, after: int = 0) -> dict[str, Any]:
    return {"journal": Full(bench.journal, kind, after)}


async def allowed(bench: Any) -> dict[str, int]:
    """What the router may take through Permit2 of the pair's tokens."""
    key, router = (await bench.position()).pool.key, bench.info.deployment.universal_router
    wallet_state = await bench.pond.wallet_state(bench.wallet, (key.currency0, key.currency1), (router,))
    return {token: grant.amount for (token, _), grant in wallet_state.allowances.grants.items()}


async def begun(bench: Any) -> str:
    """A create whose permit is final, and whose swap and mint is not signed yet."""
    plan_id: str = await bench.approved(await bench.creation())
    with pytest.raises(Unavailable, match="disk is full"):
        await bench.apply(plan_id, **dying(bench, "step_signed", 1))
    book = await bench.book(plan_id)
    assert [step.state for step in book.steps] == [StepState.FINAL, StepState.PLANNED]
    assert any((await allowed(bench)).values())
    return plan_id


async def closing(bench: Any) -> str:
    plan_id: str = await bench.approved(await bench.told(Action.CLOSE))
    return plan_id


def numbers(book: PlanProgress) -> list[int]:
    return [one.nonce for step in book.steps for one in step.signed]


# -- a step on its way


async def test_a_step_is_stored_then_sent_then_looked_for(bench: Any) -> None:
    plan_id = await closing(bench)
    book = await bench.apply(plan_id)
    assert book.state is PlanState.CONFIRMED
    kinds = [entry.kind async for entry in bench.journal.entries(request_id=plan_id)]
    assert kinds[2:] == ["plan_applying", "step_signed", "step_sent", "step_mined", "step_over", "plan_over"]
    assert bench.pond.taken == [bytes.fromhex(book.steps[0].newest.raw[2:])]


@pytest.mark.slow
async def test_bytes_that_were_never_stored_are_never_sent(bench: Any) -> None:
    plan_id = await closing(bench)
    for kind in ("plan_applying", "step_signed"):
        with pytest.raises(Unavailable, match="disk is full"):
            await bench.apply(plan_id, **dying(bench, kind))
        assert bench.pond.taken == []
    assert (await bench.apply(plan_id)).state is PlanState.CONFIRMED
    assert len(bench.pond.taken) == 1


async def test_bytes_that_were_stored_and_sent_by_a_process_that_died_are_found_waiting(bench: Any) -> None:
    plan_id = await closing(bench)
    bench.pond.holding = True
    with pytest.raises(Unavailable, match="disk is full"):
        await bench.apply(plan_id, **dying(bench, "step_sent"))
    bench.asleep = [bench.pond.mine]
    book = await bench.apply(plan_id)
    assert book.state is PlanState.CONFIRMED
    assert len(bench.pond.taken) == 1, "the node has them already"
    assert len(book.steps[0].signed) == 1


async def test_bytes_whose_time_has_passed_are_not_sent_after_all(bench: Any) -> None:
    """Signed, stored, never sent; whoever goes on later must not do what nobody approves of any more."""
    plan_id = await closing(bench)
    bench.pond.answers = [Unavailable("no answer")]
    with pytest.raises(Unavailable):
        await bench.apply(plan_id)
    bench.pond.taken.clear()
    bench.pond.later = 10_000
    with pytest.raises(Refused, match=f"{plan_id} ended"):
        await bench.apply(plan_id)
    book = await bench.book(plan_id)
    assert book.state is PlanState.FAILED
    assert book.steps[0].expired
    assert bench.pond.taken == [], "its own deadline killed it: nothing is paid to cancel it"
    assert bench.edge in await bench.owned()


@pytest.mark.parametrize(("after", "overtaken"), [(-1, False), (0, False), (1, True)])
async def test_a_step_is_good_until_the_second_of_its_deadline(bench: Any, after: int, overtaken: bool) -> None:
    plan_id = await closing(bench)
    bench.pond.answers = [Unavailable("no answer")]
    with pytest.raises(Unavailable):
        await bench.apply(plan_id)
    deadline = (await bench.book(plan_id)).steps[0].step.deadline
    assert deadline is not None
    bench.pond.later = deadline - (await bench.chain.head()).timestamp + after
    if overtaken:
        with pytest.raises(Refused, match=f"{plan_id} ended"):
            await bench.apply(plan_id)
    else:
        assert (await bench.apply(plan_id)).state is PlanState.CONFIRMED
    assert (await bench.book(plan_id)).steps[0].expired is overtaken


async def pass_until(bench: Any, moment: int) -> None:
    """Blocks of somebody with the same key, until the head is of that moment."""
    while (head := await bench.chain.head()).timestamp < moment:
        await bench.spend_number((await bench.pond.wallet_state(bench.wallet, (), ())).nonce)
    assert head.timestamp == moment, "blocks come every twelve seconds"


@pytest.mark.slow
async def test_an_approval_is_good_until_its_last_second(bench: Any) -> None:
    plan_id, other = await closing(bench), (await bench.drafted(await bench.told(Action.COLLECT))).draft
    expires = (await bench.book(plan_id)).draft.expires
    gate, word = bench.gate(), bench.gate().approval(other, "test")
    await pass_until(bench, expires)
    assert await gate.status(plan_id) == (await bench.book(plan_id), False)
    assert (await gate.approve(other, word)).state is PlanState.APPROVED
    await pass_until(bench, expires + 12)
    assert await gate.status(plan_id) == (await bench.book(plan_id), True)
    with pytest.raises(checks.ApprovalExpired):
        await gate.approve(other, word)


@pytest.mark.slow
@pytest.mark.parametrize(("after", "ending"), [(0, PlanState.CANCELLED), (12, PlanState.FAILED)])
async def test_what_is_overtaken_in_time_is_called_off_and_later_it_failed(
    bench: Any, after: int, ending: PlanState
) -> None:
    """An allowance has no deadline of its own: the empty transaction that takes its number is mined in the approval's
    last second, or in the block behind that."""
    plan_id = await bench.approved(await bench.creation())
    expires = (await bench.book(plan_id)).draft.expires
    await pass_until(bench, expires - 12)
    bench.pond.answers = [Unavailable("no answer")]
    with pytest.raises(Unavailable):
        await bench.apply(plan_id)
    if after:
        await bench.chain.move(Decimal("0.1"))  # a block without the wallet
    bench.pond.later = 10_000
    with pytest.raises(Refused, match=f"{plan_id} ended.*{ending}"):
        await bench.apply(plan_id)
    book = await bench.book(plan_id)
    assert book.steps[0].mined is not None
    assert book.steps[0].mined.block.timestamp == expires + after


async def test_the_newest_bytes_are_the_ones_that_are_given_again(bench: Any) -> None:
    """A higher bid was stored and its process died: the old bytes wait, the new ones are not known anywhere."""
    plan_id = await closing(bench)
    bench.pond.holding = True
    bench.asleep = [lambda: bench.wait(31)]
    patient = Timeouts(poll_interval=1, speed_up=30, patience=60)
    old = bench.pond.send

    async def first_only(raw: bytes) -> SendResult:
        if bench.pond.taken:
            raise Unavailable("no answer")
        said: SendResult = await old(raw)
        return said

    bench.pond.send = first_only
    with pytest.raises(Unavailable, match="no answer"):
        await bench.apply(plan_id, timeouts=patient)
    del bench.pond.send
    bench.asleep = [bench.pond.mine]
    book = await bench.apply(plan_id)
    first, second = book.steps[0].signed
    assert first.nonce == second.nonce
    assert second.max_fee > first.max_fee
    assert book.steps[0].mined is not None
    assert book.steps[0].mined.hash == second.hash


@pytest.mark.slow
async def test_a_node_that_finds_the_fee_too_low_is_bid_more_up_to_the_bound(bench: Any) -> None:
    plan_id = await closing(bench)
    bench.pond.answers = [SendResult.UNDERPRICED]
    book = await bench.apply(plan_id)
    assert len(book.steps[0].signed) == 2
    other: str = await bench.approved(await bench.told(Action.CLOSE, bench.inside))
    bench.pond.answers = [SendResult.UNDERPRICED] * 99
    with pytest.raises(Refused, match=r"\d+ wei"):
        await bench.apply(other)
    stuck = await bench.book(other)
    assert stuck.draft is not None
    assert max(one.max_fee for one in stuck.steps[0].signed) <= stuck.draft.gas.max_fee
    assert set(numbers(stuck)) == {stuck.steps[0].nonce}


@pytest.mark.slow
async def test_a_node_s_refusal_leaves_the_step_signed_and_says_how_to_go_on(bench: Any) -> None:
    plan_id = await closing(bench)
    bench.pond.answers = [Refused("insufficient funds for gas")]
    with pytest.raises(Refused, match="insufficient funds for gas") as refused:
        await bench.apply(plan_id)
    assert f"zuno plan cancel {plan_id}" in str(refused.value)
    assert (await bench.book(plan_id)).steps[0].state is StepState.SIGNED
    book = await bench.apply(plan_id)
    assert book.state is PlanState.CONFIRMED
    assert len(book.steps[0].signed) == 1


async def test_a_number_that_somebody_took_is_given_up_for_the_next(bench: Any) -> None:
    plan_id = await closing(bench)
    bench.pond.holding = True
    taken: list[int] = []

    async def overtaken() -> None:
        taken.append((await bench.book(plan_id)).steps[0].nonce)
        await bench.spend_number(taken[0])
        bench.pond.holding = False

    bench.asleep = [overtaken]
    book = await bench.apply(plan_id)
    assert book.state is PlanState.CONFIRMED
    assert numbers(book) == [taken[0] + 1]


async def test_a_stranger_s_transaction_that_is_not_final_takes_nothing_yet(bench: Any) -> None:
    """It may be reorganised away, and ours be mined after all: a second number would be a second chance."""
    plan_id = await closing(bench)
    bench.pond.holding = True
    states: list[StepState] = []

    async def overtaken() -> None:
        nonce = (await bench.book(plan_id)).steps[0].nonce
        await bench.spend_number(nonce)
        bench.pond.settled = nonce

    async def still() -> None:
        states.append((await bench.book(plan_id)).steps[0].state)

    async def settled() -> None:
        await still()
        bench.pond.settled, bench.pond.holding = None, False

    bench.asleep = [overtaken, still, settled]
    given = len(bench.pond.taken) + 1
    book = await bench.apply(plan_id)
    assert states == [StepState.SENT] * 2
    assert len(bench.pond.taken) == given + 1, "bytes without a number are not given again"
    assert book.state is PlanState.CONFIRMED


async def test_a_receipt_is_not_the_end_before_it_is_deep_enough(bench: Any) -> None:
    class Deep:
        """The same chain, where a receipt is final two blocks later."""

        info = replace(bench.info, confirmations=3)

        def __getattr__(self, name: str) -> Any:
            return getattr(bench.chain, name)

    plan_id = await closing(bench)
    states: list[StepState] = []

    async def another_block() -> None:
        states.append((await bench.book(plan_id)).steps[0].state)
        await bench.spend_number((await bench.pond.wallet_state(bench.wallet, (), ())).nonce)

    bench.asleep = [another_block, another_block]
    book = await bench.apply(plan_id, chain=Deep())
    assert states == [StepState.MINED] * 2
    assert book.state is PlanState.CONFIRMED
    assert len(bench.pond.taken) == 1


@pytest.mark.slow
async def test_another_plan_waits_for_the_one_that_is_on_its_way(bench: Any) -> None:
    plan_id = await closing(bench)
    other: str = await bench.approved(await bench.told(Action.COLLECT, bench.inside))
    bench.pond.holding = True
    with pytest.raises(Unavailable, match="final"):
        await bench.apply(plan_id)
    with pytest.raises(Refused, match=f"`zuno plan apply {plan_id}` or `zuno plan cancel {plan_id}` first"):
        await bench.apply(other)
    await bench.pond.mine()
    bench.pond.holding = False
    assert (await bench.apply(other)).state is PlanState.CONFIRMED
    assert (await bench.book(plan_id)).steps[0].state is StepState.FINAL


async def test_the_word_has_to_be_given(bench: Any) -> None:
    plan_id = await closing(bench)
    with pytest.raises(Refused, match="confirmed"):
        await bench.gate().apply(plan_id, lambda drafted, approval: False, bench.heard.append)
    assert (await bench.book(plan_id)).state is PlanState.APPROVED
    assert bench.pond.taken == []


@pytest.mark.slow
async def test_an_approval_that_comes_too_late_is_not_signed(bench: Any) -> None:
    drafted = await bench.drafted(await bench.told(Action.CLOSE))
    for _ in range(80):  # sixteen minutes
        await bench.spend_number((await bench.pond.wallet_state(bench.wallet, (), ())).nonce)
    gate = bench.gate()
    with pytest.raises(Refused, match="expired"):
        await gate.approve(drafted.draft, gate.approval(drafted.draft, "test"))
    assert (await bench.book(drafted.draft.plan_id)).approved is None


async def test_a_speed_up_pays_a_tenth_more_of_both_at_least_and_keeps_what_was_held(bench: Any) -> None:
    plan_id = await closing(bench)
    bench.pond.holding = True
    bench.asleep = [lambda: bench.wait(31), bench.pond.mine]
    book = await bench.apply(plan_id, timeouts=Timeouts(poll_interval=1, speed_up=30, patience=60))
    first, second = book.steps[0].signed
    assert 10 * second.max_fee >= 11 * first.max_fee
    assert 10 * second.tip >= 11 * first.tip
    assert second.holdings == first.holdings != ()
    assert second.gas == first.gas
    assert book.over is not None
    assert book.over.problems == ()


# -- calling off


async def test_a_plan_is_called_off_before_anything_is_signed(bench: Any) -> None:
    plan_id = await closing(bench)
    assert (await bench.cancel(plan_id)).state is PlanState.CANCELLED
    with pytest.raises(Refused, match=f"{plan_id} is {PlanState.CANCELLED}"):
        await bench.apply(plan_id)
    with pytest.raises(Refused, match=f"{plan_id} is {PlanState.CANCELLED}"):
        await bench.cancel(plan_id)
    assert bench.pond.taken == []


async def test_calling_off_what_no_node_has_ever_seen_takes_its_number_all_the_same(bench: Any) -> None:
    plan_id = await closing(bench)
    bench.pond.answers = [Unavailable("no answer")]
    with pytest.raises(Unavailable):
        await bench.apply(plan_id)
    book = await bench.cancel(plan_id)
    assert book.state is PlanState.CANCELLED
    assert book.steps[0].is_cancelled
    assert bench.edge in await bench.owned()


@pytest.mark.slow
async def test_an_empty_transaction_that_pays_too_little_is_waited_for_and_bid_more(bench: Any) -> None:
    """Whoever holds the number at the node pays more: the gate neither spins nor gives up at once."""
    plan_id = await closing(bench)
    bench.pond.answers = [Unavailable("no answer")]
    with pytest.raises(Unavailable):
        await bench.apply(plan_id)
    bench.pond.answers = [SendResult.UNDERPRICED] * 3
    book = await bench.cancel(plan_id)
    assert book.state is PlanState.CANCELLED
    assert bench.clock > 0, "it slept between two tries"
    other: str = await bench.approved(await bench.told(Action.CLOSE, bench.inside))
    bench.pond.answers = [Unavailable("no answer")]
    with pytest.raises(Unavailable):
        await bench.apply(other)
    bench.pond.answers = [SendResult.UNDERPRICED] * 999
    with pytest.raises(Unavailable, match=r"\b20 s"):
        await bench.cancel(other)


async def test_calling_off_that_is_sped_up_is_still_calling_off(bench: Any) -> None:
    plan_id = await closing(bench)
    bench.pond.holding = True
    with pytest.raises(Unavailable, match="final"):
        await bench.apply(plan_id)
    bench.asleep = [lambda: bench.wait(31), bench.pond.mine]
    book = await bench.cancel(plan_id, timeouts=Timeouts(poll_interval=1, speed_up=30, patience=60))
    first, second, third = book.steps[0].signed
    assert (first.cancels, second.cancels, third.cancels) == (False, True, True)
    assert book.steps[0].mined is not None
    assert book.steps[0].mined.hash == third.hash
    assert book.state is PlanState.CANCELLED
    assert bench.edge in await bench.owned()


@pytest.mark.slow
async def test_a_number_that_somebody_took_while_we_called_off_is_called_off_too(bench: Any) -> None:
    plan_id = await closing(bench)
    bench.pond.answers = [Unavailable("no answer")]
    with pytest.raises(Unavailable):
        await bench.apply(plan_id)
    nonce = (await bench.book(plan_id)).steps[0].nonce
    bench.pond.holding = True
    bench.asleep = [lambda: bench.spend_number(nonce)]
    book = await bench.cancel(plan_id)
    assert book.state is PlanState.CANCELLED
    assert bench.edge in await bench.owned()
    assert set(numbers(book)) == {nonce}, "nothing new was signed"


async def test_what_was_allowed_is_taken_back_when_a_plan_is_called_off(bench: Any) -> None:
    plan_id = await begun(bench)
    book = await bench.cancel(plan_id)
    assert book.state is PlanState.CANCELLED
    assert book.over is not None
    assert book.over.problems == ()
    assert not any((await allowed(bench)).values())


async def test_a_plan_that_was_being_called_off_is_not_applied_after_a_crash(bench: Any) -> None:
    plan_id = await begun(bench)
    with pytest.raises(Unavailable, match="disk is full"):
        await bench.cancel(plan_id, **dying(bench, "step_signed"))
    assert any(step.part is PlanPart.REVOKING for step in (await bench.book(plan_id)).steps)
    with pytest.raises(Refused, match=f"{plan_id}.*{PlanState.CANCELLED}"):
        await bench.apply(plan_id)
    book = await bench.book(plan_id)
    assert book.state is PlanState.CANCELLED
    assert not any((await allowed(bench)).values())
    assert book.steps[1].state is StepState.PLANNED, "the mint was never signed"


async def test_calling_off_again_does_not_call_off_the_taking_back(bench: Any) -> None:
    plan_id = await begun(bench)
    bench.pond.holding = True
    with pytest.raises(Unavailable, match="final"):
        await bench.cancel(plan_id)
    assert (await bench.book(plan_id)).over is None, "it is not over while its last transaction is on its way"
    bench.asleep = [bench.pond.mine]
    book = await bench.cancel(plan_id)
    assert book.state is PlanState.CANCELLED
    assert not any(one.cancels for step in book.steps for one in step.signed)
    assert not any((await allowed(bench)).values())


async def test_taking_back_is_never_too_late(bench: Any) -> None:
    """A plan is given up because its time is over: the empty transaction of a deadline is not for the taking back."""
    plan_id = await begun(bench)
    bench.pond.holding, bench.pond.later = True, 10_000
    bench.asleep = [lambda: None, lambda: None, bench.pond.mine]
    book = await bench.cancel(plan_id)
    revoked = [step for step in book.steps if step.part is PlanPart.REVOKING]
    assert [step.state for step in revoked] == [StepState.FINAL]
    assert not any(one.cancels for step in book.steps for one in step.signed)
    assert not any((await allowed(bench)).values())


@pytest.mark.slow
async def test_a_pause_of_the_node_while_taking_back_is_no_end(bench: Any) -> None:
    plan_id = await begun(bench)
    bench.pond.answers = [Unavailable("no answer")]
    with pytest.raises(Unavailable, match="no answer"):
        await bench.cancel(plan_id)
    assert (await bench.book(plan_id)).over is None
    with pytest.raises(Refused, match=f"{plan_id}.*{PlanState.CANCELLED}"):
        await bench.apply(plan_id)
    assert not any((await allowed(bench)).values())
    assert (await bench.book(plan_id)).state is PlanState.CANCELLED


@pytest.mark.slow
async def test_what_cannot_be_taken_back_is_said(bench: Any) -> None:
    class Poor:
        """Nobody can say what the taking back would need."""

        def __init__(self, writer: Any) -> None:
            self._writer = writer

        def __getattr__(self, name: str) -> Any:
            return getattr(self._writer, name)

        async def estimate(self, *asked: Any) -> int:
            raise Refused("it would revert: Frozen()")

    plan_id = await begun(bench)
    book = await bench.cancel(plan_id, writer=Poor(bench.pond))
    assert book.state is PlanState.CANCELLED
    assert book.over is not None
    (problem,) = book.over.problems
    assert "Frozen()" in problem


@pytest.mark.slow
async def test_an_approval_that_runs_out_half_way_ends_the_plan_and_takes_back_what_it_allowed(bench: Any) -> None:
    plan_id = await begun(bench)
    for _ in range(80):  # sixteen minutes
        nonce = (await bench.pond.wallet_state(bench.wallet, (), ())).nonce
        await bench.spend_number(nonce)
    with pytest.raises(Refused, match=r"expired.*failed"):
        await bench.apply(plan_id)
    book = await bench.book(plan_id)
    assert book.state is PlanState.FAILED
    assert not any((await allowed(bench)).values())
    with pytest.raises(Refused, match=f"{plan_id} is {PlanState.FAILED}"):
        await bench.cancel(plan_id)


# -- what takes a person's time


async def test_a_wallet_is_unlocked_before_the_last_look_at_the_chain(bench: Any) -> None:
    """Typing a passphrase takes minutes, in which a price can move."""
    plan_id = await closing(bench)
    order: list[str] = []

    class Slow:
        watch_only = False
        address = bench.wallet

        def ready(self) -> None:
            order.append("unlocked")

        def sign(self, tx: Any) -> Any:
            order.append("signed")
            return bench.hands.signer.sign(tx)

    class Watching(Instead):
        async def wallet_state(self, *asked: Any) -> Any:
            order.append("looked")
            return await bench.hands.writer.wallet_state(*asked)

    await bench.apply(plan_id, signer=Slow(), writer=Watching(bench.hands.writer))
    assert order.index("unlocked") < len(order) - 1 - order[::-1].index("looked")
    at = order.index("signed")
    assert order[at - 1] == "looked", "nothing takes time between the last look and the signature"


async def test_a_wallet_that_cannot_be_unlocked_leaves_no_intent(bench: Any) -> None:
    plan_id = await closing(bench)

    class Locked:
        watch_only = False
        address = bench.wallet

        def ready(self) -> None:
            raise Refused("That is not the passphrase.")

    with pytest.raises(Refused, match="passphrase"):
        await bench.apply(plan_id, signer=Locked())
    assert (await bench.book(plan_id)).state is PlanState.APPROVED


# -- called off, and then the process died


@pytest.mark.slow
async def test_the_owner_s_no_outlives_the_process(bench: Any) -> None:
    """Called off while the burn was on its way; the burn is mined all the same, and nobody goes on with the rest."""
    plan_id = await bench.approved(await bench.two_steps())
    key = (await bench.position()).pool.key
    pair = (key.currency0, key.currency1)
    held = (await bench.pond.wallet_state(bench.wallet, pair, ())).holdings
    bench.pond.holding = True
    with pytest.raises(Unavailable):
        await bench.apply(plan_id)
    with pytest.raises(Unavailable):
        await bench.cancel(plan_id)
    bench.pond.holding = False
    await bench.pond.mine(0)
    with pytest.raises(Refused, match="cancelled"):
        await bench.apply(plan_id)
    book = await bench.book(plan_id)
    assert book.state is PlanState.CANCELLED
    assert [step.part.value for step in book.steps] == ["first"], "the second half was never begun"
    after = (await bench.pond.wallet_state(bench.wallet, pair, ())).holdings
    assert all(after[each] > held[each] for each in pair), "what the burn paid is in the wallet"


async def test_a_cancel_remembers_what_the_wallet_held(bench: Any) -> None:
    """What a second half may spend is counted from before the first was signed, whichever bytes were signed last."""
    plan_id = await bench.approved(await bench.two_steps())
    bench.pond.holding = True
    with pytest.raises(Unavailable):
        await bench.apply(plan_id)
    with pytest.raises(Unavailable):
        await bench.cancel(plan_id)
    step = (await bench.book(plan_id)).steps[0]
    assert step.newest.cancels
    assert step.newest.holdings == step.signed[0].holdings != ()


# -- the last look, between two steps of a plan that is under way


class Instead:
    """Something of ours with one answer of its own."""

    def __init__(self, honest: Any, **answers: Any) -> None:
        self._honest = honest
        self.__dict__.update(answers)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._honest, name)


@pytest.mark.slow
async def test_a_price_that_left_the_bounds_before_the_next_step(bench: Any) -> None:
    plan_id = await begun(bench)

    async def pool(pool_id: HexId) -> Any:
        honest = await bench.chain.pool(pool_id)
        return replace(honest, tick=honest.tick + 51)

    with pytest.raises(Refused, match=r"\b1 outside.*\b50\b"):
        await bench.apply(plan_id, chain=Instead(bench.chain, pool=pool))
    assert (await bench.apply(plan_id)).state is PlanState.CONFIRMED


async def test_a_price_that_moved_after_the_approval_leaves_no_trace(bench: Any) -> None:
    """Nothing is signed and not even the intent is on record: the day's cap is not touched."""
    plan_id: str = await bench.approved(await bench.creation())

    async def pool(pool_id: HexId) -> Any:
        honest = await bench.chain.pool(pool_id)
        return replace(honest, tick=honest.tick + 51)

    with pytest.raises(Refused, match=r"\b51 ticks.*\b50\b"):
        await bench.apply(plan_id, chain=Instead(bench.chain, pool=pool))
    book = await bench.book(plan_id)
    assert (book.state, book.applying) == (PlanState.APPROVED, None)
    assert bench.pond.taken == []


async def test_a_plan_the_desk_advised_against_is_never_applied(bench: Any) -> None:
    plan_id = await closing(bench)
    await bench.gate().reject(plan_id, "every move was vetoed")
    assert (await bench.book(plan_id)).state is PlanState.REJECTED
    with pytest.raises(Refused, match=f"{plan_id} is {PlanState.REJECTED}"):
        await bench.apply(plan_id)
    assert bench.pond.taken == []


@pytest.mark.slow
async def test_what_is_under_way_or_over_is_not_rejected_any_more(bench: Any) -> None:
    over, under_way = await closing(bench), await begun(bench)
    await bench.cancel(over)
    for plan_id, state in ((over, PlanState.CANCELLED), (under_way, PlanState.APPLYING)):
        before = await bench.book(plan_id)
        await bench.gate().reject(plan_id, "too late")
        assert await bench.book(plan_id) == before
        assert before.state is state


@pytest.mark.slow
async def test_an_approval_that_ran_out_leaves_no_trace(bench: Any) -> None:
    plan_id = await closing(bench)
    for _ in range(80):  # sixteen minutes
        await bench.spend_number((await bench.pond.wallet_state(bench.wallet, (), ())).nonce)
    _, late = await bench.gate().status(plan_id)
    assert late
    with pytest.raises(Refused, match="expired"):
        await bench.apply(plan_id)
    assert (await bench.book(plan_id)).applying is None


@pytest.mark.slow
async def test_a_price_the_world_does_not_share_before_the_next_step(bench: Any) -> None:
    plan_id = await begun(bench)
    honest = bench.hands.feeds_of

    async def spot(pair: Any, now: Any) -> Any:
        fact = await honest("").prices.spot(pair, now)
        return replace(fact, value=fact.value * 2)

    def feeds(pool_id: HexId) -> Any:
        return replace(honest(pool_id), prices=Instead(honest(pool_id).prices, spot=spot))

    with pytest.raises(Refused, match=r"\d+\.\d\d %.*\(seed\)"):
        await bench.apply(plan_id, feeds_of=feeds)
    assert (await bench.book(plan_id)).steps[1].state is StepState.PLANNED


@pytest.mark.slow
async def test_a_step_that_would_burn_more_gas_than_was_approved(bench: Any) -> None:
    plan_id = await begun(bench)

    async def estimate(*asked: Any) -> int:
        return 10**8

    with pytest.raises(Refused, match="100000000"):
        await bench.apply(plan_id, writer=Instead(bench.pond, estimate=estimate))

    async def gas() -> Any:
        honest = await bench.chain.gas()
        return replace(honest, base_fee=honest.base_fee * 10)

    with pytest.raises(Refused, match=r"\d+ wei.*\d+ wei"):
        await bench.apply(plan_id, chain=Instead(bench.chain, gas=gas))


async def test_the_bytes_themselves_are_read_once_more(bench: Any) -> None:
    """A book that was tampered with in memory: the bytes pay somebody else."""
    plan_id = await begun(bench)
    book = await bench.book(plan_id)
    run = PlanRun(bench.hands, book, book.draft, bench.heard.append)
    assert (await run.prepare_signing(1)).nonce
    step = book.steps[1].step
    wallet, other = bytes.fromhex(bench.wallet[2:]), bytes.fromhex(bench.others[2:])
    assert wallet in step.data
    book.steps[1].step = replace(step, data=step.data.replace(wallet, other))
    with pytest.raises(Refused, match=bench.others):
        await run.prepare_signing(1)


# -- other plans, other worlds


@pytest.mark.slow
async def test_a_plan_of_another_world_is_left_alone(bench: Any, tmp_path: Any) -> None:
    """The same wallet, id and name, another first block: bytes signed for the one would be good in the other."""
    plan_id = await closing(bench)
    bench.pond.answers = [Unavailable("no answer")]
    with pytest.raises(Unavailable):
        await bench.apply(plan_id)
    bench.pond.taken.clear()

    class Elsewhere:
        def __init__(self, writer: Any) -> None:
            self._writer = writer

        def __getattr__(self, name: str) -> Any:
            return getattr(self._writer, name)

        async def genesis(self) -> HexId:
            return HexId("0x" + "11" * 32)

    there = Elsewhere(bench.pond)
    for act in (bench.apply, bench.cancel):
        with pytest.raises(Refused, match="began"):
            await act(plan_id, writer=there)
    book, _ = await bench.gate(writer=there).status(plan_id)
    await bench.gate(writer=there).reconcile(bench.heard.append)
    assert bench.pond.taken == []
    assert book.steps[0].state is StepState.SIGNED
    assert (await bench.apply(plan_id)).state is PlanState.CONFIRMED


async def test_another_wallet_s_plan_is_neither_sent_nor_called_off(bench: Any) -> None:
    plan_id = await closing(bench)
    bench.pond.answers = [Unavailable("no answer")]
    with pytest.raises(Unavailable):
        await bench.apply(plan_id)
    bench.pond.taken.clear()

    class Other:
        watch_only = False
        address = bench.others

        def sign(self, tx: object) -> object:
            raise AssertionError("nothing is to be signed")

    for act in (bench.apply, bench.cancel):
        with pytest.raises(Refused, match=f"{bench.wallet}.*{bench.others}"):
            await act(plan_id, signer=Other())
    await bench.gate(signer=Other()).reconcile(bench.heard.append)
    assert bench.pond.taken == []


async def test_only_looking_sends_nothing(bench: Any) -> None:
    plan_id = await closing(bench)
    bench.pond.answers = [Unavailable("no answer")]
    with pytest.raises(Unavailable):
        await bench.apply(plan_id)
    bench.pond.taken.clear()
    book, late = await bench.gate().status(plan_id)
    assert (book.state, late) == (PlanState.APPLYING, False)
    assert bench.pond.taken == []


def busy(name: str) -> Any:
    raise Refused("This wallet is being used by process 1; wait until it is done.")


async def test_a_wallet_in_use_is_applied_by_nobody_else_and_can_be_looked_at(bench: Any) -> None:
    plan_id = await closing(bench)
    book, _ = await bench.gate(lock=busy).status(plan_id)
    assert book.state is PlanState.APPROVED
    for act in (bench.apply, bench.cancel):
        with pytest.raises(Refused, match="is being used by process 1"):
            await act(plan_id, lock=busy)


async def test_a_look_sees_what_was_mined_without_the_lock_and_writes_nothing(bench: Any) -> None:
    plan_id = await closing(bench)
    bench.pond.holding = True
    with pytest.raises(Unavailable):
        await bench.apply(plan_id)
    await bench.pond.mine()
    before = len([entry async for entry in bench.journal.entries()])
    book, _ = await bench.gate(lock=busy).status(plan_id)
    assert book.steps[0].state is StepState.FINAL
    assert (await bench.book(plan_id)).steps[0].state is StepState.SENT
    assert len([entry async for entry in bench.journal.entries()]) == before
    bench.pond.holding = False
    assert (await bench.apply(plan_id)).state is PlanState.CONFIRMED


async def test_a_look_that_waits_for_the_node_keeps_nobody_from_applying(bench: Any, tmp_path: Path) -> None:
    """And tells what the journal says, which is newer than what it asked the node about."""
    plan_id = await closing(bench)
    bench.pond.holding = True
    with pytest.raises(Unavailable):
        await bench.apply(plan_id)
    looking, applied = asyncio.Event(), asyncio.Event()

    async def trace(*asked: Any) -> Any:
        looking.set()
        await applied.wait()
        return await bench.pond.trace(*asked)

    def lock(name: str) -> Any:
        return wallet_lock(tmp_path, name)

    look = asyncio.create_task(bench.gate(lock=lock, writer=Instead(bench.pond, trace=trace)).status(plan_id))
    await looking.wait()
    await bench.pond.mine()
    assert (await bench.apply(plan_id, lock=lock)).state is PlanState.CONFIRMED
    applied.set()
    assert (await look)[0] == await bench.book(plan_id)


# -- the second half


@pytest.mark.slow
async def test_a_second_half_whose_number_was_lost_is_done_once(bench: Any) -> None:
    """Somebody takes the number of the mint, the price leaves the bounds, comes back, and the plan goes on."""
    plan_id: str = await bench.approved(await bench.two_steps())
    before = await bench.owned()

    class Turning:
        """Everything of the node; the mint's number is taken, and then the node does not answer for a while."""

        def __init__(self, pond: Any) -> None:
            self._pond = pond
            self.lost = False

        def __getattr__(self, name: str) -> Any:
            return getattr(self._pond, name)

        async def send(self, raw: bytes) -> SendResult:
            book = await bench.book(plan_id)
            index, step = next(iter(book.in_flight))
            if step.part is PlanPart.LATER and index == len(book.steps) - 1 and not self.lost:
                self.lost = True
                await bench.spend_number(step.nonce)
                return SendResult.NONCE_SPENT
            said: SendResult = await self._pond.send(raw)
            return said

        async def estimate(self, *asked: Any) -> int:
            if self.lost:
                raise Refused("the price is somewhere else")
            units: int = await self._pond.estimate(*asked)
            return units

    with pytest.raises(Refused, match="the price is somewhere else"):
        await bench.apply(plan_id, writer=Turning(bench.pond))
    assert (await bench.book(plan_id)).state is PlanState.PARTIAL
    book = await bench.apply(plan_id)
    assert book.state is PlanState.CONFIRMED
    assert len(await bench.owned() - before) == 1
    assert book.over is not None
    (problem,) = book.over.problems
    assert "meanwhile" in problem, "the stranger's own fee"
