"""The debate from its first word to its last: every way through, and an end to each."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pydantic.alias_generators import to_camel

from tests.wire.debating import (
    REQUEST,
    Table,
    arbiter_says,
    critic_says,
    judgment,
    no_thoughts,
    outcome_of,
    scout_says,
    shape,
    strategist_says,
)
from tests.wire.fakes.model import in_order
from zuno.adapters.transport.inbox import InProcess
from zuno.kernel.canonical import canonical
from zuno.kernel.errors import Broken, Refused, Unavailable
from zuno.llm.port import ModelRequest
from zuno.lp.agents.arbiter import UNUSABLE_REASON
from zuno.lp.agents.pool_inputs import build_all_pool_inputs, build_ballot, extract_moves
from zuno.lp.agents.prompt_facts import print_thoughts
from zuno.lp.agents.verify_peer_plan import check_transcript
from zuno.lp.mesh.envelope import Envelope, signed_part, to_bytes
from zuno.lp.model.ballot import Candidate, CandidateKind, DecidedBy, Fault, PlanVerdict, RiskProfile, Verdict
from zuno.lp.model.debate import MOST_CANDIDATES, Context, FlowCreateStart, FlowStart, Kind, PlanReady, Role, Round
from zuno.lp.rules.ballot import AXES
from zuno.lp.service.plan_record import build_plan, chosen_by_owner

Seat = Callable[..., Table]
TURN = [Role.SCOUT, Role.STRATEGIST, Role.CRITIC, Role.ARBITER]


def judges(verdict: str) -> Callable[[ModelRequest], str]:
    """A Critic with one opinion of every move; of hold and close it says what the rules say."""

    def script(request: ModelRequest) -> str:
        judgments = []
        ballot = request.turns[0].text.split("rules' verdicts:\n")[1].split("\n\n")[0]
        for line in ballot.splitlines()[1:]:
            index, kind = line.split()[:2]
            rules = line.split(" → ")[1].split(":")[0]
            own = rules if kind.rstrip(":") in ("hold", "close") else max(verdict, rules, key=SEVERITY.index)
            judgments.append(judgment(int(index[1:]), own, "My own view of this line."))
        return critic_says(*judgments)

    return script


SEVERITY = ["accept", "revise", "veto"]


def sound(ready: PlanReady, context: Context) -> None:
    """What holds at the end of every debate."""
    seen: set[Any] = set()
    for round_ in ready.debate.rounds:
        assert (
            build_ballot(context, build_all_pool_inputs(context), extract_moves(round_.candidates)) == round_.candidates
        )
        assert round_.candidates[0].kind is CandidateKind.HOLD
        assert round_.candidates[1].kind is CandidateKind.CLOSE
        keys = [move.key for move in extract_moves(round_.candidates)]
        assert not seen & set(keys), "a revision repeats a range"
        seen.update(keys)
        for said, rule in zip(round_.judgments, round_.mechanical, strict=True):
            assert said.verdict.severity >= rule.verdict.severity
    last = ready.debate.rounds[-1]
    assert last.judgments[ready.decision.index].verdict is not Verdict.VETO
    order = [(one.round, TURN.index(one.role), one.seq) for one in ready.debate.transcript]
    assert order == sorted(order)
    assert len(set(order)) == len(order)


@pytest.mark.slow
async def test_accepted_at_once(seat: Seat, calm: Context) -> None:
    table = seat(calm)
    ready = await table.debate()
    assert await table.kinds() == ["flow_start", "context_observed", "proposal", "plan_ready"]
    assert ready.decision.decided_by is DecidedBy.CRITIC
    assert len(ready.debate.rounds) == 1
    sound(ready, calm)


@pytest.mark.slow
async def test_revised_then_accepted(seat: Seat, rough: Context) -> None:
    table = seat(rough)
    ready = await table.debate()
    said = ["flow_start", "context_observed", "proposal", "critique", "revision", "plan_ready"]
    assert await table.kinds() == said
    assert ready.decision.decided_by is DecidedBy.CRITIC
    first, second = ready.debate.rounds
    assert {one.fault for one in first.judgments} >= {Fault.THIN_1X, Fault.THIN_2X}
    assert Verdict.ACCEPT in {one.verdict for one in second.judgments[2:]}
    sound(ready, rough)


@pytest.mark.slow
async def test_a_veto_of_everything_goes_back_while_rounds_remain(seat: Seat, wild: Context) -> None:
    table = seat(wild)
    ready = await table.debate()
    assert {one.verdict for one in ready.debate.rounds[0].judgments[2:]} == {Verdict.VETO}
    assert (await table.kinds())[3:5] == ["critique", "revision"]
    sound(ready, wild)


@pytest.mark.soak(every=3)
@pytest.mark.slow
@pytest.mark.parametrize(
    "rounds", [0, 1, 2, pytest.param(5, marks=pytest.mark.soak), pytest.param(10, marks=pytest.mark.soak)]
)
@pytest.mark.parametrize("verdict", ["revise", "veto"])
async def test_at_most_one_critique_more_than_revisions_allowed(
    seat: Seat, calm: Context, verdict: str, rounds: int
) -> None:
    table = seat(calm, critic=judges(verdict))
    ready = await table.debate(max_rounds=rounds)
    critiques = [one for one in ready.debate.spoke if one.role is Role.CRITIC]
    assert len(critiques) == rounds + 1
    assert len(ready.debate.rounds) == rounds + 1
    kinds = await table.kinds()
    assert kinds == [
        "flow_start",
        "context_observed",
        "proposal",
        *["critique", "revision"] * rounds,
        "deadlock",
        "plan_ready",
    ]
    assert ready.decision.decided_by is DecidedBy.ARBITER
    sound(ready, calm)


@pytest.mark.slow
async def test_no_rounds_and_not_accepted_is_the_arbiters_at_once(seat: Seat, rough: Context) -> None:
    table = seat(rough)
    ready = await table.debate(max_rounds=0)
    assert await table.kinds() == ["flow_start", "context_observed", "proposal", "deadlock", "plan_ready"]
    assert ready.decision.decided_by is DecidedBy.ARBITER
    assert ready.decision.verdict is PlanVerdict.APPROVE_WITH_CAUTION
    assert "round 0" in ready.debate.transcript[-1].text
    sound(ready, rough)


async def test_no_rounds_and_accepted_needs_no_arbiter(seat: Seat, calm: Context) -> None:
    ready = await seat(calm).debate(max_rounds=0)
    assert ready.decision.decided_by is DecidedBy.CRITIC


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [0, 2])
async def test_all_moves_vetoed_in_the_last_round_is_hold_and_reject(seat: Seat, wild: Context, rounds: int) -> None:
    ready = await seat(wild, critic=judges("veto")).debate(max_rounds=rounds)
    assert ready.decision.index == 0
    assert ready.decision.verdict is PlanVerdict.REJECT
    assert ready.decision.decided_by is DecidedBy.ARBITER
    sound(ready, wild)


@pytest.mark.slow
async def test_a_position_out_of_range_may_still_be_held_but_is_not_accepted(seat: Seat, drifted: Context) -> None:
    ready = await seat(drifted).debate()
    hold = ready.debate.rounds[-1].judgments[0]
    assert (hold.verdict, hold.fault) == (Verdict.REVISE, Fault.OUTSIDE)
    sound(ready, drifted)
    chosen = chosen_by_owner(drifted, ready, 0)
    assert chosen.decision.verdict is PlanVerdict.APPROVE_WITH_CAUTION


@pytest.mark.soak(every=6)
@pytest.mark.slow
@pytest.mark.parametrize("profile", list(RiskProfile), ids=str)
@pytest.mark.parametrize("world", ["calm", "rough", "wild", "drifted"])
async def test_each_profile_in_each_world(
    seat: Seat, worlds: dict[str, Context], profile: RiskProfile, world: str
) -> None:
    context = worlds[world]
    plan = await (table := seat(context)).plan(profile)
    assert plan.profile == profile
    reasons = " ".join(one.reason for one in plan.candidates)
    assert not any(other in reasons for other in RiskProfile if other is not profile)
    ready: Any = table.transport.sent[-1].payload
    sound(ready, context.model_copy(update={"profile": profile}))


@pytest.mark.slow
async def test_the_profiles_disagree(seat: Seat, rough: Context) -> None:
    widths = {}
    for profile in RiskProfile:
        ready = await seat(rough).debate(profile)
        moves = extract_moves(ready.debate.rounds[-1].candidates)
        widths[profile] = max(move.range.width for move in moves)
    assert widths[RiskProfile.CONSERVATIVE] > widths[RiskProfile.BALANCED] > widths[RiskProfile.AGGRESSIVE]


async def test_the_world_says_no(seat: Seat, calm: Context) -> None:
    class Blind(Table):
        async def _observe(self, start: FlowStart | FlowCreateStart) -> Context:
            raise Unavailable("the node did not answer")

    table = Blind(seat(calm).folder, calm)
    with pytest.raises(Unavailable, match="did not answer"):
        await table.debate()
    assert await table.kinds() == ["flow_start", "flow_failed"]


# -- models that keep to the rules


@pytest.mark.slow
async def test_models_speak_for_all_four(seat: Seat, calm: Context) -> None:
    table = seat(
        calm,
        scout=lambda request: scout_says(),
        strategist=lambda request: strategist_says(shape(200), shape(60, 100)),
        critic=judges("revise"),
        arbiter=lambda request: arbiter_says(2),
    )
    ready = await table.debate(max_rounds=0)
    assert {one.speaker for one in ready.debate.spoke} == {"model"}
    assert ready.decision.index == 2
    assert ready.decision.verdict is PlanVerdict.APPROVE_WITH_CAUTION
    assert all(one.model and one.tokens == 150 for one in ready.debate.spoke)
    assert [one.outcome for one in table.attempts] == ["ok"] * 4
    sound(ready, calm)


@pytest.mark.slow
async def test_a_shape_that_was_judged_is_not_proposed_again(seat: Seat, calm: Context) -> None:
    lines = [strategist_says(shape(200), shape(60))] * 2 + [strategist_says(shape(180), shape(160))]
    table = seat(calm, strategist=in_order(lines), critic=judges("revise"))
    ready = await table.debate(max_rounds=1)
    voices = [one for one in ready.debate.spoke if one.role is Role.STRATEGIST]
    assert [one.speaker for one in voices] == ["model", "repaired"]
    assert "shape" in voices[1].why
    sound(ready, calm)


@pytest.mark.slow
async def test_some_shapes_repeated_are_left_out(seat: Seat, calm: Context) -> None:
    lines = [strategist_says(shape(200), shape(60)), strategist_says(shape(200), shape(180))]
    ready = await seat(calm, strategist=in_order(lines), critic=judges("revise")).debate(max_rounds=1)
    assert [len(extract_moves(one.candidates)) for one in ready.debate.rounds] == [2, 1]
    sound(ready, calm)


@pytest.mark.slow
async def test_a_revision_that_evades_its_critique_is_sent_back(seat: Seat, rough: Context) -> None:
    """Too thin is not answered by as thin, a few ticks aside; wider is an answer."""
    evades = strategist_says(shape(30, 10), shape(30, -10))
    lines = [strategist_says(shape(140), shape(65)), evades, strategist_says(shape(250), shape(30, 20))]
    ready = await seat(rough, strategist=in_order(lines)).debate(max_rounds=1)
    voices = [one for one in ready.debate.spoke if one.role is Role.STRATEGIST]
    assert [one.speaker for one in voices] == ["model", "repaired"]
    assert "critique" in voices[1].why
    assert ready.debate.rounds[1].judgments[2].verdict is Verdict.ACCEPT
    sound(ready, rough)
    # Better than before and still sent back by the rules is no answer either.
    hardly = strategist_says(shape(145), shape(150))
    half = seat(rough, strategist=in_order([lines[0], hardly, strategist_says(shape(250))]))
    ready = await half.debate(max_rounds=1)
    voices = [one for one in ready.debate.spoke if one.role is Role.STRATEGIST]
    assert "revise" in voices[1].why
    stubborn = seat(rough, strategist=lambda request: lines[0] if request.round == 0 else evades)
    ready = await stubborn.debate(max_rounds=1)
    assert [one.speaker for one in ready.debate.spoke if one.role is Role.STRATEGIST] == ["model", "fallback"]
    sound(ready, rough)


@pytest.mark.slow
async def test_what_the_critic_suggests_reaches_the_strategist(seat: Seat, rough: Context) -> None:
    def suggests(request: ModelRequest) -> str:
        said = json.loads(judges("revise")(request))
        for one in said["judgments"]:
            one["suggestion"] = "Rather go wider than this."
        return json.dumps(said)

    table = seat(rough, strategist=lambda request: strategist_says(shape(140 + request.round)), critic=suggests)
    await table.debate(max_rounds=1)
    told = [request.turns[0].text for request in table.models["strategist"].asked if request.round == 1]
    assert told
    assert "Rather go wider than this." in told[0]


@pytest.mark.slow
async def test_a_critic_looser_than_the_rules_is_repaired(seat: Seat, rough: Context) -> None:
    loose = critic_says(*(judgment(index, "accept") for index in range(5)))
    strict = [loose, judges("accept")]

    def script(request: ModelRequest) -> str:
        line = strict[min(request.attempt, 2) - 1]
        return line if isinstance(line, str) else line(request)  # type: ignore[operator]

    ready = await seat(rough, critic=script).debate(max_rounds=0)
    voice = next(one for one in ready.debate.spoke if one.role is Role.CRITIC)
    assert voice.speaker == "repaired"
    assert "looser" in voice.why
    sound(ready, rough)


@pytest.mark.slow
async def test_a_critic_that_stays_looser_is_replaced_by_the_rules(seat: Seat, rough: Context) -> None:
    loose = critic_says(*(judgment(index, "accept") for index in range(5)))
    table = seat(rough, critic=lambda request: loose)
    ready = await table.debate(max_rounds=0)
    voice = next(one for one in ready.debate.spoke if one.role is Role.CRITIC)
    assert voice.speaker == "fallback"
    assert "looser" in voice.why
    assert ready.debate.rounds[0].judgments == ready.debate.rounds[0].mechanical
    assert outcome_of(ready) == outcome_of(await seat(rough).debate(max_rounds=0))


@pytest.mark.slow
@pytest.mark.parametrize("kept", [0, 1])
async def test_a_critic_cannot_veto_hold_or_close(seat: Seat, calm: Context, kept: int) -> None:
    verdicts = ["revise", "accept", "accept", "accept", "accept"]
    verdicts[kept] = "veto"
    said = critic_says(*(judgment(index, verdict) for index, verdict in enumerate(verdicts)))
    ready = await seat(calm, critic=lambda request: said).debate()
    assert ready.debate.spoke[-1].speaker == "fallback"
    assert "vetoed" in ready.debate.spoke[-1].why


@pytest.mark.soak(every=3)
@pytest.mark.slow
@pytest.mark.parametrize(("index", "why"), [(3, "vetoed"), (5, "not on the latest ballot"), (99, "ballot")])
async def test_an_arbiter_may_not_choose_what_is_not_there(seat: Seat, rough: Context, index: int, why: str) -> None:
    table = seat(rough, arbiter=lambda request: arbiter_says(index))
    ready = await table.debate(max_rounds=0)
    assert ready.debate.rounds[-1].judgments[3].verdict is Verdict.VETO
    assert ready.debate.spoke[-1].speaker == "fallback"
    assert why in ready.debate.spoke[-1].why
    assert outcome_of(ready) == outcome_of(await seat(rough).debate(max_rounds=0))
    again = seat(rough, arbiter=in_order([arbiter_says(index), arbiter_says(0, "reject")]))
    repaired = await again.debate(max_rounds=0)
    assert repaired.debate.spoke[-1].speaker == "repaired"
    assert (repaired.decision.index, repaired.decision.verdict) == (0, PlanVerdict.REJECT)


@pytest.mark.slow
async def test_an_arbiter_may_not_be_milder_than_the_rules(seat: Seat, rough: Context) -> None:
    ready = await seat(rough, arbiter=lambda request: arbiter_says(2, "approve")).debate(max_rounds=0)
    assert ready.debate.spoke[-1].speaker == "fallback"
    assert "milder" in ready.debate.spoke[-1].why


@pytest.mark.slow
async def test_an_arbiter_that_does_not_quote_the_debate_has_it_counted_before_its_words(
    seat: Seat, rough: Context
) -> None:
    silent = arbiter_says(2, reasoning="I simply like this one better than all of the others, that is all.")
    ready = await seat(rough, arbiter=lambda request: silent).debate(max_rounds=0)
    assert ready.debate.spoke[-1].speaker == "model"
    said = next(thought.text for thought in ready.debate.transcript if thought.role == "arbiter")
    assert "(round 0:" in said
    assert said.endswith("that is all.")


async def test_an_arbiter_is_told_its_axis_and_goes_against_it_for_a_reason_alone(seat: Seat, rough: Context) -> None:
    assert set(AXES) == set(RiskProfile)
    by_rule = await seat(rough).debate(max_rounds=0)
    first = by_rule.decision.index
    judgments = by_rule.debate.rounds[-1].judgments
    other = next(one.index for one in judgments if one.verdict is not Verdict.VETO and one.index != first)

    def table(index: int, against: str | None) -> Table:
        return seat(rough, arbiter=lambda request: arbiter_says(index, "reject", against=against))

    along = table(first, None)
    ready = await along.debate(max_rounds=0)
    assert (ready.debate.spoke[-1].speaker, ready.decision.index) == ("model", first)
    request = along.models["arbiter"].asked[0]
    assert AXES[rough.profile] in request.system
    assert f"profile {first} stands first" in request.turns[0].text

    for missing in (None, " "):
        silent = table(other, missing)
        ready = await silent.debate(max_rounds=0)
        assert (ready.debate.spoke[-1].speaker, ready.decision.index) == ("fallback", first)
        assert "againstAxis" in silent.models["arbiter"].asked[1].turns[-1].text

    for reason, shown in (("It leaves more room.", "It leaves more room."), ("It earns 9 % more.", UNUSABLE_REASON)):
        ready = await table(other, reason).debate(max_rounds=0)
        assert (ready.debate.spoke[-1].speaker, ready.decision.index) == ("model", other)
        said = [thought.text for thought in ready.debate.transcript if thought.role == "arbiter"]
        assert said[-1].endswith(f": {shown}")
        check_transcript(rough, ready.debate)


@pytest.mark.slow
async def test_when_every_move_is_vetoed_the_arbiter_has_no_choice(seat: Seat, wild: Context) -> None:
    ready = await seat(wild, arbiter=lambda request: arbiter_says(1, "reject")).debate(max_rounds=0)
    assert ready.debate.spoke[-1].speaker == "fallback"
    assert ready.decision.index == 0


# -- the owner


@pytest.mark.slow
async def test_the_owner_takes_any_candidate_that_was_not_vetoed(seat: Seat, rough: Context) -> None:
    ready = await seat(rough).debate(max_rounds=0)
    for index, judged in enumerate(ready.debate.rounds[-1].judgments):
        if judged.verdict is Verdict.VETO:
            with pytest.raises(Refused, match="vetoed"):
                chosen_by_owner(rough, ready, index)
            continue
        chosen = chosen_by_owner(rough, ready, index)
        assert chosen.decision.index == index
        assert chosen.decision.decided_by is DecidedBy.OWNER
        assert chosen.debate == ready.debate
        assert outcome_of(chosen) != outcome_of(ready)
    for index in (5, -1):
        with pytest.raises(Refused, match=rf" {index}: .*\b0 to \d"):
            chosen_by_owner(rough, ready, index)


# -- a peer that lies


def lying(
    kind: Kind, lie: Callable[[Any], None], part: str = "ballot"
) -> Callable[[Table], Callable[[Envelope, bytes], bytes | None]]:
    """Changes a message on its way and signs it again, as the sender itself could."""

    def change(table: Table) -> Callable[[Envelope, bytes], bytes | None]:
        def changed(envelope: Envelope, data: bytes) -> bytes | None:
            if envelope.kind is not kind:
                return data
            document = json.loads(data)
            lie(document["payload"]["debate"]["rounds"][-1]["candidates"] if part == "ballot" else document["payload"])
            document["sig"] = ""
            forged = Envelope.model_validate(document)
            return to_bytes(forged.model_copy(update={"sig": table.key.sign(signed_part(forged)).hex()}))

        return changed

    return change


def tell(*place: str | int, by: Callable[[Any], Any]) -> Callable[[Any], None]:
    """Change one field of the ballot, by its own name."""

    def lie(lines: Any) -> None:
        *way, last = (to_camel(one) if isinstance(one, str) else one for one in place)
        for step in way:
            lines = lines[step]
        assert lines[last] is not None
        lines[last] = by(lines[last])

    return lie


LIES: dict[str, Callable[[Any], Any]] = {
    "a longer buffer": tell(2, "stress", "x2", "median_hours", by=lambda hours: 300),
    "one hour more": tell(2, "stress", "x1", "median_hours", by=lambda hours: hours + 1),
    "a smaller chance to leave": tell(2, "stress", "x1", "p_exit_24h", by=lambda share: "1/999"),
    "higher fees": tell(2, "carry", "fees24h_token1", by=lambda fees: "123456789"),
    "no LVR": tell(2, "carry", "lvr24h_token1", by=lambda lvr: "0"),
    "cheaper gas": tell(2, "carry", "cost", "gas_token1", by=lambda gas: "0"),
    "a sooner break-even": tell(4, "carry", "breakeven_hours", by=lambda hours: "1"),
    "a wider range with the old figures": tell(2, "range", "upper", by=lambda tick: tick + 10),
    "a range off the grid": tell(2, "range", "upper", by=lambda tick: tick + 1),
    "a range beyond the ticks": tell(2, "range", "lower", by=lambda tick: -900_000),
    "a range upside down": tell(2, "range", by=lambda band: {"lower": band["upper"], "upper": band["lower"]}),
    "another name": tell(2, "kind", by=lambda kind: "tighten"),
    "a pool nobody surveyed": tell(2, "pool_index", by=lambda index: 7),
    "a pool before the first": tell(2, "pool_index", by=lambda index: -1),
    "outside when inside": tell(2, "in_range", by=lambda inside: not inside),
    "more liquidity": tell(2, "deposit", "liquidity", by=lambda liquidity: liquidity + 1),
    "more capital": tell(2, "capital_token1", by=lambda capital: "1"),
    "a better hold": tell(0, "stress", "x2", "median_hours", by=lambda hours: 300),
    "a free close": tell(1, "carry", "cost", "gas_units", by=lambda units: 0),
    "the same move twice": lambda lines: lines.append({**lines[2], "index": len(lines)}),
    "no close": lambda lines: lines.__delitem__(slice(1, None)),
    "a move called hold": tell(2, "kind", by=lambda kind: "hold"),
    "as many moves as a round may hold": lambda lines: lines.extend(
        {**lines[2], "index": at} for at in range(len(lines), MOST_CANDIDATES)
    ),
}


@pytest.mark.soak(every=3)
@pytest.mark.parametrize("name", LIES)
async def test_the_critic_refuses_what_does_not_recompute(seat: Seat, calm: Context, name: str) -> None:
    table = seat(calm)
    table.transport._change = lying(Kind.PROPOSAL, LIES[name])(table)
    with pytest.raises(Broken):
        await table.debate()
    failed: Any = table.transport.sent[-1].payload
    assert failed.kind is Kind.FLOW_FAILED
    assert failed.at is Role.CRITIC
    assert (await table.kinds())[-1] == "flow_failed"


@pytest.mark.slow
async def test_a_revision_that_repeats_a_range_is_refused(seat: Seat, rough: Context) -> None:
    table = seat(rough)
    first = (await table.debate()).debate.rounds[0].candidates[2]
    assert isinstance(first, Candidate)
    again = json.loads(canonical(Round(candidates=(replace(first, index=0),))))["candidates"][0] | {"index": 2}
    other = seat(rough, settings={"request": "req_fedcba9876543210"})
    other.transport._change = lying(Kind.REVISION, lambda lines: lines.__setitem__(2, again))(other)
    with pytest.raises(Broken, match="before"):
        await other.debate()


PAST_LIES: dict[str, Callable[[Any], Any]] = {
    "a better figure": lambda round_: tell(2, "stress", "x1", "median_hours", by=lambda hours: hours + 1)(
        round_["candidates"]
    ),
    "a milder rule": lambda round_: round_["mechanical"][2].update(verdict="accept"),
    "a milder judgment": lambda round_: round_["judgments"][2].update(verdict="accept"),
    "milder rules and judgments": lambda round_: [
        round_[part][2].update(verdict="accept") for part in ("mechanical", "judgments")
    ],
}


@pytest.mark.soak(every=4)
@pytest.mark.slow
@pytest.mark.parametrize("name", PAST_LIES)
@pytest.mark.parametrize("kind", [Kind.REVISION, Kind.DEADLOCK])
async def test_nobody_rewrites_an_earlier_round(seat: Seat, wild: Context, kind: Kind, name: str) -> None:
    """Neither the Critic of a revision nor the Arbiter takes the past on trust."""
    table = seat(wild, critic=judges("veto"))
    rewrite = lambda payload: PAST_LIES[name](payload["debate"]["rounds"][0])  # noqa: E731
    table.transport._change = lying(kind, rewrite, part="payload")(table)
    with pytest.raises(Broken, match=r"round 0|looser"):
        await table.debate(max_rounds=1)
    failed: Any = table.transport.sent[-1].payload
    assert failed.at is (Role.CRITIC if kind is Kind.REVISION else Role.ARBITER)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Kind.REVISION, Kind.DEADLOCK])
async def test_nobody_argues_longer_than_the_owner_allowed(seat: Seat, wild: Context, kind: Kind) -> None:
    def longer(payload: Any) -> None:
        payload["debate"]["rounds"].insert(0, payload["debate"]["rounds"][0])

    table = seat(wild, critic=judges("veto"))
    table.transport._change = lying(kind, longer, part="payload")(table)
    with pytest.raises(Broken, match="allowed 1"):
        await table.debate(max_rounds=1)


# -- the table


@pytest.mark.slow
async def test_thoughts_are_narration_and_nothing_else(seat: Seat, rough: Context) -> None:
    with_them = seat(rough)
    heard = await with_them.debate()
    without = seat(rough, settings={"change": no_thoughts, "request": "req_00000000000000aa"})
    unheard = await without.debate()
    assert without.thoughts == []
    assert tuple(with_them.thoughts) == tuple(print_thoughts(rough, heard.debate))
    assert unheard == heard


@pytest.mark.slow
async def test_the_transcript_is_the_same_each_time(seat: Seat, rough: Context) -> None:
    runs = [await seat(rough).debate() for _ in range(3)]
    assert runs[0].debate.transcript == runs[1].debate.transcript == runs[2].debate.transcript


@pytest.mark.slow
async def test_garbage_on_the_table_is_nobodys_business(seat: Seat, calm: Context) -> None:
    table = seat(calm)
    for role in TURN:
        for junk in (b"", b"\xff" * 100, b"{}", b"[" * 100_000):
            await InProcess.send(table.transport, role, junk)
    assert outcome_of(await table.debate()) == outcome_of(await seat(calm).debate())


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Kind.CONTEXT_OBSERVED, Kind.PROPOSAL, Kind.PLAN_READY])
async def test_a_lost_message_ends_the_debate_and_the_record_says_so(seat: Seat, calm: Context, kind: Kind) -> None:
    def lossy(envelope: Envelope, data: bytes) -> bytes | None:
        return None if envelope.kind is kind else data

    table = seat(calm, settings={"change": lossy, "patience": 2.0})
    with pytest.raises(Unavailable, match="within 2 s"):
        await table.debate()
    *_, last = await table.said()
    assert last.kind == Kind.FLOW_FAILED
    assert (last.payload["from"], last.payload["payload"]["error"]) == ("cli", "unavailable")  # type: ignore[call-overload, index]
    assert (await table.journal.verify()).ok


@pytest.mark.slow
async def test_everything_said_is_in_the_journal_and_it_verifies(seat: Seat, rough: Context) -> None:
    table = seat(rough, scout=lambda request: scout_says())
    await table.debate()
    verdict = await table.journal.verify()
    assert verdict.ok
    structural = [one for one in table.transport.sent if one.kind is not Kind.AGENT_THOUGHT]
    kept = [entry for entry in await table.said() if entry.kind != "model_attempt"]
    assert [one.id for one in structural] == [entry.payload["id"] for entry in kept]
    assert verdict.entries == len(kept) + len(table.attempts)
    for one, before in zip(structural[1:], structural, strict=False):
        assert one.cause == before.id


@pytest.mark.slow
async def test_the_plan_people_read(seat: Seat, calm: Context) -> None:
    ready = await seat(calm).debate()
    view = build_plan(REQUEST, calm, ready)[0]
    assert view.recommended.index == ready.decision.index
    assert [one.index for one in view.candidates] == list(range(len(ready.debate.rounds[-1].candidates)))
    assert view.hash == outcome_of(ready)
