"""The desk's texts cite their figures: the rules' own, a model's, and those of a peer elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.wire.debating import Table, critic_says, judgment
from zuno.kernel.errors import Malformed
from zuno.kernel.statistics import percentile
from zuno.lp.agents.prompt_facts import context_lines, facts_of, text_faults
from zuno.lp.agents.verify_debate import check_debate
from zuno.lp.agents.verify_peer_plan import check_transcript
from zuno.lp.model.ballot import Candidate
from zuno.lp.model.debate import Context, PlanReady
from zuno.lp.rules.regime import classify
from zuno.lp.rules.volatility import NANO, rolling_vol_bps
from zuno.lp.service.plan_record import build_plan

Seat = Callable[..., Table]


@pytest.fixture(scope="module")
async def argued(worlds: dict[str, Context], tmp_path_factory: pytest.TempPathFactory) -> dict[str, PlanReady]:
    """A debate of the rules alone in every world."""
    return {
        name: await Table(tmp_path_factory.mktemp(name), context).debate(max_rounds=2)
        for name, context in worlds.items()
    }


@pytest.mark.slow
def test_the_rules_texts_stand_up_to_the_rules_for_texts(
    worlds: dict[str, Context], argued: dict[str, PlanReady]
) -> None:
    cited = 0
    for name, ready in argued.items():
        context, rounds = worlds[name], ready.debate.rounds
        for number, round_ in enumerate(rounds):
            facts = facts_of(context, rounds, number)
            for judged in round_.mechanical:
                assert text_faults(judged.reason, facts, judged.index) == [], judged.reason
                cited += "{" in judged.reason
            for thought in ready.debate.transcript:
                if thought.round == number:
                    assert text_faults(thought.text, facts, limits=(1, 2_000)) == [], thought.text
    assert cited > 15


@pytest.mark.slow
def test_a_plan_prints_the_figures_of_whoever_reads_it(
    worlds: dict[str, Context], argued: dict[str, PlanReady]
) -> None:
    for name, ready in argued.items():
        plan = build_plan("req_0123456789abcdef", worlds[name], ready)[0]
        texts = [*plan.cautions, *(thought.text for thought in plan.transcript)]
        texts += [candidate.reason for candidate in (*plan.candidates, *plan.earlier)]  # type: ignore[attr-defined]
        assert not any("{" in text or "no fact" in text for text in texts)
        for candidate, judged in zip(plan.candidates, ready.debate.rounds[-1].judgments, strict=True):
            if f"{{c{candidate.index}.buffer_2x}}" in judged.reason:
                assert candidate.stress is not None
                assert f"{candidate.stress.x2.median_hours} h" in candidate.reason


def test_a_slot_belongs_to_its_candidate(calm: Context, argued: dict[str, PlanReady]) -> None:
    facts = facts_of(calm, argued["calm"].debate.rounds[:1])
    assert text_faults("Fees of {c2.fees_24h}.", facts, 2) == []
    assert text_faults("Candidate 3 has fees of {c3.fees_24h}.", facts, 2) == []
    assert text_faults("Candidate 2 has fees of {c3.fees_24h}.", facts, 2) != []
    assert text_faults("Candidate 9 has fees of {c9.fees_24h}.", facts, 2) != []


def opinions(candidates: tuple[Candidate, ...], verdicts: list[str], suggestion: str, reason: str) -> str:
    judgments = [judgment(one.index, said) for one, said in zip(candidates, verdicts, strict=True)]
    judgments[2] |= {"suggestion": suggestion, "reason": reason}
    return critic_says(*judgments)


@pytest.mark.soak(every=2)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("suggestion", "reason", "taken"),
    [
        ("Candidate 3 with fees of {c3.fees_24h} is better.", "Fees are {c2.fees_24h}.", True),
        ("Fees of 98765.43 USDC would be better.", "Fees are {c2.fees_24h}.", False),
        ("Candidate 3 is better.", "Candidate 2 has fees of {c3.fees_24h}.", False),
        ("Candidate 4 has fees of {c3.fees_24h}.", "Fees are {c2.fees_24h}.", False),
        ("Candidate 3 is better.", "Fees are {c2.fees_24h:,.9f}.", False),
        ("Candidate 3 is better.", "Fees are {{c2.fees_24h}}.", False),
        ("Candidate 3 is better.", "Fees are {c2.fees_25h}.", False),
    ],
)
async def test_reasons_and_suggestions_are_both_checked(
    seat: Seat, calm: Context, argued: dict[str, PlanReady], suggestion: str, reason: str, taken: bool
) -> None:
    round_ = argued["calm"].debate.rounds[0]
    rules = [str(one.verdict) for one in round_.mechanical]
    said = opinions(round_.candidates, rules, suggestion, reason)
    table = seat(calm, critic=lambda request: said)
    ready = await table.debate(max_rounds=0)
    (voice,) = [one for one in ready.debate.spoke if one.role == "critic"]
    assert (voice.speaker, bool(voice.why)) == ("model", not taken)
    judged = ready.debate.rounds[0]
    kept = suggestion in judged.suggestions, judged.judgments[2].reason == reason
    assert all(kept) == taken
    assert taken or any(kept), "only the faulty one is left out"


@pytest.mark.parametrize("words", ["It returns 900 % a year.", "Fees of {c9.fees_24h}.", "Sign it now."])
def test_a_peer_elsewhere_is_held_to_the_same_rules(calm: Context, argued: dict[str, PlanReady], words: str) -> None:
    debate = argued["calm"].debate
    first = debate.rounds[0]
    told = first.model_copy(update={"judgments": (replace(first.judgments[0], reason=words), *first.judgments[1:])})
    with pytest.raises(Malformed):
        check_debate(calm, (told, *debate.rounds[1:]))
    thought = debate.transcript[0].model_copy(update={"text": words})
    with pytest.raises(Malformed):
        check_transcript(calm, debate.model_copy(update={"transcript": (thought,)}))
    check_debate(calm, debate.rounds)
    check_transcript(calm, debate)


def test_the_percentile_that_is_told_is_the_one_that_rules(calm: Context) -> None:
    (scene,) = calm.scenes
    history = rolling_vol_bps([value / NANO for value in scene.returns_nano])
    facts = facts_of(calm)
    mark = percentile(history, 95)
    assert facts["volatility_high"].number == mark
    assert f"{{volatility_high}} {mark:.0f} bps" in context_lines(calm)

    def regime_at(vol: float) -> str:
        return classify(
            vol_bps=vol, vol_history_bps=history, gas_price_wei=None, gas_history_wei=(), returns_24h=()
        ).regime

    assert regime_at(mark) != "stressed"
    assert regime_at(mark * 1.000001) == "stressed"


@pytest.mark.parametrize(
    ("reason", "kept"),
    [
        ("Hold earns {c0.net_24h}, while this earns {c2.net_24h}.", True),
        ("Unlike hold with {c0.net_24h}, {c2.net_24h} is earned.", True),
        ("It is {c1.net_24h} elsewhere.", False),
    ],
)
async def test_a_critic_that_compares_loses_no_plan(
    seat: Seat, calm: Context, argued: dict[str, PlanReady], reason: str, kept: bool
) -> None:
    round_ = argued["calm"].debate.rounds[0]
    rules = [str(one.verdict) for one in round_.mechanical]
    table = seat(calm, critic=lambda request: opinions(round_.candidates, rules, "Go wider.", reason))
    ready = await table.debate(max_rounds=0)
    assert (ready.debate.rounds[0].judgments[2].reason == reason) is kept
    check_debate(calm.model_copy(update={"max_rounds": 0}), ready.debate.rounds)
    check_transcript(calm, ready.debate, ready.decision.index)
