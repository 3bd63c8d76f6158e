"""Opening a position, argued in process: what a model may say about it, what it costs, and that every prompt fits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import pytest

from tests.wire.debating import (
    ROLES,
    Table,
    arbiter_says,
    critic_says,
    judgment,
    opening,
    outcome_of,
    scout_says,
    shape,
    strategist_says,
    surveyed,
)
from tests.wire.prompt_size import SMALL_MODEL_TOKENS
from zuno.llm.port import Failed, ModelRequest
from zuno.llm.prompts import estimate_tokens
from zuno.lp.agents.pool_inputs import build_all_pool_inputs, build_ballot, build_grids, extract_moves
from zuno.lp.agents.strategist import ProposalInputs, rule_moves
from zuno.lp.model.ballot import Candidate, RiskProfile
from zuno.lp.model.debate import Context
from zuno.lp.model.plan import StepKind
from zuno.lp.rules.ballot import POINTS, judge, judge_all
from zuno.lp.rules.limits import MOST_PROPOSED
from zuno.lp.rules.ranges import DETERMINISTIC_SHAPES, propose
from zuno.lp.rules.worth import worth_of_capital

Seat = Callable[..., Table]
WORDY = "This range looks a little too brave to me and I would rather see it somewhat wider than it is now. " * 3


@pytest.fixture(scope="module")
async def ether(tmp_path_factory: pytest.TempPathFactory) -> Context:
    return await surveyed(tmp_path_factory.mktemp("ether"), ("ETH", "5"))


@pytest.fixture(scope="module")
async def wrapped(tmp_path_factory: pytest.TempPathFactory) -> Context:
    return await surveyed(tmp_path_factory.mktemp("wrapped"), ("WETH", "5"))


def opened_in(candidates: tuple[Candidate, ...], context: Context, symbol: str) -> list[Candidate]:
    return [one for one in candidates if one.range and context.scenes[one.pool_index].pool.token0.symbol == symbol]


@pytest.mark.soak
async def test_wrapping_is_part_of_the_cost(seat: Seat, ether: Context, wrapped: Context) -> None:
    """Ether for a WETH pool has to be wrapped first: a transaction, and its gas."""
    brought = (await seat(ether).debate()).debate.rounds[0].candidates
    in_weth = opened_in(brought, ether, "WETH")
    in_eth = opened_in(brought, ether, "ETH")
    assert in_weth
    assert in_eth
    assert all(one.carry.cost.steps[0] is StepKind.WRAP for one in in_weth)
    assert all(StepKind.WRAP not in one.carry.cost.steps for one in in_eth)
    ready_made = (await seat(wrapped).debate()).debate.rounds[0].candidates
    assert all(StepKind.WRAP not in one.carry.cost.steps for one in ready_made)


async def test_the_rules_propose_five_ranges_in_all_and_keep_the_best(
    seat: Seat, ether: Context, wrapped: Context
) -> None:
    for context in (ether, wrapped):
        assert len(context.scenes) > 1
        ready = await seat(context).debate()
        for round_ in ready.debate.rounds:
            assert len([one for one in round_.candidates if one.kind.move]) <= MOST_PROPOSED
        proposed = [one for one in ready.debate.rounds[0].candidates if one.kind.move]
        assert len(proposed) == MOST_PROPOSED
        pools = build_all_pool_inputs(context)
        shapes = [replace(one, pool_index=at) for at in range(len(pools)) for one in DETERMINISTIC_SHAPES]
        every = build_ballot(context, pools, propose(build_grids(context, pools), shapes, frozenset()))

        def rank(candidate: Candidate, profile: RiskProfile = context.profile) -> tuple[int, Fraction]:
            return POINTS[judge(candidate, profile).verdict], worth_of_capital(candidate) or Fraction(-1)

        left_out = [one for one in every if one.kind.move and one.range not in [kept.range for kept in proposed]]
        assert left_out
        assert max(map(rank, left_out)) <= min(map(rank, proposed))


@pytest.mark.parametrize("profile", RiskProfile)
def test_the_rules_propose_two_to_five_ranges_for_every_profile_and_number_of_pools(
    ether: Context, wrapped: Context, profile: RiskProfile
) -> None:
    for context in (ether, wrapped):
        for count in range(1, len(context.scenes) + 1):
            some = context.model_copy(update={"profile": profile, "scenes": context.scenes[:count]})
            pools = build_all_pool_inputs(some)
            moves = rule_moves(ProposalInputs(some, pools, build_grids(some, pools), frozenset(), ()))
            assert 2 <= len(moves) <= MOST_PROPOSED
            assert len({move.key for move in moves}) == len(moves)


@pytest.mark.slow
async def test_a_model_chooses_pool_and_shape_and_nothing_else(seat: Seat, ether: Context) -> None:
    table = seat(ether, strategist=lambda request: strategist_says(opening(0, 150), opening(1, 200)))
    ready = await table.debate()
    first = ready.debate.rounds[0].candidates
    assert [one.pool_index for one in first if one.range] == [0, 1]
    assert build_ballot(ether, build_all_pool_inputs(ether), extract_moves(first)) == first
    assert ready.debate.rounds[0].mechanical == judge_all(first, ether.profile)
    assert {one.speaker for one in ready.debate.spoke if one.role == "strategist"} == {"model"}


@pytest.mark.soak(every=3)
@pytest.mark.slow
@pytest.mark.parametrize(
    "said",
    [
        strategist_says(opening(99, 150), opening(1, 200)),
        strategist_says(opening(-1, 150), opening(1, 200)),
        strategist_says(shape(150), shape(200)),
        strategist_says({**opening(0, 150), "exposureBias": "short"}, opening(1, 200)),
        strategist_says({**opening(0, 150), "tickLower": -200000}, opening(1, 200)),
        strategist_says(opening(0, 150)),
    ],
)
async def test_what_a_model_may_not_say_is_said_by_the_rules(seat: Seat, ether: Context, said: str) -> None:
    table = seat(ether, strategist=lambda request: said)
    ready = await table.debate()
    assert {one.speaker for one in ready.debate.spoke if one.role == "strategist"} == {"fallback"}
    assert outcome_of(ready) == outcome_of(await seat(ether).debate())
    assert "98765" not in "".join(thought.text for thought in ready.debate.transcript)


@pytest.mark.soak(every=4)
@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
async def test_silence_in_any_chair_is_filled_by_the_rules(seat: Seat, ether: Context, role: str) -> None:
    spoken = await seat(ether, **{role: lambda request: Failed("timeout", "no answer")}).debate(max_rounds=0)
    assert outcome_of(spoken) == outcome_of(await seat(ether).debate(max_rounds=0))


def five(request: ModelRequest) -> str:
    return strategist_says(
        *(opening(at, 110 + 17 * at + 40 * request.round, 20 * request.round, WORDY[:280]) for at in range(5))
    )


def wordy(request: ModelRequest) -> str:
    ballot = request.turns[0].text.split("rules' verdicts:\n")[1].split("\n\n")[0].splitlines()[1:]
    rules = [line.split(" → ")[1].split(":")[0] for line in ballot]
    order = ["accept", "revise", "veto"]
    return critic_says(
        *(
            judgment(at, said if at == 0 else max("revise", said, key=order.index), WORDY[:280])
            for at, said in enumerate(rules)
        )
    )


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize("alike", [True, False])
async def test_every_prompt_of_a_long_argument_about_five_pools_fits(seat: Seat, ether: Context, alike: bool) -> None:
    scenes = [
        scene.model_copy(
            update={"returns_nano": tuple(value * (10 + (not alike) * at) // 10 for value in scene.returns_nano)}
        )
        for at, scene in enumerate((*ether.scenes, *ether.scenes)[:5])
    ]
    many = ether.model_copy(update={"scenes": tuple(scenes)})
    refuses = Failed("refused", "it would not")
    table = seat(many, scout=lambda request: refuses, strategist=five, critic=wordy, arbiter=lambda request: refuses)
    ready = await table.debate(max_rounds=3)
    assert len(ready.debate.rounds) == 4
    assert max(len(round_.candidates) for round_ in ready.debate.rounds) == 6
    for role in ROLES:
        for request in table.models[role].asked:
            told = estimate_tokens(request.system) + estimate_tokens(request.turns[0].text)
            assert told <= SMALL_MODEL_TOKENS, (role, request.round, told)


@pytest.mark.slow
async def test_all_four_may_argue_about_opening(seat: Seat, ether: Context) -> None:
    """Every chair held by a sound model, to the Arbiter and back."""
    table = seat(
        ether,
        scout=lambda request: scout_says(),
        strategist=lambda request: strategist_says(opening(1, 150), opening(2, 200)),
        critic=wordy,
        arbiter=lambda request: arbiter_says(1),
    )
    ready = await table.debate(max_rounds=0)
    assert ready.decision.index == 1
    assert {one.speaker for one in ready.debate.spoke} == {"model"}
    assert (await table.journal.verify()).ok
