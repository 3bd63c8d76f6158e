"""Plans computed from their record: argued again by a replay, and shown where no view was stored."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from zuno.journal.decision_view import DecisionRecord, Facts, JournalUpgradeView, ReplayView, store_missing_views
from zuno.journal.port import Author, Journal
from zuno.kernel.errors import Broken, Refused, ZunoError
from zuno.llm.port import Attempt
from zuno.lp.model.debate import Context, ContextObserved, PlanReady, Role
from zuno.lp.model.plan import PLAN_KIND
from zuno.lp.service.plan_record import build_plan, chosen_by_owner, decided_hash, with_doubts
from zuno.lp.service.plan_view import PlanView
from zuno.lp.service.recommend import LocalDebateRunner
from zuno.lp.service.recorded_request import (
    RecordedRequest,
    load_context,
    load_context_content,
    load_entries,
    read_request,
)


@dataclass(frozen=True, slots=True)
class ReplayDebateRunner:
    room: LocalDebateRunner
    differences: Callable[[], tuple[str, ...]]


OpenReplay = Callable[[RecordedRequest, Context], Awaitable[ReplayDebateRunner]]


def plan_decision(journal: Journal, recorded: RecordedRequest) -> DecisionRecord[PlanView]:
    """The stored view of a debate that has ended, and how it is computed where none can be read."""
    plan, ready = recorded.plan, recorded.require_end()

    async def compute() -> tuple[PlanView, Facts]:
        context = await load_context(journal, ready.debate.context)
        on_record = plan.hash if recorded.older and plan is not None else None
        return build_plan(recorded.request_id, context, apply_owner_choice(recorded, context, ready), on_record)

    return DecisionRecord(PlanView, "" if plan is None else plan.hash, recorded.view, compute)


async def store_missing_plan_views(journal: Journal) -> JournalUpgradeView:
    """Store the view of every plan that has none, as this Zuno computes it."""

    async def load(request_id: str) -> DecisionRecord[PlanView]:
        entries = await load_entries(journal, request_id)
        return plan_decision(journal, await read_request(journal, request_id, entries, None))

    return await store_missing_views(journal, PLAN_KIND, Author(Role.CLI.value), load)


async def replay_plan(
    journal: Journal, recorded: RecordedRequest, open_replay: OpenReplay, peers: Sequence[Journal], code: str
) -> ReplayView:
    """Hold the debate again from what was recorded, with no key and no network."""
    ready, now, problems = recorded.ready, None, list[str]()
    then = None if recorded.plan is None else recorded.plan.hash
    if ready is None:
        reason = recorded.failed or "it did not end"
        raise Refused(f"{recorded.request_id} decided nothing ({reason}), so there is nothing to replay.")
    if not recorded.older:
        context = await load_context(journal, ready.debate.context)
        replay = await open_replay(await _with_replies(recorded, ready, peers), context)
        then, now, problems = await _argue_again(recorded, context, ready, replay)
    else:  # the chain and its signatures hold, or we would not be here; so must the hash
        try:
            then = recorded.check_hash(await load_context_content(journal, ready.debate.context))
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
        code_now=code,
        differences=tuple(problems),
        view_differences=await plan_decision(journal, recorded).compare(),
    )


async def _argue_again(
    recorded: RecordedRequest, context: Context, ready: PlanReady, replay: ReplayDebateRunner
) -> tuple[str, str | None, list[str]]:
    """The hash then and now, and what is not the same."""
    then, now = decided_hash(context, apply_owner_choice(recorded, context, ready)), None
    problems: list[str] = []
    if recorded.plan is not None and recorded.plan.hash != then:
        problems.append(f"the plan of record has hash {recorded.plan.hash[:12]}…, its debate gives {then[:12]}…")
    try:
        again = await replay.room.debate(recorded.start, lambda thought: None)
        now = decided_hash(context, apply_owner_choice(recorded, context, again.ready))
    except ZunoError as error:
        problems.append(f"the replay ended in an error: {error}")
    problems += replay.differences()
    if now is not None and now != then:
        problems.append("the decided bytes differ")
    return then, now, problems


async def _with_replies(recorded: RecordedRequest, ready: PlanReady, peers: Sequence[Journal]) -> RecordedRequest:
    """A debate of the mesh left what models said with the peers; without it there is nothing to replay."""
    if any(isinstance(message.payload, ContextObserved) for message in recorded.messages):
        return recorded
    attempts = tuple(
        [
            Attempt.model_validate(dict(entry.payload))
            for journal in peers
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


def apply_owner_choice(recorded: RecordedRequest, context: Context, ready: PlanReady) -> PlanReady:
    """The debate's end as the owner took it. How sure an older edition was is not worked out again by newer rules."""
    if recorded.plan is None:
        return ready
    choice, taken = recorded.plan.owner_choice, ready
    if choice is not None:
        taken = chosen_by_owner(context, ready, choice, anyway=recorded.plan.anyway)
        taken = taken.model_copy(update={"confidence": ready.confidence}) if recorded.older else taken
    return with_doubts(taken, recorded.plan.doubts)
