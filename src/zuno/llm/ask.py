"""Ask a model: up to one repair of a bad answer, then the deterministic fallback; the answer names its source."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, replace
from decimal import Decimal

from zuno.kernel.clock import Clock
from zuno.kernel.units import Seconds
from zuno.kernel.wire import pick
from zuno.llm.budget import RunBudget
from zuno.llm.names import thinking_tokens
from zuno.llm.port import Answered, Attempt, Failed, Model, ModelRegistry, ModelRequest, Outcome, Reply, Turn, Usage
from zuno.llm.prompts import PER_IMAGE, PER_TURN, Prompt, Prompts, estimate_tokens
from zuno.llm.question import Question, SourcedAnswer, T, schema_of
from zuno.llm.reply import EVIDENCE_CHARS, MAX_REPLY_CHARS, Usable, parse_reply, shorten_reason

_REPAIRABLE: frozenset[Outcome] = frozenset({"malformed", "out_of_bounds"})
_MODEL_FAULTS: frozenset[Outcome] = frozenset({"malformed", "timeout", "unavailable"})
"""Failures that count against a model. A refusal shows that it answers; budget and breaker are our own."""
_QUOTED_CHARS = 4_000
_GRACE = 1.0
"""Seconds a cancelled call has to end; after that it is not waited for."""

Record = Callable[[Attempt], Awaitable[None]]
Recall = Callable[[ModelRequest], Attempt | None]


@dataclass(frozen=True, slots=True)
class ModelContext:
    """What asking a model needs, for one run of one desk. Clock and sleep are injected."""

    registry: ModelRegistry
    prompts: Prompts
    budget: RunBudget
    breakers: Breakers
    record: Record
    """Called with every attempt before anything is made of it. What it raises is raised."""
    clock: Clock
    stopwatch: Callable[[], float]
    """Seconds from any origin, for latencies."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    timeout: float = 30.0
    """Seconds for one call. A question takes at most (models + 1) × this."""
    recall: Recall = lambda _: None
    """What is on record of this very request: it is taken instead of asking, and not recorded again. A new run has
    nothing."""


async def ask(question: Question[T], model_context: ModelContext) -> SourcedAnswer[T]:
    """Always a value: from the models in order, from one repair, or from the fallback.

    The next model is asked when one fails, never because its answer was wrong; a wrong answer is repaired once by the
    model that gave it, and a doubtful one queried once. Our own bugs raise: a prompt that cannot be rendered, a judge
    that raises, a record that cannot be written, a fallback outside its own bounds.
    """
    assigned = model_context.registry.models_for(question.role, question.round)
    if not assigned.models:
        return SourcedAnswer(_run_fallback(question), "deterministic", assigned.why)
    prompt = model_context.prompts.render(question.prompt, question.variables())
    opening = ModelRequest(
        **pick(question, "role", "round", "max_output_tokens", "images"),
        attempt=1,
        system=prompt.system,
        turns=(Turn("user", prompt.user),),
        shape=question.output.__name__,
        schema=schema_of(question.output),
        timeout=model_context.timeout,
    )
    tried: list[Attempt] = []

    async def attempt(model: Model, request: ModelRequest) -> Usable[T] | None:
        numbered = replace(request, attempt=len(tried) + 1)
        made, usable = await _attempt(model, numbered, question, prompt, model_context)
        tried.append(made)
        return usable

    for model in assigned.models:
        before = _explain_attempts(tried)
        if kept := await attempt(model, opening):
            if doubt := question.doubt(kept.value):
                kept = await attempt(model, _build_question_back(opening, tried[-1], doubt)) or kept
            return SourcedAnswer(kept.value, "model", _join(before, kept.left_out), tuple(tried))
        if tried[-1].outcome in _REPAIRABLE:
            before = _explain_attempts(tried)
            if kept := await attempt(model, _build_repair(opening, tried[-1])):
                return SourcedAnswer(kept.value, "repaired", _join(before, kept.left_out), tuple(tried))
            break
    return SourcedAnswer(_run_fallback(question), "fallback", _explain_attempts(tried), tuple(tried))


def _run_fallback(question: Question[T]) -> T:
    value = question.fallback()
    if error := question.judge(value):
        raise ValueError(f"the deterministic {question.role} broke its own bounds: {error}")
    return value


def _explain_attempts(attempts: list[Attempt]) -> str:
    return "; ".join(f"{attempt.model} ({attempt.outcome}): {attempt.why}" for attempt in attempts)


def _join(*reasons: str) -> str:
    return "; ".join(filter(None, reasons))


def _build_repair(opening: ModelRequest, attempt: Attempt) -> ModelRequest:
    """The same question with the error named. An empty or endless answer is not quoted back."""
    correction = f"Your answer cannot be used. {attempt.why}. Answer again with the whole object, corrected."
    if attempt.raw and not attempt.cut:
        answer = Turn("model", attempt.raw[:_QUOTED_CHARS])
        return replace(opening, turns=(*opening.turns, answer, Turn("user", correction)))
    # Not a turn of its own: some chat templates refuse two in a row from the same side.
    *before, last = opening.turns
    return replace(opening, turns=(*before, Turn(last.who, f"{last.text}\n\n{correction}")))


def _build_question_back(opening: ModelRequest, attempt: Attempt, doubt: str) -> ModelRequest:
    asked = f"{doubt} Answer again with the whole object, changed or not."
    answer = Turn("model", attempt.raw[:_QUOTED_CHARS])
    return replace(opening, turns=(*opening.turns, answer, Turn("user", asked)))


async def _attempt(
    model: Model, unsigned: ModelRequest, question: Question[T], prompt: Prompt, model_context: ModelContext
) -> tuple[Attempt, Usable[T] | None]:
    request = replace(unsigned, fingerprint=_fingerprint(model.name, unsigned))
    if (known := model_context.recall(request)) is not None:
        return known, _judge_reply(known.reply, question, prompt)[3]
    started = model_context.stopwatch()
    reply, usage = await _call(model, request, model_context)
    latency = max(0, round((model_context.stopwatch() - started) * 1000))
    outcome, why, (raw, cut), usable = _judge_reply(reply, question, prompt)
    attempt = Attempt(
        **pick(request, "role", "round", "attempt"),
        model=model.name,
        request=request.fingerprint,
        outcome=outcome,
        why=why,
        raw=raw,
        cut=cut,
        **asdict(usage),
        latency_ms=latency,
    )
    await model_context.record(attempt)
    return attempt, usable


def _judge_reply(
    reply: Reply, question: Question[T], prompt: Prompt
) -> tuple[Outcome, str, tuple[str, bool], Usable[T] | None]:
    """Classify a reply: outcome, reason, evidence (and whether it is cut), and the value if it is usable."""
    if isinstance(reply, Failed):
        return reply.kind, shorten_reason(reply.why), _evidence(_replace_surrogates(reply.raw), reply.cut), None
    verdict = parse_reply(text := _replace_surrogates(reply.text), question, prompt.untrusted)
    if isinstance(verdict, Usable):
        return "ok", verdict.left_out, _evidence(text), verdict
    return verdict.kind, verdict.why, _evidence(text), None


def _evidence(raw: str, cut: bool = False) -> tuple[str, bool]:
    return (raw, cut) if len(raw) <= MAX_REPLY_CHARS else (raw[:EVIDENCE_CHARS], True)


def _replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which JSON allows and UTF-8 does not."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


async def _call(model: Model, request: ModelRequest, model_context: ModelContext) -> tuple[Reply, Usage]:
    """One call within breaker, budget and timeout; returns the reply and its usage, estimated if unknown."""
    nothing = Usage(0, 0, Decimal(0))
    if refusal := model_context.breakers.admit(model.name, model_context.clock.now()):
        return Failed("breaker", refusal), nothing
    called = False
    try:
        tokens_in, tokens_out = _estimate_request(request), request.max_output_tokens + thinking_tokens(model.name)
        usd = await model.price(tokens_in, tokens_out)
        reservation = await model_context.budget.reserve(tokens_in + tokens_out, usd)
        if isinstance(reservation, str):
            return Failed("budget", reservation), nothing
        await model.ready()
        reply = await _call_with_timeout(request.timeout, model.reply(request), model_context.sleep)
        called = not (isinstance(reply, Failed) and reply.kind in ("budget", "breaker"))
    finally:
        if not called:  # refused, cancelled, or our own bug on the way: none of it is the model's fault
            model_context.breakers.release(model.name)
    usage = reply.usage
    if usage is None or (isinstance(reply, Answered) and usage.tokens_in + usage.tokens_out == 0):
        usage = Usage(tokens_in, tokens_out, usd, estimated=True)
    await model_context.budget.settle(reservation, usage.tokens_in + usage.tokens_out, usage.usd)
    if called:
        if isinstance(reply, Failed) and reply.kind in _MODEL_FAULTS:
            model_context.breakers.record_failure(model.name, model_context.clock.now())
        else:
            model_context.breakers.record_success(model.name)
    return reply, usage


async def _call_with_timeout(
    seconds: float, call: Awaitable[Reply], sleep: Callable[[float], Awaitable[None]]
) -> Reply:
    """The reply, or a timeout failure. What the call raises is raised."""
    reply = asyncio.ensure_future(call)
    timer = asyncio.ensure_future(sleep(seconds))
    both: set[asyncio.Future[Reply] | asyncio.Future[None]] = {reply, timer}
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if reply.done():
            return reply.result()
        timer.result()
        return Failed("timeout", f"no answer within {seconds:g} s")
    finally:
        for running in both:
            running.cancel()
        ended, _ = await asyncio.wait(both, timeout=_GRACE)
        for future in ended:
            if not future.cancelled():
                future.exception()  # retrieved, so that asyncio does not warn


def _estimate_request(request: ModelRequest) -> int:
    texts = (request.system, request.schema, *(turn.text for turn in request.turns))
    tokens = sum(map(estimate_tokens, texts))
    return tokens + PER_TURN * (len(request.turns) + 2) + PER_IMAGE * len(request.images)


def _fingerprint(model: str, request: ModelRequest) -> str:
    fields = {
        **pick(request, "role", "round", "attempt", "system", "shape", "schema"),
        "model": model,
        "turns": [[turn.who, turn.text] for turn in request.turns],
        "images": [[image.media_type, hashlib.sha256(image.data).hexdigest()] for image in request.images],
        "maxOutputTokens": request.max_output_tokens,
    }
    canonical = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


COOL_DOWN = Seconds(60)


@dataclass(slots=True)
class _Circuit:
    failures: int = 0
    open_until: Seconds | None = None
    probing: bool = False


class Breakers:
    """One circuit per model name: closed, open after `threshold` failures in a row, then one probe at a time."""

    def __init__(self, threshold: int | None = 3, cool_down: Seconds = COOL_DOWN) -> None:
        """`threshold` None: no circuit ever opens, for a replay."""
        if threshold is not None and threshold < 1:
            raise ValueError("a circuit needs at least one failure to open")
        self._threshold = threshold
        self._cool_down = cool_down
        self._circuits: dict[str, _Circuit] = {}

    def admit(self, name: str, now: Seconds) -> str | None:
        """None lets the call through; the caller must then report `record_success`, `record_failure` or `release`."""
        circuit = self._circuits.get(name)
        if circuit is None or circuit.open_until is None:
            return None
        # On record with what was said, so without a clock: the same failures are told in the same words.
        failed = f"it failed {self._threshold} times in a row or more"
        if now < circuit.open_until:
            return f"{failed} and is left alone for a while"
        if circuit.probing:
            return f"{failed} and is being tried by another call"
        circuit.probing = True
        return None

    def record_success(self, name: str) -> None:
        self._circuits.pop(name, None)

    def record_failure(self, name: str, now: Seconds) -> None:
        circuit = self._circuits.setdefault(name, _Circuit())
        circuit.failures += 1
        circuit.probing = False
        if self._threshold is not None and circuit.failures >= self._threshold:
            circuit.open_until = Seconds(now + self._cool_down)

    def release(self, name: str) -> None:
        """The admitted call was not made, or we cancelled it: it counts neither way."""
        if name in self._circuits:
            self._circuits[name].probing = False
