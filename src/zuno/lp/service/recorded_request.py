"""A request as the journal holds it: its messages, the end that was checked, and its plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from zuno.journal.decision_view import DECISION_VIEW
from zuno.journal.port import Entry, Journal
from zuno.kernel.canonical import Digest, canonical, decode_canonical, digest
from zuno.kernel.errors import Broken, Malformed, NotFound
from zuno.kernel.view import sanitise
from zuno.llm.port import Attempt
from zuno.lp.mesh.envelope import Envelope, read_entry
from zuno.lp.model.ballot import EDITION
from zuno.lp.model.debate import Context, FlowCreateStart, FlowFailed, FlowStart, Kind, PlanReady
from zuno.lp.service.plan_view import PLAN_KIND, REFUSED_KIND, ChoiceRefused, PlanRecord, hash_decided, plan_id_of


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """What is on record of a request, verified up to its end."""

    request_id: str
    code: str
    """The version of Zuno that wrote its newest entry."""
    messages: tuple[Envelope, ...]
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
    def older(self) -> bool:
        """Today's rules and prompts say other things than those it was argued by."""
        return self.edition < EDITION

    def check_hash(self, context: Mapping[str, Any], taken: Mapping[str, Any] | None = None) -> str:
        """The plan's hash, if the record gives it; else `Broken`. Of the owner's own choice the reasons are not on
        record, nor is the verdict that doubts capped: without the end as it was `taken` the id must follow from the
        hash, which is all that an older edition's plan can be held to."""
        if self.end is None:
            raise Broken(f"{self.request_id} has no plan")
        then, plan = hash_decided(context, taken or self.end), self.plan
        if plan is None:
            return then
        chosen = taken is None and (plan.owner_choice is not None or bool(plan.doubts))
        if plan.plan_id != plan_id_of(self.request_id, plan.hash) or not (chosen or plan.hash == then):
            raise Broken(
                f"{plan.plan_id} is on record with another hash than its debate gives; run `zuno journal verify`."
            )
        return plan.hash


async def load_entries(journal: Journal, request_id: str) -> list[Entry]:
    return [entry async for entry in journal.entries(request_id=request_id)]


async def read_request(
    journal: Journal, request_id: str, entries: Sequence[Entry], plan_id: str | None
) -> RecordedRequest:
    """The request of these entries; `plan_id`: which of its plans, where one was named. Verified up to its end."""
    if not entries:
        raise NotFound(f"No request {request_id} in this journal; `zuno plan list` shows what was asked.")
    debate = [entry for entry in entries if entry.kind != DECISION_VIEW]
    view = next((entry.payload for entry in entries if entry.kind == DECISION_VIEW), None)
    record = next((entry for entry in debate if _records(entry, plan_id)), None)
    ended = record or next((entry for entry in debate if entry.kind == Kind.FLOW_FAILED.value), None)
    await journal.verify_range(entries[0].seq, None if ended is None else ended.seq)
    messages = {entry.seq: message for entry in debate if (message := read_entry(entry)) is not None}
    opening = next(
        (message for message in messages.values() if isinstance(message.payload, FlowStart | FlowCreateStart)), None
    )
    if opening is None or not isinstance(opening.payload, FlowStart | FlowCreateStart):
        raise Broken(f"The journal holds {request_id} without its beginning; run `zuno journal verify`.")
    plan = None if record is None else PlanRecord.model_validate(dict(record.payload))
    end = _find_end(request_id, debate, record, plan, opening.key)
    ready = None if end is None else messages[end.seq].payload
    if ready is not None and not isinstance(ready, PlanReady):
        raise Broken(f"The end of {request_id} is no plan; run `zuno journal verify`.")
    heard = [*messages.values()]
    payload: Any = None if end is None else end.payload["payload"]
    return RecordedRequest(
        request_id=request_id,
        code=debate[-1].code,
        messages=tuple(heard),
        start=opening.payload,
        key=opening.key,
        edition=opening.edition,
        ready=ready,
        end=payload,
        failed=None if record is not None else explain_failure(request_id, heard, opening.key, heard=ready is None),
        attempts=tuple(
            Attempt.model_validate(dict(entry.payload)) for entry in debate if entry.kind == "model_attempt"
        ),
        plan=plan,
        view=view,
    )


def _records(entry: Entry, plan_id: str | None) -> bool:
    """Whether this is the record of that plan, or of any; the first of a request is its plan."""
    return entry.kind == PLAN_KIND and plan_id in (None, entry.payload["planId"])


def _find_end(
    request_id: str, entries: Sequence[Entry], record: Entry | None, plan: PlanRecord | None, own: str
) -> Entry | None:
    """The end that was checked: the one that the plan's record, or a refused choice, names.

    Without either nothing was checked, and only what this process said itself, under its own key, is shown. A record
    from before messages were named stands on the first end in front of it, the one that was checked then, too.
    """
    ends = [entry for entry in entries if entry.kind == Kind.PLAN_READY.value]
    refused = next((entry for entry in entries if entry.kind == REFUSED_KIND), None)
    named = None if plan is None else plan.message
    if plan is None and refused is not None:
        named = ChoiceRefused.model_validate(dict(refused.payload)).message
    if named is not None:
        ends = [entry for entry in ends if digest(canonical(dict(entry.payload))) == named]
    elif record is not None:
        ends = [entry for entry in ends if entry.seq < record.seq]
    else:
        ends = [entry for entry in ends if entry.author.key == own]
    if not ends and record is not None:
        raise Broken(f"The plan of {request_id} stands on a message that is gone; run `zuno journal verify`.")
    return ends[0] if ends else None


def explain_failure(request_id: str, messages: Sequence[Envelope], own: str, *, heard: bool) -> str | None:
    """Why no plan is on record: the first end that a peer sent, or what went wrong here since."""
    ends = [message for message in messages if isinstance(message.payload, PlanReady | FlowFailed)]
    first = next((end for end in ends if end.key != own), None)
    reason: str | None = None
    for end in ends:
        if isinstance(end.payload, FlowFailed) and (end.key == own or end is first):
            reason = sanitise(end.payload.reason)
    if reason is None and heard and first is not None:
        return f"A plan came and was never checked; `zuno mesh join {request_id}` does so."
    return reason


async def load_context_content(journal: Journal, digest: str) -> Any:
    """The context behind a hash as it is on record: what a message names is there, or the journal is cut."""
    try:
        return decode_canonical(await journal.bundle(Digest(digest)))
    except NotFound:
        raise Broken(f"The context {digest[:12]}… is gone from the journal; run `zuno journal verify`.") from None


async def load_context(journal: Journal, digest: str) -> Context:
    """The context behind a hash, from the journal's bundles."""
    return parse_context(digest, await load_context_content(journal, digest))


def parse_context(digest: str, content: Any) -> Context:
    try:
        return Context.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        why = sanitise(f"{'.'.join(map(str, first['loc']))}: {first['msg']}")
        raise Malformed(f"The context {digest[:12]}… is none this Zuno takes: {why}.") from error
