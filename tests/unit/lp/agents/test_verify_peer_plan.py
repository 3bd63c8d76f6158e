"""What a peer elsewhere can lie about, and that the owner's own look finds it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import pair_in_turn
from tests.wire.debating import Table, observed, surveyed
from zuno.amm.model import Block
from zuno.kernel.errors import Malformed, Refused, Unavailable
from zuno.kernel.units import HexId, Liquidity, Seconds
from zuno.lp.agents.conclude import conclude
from zuno.lp.agents.pool_inputs import build_own_moves
from zuno.lp.agents.verify_peer_plan import (
    NEWEST_BLOCKS,
    NODES_APART,
    OLDEST_BLOCK,
    check_age,
    check_asked,
    check_ready,
    check_seen,
)
from zuno.lp.model.ballot import DecidedBy, Judgment, PlanVerdict, RiskProfile, Verdict
from zuno.lp.model.debate import Context, Debate, FlowCreateStart, FlowStart, OwnRange, PlanReady

Seat = Callable[..., Table]


def asked(context: Context, **changes: Any) -> FlowStart:
    position = context.scenes[0].position
    assert position is not None
    start = FlowStart(
        chain=context.chain, position_id=position.id, profile=context.profile, max_rounds=context.max_rounds
    )
    return start.model_copy(update=changes)


@pytest.mark.soak(every=4)
@pytest.mark.slow
@pytest.mark.parametrize(("rounds", "world"), pair_in_turn([2, 0], ["calm", "rough", "wild", "drifted"]))
async def test_an_honest_plan_passes(seat: Seat, worlds: dict[str, Context], world: str, rounds: int) -> None:
    for profile in RiskProfile:
        context = worlds[world].model_copy(update={"profile": profile, "max_rounds": rounds})
        ready = await seat(context).debate(profile, rounds)
        check_ready(context, ready, asked(context))


async def honest(seat: Seat, context: Context) -> PlanReady:
    return await seat(context).debate(context.profile, context.max_rounds)


def with_last(ready: PlanReady, **changes: Any) -> Debate:
    last = ready.debate.rounds[-1].model_copy(update=changes)
    return ready.debate.model_copy(update={"rounds": (*ready.debate.rounds[:-1], last)})


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [{"chain": "base"}, {"position_id": 2}, {"profile": RiskProfile.AGGRESSIVE}, {"max_rounds": 5}],
    ids=lambda change: next(iter(change)),
)
async def test_an_answer_to_another_question(seat: Seat, calm: Context, changes: dict[str, Any]) -> None:
    ready = await honest(seat, calm)
    with pytest.raises(Malformed):
        check_ready(calm, ready, asked(calm, **changes))


OWN = OwnRange(unit="price", lower=Decimal(2800), upper=Decimal(3400))


@pytest.mark.slow
@pytest.mark.parametrize("profile", RiskProfile)
async def test_the_owners_range_is_on_every_ballot_unchanged(seat: Seat, calm: Context, profile: RiskProfile) -> None:
    context = calm.model_copy(update={"own_range": OWN, "profile": profile})
    ready = await seat(context).debate(profile, context.max_rounds)
    check_ready(context, ready, asked(context, own_range=OWN))
    (own,) = build_own_moves(context)
    for round_ in ready.debate.rounds:
        assert [candidate.range for candidate in round_.candidates].count(own.range) == 1
    with pytest.raises(Malformed):
        check_asked(context, asked(context))
    with pytest.raises(Malformed):
        check_asked(calm, asked(context, own_range=OWN))
    last = ready.debate.rounds[-1]
    without = with_last(
        ready,
        candidates=last.candidates[:-1],
        mechanical=last.mechanical[:-1],
        judgments=last.judgments[:-1],
        suggestions=last.suggestions[:-1],
    )
    with pytest.raises(Malformed, match="ballot"):
        check_ready(context, ready.model_copy(update={"debate": without}), asked(context, own_range=OWN))


def test_a_context_without_an_own_range_keeps_its_bytes(calm: Context) -> None:
    assert "ownRange" not in calm.model_dump(by_alias=True)
    assert "ownRange" not in asked(calm).model_dump(by_alias=True)


@pytest.mark.slow
async def test_a_strategist_s_figures_that_do_not_recompute(seat: Seat, calm: Context) -> None:
    ready = await honest(seat, calm)
    last = ready.debate.rounds[-1]
    better = replace(last.candidates[2], deposit=replace(last.candidates[2].deposit, liquidity=10**20))
    forged = with_last(ready, candidates=(*last.candidates[:2], better, *last.candidates[3:]))
    with pytest.raises(Malformed, match="round 0"):
        check_ready(calm, ready.model_copy(update={"debate": forged}), asked(calm))


async def test_a_critic_milder_than_the_rules(seat: Seat, calm: Context) -> None:
    """Every verdict an accept, and the vetoed candidate chosen."""
    ready = await honest(seat, calm)
    last = ready.debate.rounds[-1]
    vetoed = next(one.index for one in last.judgments if one.verdict is Verdict.VETO)
    mild = tuple(Judgment(one.index, Verdict.ACCEPT, "fine") for one in last.judgments)
    for changes in ({"judgments": mild}, {"judgments": mild, "mechanical": mild}):
        debate = with_last(ready, **changes)
        decision = replace(ready.decision, index=vetoed, verdict=PlanVerdict.APPROVE)
        with pytest.raises(Malformed, match=r"verdicts|looser"):
            check_ready(calm, ready.model_copy(update={"debate": debate, "decision": decision}), asked(calm))


@pytest.mark.slow
async def test_a_choice_the_rules_would_not_make(seat: Seat, calm: Context) -> None:
    ready = await honest(seat, calm)
    for index in range(len(ready.debate.rounds[-1].candidates)):
        if index != ready.decision.index:
            other = conclude(calm, ready.debate, replace(ready.decision, index=index))
            with pytest.raises((Malformed, Refused)):
                check_ready(calm, other, asked(calm))


@pytest.mark.slow
async def test_a_milder_word_than_the_data_allows(seat: Seat, calm: Context) -> None:
    """Seeded figures cap the verdict; whoever says plain approve lies."""
    ready = await honest(seat, calm)
    assert ready.decision.verdict is PlanVerdict.APPROVE_WITH_CAUTION
    milder = replace(ready.decision, verdict=PlanVerdict.APPROVE, cautions=())
    with pytest.raises(Malformed, match=f"{PlanVerdict.APPROVE} .*{PlanVerdict.APPROVE_WITH_CAUTION}"):
        check_ready(calm, ready.model_copy(update={"decision": milder}), asked(calm))
    surer = ready.model_copy(update={"confidence": 0.99})
    with pytest.raises(Malformed, match="follow"):
        check_ready(calm, surer, asked(calm))


@pytest.mark.slow
async def test_an_arbiter_who_was_never_asked(seat: Seat, calm: Context) -> None:
    ready = await honest(seat, calm)
    usurped = replace(ready.decision, decided_by=DecidedBy.ARBITER)
    with pytest.raises(Malformed, match="decide"):
        check_ready(calm, ready.model_copy(update={"decision": usurped}), asked(calm))


@pytest.mark.slow
async def test_an_arbiter_who_takes_what_was_vetoed(seat: Seat, wild: Context) -> None:
    context = wild.model_copy(update={"max_rounds": 0})
    ready = await honest(seat, context)
    assert ready.decision.decided_by is DecidedBy.ARBITER
    for candidate in ready.debate.rounds[-1].candidates:
        if candidate.kind.move:
            taken = replace(ready.decision, index=candidate.index, verdict=PlanVerdict.APPROVE)
            with pytest.raises((Malformed, Refused)):
                check_ready(context, ready.model_copy(update={"decision": taken}), asked(context))


@pytest.mark.slow
async def test_a_debate_cut_short_or_judged_by_nobody(seat: Seat, rough: Context) -> None:
    ready = await honest(seat, rough)
    assert len(ready.debate.rounds) > 1
    cut = ready.debate.model_copy(update={"rounds": ready.debate.rounds[:1]})
    with pytest.raises(Malformed):
        check_ready(rough, ready.model_copy(update={"debate": cut}), asked(rough))
    bare = ready.debate.rounds[-1].model_copy(update={"judgments": (), "mechanical": ()})
    unjudged = ready.debate.model_copy(update={"rounds": (*ready.debate.rounds[:-1], bare)})
    with pytest.raises(Malformed, match="judged"):
        check_ready(rough, ready.model_copy(update={"debate": unjudged}), asked(rough))


@pytest.mark.slow
async def test_a_context_about_another_pool_than_the_position_s(seat: Seat, calm: Context) -> None:
    ready = await honest(seat, calm)
    (scene,) = calm.scenes
    other = replace(scene.pool, id="0x" + "ee" * 32)  # type: ignore[arg-type]
    with pytest.raises(Malformed, match="pool"):
        check_ready(calm.model_copy(update={"scenes": (scene.model_copy(update={"pool": other}),)}), ready, asked(calm))


@pytest.mark.slow
async def test_a_scout_who_brings_more_than_the_owner(seat: Seat, tmp_path: Path) -> None:
    """The capital of a create is what will be spent: it is the wish's, to the last unit."""
    context = await surveyed(tmp_path, ("USDC", "1000"))
    assert context.wish is not None
    start = FlowCreateStart(
        chain=context.chain, wish=context.wish, profile=context.profile, max_rounds=context.max_rounds
    )
    ready = await honest(seat, context)
    check_ready(context, ready, start)
    first, *others = context.scenes
    richer = first.model_copy(update={"capital1": first.capital1 * 1000, "capital0": first.capital0 * 1000})
    with pytest.raises(Malformed, match="owner"):
        check_ready(context.model_copy(update={"scenes": (richer, *others)}), ready, start)
    picky = context.wish.model_copy(update={"fee": 100})
    with pytest.raises(Malformed, match="owner"):
        check_ready(context.model_copy(update={"wish": picky}), ready, start.model_copy(update={"wish": picky}))
    many = context.model_copy(update={"scenes": context.scenes * 6})
    with pytest.raises(Malformed, match=r"\b5\b"):
        check_asked(many, start)
    held = (await observed(tmp_path)).scenes[0]
    assert held.position is not None
    with pytest.raises(Malformed, match=f"position {held.position.id}"):
        check_asked(context.model_copy(update={"scenes": (held,)}), start)


@pytest.mark.parametrize(("chain", "seeded"), [("sim", False), ("base", True), ("devnet", True)])
def test_where_prices_come_from_a_seed_is_no_word_of_a_peer(calm: Context, chain: str, seeded: bool) -> None:
    """Whoever hides the seed lifts the cap it puts on the verdict."""
    honest = calm.model_copy(update={"chain": chain, "seeded": not seeded})
    check_asked(honest, asked(honest))
    with pytest.raises(Malformed, match=f"{chain}.*seeded"):
        check_asked(honest.model_copy(update={"seeded": seeded}), asked(honest))


async def test_a_scout_is_held_against_the_chain(calm: Context) -> None:
    (scene,) = calm.scenes
    assert scene.position is not None
    pools, positions = {scene.pool.id: scene.pool}, {scene.position.id: scene.position}
    check_seen(calm, pools, positions, calm.chain_id)
    with pytest.raises(Malformed, match=rf"\b{calm.chain_id}\b.*\b1\b"):
        check_seen(calm, pools, positions, 1)
    with pytest.raises(Malformed, match="pool"):
        check_seen(calm, {}, positions, calm.chain_id)
    fuller = replace(scene.position, liquidity=Liquidity(scene.position.liquidity + 1))
    with pytest.raises(Malformed, match="position 1"):
        check_seen(calm, pools, {fuller.id: fuller}, calm.chain_id)
    moved = replace(scene.pool, tick=scene.pool.tick + 1)  # type: ignore[arg-type]
    with pytest.raises(Malformed, match=f"pool {scene.pool.id}"):
        check_seen(calm, {moved.id: moved}, positions, calm.chain_id)


def block(number: int, at: int) -> Block:
    return Block(number, HexId("0x" + "ab" * 32), Seconds(at))


def judged(block: Block, head: Block, waited: int) -> str:
    try:
        check_age(block, head, Seconds(waited))
    except Malformed:
        return "lie"
    except Unavailable:
        return "later"
    return "good"


@pytest.mark.parametrize(
    ("blocks", "seconds", "waited", "said"),
    [
        (0, 0, 0, "good"),
        (-75, -900, 0, "good"),
        (-75, -901, 0, "lie"),
        (-5, -86_400, 0, "good"),
        (-6, -86_400, 0, "lie"),
        (-80, -960, 60, "good"),
        (-80, -961, 60, "lie"),
        (1, 12, 0, "later"),
        (5, 60, 0, "later"),
        (5, 61, 0, "lie"),
        (5, 61, 9_000, "lie"),
        (1, 0, 0, "lie"),
        (0, 1, 0, "lie"),
        (-1, 1, 0, "lie"),
        (1, -1, 0, "lie"),
    ],
)
def test_how_old_a_block_may_be(blocks: int, seconds: int, waited: int, said: str) -> None:
    """A letter lives 15 minutes, clocks may be 60 s apart."""
    assert judged(block(1_000 + blocks, 1_700_000_000 + seconds), block(1_000, 1_700_000_000), waited) == said


@pytest.mark.slow
@given(st.integers(0, 10_000), st.integers(-20_000, 20_000), st.integers(0, 20_000))
def test_an_age_counts_by_the_chain_s_own_time(number: int, seconds: int, waited: int) -> None:
    """The same ages on a chain of long ago: no wall clock is looked at."""
    numbered = number if seconds < 0 else 10_000 + seconds
    said = [judged(block(numbered, at + seconds), block(10_000, at), waited) for at in (30_000, 1_700_000_000)]
    assert said[0] == said[1]
    within = seconds <= 0 and (-waited - OLDEST_BLOCK <= seconds or 10_000 - number <= NEWEST_BLOCKS)
    assert said[0] == ("good" if within else "later" if 0 < seconds <= NODES_APART else "lie")


def test_a_block_that_is_not_believed_is_told_with_the_bound_and_the_number() -> None:
    head = block(1_000, 1_700_000_000)
    with pytest.raises(Malformed, match=r"900.*1200.*60.*960"):
        check_age(block(900, head.timestamp - 1_200), head, Seconds(60))
    with pytest.raises(Malformed, match=r"1010.*120.*1000.*60"):
        check_age(block(1_010, head.timestamp + 120), head, Seconds(60))
    with pytest.raises(Unavailable, match=r"1001.*\b12 s.*1000"):
        check_age(block(1_001, head.timestamp + 12), head, Seconds(60))
