"""Ask a mind: a model, the model once more with its error named, else the rules; and say which of them spoke."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Generic

from zuno.agents.breaker import Breakers
from zuno.agents.budget import RunBudget
from zuno.agents.prompts import Prompt, Prompts
from zuno.agents.question import Question, Spoken, T, schema_of
from zuno.agents.reading import EVIDENCE_CHARS, MAX_REPLY_CHARS, Usable, bounded, read
from zuno.agents.tokens import PER_IMAGE, PER_TURN, estimate_tokens
from zuno.domain.models import thinking_tokens
from zuno.ports.clock import Clock
from zuno.ports.model import Answered, Attempt, Failed, Model, ModelRequest, Outcome, Reply, Seats, Turn, Usage

_MENDABLE: frozenset[Outcome] = frozenset({"malformed", "out_of_bounds", "unsupported_figure"})
_ABOUT_THE_MODEL: frozenset[Outcome] = frozenset({"malformed", "timeout", "unavailable"})
"""Failures that count against it. A refusal shows that it is there; budget and breaker are our own doing."""
_QUOTED_CHARS = 4_000
_GRACE = 1.0
"""Seconds a cancelled call has to end; after that it is left behind, not waited for."""

Record = Callable[[Attempt], Awaitable[None]]
Recall = Callable[[ModelRequest], Attempt | None]


def nothing_on_record(request: ModelRequest) -> None:
    """For a run that has just begun."""


@dataclass(frozen=True, slots=True)
class Minds:
    """What asking needs, for one run of one desk. Time and waiting come from outside."""

    seats: Seats
    prompts: Prompts
    budget: RunBudget
    breakers: Breakers
    record: Record
    """Called with every attempt before anything is made of it. What it raises is raised."""
    clock: Clock
    stopwatch: Callable[[], float]
    """Seconds from anywhere, for latencies."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    timeout: float = 30.0
    """Seconds for one call. A question takes at most (models + 1) × this."""
    recall: Recall = nothing_on_record
    """What is on record of this very request: it is taken instead of asking, and not recorded again."""


@dataclass(frozen=True, slots=True)
class _Tried(Generic[T]):
    attempt: Attempt
    usable: Usable[T] | None


async def ask(question: Question[T], minds: Minds) -> Spoken[T]:
    """The value, always: from a model in the order they are seated, from its one repair, or from the twin.

    The next model is asked when one fails, never because its answer was wrong; a wrong answer is repaired by the
    one that gave it, once. Only what the world does ends in the twin: a prompt that cannot be written, a judge that
    raises, a record that cannot be kept or a twin outside its own bounds is raised.
    """
    prompt = minds.prompts.render(question.prompt, question.variables)
    seating = minds.seats.seat(question.role, question.round)
    if not seating.models:
        return Spoken(_twin(question), "deterministic", seating.why)
    opening = _opening(question, prompt, minds.timeout)
    tried: list[Attempt] = []
    for model in seating.models:
        first = await _try(model, replace(opening, attempt=len(tried) + 1), question, prompt, minds)
        before = _why(tried)
        tried.append(first.attempt)
        if first.usable:
            return Spoken(first.usable.value, "model", before, tuple(tried))
        if first.attempt.outcome in _MENDABLE:
            again = _repair(opening, first.attempt)
            second = await _try(model, replace(again, attempt=len(tried) + 1), question, prompt, minds)
            before = _why(tried)
            tried.append(second.attempt)
            if second.usable:
                return Spoken(second.usable.value, "repaired", before, tuple(tried))
            break
    return Spoken(_twin(question), "fallback", _why(tried), tuple(tried))


def _twin(question: Question[T]) -> T:
    value = question.fallback()
    if error := question.judge(value):
        raise ValueError(f"the deterministic {question.role} broke its own bounds: {error}")
    return value


def _why(attempts: list[Attempt]) -> str:
    return "; ".join(f"{attempt.model} ({attempt.outcome}): {attempt.why}" for attempt in attempts)


def _opening(question: Question[T], prompt: Prompt, timeout: float) -> ModelRequest:
    return ModelRequest(
        role=question.role,
        round=question.round,
        attempt=1,
        system=prompt.system,
        turns=(Turn("user", prompt.user),),
        shape=question.output.__name__,
        schema=schema_of(question.output),
        max_output_tokens=question.max_output_tokens,
        timeout=timeout,
        images=question.images,
    )


def _repair(opening: ModelRequest, attempt: Attempt) -> ModelRequest:
    """The same question with the error named. An empty or endless answer is not quoted back."""
    named = f"Your answer cannot be used. {attempt.why}. Answer again with the whole object, corrected."
    if attempt.raw and not attempt.cut:
        said = Turn("model", attempt.raw[:_QUOTED_CHARS])
        return replace(opening, turns=(*opening.turns, said, Turn("user", named)))
    # Not a turn of its own: some chat templates refuse two in a row from the same side.
    *before, last = opening.turns
    return replace(opening, turns=(*before, Turn(last.who, f"{last.text}\n\n{named}")))


async def _try(model: Model, unsigned: ModelRequest, question: Question[T], prompt: Prompt, minds: Minds) -> _Tried[T]:
    request = replace(unsigned, fingerprint=_fingerprint(model.name, unsigned))
    if (known := minds.recall(request)) is not None:
        return _Tried(known, _heard(known.reply, question, prompt)[3])
    started = minds.stopwatch()
    reply, usage = await _call(model, request, minds)
    latency = max(0, round((minds.stopwatch() - started) * 1000))
    outcome, why, (raw, cut), usable = _heard(reply, question, prompt)
    attempt = Attempt(
        role=request.role,
        round=request.round,
        attempt=request.attempt,
        model=model.name,
        request=request.fingerprint,
        outcome=outcome,
        why=why,
        raw=raw,
        cut=cut,
        tokens_in=usage.tokens_in,
        tokens_out=usage.tokens_out,
        usd=usage.usd,
        estimated=usage.estimated,
        latency_ms=latency,
    )
    await minds.record(attempt)
    return _Tried(attempt, usable)


def _heard(
    reply: Reply, question: Question[T], prompt: Prompt
) -> tuple[Outcome, str, tuple[str, bool], Usable[T] | None]:
    """What a reply is worth: how it ended, why, the evidence and whether that is cut, and the value if it is one."""
    if isinstance(reply, Failed):
        return reply.kind, bounded(reply.why), _evidence(_written(reply.raw), reply.cut), None
    verdict = read(text := _written(reply.text), question, prompt.untrusted)
    if isinstance(verdict, Usable):
        return "ok", "", _evidence(text), verdict
    return verdict.kind, verdict.why, _evidence(text), None


def _evidence(raw: str, cut: bool = False) -> tuple[str, bool]:
    return (raw, cut) if len(raw) <= MAX_REPLY_CHARS else (raw[:EVIDENCE_CHARS], True)


def _written(text: str) -> str:
    """Text that has bytes: half a surrogate pair, which JSON can smuggle in, is replaced before anybody reads it."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


async def _call(model: Model, request: ModelRequest, minds: Minds) -> tuple[Reply, Usage]:
    """One call inside breaker, budget and time; and what it took, or must be taken to have taken."""
    nothing = Usage(0, 0, Decimal(0))
    if refusal := minds.breakers.admit(model.name, minds.clock.now()):
        return Failed("breaker", refusal), nothing
    asked = False
    try:
        tokens_in, tokens_out = _estimate(request), request.max_output_tokens + thinking_tokens(model.name)
        usd = await model.price(tokens_in, tokens_out)
        reservation = await minds.budget.reserve(tokens_in + tokens_out, usd)
        if isinstance(reservation, str):
            return Failed("budget", reservation), nothing
        await model.ready()
        reply = await _within(request.timeout, model.reply(request), minds.sleep)
        asked = not (isinstance(reply, Failed) and reply.kind in ("budget", "breaker"))
    finally:
        if not asked:  # refused, cancelled, or our own bug on the way: none of it is the model's fault
            minds.breakers.released(model.name)
    usage = reply.usage
    if usage is None or (isinstance(reply, Answered) and usage.tokens_in + usage.tokens_out == 0):
        usage = Usage(tokens_in, tokens_out, usd, estimated=True)
    await minds.budget.settle(reservation, usage.tokens_in + usage.tokens_out, usage.usd)
    if asked:
        if isinstance(reply, Failed) and reply.kind in _ABOUT_THE_MODEL:
            minds.breakers.failed(model.name, minds.clock.now())
        else:
            minds.breakers.succeeded(model.name)
    return reply, usage


async def _within(seconds: float, call: Awaitable[Reply], sleep: Callable[[float], Awaitable[None]]) -> Reply:
    """The reply, or that there was none in time. Whatever the call raises is raised."""
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
                future.exception()  # looked at, so that nobody complains of it later


def _estimate(request: ModelRequest) -> int:
    texts = (request.system, request.schema, *(turn.text for turn in request.turns))
    said = sum(map(estimate_tokens, texts))
    return said + PER_TURN * (len(request.turns) + 2) + PER_IMAGE * len(request.images)


def _fingerprint(model: str, request: ModelRequest) -> str:
    told = {
        "model": model,
        "role": request.role,
        "round": request.round,
        "attempt": request.attempt,
        "system": request.system,
        "turns": [[turn.who, turn.text] for turn in request.turns],
        "shape": request.shape,
        "schema": request.schema,
        "images": [[image.media_type, hashlib.sha256(image.data).hexdigest()] for image in request.images],
        "maxOutputTokens": request.max_output_tokens,
    }
    canonical = json.dumps(told, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()
