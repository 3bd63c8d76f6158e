"""A request as the journal holds it: its messages, the end of its debate that was checked, and its plan."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
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
from zuno.lp.model.debate import Context, FlowFailed, Kind, PlanReady, Start
from zuno.lp.model.plan import PLAN_KIND
from zuno.lp.service.plan_view import REFUSED_KIND, ChoiceRefused, PlanRecord, hash_decided, plan_id_of


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """A request read from its journal entries, whose chain was verified up to the end of the debate."""

    request_id: str
    code: str
    """The version of Zuno that wrote its newest entry."""
    messages: tuple[Envelope, ...]
    start: Start
    key: str
    """The key that signed the opening message. In one process every agent signs with it; on a mesh only the owner."""
    edition: int
    ready: PlanReady | None
    """The end of the debate that was checked. Other ends that peers sent are not shown."""
    end: Mapping[str, Any] | None
    """The payload of `ready` as the journal holds it."""
    failed: str | None
    """Why there is no plan; None if there is one, or if no reason is known."""
    attempts: tuple[Attempt, ...]
    plan: PlanRecord | None
    view: Mapping[str, Any] | None

    @property
    def older(self) -> bool:
        """Whether the rules and prompts have changed since."""
        return self.edition < EDITION

    def require_end(self) -> PlanReady:
        if self.ready is None:
            raise NotFound(f"{self.request_id} names no finished plan; `zuno plan list` shows them.")
        return self.ready

    def check_hash(self, context: Mapping[str, Any], taken: Mapping[str, Any] | None = None) -> str:
        """The plan's hash, computed again from the record; `Broken` if it differs from the stored one. The record lacks
        the reasons of the owner's own choice and of a verdict that doubts capped: `taken` is the end as it was then
        concluded. Without it, as for an older edition, only the plan's id is checked against the stored hash."""
        if self.end is None:
            raise Broken(f"{self.request_id} has no plan")
        computed, plan = hash_decided(context, taken or self.end), self.plan
        if plan is None:
            return computed
        cannot_compute = taken is None and (plan.owner_choice is not None or bool(plan.doubts))
        if plan.plan_id != plan_id_of(self.request_id, plan.hash) or not (cannot_compute or plan.hash == computed):
            raise Broken(
                f"{plan.plan_id} is on record with another hash than its debate gives; run `zuno journal verify`."
            )
        return plan.hash


async def load_entries(journal: Journal, request_id: str) -> list[Entry]:
    return [entry async for entry in journal.entries(request_id=request_id)]


async def read_request(
    journal: Journal, request_id: str, entries: Sequence[Entry], plan_id: str | None
) -> RecordedRequest:
    """Read a request from its entries and verify their chain up to the end of the debate; `plan_id` picks one of its
    plans, None the first."""
    if not entries:
        raise NotFound(f"No request {request_id} in this journal; `zuno plan list` shows what was asked.")
    debate = [entry for entry in entries if entry.kind != DECISION_VIEW]
    view = next((entry.payload for entry in entries if entry.kind == DECISION_VIEW), None)
    record = next(
        (entry for entry in debate if (entry.kind == PLAN_KIND and plan_id in (None, entry.payload["planId"]))), None
    )
    ended = record or next((entry for entry in debate if entry.kind == Kind.FLOW_FAILED.value), None)
    await journal.verify_range(entries[0].seq, None if ended is None else ended.seq)
    messages = {entry.seq: message for entry in debate if (message := read_entry(entry)) is not None}
    opening = next((message for message in messages.values() if isinstance(message.payload, Start)), None)
    if opening is None or not isinstance(opening.payload, Start):
        raise Broken(f"The journal holds {request_id} without its beginning; run `zuno journal verify`.")
    plan = None if record is None else PlanRecord.model_validate(dict(record.payload))
    end = _find_end(request_id, debate, record, plan, opening.key)
    ready = None if end is None else messages[end.seq].payload
    if ready is not None and not isinstance(ready, PlanReady):
        raise Broken(f"The end of {request_id} is no plan; run `zuno journal verify`.")
    envelopes = tuple(messages.values())
    payload: Any = None if end is None else end.payload["payload"]
    return RecordedRequest(
        request_id=request_id,
        code=debate[-1].code,
        messages=envelopes,
        start=opening.payload,
        key=opening.key,
        edition=opening.edition,
        ready=ready,
        end=payload,
        failed=None
        if record is not None
        else explain_failure(request_id, envelopes, opening.key, unchecked=ready is None),
        attempts=tuple(
            Attempt.model_validate(dict(entry.payload)) for entry in debate if entry.kind == "model_attempt"
        ),
        plan=plan,
        view=view,
    )


def _find_end(
    request_id: str, entries: Sequence[Entry], record: Entry | None, plan: PlanRecord | None, own: str
) -> Entry | None:
    """The end that was checked: the plan's record, or the record of a refused choice, names it by hash.

    Older records name none: theirs is the first end before the record. Without any record nothing was checked, and only
    an end signed with `own`, the key that opened the request, counts.
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


def explain_failure(request_id: str, messages: Sequence[Envelope], own: str, *, unchecked: bool) -> str | None:
    """Why no plan is on record: the last failure that was reported under the key `own`, or by the first end of a peer.
    `unchecked`: no end was checked, so a peer's plan may be waiting; the answer says how to check it."""
    ends = [message for message in messages if isinstance(message.payload, PlanReady | FlowFailed)]
    first = next((end for end in ends if end.key != own), None)
    reason: str | None = None
    for end in ends:
        if isinstance(end.payload, FlowFailed) and (end.key == own or end is first):
            reason = sanitise(end.payload.reason)
    if reason is None and unchecked and first is not None:
        return f"A plan came and was never checked; `zuno mesh join {request_id}` does so."
    return reason


async def load_context_content(journal: Journal, digest: str) -> Any:
    """The context of that hash as the journal holds it; `Broken` if it is gone, because a message names it."""
    return decode_canonical(await _load_context_bytes(journal, digest))


async def _load_context_bytes(journal: Journal, digest: str) -> bytes:
    try:
        return await journal.bundle(Digest(digest))
    except NotFound:
        raise Broken(f"The context {digest[:12]}… is gone from the journal; run `zuno journal verify`.") from None


async def load_context(journal: Journal, digest: str) -> Context:
    """The context of that hash; `Broken` if the journal lacks it, `Malformed` if this Zuno cannot read it."""
    return _decode_context(digest, await _load_context_bytes(journal, digest))


@lru_cache(maxsize=4)
def _decode_context(digest: str, data: bytes) -> Context:
    """Every peer of a debate reads the same one, several times."""
    return parse_context(digest, decode_canonical(data))


def parse_context(digest: str, content: Any) -> Context:
    try:
        return Context.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        why = sanitise(f"{'.'.join(map(str, first['loc']))}: {first['msg']}")
        raise Malformed(f"The context {digest[:12]}… is none this Zuno takes: {why}.") from error
