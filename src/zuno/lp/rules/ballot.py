"""Verdicts and the winner by fixed thresholds; a model's text cannot change them.

What is not known is never counted as nothing. An unknown gas/yield cannot be held against a candidate, so it is
accepted on its buffers; but a candidate whose score is unknown never wins on money: where scores are known they
decide among themselves, where none is, doing nothing comes first. Either way the plan is approved with caution.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final

from zuno.kernel.errors import Malformed, Refused
from zuno.lp.model.ballot import (
    Candidate,
    CandidateKind,
    DecidedBy,
    Decision,
    Fault,
    Judgment,
    NextStep,
    Overall,
    PlanVerdict,
    RiskProfile,
    Verdict,
)
from zuno.lp.model.cover import FeeCover
from zuno.lp.model.debate import Round
from zuno.lp.rules.limits import LIMITS, ProfileLimits
from zuno.lp.rules.worth import (
    OPEN_DAYS,
    does_not_pay,
    edge_over_hold,
    is_worth_moving,
    may_close,
    pays_to_open,
    worth_of_capital,
    worth_token1,
)

CAUTION_MARGIN: Final = Fraction(1, 10)
POINTS: Final = {Verdict.ACCEPT: 3, Verdict.REVISE: 1, Verdict.VETO: -10}


def judge(candidate: Candidate, profile: RiskProfile) -> Judgment:
    """The mechanical verdict: the first rule that matches, citing its floor and its figure."""
    verdict, fault, reason = _rule(candidate, profile)
    if verdict is Verdict.VETO and candidate.kind is CandidateKind.HOLD:
        verdict = Verdict.REVISE  # holding cannot be forbidden, only advised against
    return Judgment(candidate.index, verdict, reason, fault)


def judge_all(candidates: Sequence[Candidate], profile: RiskProfile) -> tuple[Judgment, ...]:
    return tuple(judge(candidate, profile) for candidate in candidates)


def take_stricter(mechanical: Judgment, opinion: Judgment, kind: CandidateKind) -> Judgment:
    """The Critic's opinion where it is as strict as the rules or stricter; `Malformed` where it is looser. Hold and
    close cannot be vetoed by an opinion either."""
    if opinion.index != mechanical.index:
        raise Malformed(f"a judgment of candidate {opinion.index} cannot stand for candidate {mechanical.index}")
    if opinion.verdict.severity < mechanical.verdict.severity:
        raise Malformed(
            f"candidate {opinion.index}: {opinion.verdict} is looser than the rules' {mechanical.verdict} "
            f"({mechanical.reason})"
        )
    if opinion.verdict is Verdict.VETO and not kind.move:
        raise Malformed(f"candidate {opinion.index}: {kind} cannot be vetoed")
    fault = mechanical.fault
    if fault is Fault.NONE and opinion.verdict is not Verdict.ACCEPT:
        fault = Fault.OPINION
    return Judgment(opinion.index, opinion.verdict, opinion.reason, fault)


def merge(
    candidates: Sequence[Candidate], mechanical: Sequence[Judgment], opinions: Sequence[Judgment]
) -> tuple[Judgment, ...]:
    """Every opinion checked against the rules; every candidate must have exactly one."""
    judged = sorted(opinion.index for opinion in opinions)
    wanted = [candidate.index for candidate in candidates]
    if judged != wanted:
        raise Malformed(f"judgments are wanted for candidates {wanted}, each once; found {judged}")
    by_index = {opinion.index: opinion for opinion in opinions}
    return tuple(
        take_stricter(rule, by_index[candidate.index], candidate.kind)
        for candidate, rule in zip(candidates, mechanical, strict=True)
    )


def judge_proposal(round_: Round) -> Overall:
    """The Critic's word on the proposal: moves alone count. Without a move there is nothing left to revise: the
    proposal stands or falls with hold. Where every move lies in a pool that does not pay, in or out is decided."""
    moves = [judgment for candidate, judgment in _pairs(round_) if candidate.kind.move]
    verdicts = {judgment.verdict for judgment in moves if judgment.fault is not Fault.UNPAID}
    if moves and not verdicts:
        return Overall.ACCEPT
    if not verdicts:
        return Overall.ACCEPT if _accepts(round_.judgments[0]) else Overall.REVISE
    if Verdict.ACCEPT in verdicts:
        return Overall.ACCEPT
    return Overall.VETO_ALL if verdicts == {Verdict.VETO} else Overall.REVISE


def choose_next_step(word: Overall, revisions: int, allowed: int) -> NextStep:
    """Where the critique goes after `revisions` revisions of `allowed`; a veto of everything is a failed round."""
    if word is Overall.ACCEPT:
        return NextStep.DECIDE
    return NextStep.REVISE if revisions < allowed else NextStep.DEADLOCK


def choose_winner(round_: Round) -> int:
    """The accepted candidate worth most until the horizon, ties to the lower index; where hold is accepted, it wins
    unless another is worth moving for. Close wins only where the pool does not pay; where nothing else was accepted,
    things stay as they are.

    With an unknown worth among them, close is left out of the comparison: not knowing what staying earns is no
    reason to leave. If then no worth is known: hold, else the first accepted move.
    """
    accepted = [candidate for candidate, judgment in _pairs(round_) if _accepts(judgment)]
    if not accepted:
        raise ValueError("nothing was accepted: this ballot goes to the arbiter")
    worths = {candidate.index: worth_of_capital(candidate) for candidate in accepted}
    unknown = None in worths.values()
    accepted = [
        candidate
        for candidate in accepted
        if candidate.kind is not CandidateKind.CLOSE or (not unknown and may_close(candidate, round_.candidates[0]))
    ]
    if not accepted:
        return 0
    hold = accepted[0] if accepted[0].kind is CandidateKind.HOLD else None
    if hold is not None:
        accepted = [hold, *(candidate for candidate in accepted[1:] if is_worth_moving(candidate, hold))]
        if len(accepted) > 1:
            accepted = accepted[1:]
    known = {candidate.index: worth for candidate in accepted if (worth := worths[candidate.index]) is not None}
    return max(known, key=lambda index: (known[index], -index)) if known else accepted[0].index


def critic_decides(round_: Round, profile: RiskProfile, *, doubts: Sequence[str] = ()) -> Decision:
    """The end of a debate whose proposal was accepted. `doubts` name data that is seeded or stale."""
    return _decide(choose_winner(round_), DecidedBy.CRITIC, round_, profile, doubts)


def arbiter_decides(
    round_: Round, profile: RiskProfile, *, doubts: Sequence[str] = (), chosen: int | None = None
) -> Decision:
    """The end of a deadlock: the Arbiter's own choice, or the scored one. All moves vetoed → hold, rejected."""
    if judge_proposal(round_) is Overall.VETO_ALL:
        return Decision(0, PlanVerdict.REJECT, DecidedBy.ARBITER, ("every move was vetoed in the last round",))
    index = arbitrate(round_, profile) if chosen is None else chosen
    _refuse_unless_open(index, round_)
    if (why := object_to_carry(index, round_)) is not None:
        raise Refused(f"Candidate {index}: {why}.")
    return _decide(index, DecidedBy.ARBITER, round_, profile, doubts)


def with_arbiter_verdict(decision: Decision, verdict: PlanVerdict) -> Decision:
    """The decision with the Arbiter's own verdict: harsher than the rules' is allowed, milder is `Malformed`."""
    if verdict.severity < decision.verdict.severity:
        raise Malformed(f"{verdict} is milder than the rules' {decision.verdict} ({'; '.join(decision.cautions)})")
    return replace(decision, verdict=verdict)


def owner_decides(
    index: int, round_: Round, profile: RiskProfile, *, doubts: Sequence[str] = (), anyway: bool = False
) -> Decision:
    """The owner's own choice: any candidate that was not vetoed, or that is wanted anyway."""
    if not anyway:
        _refuse_unless_open(index, round_)
    return _decide(index, DecidedBy.OWNER, round_, profile, doubts)


def object_to_carry(index: int, round_: Round) -> str | None:
    """Why fee cover forbids the desk this candidate, which the owner may choose all the same."""
    chosen = round_.candidates[index]
    if chosen.kind is CandidateKind.CLOSE and not may_close(chosen, round_.candidates[0]):
        return "close is only for a pool that does not pay, and with an edge over hold"
    return "its pool does not pay" if round_.judgments[index].fault is Fault.UNPAID else None


def arbitrate(round_: Round, profile: RiskProfile) -> int:
    """Most points, then the profile's axis, then the lower index. Close takes no part: it is accepted by rule and not
    on merit, and its points would turn every deadlock into an exit."""
    running = [
        (candidate, judgment)
        for candidate, judgment in _pairs(round_)
        if candidate.kind is not CandidateKind.CLOSE and judgment.fault is not Fault.UNPAID
    ]
    best, _ = max(running, key=lambda pair: (POINTS[pair[1].verdict], _axis(pair[0], profile), -pair[0].index))
    return best.index


def floor_margin(candidate: Candidate, limits: ProfileLimits) -> Fraction | None:
    """How far the thinner of both buffers clears its floor, as a share of the floor: −1, as for no buffer at all, where
    nobody could test the range; None where no range is at stake."""
    stress = candidate.stress
    if candidate.range is None:
        return None
    if stress is None:
        return Fraction(-1)
    return min(stress.x1.median_hours / limits.floor_1x_hours - 1, stress.x2.median_hours / limits.floor_2x_hours - 1)


def _rule(candidate: Candidate, profile: RiskProfile) -> tuple[Verdict, Fault, str]:
    limits, stress, carry = LIMITS[profile], candidate.stress, candidate.carry
    cover = describe_cover(candidate.cover, f"c{candidate.index}.")
    if candidate.range is None:
        return Verdict.ACCEPT, Fault.NONE, cover if does_not_pay(candidate) else "no range to leave"
    if not candidate.in_range:
        return Verdict.VETO, Fault.OUTSIDE, "the price starts outside the range"
    if candidate.deposit.liquidity == 0:
        return Verdict.VETO, Fault.EMPTY, "the tokens buy no liquidity in this range"
    if stress is None:
        return Verdict.VETO, Fault.UNKNOWN, "no price history to stress the range with"
    if candidate.kind.move and does_not_pay(candidate):
        return Verdict.REVISE, Fault.UNPAID, f"{cover}, at no width"
    if candidate.kind is CandidateKind.OPEN and not pays_to_open(candidate):
        return Verdict.REVISE, Fault.UNPAID, _find_why_shut(candidate)
    buffer_1x, buffer_2x = (f"{times}× buffer {{c{candidate.index}.buffer_{times}x}}" for times in (1, 2))
    if stress.x2.median_hours < limits.floor_2x_hours:
        return Verdict.VETO, Fault.THIN_2X, f"{buffer_2x} is under the {profile} floor of {{floor_2x}}"
    if stress.x1.median_hours < limits.floor_1x_hours:
        return Verdict.REVISE, Fault.THIN_1X, f"{buffer_1x} is under the {profile} floor of {{floor_1x}}"
    if carry.cost.gas_token1 and carry.fees24h_token1 == 0:
        return Verdict.REVISE, Fault.DEAR, f"gas is paid for no fees at all, the {profile} ceiling is {{gas_ceiling}}"
    ratio, paid = carry.gas_yield, f"gas is {{c{candidate.index}.gas_yield}} a day's fees"
    if ratio is not None and ratio > limits.gas_yield_ceiling:
        return Verdict.REVISE, Fault.DEAR, f"{paid}, above the {profile} ceiling of {{gas_ceiling}}"
    if carry.cost.gas_token1 == 0:
        dear = "no gas to pay"
    elif ratio is None:
        dear = "gas/yield unknown"
    else:
        dear = f"{paid} under {{gas_ceiling}}"
    return Verdict.ACCEPT, Fault.NONE, f"{buffer_1x} over {{floor_1x}}, {buffer_2x} over {{floor_2x}}, {dear}"


def describe_cover(cover: FeeCover | None, prefix: str) -> str:
    """Whether it pays to be in a pool at all, with slots; nothing where that is unknown."""
    if cover is None:
        return ""
    paid = "fees and the rewards of the settings" if cover.rewarded else "fees"
    judged = "it pays to be in it" if cover.low > 1 else "whether it pays is not certain"
    if cover.high < 1:
        judged = "it does not pay to be in it"
    return (
        f"this pool's {paid} paid {{{prefix}fees_over_lvr}} of what arbitrage took in {{{prefix}cover_days}} "
        f"({{{prefix}fees_over_lvr_low}} to {{{prefix}fees_over_lvr_high}}): {judged}"
    )


def _find_why_shut(candidate: Candidate) -> str:
    cover, said = candidate.cover, describe_cover(candidate.cover, f"c{candidate.index}.")
    if cover is None:
        return "whether the pool's fees pay for what arbitrage takes is unknown"
    if cover.days < OPEN_DAYS:
        return f"{said}, and {{open_days}} are wanted"
    return f"{said}; at the lower end a range here does not earn its cost and as much again"


AXES: Final[Mapping[RiskProfile, str]] = {
    RiskProfile.CONSERVATIVE: "the largest 2× buffer",
    RiskProfile.BALANCED: "the largest product of 2× buffer and gross fees on its capital",
    RiskProfile.AGGRESSIVE: "the highest gross fees on its capital",
}
"""By what each profile ranks candidates with the same verdict."""


def _axis(candidate: Candidate, profile: RiskProfile) -> tuple[bool, Fraction]:
    """What breaks a tie; a figure that is known comes before one that is not."""
    buffer = Fraction(candidate.stress.x2.median_hours) if candidate.stress else Fraction(0)
    if profile is RiskProfile.CONSERVATIVE:
        return True, buffer
    fees = candidate.carry.fees24h_token1
    if fees is None:
        # Nothing is known of what it earns: among its equals the longer buffer still counts.
        return False, buffer
    gross = max(fees, Fraction(0))
    if candidate.capital_token1:
        gross /= candidate.capital_token1
    return True, buffer * gross if profile is RiskProfile.BALANCED else gross


def _decide(index: int, decided_by: DecidedBy, round_: Round, profile: RiskProfile, doubts: Sequence[str]) -> Decision:
    chosen, judgment = round_.candidates[index], round_.judgments[index]
    cautions = list(doubts)
    margin = floor_margin(chosen, LIMITS[profile])
    if margin is not None and chosen.stress is None:
        cautions.append("the range could not be stressed without a price history")
    elif margin is not None and margin < 0:
        cautions.append("a buffer is under its floor")
    elif margin is not None and margin < CAUTION_MARGIN:
        cautions.append(f"a buffer is within {100 * CAUTION_MARGIN} % of its floor")
    if not _accepts(judgment):
        cautions.append(f"the candidate was not accepted: {judgment.reason}")
    if (dear := _find_cost_objection(chosen, round_.candidates[0], round_.judgments[0])) is not None:
        cautions.append(dear)
    in_play = (candidate for candidate, its in _pairs(round_) if its.verdict is not Verdict.VETO)
    if any(worth_token1(candidate) is None for candidate in in_play):
        cautions.append("what some candidates earn is unknown")
    verdict = PlanVerdict.APPROVE_WITH_CAUTION if cautions else PlanVerdict.APPROVE
    return Decision(index, verdict, decided_by, tuple(cautions))


_NOT_WORTH_IT: Final = ("not worth moving: hold is accepted", "not worth opening: opening nothing is accepted")


def _find_cost_objection(chosen: Candidate, hold: Candidate, held: Judgment) -> str | None:
    """What speaks against paying for this move, where its worth is known."""
    if chosen.kind is CandidateKind.HOLD or edge_over_hold(chosen, hold) is None:
        return None
    if _accepts(held) and not is_worth_moving(chosen, hold):
        return (
            f"{_NOT_WORTH_IT[chosen.kind is CandidateKind.OPEN]}, and the edge over it is too small or comes too late"
        )
    hours, stress = chosen.carry.breakeven_hours, chosen.stress
    if stress is None:
        return None
    if hours is None:
        return "what it costs is not earned back before the horizon"
    if hours > stress.x1.median_hours:
        own = f"c{chosen.index}"
        return f"it pays for itself after {{{own}.breakeven}}, beyond its 1× buffer of {{{own}.buffer_1x}}"
    return None


def _refuse_unless_open(index: int, round_: Round) -> None:
    if not 0 <= index < len(round_.candidates):
        raise Refused(f"There is no candidate {index}: the ballot has 0 to {len(round_.candidates) - 1}.")
    judgment = round_.judgments[index]
    if judgment.verdict is Verdict.VETO:
        raise Refused(f"Candidate {index} was vetoed ({judgment.reason}): choose another.")


def _accepts(judgment: Judgment) -> bool:
    return judgment.verdict is Verdict.ACCEPT


def _pairs(round_: Round) -> Iterable[tuple[Candidate, Judgment]]:
    return zip(round_.candidates, round_.judgments, strict=True)
