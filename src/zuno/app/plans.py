"""A finished debate as the plan people and scripts read."""

from __future__ import annotations

import hashlib
from fractions import Fraction

from pydantic import Field

from zuno.app.figures import decimal_text, money_text
from zuno.app.shaping import key_view
from zuno.app.views import PoolKeyView, Said, View
from zuno.core.amm.ticks import sqrt_price_at_tick
from zuno.core.ballot import owner_decides
from zuno.desks.lp.survey import to_wrap
from zuno.desks.lp.verdicts import conclude, doubts
from zuno.domain.debate import Candidate, Carry, Judgment, StressPoint
from zuno.domain.pool import PoolState, whole_price
from zuno.domain.tokens import human
from zuno.messages.codec import Digest, canonical
from zuno.messages.debate import Context, Debate, PlanReady, Wish
from zuno.messages.record import Hex64
from zuno.messages.wire import Wire

HOURS_DIGITS = 6
PLAN_KIND = "plan"
"""The journal's kind of an entry that says which plan came of a request."""
REFUSED_KIND = "choice_refused"


class PlanRecord(Wire):
    """What is remembered of a plan beside its debate: its name, the message it stands on, and the owner's own choice
    where there was one. A request has one."""

    plan_id: str
    hash: str
    kind: str
    chain: str
    position_id: str | None
    verdict: str
    choice: str
    decided_by: str
    owner_choice: int | None = None
    message: Hex64 | None = None
    """The sha256 of the `plan_ready`, as it was signed, that was checked; an id alone could be given twice by whoever
    holds the key. None: written before this was recorded."""


class ChoiceRefused(Wire):
    """The owner chose what cannot be chosen: there is no plan, and the debate stands as it was checked."""

    message: Hex64
    choice: int
    why: str


class StressPointView(View):
    median_hours: int
    p10_hours: int
    p_exit24h: float = Field(alias="pExit24h")
    in_range_share: float
    censored: bool


class StressView(View):
    x1: StressPointView
    x2: StressPointView
    x3: StressPointView


class CarryView(View):
    """Whole token1 as decimal strings; null when unknown."""

    fees24h: str | None = Field(alias="fees24h")
    lvr24h: str | None = Field(alias="lvr24h")
    net24h: str | None = Field(alias="net24h")
    cost: str | None
    breakeven_hours: str | None
    token: str


class CandidateView(View):
    index: int
    kind: str
    pool: PoolKeyView
    tick_lower: int | None
    tick_upper: int | None
    price_lower: str | None
    price_upper: str | None
    stress: StressView | None
    carry: CarryView
    verdict: str
    reason: Said


class RecommendedView(CandidateView):
    amount0: str
    amount1: str
    amount0_human: str
    amount1_human: str
    prep_action: str | None


class ThoughtView(View):
    role: str
    round: int
    text: Said
    speaker: str


class SourceView(View):
    feed: Said
    source: Said | None
    as_of: int | None
    age_seconds: int | None
    stale: bool | None
    notes: tuple[Said, ...]


class VoiceView(View):
    role: str
    round: int
    speaker: str
    why: Said
    model: Said | None
    tokens: int
    usd: str | None


class EarlierView(View):
    """What an earlier round proposed, and why it did not do."""

    round: int
    index: int
    kind: str
    pool: str
    tick_lower: int
    tick_upper: int
    price_lower: str
    price_upper: str
    verdict: str
    reason: Said


class PlanView(View):
    plan_id: str
    request_id: str
    kind: str
    chain: str
    position_id: str | None
    profile: str
    verdict: str
    confidence: float
    decided_by: str
    cautions: tuple[Said, ...]
    rounds: int
    regime: str
    recommended: RecommendedView
    candidates: tuple[CandidateView, ...]
    earlier: tuple[EarlierView, ...]
    """The moves of the rounds before the last, which the candidates above do not hold."""
    transcript: tuple[ThoughtView, ...]
    voices: tuple[VoiceView, ...]
    sources: tuple[SourceView, ...]
    block: int
    hash: str


def chosen_by_owner(context: Context, ready: PlanReady, index: int) -> PlanReady:
    """The same debate with the owner's own choice; a vetoed candidate is refused."""
    last = ready.debate.rounds[-1]
    decision = owner_decides(index, last.candidates, last.judgments, context.profile, doubts=doubts(context))
    return conclude(context, ready.debate, decision)


def decided_hash(context: Context, ready: PlanReady) -> str:
    """What was decided and from what: no ids, no wall clock, no ages (so no confidence, which counts them), no cost.

    The context counts with all its figures; of its sources their names and whether they were stale, not their times.
    """
    last = ready.debate.rounds[-1]
    sources = [{"feed": note.feed, "source": note.source, "stale": note.stale} for note in context.sources]
    decided = {
        "context": {**context.model_dump(by_alias=True), "sources": sources},
        "rounds": [round_.model_dump(by_alias=True) for round_ in ready.debate.rounds],
        "candidates": len(last.candidates),
        "decision": {
            "index": ready.decision.index,
            "verdict": ready.decision.verdict,
            "decidedBy": ready.decision.decided_by,
            "cautions": ready.decision.cautions,
        },
    }
    return hashlib.sha256(canonical(decided)).hexdigest()


def record_of(plan: PlanView, owner_choice: int | None, message: Digest) -> PlanRecord:
    return PlanRecord(
        plan_id=plan.plan_id,
        hash=plan.hash,
        kind=plan.kind,
        chain=plan.chain,
        position_id=plan.position_id,
        verdict=plan.verdict,
        choice=plan.recommended.kind,
        decided_by=plan.decided_by,
        owner_choice=owner_choice,
        message=message,
    )


def plan_id_of(request_id: str, digest: str) -> str:
    return "plan_" + hashlib.sha256(f"{request_id} {digest}".encode()).hexdigest()[:12]


def _earlier_view(number: int, view: CandidateView) -> EarlierView:
    return EarlierView(
        round=number,
        index=view.index,
        kind=view.kind,
        pool=view.pool.label,
        tick_lower=view.tick_lower or 0,
        tick_upper=view.tick_upper or 0,
        price_lower=view.price_lower or "",
        price_upper=view.price_upper or "",
        verdict=view.verdict,
        reason=view.reason,
    )


def thoughts_of(debate: Debate) -> tuple[ThoughtView, ...]:
    return tuple(
        ThoughtView(role=one.role, round=one.round, text=one.text, speaker=one.speaker) for one in debate.transcript
    )


def plan_view(request_id: str, context: Context, ready: PlanReady) -> PlanView:
    last, decision = ready.debate.rounds[-1], ready.decision
    candidates = tuple(
        _candidate_view(candidate, judgment, context.scenes[candidate.pool_index].pool)
        for candidate, judgment in zip(last.candidates, last.judgments, strict=True)
    )
    chosen = last.candidates[decision.index]
    scene = context.scenes[chosen.pool_index]
    digest = decided_hash(context, ready)
    position = context.scenes[0].position
    return PlanView(
        plan_id=plan_id_of(request_id, digest),
        request_id=request_id,
        kind=context.flow,
        chain=context.chain,
        position_id=None if position is None else str(position.id),
        profile=context.profile,
        verdict=decision.verdict,
        confidence=ready.confidence,
        decided_by=decision.decided_by,
        cautions=decision.cautions,
        rounds=len(ready.debate.rounds) - 1,
        regime=scene.regime,
        recommended=_recommended(candidates[decision.index], chosen, scene.pool, context.wish),
        candidates=candidates,
        earlier=tuple(
            _earlier_view(number, _candidate_view(candidate, judgment, context.scenes[candidate.pool_index].pool))
            for number, round_ in enumerate(ready.debate.rounds[:-1])
            for candidate, judgment in zip(round_.candidates, round_.judgments, strict=True)
            if candidate.kind.move
        ),
        transcript=thoughts_of(ready.debate),
        voices=tuple(
            VoiceView(
                role=one.role,
                round=one.round,
                speaker=one.speaker,
                why=one.why,
                model=one.model,
                tokens=one.tokens,
                usd=None if one.usd is None else str(one.usd),
            )
            for one in ready.debate.spoke
        ),
        sources=tuple(
            SourceView(
                feed=one.feed,
                source=one.source,
                as_of=one.as_of,
                age_seconds=one.age_seconds,
                stale=one.stale,
                notes=one.notes,
            )
            for one in context.sources
        ),
        block=context.block.number,
        hash=digest,
    )


def _recommended(view: CandidateView, candidate: Candidate, pool: PoolState, wish: Wish | None) -> RecommendedView:
    put_in = candidate.deposit
    return RecommendedView(
        **dict(view),
        amount0=str(put_in.amount0),
        amount1=str(put_in.amount1),
        amount0_human=human(put_in.amount0, pool.token0.decimals),
        amount1_human=human(put_in.amount1, pool.token1.decimals),
        prep_action=_prep_action(candidate, pool, wish),
    )


def _prep_action(candidate: Candidate, pool: PoolState, wish: Wish | None) -> str | None:
    """What has to happen before the tokens can go in; None when nothing has."""
    steps, prep = [], candidate.deposit.prep
    wrapped = None if wish is None or candidate.range is None else to_wrap(wish, pool)
    if wrapped is not None:
        steps.append(f"wrap {wrapped.amount:f} ETH → WETH")
    if prep is not None:
        given, got = (pool.token0, pool.token1) if prep.zero_for_one else (pool.token1, pool.token0)
        steps.append(f"swap {human(prep.amount_in, given.decimals)} {given.symbol} → {got.symbol}")
    return ", then ".join(steps) + " first" if steps else None


def _candidate_view(candidate: Candidate, judgment: Judgment, pool: PoolState) -> CandidateView:
    span = candidate.range
    edges: tuple[str | None, str | None] = (None, None)
    if span is not None:
        prices = sorted(
            whole_price(sqrt_price_at_tick(tick), pool.token0, pool.token1) for tick in (span.lower, span.upper)
        )
        edges = (decimal_text(prices[0], 10), decimal_text(prices[1], 10))
    tested = candidate.stress
    return CandidateView(
        index=candidate.index,
        kind=candidate.kind,
        pool=key_view(pool.key, pool.token0, pool.token1),
        tick_lower=None if span is None else span.lower,
        tick_upper=None if span is None else span.upper,
        price_lower=edges[0],
        price_upper=edges[1],
        stress=None if tested is None else StressView(x1=_point(tested.x1), x2=_point(tested.x2), x3=_point(tested.x3)),
        carry=_carry_view(candidate.carry, pool),
        verdict=judgment.verdict,
        reason=judgment.reason,
    )


def _point(point: StressPoint) -> StressPointView:
    return StressPointView(
        median_hours=point.median_hours,
        p10_hours=point.p10_hours,
        p_exit24h=float(point.p_exit_24h),
        in_range_share=round(float(point.in_range_share), 6),
        censored=point.censored,
    )


def _carry_view(carry: Carry, pool: PoolState) -> CarryView:
    def money(value: Fraction | None) -> str | None:
        return None if value is None else money_text(value, pool.token1.decimals)

    hours = carry.breakeven_hours
    return CarryView(
        fees24h=money(carry.fees24h_token1),
        lvr24h=money(carry.lvr24h_token1),
        net24h=money(carry.net24h_token1),
        cost=money(carry.cost.total_token1),
        breakeven_hours=None if hours is None else decimal_text(hours, HOURS_DIGITS),
        token=pool.token1.symbol,
    )
