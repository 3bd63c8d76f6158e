"""The progress of a plan, folded from its journal entries, which are the only source."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from pydantic import ValidationError

from zuno.journal.port import Author, Entry, Journal
from zuno.kernel.canonical import Digest, canonical, decode_canonical, digest
from zuno.kernel.errors import Broken, NotFound
from zuno.lp.model.plan import Flow, PlanState, Step, StepState
from zuno.lp.model.plan_events import (
    EVENTS,
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

_BY_KIND = {event.kind: event for event in EVENTS}
AUTHOR = Author("gate")


class PlanPart(StrEnum):
    """Which part of a plan a step belongs to."""

    FIRST = "first"
    """Approved byte for byte."""
    LATER = "later"
    """Built from what the first part paid, and held to what was approved."""
    REVOKING = "revoking"
    """Takes back what was allowed, after a plan that did not go through."""


@dataclass(slots=True)
class StepProgress:
    """The progress of one step."""

    step: Step
    part: PlanPart
    state: StepState = StepState.PLANNED
    signed: list[StepSigned] = field(default_factory=list)
    """Every set of bytes that carries the step's present nonce: any one of them may be mined, and only one can."""
    handed_out: StepHandedOut | None = None
    mined: StepMined | None = None
    reverted_cost: int = 0
    """Gas cost of earlier tries by a signer elsewhere."""
    why: str = ""
    expired: bool = False
    """Its own deadline passed before it was mined: it can only revert."""

    @property
    def holdings(self) -> tuple[Flow, ...]:
        """What the wallet held of the pair just before the step was signed or handed out."""
        if self.signed:
            return self.newest.holdings
        return () if self.handed_out is None else self.handed_out.holdings

    @property
    def tx(self) -> str | None:
        """The hash it was mined or last sent under."""
        return self.mined.hash if self.mined else self.newest.hash if self.signed else None

    @property
    def nonce(self) -> int:
        return self.signed[-1].nonce

    @property
    def newest(self) -> StepSigned:
        return self.signed[-1]

    @property
    def in_flight(self) -> bool:
        """Signed or handed out, and not final yet."""
        return self.state in (StepState.SIGNED, StepState.HANDED_OUT, StepState.SENT, StepState.MINED)

    @property
    def may_be_sent(self) -> bool:
        """A signer elsewhere may still send it: one that reverted can be sent again by whoever has its bytes."""
        return self.handed_out is not None and (self.in_flight or self.state is StepState.REVERTED)

    @property
    def is_cancelled(self) -> bool:
        """The empty transaction of the same nonce was mined."""
        tx = None if self.mined is None else self.mined.hash
        return any(signed.cancels for signed in self.signed if signed.hash == tx)

    @property
    def has_failed(self) -> bool:
        """It is over and was not done, and is not signed again."""
        given_up = self.is_cancelled or self.expired
        return self.state is StepState.REVERTED or (self.state is StepState.SUPERSEDED and given_up)

    @property
    def used_nonce(self) -> bool:
        """One of its own transactions is in the chain, or none can be any more."""
        return self.state is StepState.FINAL or self.has_failed

    def accepts(
        self, event: StepSigned | StepHandedOut | StepSent | StepMined | StepUnmined | StepExpired | StepOver
    ) -> bool:
        """Whether this can be the next thing that happened to the step."""
        match event:
            case StepHandedOut():
                again = self.handed_out is not None and self.state is StepState.REVERTED
                return not self.signed and (again or self.state is StepState.PLANNED)
            case StepSigned() if self.handed_out is not None:
                return False  # whoever it was handed to may have sent it
            case StepMined() if self.handed_out is not None:
                return self.in_flight or (self.state is StepState.REVERTED and event.success)
            case StepSigned() if self.in_flight:
                # Two live numbers for one step would be two chances to do it.
                return self.state is not StepState.MINED and event.nonce == self.nonce
            case StepSigned(cancels=cancels):
                again = self.state is StepState.SUPERSEDED and not self.has_failed
                return not cancels and (again or self.state is StepState.PLANNED)
            case StepSent(hash=tx):
                return self.state is StepState.SIGNED and tx == self.newest.hash
            case StepMined(hash=tx):
                return self.in_flight and tx in [signed.hash for signed in self.signed]
            case StepUnmined():
                return self.state is StepState.MINED
            case StepExpired():
                return bool(self.signed) and self.state in (StepState.SIGNED, StepState.SENT)
            case StepOver(state=StepState.SUPERSEDED):
                return bool(self.signed) and self.in_flight and (self.mined is None or self.is_cancelled)
            case StepOver(state=state):
                success = state is StepState.FINAL
                return (
                    self.mined is not None
                    and self.in_flight
                    and not self.is_cancelled
                    and (self.mined.success is success)
                )


@dataclass(slots=True)
class PlanProgress:
    """Everything the journal says of one plan."""

    plan_id: str
    instructed: PlanInstructed | None = None
    simulated: PlanSimulated | None = None
    approved: PlanApproved | None = None
    draft: Draft | None = None
    applying: PlanApplying | None = None
    called_off: PlanCalledOff | None = None
    finishing: PlanFinishing | None = None
    steps: list[StepProgress] = field(default_factory=list)
    over: PlanOver | None = None
    outcome: PlanOutcome | None = None
    seq: int = field(default=0, compare=False)
    """The number of the newest entry that is in it."""

    @property
    def state(self) -> PlanState:
        if self.over is not None:
            return self.over.state
        if any(step.state is StepState.HANDED_OUT for step in self.steps):
            return PlanState.HANDED_OUT
        if self.halfway:
            return PlanState.PARTIAL
        if self.applying is not None:
            return PlanState.APPLYING
        if self.approved is not None:
            return PlanState.APPROVED
        return PlanState.DRAFTED if self.simulated is None else PlanState.SIMULATED

    @property
    def halfway(self) -> bool:
        """The first half is final and the plan has another."""
        if self.draft is None or self.draft.later is None or self.applying is None:
            return False
        first = self.steps[: len(self.draft.steps)]
        return all(step.state is StepState.FINAL for step in first)

    @property
    def signed_anything(self) -> bool:
        return any(step.signed for step in self.steps)

    @property
    def handed_out(self) -> bool:
        """Some of it was given to a signer elsewhere."""
        return any(step.handed_out for step in self.steps)

    @property
    def begun(self) -> bool:
        """Something was signed or handed out: it may be on the chain."""
        return self.signed_anything or self.handed_out

    @property
    def in_flight(self) -> Iterator[tuple[int, StepProgress]]:
        return ((index, step) for index, step in enumerate(self.steps) if step.in_flight)

    @property
    def awaited_steps(self) -> list[tuple[int, StepProgress]]:
        """What may still be mined; one that a signer elsewhere saw revert can be sent again. Nothing after its end."""
        steps = enumerate(self.steps) if self.over is None else ()
        return [(index, step) for index, step in steps if step.in_flight or step.may_be_sent]

    def apply_event(self, event: PlanEvent, draft: Draft | None = None) -> None:
        """Take one more entry in; `Broken` for one that cannot follow what is there."""
        self.check_event(event, draft)
        match event:
            case PlanInstructed():
                self.instructed = event
            case PlanSimulated():
                self.simulated = event
            case PlanApproved() if draft is not None:
                self.approved, self.draft, self.applying = event, draft, None
                self.steps = [StepProgress(step, PlanPart.FIRST) for step in draft.steps]
            case PlanApplying():
                self.applying = event
            case PlanCalledOff():
                self.called_off = event
            case PlanFinishing():
                self.finishing = event
                # Later steps that can never be mined are rebuilt; kept, they would be done twice.
                self.steps = [step for step in self.steps if step.part is not PlanPart.LATER or step.used_nonce]
                self.steps += [StepProgress(step, PlanPart.LATER) for step in event.steps]
            case PlanRevoking():
                self.steps += [StepProgress(step, PlanPart.REVOKING) for step in event.steps]
            case StepSigned():
                self._apply_signed(event)
            case StepHandedOut():
                self._apply_handed_out(event)
            case StepSent():
                self.steps[event.step].state = StepState.SENT
            case StepMined():
                step = self.steps[event.step]
                if step.state is StepState.REVERTED and step.mined is not None:
                    step.reverted_cost += step.mined.cost
                step.state, step.mined, step.why = StepState.MINED, event, ""
            case StepUnmined():
                step = self.steps[event.step]
                step.state = StepState.SENT if step.handed_out is None else StepState.HANDED_OUT
                step.mined = None
            case StepExpired():
                step = self.steps[event.step]
                step.state, step.expired = StepState.SUPERSEDED, True
                step.why = "its deadline passed before it was mined"
            case StepOver():
                step = self.steps[event.step]
                step.state, step.why = event.state, event.why
            case PlanOver():
                self.over = event
            case PlanOutcome():
                self.outcome = event

    def check_event(self, event: PlanEvent, draft: Draft | None = None) -> None:
        """`Broken` where the entry cannot be the next one."""
        if not self._accepts(event) or (isinstance(event, PlanApproved) and draft is None):
            raise Broken(
                f"The journal says {event.kind} of {self.plan_id} where that cannot be; run `zuno journal verify`."
            )

    def _accepts(self, event: PlanEvent) -> bool:
        """What can come next. Simulations and outcomes come at any time; all else in its order."""
        match event:
            case PlanSimulated() | StepWaits():
                return True
            case PlanOutcome():
                return self.over is not None
            case _ if self.over is not None:
                return False
            case PlanInstructed():
                return self.instructed is None and self.approved is None
            case PlanApproved():
                return not self.begun
            case PlanApplying():
                return self.approved is not None and self.applying is None
            case PlanCalledOff():
                return self.signed_anything and self.called_off is None
            case PlanFinishing():
                return self.called_off is None and self.halfway and not any(step.in_flight for step in self.steps)
            case PlanRevoking():
                return self.signed_anything and not any(step.part is PlanPart.REVOKING for step in self.steps)
            case PlanOver():
                return self._may_end(event.state)
            case StepSigned() | StepHandedOut() | StepSent() | StepMined() | StepUnmined() | StepExpired() | StepOver():
                known = self.applying is not None and 0 <= event.step < len(self.steps)
                return known and self.steps[event.step].accepts(event)
            case _:
                return False

    def _may_end(self, state: PlanState) -> bool:
        match state:
            case PlanState.REJECTED:
                return not self.begun
            case PlanState.EXPIRED:
                return not self.signed_anything
            case PlanState.CANCELLED:
                return True
            case PlanState.PARTIAL:
                return self.halfway
            case PlanState.CONFIRMED:
                first = [step for step in self.steps if step.part is PlanPart.FIRST]
                return self.applying is not None and all(step.state is StepState.FINAL for step in first)
            case _:
                return self.begun

    def _apply_handed_out(self, event: StepHandedOut) -> None:
        step, later = self.steps[event.step], None if self.draft is None else self.draft.later
        if step.mined is not None:
            step.reverted_cost += step.mined.cost
        step.state, step.handed_out, step.mined, step.why = StepState.HANDED_OUT, event, None, ""
        if event.batch and later is not None and all(held.part is PlanPart.FIRST for held in self.steps):
            self.steps += [StepProgress(held, PlanPart.LATER) for held in later.preview]  # all in one transaction

    def _apply_signed(self, event: StepSigned) -> None:
        step = self.steps[event.step]
        if step.state is StepState.SUPERSEDED:
            step.signed, step.mined, step.why = [], None, ""
        step.signed.append(event)
        if step.state in (StepState.PLANNED, StepState.SUPERSEDED):
            step.state = StepState.SIGNED


async def load_progress(journal: Journal, plan_id: str) -> PlanProgress:
    """The plan as the journal has it. A row that was typed in, changed or taken out is `Broken`, not a fact."""
    progress = PlanProgress(plan_id)
    await catch_up(journal, progress)
    return progress


async def catch_up(journal: Journal, progress: PlanProgress) -> None:
    """Take in what was journaled of the plan since it was loaded, by whichever process."""
    first = None
    async for entry in journal.entries(request_id=progress.plan_id, after=progress.seq):
        first = entry.seq if first is None else first
        progress.seq = entry.seq
        event = _parse_event(entry)
        if event is not None:
            progress.apply_event(event, await _load_draft(journal, entry) if isinstance(event, PlanApproved) else None)
    if first is not None:
        await journal.verify_range(first, None)


async def append_event(journal: Journal, progress: PlanProgress, event: PlanEvent, draft: Draft | None = None) -> None:
    """Check the event, journal it, then apply it: memory never runs ahead of the disk."""
    progress.check_event(event, draft)
    bundle: Digest | None = None if draft is None else await journal.put_bundle(canonical(draft))
    entry = await journal.append(
        kind=event.kind, author=AUTHOR, payload=event, request_id=progress.plan_id, bundle=bundle
    )
    progress.apply_event(event, draft)
    progress.seq = entry.seq


async def unfinished_plans(journal: Journal) -> tuple[str, ...]:
    """The plans that began to be applied and did not end, oldest first."""
    begun = dict.fromkeys([str(entry.payload["planId"]) async for entry in journal.entries(kind=PlanApplying.kind)])
    async for entry in journal.entries(kind=PlanOver.kind):
        begun.pop(str(entry.payload["planId"]), None)
    return tuple(begun)


def _parse_event(entry: Entry) -> PlanEvent | None:
    shape = _BY_KIND.get(entry.kind)
    if shape is None:
        return None
    try:
        event = shape.model_validate(dict(entry.payload))
    except ValidationError as error:
        raise Broken(f"Entry {entry.seq} ({entry.kind}) cannot be read; was it written by another version?") from error
    if event.plan_id != entry.request_id:
        raise Broken(f"Entry {entry.seq} is filed under {entry.request_id} and speaks of {event.plan_id}.")
    return event


async def _load_draft(journal: Journal, entry: Entry) -> Draft:
    if entry.bundle is None:
        raise Broken(f"Entry {entry.seq} is an approval of nothing; run `zuno journal verify`.")
    try:
        content = await journal.bundle(entry.bundle)
    except NotFound:
        raise Broken(f"What entry {entry.seq} approved is gone from the journal; run `zuno journal verify`.") from None
    return Draft.model_validate(decode_canonical(content))


def draft_digest(draft: Draft) -> Digest:
    return digest(canonical(draft))
