"""A plan's book: what can follow what, and that nothing adds up to a step that could be done twice."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from zuno.journal.port import Author
from zuno.kernel.canonical import canonical
from zuno.kernel.errors import Broken
from zuno.kernel.units import Wei
from zuno.lp.execute.plan_state import (
    PlanPart,
    PlanProgress,
    StepProgress,
    append_event,
    load_progress,
    unfinished_plans,
)
from zuno.lp.model.plan import Flow, PlanState, StepState
from zuno.lp.model.plan_events import (
    EVENTS,
    Approval,
    Draft,
    PlanApplying,
    PlanApproved,
    PlanCalledOff,
    PlanEvent,
    PlanFinishing,
    PlanInstructed,
    PlanOutcome,
    PlanOver,
    PlanRevoking,
    PlanSimulated,
    StepExpired,
    StepHandedOut,
    StepMined,
    StepOver,
    StepSent,
    StepSigned,
    StepUnmined,
    StepWaits,
)

PLAN = "plan_" + "0" * 11 + "1"
Ending = Literal[StepState.FINAL, StepState.REVERTED, StepState.SUPERSEDED]


def tx(nonce: int, attempt: int) -> str:
    return f"0x{nonce:032x}{attempt:032x}"


class Pen:
    """Writes entries about the one plan."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft

    def instructed(self) -> PlanInstructed:
        return PlanInstructed(plan_id=PLAN, plan_hash="ab" * 32, instruction=self.draft.instruction)

    def simulated(self) -> PlanSimulated:
        return PlanSimulated(plan_id=PLAN, block=self.draft.block, ok=True)

    def approved(self) -> PlanApproved:
        approval = Approval(
            plan_id=PLAN,
            plan_hash="ab" * 32,
            draft="cd" * 32,
            chain_id=1,
            genesis="0x",
            wallet="0x",
            expires=1,
            who="test",
        )
        return PlanApproved(plan_id=PLAN, approval=approval, signature="00" * 64)

    def applying(self) -> PlanApplying:
        return PlanApplying(plan_id=PLAN, block=self.draft.block)

    def finishing(self) -> PlanFinishing:
        assert self.draft.later is not None
        paid = (Flow(self.draft.pool.key.currency0, 1),)
        return PlanFinishing(plan_id=PLAN, block=self.draft.block, paid=paid, steps=self.draft.later.preview)

    def revoking(self) -> PlanRevoking:
        assert self.draft.later is not None
        return PlanRevoking(plan_id=PLAN, steps=self.draft.later.preview[:1])

    def signed(self, step: int = 0, nonce: int = 5, attempt: int = 0, *, cancels: bool = False) -> StepSigned:
        return StepSigned(
            plan_id=PLAN,
            step=step,
            nonce=nonce,
            hash=tx(nonce, attempt),
            raw="0x00",
            gas=1,
            max_fee=Wei(1),
            tip=Wei(1),
            cancels=cancels,
        )

    def sent(self, step: int = 0, nonce: int = 5, attempt: int = 0) -> StepSent:
        return StepSent(plan_id=PLAN, step=step, hash=tx(nonce, attempt))

    def mined(self, step: int = 0, nonce: int = 5, attempt: int = 0, *, success: bool = True) -> StepMined:
        return StepMined(
            plan_id=PLAN,
            step=step,
            hash=tx(nonce, attempt),
            block=self.draft.block,
            success=success,
            gas_used=1,
            cost=Wei(1),
        )

    def unmined(self, step: int = 0, nonce: int = 5, attempt: int = 0) -> StepUnmined:
        return StepUnmined(plan_id=PLAN, step=step, hash=tx(nonce, attempt))

    def expired(self, step: int = 0) -> StepExpired:
        return StepExpired(plan_id=PLAN, step=step)

    def waits(self) -> StepWaits:
        return StepWaits(plan_id=PLAN, step=0, why="")

    def ended(self, step: int = 0, state: Ending = StepState.FINAL) -> StepOver:
        return StepOver(plan_id=PLAN, step=step, state=state)

    def over(self, state: Any = PlanState.CONFIRMED) -> PlanOver:
        return PlanOver(plan_id=PLAN, state=state)

    def outcome(self) -> PlanOutcome:
        return PlanOutcome(plan_id=PLAN, position_id=1, gas_cost=Wei(1), attribution=None)

    def book(self, *events: PlanEvent) -> PlanProgress:
        book = PlanProgress(PLAN)
        for event in events:
            book.apply_event(event, self.draft if isinstance(event, PlanApproved) else None)
        return book

    def final(self, step: int, nonce: int) -> tuple[PlanEvent, ...]:
        return self.signed(step, nonce), self.sent(step, nonce), self.mined(step, nonce), self.ended(step)


@pytest.fixture(scope="module")
def pen(two_halves: Draft) -> Pen:
    return Pen(two_halves)


# -- plans

PLACES: dict[str, Callable[[Pen], tuple[PlanEvent, ...]]] = {
    "nothing": lambda pen: (),
    "instructed": lambda pen: (pen.instructed(),),
    "approved": lambda pen: (pen.approved(),),
    "applying": lambda pen: (pen.approved(), pen.applying()),
    "signed": lambda pen: (pen.approved(), pen.applying(), pen.signed()),
    "reverted": lambda pen: (
        *(pen.approved(), pen.applying(), pen.signed(), pen.mined(success=False)),
        pen.ended(state=StepState.REVERTED),
    ),
    "halfway": lambda pen: (pen.approved(), pen.applying(), *pen.final(0, 5)),
    "finishing": lambda pen: (pen.approved(), pen.applying(), *pen.final(0, 5), pen.finishing()),
    "later signed": lambda pen: (
        *(pen.approved(), pen.applying(), *pen.final(0, 5), pen.finishing()),
        pen.signed(1, 6),
    ),
    "revoking": lambda pen: (pen.approved(), pen.applying(), *pen.final(0, 5), pen.revoking()),
    "over": lambda pen: (pen.approved(), pen.applying(), *pen.final(0, 5), pen.over()),
}

PLAN_EVENTS: dict[str, tuple[Callable[[Pen], PlanEvent], str]] = {
    "instructed": (Pen.instructed, "nothing"),
    "approved": (Pen.approved, "nothing instructed approved applying"),
    "applying": (Pen.applying, "approved"),
    "finishing": (Pen.finishing, "halfway finishing revoking"),
    "revoking": (Pen.revoking, "signed reverted halfway finishing|later signed"),
    "rejected": (lambda pen: pen.over(PlanState.REJECTED), "nothing instructed approved applying"),
    "expired": (lambda pen: pen.over(PlanState.EXPIRED), "nothing instructed approved applying"),
    "cancelled": (
        lambda pen: pen.over(PlanState.CANCELLED),
        "nothing instructed approved applying signed reverted halfway finishing revoking|later signed",
    ),
    "failed": (lambda pen: pen.over(PlanState.FAILED), "signed reverted halfway finishing revoking|later signed"),
    "partial": (lambda pen: pen.over(PlanState.PARTIAL), "halfway finishing revoking|later signed"),
    "confirmed": (lambda pen: pen.over(PlanState.CONFIRMED), "halfway finishing revoking|later signed"),
    "outcome": (Pen.outcome, "over"),
    "waits": (
        Pen.waits,
        "nothing instructed approved applying signed reverted halfway finishing revoking over|later signed",
    ),
    "simulated": (
        Pen.simulated,
        "nothing instructed approved applying signed reverted halfway finishing revoking over|later signed",
    ),
}


def places(text: str) -> set[str]:
    plain, _, spaced = text.partition("|")
    return {*plain.split(), *([spaced] if spaced else [])}


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", PLAN_EVENTS)
def test_a_plan_s_entry_follows_only_what_it_can_follow(pen: Pen, name: str, place: str) -> None:
    make, allowed = PLAN_EVENTS[name]
    book, event = pen.book(*PLACES[place](pen)), make(pen)
    before = deepcopy(book)
    if place in places(allowed):
        book.apply_event(event, pen.draft)
        assert (book != before) is (name not in (place, "waits"))
    else:
        with pytest.raises(Broken, match=f"{event.kind}.*{PLAN}.*`zuno journal"):
            book.apply_event(event, pen.draft)
        assert book == before, "what cannot be is not half believed"


def test_what_a_plan_s_entries_add_up_to(pen: Pen) -> None:
    said = {name: pen.book(*events(pen)).state for name, events in PLACES.items()}
    assert said == {
        "nothing": PlanState.DRAFTED,
        "instructed": PlanState.DRAFTED,
        "approved": PlanState.APPROVED,
        "applying": PlanState.APPLYING,
        "signed": PlanState.APPLYING,
        "reverted": PlanState.APPLYING,
        "halfway": PlanState.PARTIAL,
        "finishing": PlanState.PARTIAL,
        "later signed": PlanState.PARTIAL,
        "revoking": PlanState.PARTIAL,
        "over": PlanState.CONFIRMED,
    }
    assert pen.book(pen.simulated()).state is PlanState.SIMULATED


def test_an_approval_without_what_it_approves_is_none(pen: Pen) -> None:
    with pytest.raises(Broken):
        PlanProgress(PLAN).apply_event(pen.approved())


def test_an_approval_again_starts_over(pen: Pen) -> None:
    book = pen.book(pen.approved(), pen.applying(), pen.approved())
    assert (book.state, book.applying) == (PlanState.APPROVED, None)


def test_every_kind_of_entry_is_known_to_these_tests() -> None:
    seen = {PlanInstructed, PlanApproved, PlanApplying, PlanFinishing, PlanRevoking, PlanOver, PlanOutcome}
    steps = {StepSigned, StepHandedOut, StepSent, StepMined, StepUnmined, StepExpired, StepOver}
    assert seen | steps | {PlanSimulated, PlanCalledOff, StepWaits} == set(EVENTS)


def test_a_plan_is_called_off_once_something_was_signed_and_then_nothing_is_built(pen: Pen) -> None:
    off = PlanCalledOff(plan_id=PLAN)
    begun = (pen.approved(), pen.applying())
    with pytest.raises(Broken):
        pen.book(*begun, off)
    book = pen.book(*begun, pen.signed(), off)
    assert book.called_off == off
    with pytest.raises(Broken):
        book.apply_event(off)
    halfway = pen.book(*begun, *pen.final(0, 5), off)
    with pytest.raises(Broken):
        halfway.apply_event(pen.finishing())


# -- steps

STEP_PLACES: dict[str, Callable[[Pen], tuple[PlanEvent, ...]]] = {
    "planned": lambda pen: (),
    "signed": lambda pen: (pen.signed(),),
    "sent": lambda pen: (pen.signed(), pen.sent()),
    "calling off": lambda pen: (pen.signed(), pen.sent(), pen.signed(attempt=1, cancels=True)),
    "mined": lambda pen: (pen.signed(), pen.sent(), pen.mined()),
    "mined and reverted": lambda pen: (pen.signed(), pen.sent(), pen.mined(success=False)),
    "cancel mined": lambda pen: (
        *(pen.signed(), pen.sent(), pen.signed(attempt=1, cancels=True)),
        pen.mined(attempt=1),
    ),
    "unmined": lambda pen: (pen.signed(), pen.sent(), pen.mined(), pen.unmined()),
    "final": lambda pen: pen.final(0, 5),
    "reverted": lambda pen: (pen.signed(), pen.mined(success=False), pen.ended(state=StepState.REVERTED)),
    "cancelled": lambda pen: (
        *(pen.signed(), pen.signed(attempt=1, cancels=True), pen.mined(attempt=1)),
        pen.ended(state=StepState.SUPERSEDED),
    ),
    "superseded": lambda pen: (pen.signed(), pen.sent(), pen.ended(state=StepState.SUPERSEDED)),
    "expired": lambda pen: (pen.signed(), pen.sent(), pen.expired()),
}
IN_FLIGHT = {"signed", "sent", "calling off", "mined", "mined and reverted", "cancel mined", "unmined"}
MINED = {"mined", "mined and reverted", "cancel mined"}
STEP_EVENTS: dict[str, tuple[Callable[[Pen], PlanEvent], set[str], StepState | None]] = {
    "signed again": (
        lambda pen: pen.signed(attempt=2),
        {"planned", "superseded", *IN_FLIGHT} - MINED,
        None,
    ),
    "signed with another number": (lambda pen: pen.signed(nonce=6), {"planned", "superseded"}, StepState.SIGNED),
    "called off": (lambda pen: pen.signed(attempt=3, cancels=True), IN_FLIGHT - MINED, None),
    "sent": (Pen.sent, {"signed"}, StepState.SENT),
    "another sent": (lambda pen: pen.sent(attempt=9), set(), None),
    "mined": (Pen.mined, IN_FLIGHT, StepState.MINED),
    "a stranger mined": (lambda pen: pen.mined(attempt=9), set(), None),
    "unmined": (Pen.unmined, MINED, StepState.SENT),
    "final": (Pen.ended, {"mined"}, StepState.FINAL),
    "reverted": (lambda pen: pen.ended(state=StepState.REVERTED), {"mined and reverted"}, StepState.REVERTED),
    "superseded": (
        lambda pen: pen.ended(state=StepState.SUPERSEDED),
        {"signed", "sent", "calling off", "unmined", "cancel mined"},
        StepState.SUPERSEDED,
    ),
    "expired": (Pen.expired, {"signed", "sent", "calling off", "unmined"}, StepState.SUPERSEDED),
}


@pytest.mark.parametrize("place", STEP_PLACES)
@pytest.mark.parametrize("name", STEP_EVENTS)
def test_a_step_s_entry_follows_only_what_it_can_follow(pen: Pen, name: str, place: str) -> None:
    make, allowed, then = STEP_EVENTS[name]
    book = pen.book(pen.approved(), pen.applying(), *STEP_PLACES[place](pen))
    event, before = make(pen), deepcopy(book)
    if place in allowed:
        book.apply_event(event)
        assert then is None or book.steps[0].state is then
    else:
        with pytest.raises(Broken, match="cannot be"):
            book.apply_event(event)
        assert book == before


@pytest.mark.parametrize("step", [-1, 1, 99])
def test_a_step_that_is_not_there_is_not_told_of(pen: Pen, step: int) -> None:
    book = pen.book(pen.approved(), pen.applying())
    for event in (
        pen.signed(step),
        pen.sent(step),
        pen.mined(step),
        pen.unmined(step),
        pen.expired(step),
        pen.ended(step),
    ):
        with pytest.raises(Broken):
            book.apply_event(event)


def test_nothing_is_signed_before_the_intent(pen: Pen) -> None:
    with pytest.raises(Broken):
        pen.book(pen.approved()).apply_event(pen.signed())


def test_bytes_under_a_number_that_was_lost_are_nobody_s(pen: Pen) -> None:
    lost = (pen.signed(), pen.signed(attempt=1), pen.sent(attempt=1), pen.ended(state=StepState.SUPERSEDED))
    book = pen.book(pen.approved(), pen.applying(), *lost, pen.signed(nonce=7))
    assert [one.nonce for one in book.steps[0].signed] == [7]
    with pytest.raises(Broken):
        book.apply_event(pen.mined(nonce=5))


def test_a_second_half_that_lost_its_number_is_built_anew_and_not_besides(pen: Pen) -> None:
    """Left in the book, the old mint would be signed again and the new one as well: two positions."""
    lost = (pen.signed(1, 6), pen.sent(1, 6), pen.ended(1, StepState.SUPERSEDED))
    book = pen.book(pen.approved(), pen.applying(), *pen.final(0, 5), pen.finishing(), *lost)
    before = len(book.steps)
    book.apply_event(pen.finishing())
    assert len(book.steps) == before
    assert all(one.state is StepState.PLANNED for one in book.steps[1:])


def test_a_second_half_keeps_what_it_has_done(pen: Pen) -> None:
    book = pen.book(pen.approved(), pen.applying(), *pen.final(0, 5), pen.finishing(), *pen.final(1, 6))
    count = len(book.steps)
    book.apply_event(pen.finishing())
    assert [one.state for one in book.steps[:2]] == [StepState.FINAL] * 2
    assert len(book.steps) == 2 + (count - 1)


# -- any order at all


def some_event(pen: Pen) -> st.SearchStrategy[PlanEvent]:
    step, nonce, attempt = st.integers(0, 4), st.integers(5, 7), st.integers(0, 2)
    return st.one_of(
        st.builds(pen.signed, step, nonce, attempt, cancels=st.booleans()),
        st.builds(pen.sent, step, nonce, attempt),
        st.builds(pen.mined, step, nonce, attempt, success=st.booleans()),
        st.builds(pen.unmined, step, nonce, attempt),
        st.builds(pen.expired, step),
        st.builds(pen.ended, step, st.sampled_from([StepState.FINAL, StepState.REVERTED, StepState.SUPERSEDED])),
        st.builds(pen.finishing),
        st.builds(pen.revoking),
        st.builds(pen.applying),
        st.builds(pen.approved),
        st.builds(pen.over, st.sampled_from([PlanState.CANCELLED, PlanState.PARTIAL, PlanState.FAILED])),
    )


def live(step: StepProgress) -> set[int]:
    """The numbers under which this step's bytes may yet be mined."""
    return {one.nonce for one in step.signed} if step.in_flight else set()


@pytest.mark.slow
@settings(max_examples=examples(120), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_order_of_entries_does_a_step_twice_or_opens_what_is_closed(pen: Pen, data: st.DataObject) -> None:
    book = pen.book(pen.approved(), pen.applying())
    events, done = some_event(pen), 0
    for _ in range(data.draw(st.integers(5, 40))):
        event, before = data.draw(events), deepcopy(book)
        try:
            book.apply_event(event, pen.draft)
        except Broken:
            assert book == before
            continue
        done += 1
        assert all(len(live(step)) <= 1 for step in book.steps)
        assert all(len({one.nonce for one in step.signed}) <= 1 for step in book.steps)
        closed = [step for step in before.steps if step.used_nonce]
        assert [step for step in book.steps if step.used_nonce][: len(closed)] == closed
        for then, now in zip(before.steps, book.steps, strict=False):
            if live(then) and live(now) and then.step == now.step and then.part is now.part:
                assert live(then) == live(now), "a second number while the first may still be mined"
        if before.over is not None:
            assert book == before


# -- from the journal


async def test_a_book_is_what_the_journal_says_and_no_more(bench: Any, pen: Pen) -> None:
    book = PlanProgress(PLAN)
    events = (pen.instructed(), pen.simulated(), pen.approved(), pen.applying(), *pen.final(0, 5), pen.finishing())
    for event in events:
        await append_event(bench.journal, book, event, pen.draft if isinstance(event, PlanApproved) else None)
    assert await load_progress(bench.journal, PLAN) == book
    assert await load_progress(bench.journal, "plan_" + "2" * 12) == PlanProgress("plan_" + "2" * 12)


async def test_an_entry_that_cannot_be_is_not_written_down(bench: Any, pen: Pen) -> None:
    """On disk it would close the book for good."""
    for event in (pen.signed(), pen.approved()):
        with pytest.raises(Broken):
            await append_event(bench.journal, PlanProgress(PLAN), event)
    assert await bench.journal.latest(1) == []


async def test_plans_that_began_and_did_not_end_are_found(bench: Any, pen: Pen) -> None:
    book = PlanProgress(PLAN)
    await append_event(bench.journal, book, pen.approved(), pen.draft)
    assert await unfinished_plans(bench.journal) == ()
    await append_event(bench.journal, book, pen.applying())
    assert await unfinished_plans(bench.journal) == (PLAN,)
    await append_event(bench.journal, book, pen.over(PlanState.CANCELLED))
    assert await unfinished_plans(bench.journal) == ()


async def test_an_entry_filed_under_another_plan_is_broken(bench: Any, pen: Pen) -> None:
    other = "plan_" + "3" * 12
    event = pen.instructed()
    await bench.journal.append(kind=event.kind, author=Author("gate"), payload=event, request_id=other)
    with pytest.raises(Broken, match=f"{other}.*{PLAN}"):
        await load_progress(bench.journal, other)


async def test_an_approval_whose_draft_is_gone_is_broken(bench: Any, pen: Pen) -> None:
    event = pen.approved()
    await bench.journal.append(kind=event.kind, author=Author("gate"), payload=event, request_id=PLAN)
    with pytest.raises(Broken, match="approval"):
        await load_progress(bench.journal, PLAN)
    name = await bench.journal.put_bundle(canonical(pen.draft))
    other = "plan_" + "4" * 12
    moved = event.model_copy(update={"plan_id": other})
    await bench.journal.append(kind=event.kind, author=Author("gate"), payload=moved, request_id=other, bundle=name)
    assert (await load_progress(bench.journal, other)).draft == pen.draft
    del bench.store.bundles[name]
    with pytest.raises(Broken, match="journal"):
        await load_progress(bench.journal, other)


async def test_an_entry_of_another_shape_is_broken(bench: Any) -> None:
    await bench.journal.append(
        kind="plan_over", author=Author("gate"), payload={"planId": PLAN, "state": "happy"}, request_id=PLAN
    )
    with pytest.raises(Broken, match="version"):
        await load_progress(bench.journal, PLAN)


def test_a_step_knows_which_part_it_belongs_to(pen: Pen) -> None:
    book = pen.book(*PLACES["finishing"](pen))
    assert {step.part for step in book.steps} == {PlanPart.FIRST, PlanPart.LATER}
