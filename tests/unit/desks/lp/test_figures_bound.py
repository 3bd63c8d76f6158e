"""The desk holds every figure to the candidate it is said of: in a reason, in a suggestion, in the rules' own words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from debating import Table, critic_says, judgment

from zuno.core.regime import classify
from zuno.core.returns import percentile, rolling_vol_bps
from zuno.desks.lp.knowledge import Backing, context_lines, facts_of
from zuno.desks.lp.scenes import NANO
from zuno.domain.debate import Candidate
from zuno.messages.debate import Context, PlanReady

Seat = Callable[..., Table]


@pytest.fixture(scope="module")
async def argued(worlds: dict[str, Context], tmp_path_factory: pytest.TempPathFactory) -> dict[str, PlanReady]:
    """A debate of the rules alone in every world."""
    return {
        name: await Table(tmp_path_factory.mktemp(name), context).debate(max_rounds=2)
        for name, context in worlds.items()
    }


def fees(candidate: Candidate) -> str:
    assert candidate.carry.fees24h_token1 is not None
    return f"{float(candidate.carry.fees24h_token1 / 10**6):.2f}"


def test_the_rules_own_words_stand_up_to_the_law_they_apply(
    worlds: dict[str, Context], argued: dict[str, PlanReady]
) -> None:
    heard = 0
    for name, ready in argued.items():
        context, rounds = worlds[name], ready.debate.rounds
        for number, round_ in enumerate(rounds):
            backing = Backing(context, round_.candidates)
            for one in round_.mechanical:
                assert backing(one.reason, one.index) == [], one.reason
                heard += 1
            for thought in ready.debate.transcript:
                if thought.round == number and thought.role in ("strategist", "critic"):
                    assert backing(thought.text) == [], thought.text
        everything = Backing(context, [one for round_ in rounds for one in round_.candidates])
        for thought in ready.debate.transcript:
            assert everything(thought.text, ready.decision.index, others=True) == [], thought.text
    assert heard > 20


def test_a_judgment_speaks_of_its_own_candidate(calm: Context, argued: dict[str, PlanReady]) -> None:
    candidates = argued["calm"].debate.rounds[0].candidates
    backing = Backing(calm, candidates)
    own, other = candidates[2], candidates[3]
    assert backing(f"Fees of {fees(own)} USDC.", 2) == []
    (fault,) = backing(f"Fees of {fees(other)} USDC.", 2)
    assert fault.startswith(f"{fees(other)} USDC")
    assert "fees 24h of candidate 3" in fault
    assert backing(f"Candidate 3 has fees of {fees(other)} USDC.", 2) == []
    assert backing(f"Candidate 2 has fees of {fees(other)} USDC.", 2, others=True) != []
    assert backing(f"Look at {fees(other)} USDC.", 2, others=True) == []


def opinions(candidates: tuple[Candidate, ...], verdicts: list[str], suggestion: str, reason: str) -> str:
    judgments = [judgment(one.index, said) for one, said in zip(candidates, verdicts, strict=True)]
    judgments[2] |= {"suggestion": suggestion, "reason": reason}
    return critic_says(*judgments)


@pytest.mark.parametrize(
    ("suggestion", "reason", "taken"),
    [
        ("Take the fees of {3} USDC instead.", "Fees are {2} USDC.", True),
        ("Take the fees of 98765.43 USDC instead.", "Fees are {2} USDC.", False),
        ("Take the fees of {3} USDC instead.", "Fees are {3} USDC.", False),
        ("Candidate 4 has fees of {3} USDC.", "Fees are {2} USDC.", False),
    ],
)
async def test_reasons_and_suggestions_are_both_checked(
    seat: Seat, calm: Context, argued: dict[str, PlanReady], suggestion: str, reason: str, taken: bool
) -> None:
    round_ = argued["calm"].debate.rounds[0]
    figures = {str(one.index): fees(one) for one in round_.candidates}

    def filled(text: str) -> str:
        for index, figure in figures.items():
            text = text.replace(f"{{{index}}}", figure)
        return text

    rules = [str(one.verdict) for one in round_.mechanical]
    said = opinions(round_.candidates, rules, filled(suggestion), filled(reason))
    ready = await seat(calm, critic=lambda request: said).debate(max_rounds=0)
    (voice,) = [one for one in ready.debate.spoke if one.role == "critic"]
    assert voice.speaker == ("model" if taken else "fallback"), voice.why
    assert taken or "(unsupported_figure)" in voice.why
    assert (filled(suggestion) in ready.debate.rounds[0].suggestions) == taken


def test_the_percentile_that_is_told_is_the_one_that_rules(calm: Context, tmp_path: Path) -> None:
    (scene,) = calm.scenes
    history = rolling_vol_bps([value / NANO for value in scene.returns_nano])
    told = {one.name: one.value for one in facts_of(calm).figures}
    mark = percentile(history, 95)
    assert told["95th percentile of volatility"] == round(mark, 1)
    assert f"{round(mark, 1):g}" in context_lines(calm)

    def regime_at(vol: float) -> str:
        return classify(
            vol_bps=vol, vol_history_bps=history, gas_price_wei=None, gas_history_wei=(), returns_24h=()
        ).regime

    assert regime_at(mark) != "stressed"
    assert regime_at(mark * 1.000001) == "stressed"
