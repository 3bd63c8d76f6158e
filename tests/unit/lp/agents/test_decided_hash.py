"""The plan's hash: what was decided and from what, and not by whom, when, or at what price."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from tests.wire.debating import CONTEXTS, REQUEST, Table, outcome_of
from zuno.lp.model.ballot import DecidedBy, Fault, PlanVerdict, Verdict
from zuno.lp.model.debate import Context, PlanReady, Role, Thought
from zuno.lp.service.plan_record import build_plan

Seat = Callable[..., Table]


@pytest.fixture(scope="session")
async def ended(rough: Context, tmp_path_factory: pytest.TempPathFactory) -> PlanReady:
    return await Table(tmp_path_factory.mktemp("ended"), rough).debate()


@pytest.mark.slow
async def test_the_same_state_gives_the_same_hash_whatever_the_hour(
    seat: Seat, rough: Context, ended: PlanReady
) -> None:
    later = seat(rough, settings={"request": "req_00000000000000ff", "started": 1_900_000_000_000})
    again = await later.debate()
    assert outcome_of(again) == outcome_of(ended)
    assert again == ended


def with_round(ready: PlanReady, number: int, **update: Any) -> PlanReady:
    rounds = list(ready.debate.rounds)
    rounds[number] = rounds[number].model_copy(update=update)
    return ready.model_copy(update={"debate": ready.debate.model_copy(update={"rounds": tuple(rounds)})})


def with_candidate(ready: PlanReady, change: Callable[[Any], Any]) -> PlanReady:
    candidates = ready.debate.rounds[-1].candidates
    return with_round(ready, -1, candidates=(*candidates[:-1], change(candidates[-1])))


def with_judgment(ready: PlanReady, number: int, **changes: Any) -> PlanReady:
    judgments = ready.debate.rounds[number].judgments
    return with_round(ready, number, judgments=(*judgments[:-1], replace(judgments[-1], **changes)))


def decided(ready: PlanReady, **changes: Any) -> PlanReady:
    return ready.model_copy(update={"decision": replace(ready.decision, **changes)})


def debating(ready: PlanReady, **update: Any) -> PlanReady:
    return ready.model_copy(update={"debate": ready.debate.model_copy(update=update)})


def elsewhere(ready: PlanReady) -> PlanReady:
    """The same argument from another context."""
    context = CONTEXTS[ready.debate.context]
    CONTEXTS["0" * 64] = context.model_copy(update={"chain_id": context.chain_id + 1})
    return debating(ready, context="0" * 64)


def later(ready: PlanReady) -> PlanReady:
    """The same facts, heard at other times and in other words."""
    context = CONTEXTS[ready.debate.context]
    changes = {"as_of": 1, "age_seconds": 5, "limit_seconds": 77, "notes": ("by another road",)}
    sources = tuple(note.model_copy(update=changes) for note in context.sources)
    CONTEXTS["1" * 64] = context.model_copy(update={"sources": sources})
    return debating(ready, context="1" * 64)


def from_another_source(ready: PlanReady) -> PlanReady:
    context = CONTEXTS[ready.debate.context]
    first, *others = context.sources
    sources = (first.model_copy(update={"source": "hearsay"}), *others)
    CONTEXTS["2" * 64] = context.model_copy(update={"sources": sources})
    return debating(ready, context="2" * 64)


COUNTS: dict[str, Callable[[PlanReady], PlanReady]] = {
    "the context": elsewhere,
    "a source": from_another_source,
    "the choice": lambda ready: decided(ready, index=0),
    "the verdict": lambda ready: decided(ready, verdict=PlanVerdict.REJECT),
    "who decided": lambda ready: decided(ready, decided_by=DecidedBy.OWNER),
    "a caution": lambda ready: decided(ready, cautions=("something else",)),
    "a range": lambda ready: with_candidate(
        ready, lambda one: replace(one, range=replace(one.range, upper=one.range.upper + 10))
    ),
    "a buffer": lambda ready: with_candidate(
        ready, lambda one: replace(one, stress=replace(one.stress, x3=replace(one.stress.x3, median_hours=1)))
    ),
    "fees": lambda ready: with_candidate(
        ready, lambda one: replace(one, carry=replace(one.carry, fees24h_token1=one.carry.fees24h_token1 + 1))
    ),
    "an amount": lambda ready: with_candidate(
        ready, lambda one: replace(one, deposit=replace(one.deposit, amount0=one.deposit.amount0 + 1))
    ),
    "the last word on a candidate": lambda ready: with_judgment(ready, -1, verdict=Verdict.VETO),
    "its reason": lambda ready: with_judgment(ready, -1, reason="because"),
    "its fault": lambda ready: with_judgment(ready, -1, fault=Fault.OPINION),
    "an earlier word": lambda ready: with_judgment(ready, 0, verdict=Verdict.ACCEPT),
    "the rules' word": lambda ready: with_round(ready, 0, mechanical=ready.debate.rounds[0].mechanical[::-1]),
    "a suggestion": lambda ready: with_round(ready, 0, suggestions=("wider",)),
    "a round less": lambda ready: debating(ready, rounds=ready.debate.rounds[1:]),
}


@pytest.mark.parametrize("name", COUNTS)
def test_what_was_decided_counts(ended: PlanReady, name: str) -> None:
    changed = COUNTS[name](ended)
    assert changed != ended
    assert outcome_of(changed) != outcome_of(ended)


def test_no_two_of_these_changes_look_alike(ended: PlanReady) -> None:
    assert len({outcome_of(change(ended)) for change in COUNTS.values()}) == len(COUNTS)


DOES_NOT_COUNT: dict[str, Callable[[PlanReady], PlanReady]] = {
    "when the facts were heard": later,
    "the confidence, which counts ages": lambda ready: ready.model_copy(update={"confidence": ready.confidence / 2}),
    "who spoke": lambda ready: debating(
        ready, spoke=tuple(one.model_copy(update={"speaker": "model", "model": "x"}) for one in ready.debate.spoke)
    ),
    "what it cost": lambda ready: debating(
        ready,
        spoke=tuple(one.model_copy(update={"tokens": 999, "usd": Decimal("1.5")}) for one in ready.debate.spoke),
    ),
    "narration": lambda ready: debating(
        ready, transcript=(Thought(role=Role.SCOUT, round=0, seq=0, text="hm", speaker="model"),)
    ),
}


@pytest.mark.parametrize("name", DOES_NOT_COUNT)
def test_how_it_came_about_does_not_count(ended: PlanReady, name: str) -> None:
    changed = DOES_NOT_COUNT[name](ended)
    assert changed != ended
    assert outcome_of(changed) == outcome_of(ended)


def test_the_plans_id_names_the_request_and_the_decision(ended: PlanReady, rough: Context) -> None:
    one, same = build_plan(REQUEST, rough, ended)[0], build_plan(REQUEST, rough, ended)[0]
    other = build_plan("req_00000000000000ff", rough, ended)[0]
    assert one.plan_id == same.plan_id != other.plan_id
    assert one.hash == other.hash


@pytest.mark.slow
async def test_another_state_gives_another_hash(seat: Seat, worlds: dict[str, Context]) -> None:
    hashes = {outcome_of(await seat(context).debate()) for context in worlds.values()}
    assert len(hashes) == len(worlds)
