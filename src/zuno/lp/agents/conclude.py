"""The end of a debate, the same for Critic and Arbiter: cautions about the data, the decision and its confidence."""

from dataclasses import replace
from fractions import Fraction

from zuno.lp.agents.pool_inputs import build_all_pool_inputs
from zuno.lp.model.ballot import Candidate, CandidateKind, Decision, PlanVerdict
from zuno.lp.model.debate import Context, Debate, PlanReady, PoolFacts, Round
from zuno.lp.rules.hedging import follow_range
from zuno.lp.rules.limits import REFERENCE_LIMIT
from zuno.lp.rules.stress import time_in_range
from zuno.lp.rules.worth import PathWorths, best_rival, least_edge, path_worths, share_above, worth_token1


def data_cautions(context: Context) -> tuple[str, ...]:
    reasons: list[str] = []
    if context.seeded:
        reasons.append("some figures come from a seeded series, not from a market")
    reasons += [f"{note.feed} is stale" for note in context.sources if note.stale]
    for pool_facts in context.scenes:
        if _is_off_reference(pool_facts):
            reasons.append(
                f"the pool's price is {float(100 * (pool_facts.reference_gap or 0)):.2f} % off the reference"
            )
    return tuple(reasons)


def _is_off_reference(pool_facts: PoolFacts) -> bool:
    return pool_facts.reference_gap is not None and pool_facts.reference_gap > REFERENCE_LIMIT


def conclude(context: Context, debate: Debate, decision: Decision) -> PlanReady:
    """The decision with its confidence. A move in a pool whose price is off the reference is rejected."""
    last = debate.rounds[-1]
    chosen = last.candidates[decision.index]
    if chosen.kind is not CandidateKind.HOLD and _is_off_reference(context.scenes[chosen.pool_index]):
        decision = replace(decision, verdict=PlanVerdict.REJECT)
    share, over_runner_up = paired_shares(context, last, decision.index)
    ages = [
        Fraction(note.age_seconds, max(note.limit_seconds, 1))
        for note in context.sources
        if note.age_seconds is not None and note.limit_seconds is not None
    ]
    live = sum(note.source is not None and note.source != "seed" for note in context.sources)
    known = Fraction(live, len(context.sources)) if context.sources else Fraction(1)
    return PlanReady(
        debate=debate,
        decision=decision,
        confidence=score_confidence(share=share, age=max(ages, default=Fraction(0)), known=known),
        over_runner_up=None if over_runner_up is None else float(over_runner_up),
    )


def paired_shares(context: Context, last: Round, index: int) -> tuple[Fraction | None, Fraction | None]:
    """Of the same stress paths, the share on which the choice beats hold, and that on which it beats the runner-up. For
    hold it is the share on which its best rival stays under the least edge that a move must have."""
    pools, chosen, hold = build_all_pool_inputs(context), last.candidates[index], last.candidates[0]
    rival = best_rival(last, index)

    def paths_of(candidate: Candidate | None) -> PathWorths | None:
        if candidate is None:
            return None
        inputs, time, followed = pools[candidate.pool_index], None, None
        if inputs.paths is not None and candidate.range is not None:
            edges = inputs.barriers(candidate.range)
            time = time_in_range(inputs.paths, edges, inputs.elasticity)
            if candidate.hedge is not None:
                followed = follow_range(inputs.paths, edges, candidate.hedge.side)
        return path_worths(candidate, time, inputs.pool.sqrt_price_x96, followed)

    ours, theirs = paths_of(chosen), paths_of(rival)
    over_runner_up = share_above(ours, theirs)
    if chosen.kind is not CandidateKind.HOLD:
        return (over_runner_up if rival is hold else share_above(ours, paths_of(hold))), over_runner_up
    if rival is None:
        return (Fraction(1) if worth_token1(chosen) is not None else None), None
    least = least_edge(rival)
    beaten = None if least is None else share_above(theirs, ours, least / (rival.capital_token1 or 1))
    return (None if beaten is None else 1 - beaten), over_runner_up


def score_confidence(*, share: Fraction | None, age: Fraction, known: Fraction = Fraction(1)) -> float:
    """Confidence in a choice; never taken from a model.

    confidence = share × freshness × knowledge, each in [0, 1], rounded to four places

    share      of the stress paths on which the choice is worth more than hold; for hold itself, on which its best rival
               stays under the least edge a move must have. 0 where it is unknown
    freshness  1/(1 + a) with a the age of the oldest fact over that fact's own limit: ½ when it turns stale
    knowledge  (1 + k)/2 with k the share of the facts wanted that are known and not seeded

    A coin toss has about half of what the data allow, a clear case nearly all of it.
    """
    if age < 0 or not 0 <= (share or 0) <= 1 or not 0 <= known <= 1:
        raise ValueError("age is at least 0, share and known are shares")
    return float(round((share or 0) / (1 + age) * (1 + known) / 2, 4))
