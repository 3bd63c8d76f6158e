"""The ballot: every rule at its threshold, who may be stricter, who wins, and what is not known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zuno.amm.model import Range
from zuno.kernel.errors import Malformed, Refused
from zuno.kernel.units import Tick
from zuno.lp.model.ballot import (
    Candidate,
    CandidateKind,
    Carry,
    Cost,
    DecidedBy,
    Decision,
    Deposit,
    Fault,
    Judgment,
    NextStep,
    Overall,
    PlanVerdict,
    RiskProfile,
    Stress,
    StressPoint,
    Verdict,
)
from zuno.lp.model.cover import FeeCover
from zuno.lp.model.debate import Round
from zuno.lp.rules.ballot import (
    arbiter_decides,
    arbitrate,
    choose_next_step,
    choose_winner,
    critic_decides,
    floor_margin,
    judge,
    judge_all,
    judge_proposal,
    merge,
    owner_decides,
    take_stricter,
    with_arbiter_verdict,
)
from zuno.lp.rules.limits import LIMITS
from zuno.lp.rules.worth import worth_of_capital

ACCEPT, REVISE, VETO = Verdict.ACCEPT, Verdict.REVISE, Verdict.VETO
CONSERVATIVE, BALANCED, AGGRESSIVE = RiskProfile
KIND = CandidateKind
BAND = Range(Tick(-600), Tick(600))


def point(multiple: int, hours: int, share: Fraction = Fraction(1, 2)) -> StressPoint:
    return StressPoint(multiple, hours, 0, Fraction(0), share, Fraction(1), censored=hours == 336)


def candidate(
    index: int = 2,
    kind: CandidateKind = KIND.WIDEN,
    *,
    x1: int = 100,
    x2: int = 30,
    fees: int | None = 100,
    lvr: int | None = 10,
    gas: int | None = 10,
    inside: bool = True,
    share: Fraction = Fraction(1, 2),
    capital: int = 1000,
    liquidity: int = 10**6,
    even: int | None = 1,
    cover: FeeCover | None = None,
) -> Candidate:
    """A candidate by its figures, of 24 h in range; without a range where the kind has none."""

    def known(value: int | None, hours: int = 1) -> Fraction | None:
        return None if value is None else Fraction(value, hours)

    cost = Cost((), 0, None, known(gas), Fraction(0), Fraction(0), "")
    if kind is KIND.CLOSE:
        carry = Carry(*(Fraction(0),) * 2, cost, None, (), *(Fraction(0),) * 2)
        return Candidate(index, kind, None, False, Deposit(0, 0, 0, 1, 1), None, carry, Fraction(capital), 0, cover)
    stress = Stress(point(1, x1, share), point(2, x2), point(3, 1), 336)
    carry = Carry(known(fees), known(lvr), cost, known(even), (), known(fees, 24), known(lvr, 24))
    put_in = Deposit(liquidity, 1, 1, 0, 0)
    return Candidate(index, kind, BAND, inside, put_in, stress, carry, Fraction(capital), 0, cover)


def covered(ratio: float, days: int = 14, error: float = 0.05) -> FeeCover:
    return FeeCover(ratio, ratio * math.exp(-1.35 * error), ratio * math.exp(1.35 * error), days, error)


POOR = covered(0.8)
"""0.75 to 0.86: it does not pay."""


def hold(*, fees: int | None = 100, inside: bool = True, x1: int = 100, x2: int = 30) -> Candidate:
    return candidate(0, KIND.HOLD, gas=0, fees=fees, inside=inside, x1=x1, x2=x2)


def nothing() -> Candidate:
    """The hold of a create debate."""
    return replace(candidate(0, KIND.CLOSE, gas=0), kind=KIND.HOLD)


def close(gas: int | None = 5, cover: FeeCover | None = POOR) -> Candidate:
    return candidate(1, KIND.CLOSE, gas=gas, cover=cover)


def argued(ballot: Sequence[Candidate], judgments: Sequence[Judgment]) -> Round:
    return Round(candidates=tuple(ballot), mechanical=tuple(judgments), judgments=tuple(judgments))


def judged(*verdicts: Verdict) -> tuple[Judgment, ...]:
    return tuple(Judgment(index, verdict, "because") for index, verdict in enumerate(verdicts))


# --- the mechanical verdict


def test_the_table_of_profiles() -> None:
    floors = {profile.value: (limits.floor_1x_hours, limits.floor_2x_hours) for profile, limits in LIMITS.items()}
    assert {profile: (*map(float, hours),) for profile, hours in floors.items()} == {
        "conservative": (36, 6),
        "balanced": (24, 4),
        "aggressive": (14, 2.5),
    }
    assert {profile.value: float(limits.gas_yield_ceiling) for profile, limits in LIMITS.items()} == {
        "conservative": 1.2,
        "balanced": 1.6,
        "aggressive": 2.4,
    }


@pytest.mark.parametrize("profile", list(RiskProfile))
def test_revise_is_reachable(profile: RiskProfile) -> None:
    """Exit times shrink with the square of the multiple: a 2× floor of a quarter would veto all that 1× revises."""
    assert LIMITS[profile].floor_2x_hours < LIMITS[profile].floor_1x_hours / 4


@pytest.mark.parametrize(
    ("profile", "x1", "x2", "verdict"),
    [
        (CONSERVATIVE, 36, 6, ACCEPT),
        (CONSERVATIVE, 35, 6, REVISE),
        (CONSERVATIVE, 36, 5, VETO),
        (BALANCED, 24, 4, ACCEPT),
        (BALANCED, 23, 4, REVISE),
        (BALANCED, 24, 3, VETO),
        (BALANCED, 23, 3, VETO),
        (AGGRESSIVE, 14, 3, ACCEPT),
        (AGGRESSIVE, 13, 3, REVISE),
        (AGGRESSIVE, 14, 2, VETO),
    ],
)
def test_each_floor(profile: RiskProfile, x1: int, x2: int, verdict: Verdict) -> None:
    assert judge(candidate(x1=x1, x2=x2), profile).verdict is verdict


@pytest.mark.parametrize(
    ("profile", "gas", "verdict"),
    [
        (CONSERVATIVE, 120, ACCEPT),
        (CONSERVATIVE, 121, REVISE),
        (BALANCED, 160, ACCEPT),
        (BALANCED, 161, REVISE),
        (AGGRESSIVE, 240, ACCEPT),
        (AGGRESSIVE, 241, REVISE),
    ],
)
def test_each_ceiling(profile: RiskProfile, gas: int, verdict: Verdict) -> None:
    assert judge(candidate(fees=100, gas=gas), profile).verdict is verdict


@pytest.mark.parametrize(
    ("given", "fault", "reason"),
    [
        (candidate(inside=False), Fault.OUTSIDE, "the price starts outside the range"),
        (candidate(x2=3), Fault.THIN_2X, "2× buffer {c2.buffer_2x} is under the balanced floor of {floor_2x}"),
        (candidate(x1=20), Fault.THIN_1X, "1× buffer {c2.buffer_1x} is under the balanced floor of {floor_1x}"),
        (
            candidate(gas=200),
            Fault.DEAR,
            "gas is {c2.gas_yield} a day's fees, above the balanced ceiling of {gas_ceiling}",
        ),
        (candidate(fees=0), Fault.DEAR, "gas is paid for no fees at all, the balanced ceiling is {gas_ceiling}"),
        (candidate(liquidity=0), Fault.EMPTY, "the tokens buy no liquidity in this range"),
        (replace(candidate(), stress=None), Fault.UNKNOWN, "no price history to stress the range with"),
        (
            candidate(),
            Fault.NONE,
            "1× buffer {c2.buffer_1x} over {floor_1x}, 2× buffer {c2.buffer_2x} over {floor_2x}, "
            "gas is {c2.gas_yield} a day's fees under {gas_ceiling}",
        ),
        (
            candidate(x1=336, fees=None),
            Fault.NONE,
            "1× buffer {c2.buffer_1x} over {floor_1x}, 2× buffer {c2.buffer_2x} over {floor_2x}, gas/yield unknown",
        ),
        (
            hold(),
            Fault.NONE,
            "1× buffer {c0.buffer_1x} over {floor_1x}, 2× buffer {c0.buffer_2x} over {floor_2x}, no gas to pay",
        ),
        (close(cover=None), Fault.NONE, "no range to leave"),
    ],
)
def test_the_reason_names_the_floor_and_the_figure(given: Candidate, fault: Fault, reason: str) -> None:
    judgment = judge(given, BALANCED)
    assert (judgment.fault, judgment.reason, judgment.index) == (fault, reason, given.index)


hours = st.integers(0, 336)
gases = st.none() | st.integers(0, 500)
feeses = st.none() | st.integers(0, 500)


@given(st.sampled_from(list(RiskProfile)), hours, hours, feeses, gases, st.booleans(), st.booleans())
def test_hold_and_close_are_never_vetoed(
    profile: RiskProfile, x1: int, x2: int, fees: int | None, gas: int | None, inside: bool, blind: bool
) -> None:
    kept = hold(fees=fees, inside=inside, x1=x1, x2=x2)
    kept = replace(kept, stress=None) if blind else kept
    assert judge(kept, profile).verdict is not VETO
    assert inside or judge(kept, profile).verdict is REVISE
    assert judge(close(gas), profile).verdict is ACCEPT
    assert judge(nothing(), profile).verdict is ACCEPT


@given(hours, hours, feeses, gases, st.booleans())
def test_a_bolder_profile_is_never_stricter(x1: int, x2: int, fees: int | None, gas: int | None, inside: bool) -> None:
    one = candidate(x1=x1, x2=x2, fees=fees, gas=gas, inside=inside)
    severities = [judge(one, profile).verdict.severity for profile in RiskProfile]
    assert severities == sorted(severities, reverse=True)


@given(hours, hours, hours, hours, st.integers(0, 500), st.integers(0, 500), st.integers(0, 500))
def test_a_better_candidate_is_never_judged_worse(
    x1: int, x2: int, more1: int, more2: int, fees: int, more_fees: int, gas: int
) -> None:
    worse = judge(candidate(x1=x1, x2=x2, fees=fees, gas=gas), BALANCED)
    better = judge(candidate(x1=x1 + more1, x2=x2 + more2, fees=fees + more_fees, gas=gas), BALANCED)
    assert better.verdict.severity <= worse.verdict.severity


# --- who may be stricter

verdicts = st.sampled_from(list(Verdict))


@given(verdicts, verdicts, st.sampled_from(list(CandidateKind)))
def test_an_opinion_may_only_be_stricter(rule: Verdict, said: Verdict, kind: CandidateKind) -> None:
    mechanical, opinion = Judgment(3, rule, "rule", Fault.NONE), Judgment(3, said, "said")
    if said.severity < rule.severity or (said is VETO and not kind.move):
        with pytest.raises(Malformed, match="candidate 3"):
            take_stricter(mechanical, opinion, kind)
    else:
        merged = take_stricter(mechanical, opinion, kind)
        assert (merged.verdict, merged.reason) == (said, "said")
        assert merged.fault is (Fault.NONE if said is ACCEPT else Fault.OPINION)


def test_a_fault_the_rules_found_is_kept() -> None:
    thin = Judgment(2, REVISE, "thin", Fault.THIN_1X)
    assert take_stricter(thin, Judgment(2, VETO, "worse"), KIND.SHIFT).fault is Fault.THIN_1X


def test_an_opinion_stands_for_its_own_candidate_alone() -> None:
    rule = Judgment(2, ACCEPT, "rule")
    assert take_stricter(rule, Judgment(2, VETO, "said"), KIND.SHIFT).index == 2
    for index in (1, 3):
        with pytest.raises(Malformed):
            take_stricter(rule, Judgment(index, VETO, "said"), KIND.SHIFT)


def test_opinions_are_held_against_a_rule_for_each_candidate() -> None:
    ballot = (hold(), close(), candidate())
    opinions = [Judgment(index, ACCEPT, "fine") for index in range(3)]
    with pytest.raises(ValueError, match="shorter"):
        merge(ballot, judge_all(ballot[:2], BALANCED), opinions)


@pytest.mark.parametrize("indices", [[0, 1], [0, 1, 1], [0, 1, 3], [0, 1, 2, 2], []])
def test_every_candidate_is_judged_exactly_once(indices: list[int]) -> None:
    ballot = (hold(), close(), candidate())
    opinions = [Judgment(index, ACCEPT, "fine") for index in indices]
    with pytest.raises(Malformed, match=r"\[0, 1, 2\].*\[[0-9, ]*\]$"):
        merge(ballot, judge_all(ballot, BALANCED), opinions)


def test_merging_puts_opinions_in_order() -> None:
    ballot = (hold(), close(), candidate())
    opinions = [Judgment(2, VETO, "c"), Judgment(0, REVISE, "a"), Judgment(1, ACCEPT, "b")]
    merged = merge(ballot, judge_all(ballot, BALANCED), opinions)
    assert [judgment.reason for judgment in merged] == ["a", "b", "c"]


# --- the whole proposal


@pytest.mark.parametrize(
    ("verdicts", "word"),
    [
        ((REVISE, ACCEPT, ACCEPT, VETO), Overall.ACCEPT),
        ((ACCEPT, ACCEPT, REVISE, VETO), Overall.REVISE),
        ((ACCEPT, ACCEPT, VETO, VETO), Overall.VETO_ALL),
        ((ACCEPT, ACCEPT, REVISE, REVISE), Overall.REVISE),
    ],
)
def test_moves_alone_count(verdicts: tuple[Verdict, ...], word: Overall) -> None:
    assert judge_proposal(argued((hold(), close(), candidate(2), candidate(3)), judged(*verdicts))) is word


def test_without_a_move_hold_decides() -> None:
    assert judge_proposal(argued((hold(), close()), judged(ACCEPT, ACCEPT))) is Overall.ACCEPT
    assert judge_proposal(argued((hold(), close()), judged(REVISE, ACCEPT))) is Overall.REVISE


@pytest.mark.parametrize("word", [Overall.REVISE, Overall.VETO_ALL])
def test_a_failed_round_goes_back_while_rounds_remain(word: Overall) -> None:
    assert [choose_next_step(word, made, 2) for made in range(3)] == [
        NextStep.REVISE,
        NextStep.REVISE,
        NextStep.DEADLOCK,
    ]
    assert choose_next_step(word, 0, 0) is NextStep.DEADLOCK
    assert choose_next_step(Overall.ACCEPT, 2, 2) is NextStep.DECIDE


# --- the winner


def test_worth_is_what_hours_in_range_pay_less_cost_per_capital() -> None:
    assert worth_of_capital(candidate(fees=100, lvr=28, gas=4, share=Fraction(1, 4))) == Fraction(3 * 84 - 4, 1000)
    assert worth_of_capital(close(5)) == Fraction(-5, 1000)
    assert worth_of_capital(nothing()) == 0
    assert worth_of_capital(candidate(capital=0, fees=24, lvr=0, gas=0)) == 168
    assert worth_of_capital(candidate(fees=None, share=Fraction(0), gas=3)) == Fraction(-3, 1000), "never in range"
    for unknown in (replace(candidate(), stress=None), candidate(fees=None), candidate(lvr=None), candidate(gas=None)):
        assert worth_of_capital(unknown) is None


def test_time_in_range_counts_once() -> None:
    """What a day earns holds the share of the day in range already; an hour in range does not."""
    wide = candidate(2, fees=60, lvr=0, share=Fraction(9, 10))
    tight = candidate(3, fees=100, lvr=0, share=Fraction(5, 10))
    # 60 × 0.9 against 100 × 0.5 and 109 × 0.5. Counted twice, wide would win both times: 60 × 0.81 against 109 × 0.25.
    assert choose_winner(argued((hold(fees=1), close(), wide, tight), judged(REVISE, ACCEPT, ACCEPT, ACCEPT))) == 2
    tight = candidate(3, fees=109, lvr=0, share=Fraction(5, 10))
    assert choose_winner(argued((hold(fees=1), close(), wide, tight), judged(REVISE, ACCEPT, ACCEPT, ACCEPT))) == 3


def test_a_move_must_be_worth_it_where_hold_is_accepted() -> None:
    def wins(**figures: int | None) -> bool:
        ballot = (hold(), close(), candidate(2, **figures))  # type: ignore[arg-type]
        return choose_winner(argued(ballot, judged(ACCEPT, ACCEPT, ACCEPT))) == 2

    # 168 of 336 h in range: a fee of 100 a day more is 7 × 100 more. Hold is worth 7 × 90.
    assert wins(fees=104, gas=14)
    assert not wins(fees=103, gas=14), "the edge is half its cost"
    assert wins(fees=102, gas=0, capital=14_000)
    assert not wins(fees=101, gas=0, capital=14_000), "under a thousandth of the capital"
    assert wins(fees=200, even=49, x1=100)
    assert not wins(fees=200, even=50, x1=100), "earned back no earlier than half the buffer"
    assert not wins(fees=200, even=None)


def test_where_hold_is_not_accepted_the_best_move_wins_with_a_caution() -> None:
    for even, x1, cautioned in ((100, 100, False), (101, 100, True), (None, 100, True)):
        ballot = (hold(), close(), candidate(2, fees=101, even=even, x1=x1))
        decision = critic_decides(argued(ballot, judged(REVISE, ACCEPT, ACCEPT)), BALANCED)
        assert (decision.index, bool(decision.cautions)) == (2, cautioned)


def test_a_move_that_the_owner_takes_though_it_is_not_worth_it_is_cautioned() -> None:
    ballot = (hold(), close(), candidate(2, fees=101))
    assert owner_decides(2, argued(ballot, judged(ACCEPT, ACCEPT, ACCEPT)), BALANCED).cautions
    assert owner_decides(1, argued(ballot, judged(ACCEPT, ACCEPT, ACCEPT)), BALANCED).cautions
    assert not owner_decides(0, argued(ballot, judged(ACCEPT, ACCEPT, ACCEPT)), BALANCED).cautions


def test_the_highest_worth_wins_and_ties_go_to_the_lower_index() -> None:
    ballot = (hold(), close(), candidate(2, gas=50), candidate(3, fees=120), candidate(4, fees=120))
    assert choose_winner(argued(ballot, judged(ACCEPT, ACCEPT, ACCEPT, ACCEPT, ACCEPT))) == 3
    assert choose_winner(argued(ballot, judged(ACCEPT, ACCEPT, ACCEPT, REVISE, ACCEPT))) == 4
    assert choose_winner(argued(ballot, judged(ACCEPT, ACCEPT, ACCEPT, REVISE, VETO))) == 0


def test_close_wins_when_everything_else_loses_more_than_it_costs() -> None:
    ballot = (hold(fees=0), close(5), candidate(2, fees=5))
    assert choose_winner(argued(ballot, judged(ACCEPT, ACCEPT, ACCEPT))) == 1


@pytest.mark.parametrize(
    ("cover", "leaves"),
    [
        (None, False),
        (covered(0.8), True),
        (covered(0.8, days=7), True),
        (covered(0.8, days=6), False),
        (covered(0.95), False),
        (covered(1.2), False),
    ],
)
@pytest.mark.parametrize("held", [ACCEPT, REVISE])
def test_close_wins_only_where_the_pool_does_not_pay(cover: FeeCover | None, leaves: bool, held: Verdict) -> None:
    ballot = (hold(fees=0), close(5, cover))
    assert choose_winner(argued(ballot, judged(held, ACCEPT))) == int(leaves)
    assert choose_winner(argued((hold(fees=9), close(5, cover)), judged(held, ACCEPT))) == 0, "the edge is too small"
    if not leaves:
        with pytest.raises(Refused):
            arbiter_decides(argued(ballot, judged(held, ACCEPT)), BALANCED, chosen=1)
    assert owner_decides(1, argued(ballot, judged(held, ACCEPT)), BALANCED).index == 1


@pytest.mark.parametrize("cover", [None, covered(0.8), covered(1.0), covered(1.2), covered(0.8, days=6)])
def test_no_move_is_accepted_in_a_pool_that_does_not_pay(cover: FeeCover | None) -> None:
    poor = cover == covered(0.8)
    for kind in (KIND.WIDEN, KIND.TIGHTEN, KIND.SHIFT):
        found = judge(candidate(2, kind, cover=cover), BALANCED)
        assert (found.verdict, found.fault) == ((REVISE, Fault.UNPAID) if poor else (ACCEPT, Fault.NONE))
    stayed = judge(candidate(0, KIND.HOLD, cover=cover), BALANCED)
    assert (stayed.verdict, stayed.fault) == (ACCEPT, Fault.NONE)


@pytest.mark.parametrize(
    ("cover", "fees", "opens"),
    [
        (None, 100, False),
        (covered(1.5, days=13), 100, False),
        (covered(1.5), 100, True),
        (covered(0.8), 100, False),
        # 7 days in range: at the lower end (100·0.88 − 85)·7 − 10 is 11, (100·0.88 − 86)·7 − 10 is 4.
        (covered(1.1, error=math.log(1 / 0.88) / 1.35), 100, True),
        (covered(1.1, error=math.log(1 / 0.87) / 1.35), 100, False),
    ],
)
def test_a_position_is_opened_only_where_the_lower_end_pays_its_cost_twice(
    cover: FeeCover | None, fees: int, opens: bool
) -> None:
    one = candidate(1, KIND.OPEN, fees=fees, lvr=85, gas=10, cover=cover)
    found = judge(one, BALANCED)
    assert (found.verdict, found.fault) == ((ACCEPT, Fault.NONE) if opens else (REVISE, Fault.UNPAID))
    ballot, judgments = (nothing(), one), (Judgment(0, ACCEPT, ""), found)
    assert judge_proposal(argued(ballot, judgments)) is Overall.ACCEPT, "no revision can mend it"
    assert critic_decides(argued(ballot, judgments), BALANCED).index == int(opens)
    assert arbitrate(argued(ballot, judgments), AGGRESSIVE) == int(opens)


def test_in_or_out_is_decided_at_once_and_out_of_range_hold_stays() -> None:
    ballot = (hold(inside=False, x2=0), close(5, POOR), candidate(2, cover=POOR))
    judgments = judge_all(ballot, BALANCED)
    assert [judgment.verdict for judgment in judgments] == [REVISE, ACCEPT, REVISE]
    assert judge_proposal(argued(ballot, judgments)) is Overall.ACCEPT
    assert critic_decides(argued(ballot, judgments), BALANCED).index == 0
    losing = (hold(inside=False, x2=0, fees=0), *ballot[1:])
    assert critic_decides(argued(losing, judge_all(losing, BALANCED)), BALANCED).index == 1


def test_nothing_is_opened_when_nothing_pays() -> None:
    ballot = (nothing(), candidate(1, KIND.OPEN, fees=11, lvr=10, gas=10), candidate(2, KIND.OPEN, fees=5))
    assert choose_winner(argued(ballot, judged(ACCEPT, ACCEPT, ACCEPT))) == 0


def test_pools_are_compared_per_unit_of_capital() -> None:
    dollars = candidate(1, KIND.OPEN, fees=100, lvr=0, gas=0, capital=1000)
    ether = candidate(2, KIND.OPEN, fees=1, lvr=0, gas=0, capital=5)
    assert choose_winner(argued((nothing(), dollars, ether), judged(ACCEPT, ACCEPT, ACCEPT))) == 2


def test_not_knowing_the_fees_is_no_reason_to_leave_or_to_move() -> None:
    ballot = (hold(fees=None), close(), candidate(2, fees=None))
    assert choose_winner(argued(ballot, judged(ACCEPT, ACCEPT, ACCEPT))) == 0
    assert choose_winner(argued(ballot, judged(REVISE, ACCEPT, ACCEPT))) == 2
    assert choose_winner(argued(ballot[:2], judged(REVISE, ACCEPT))) == 0


def test_not_knowing_the_gas_leaves_hold() -> None:
    ballot = (hold(fees=1), close(None), candidate(2, gas=None))
    assert choose_winner(argued(ballot, judged(ACCEPT, ACCEPT, ACCEPT))) == 0


def test_an_unknown_pool_does_not_win_over_a_known_one() -> None:
    unknown, known = candidate(1, KIND.OPEN, fees=None), candidate(2, KIND.OPEN)
    assert choose_winner(argued((nothing(), unknown, known), judged(ACCEPT, ACCEPT, ACCEPT))) == 2
    assert choose_winner(argued((nothing(), unknown), judged(ACCEPT, ACCEPT))) == 0


def test_a_ballot_with_nothing_accepted_has_no_winner() -> None:
    with pytest.raises(ValueError, match="arbiter"):
        choose_winner(argued((hold(), close()), judged(REVISE, REVISE)))
    with pytest.raises(ValueError, match=r"place|order"):
        choose_winner(argued((close(), hold()), judged(ACCEPT, ACCEPT)))
    with pytest.raises(ValueError, match=r"place|order"):
        choose_winner(argued((hold(), close(), candidate(3)), judged(ACCEPT, ACCEPT, ACCEPT)))
    with pytest.raises(ValueError, match=r"place|order"):
        choose_winner(argued((hold(), close()), (Judgment(0, ACCEPT, ""), Judgment(2, ACCEPT, ""))))


known_scores = st.tuples(st.integers(0, 100), st.integers(0, 100), st.integers(0, 100))


@given(st.lists(known_scores, min_size=1, max_size=4), st.lists(verdicts, min_size=4, max_size=4), known_scores)
def test_the_winner_is_the_best_of_those_worth_moving_for_else_hold(
    figures: list[tuple[int, int, int]], drawn: list[Verdict], kept: tuple[int, int, int]
) -> None:
    moves = [candidate(index, fees=fees, lvr=lvr, gas=gas) for index, (fees, lvr, gas) in enumerate(figures, start=2)]
    ballot = (candidate(0, KIND.HOLD, fees=kept[0], lvr=kept[1], gas=0), close(kept[2]), *moves)
    judgments = judged(ACCEPT, ACCEPT, *drawn[: len(moves)])
    best = choose_winner(argued(ballot, judgments))
    held = 7 * (kept[0] - kept[1])
    gains = {1: (-kept[2] - held, kept[2])} | {
        index: (7 * (fees - lvr) - gas - held, gas)
        for index, (fees, lvr, gas) in enumerate(figures, start=2)
        if drawn[index - 2] is ACCEPT
    }
    worth_it = {index: gain for index, (gain, cost) in gains.items() if gain >= max(cost, 1)}
    assert best == (min(index for index, gain in worth_it.items() if gain == max(worth_it.values())) if worth_it else 0)


# --- the last word


def test_a_clean_win_is_approved() -> None:
    ballot = (hold(fees=20), close(), candidate())
    decision = critic_decides(argued(ballot, judge_all(ballot, BALANCED)), BALANCED)
    assert decision == Decision(2, PlanVerdict.APPROVE, DecidedBy.CRITIC)


@pytest.mark.parametrize(
    ("x1", "x2", "cautious"),
    [(27, 30, False), (26, 30, True), (100, 4, True), (100, 5, False)],
)
def test_a_margin_under_a_tenth_asks_for_caution(x1: int, x2: int, cautious: bool) -> None:
    ballot = (hold(fees=1), close(), candidate(x1=x1, x2=x2))
    decision = critic_decides(argued(ballot, judge_all(ballot, BALANCED)), BALANCED)
    assert decision.index == 2
    assert (decision.verdict is PlanVerdict.APPROVE_WITH_CAUTION) is cautious


def test_doubtful_data_asks_for_caution() -> None:
    ballot = (hold(fees=1), close(), candidate())
    decision = critic_decides(argued(ballot, judge_all(ballot, BALANCED)), BALANCED, doubts=["prices are seeded"])
    assert (decision.verdict, decision.cautions) == (PlanVerdict.APPROVE_WITH_CAUTION, ("prices are seeded",))


def test_unknown_earnings_ask_for_caution_unless_only_the_vetoed_are_unknown() -> None:
    ballot = (hold(), close(), candidate(2), candidate(3, fees=None))
    cautious = critic_decides(argued(ballot, judged(ACCEPT, ACCEPT, ACCEPT, ACCEPT)), BALANCED)
    assert ["unknown" in caution for caution in cautious.cautions] == [True]
    assert critic_decides(argued(ballot, judged(ACCEPT, ACCEPT, ACCEPT, VETO)), BALANCED).cautions == ()


def test_all_moves_vetoed_is_hold_and_reject() -> None:
    ballot = (hold(), close(), candidate(2), candidate(3))
    for chosen in (None, 1, 2):
        decision = arbiter_decides(argued(ballot, judged(ACCEPT, ACCEPT, VETO, VETO)), BALANCED, chosen=chosen)
        assert (decision.index, decision.verdict, decision.decided_by) == (0, PlanVerdict.REJECT, DecidedBy.ARBITER)


def test_an_arbiters_choice_that_was_not_accepted_asks_for_caution() -> None:
    ballot = (hold(inside=False, x2=0, fees=0), close(), candidate(2))
    decision = arbiter_decides(argued(ballot, judged(REVISE, ACCEPT, REVISE)), BALANCED)
    assert (decision.index, decision.verdict) == (2, PlanVerdict.APPROVE_WITH_CAUTION)
    assert [caution.endswith(": because") for caution in decision.cautions] == [True]
    assert (
        arbiter_decides(argued(ballot, judged(REVISE, ACCEPT, REVISE)), BALANCED, chosen=1).verdict
        is PlanVerdict.APPROVE
    )


def test_points_come_first() -> None:
    ballot = (hold(x2=9), close(), candidate(2, x2=90), candidate(3, x2=99))
    assert arbitrate(argued(ballot, judged(ACCEPT, ACCEPT, REVISE, VETO)), CONSERVATIVE) == 0
    assert arbitrate(argued(ballot, judged(REVISE, ACCEPT, REVISE, VETO)), CONSERVATIVE) == 2


def test_each_profile_breaks_ties_on_its_own_axis() -> None:
    ballot = (
        hold(x2=1, fees=1),
        close(),
        candidate(2, x2=40, fees=10),  # longest
        candidate(3, x2=20, fees=30),  # best balance
        candidate(4, x2=5, fees=90),  # best yield
        candidate(5, x2=40, fees=10),  # a twin of the first
    )
    judgments = judged(REVISE, ACCEPT, REVISE, REVISE, REVISE, REVISE)
    assert [arbitrate(argued(ballot, judgments), profile) for profile in RiskProfile] == [2, 3, 4]


def test_unknown_fees_stand_behind_known_ones_and_the_longer_buffer_first() -> None:
    ballot = (nothing(), *(candidate(index, KIND.OPEN, fees=None, x2=10 * index) for index in (1, 2)))
    judgments = judged(REVISE, REVISE, REVISE)
    assert arbitrate(argued(ballot, judgments), CONSERVATIVE) == 2
    one_known = (*ballot, candidate(3, KIND.OPEN, fees=5, x2=1))
    assert arbitrate(argued(one_known, judged(VETO, REVISE, REVISE, REVISE)), BALANCED) == 3
    assert arbitrate(argued(ballot, judged(VETO, REVISE, REVISE)), AGGRESSIVE) == 2


def test_a_deadlock_is_no_exit() -> None:
    ballot = (hold(inside=False, x2=0, fees=5), close(), candidate(2))
    for profile in RiskProfile:
        assert arbitrate(argued(ballot, judged(REVISE, ACCEPT, REVISE)), profile) == 2


def test_the_owner_may_take_anything_that_was_not_vetoed() -> None:
    ballot = (hold(), close(), candidate(2), candidate(3), candidate(4, fees=120))
    judgments = judged(ACCEPT, ACCEPT, VETO, REVISE, ACCEPT)
    assert owner_decides(4, argued(ballot, judgments), BALANCED) == Decision(4, PlanVerdict.APPROVE, DecidedBy.OWNER)
    assert owner_decides(3, argued(ballot, judgments), BALANCED).verdict is PlanVerdict.APPROVE_WITH_CAUTION
    assert [owner_decides(index, argued(ballot, judgments), BALANCED).index for index in (0, 1)] == [0, 1]
    assert arbiter_decides(argued(ballot, judgments), BALANCED, chosen=0).index == 0
    with pytest.raises(Refused, match=r"vetoed \(because\)"):
        owner_decides(2, argued(ballot, judgments), BALANCED)
    for index in (-1, 5):
        with pytest.raises(Refused, match="0 to 4"):
            owner_decides(index, argued(ballot, judgments), BALANCED)
        with pytest.raises(Refused, match="0 to 4"):
            arbiter_decides(argued(ballot, judgments), BALANCED, chosen=index)


@given(st.sampled_from(list(PlanVerdict)), st.sampled_from(list(PlanVerdict)))
def test_the_arbiters_own_verdict_may_only_be_harsher(rule: PlanVerdict, said: PlanVerdict) -> None:
    order = ["approve", "approve_with_caution", "reject"]
    decision = Decision(2, rule, DecidedBy.ARBITER)
    if order.index(said) < order.index(rule):
        with pytest.raises(Malformed, match="milder"):
            with_arbiter_verdict(decision, said)
    else:
        assert with_arbiter_verdict(decision, said).verdict is said


def test_the_margin_is_that_of_the_thinner_buffer() -> None:
    limits = LIMITS[BALANCED]
    assert floor_margin(candidate(x1=36, x2=8), limits) == Fraction(1, 2)
    assert floor_margin(candidate(x1=48, x2=2), limits) == Fraction(-1, 2)
    assert floor_margin(replace(candidate(x1=48, x2=8), stress=None), limits) == -1
    assert floor_margin(replace(candidate(x1=48, x2=8), range=None), limits) is None


@pytest.mark.parametrize(
    ("x1", "x2", "said"),
    [
        (23, 9, "a buffer is under its floor"),
        (24, 9, "a buffer is within 10 % of its floor"),
        (26, 9, "a buffer is within 10 % of its floor"),
        (27, 9, None),
    ],
)
def test_what_is_said_of_a_thin_buffer(x1: int, x2: int, said: str | None) -> None:
    ballot = (hold(), close(), candidate(2, x1=x1, x2=x2))
    judgments = judge_all(ballot, BALANCED)
    cautions = owner_decides(2, argued(ballot, judgments), BALANCED).cautions
    assert [one for one in cautions if "floor" in one and "accepted" not in one] == ([said] if said else [])
