"""The end of a debate, the same whoever ends it: doubts about the data, the decision, and how sure it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from zuno.lp.model.ballot import CandidateKind, Decision, NextStep, PlanVerdict
from zuno.lp.model.debate import Context, Debate, PlanReady, SceneFacts
from zuno.lp.rules.ballot import floor_margin, next_step, overall
from zuno.lp.rules.confidence import confidence, disagreement
from zuno.lp.rules.limits import LIMITS, REFERENCE_LIMIT


def data_cautions(context: Context) -> tuple[str, ...]:
    """Why this data deserves caution."""
    reasons: list[str] = []
    if context.seeded:
        reasons.append("some figures come from a seeded series, not from a market")
    reasons += [f"{note.feed} is stale" for note in context.sources if note.stale]
    for scene in context.scenes:
        if _off_reference(scene):
            reasons.append(f"the pool's price is {float(100 * (scene.reference_gap or 0)):.2f} % off the reference")
    return tuple(reasons)


def _off_reference(scene: SceneFacts) -> bool:
    return scene.reference_gap is not None and scene.reference_gap > REFERENCE_LIMIT


def conclude(context: Context, debate: Debate, decision: Decision) -> PlanReady:
    """The decision with its confidence; an act on a price that the reference does not bear out is rejected."""
    last = debate.rounds[-1]
    chosen = last.candidates[decision.index]
    if chosen.kind is not CandidateKind.HOLD and _off_reference(context.scenes[chosen.pool_index]):
        decision = replace(decision, verdict=PlanVerdict.REJECT)
    raised = sum(
        judgment.verdict.severity > rule.verdict.severity
        for judgment, rule in zip(last.judgments, last.mechanical, strict=True)
    )
    return PlanReady(
        debate=debate,
        decision=decision,
        confidence=confidence(
            margin=floor_margin(chosen, LIMITS[context.profile]),
            age=_age(context),
            disagreement=disagreement(
                converged=next_step(
                    overall(last.candidates, last.judgments), len(debate.rounds) - 1, context.max_rounds
                )
                is NextStep.DECIDE,
                revisions=len(debate.rounds) - 1,
                allowed=context.max_rounds,
                raised=raised,
                candidates=len(last.candidates),
            ),
            known=_share_of_live_sources(context),
        ),
    )


def _age(context: Context) -> Fraction:
    ages = [
        Fraction(note.age_seconds, max(note.limit_seconds, 1))
        for note in context.sources
        if note.age_seconds is not None and note.limit_seconds is not None
    ]
    return max(ages, default=Fraction(0))


def _share_of_live_sources(context: Context) -> Fraction:
    sound: Sequence[bool] = [note.source is not None and note.source != "seed" for note in context.sources]
    return Fraction(sum(sound), len(sound)) if sound else Fraction(1)
