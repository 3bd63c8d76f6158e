"""The second half of a plan, and what the chain shows when a plan is done: held to the approval, never to a wish."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from zuno.amm.model import LpPosition, Range
from zuno.kernel.errors import Refused, Unavailable
from zuno.kernel.text import NATIVE
from zuno.kernel.units import HexId, Liquidity, Tick
from zuno.lp.execute.draft import read_onchain_state
from zuno.lp.execute.plan_run import PlanRun
from zuno.lp.execute.plan_state import PlanPart, PlanProgress, StepProgress
from zuno.lp.execute.verify_outcome import measure_proceeds, verify_outcome
from zuno.lp.model.plan import Bounds, Flow, PlanState, Step, StepKind, StepState
from zuno.lp.model.plan_events import Action, Draft, Instruction
from zuno.lp.plan import positions


class Full:
    """A disk that is full when an entry of this kind is to be written."""

    def __init__(self, journal: Any, kind: str) -> None:
        self._journal = journal
        self._kind = kind

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)

    async def append(self, *, kind: str, **entry: Any) -> Any:
        if kind == self._kind:
            raise Unavailable("the disk is full")
        return await self._journal.append(kind=kind, **entry)


class Stingy:
    """Knows too little gas for a mint."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._writer, name)

    async def estimate(self, wallet: Any, call: Any) -> int:
        units: int = await self._writer.estimate(wallet, call)
        return 100_000 if units > 300_000 else units


async def halfway(bench: Any, token_id: int = 1) -> str:
    """A rebalance whose first half is final, and whose second was never built."""
    plan_id: str = await bench.approved(await bench.two_steps(token_id))
    with pytest.raises(Unavailable, match="disk is full"):
        await bench.apply(plan_id, journal=Full(bench.journal, "plan_finishing"))
    book = await bench.book(plan_id)
    assert book.state is PlanState.PARTIAL
    return plan_id


def mint_of(draft: Draft) -> Step:
    assert draft.later is not None
    return draft.later.preview[-1]


# -- what was approved


async def test_a_later_step_has_to_be_what_was_approved(bench: Any) -> None:
    told = await bench.two_steps()
    draft = (await bench.drafted(told)).draft
    step = mint_of(draft)

    def check(approved: Draft, step: Step) -> None:
        PlanRun(bench.hands, PlanProgress(draft.plan_id), approved, bench.heard.append)._check_later(step)

    assert step.kind is StepKind.SWAP_AND_MINT
    check(draft, step)
    band = Range(Tick(told.range.lower - 10), told.range.upper)
    other = (await bench.drafted(told.model_copy(update={"range": band}))).draft
    with pytest.raises(Refused, match=f"ticks {band.lower} to {band.upper}"):
        check(draft, mint_of(other))
    turned = replace(draft.later, zero_for_one=not draft.later.zero_for_one)
    with pytest.raises(Refused, match="swaps"):
        check(draft.model_copy(update={"later": turned}), step)
    dearer = replace(draft.later, least_rate=draft.later.least_rate * Fraction(1001, 1000))
    with pytest.raises(Refused, match="rate"):
        check(draft.model_copy(update={"later": dearer}), step)
    assert draft.later.guard_rate is not None
    guarded = replace(draft.later, guard_rate=draft.later.guard_rate * Fraction(1001, 1000))
    with pytest.raises(Refused, match="rate"):
        check(draft.model_copy(update={"later": guarded}), step)
    check(draft.model_copy(update={"later": replace(draft.later, guard_rate=None)}), step)
    with pytest.raises(Refused, match="burn"):
        check(draft, draft.steps[0])
    with pytest.raises(Refused, match="later"):
        check(draft.model_copy(update={"later": None}), step)


@pytest.mark.slow
async def test_every_later_step_is_looked_at_before_it_is_signed(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gate that is handed something else than it approved stops between the halves."""
    plan_id = await halfway(bench)
    seen: list[Step] = []
    honest = PlanRun._check_later

    def watched(run: PlanRun, step: Step) -> None:
        seen.append(step)
        honest(run, step)

    monkeypatch.setattr(PlanRun, "_check_later", watched)
    book = await bench.gate().apply(plan_id, lambda *shown: True, bench.heard.append)
    assert seen == [step.step for step in book.steps if step.part is PlanPart.LATER]


@pytest.mark.slow
async def test_a_second_half_may_spend_what_the_first_paid_and_nothing_else(bench: Any) -> None:
    plan_id = await halfway(bench)
    book = await bench.apply(plan_id)
    draft, run = book.draft, PlanRun(bench.hands, book, book.draft, bench.heard.append)
    assert book.finishing is not None
    assert run._step_caps(PlanPart.LATER) == book.finishing.paid
    assert run._step_caps(PlanPart.FIRST) == draft.caps
    assert run._step_caps(PlanPart.REVOKING) == ()
    position = draft.position
    paid = {flow.currency: flow.amount for flow in book.finishing.paid}
    key = draft.pool.key
    assert paid == {
        key.currency0: position.amount0 + position.fees0,
        key.currency1: position.amount1 + position.fees1,
    }


@pytest.mark.slow
@pytest.mark.parametrize("token_id", [1, 2], ids=["tokens", "ether"])
async def test_what_the_first_half_paid_is_what_the_wallet_gained(bench: Any, token_id: int) -> None:
    plan_id = await halfway(bench, token_id)
    book = await bench.book(plan_id)
    draft = book.draft
    sight = await read_onchain_state(bench.hands, HexId(draft.pool.id), None)
    key = draft.pool.key
    exact = (
        Flow(key.currency0, draft.position.amount0 + draft.position.fees0),
        Flow(key.currency1, draft.position.amount1 + draft.position.fees1),
    )
    assert measure_proceeds(book, draft, sight.wallet_state.holdings) == tuple(
        flow for flow in exact if flow.currency in _currencies(draft)
    )
    rich = replace(
        sight, wallet_state=replace(sight.wallet_state, holdings=dict.fromkeys(sight.wallet_state.holdings, 10**40))
    )
    assert measure_proceeds(book, draft, rich.wallet_state.holdings) == draft.proceeds, "a gift is not spent"
    poor = replace(sight, wallet_state=replace(sight.wallet_state, holdings={}))
    gas = sum(step.mined.cost for step in book.steps if step.mined is not None)
    assert gas > 0
    assert all(flow.amount == 0 for flow in measure_proceeds(book, draft, poor.wallet_state.holdings))


def _currencies(draft: Draft) -> set[str]:
    return {flow.currency for flow in draft.proceeds}


# -- how it ends


@pytest.mark.slow
async def test_a_second_half_that_fails_leaves_the_plan_partial_and_nothing_allowed(bench: Any) -> None:
    plan_id = await halfway(bench)
    before = await bench.owned()
    with pytest.raises(Refused, match=f"{plan_id}.*{PlanState.PARTIAL}") as refused:
        await bench.apply(plan_id, writer=Stingy(bench.pond))
    assert "rest in the wallet" in str(refused.value)
    assert "zuno lp recommend create" in str(refused.value)
    assert "pply it again" not in str(refused.value), "it is over"
    book = await bench.book(plan_id)
    assert book.state is PlanState.PARTIAL
    assert book.over is not None
    assert book.over.problems == ()
    assert await bench.owned() == before
    await nothing_allowed(bench, book)


async def nothing_allowed(bench: Any, book: PlanProgress) -> None:
    key, at = book.draft.pool.key, bench.info.deployment  # type: ignore[union-attr]
    tokens = [currency for currency in (key.currency0, key.currency1) if currency != NATIVE]
    wallet_state = await bench.pond.wallet_state(bench.wallet, tokens, (at.universal_router, at.position_manager))
    for token in tokens:
        assert wallet_state.allowances.grant(token, at.universal_router).amount == 0
        assert wallet_state.allowances.grant(token, at.position_manager).amount > 0, "the owner's own grant stands"
        assert wallet_state.allowances.to_permit2[token] > 0, "and so does the owner's own allowance"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plan_revoking", "plan_over"])
async def test_a_process_that_dies_over_a_failed_second_half_does_not_try_it_again(bench: Any, kind: str) -> None:
    plan_id = await halfway(bench)
    before = await bench.owned()
    with pytest.raises(Unavailable, match="disk is full"):
        await bench.apply(plan_id, writer=Stingy(bench.pond), journal=Full(bench.journal, kind))
    sent = len([step for step in (await bench.book(plan_id)).steps if step.part is PlanPart.LATER])
    with pytest.raises(Refused, match="partial"):
        await bench.apply(plan_id)
    book = await bench.book(plan_id)
    assert (book.state, await bench.owned()) == (PlanState.PARTIAL, before)
    assert len([step for step in book.steps if step.part is PlanPart.LATER]) == sent, "it was not built again"
    await nothing_allowed(bench, book)


@pytest.mark.slow
async def test_a_refusal_between_the_halves_says_how_to_go_on(bench: Any) -> None:
    class Elsewhere:
        """The price is not what it was."""

        def __getattr__(self, name: str) -> Any:
            return getattr(bench.pond, name)

        async def estimate(self, *asked: Any) -> int:
            raise Refused("The pool is somewhere else.")

    plan_id = await halfway(bench)
    with pytest.raises(Refused, match=f"{plan_id} is {PlanState.PARTIAL}") as refused:
        await bench.apply(plan_id, writer=Elsewhere())
    for words in ("Apply it again while its approval lasts", f"`zuno plan cancel {plan_id}`", "rest in the wallet"):
        assert words in str(refused.value)
    assert (await bench.apply(plan_id)).state is PlanState.CONFIRMED


async def test_a_plan_that_is_called_off_between_its_halves(bench: Any) -> None:
    plan_id = await halfway(bench)
    book = await bench.cancel(plan_id)
    assert book.state is PlanState.CANCELLED
    assert book.over is not None


@pytest.mark.slow
async def test_calling_off_a_plan_that_is_done_says_that_it_is_done(bench: Any) -> None:
    """The process died between the last receipt and the end of the book."""
    plan_id: str = await bench.approved(await bench.two_steps())
    before = await bench.owned()
    with pytest.raises(Unavailable, match="disk is full"):
        await bench.apply(plan_id, journal=Full(bench.journal, "plan_over"))
    book = await bench.cancel(plan_id)
    assert book.state is PlanState.CONFIRMED
    assert book.over is not None
    assert await bench.owned() - before == {book.over.new_position_id}


# -- afterwards


async def test_a_new_position_that_is_not_what_was_asked(bench: Any) -> None:
    told = await bench.creation(capital1=10**9)
    book = await bench.apply(await bench.approved(told))
    draft = book.draft
    new_id, found, _ = await verify_outcome(bench.hands, book, draft)
    assert (new_id, found) == (book.over.new_position_id, ())
    band = Range(Tick(told.range.lower - 10), told.range.upper)
    other = (await bench.drafted(told.model_copy(update={"range": band}))).draft
    book.steps[-1].step = other.steps[-1]
    _, found, _ = await verify_outcome(bench.hands, book, draft)
    assert all(str(tick) in found[0] for tick in (told.range.lower, told.range.upper, band.lower))
    book.steps[-1].mined = None
    _, found, _ = await verify_outcome(bench.hands, book, draft)
    assert any("receipt" in why for why in found)


async def test_a_new_position_of_somebody_else(bench: Any) -> None:
    book = await bench.apply(await bench.approved(await bench.creation(capital1=10**9)))

    class Other:
        watch_only = True
        address = bench.others

    other: Any = Other()
    _, found, _ = await verify_outcome(replace(bench.hands, signer=other), book, book.draft)
    assert any(bench.wallet in one for one in found)


async def test_a_position_that_was_burned_and_is_still_there(bench: Any) -> None:
    draft = (await bench.drafted(await bench.told(Action.CLOSE))).draft
    book = PlanProgress(draft.plan_id, draft=draft)
    book.steps = [StepProgress(draft.steps[0], PlanPart.FIRST, StepState.FINAL)]
    _, found, _ = await verify_outcome(bench.hands, book, draft)
    assert (len(found), "position 1" in found[0]) == (1, True)


@pytest.mark.slow
async def test_a_position_that_changed_by_something_else_than_was_asked(bench: Any) -> None:
    for told, more in (
        (await bench.told(Action.REMOVE, share=Fraction(1, 2)), 1),
        # An addition is as large as the price lets it be, and at least so large that it holds at every one.
        (await bench.told(Action.ADD, capital0=10**17, capital1=10**9), 10**18),
    ):
        book = await bench.apply(await bench.approved(told))
        draft = book.draft
        assert (await verify_outcome(bench.hands, book, draft))[1] == ()
        odd = replace(draft.position, liquidity=Liquidity(draft.position.liquidity + more))
        _, found, _ = await verify_outcome(bench.hands, book, draft.model_copy(update={"position": odd}))
        assert len(found) == 1
        assert "expected" in found[0]


async def test_tokens_that_did_not_come_home_are_missed(bench: Any) -> None:
    book = await bench.apply(await bench.approved(await bench.told(Action.COLLECT)))
    signed = book.steps[0].signed[0]
    more = tuple(Flow(flow.currency, flow.amount + (1 if flow.currency != NATIVE else 0)) for flow in signed.holdings)
    book.steps[0].signed[0] = signed.model_copy(update={"holdings": more})
    _, found, _ = await verify_outcome(bench.hands, book, book.draft)
    assert len(found) == 2
    assert all("missing" in one for one in found)


class PartlyFilled:
    """A chain on which a new position holds only a part of the liquidity that was paid for."""

    def __init__(self, chain: Any, part: Fraction, old: set[int]) -> None:
        self._chain = chain
        self._part = part
        self._old = old

    def __getattr__(self, name: str) -> Any:
        return getattr(self._chain, name)

    async def positions(self, ids: Any) -> Any:
        found = await self._chain.positions(ids)
        return replace(found, positions=tuple(map(self._shrink, found.positions)))

    def _shrink(self, position: LpPosition) -> LpPosition:
        part = Fraction(1) if position.id in self._old else self._part
        return replace(position, liquidity=Liquidity(int(position.liquidity * part)))


async def one_step(bench: Any, token_id: int) -> Instruction:
    """A rebalance into a range that takes the position's tokens as they are."""
    position = await bench.position(token_id)
    terms = (await read_onchain_state(bench.hands, position.pool.id, token_id)).terms(bench.hands, Bounds())
    spacing = position.pool.key.tick_spacing
    for width in range(2, 120):
        band = Range(Tick(position.range.lower - spacing), Tick(position.range.lower + width * spacing))
        with suppress(Refused):
            if positions.rebalance(terms, position, band).later is None:
                told: Instruction = await bench.told(Action.REBALANCE, token_id, range=band)
                return told
    raise AssertionError("no range takes these tokens as they are")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["one step", "two steps", "two tokens", "one token"])
@pytest.mark.parametrize(("part", "problems"), [(Fraction(1), 0), (Fraction(97, 100), 1), (Fraction(1, 2), 2)])
async def test_money_that_is_neither_in_the_position_nor_in_the_wallet_is_missed(
    bench: Any, kind: str, part: Fraction, problems: int
) -> None:
    told = await {
        "one step": lambda: one_step(bench, 2),
        "two steps": lambda: bench.two_steps(2),
        "two tokens": lambda: bench.creation(2, capital1=10**9),
        "one token": lambda: bench.creation(2),
    }[kind]()
    plan_id = await bench.approved(told)
    chain = PartlyFilled(bench.hands.chain, part, await bench.owned())
    book = await bench.apply(plan_id, chain=chain)
    assert book.over is not None
    missed = [problem for problem in book.over.problems if "asked for was" not in problem]
    assert len(missed) == problems, missed
    left = book.over.leftover
    assert left is not None
    assert book.draft is not None
    assert book.draft.leftover is not None
    assert (left.whole0, left.whole1) == (book.draft.leftover.whole0, book.draft.leftover.whole1)


class PartlyAdded(PartlyFilled):
    """A chain on which a position that was added to holds only a part of what was paid for."""

    before: dict[int, int]

    async def positions(self, ids: Any) -> Any:
        found = await self._chain.positions(ids)
        return replace(found, positions=tuple(map(self._lose, found.positions)))

    def _lose(self, position: LpPosition) -> LpPosition:
        before = self.before[position.id]
        added = int(max(0, position.liquidity - before) * self._part)
        return replace(position, liquidity=Liquidity(before + added))


@pytest.mark.parametrize(("part", "problems"), [(Fraction(1), 0), (Fraction(97, 100), 1)])
@pytest.mark.parametrize("kind", ["add", "add to ether", "small add", "compound"])
async def test_money_that_did_not_reach_the_position_it_was_added_to_is_missed(
    bench: Any, kind: str, part: Fraction, problems: int
) -> None:
    token_id, told = {
        "add": (1, {"capital0": 5 * 10**18, "capital1": 15_000 * 10**6}),
        "add to ether": (2, {"capital0": 3 * 10**18, "capital1": 9_000 * 10**6}),
        "small add": (1, {"capital0": 10**17, "capital1": 300 * 10**6}),
        "compound": (1, {}),
    }[kind]
    action = Action.COMPOUND if kind == "compound" else Action.ADD
    position = await bench.position(token_id)
    plan_id = await bench.approved(await bench.told(action, token_id, **told))
    chain = PartlyAdded(bench.hands.chain, part, set())
    chain.before = {token_id: position.liquidity}
    book = await bench.apply(plan_id, chain=chain)
    assert book.over is not None
    assert len(book.over.problems) == problems, book.over.problems
