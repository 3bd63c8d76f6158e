"""Plans and debates as the journal holds them: listed, shown, explained, compared and replayed."""

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final

from zuno.amm.model import Block
from zuno.journal.decision_view import JournalUpgradeView, ReplayView, read_view
from zuno.journal.port import Entry, Journal
from zuno.kernel.errors import Malformed, NotFound, Refused, UsageError, ZunoError
from zuno.kernel.text import plain_text
from zuno.kernel.units import HexId
from zuno.kernel.view import ForeignText, View, sanitise
from zuno.kernel.wire import derive
from zuno.lp.agents.prompt_facts import print_thoughts
from zuno.lp.agents.verify_debate import check_debate
from zuno.lp.agents.verify_peer_plan import NO_FIGURES, check_transcript
from zuno.lp.execute.handed_out import explain_waiting
from zuno.lp.execute.plan_state import load_progress
from zuno.lp.mesh.envelope import MESSAGE_KINDS, Envelope, read_entry
from zuno.lp.model.ballot import EDITION, Candidate, PlanVerdict
from zuno.lp.model.debate import Arguing, Context, Debate, PlanReady, Role, Thought
from zuno.lp.model.history import JournaledPlans
from zuno.lp.model.plan import PLAN_KIND, PlanState
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
from zuno.lp.service import plan_replay, recorded_request
from zuno.lp.service.plan_view import PlanRecord, PlanView, SourceView, ThoughtView, describe_sources
from zuno.lp.service.stress_fan import StressFanView, build_stress_fan
from zuno.present.document import Document, Tone, Value, document, lines, table
from zuno.present.values import bad, foreign, id_, when

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

    @property
    def cells(self) -> tuple[str | Value, ...]:
        return (
            id_(self.plan_id),
            self.choice,
            "–" if self.choice == "hold" else self.state,
            "" if self.position_id is None else id_(self.position_id),
            self.kind,
            self.chain,
            (self.verdict or "–").replace("_", " "),
            when(self.at // 1_000),
            self.decided_by,
            id_(self.request_id),
        )


class PlanListView(View):
    plans: tuple[PlanLine, ...]
    notes: tuple[ForeignText, ...] = ()
    """In a list of waiting plans: which plans no longer wait, and why."""

    def to_document(self) -> Document:
        notes = [*map(foreign, self.notes)]
        if not self.plans:
            none = "No plan waits." if notes else "No plans yet; `zuno lp recommend rebalance 1` asks for one."
            return document(none, notes=notes)
        columns = ("plan", "choice", "state", "position", "for", "chain", "verdict", "when", "decided by", "request")
        spare = ("request", "decided by", "when", "chain", "for", "position", "verdict")
        rows = (line.cells for line in self.plans)
        return document("Plans, newest first", table(columns, rows, spare=spare), notes=notes)


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
    """Peers of this home in a debate that another home asked for: only their own messages are known."""

    def to_document(self) -> Document:
        held = f"held by {self.code}"
        end = None if self.failed is None else foreign(f"The flow failed: {self.failed}", Tone.BAD)
        if self.plan is not None:
            plan = self.plan.to_document()
            urgent = plan.urgent if end is None else (*plan.urgent, end)
            return replace(plan, context=Value(f"{plan.context.text}; {held}"), urgent=urgent, acts=plan.acts[1:])
        if end is None and self.seen_by:
            peers = " and the ".join(self.seen_by)
            end = Value(f"As seen by the {peers} of this home; how it ended is with whoever asked.")
        return document(
            f"Why: {self.request_id}, {held}",
            lines(*(thought.line for thought in self.transcript)),
            describe_sources(self.sources),
            urgent=(end or bad("The debate did not end: nothing was decided."),),
        )


class PlanChange(View):
    what: str
    before: str
    after: str


class PlanDiffView(View):
    before: str
    after: str
    changes: tuple[PlanChange, ...]

    def to_document(self) -> Document:
        if not self.changes:
            return document(f"{self.before} and {self.after} say the same.")
        rows = ((change.what, foreign(change.before), foreign(change.after)) for change in self.changes)
        return document("Plans compared", table(("", self.before, self.after), rows))


@dataclass(frozen=True, slots=True)
class EndedPosition:
    """What a plan made of a position: `closed`, or `rebalanced` into a new one."""

    what: str
    plan_id: str
    new_position_id: int | None


@dataclass(frozen=True, slots=True)
class DecidedPlan:
    """What a plan on record decided, to be carried out."""

    hash: str
    context: Context
    chosen: Candidate
    rejected: str | None
    """Why the desk advises against it."""
    anyway: bool = False
    """The owner took a range that was vetoed."""


PeerJournals = Callable[[], Sequence[Journal]]


@dataclass(frozen=True, slots=True)
class Archive:
    """Reads the journal. Only a replay runs anything, and it writes nothing."""

    open_journal: Callable[[], Awaitable[Journal]]
    open_replay: plan_replay.OpenReplay
    code: Callable[[], str]
    of_peers: PeerJournals = tuple

    async def plans(self, count: int = MOST, before: str | None = None) -> PlanListView:
        """The newest first; `before`: those that were made before it. `UsageError` where there is no such plan."""
        journal = await self.open_journal()
        start = None if before is None else await _find_plan_number(journal, before)
        made = [
            entry
            for kind in (PLAN_KIND, PlanInstructed.kind)
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
        """Positions of a chain that a plan of this home closed or rebalanced, by id."""
        journal = await self.open_journal()
        acted, ended = await _read_actions(journal, chain), dict[int, EndedPosition]()
        async for entry in journal.entries(kind=PlanOver.kind):
            over = PlanOver.model_validate(dict(entry.payload))
            action, positions = acted.get(over.plan_id, (Action.HOLD, ()))
            if action in _ENDS and over.state in {PlanState.CONFIRMED, PlanState.PARTIAL}:
                end = EndedPosition(_ENDS[action], over.plan_id, over.new_position_id)
                ended |= dict.fromkeys(positions, end)
        return ended

    async def journaled_plans(self, chain: str) -> JournaledPlans:
        """Which position of a chain replaced which, and the other transactions of their plans."""
        journal = await self.open_journal()
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
        """The plan as it was decided. A step that waits for a signer elsewhere is its first caution."""
        journal, recorded = await self._load(plan_id)
        view = await plan_replay.plan_decision(journal, recorded).show(self.code())
        waiting = explain_waiting(await load_progress(journal, view.plan_id))
        return view.model_copy(update={"cautions": (waiting, *view.cautions)}) if waiting else view

    async def stress_fan(self, plan_id: str) -> StressFanView:
        journal, recorded = await self._load(plan_id)
        return build_stress_fan(
            plan_id, await recorded_request.load_context(journal, recorded.require_end().debate.context)
        )

    async def decision(self, plan_id: str, *, current: bool = False) -> DecidedPlan:
        """A plan with its hash checked. `current`: `Refused` unless it was argued by today's rules."""
        journal, recorded = await self._load(plan_id)
        ready, plan = recorded.require_end(), recorded.plan
        if recorded.older and current:
            raise Refused(
                f"{plan_id} was argued in edition {recorded.edition} and this Zuno argues in edition {EDITION}: "
                "nothing of it is signed yet, so ask the desk again."
            )
        content = await recorded_request.load_context_content(journal, ready.debate.context)
        context = recorded_request.parse_context(ready.debate.context, content)
        taken = ready if recorded.older else plan_replay.apply_owner_choice(recorded, context, ready)
        digest = recorded.check_hash(content, None if taken is ready else taken.model_dump(by_alias=True))
        index, verdict, rejected = taken.decision.index, taken.decision.verdict, None
        if plan is not None and recorded.older:
            index, verdict = plan.owner_choice if plan.owner_choice is not None else index, PlanVerdict(plan.verdict)
        if verdict is PlanVerdict.REJECT:
            rejected = f"`zuno plan show {plan_id}` says why"
            with suppress(Malformed):
                view = read_view(PlanView, "" if plan is None else plan.hash, recorded.view)
                rejected = "; ".join(map(sanitise, view.cautions)) or "no move passed its rules"
        chosen = ready.debate.rounds[-1].candidates[index]
        return DecidedPlan(digest, context, chosen, rejected, plan is not None and plan.anyway)

    async def why(self, reference: str) -> WhyView:
        journal = await self.open_journal()
        request_id, plan_id = await self._request_of(journal, reference)
        entries = await recorded_request.load_entries(journal, request_id)
        if _is_of_peer(entries):
            seen = await _list_what_peers_saw(request_id, [(journal, entries)])
        else:
            others = [] if entries else self.of_peers()
            seen = await _list_what_peers_saw(
                request_id, [(peer, await recorded_request.load_entries(peer, request_id)) for peer in others]
            )
        if seen is not None:
            return seen
        recorded = await recorded_request.read_request(journal, request_id, entries, plan_id)
        plan = None if recorded.ready is None else await plan_replay.plan_decision(journal, recorded).show(self.code())
        argued = _last_own_debate(recorded) if plan is None else None
        context = None if argued is None else await recorded_request.load_context(journal, argued.context)
        return derive(
            WhyView,
            recorded,
            messages=_message_lines(recorded.messages),
            transcript=plan.transcript if plan else _thought_views(context, argued) if argued and context else (),
            sources=plan.sources if plan else (),
            plan=plan,
        )

    async def thoughts_in(self, entry: Entry) -> tuple[Thought, ...]:
        """What the author of a message said in it, as people read it; nothing for entries of other kinds."""
        message = read_entry(entry)
        if message is None or not isinstance(message.payload, Arguing):
            return ()
        debate = message.payload.debate
        context = await recorded_request.load_context(await self.open_journal(), debate.context)
        printed = list(print_thoughts(context, debate))
        turn = (message.from_, printed[-1].round) if printed else None
        newest = [*takewhile(lambda thought: (thought.role, thought.round) == turn, reversed(printed))]
        return tuple(reversed(newest))

    async def diff(self, before: str, after: str) -> PlanDiffView:
        views = [
            await plan_replay.plan_decision(*await self._load(plan_id)).show(self.code()) for plan_id in (before, after)
        ]
        changes = tuple(_compare_plans(*views))
        return PlanDiffView(before=views[0].plan_id, after=views[1].plan_id, changes=changes)

    async def replay(self, reference: str) -> ReplayView:
        """Hold the debate again from what was recorded, with no key and no network. The record itself is verified
        first: a debate with a part missing is not replayed to the rest of it."""
        return await plan_replay.replay_plan(
            *await self._load(reference), self.open_replay, self.of_peers(), self.code()
        )

    async def store_missing_views(self) -> JournalUpgradeView:
        return await plan_replay.store_missing_plan_views(await self.open_journal())

    async def _load(self, reference: str) -> tuple[Journal, recorded_request.RecordedRequest]:
        journal = await self.open_journal()
        request_id, plan_id = await self._request_of(journal, reference)
        return journal, await recorded_request.read_request(
            journal, request_id, await recorded_request.load_entries(journal, request_id), plan_id
        )

    async def _request_of(self, journal: Journal, reference: str) -> tuple[str, str | None]:
        text = reference.strip()
        if _REQUEST.fullmatch(text):
            return text, None
        if not _PLAN.fullmatch(text):
            forms = "no plan (plan_ and 12 hex digits), no request (req_ and 16) and no run (run_ and 16)"
            raise UsageError(f"{text[:80]!r} is {forms}.")
        async for entry in journal.entries(kind=PLAN_KIND):
            if entry.payload["planId"] == text and entry.request_id is not None:
                return entry.request_id, text
        if await journal.latest(1, request_id=text, kind=PlanInstructed.kind):
            raise Refused(f"{text} was made without a debate; `zuno plan status {text}` and `simulate` show it.")
        raise NotFound(f"No plan {text} in this journal; `zuno plan list` shows them.")


def _is_of_peer(entries: Sequence[Entry]) -> bool:
    """Whether these are from a peer's own journal: agents who speak to each other, each under a key of its own."""
    messages = [entry.payload for entry in entries if entry.kind in MESSAGE_KINDS]
    between_agents = any(Role.CLI.value not in (message["from"], message["to"]) for message in messages)
    return between_agents and len({message["key"] for message in messages}) > 1


async def _list_what_peers_saw(request_id: str, peers: Iterable[tuple[Journal, Sequence[Entry]]]) -> WhyView | None:
    """A debate by what peers sent and received; None where none took part."""
    messages: dict[str, Envelope] = {}
    seen: dict[Role, str] = {}
    furthest: tuple[Context, Debate, int | None] | None = None
    for journal, entries in peers:
        role: Role | None = None
        for entry in entries:
            if (message := read_entry(entry)) is None:
                continue
            role = role or message.to  # the first is one it was sent
            messages[message.id], seen[role] = message, entry.code
            debate = message.payload.debate if isinstance(message.payload, Arguing) else None
            decided = message.payload.decision.index if isinstance(message.payload, PlanReady) else None
            if debate and (furthest is None or len(debate.transcript) > len(furthest[1].transcript)):
                # What does not hold, or cannot be computed with, is not shown, whoever said it.
                with suppress(ZunoError, *NO_FIGURES):
                    context = await recorded_request.load_context(journal, debate.context)
                    check_debate(context, debate.rounds)
                    check_transcript(context, debate, decided)
                    furthest = context, debate, decided
    if not seen:
        return None
    return WhyView(
        request_id=request_id,
        code=next(iter(seen.values())),
        messages=_message_lines(sorted(messages.values(), key=lambda message: message.ts)),
        transcript=() if furthest is None else _thought_views(*furthest),
        sources=() if furthest is None else tuple(map(SourceView.model_validate, furthest[0].sources)),
        plan=None,
        failed=recorded_request.explain_failure(request_id, [*messages.values()], "", unchecked=False),
        seen_by=tuple(role.value for role in seen),
    )


def _thought_views(context: Context, debate: Debate, decided: int | None = None) -> tuple[ThoughtView, ...]:
    return tuple(map(ThoughtView.model_validate, print_thoughts(context, debate, decided)))


def _message_lines(messages: Iterable[Envelope]) -> tuple[MessageLine, ...]:
    return tuple(
        MessageLine(at=message.ts, sender=message.from_, to=message.to, kind=message.kind) for message in messages
    )


_ENDS: Final = {Action.CLOSE: "closed", Action.REBALANCE: "rebalanced"}


async def _read_actions(journal: Journal, chain: str) -> dict[str, tuple[Action, tuple[int, ...]]]:
    """What every plan of a chain does, and to which positions."""
    acted: dict[str, tuple[Action, tuple[int, ...]]] = {}
    async for entry in journal.entries(kind=PLAN_KIND):
        record = PlanRecord.model_validate(dict(entry.payload))
        if record.chain == chain and record.choice != "hold":
            action = Action.CREATE if record.position_id is None else Action.REBALANCE
            positions = () if record.position_id is None else (int(record.position_id),)
            acted[record.plan_id] = Action.CLOSE if record.choice == "close" else action, positions
    async for entry in journal.entries(kind=PlanInstructed.kind):
        instructed = PlanInstructed.model_validate(dict(entry.payload))
        if instructed.instruction.chain == chain:
            ids = (single.position_id for single in instructed.instruction.each())
            acted[instructed.plan_id] = instructed.instruction.action, tuple(id_ for id_ in ids if id_ is not None)
    return acted


def _last_own_debate(recorded: recorded_request.RecordedRequest) -> Debate | None:
    """The newest state of the debate under this process's own key. What peers elsewhere sent is shown once checked."""
    own = [message.payload for message in recorded.messages if message.key == recorded.key]
    debates = [payload.debate for payload in own if isinstance(payload, Arguing)]
    return debates[-1] if debates else None


_STATES = (
    (PlanSimulated.kind, PlanState.SIMULATED.value),
    (PlanApproved.kind, PlanState.APPROVED.value),
    (PlanApplying.kind, PlanState.APPLYING.value),
    (StepHandedOut.kind, PlanState.HANDED_OUT.value),
    (PlanOver.kind, None),
)
"""The state of a plan by the kind of its newest entry, in the order of a plan's life; None: the entry names it."""


async def _find_plan_number(journal: Journal, plan_id: str) -> int:
    """The number of the entry that made a plan, looked for from the newest on."""
    for kind in (PLAN_KIND, PlanInstructed.kind) if _PLAN.fullmatch(plan_id) else ():
        start: int | None = None
        while entries := await journal.latest(_SCANNED, kind=kind, before=start):
            for entry in entries:
                if entry.payload["planId"] == plan_id:
                    return entry.seq
            start = entries[-1].seq
    raise UsageError(f"{plain_text(plan_id, 40)!r} is no plan of this home.")


def _line(entry: Entry, states: Mapping[str, str]) -> PlanLine:
    state = states.get(str(entry.payload["planId"]), PlanState.DRAFTED.value)
    if entry.kind == PLAN_KIND:
        record = PlanRecord.model_validate(dict(entry.payload))
        same = record.model_dump(include=set(PlanLine.model_fields), by_alias=False)
        return PlanLine(request_id=entry.request_id or "", at=entry.at, state=state, **same)
    instructed = PlanInstructed.model_validate(dict(entry.payload))
    asked = instructed.instruction
    return PlanLine(
        plan_id=instructed.plan_id,
        request_id="",
        at=entry.at,
        kind=asked.action,
        chain=asked.chain,
        position_id=None if asked.position_id is None else str(asked.position_id),
        verdict=None,
        choice=asked.action,
        decided_by="owner",
        state=state,
    )


def _span(lower: object, upper: object) -> str:
    return "–" if lower is None or upper is None else f"{lower} to {upper}"


def _compare_plans(first: PlanView, second: PlanView) -> Iterator[PlanChange]:
    """Facts of two plans that differ, in the order in which a plan is shown."""
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
        "fees 24 h": chosen.carry.fees24h or "unknown",
        "LVR 24 h": chosen.carry.lvr24h or "unknown",
        "net carry 24 h": chosen.carry.net24h or "unknown",
        "cost": chosen.carry.cost or "unknown",
    }
    for candidate in plan.candidates:
        facts[f"candidate {candidate.index}"] = (
            f"{candidate.kind} {_span(candidate.tick_lower, candidate.tick_upper)}: {candidate.verdict}"
        )
    return {**facts, "hash": plan.hash}
