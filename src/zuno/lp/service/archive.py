"""What the journal remembers of the desk's debates: plans, why they came about, and whether they come about again."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, Final

from zuno.amm.model import Block
from zuno.journal.decision_view import (
    DECISION_VIEW,
    DecisionRecord,
    Facts,
    JournalUpgradeView,
    ReplayView,
    store_missing_views,
)
from zuno.journal.port import Author, Entry, Journal
from zuno.kernel.canonical import Digest, canonical, decode_canonical, digest
from zuno.kernel.errors import Broken, NotFound, Refused, UsageError, ZunoError
from zuno.kernel.text import plain_text
from zuno.kernel.units import HexId
from zuno.kernel.view import ForeignText, View, sanitise
from zuno.llm.port import Attempt
from zuno.lp.agents.prompt_facts import print_thoughts
from zuno.lp.agents.verify_debate import check_debate
from zuno.lp.agents.verify_peer_plan import NO_FIGURES, check_transcript
from zuno.lp.execute.handed_out import explain_waiting
from zuno.lp.execute.plan_state import load_progress
from zuno.lp.mesh.envelope import Envelope, read_entry
from zuno.lp.model.ballot import EDITION
from zuno.lp.model.debate import (
    Arguing,
    Context,
    Debate,
    FlowCreateStart,
    FlowFailed,
    FlowStart,
    Kind,
    PlanReady,
    Role,
    Thought,
)
from zuno.lp.model.history import JournaledPlans
from zuno.lp.model.plan import PlanState
from zuno.lp.model.plan_events import (
    Action,
    PlanApplying,
    PlanApproved,
    PlanInstructed,
    PlanOver,
    PlanSimulated,
    StepHandedOut,
    StepMined,
)
from zuno.lp.service import plan_view as plans
from zuno.lp.service.plan_view import ChoiceRefused, PlanRecord, PlanView, SourceView, ThoughtView, plan_view
from zuno.lp.service.recommend import LocalDebateRunner, load_context
from zuno.lp.service.stress_fan import StressFanView, build_stress_fan

_PLAN = re.compile(r"plan_[0-9a-f]{12}")
_REQUEST = re.compile(r"req_[0-9a-f]{16}")
MOST = 1_000
_SCANNED = 100


class PlanLine(View):
    plan_id: str
    request_id: str
    at: int
    kind: str
    chain: str
    position_id: str | None
    verdict: str | None
    """None where the owner asked for it without a debate."""
    choice: str
    decided_by: str
    state: str
    """How far it has come, as the journal has it; `zuno plan status` also looks at the chain."""


class PlanListView(View):
    plans: tuple[PlanLine, ...]
    notes: tuple[ForeignText, ...] = ()
    """Of plans that wait: which others do no longer, and why."""


class MessageLine(View):
    at: int
    sender: str
    to: str
    kind: str


class WhyView(View):
    """A debate as it stands in the journal; no model is asked."""

    request_id: str
    code: str
    """The version of Zuno that held it."""
    messages: tuple[MessageLine, ...]
    transcript: tuple[ThoughtView, ...]
    sources: tuple[SourceView, ...]
    plan: PlanView | None
    failed: ForeignText | None
    seen_by: tuple[str, ...] = ()
    """The peers of this home that took part in a debate it did not ask for: only what they heard and said is known."""


class PlanChange(View):
    what: str
    before: str
    after: str


class PlanDiffView(View):
    before: str
    after: str
    changes: tuple[PlanChange, ...]


@dataclass(frozen=True, slots=True)
class EndedPosition:
    """What a plan made of a position: `closed`, or `rebalanced` into a new one."""

    what: str
    plan_id: str
    new_position_id: int | None


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """A request as the journal holds it."""

    request_id: str
    entries: tuple[Entry, ...]
    start: FlowStart | FlowCreateStart
    key: str
    """Who asked signed with it: in one process everybody does, on the mesh nobody else."""
    edition: int
    """Of the rules it was argued by."""
    ready: PlanReady | None
    """The end that was checked, and no other: whatever arrived beside it is not shown."""
    end: Mapping[str, Any] | None
    """The same as it is on record."""
    failed: str | None
    """Why there is no plan, where there is none."""
    attempts: tuple[Attempt, ...]
    plan: PlanRecord | None
    view: Mapping[str, Any] | None
    """The plan's view as it was stored."""

    @property
    def code(self) -> str:
        return self.entries[-1].code

    @property
    def older(self) -> bool:
        """Today's rules and prompts say other things than those it was argued by."""
        return self.edition < EDITION


@dataclass(frozen=True, slots=True)
class ReplayDebateRunner:
    """A room where a recorded debate is held again, and what it noticed on the way."""

    room: LocalDebateRunner
    differences: Callable[[], tuple[str, ...]]


OpenReplay = Callable[[RecordedRequest, Context], Awaitable[ReplayDebateRunner]]
PeerJournals = Callable[[], Sequence[Journal]]
"""The journals of this home's peers."""


class Archive:
    """Reads the journal. Only a replay runs anything, and it writes nothing."""

    def __init__(
        self,
        open_journal: Callable[[], Awaitable[Journal]],
        open_replay: OpenReplay,
        code: Callable[[], str],
        of_peers: PeerJournals = tuple,
    ) -> None:
        self._open_journal = open_journal
        self._open_replay = open_replay
        self._code = code
        self._of_peers = of_peers

    async def plans(self, count: int = MOST, before: str | None = None) -> PlanListView:
        """The newest first; `before`: those that were made before it. `UsageError` where there is no such plan."""
        journal = await self._open_journal()
        start = None if before is None else await _find_plan_number(journal, before)
        made = [
            entry
            for kind in (plans.PLAN_KIND, PlanInstructed.kind)
            for entry in await journal.latest(count, kind=kind, before=start)
        ]
        newest = sorted(made, key=lambda entry: entry.seq, reverse=True)[:count]
        oldest = newest[-1].seq if newest else 0
        states: dict[str, str] = {}
        for kind, state in _STATES:
            async for entry in journal.entries(kind=kind, after=oldest):
                states[str(entry.payload["planId"])] = state or str(entry.payload["state"])
        return PlanListView(plans=tuple(_line(entry, states) for entry in newest))

    async def ended_positions(self, chain: str) -> dict[int, EndedPosition]:
        """Positions of a chain that a plan of this home took down, by id."""
        journal = await self._open_journal()
        acted, ended = await _read_actions(journal, chain), dict[int, EndedPosition]()
        async for entry in journal.entries(kind=PlanOver.kind):
            over = PlanOver.model_validate(dict(entry.payload))
            action, positions = acted.get(over.plan_id, (Action.HOLD, ()))
            if action in _ENDS and over.state in {PlanState.CONFIRMED, PlanState.PARTIAL}:
                end = EndedPosition(_ENDS[action], over.plan_id, over.new_position_id)
                ended |= dict.fromkeys(positions, end)
        return ended

    async def journaled_plans(self, chain: str) -> JournaledPlans:
        """Which positions of a chain came from which, and what else the plans about them sent."""
        journal = await self._open_journal()
        acted, mined = await _read_actions(journal, chain), dict[str, list[StepMined]]()
        async for entry in journal.entries(kind=StepMined.kind):
            step = StepMined.model_validate(dict(entry.payload))
            if step.plan_id in acted:
                mined.setdefault(step.plan_id, []).append(step)
        mints, sent = dict[HexId, tuple[int, HexId] | None](), dict[int, dict[HexId, Block]]()
        for plan_id, steps in mined.items():
            action, positions = acted[plan_id]
            opened = next((step for step in reversed(steps) if step.minted), None)
            if opened is not None:  # a rebalance closes by its first step
                burn = HexId([step.hash for step in steps if step.step == 0][-1])
                mints[HexId(opened.hash)] = (positions[0], burn) if action is Action.REBALANCE else None
            for step in steps:
                about = positions[step.step : step.step + 1] or positions[:1]
                for position in about if opened is None else opened.minted:
                    sent.setdefault(position, {})[HexId(step.hash)] = step.block
        return JournaledPlans(mints, sent)

    async def plan(self, plan_id: str) -> PlanView:
        """As it was decided; a step that was handed out and is not on record as mined leads its cautions."""
        journal = await self._open_journal()
        recorded = await self._load_request(journal, *await self._request_of(journal, plan_id))
        view = await _decision(journal, recorded).show(self._code())
        waiting = explain_waiting(await load_progress(journal, view.plan_id))
        return view.model_copy(update={"cautions": (waiting, *view.cautions)}) if waiting else view

    async def stress_fan(self, plan_id: str) -> StressFanView:
        """The paths its ranges were judged against."""
        _, context, _ = await self._load_plan(plan_id)
        return build_stress_fan(plan_id, context)

    async def decision(self, plan_id: str, *, current: bool = False) -> tuple[str, Context, PlanReady]:
        """A plan's hash, checked, with the context and the decision it stands on, as its owner took it. `current`:
        `Refused` unless it was argued by today's rules."""
        recorded, context, ready = await self._load_plan(plan_id)
        if recorded.older and current:
            raise Refused(
                f"{plan_id} was argued in edition {recorded.edition} and this Zuno argues in edition {EDITION}: "
                "nothing of it is signed yet, so ask the desk again."
            )
        ready = _as_chosen(recorded, context, ready)
        if recorded.older:
            return await self._check_record(recorded), context, ready
        then = plans.decided_hash(context, ready)
        if recorded.plan is not None and recorded.plan.hash != then:
            raise Broken(_other_hash(plan_id))
        return then, context, ready

    async def why(self, reference: str) -> WhyView:
        journal = await self._open_journal()
        request_id, plan_id = await self._request_of(journal, reference)
        own = [message async for entry in journal.entries(request_id=request_id) if (message := read_entry(entry))]
        others = [journal] if _is_of_peer(own) else [] if own else self._of_peers()
        if seen := await _tell_what_peers_saw(request_id, others):
            return seen
        recorded = await self._load_request(journal, request_id, plan_id)
        ready = recorded.ready
        plan = None if ready is None else await _decision(journal, recorded).show(self._code())
        argued = _last_own_debate(recorded) if ready is None else None
        context = None if argued is None else await load_context(journal, argued.context)
        return WhyView(
            request_id=recorded.request_id,
            code=recorded.code,
            messages=_message_lines(filter(None, map(read_entry, recorded.entries))),
            transcript=plan.transcript if plan else plans.thoughts_of(context, argued) if argued and context else (),
            sources=plan.sources if plan else (),
            plan=plan,
            failed=recorded.failed,
        )

    async def thoughts_in(self, entry: Entry) -> tuple[Thought, ...]:
        """What the author of a message said in it, as people read it; nothing for entries of other kinds."""
        message = read_entry(entry)
        if message is None or not isinstance(message.payload, Arguing):
            return ()
        debate = message.payload.debate
        context = await load_context(await self._open_journal(), debate.context)
        printed = list(print_thoughts(context, debate))
        turn = (message.from_, printed[-1].round) if printed else None
        newest = [*takewhile(lambda thought: (thought.role, thought.round) == turn, reversed(printed))]
        return tuple(reversed(newest))

    async def diff(self, before: str, after: str) -> PlanDiffView:
        first, second = await self.plan(before), await self.plan(after)
        changes = tuple(_compare_plans(first, second))
        return PlanDiffView(before=first.plan_id, after=second.plan_id, changes=changes)

    async def replay(self, reference: str) -> ReplayView:
        """Hold the debate again from what was recorded, with no key and no network.

        The record itself is checked first: a debate with a part missing is not replayed to the rest of it.
        """
        journal = await self._open_journal()
        recorded = await self._load_request(journal, *await self._request_of(journal, reference))
        ready, now, problems = recorded.ready, None, list[str]()
        then = None if recorded.plan is None else recorded.plan.hash
        if ready is None:
            reason = recorded.failed or "it did not end"
            raise Refused(f"{recorded.request_id} decided nothing ({reason}), so there is nothing to replay.")
        if not recorded.older:
            then, now, problems = await self._argue_again(journal, recorded, ready)
        else:  # the chain and its signatures hold, or we would not be here; so must the hash
            try:
                then = await self._check_record(recorded)
            except Broken as error:
                problems.append(str(error))
        return ReplayView(
            ok=not problems,
            identical=None if recorded.older else not problems,
            edition=recorded.edition,
            request_id=recorded.request_id,
            hash=then,
            replayed_hash=now,
            code_then=recorded.code,
            code_now=self._code(),
            differences=tuple(problems),
            view_differences=await _decision(journal, recorded).compare(),
        )

    async def _argue_again(
        self, journal: Journal, recorded: RecordedRequest, ready: PlanReady
    ) -> tuple[str, str | None, list[str]]:
        """The hash then and now, and what is not the same."""
        context = await load_context(journal, ready.debate.context)
        then = plans.decided_hash(context, _as_chosen(recorded, context, ready))
        problems: list[str] = []
        if recorded.plan is not None and recorded.plan.hash != then:
            problems.append(f"the plan of record has hash {recorded.plan.hash[:12]}…, its debate gives {then[:12]}…")
        replay = await self._open_replay(await self._with_replies(recorded, ready), context)
        now: str | None = None
        try:
            again = await replay.room.debate(recorded.start, lambda thought: None)
            now = plans.decided_hash(context, _as_chosen(recorded, context, again.ready))
        except ZunoError as error:
            problems.append(f"the replay ended in an error: {error}")
        problems += replay.differences()
        if now is not None and now != then:
            problems.append("the decided bytes differ")
        return then, now, problems

    async def _check_record(self, recorded: RecordedRequest) -> str:
        """The hash of an older edition's plan, if its record gives it; else `Broken`. Of the owner's own choice the
        reasons are not on record, nor is the verdict that doubts capped: there the id must follow from the hash."""
        plan, end = recorded.plan, recorded.end
        if end is None:
            raise Broken(f"{recorded.request_id} has no plan")
        content: Any = decode_canonical(await (await self._open_journal()).bundle(Digest(end["debate"]["context"])))
        then = plans.hash_decided(content, end)
        if plan is None:
            return then
        chosen = plan.owner_choice is not None or bool(plan.doubts)
        if plan.plan_id != plans.plan_id_of(recorded.request_id, plan.hash) or not (chosen or plan.hash == then):
            raise Broken(_other_hash(plan.plan_id))
        return plan.hash

    async def _with_replies(self, recorded: RecordedRequest, ready: PlanReady) -> RecordedRequest:
        """A debate of the mesh left what models said with the peers; without it there is nothing to replay."""
        if any(entry.kind == Kind.CONTEXT_OBSERVED.value for entry in recorded.entries):
            return recorded
        attempts = tuple(
            [
                Attempt.model_validate(dict(entry.payload))
                for journal in self._of_peers()
                async for entry in journal.entries(request_id=recorded.request_id, kind="model_attempt")
            ]
        )
        known = {(attempt.role, attempt.round) for attempt in attempts}
        asked = [speech for speech in ready.debate.spoke if speech.speaker != "deterministic"]
        if gone := sorted({speech.role.value for speech in asked if (speech.role.value, speech.round) not in known}):
            raise Refused(
                f"{recorded.request_id} was argued on the mesh, and what models said for the {', '.join(gone)} is in "
                "journals elsewhere; replay it where those peers are."
            )
        return replace(recorded, attempts=attempts)

    async def _load_plan(self, plan_id: str) -> tuple[RecordedRequest, Context, PlanReady]:
        journal = await self._open_journal()
        recorded = await self._load_request(journal, *await self._request_of(journal, plan_id))
        if recorded.ready is None:
            raise NotFound(f"{plan_id} names no finished plan; `zuno plan list` shows them.")
        return recorded, await load_context(journal, recorded.ready.debate.context), recorded.ready

    async def store_missing_views(self) -> JournalUpgradeView:
        """Store the view of every plan that has none, as this Zuno computes it."""
        journal = await self._open_journal()

        async def load(request_id: str) -> DecisionRecord[PlanView]:
            return _decision(journal, await self._load_request(journal, request_id, None))

        return await store_missing_views(journal, plans.PLAN_KIND, Author(Role.CLI.value), load)

    async def _request_of(self, journal: Journal, reference: str) -> tuple[str, str | None]:
        """The request, and the plan where one was named."""
        text = reference.strip()
        if _REQUEST.fullmatch(text):
            return text, None
        if not _PLAN.fullmatch(text):
            forms = "no plan (plan_ and 12 hex digits), no request (req_ and 16) and no run (run_ and 16)"
            raise UsageError(f"{text[:80]!r} is {forms}.")
        async for entry in journal.entries(kind=plans.PLAN_KIND):
            if entry.payload["planId"] == text and entry.request_id is not None:
                return entry.request_id, text
        if await journal.latest(1, request_id=text, kind=PlanInstructed.kind):
            raise Refused(f"{text} was made without a debate; `zuno plan status {text}` and `simulate` show it.")
        raise NotFound(f"No plan {text} in this journal; `zuno plan list` shows them.")

    async def _load_request(self, journal: Journal, request_id: str, plan_id: str | None) -> RecordedRequest:
        entries, view = list[Entry](), None
        async for entry in journal.entries(request_id=request_id):
            if entry.kind != DECISION_VIEW:
                entries.append(entry)
            else:
                view = view or entry.payload
        if not entries:
            raise NotFound(f"No request {request_id} in this journal; `zuno plan list` shows what was asked.")
        record = next((entry for entry in entries if _records(entry, plan_id)), None)
        ended = record or next((entry for entry in entries if entry.kind == Kind.FLOW_FAILED.value), None)
        await journal.verify_range(entries[0].seq, None if ended is None else ended.seq)
        messages = [envelope for envelope in map(read_entry, entries) if envelope is not None]
        opening = next(
            (message for message in messages if isinstance(message.payload, FlowStart | FlowCreateStart)), None
        )
        if opening is None or not isinstance(opening.payload, FlowStart | FlowCreateStart):
            raise Broken(f"The journal holds {request_id} without its beginning; run `zuno journal verify`.")
        end = _end(request_id, entries, record, opening.key)
        ready = None if end is None else PlanReady.model_validate(end)
        return RecordedRequest(
            request_id=request_id,
            entries=tuple(entries),
            start=opening.payload,
            key=opening.key,
            edition=opening.edition,
            ready=ready,
            end=end,
            failed=None if record is not None else _failure(request_id, messages, opening.key, heard=ready is None),
            attempts=tuple(
                Attempt.model_validate(dict(entry.payload)) for entry in entries if entry.kind == "model_attempt"
            ),
            plan=None if record is None else PlanRecord.model_validate(dict(record.payload)),
            view=view,
        )


def _is_of_peer(messages: Sequence[Envelope]) -> bool:
    """Whether these are from a peer's own journal: agents who speak to each other, each under a key of its own."""
    between_agents = any(Role.CLI not in (message.from_, message.to) for message in messages)
    return between_agents and len({message.key for message in messages}) > 1


async def _tell_what_peers_saw(request_id: str, journals: Sequence[Journal]) -> WhyView | None:
    """A debate as far as peers heard and said it; None where none took part."""
    messages: dict[str, Envelope] = {}
    seen: dict[Role, str] = {}
    furthest: tuple[Context, Debate, int | None] | None = None
    for journal in journals:
        role: Role | None = None
        async for entry in journal.entries(request_id=request_id):
            if (message := read_entry(entry)) is None:
                continue
            role = role or message.to  # the first is one it was sent
            messages[message.id], seen[role] = message, entry.code
            debate = message.payload.debate if isinstance(message.payload, Arguing) else None
            decided = message.payload.decision.index if isinstance(message.payload, PlanReady) else None
            if debate and (furthest is None or len(debate.transcript) > len(furthest[1].transcript)):
                # What does not hold, or cannot be computed with, is not shown, whoever said it.
                with suppress(ZunoError, *NO_FIGURES):
                    context = await load_context(journal, debate.context)
                    check_debate(context, debate.rounds)
                    check_transcript(context, debate, decided)
                    furthest = context, debate, decided
    if not seen:
        return None
    return WhyView(
        request_id=request_id,
        code=next(iter(seen.values())),
        messages=_message_lines(sorted(messages.values(), key=lambda message: message.ts)),
        transcript=() if furthest is None else plans.thoughts_of(*furthest),
        sources=() if furthest is None else tuple(map(SourceView.model_validate, furthest[0].sources)),
        plan=None,
        failed=_failure(request_id, [*messages.values()], "", heard=False),
        seen_by=tuple(role.value for role in seen),
    )


def _message_lines(messages: Iterable[Envelope]) -> tuple[MessageLine, ...]:
    return tuple(
        MessageLine(at=message.ts, sender=message.from_, to=message.to, kind=message.kind) for message in messages
    )


def _other_hash(plan_id: str) -> str:
    return f"{plan_id} is on record with another hash than its debate gives; run `zuno journal verify`."


def _records(entry: Entry, plan_id: str | None) -> bool:
    """Whether this is the record of that plan, or of any; the first of a request is its plan."""
    return entry.kind == plans.PLAN_KIND and plan_id in (None, entry.payload["planId"])


def _end(request_id: str, entries: Sequence[Entry], record: Entry | None, own: str) -> Mapping[str, Any] | None:
    """The end that was checked: the one that the plan's record, or a refused choice, names.

    Without either nothing was checked, and only what this process said itself, under its own key, is shown. A record
    from before messages were named stands on the first end in front of it, the one that was checked then, too.
    """
    ends = [entry for entry in entries if entry.kind == Kind.PLAN_READY.value]
    named = _checked_message(entries, record)
    if named is not None:
        ends = [entry for entry in ends if digest(canonical(dict(entry.payload))) == named]
    elif record is not None:
        ends = [entry for entry in ends if entry.seq < record.seq]
    else:
        ends = [entry for entry in ends if entry.author.key == own]
    if ends:
        payload: Any = ends[0].payload["payload"]
        return dict(payload)
    if record is not None:
        raise Broken(f"The plan of {request_id} stands on a message that is gone; run `zuno journal verify`.")
    return None


def _checked_message(entries: Sequence[Entry], record: Entry | None) -> str | None:
    """The checked message, by its hash."""
    if record is not None:
        return PlanRecord.model_validate(dict(record.payload)).message
    refused = next((entry for entry in entries if entry.kind == plans.REFUSED_KIND), None)
    return None if refused is None else ChoiceRefused.model_validate(dict(refused.payload)).message


def _failure(request_id: str, messages: Sequence[Envelope], own: str, *, heard: bool) -> str | None:
    """Why no plan is on record: the first end that a peer told, or what went wrong here since."""
    ends = [message for message in messages if isinstance(message.payload, PlanReady | FlowFailed)]
    first = next((end for end in ends if end.key != own), None)
    reason: str | None = None
    for end in ends:
        if isinstance(end.payload, FlowFailed) and (end.key == own or end is first):
            reason = sanitise(end.payload.reason)
    if reason is None and heard and first is not None:
        return f"A plan came and was never checked; `zuno mesh join {request_id}` does so."
    return reason


def _as_chosen(recorded: RecordedRequest, context: Context, ready: PlanReady) -> PlanReady:
    """The debate's end as the owner took it. How sure an older edition was is not worked out again by newer rules."""
    if recorded.plan is None:
        return ready
    choice, taken = recorded.plan.owner_choice, ready
    if choice is not None:
        taken = plans.chosen_by_owner(context, ready, choice)
        taken = taken.model_copy(update={"confidence": ready.confidence}) if recorded.older else taken
    return plans.with_doubts(taken, recorded.plan.doubts)


_ENDS: Final = {Action.CLOSE: "closed", Action.REBALANCE: "rebalanced"}


async def _read_actions(journal: Journal, chain: str) -> dict[str, tuple[Action, tuple[int, ...]]]:
    """What every plan of a chain does, and to which positions."""
    acted: dict[str, tuple[Action, tuple[int, ...]]] = {}
    async for entry in journal.entries(kind=plans.PLAN_KIND):
        record = PlanRecord.model_validate(dict(entry.payload))
        if record.chain == chain and record.choice != "hold":
            action = Action.CREATE if record.position_id is None else Action.REBALANCE
            positions = () if record.position_id is None else (int(record.position_id),)
            acted[record.plan_id] = Action.CLOSE if record.choice == "close" else action, positions
    async for entry in journal.entries(kind=PlanInstructed.kind):
        told = PlanInstructed.model_validate(dict(entry.payload))
        if told.instruction.chain == chain:
            ids = (single.position_id for single in told.instruction.each())
            acted[told.plan_id] = told.instruction.action, tuple(id_ for id_ in ids if id_ is not None)
    return acted


def _decision(journal: Journal, recorded: RecordedRequest) -> DecisionRecord[PlanView]:
    """The view of a debate that has ended."""
    plan, ready = recorded.plan, recorded.ready
    if ready is None:
        raise NotFound(f"{recorded.request_id} names no finished plan; `zuno plan list` shows them.")

    async def compute() -> tuple[PlanView, Facts]:
        context = await load_context(journal, ready.debate.context)
        taken = _as_chosen(recorded, context, ready)
        on_record = plan.hash if recorded.older and plan is not None else None
        return plan_view(recorded.request_id, context, taken, on_record), plans.cite_facts(context, taken)

    return DecisionRecord(PlanView, "" if plan is None else plan.hash, recorded.view, compute)


def _last_own_debate(recorded: RecordedRequest) -> Debate | None:
    """The argument as far as it came in this process; what peers elsewhere argued is shown once it is checked."""
    messages = [message for message in map(read_entry, recorded.entries) if message is not None]
    own = [message.payload for message in messages if message.key == recorded.key]
    debates = [payload.debate for payload in own if isinstance(payload, Arguing)]
    return debates[-1] if debates else None


_STATES = (
    (PlanSimulated.kind, PlanState.SIMULATED.value),
    (PlanApproved.kind, PlanState.APPROVED.value),
    (PlanApplying.kind, PlanState.APPLYING.value),
    (StepHandedOut.kind, PlanState.HANDED_OUT.value),
    (PlanOver.kind, None),
)
"""What an entry of a kind says about its plan, the later in a plan's life the further down."""


async def _find_plan_number(journal: Journal, plan_id: str) -> int:
    """The number of the entry that made a plan, looked for from the newest on."""
    for kind in (plans.PLAN_KIND, PlanInstructed.kind) if _PLAN.fullmatch(plan_id) else ():
        start: int | None = None
        while found := await journal.latest(_SCANNED, kind=kind, before=start):
            for entry in found:
                if entry.payload["planId"] == plan_id:
                    return entry.seq
            start = found[-1].seq
    raise UsageError(f"{plain_text(plan_id, 40)!r} is no plan of this home.")


def _line(entry: Entry, states: Mapping[str, str]) -> PlanLine:
    state = states.get(str(entry.payload["planId"]), PlanState.DRAFTED.value)
    if entry.kind == PlanInstructed.kind:
        return _instructed_line(entry, state)
    record = PlanRecord.model_validate(dict(entry.payload))
    same = record.model_dump(include=set(PlanLine.model_fields), by_alias=False)
    return PlanLine(request_id=entry.request_id or "", at=entry.at, state=state, **same)


def _instructed_line(entry: Entry, state: str) -> PlanLine:
    told = PlanInstructed.model_validate(dict(entry.payload))
    position = told.instruction.position_id
    return PlanLine(
        plan_id=told.plan_id,
        request_id="",
        at=entry.at,
        kind=told.instruction.action,
        chain=told.instruction.chain,
        position_id=None if position is None else str(position),
        verdict=None,
        choice=told.instruction.action,
        decided_by="owner",
        state=state,
    )


def _or_unknown(value: str | None) -> str:
    return "unknown" if value is None else value


def _span(lower: object, upper: object) -> str:
    return "–" if lower is None or upper is None else f"{lower} to {upper}"


def _compare_plans(first: PlanView, second: PlanView) -> Iterator[PlanChange]:
    """What a person would compare, in the order of the card."""
    before, after = _compared_facts(first), _compared_facts(second)
    for name in dict.fromkeys((*before, *after)):
        if before.get(name) != after.get(name):
            yield PlanChange(what=name, before=before.get(name, "–"), after=after.get(name, "–"))


def _compared_facts(plan: PlanView) -> dict[str, str]:
    chosen = plan.recommended
    facts = {
        "kind": plan.kind,
        "chain": plan.chain,
        "position": plan.position_id or "–",
        "verdict": plan.verdict,
        "choice": chosen.kind,
        "pool": chosen.pool.label,
        "range": _span(chosen.price_lower, chosen.price_upper),
        "ticks": _span(chosen.tick_lower, chosen.tick_upper),
        "puts in": f"{chosen.amount0_human} {chosen.pool.currency0.symbol}, "
        f"{chosen.amount1_human} {chosen.pool.currency1.symbol}",
        "before": chosen.prep_action or "–",
        "confidence": f"{plan.confidence:.4f}",
        "decided by": plan.decided_by,
        "rounds": str(plan.rounds),
        "profile": plan.profile,
        "regime": plan.regime,
        "block": str(plan.block),
        "fees 24 h": _or_unknown(chosen.carry.fees24h),
        "LVR 24 h": _or_unknown(chosen.carry.lvr24h),
        "net carry 24 h": _or_unknown(chosen.carry.net24h),
        "cost": _or_unknown(chosen.carry.cost),
    }
    for candidate in plan.candidates:
        facts[f"candidate {candidate.index}"] = (
            f"{candidate.kind} {_span(candidate.tick_lower, candidate.tick_upper)}: {candidate.verdict}"
        )
    return {**facts, "hash": plan.hash}
