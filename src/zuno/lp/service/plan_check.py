"""Any calls held against what was approved of a plan: the same, or which call differs in what."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final, Literal

from pydantic import AliasChoices, AliasPath, BaseModel, BeforeValidator, Field, ValidationError

from zuno.kernel.errors import Refused, UsageError, ZunoError
from zuno.kernel.numbers_text import time_text
from zuno.kernel.units import Address
from zuno.kernel.view import ForeignText, VerdictView
from zuno.lp.execute.checks import approval_hash, check_approval
from zuno.lp.execute.context import ExecutionContext
from zuno.lp.execute.draft import all_steps, step_name
from zuno.lp.execute.plan_state import PlanProgress
from zuno.lp.model.plan import Step, StepState
from zuno.lp.model.plan_events import Draft
from zuno.lp.plan.unsigned import build_unsigned
from zuno.lp.service.execution_to_views import draft_tokens, in_words
from zuno.present.document import Document, Mark, document, facts, lines
from zuno.present.values import foreign, id_

MOST_BYTES: Final = 1 << 20
"""Of a file of calls; the largest plan is a tenth of it."""
MOST_CALLS: Final = 200
MOST_SHOWN: Final = 40
_PLAN: Final = re.compile(r"plan_[0-9a-f]{12}")


def _read_number(given: Any) -> Any:
    if isinstance(given, str) and re.fullmatch(r"0x[0-9a-fA-F]{1,64}|[0-9]{1,78}", given):
        return int(given, 16 if given.startswith("0x") else 10)
    return given


Number = Annotated[int, BeforeValidator(_read_number), Field(strict=True, ge=0, lt=1 << 256)]


class GivenCall(BaseModel):
    to: str = Field(pattern=r"^0x[0-9a-fA-F]{40}$")
    value: Number = 0
    data: str = Field("0x", pattern=r"^0x([0-9a-fA-F]{2})*$")
    chain: Number | None = Field(None, alias="chainId")
    sender: str = Field("", alias="from")
    max_fee: Number = Field(0, validation_alias=AliasChoices("maxFeePerGas", "gasPrice"))
    nonce: Number = 0
    gas: Number = 0
    tip: Number = Field(0, alias="maxPriorityFeePerGas")
    serialized: str = ""
    signing_hash: str = Field("", alias="signingHash")
    operation: Literal[0, "0"] = 0
    """A Safe's call, never its delegate call."""
    method: None = Field(None, alias="contractMethod")

    def put_into(self, step: Step) -> Step:
        return replace(step, to=Address(self.to.lower()), value=self.value, data=bytes.fromhex(self.data[2:]))

    def is_what_is_signed(self, draft: Draft, step: Step) -> bool:
        """Whether the bytes and the hash beside the fields, where there are any, are theirs."""
        terms = {"nonce": self.nonce, "gas": self.gas, "max_fee": self.max_fee, "tip": self.tip}
        theirs = build_unsigned(
            chain_id=draft.chain_id, wallet=Address(draft.wallet), call=self.put_into(step), **terms
        )
        return self.serialized in ("", theirs.serialized) and self.signing_hash in ("", theirs.signing_hash)


class GivenCalls(BaseModel):
    """A Safe's batch, what `plan apply --json` printed, or a list of calls."""

    calls: tuple[GivenCall, ...] = Field(alias="transactions", min_length=1, max_length=MOST_CALLS)
    chain: Number | None = Field(None, alias="chainId")
    plan: str = Field("", alias="planId")
    title: str = Field("", validation_alias=AliasPath("meta", "name"))
    safe: str = Field("", validation_alias=AliasPath("meta", "createdFromSafeAddress"))

    @property
    def named_plan(self) -> str | None:
        match = _PLAN.search(self.plan or self.title)
        return match[0] if match else None


class PlanCheckView(VerdictView):
    plan_id: str
    plan_hash: str
    approval_hash: str
    state: str
    calls: int
    differences: tuple[ForeignText, ...]
    notes: tuple[str, ...]

    def to_document(self) -> Document:
        same = f"Equal: {self.calls} calls as approved in {self.plan_id}"
        return document(
            same if self.ok else f"Not what was approved in {self.plan_id}; do not sign it",
            facts(("plan hash", id_(self.plan_hash)), ("signed hash", id_(self.approval_hash)), ("state", self.state)),
            lines(*map(foreign, self.differences[:MOST_SHOWN]), mark=Mark.WARNING),
            notes=self.notes,
        )


def read_calls(content: bytes) -> GivenCalls:
    """`UsageError` for what is no list of calls."""
    try:
        given = json.loads(content)
        if isinstance(given, dict):
            if given.get("safe") and given.get("transactions"):
                raise UsageError("No file of calls: it holds a Safe's batch and transactions beside it.")
            given = given.get("safe") or (given if "transactions" in given else [given])
        return GivenCalls.model_validate({"transactions": given} if isinstance(given, list) else given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        raise UsageError(f"No file of calls: {'.'.join(map(str, first['loc']))}: {first['msg']}.") from error
    except (ValueError, RecursionError) as error:
        raise UsageError("No file of calls: it is not whole JSON.") from error


def compare_calls(
    given: Sequence[GivenCall], steps: Sequence[Step], describe: Callable[[Step], Sequence[str]]
) -> Iterator[str]:
    for place, step in enumerate(steps[len(given) :], len(given) + 1):
        yield f"call {place} is missing: {step_name(step)}"
    for place, call in enumerate(given):
        label, step = f"call {place + 1}", steps[min(place, len(steps) - 1)]
        if (theirs := call.put_into(step)) == step and place < len(steps):
            continue
        if place >= len(steps):
            yield f"{label} was not approved: {'; '.join(describe(theirs))}"
        elif other := [at + 1 for at, each in enumerate(steps) if call.put_into(each) == each]:
            yield f"{label} is the approved call {other[0]}: the order differs"
        else:
            for name, ours in (("to", step.to), ("value", step.value)):
                if getattr(theirs, name) != ours:
                    yield f"{label}: {name} is {getattr(theirs, name)}, approved {ours}"
            if theirs.data != step.data:
                pairs = enumerate(zip(theirs.data, step.data, strict=False))
                same = next((at for at, (a, b) in pairs if a != b), min(len(theirs.data), len(step.data)))
                yield f"{label}: {len(theirs.data)} bytes of data, approved {len(step.data)}; other from byte {same}"
                would, approved = describe(theirs), describe(step)
                yield from (f"{label} would: {line}" for line in would if line not in approved)
                yield from (f"{label} approved: {line}" for line in approved if line not in would)


async def check_calls(context: ExecutionContext, progress: PlanProgress, given: GivenCalls) -> PlanCheckView:
    """`Refused` where nothing was approved, or nothing is left of it to sign."""
    draft = check_approval(progress, context.key)
    waiting = [step for step in progress.steps if step.handed_out and step.state is StepState.HANDED_OUT]
    planned = [step for step in progress.steps if step.state is StepState.PLANNED]
    steps = tuple(step.step for step in waiting or planned) if progress.begun else all_steps(draft)
    if progress.over is not None or progress.approved is None or not steps:
        raise Refused(f"{progress.plan_id} is {progress.state}: nothing of it is to be signed now.")
    if one_of_several := len(steps) > 1 and len(given.calls) == 1 and not (waiting or given.safe):
        steps = steps[:1]

    def describe(step: Step) -> Sequence[str]:
        try:
            return in_words(context, draft, step, draft_tokens(context, draft))
        except ZunoError as error:
            return (f"something that no plan does: {error}",)

    chains = {given.chain, *(call.chain for call in given.calls)} - {None, draft.chain_id}
    wallets = {given.safe.lower(), *(call.sender.lower() for call in given.calls)} - {"", draft.wallet}
    fee = max(call.max_fee for call in given.calls)
    until = min((step.handed_out.deadline for step in waiting if step.handed_out), default=draft.expires)
    differences = [
        *(f"chain {chain}, approved {draft.chain_id}" for chain in chains),
        *(f"wallet {wallet}, approved {draft.wallet}" for wallet in sorted(wallets)),
        *compare_calls(given.calls, steps, describe),
        *(
            f"call {place}: the bytes to sign are not those of its fields"
            for place, call in enumerate(given.calls, 1)
            if not call.is_what_is_signed(draft, steps[0])
        ),
        *([f"up to {fee} wei for a unit of gas, approved {draft.gas.max_fee}"] if fee > draft.gas.max_fee else []),
    ]
    if (await context.chain.head()).timestamp > until:
        differences.append(f"good until {time_text(until)}, which is over")
    return PlanCheckView(
        ok=not differences,
        plan_id=progress.plan_id,
        plan_hash=draft.plan_hash,
        approval_hash=approval_hash(progress.approved.approval),
        state=progress.state,
        calls=len(given.calls),
        differences=tuple(differences),
        notes=("its first step; each later one is built on the receipt before it",) if one_of_several else (),
    )
