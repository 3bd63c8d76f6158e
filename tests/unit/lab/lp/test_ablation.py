"""Arms over frozen episodes: what is compared, what counts as a flip, and what is not run."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from tests.wire.asking import Desk
from tests.wire.debating import observed
from tests.wire.fakes.model import ScriptedModel
from tests.wire.pool_minutes import no_repairs
from tests.wire.prompt_size import SMALL_MODEL_TOKENS, count_tokens
from zuno.adapters.store.report_files import FolderOfReports
from zuno.kernel.errors import UsageError
from zuno.kernel.units import Seconds
from zuno.lab.cutoffs import find_cutoff, judge_models
from zuno.lab.lp.ablation import AblationQuestion, build_view, name_regime, plan_moments, read_horizon
from zuno.lab.lp.arms import STAY, Arm, ArmAction
from zuno.lab.lp.backtest import Schedule
from zuno.lab.lp.desk_arms import (
    AbsentCritic,
    PlaceboCritic,
    choose_best_score,
    choose_by_single_agent,
    choose_by_vote,
    propose_by_rules,
)
from zuno.lab.lp.episodes import EpisodeView, mix_random
from zuno.lab.lp.question import LpQuestion
from zuno.lab.replies import ReplyBook
from zuno.llm.prompts import Prompts
from zuno.lp.model.ballot import RiskProfile, Verdict
from zuno.lp.model.debate import Context, Debate, Round
from zuno.lp.model.market import HOUR
from zuno.lp.rules.ballot import judge_all
from zuno.present.text import to_text

BASE = LpQuestion("data", (Arm.DEBATE,), 10_000, 4, Fraction(1, 20), Decimal("0.1"), RiskProfile.BALANCED)
QUESTION = AblationQuestion(BASE, 24)
REPAIRS = no_repairs(1)
SCHEDULE = Schedule(Seconds(1_658_793_600), Seconds(1_658_793_600 + 360 * HOUR), Seconds(4 * HOUR))
DOLLAR = 1_000_000


def episode(
    place: int, gain: int, *, change: float = 0.0, models: bool = False, unanswered: dict[str, int] | None = None
) -> EpisodeView:
    """The debate moves at every other moment and makes `gain` dollars more than staying there."""
    moved = place % 2 == 0
    outcomes = {"stay": 0, "centre": -DOLLAR, "hold": 0, "passive": 0, "reset": 0, "fee-cover": 0, "score": -2 * DOLLAR}
    outcomes |= {"no-critic": gain * DOLLAR * moved, "placebo-critic": 0, "debate": gain * DOLLAR * moved}
    acts = dict.fromkeys(outcomes, "stay") | {"debate": "1…2" if moved else "stay"}
    acts["no-critic"] = acts["debate"]
    if models:
        outcomes |= {"single": 0, "vote": 0, "aa": outcomes["debate"] + DOLLAR}
        acts |= {"single": "stay", "vote": "stay", "aa": acts["debate"]}
    return EpisodeView(
        at=SCHEDULE.start + (place + 1) * 4 * HOUR,
        price_change=change,
        acts=acts,
        outcomes={arm: net + 7 * DOLLAR for arm, net in outcomes.items()},
        carry=outcomes,
        tokens={"debate": 100} if models else {},
        model_usd={"debate": 0.5} if models else {},
        models=("openai:gpt-4o-mini",) if models else (),
        unanswered=unanswered or {},
    )


def test_gains_flips_and_corrections_of_a_debate_that_pays() -> None:
    view = build_view(QUESTION, "id", REPAIRS, SCHEDULE, [episode(place, 3) for place in range(84)], 84)
    arms = {arm.arm: arm for arm in view.arms}
    assert set(arms) == set(Arm) - {Arm.SINGLE, Arm.VOTE, Arm.AA}
    assert [row.arm for row in view.not_run] == ["single", "vote", "aa"]
    assert (view.reference, view.noise_floor_usd, view.models) == ("debate (rules)", 0.0, ())
    assert arms["debate"].gain_usd is None
    reset = arms["reset"]
    assert (reset.gain_usd, reset.better, reset.worse, reset.verdict) == (1.5, 42, 0, "gain")
    assert (arms["no-critic"].gain_usd, arms["no-critic"].better, arms["no-critic"].worse) == (0.0, 0, 0)
    assert arms["no-critic"].verdict == "not shown"
    assert arms["score"].gain_usd == 3.5
    assert (arms["random"].moved, arms["random"].net_usd, arms["random"].better) == (42, 6.5, None)
    for arm in arms.values():
        if arm.p is not None and arm.p_corrected is not None:
            assert arm.p_corrected >= arm.p


def test_chance_closes_as_often_as_the_debate_and_centres_as_often() -> None:
    acts = ("close", "close", "1…2", "stay")
    episodes = [
        episode(place, 0).model_copy(
            update={
                "acts": {"debate": acts[place]},
                "carry": {"stay": 4 * place, "centre": -80 * (place + 1), "hold": 40 * place},
            }
        )
        for place in range(4)
    ]
    assert mix_random(episodes, Arm.DEBATE, lambda each: each.carry) == [
        20 * place - 20 * (place + 1) + place for place in range(4)
    ]


def test_regimes_partition_the_episodes() -> None:
    changes = [0.05, -0.05, 0.0, 0.019]
    view = build_view(
        QUESTION, "id", REPAIRS, SCHEDULE, [episode(place, 3, change=changes[place % 4]) for place in range(84)], 84
    )
    regimes = view.arms[0].regimes
    assert {regime.regime: regime.episodes for regime in regimes} == {"bull": 21, "bear": 21, "sideways": 42}
    assert name_regime(-0.02) == "bear"


def test_what_a_model_knew_never_makes_the_headline_and_its_costs_are_paid() -> None:
    view = build_view(QUESTION, "id", REPAIRS, SCHEDULE, [episode(place, 3, models=True) for place in range(84)], 84)
    assert [(model.model, model.cutoff, model.in_sample) for model in view.models] == [
        ("openai:gpt-4o-mini", "2023-10", True)
    ]
    assert "provable" in view.headline
    assert view.not_run == ()
    arms = {arm.arm: arm for arm in view.arms}
    assert arms["reset"].gain_usd == 1.0
    assert arms["debate"].model_cost_usd == 42.0
    assert view.noise_floor_usd == 1.5


def test_questions_that_nobody_answered_make_no_headline() -> None:
    few = [episode(place, 3, models=True, unanswered={"debate": 2} if place == 4 else None) for place in range(84)]
    view = build_view(QUESTION, "id", REPAIRS, SCHEDULE, few, 84)
    assert "2 questions" in view.headline
    assert {arm.arm: arm.unanswered for arm in view.arms if arm.unanswered} == {"debate": 2}


def test_without_a_fresh_reply_the_noise_of_models_is_not_measured() -> None:
    spoke = [episode(place, 3, models=True) for place in range(84)]
    for arm in ("acts", "outcomes", "carry"):
        for each in spoke:
            del getattr(each, arm)["aa"]
    view = build_view(QUESTION, "id", REPAIRS, SCHEDULE, spoke, 84)
    assert view.noise_floor_usd is None
    assert [row.arm for row in view.not_run] == ["aa"]
    assert view.noise_floor_said == view.not_run[0].why
    assert "measured" in to_text(view.to_document(), 120)


def test_a_stopped_ablation_says_so_and_nothing_of_nothing() -> None:
    view = build_view(QUESTION, "id", REPAIRS, SCHEDULE, [], 84)
    assert (view.stopped, view.arms) == (True, ())
    few = build_view(QUESTION, "id", REPAIRS, SCHEDULE, [episode(place, 3) for place in range(5)], 84)
    assert {arm.verdict for arm in few.arms} == {"", "not shown"}


def test_moments_end_within_the_record() -> None:
    moments = plan_moments(SCHEDULE, 24)
    assert (len(moments), moments[-1] + 24 * HOUR) == (84, SCHEDULE.end)
    for horizon in (3, 169):
        with pytest.raises(UsageError):
            read_horizon(BASE, horizon)


def test_of_an_unknown_model_everything_is_in_sample() -> None:
    assert judge_models(frozenset({"local:tiny"}), 2_000_000_000)[0].in_sample
    assert not judge_models(frozenset({"gpt-4o"}), 2_000_000_000)[0].in_sample
    assert find_cutoff("openrouter:meta/llama-3.1-8b") == "2023-12"


# -- arms without an argument


@pytest.fixture(scope="module")
async def context(tmp_path_factory: pytest.TempPathFactory) -> Context:
    return await observed(tmp_path_factory.mktemp("sim"))


def choice(index: int) -> str:
    return json.dumps({"chosenIndex": index, "reasoning": "It earns more than it costs."})


def scripted(*lines: str) -> ScriptedModel:
    left = list(lines)
    return ScriptedModel(lambda request: left.pop(0))


@pytest.mark.slow
async def test_one_agent_chooses_and_a_vote_goes_on_until_its_tokens_are_used(context: Context, tmp_path: Path) -> None:
    candidates = propose_by_rules(context)
    open_ones = [
        judgment.index for judgment in judge_all(candidates, context.profile) if judgment.verdict is not Verdict.VETO
    ]
    chosen = open_ones[-1]
    desk = Desk(tmp_path)
    alone = scripted(choice(chosen))
    model_context = replace(desk.model_context(alone), prompts=Prompts("zuno.lab.lp"))
    act = await choose_by_single_agent(context, model_context)
    expected = candidates[chosen]
    assert act == (ArmAction(close=True) if expected.kind == "close" else ArmAction(expected.range))
    assert act.used.tokens > 0
    voters = scripted(choice(0), choice(chosen), choice(chosen))
    model_context = replace(desk.model_context(voters), prompts=Prompts("zuno.lab.lp"))
    voted = await choose_by_vote(context, model_context, 3 * act.used.tokens)
    assert voted == act
    assert voted.used.tokens >= 3 * act.used.tokens


async def test_a_reply_that_is_kept_is_not_asked_for_again(context: Context, tmp_path: Path) -> None:
    desk, files = Desk(tmp_path), FolderOfReports(tmp_path / "lab")
    book = ReplyBook(files, "replies")
    model_context = replace(
        desk.model_context(scripted(choice(0))),
        prompts=Prompts("zuno.lab.lp"),
        recall=book.recall,
        record=book.record,
    )
    first = await choose_by_single_agent(context, model_context)
    again = ReplyBook(files, "replies")
    without_key = replace(model_context, registry=again, recall=again.recall, record=again.record)
    kept = await choose_by_single_agent(context, without_key)
    assert (kept, kept.used) == (first, first.used)
    assert not ReplyBook(files, "replies-aa").models_for("strategist", 0).models


def test_the_best_score_needs_no_model(context: Context) -> None:
    assert choose_best_score(context) in {STAY, ArmAction(close=True)} | {
        ArmAction(candidate.range) for candidate in propose_by_rules(context)
    }


def test_an_absent_critic_passes_all_and_a_placebo_deals_the_same_verdicts_anew(context: Context) -> None:
    candidates = propose_by_rules(context)
    mechanical = judge_all(candidates, context.profile)
    debate = Debate(flow="rebalance", context="0" * 64, rounds=(Round(candidates=candidates),))

    async def recall(digest: str) -> Context:
        return context

    absent = AbsentCritic(recall, None).judge(debate, mechanical)  # type: ignore[arg-type]
    assert {judgment.verdict for judgment in absent} == {Verdict.ACCEPT}
    placebo = PlaceboCritic(recall, None)  # type: ignore[arg-type]
    moves = [candidate.index for candidate in candidates if candidate.kind.move]
    for number in range(20):
        held = debate.model_copy(update={"context": f"{number:064x}"})
        judgments = placebo.judge(held, mechanical)
        assert [judgment.index for judgment in judgments] == list(range(len(candidates)))
        dealt = sorted(judgments[index].verdict for index in moves)
        assert dealt == sorted(mechanical[index].verdict for index in moves)
        assert all(judgments[index] == mechanical[index] for index in range(len(candidates)) if index not in moves)


def test_the_question_fits_a_small_model(context: Context) -> None:
    from zuno.lab.lp.desk_arms import _question

    prompt = Prompts("zuno.lab.lp").render("single", _question(context, propose_by_rules(context), 0).variables())
    assert count_tokens(prompt) <= SMALL_MODEL_TOKENS
