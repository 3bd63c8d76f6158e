"""The ten kinds: what was said is what is heard, to the last digit, and a debate cannot be half told."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from pydantic import ValidationError

from zuno.adapters.keys.ed25519 import KeyFile
from zuno.kernel.canonical import canonical, decode_canonical
from zuno.kernel.errors import Malformed
from zuno.lp.agents.observe import HISTORY_HOURS
from zuno.lp.agents.pool_choice import MOST_POOLS
from zuno.lp.mesh.envelope import Envelope, from_bytes, to_bytes
from zuno.lp.model.debate import MOST_CANDIDATES, MOST_CONTEXT_POOLS, MOST_RETURNS, MOST_THOUGHTS, Context, Kind

Spoken = tuple[KeyFile, dict[Kind, Envelope]]
BY_NAME = pytest.mark.parametrize("kind", list(Kind), ids=str)


@BY_NAME
def test_every_kind_is_heard_as_it_was_said(spoken: Spoken, kind: Kind) -> None:
    said = spoken[1][kind]
    heard = from_bytes(to_bytes(said))
    assert heard == said
    assert type(heard.payload) is type(said.payload)
    assert heard.payload.kind is kind
    assert to_bytes(heard) == to_bytes(said)


def test_exact_figures_survive(spoken: Spoken) -> None:
    said: Any = spoken[1][Kind.PLAN_READY].payload
    heard: Any = from_bytes(to_bytes(spoken[1][Kind.PLAN_READY])).payload
    for ours, theirs in zip(said.debate.rounds[-1].candidates, heard.debate.rounds[-1].candidates, strict=True):
        assert type(ours) is type(theirs)
        assert ours == theirs
        assert type(theirs.capital_token1) is Fraction
        if theirs.stress is not None:
            assert type(theirs.stress.x1.p_exit_24h) is Fraction
        assert type(theirs.deposit.liquidity) is int
    assert any(one.deposit.amount0 > 2**53 for one in heard.debate.rounds[-1].candidates)


async def test_the_context_behind_a_debate_survives(tmp_path: Any) -> None:
    from tests.wire.debating import observed

    context: Context = await observed(tmp_path)
    again = Context.model_validate(decode_canonical(canonical(context)))
    assert again == context
    assert canonical(again) == canonical(context)
    assert type(again.scenes[0].native_token1) is Fraction
    assert again.scenes[0].pool.sqrt_price_x96 > 2**64


def document(envelope: Envelope) -> Any:
    return decode_canonical(to_bytes(envelope))


def refused(changed: Any) -> str:
    with pytest.raises(Malformed) as refusal:
        from_bytes(canonical(changed))
    return str(refusal.value)


HALF_TOLD = {
    "a proposal of nothing": (Kind.PROPOSAL, lambda rounds: rounds.clear()),
    "an empty ballot": (Kind.PROPOSAL, lambda rounds: rounds[0].update(candidates=[])),
    "a critique without judgments": (Kind.CRITIQUE, lambda rounds: rounds[-1].update(judgments=[], mechanical=[])),
    "a judgment missing": (Kind.CRITIQUE, lambda rounds: rounds[-1]["judgments"].pop()),
    "two judgments swapped": (Kind.CRITIQUE, lambda rounds: rounds[-1]["judgments"].reverse()),
    "the rules' word missing": (Kind.CRITIQUE, lambda rounds: rounds[-1].update(mechanical=[])),
    "a revision of nothing": (Kind.REVISION, lambda rounds: rounds.pop(0)),
    "an earlier round not judged": (Kind.REVISION, lambda rounds: rounds[0].update(judgments=[], mechanical=[])),
    "a deadlock before the critique": (Kind.DEADLOCK, lambda rounds: rounds[-1].update(judgments=[], mechanical=[])),
    "a candidate out of place": (Kind.PROPOSAL, lambda rounds: rounds[0]["candidates"].reverse()),
}


@pytest.mark.parametrize("name", HALF_TOLD)
def test_a_debate_half_told_is_malformed(spoken: Spoken, name: str) -> None:
    kind, harm = HALF_TOLD[name]
    changed = document(spoken[1][kind])
    harm(changed["payload"]["debate"]["rounds"])
    assert "payload" in refused(changed)


def test_a_decision_must_be_on_the_ballot(spoken: Spoken) -> None:
    for index in (99, -1):
        changed = document(spoken[1][Kind.PLAN_READY])
        changed["payload"]["decision"]["index"] = index
        refused(changed)


@pytest.mark.parametrize("value", [-0.1, 1.1, "0.5", None, True])
def test_confidence_is_a_share(spoken: Spoken, value: Any) -> None:
    changed = document(spoken[1][Kind.PLAN_READY])
    changed["payload"]["confidence"] = value
    refused(changed)


def test_nothing_is_changed_in_place(spoken: Spoken) -> None:
    envelope = spoken[1][Kind.PLAN_READY]
    with pytest.raises(ValidationError):
        envelope.payload.confidence = 1.0  # type: ignore[union-attr, misc]
    with pytest.raises(ValidationError):
        envelope.ts = 0  # type: ignore[misc]


# -- what a right key may not send: every list has an end, and nothing small stands for something huge


TOO_MANY_SAID: dict[str, tuple[Kind, Any]] = {
    "candidates": (Kind.PROPOSAL, lambda debate: _ballot(debate["rounds"][0], MOST_CANDIDATES + 1)),
    "suggestions": (
        Kind.CRITIQUE,
        lambda debate: debate["rounds"][-1].update(suggestions=[""] * (MOST_CANDIDATES + 1)),
    ),
    "rounds": (Kind.CRITIQUE, lambda debate: debate.update(rounds=debate["rounds"][:1] * 12)),
    "thoughts": (
        Kind.CRITIQUE,
        lambda debate: debate.update(transcript=debate["transcript"][:1] * (MOST_THOUGHTS + 1)),
    ),
    "voices": (Kind.CRITIQUE, lambda debate: debate.update(spoke=debate["spoke"][:1] * 25)),
    "notes of a deposit": (Kind.PROPOSAL, lambda debate: _first(debate)["deposit"].update(notes=["x"] * 65)),
    "notes of a carry": (Kind.PROPOSAL, lambda debate: _first(debate)["carry"].update(notes=["x"] * 65)),
    "transactions": (Kind.PROPOSAL, lambda debate: _first(debate)["carry"]["cost"].update(steps=["mint"] * 65)),
    "dollars": (Kind.CRITIQUE, lambda debate: debate["spoke"][0].update(usd="1E+999999999")),
}


def _first(debate: Any) -> Any:
    return debate["rounds"][0]["candidates"][0]


def _ballot(round_: Any, count: int) -> None:
    round_["candidates"] = [{**round_["candidates"][0], "index": index} for index in range(count)]


@pytest.mark.parametrize("name", TOO_MANY_SAID)
def test_a_debate_has_bounds(spoken: Spoken, name: str) -> None:
    kind, harm = TOO_MANY_SAID[name]
    changed = document(spoken[1][kind])
    harm(changed["payload"]["debate"])
    assert "payload" in refused(changed)


def test_a_ballot_may_be_as_long_as_it_ever_is(spoken: Spoken) -> None:
    changed = document(spoken[1][Kind.PROPOSAL])
    _ballot(changed["payload"]["debate"]["rounds"][0], 7)
    assert from_bytes(canonical(changed)).kind is Kind.PROPOSAL


def test_a_decision_has_few_cautions(spoken: Spoken) -> None:
    changed = document(spoken[1][Kind.PLAN_READY])
    changed["payload"]["decision"]["cautions"] = ["x"] * 65
    assert "cautions" in refused(changed)


TOO_MANY_SEEN: dict[str, Any] = {
    "pools": lambda context: context.update(scenes=context["scenes"] * 6),
    "returns": lambda context: context["scenes"][0].update(returnsNano=[1] * 721),
    "notes of a regime": lambda context: context["scenes"][0].update(regimeNotes=["x"] * 65),
    "sources": lambda context: context.update(sources=context["sources"][:1] * 49),
    "notes of a source": lambda context: context["sources"][0].update(notes=["x"] * 65),
    "words": lambda context: context["scenes"][0].update(regimeWhy="x" * 16_385),
    "revisions": lambda context: context.update(maxRounds=11),
    "decimals": lambda context: context["scenes"][0]["pool"]["token1"].update(decimals=256),
    "decimals of the position": lambda context: context["scenes"][0]["position"]["pool"]["token0"].update(decimals=-1),
    "zeros before the point": lambda context: context.update(wish=_wish("1E+1001")),
    "zeros after the point": lambda context: context.update(wish=_wish("1E-999999999")),
    "digits": lambda context: context.update(wish=_wish("NaN")),
    "a token's name": lambda context: context.update(wish={**_wish("1"), "pair": ["ETH", "U" * 65]}),
}


def _wish(amount: str) -> Any:
    return {"capital": [{"token": "ETH", "amount": amount}], "pair": None, "fee": None, "exposure": None}


@pytest.mark.parametrize("name", TOO_MANY_SEEN)
async def test_a_context_has_bounds(tmp_path: Any, name: str) -> None:
    """Two hundred pools in eleven packed kilobytes were 1.6 GB to whoever drew their paths."""
    from tests.wire.debating import observed

    changed: Any = decode_canonical(canonical(await observed(tmp_path)))
    TOO_MANY_SEEN[name](changed)
    with pytest.raises(ValidationError):
        Context.model_validate(changed)


async def test_a_context_may_be_as_large_as_it_ever_is(tmp_path: Any) -> None:
    from tests.wire.debating import observed

    changed: Any = decode_canonical(canonical(await observed(tmp_path)))
    changed["scenes"][0]["returnsNano"] = [1] * HISTORY_HOURS
    changed["scenes"][0]["pool"]["token1"]["decimals"] = 255
    changed.update(scenes=changed["scenes"] * MOST_CONTEXT_POOLS, sources=changed["sources"][:1] * 31, maxRounds=10)
    assert len(Context.model_validate(changed).scenes) == MOST_CONTEXT_POOLS
    assert (MOST_CONTEXT_POOLS, MOST_RETURNS) == (MOST_POOLS, HISTORY_HOURS)
