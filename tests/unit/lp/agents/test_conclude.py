"""How sure a plan may be, end to end: less is never more."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from tests.wire.debating import Table
from zuno.lp.model.ballot import PlanVerdict
from zuno.lp.model.debate import Context, PlanReady
from zuno.lp.service.plan_record import chosen_by_owner

pytestmark = pytest.mark.slow

Seat = Callable[..., Table]


def with_scenes(context: Context, **update: Any) -> Context:
    return context.model_copy(update={"scenes": tuple(scene.model_copy(update=update) for scene in context.scenes)})


def with_sources(context: Context, **update: Any) -> Context:
    return context.model_copy(update={"sources": tuple(note.model_copy(update=update) for note in context.sources)})


def chosen(context: Context, ready: PlanReady, index: int) -> PlanReady:
    return chosen_by_owner(context, ready, index)


async def test_losing_the_price_history_never_raises_confidence(seat: Seat, calm: Context) -> None:
    blind = with_scenes(calm, returns_nano=())
    seen, unseen = await seat(calm).debate(), await seat(blind).debate()
    for index in range(2):  # hold and close are on every ballot
        known, unknown = chosen(calm, seen, index), chosen(blind, unseen, index)
        assert unknown.confidence <= known.confidence
    held = chosen(blind, unseen, 0)
    assert held.confidence == 0
    assert any("history" in one for one in held.decision.cautions)


async def test_overriding_a_deadlock_makes_nobody_surer(seat: Seat, rough: Context) -> None:
    deadlocked = await seat(rough).debate(max_rounds=0)
    context = rough.model_copy(update={"max_rounds": 0})
    assert deadlocked.decision.decided_by == "arbiter"
    same = chosen(context, deadlocked, deadlocked.decision.index)
    assert same.decision.decided_by == "owner"
    assert same.confidence == deadlocked.confidence


async def test_seeded_stale_and_old_facts_are_each_worth_less(seat: Seat, calm: Context) -> None:
    market = with_sources(calm, source="a market", age_seconds=0, stale=False).model_copy(update={"seeded": False})
    ready = await seat(market).debate()
    best = ready.confidence
    assert ready.decision.cautions == ()
    assert ready.decision.verdict is PlanVerdict.APPROVE
    for worse, caution in (
        (with_sources(market, source="seed"), None),
        (with_sources(market, source=None), None),
        (with_sources(market, age_seconds=60), None),
        (with_sources(market, stale=True), "is stale"),
        (market.model_copy(update={"seeded": True}), "seeded series"),
    ):
        said = await seat(worse).debate()
        if caution is None:
            assert said.confidence < best
        else:
            assert any(caution in one for one in said.decision.cautions)
            assert said.decision.verdict is PlanVerdict.APPROVE_WITH_CAUTION


async def test_the_oldest_fact_counts(seat: Seat, calm: Context) -> None:
    """One old feed among fresh ones is as bad as all of them being old."""
    fresh = with_sources(calm, source="a market", age_seconds=0, limit_seconds=60, stale=False)
    first, *others = fresh.sources
    one_old = fresh.model_copy(update={"sources": (first.model_copy(update={"age_seconds": 60}), *others)})
    all_old = with_sources(fresh, age_seconds=60)
    said = [(await seat(context).debate()).confidence for context in (fresh, one_old, all_old)]
    assert said[0] > said[1] == said[2]


@pytest.mark.parametrize(("gap", "acts"), [("1/100", True), ("101/10000", False), ("3/10", False), (None, True)])
async def test_nobody_acts_on_a_price_the_reference_does_not_bear_out(
    seat: Seat, calm: Context, gap: str | None, acts: bool
) -> None:
    off = with_scenes(calm, reference_gap=None if gap is None else Fraction(gap))
    ready = await seat(off).debate()
    assert ready.debate.rounds[-1].candidates[ready.decision.index].kind.move
    assert (ready.decision.verdict is not PlanVerdict.REJECT) is acts
    assert any("reference" in one for one in ready.decision.cautions) is not acts
    assert chosen(off, ready, 1).decision.verdict is (PlanVerdict.APPROVE_WITH_CAUTION if acts else PlanVerdict.REJECT)
    assert chosen(off, ready, 0).decision.verdict is PlanVerdict.APPROVE_WITH_CAUTION  # to hold is no act
