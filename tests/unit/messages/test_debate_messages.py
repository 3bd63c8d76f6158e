"""The ten kinds: what was said is what is heard, to the last digit, and a debate cannot be half told."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from pydantic import ValidationError

from zuno.adapters.keys.ed25519 import KeyFile
from zuno.domain.errors import Malformed
from zuno.messages.codec import canonical, decoded
from zuno.messages.debate import Context, Kind
from zuno.messages.envelope import Envelope, from_bytes, to_bytes

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
    from debating import observed

    context: Context = await observed(tmp_path)
    again = Context.model_validate(decoded(canonical(context)))
    assert again == context
    assert canonical(again) == canonical(context)
    assert type(again.scenes[0].native_token1) is Fraction
    assert again.scenes[0].pool.sqrt_price_x96 > 2**64


def document(envelope: Envelope) -> Any:
    return decoded(to_bytes(envelope))


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
