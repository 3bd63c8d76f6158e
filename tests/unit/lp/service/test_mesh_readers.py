"""What the journal's readers show of a debate held elsewhere: the message that was checked, in harmless words."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.examples import mark_all_but
from tests.wire.debating import observed
from tests.wire.mesh_side import REQUEST, START, Side, a_mesh, archive_of, deaf, forged, kinds
from zuno.adapters.clock.system import unix_millis
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.store.memory import MemoryStore
from zuno.journal.journal import ChainedJournal
from zuno.kernel.errors import Broken, NotFound, Refused
from zuno.kernel.view import sanitise
from zuno.lp.mesh.envelope import MESSAGE_KINDS, Envelope
from zuno.lp.mesh.message_handler import EnvelopeSigner, journal_envelope
from zuno.lp.mesh.peer import OutgoingMessage
from zuno.lp.mesh.running import AGENTS
from zuno.lp.model.ballot import PlanVerdict, Verdict
from zuno.lp.model.debate import AgentThought, Context, FlowFailed, PlanReady, Proposal, Role, Thought
from zuno.lp.service.archive import Archive
from zuno.lp.service.mesh_debate import DISBELIEVED, OwnerInbox
from zuno.lp.service.plan_record import decided_hash
from zuno.lp.service.plan_replay import ReplayDebateRunner
from zuno.lp.service.plan_view import PlanView
from zuno.lp.service.recommend import Waiting, record_plan
from zuno.lp.service.recorded_request import RecordedRequest, load_context


def other(ready: PlanReady) -> PlanReady:
    """Another decision of the same debate, with something to say."""
    index = (ready.decision.index + 1) % 2
    said = [thought.model_copy(update={"text": "Trust me."}) for thought in ready.debate.transcript]
    debate = ready.debate.model_copy(update={"transcript": tuple(said)})
    decision = replace(ready.decision, index=index, verdict=PlanVerdict.APPROVE)
    return ready.model_copy(update={"decision": decision, "debate": debate, "confidence": 1.0})


async def heard(side: Side) -> Envelope:
    entry = next(entry for entry in await side.entries() if entry.kind == "plan_ready")
    return Envelope.model_validate(dict(entry.payload))


def signed(side: Side, role: Role, ready: PlanReady, seq: int) -> Envelope:
    """Under the right key, in the right role."""
    mouth = EnvelopeSigner(role, side.keys[role], unix_millis)
    mouth.counts[REQUEST] = seq
    return mouth.envelope(REQUEST, OutgoingMessage(Role.CLI, ready), None)


async def all_the_same(side: Side, folder: Path, plan: PlanView) -> None:
    """Every reader shows this plan and no other."""
    archive = archive_of(side, folder)
    assert await archive.plan(plan.plan_id) == plan
    for reference in (REQUEST, plan.plan_id):
        shown = await archive.why(reference)
        assert (shown.plan, shown.transcript, shown.failed) == (plan, plan.transcript, None)
        replayed = await archive.replay(reference)
        assert (replayed.identical, replayed.hash, replayed.differences) == (True, plan.hash, ())
    decided = await archive.decision(plan.plan_id)
    assert (decided.hash, decided.chosen.index) == (plan.hash, plan.recommended.index)
    assert [line.plan_id for line in (await archive.plans()).plans] == [plan.plan_id]


LATE: dict[str, Callable[[Side, Envelope], Envelope]] = {
    "another": lambda side, first: signed(side, Role.CRITIC, other(_ready_of(first)), first.seq + 1),
    "another under the same id": lambda side, first: signed(side, Role.CRITIC, other(_ready_of(first)), first.seq),
    "the arbiter's": lambda side, first: signed(side, Role.ARBITER, other(_ready_of(first)), 0),
    "the same once more": lambda side, first: first,
    "a failure": lambda side, first: EnvelopeSigner(Role.SCOUT, side.keys[Role.SCOUT], unix_millis).envelope(
        REQUEST, OutgoingMessage(Role.CLI, FlowFailed(at=Role.SCOUT, error="broken", reason="Never mind.")), None
    ),
}


def _ready_of(envelope: Envelope) -> PlanReady:
    assert isinstance(envelope.payload, PlanReady)
    return envelope.payload


WHEN = ("before it is recorded", "afterwards")
ARRIVALS = [(what, WHEN[(place + turn) % 2]) for place, what in enumerate(LATE) for turn in range(2)]


@pytest.mark.soak(every=5)
@pytest.mark.slow
@pytest.mark.parametrize("arrival", mark_all_but(2, ARRIVALS, pytest.mark.soak), ids=", ".join)
async def test_what_arrives_after_the_check_is_never_shown(tmp_path: Path, arrival: tuple[str, str]) -> None:
    """Whoever hears it, another command line perhaps, writes it down: that makes it no plan."""
    what, when = arrival
    async with a_mesh(tmp_path) as side:
        end = await side.room.debate(START, deaf)
        late = LATE[what](side, await heard(side))
        if when == "before it is recorded":
            await journal_envelope(side.journal, late)
        plan = await record_plan(side.room, end, None)
        if when == "afterwards":
            await journal_envelope(side.journal, late)
        await all_the_same(side, tmp_path, plan)


@pytest.mark.slow
async def test_what_a_peer_says_after_the_end_comes_by_the_wire_and_changes_nothing(tmp_path: Path) -> None:
    async with a_mesh(tmp_path) as side:
        end = await side.room.debate(START, deaf)
        plan = await record_plan(side.room, end, None)
        await side.peers[Role.CRITIC].peer.send_message(REQUEST, OutgoingMessage(Role.CLI, other(end.ready)), None)
        async with asyncio.timeout(20):
            while (await kinds(side)).count("plan_ready") < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        await all_the_same(side, tmp_path, plan)


@pytest.mark.slow
async def test_what_arrives_after_a_lie_does_not_explain_it_away(tmp_path: Path) -> None:
    def lie(ready: PlanReady) -> PlanReady:
        return ready.model_copy(update={"confidence": 1.0})

    async with a_mesh(tmp_path, twists={Role.CRITIC: forged(lie)}) as side:
        with pytest.raises(Broken, match=Role.CRITIC):
            await side.room.debate(START, deaf)
        told = (await archive_of(side).why(REQUEST)).failed
        for what in LATE:
            await journal_envelope(side.journal, LATE[what](side, await heard(side)))
        shown = await archive_of(side).why(REQUEST)
        assert (shown.plan, shown.transcript, shown.failed) == (None, (), told)


@pytest.mark.soak(every=2)
@pytest.mark.slow
@pytest.mark.parametrize("what", ["another", "another under the same id"])
async def test_a_refused_choice_leaves_the_ballot_that_was_checked(tmp_path: Path, what: str) -> None:
    async with a_mesh(tmp_path) as side:
        end = await side.room.debate(START, deaf)
        vetoed = next(one.index for one in end.ready.debate.rounds[-1].judgments if one.verdict is Verdict.VETO)
        with pytest.raises(Refused, match=rf"\b{vetoed} .*\bvetoed\b.*`zuno why {REQUEST}`"):
            await record_plan(side.room, end, vetoed)
        await journal_envelope(side.journal, LATE[what](side, await heard(side)))
        shown = await archive_of(side).why(REQUEST)
        assert shown.plan is not None
        assert shown.plan.candidates[vetoed].verdict == "veto"
        assert shown.plan.hash == decided_hash(await load_context(side.journal, end.ready.debate.context), end.ready)
        assert (await archive_of(side).plans()).plans == ()
        plan = await record_plan(side.room, await side.room.rejoin(deaf), None)
        await all_the_same(side, tmp_path, plan)


@pytest.mark.soak
async def test_a_join_beside_the_owners_own_choice_makes_one_plan(tmp_path: Path) -> None:
    async with a_mesh(tmp_path) as side:
        end = await side.room.debate(START, deaf)
        joined = await side.room.rejoin(deaf)
        assert joined == end
        ballot = end.ready.debate.rounds[-1]
        free = next(one.index for one in ballot.judgments if one.verdict is not Verdict.VETO)
        plan = await record_plan(side.room, joined, None)
        assert await record_plan(side.room, end, None) == plan  # the same is found, not made again
        with pytest.raises(Broken, match=f"{REQUEST} has {plan.plan_id}"):
            await record_plan(side.room, end, free)
        assert (await kinds(side)).count("plan") == 1
        await all_the_same(side, tmp_path, plan)


# -- what reaches a screen

FOUL = "\x1b[2J\u202egnp.exe\r\n" + "x" * 1_900
LONG = FOUL * 5


def clean(text: str) -> bool:
    return text.isprintable() and 0 < len(text) <= 2_000


@pytest.mark.slow
async def test_what_a_peer_writes_is_harmless_where_it_is_shown(tmp_path: Path) -> None:
    """Why a model was not heard, and what sources note, are the peers' own words, which no rule forbids."""

    def change(ready: PlanReady) -> PlanReady:
        spoke = tuple(one.model_copy(update={"why": FOUL, "model": FOUL}) for one in ready.debate.spoke)
        return ready.model_copy(update={"debate": ready.debate.model_copy(update={"spoke": spoke})})

    context = await observed(tmp_path / "sim")
    notes = tuple(one.model_copy(update={"notes": (LONG,)}) for one in context.sources)
    foul = context.model_copy(update={"sources": notes})
    async with a_mesh(tmp_path, foul, twists={Role.CRITIC: forged(change)}) as side:
        plan = await record_plan(side.room, await side.room.debate(START, deaf), None)
        shown = await archive_of(side).why(REQUEST)
    assert shown.plan == plan
    texts = [one.reason for one in (*plan.candidates, *plan.earlier, plan.recommended)]  # type: ignore[attr-defined]
    texts += [one.text for one in shown.transcript]
    texts += [text for one in plan.voices for text in (one.why, one.model or "")]
    texts += [note for one in plan.sources for note in one.notes]
    assert any("gnp.exe" in text for text in texts)
    assert [text for text in texts if not clean(text)] == []


@pytest.mark.soak(every=4)
@pytest.mark.slow
@pytest.mark.parametrize("words", [FOUL, "It returns 900 % a year.", "Fees of {c9.fees_24h}.", "Sign it now."])
@pytest.mark.parametrize("place", ["reasons", "transcript"])
async def test_a_plan_whose_words_cite_no_facts_is_not_believed(tmp_path: Path, place: str, words: str) -> None:
    def change(ready: PlanReady) -> PlanReady:
        rounds = tuple(
            one.model_copy(update={"judgments": tuple(replace(said, reason=words) for said in one.judgments)})
            for one in ready.debate.rounds
        )
        transcript = tuple(one.model_copy(update={"text": words}) for one in ready.debate.transcript)
        said = {"rounds": rounds} if place == "reasons" else {"transcript": transcript}
        return ready.model_copy(update={"debate": ready.debate.model_copy(update=said)})

    async with a_mesh(tmp_path, twists={Role.CRITIC: forged(change)}) as side:
        with pytest.raises(Broken):
            await side.room.debate(START, deaf)


def test_what_is_shown_is_bounded_and_nothing_stays_nothing() -> None:
    assert clean(sanitise(LONG))
    assert len(sanitise(LONG)) == 2_000
    assert (sanitise(""), sanitise("\x1b"), sanitise("It is so.")) == ("", "?", "It is so.")


@pytest.mark.slow
async def test_a_failure_in_a_peer_s_own_words_is_harmless(tmp_path: Path) -> None:
    def twist(envelope: Envelope, says: Sequence[OutgoingMessage]) -> Sequence[OutgoingMessage]:
        return [OutgoingMessage(Role.CLI, FlowFailed(at=Role.SCOUT, error="refused", reason=FOUL))]

    async with a_mesh(tmp_path, twists={Role.SCOUT: twist}) as side:
        with pytest.raises(Refused) as raised:
            await side.room.debate(START, deaf)
        failed = (await archive_of(side).why(REQUEST)).failed
        with pytest.raises(Refused) as replayed:
            await archive_of(side).replay(REQUEST)
    assert failed is not None
    assert clean(failed)
    assert clean(str(raised.value))
    assert str(replayed.value).isprintable()


@pytest.mark.slow
async def test_a_disbelief_that_quotes_the_lie_is_harmless(tmp_path: Path) -> None:
    context = await observed(tmp_path / "sim")
    scene = context.scenes[0]
    assert scene.position is not None
    named = replace(scene.pool, id=LONG)  # type: ignore[arg-type]
    lied = scene.model_copy(update={"pool": named, "position": replace(scene.position, pool=named)})
    async with a_mesh(tmp_path, context.model_copy(update={"scenes": (lied,)})) as side:
        with pytest.raises(Broken, match=r"gnp\.exe") as raised:
            await side.room.debate(START, deaf)
        note = next(entry.payload for entry in await side.entries() if entry.kind == DISBELIEVED)
        shown = await archive_of(side).why(REQUEST)
    assert shown.failed is not None
    texts = (str(raised.value), str(note["why"]), shown.failed)
    assert [text for text in texts if not clean(text) or len(text) > 700] == []


async def test_thoughts_are_harmless_to_whoever_listens(tmp_path: Path) -> None:
    key, ear, listened = KeyFile(tmp_path / "scout.key"), OwnerInbox(), list[Thought | Waiting]()
    key.ensure()
    ear.listeners[REQUEST] = listened.append
    thought = Thought(role=Role.SCOUT, round=0, seq=0, text=FOUL, speaker="model")
    say = OutgoingMessage(Role.CLI, AgentThought(thought=thought))
    await ear.hear(EnvelopeSigner(Role.SCOUT, key, unix_millis).envelope(REQUEST, say, None))
    (said,) = listened
    assert isinstance(said, Thought)
    assert clean(said.text)
    assert "gnp.exe" in said.text


def archive_with(own: ChainedJournal, *peers: ChainedJournal) -> Archive:
    async def opened() -> ChainedJournal:
        return own

    async def open_replay(recorded: RecordedRequest, context: Context) -> ReplayDebateRunner:
        raise AssertionError("nothing is replayed")

    return Archive(opened, open_replay, lambda: "test", lambda: peers)


async def test_in_a_peers_home_it_is_told_what_that_peer_saw(tmp_path: Path) -> None:
    async with a_mesh(tmp_path) as side:
        plan = await record_plan(side.room, await side.room.debate(START, deaf), None)
        took_part = [role for role in AGENTS if await side.journals[role].latest(1, request_id=REQUEST)]
        assert {Role.SCOUT, Role.STRATEGIST, Role.CRITIC} <= {*took_part}
        empty = ChainedJournal(MemoryStore(), side.keys[Role.CLI], code=lambda: "test", now=unix_millis)
        for role in took_part:
            journal = side.journals[role]
            own = [entry.kind async for entry in journal.entries(request_id=REQUEST)]
            # A peer's folder is a home to look at, and a home where only peers live asks them.
            for archive in (archive_with(journal), archive_with(empty, journal)):
                shown = await archive.why(REQUEST)
                assert (shown.seen_by, shown.plan, shown.failed) == ((role.value,), None, None)
                assert [line.kind for line in shown.messages] == [kind for kind in own if kind in MESSAGE_KINDS]
                assert shown.transcript
                assert shown.transcript == plan.transcript[: len(shown.transcript)]
                assert [source.feed for source in shown.sources] == [source.feed for source in plan.sources]
        everybody = await archive_with(empty, *(side.journals[role] for role in took_part)).why(REQUEST)
        assert everybody.seen_by == tuple(role.value for role in took_part)
        assert everybody.transcript == plan.transcript
        with pytest.raises(NotFound):
            await archive_with(empty).why(REQUEST)


async def test_a_peer_shows_no_words_that_do_not_hold(tmp_path: Path) -> None:
    def lie(envelope: Envelope, says: Sequence[OutgoingMessage]) -> Sequence[OutgoingMessage]:
        (say,) = says
        assert isinstance(say.payload, Proposal)
        said = [one.model_copy(update={"text": "It returns 900 % a year."}) for one in say.payload.debate.transcript]
        debate = say.payload.debate.model_copy(update={"transcript": tuple(said)})
        return [OutgoingMessage(say.to, say.payload.model_copy(update={"debate": debate}))]

    async with a_mesh(tmp_path, twists={Role.STRATEGIST: lie}) as side:
        with pytest.raises(Broken):
            await side.room.debate(START, deaf)
        shown = await archive_with(side.journals[Role.CRITIC]).why(REQUEST)
        assert (shown.seen_by, shown.transcript) == (("critic",), ())


async def test_a_peer_that_ended_a_debate_says_why(tmp_path: Path) -> None:
    def fail(envelope: Envelope, says: Sequence[OutgoingMessage]) -> Sequence[OutgoingMessage]:
        return [OutgoingMessage(Role.CLI, FlowFailed(at=Role.CRITIC, error="broken", reason="no figures"))]

    async with a_mesh(tmp_path, twists={Role.CRITIC: fail}) as side:
        with pytest.raises(Broken):
            await side.room.debate(START, deaf)
        shown = await archive_with(side.journals[Role.CRITIC]).why(REQUEST)
        assert (shown.seen_by, shown.failed) == (("critic",), "no figures")
