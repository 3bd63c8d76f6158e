"""The owner's side of a debate held elsewhere: what is believed, what is not, and what is left on record."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tests.wire.debating import Table, observed, shaken, surveyed
from tests.wire.mesh_side import REQUEST, START, Side, a_mesh, archive_of, deaf, forged, kinds
from zuno.adapters.chain.sim.chain import SimChain
from zuno.adapters.chain.sim.world_file import SimFile
from zuno.adapters.clock.system import unix_millis
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.mesh.folder import MeshFiles
from zuno.amm.model import Block
from zuno.kernel.canonical import canonical
from zuno.kernel.errors import Broken, Malformed, Refused, Unavailable
from zuno.kernel.units import Seconds, Wei
from zuno.lp.mesh.delivery import DeliveryLimits
from zuno.lp.mesh.envelope import Envelope
from zuno.lp.mesh.message_handler import EnvelopeSigner, journal_envelope
from zuno.lp.mesh.peer import OutgoingMessage
from zuno.lp.mesh.running import AGENTS
from zuno.lp.model.ballot import DecidedBy, Judgment, PlanVerdict, Verdict
from zuno.lp.model.debate import Context, FlowCreateStart, FlowFailed, FlowStart, PlanReady, Role, Thought
from zuno.lp.model.market import GasQuote
from zuno.lp.ports.chain import Chain
from zuno.lp.service import mesh_debate
from zuno.lp.service.mesh_debate import DISBELIEVED
from zuno.lp.service.recommend import Waiting, record_plan


@pytest.mark.slow
async def test_an_honest_plan_is_believed_and_its_thoughts_are_heard(tmp_path: Path) -> None:
    heard: list[Any] = []
    async with a_mesh(tmp_path) as side:
        end = await side.room.debate(START, heard.append)
        plan = await record_plan(side.room, end, None)
        assert await kinds(side) == ["flow_start", "plan_ready", "plan", "decision_view"]
        thoughts = [event for event in heard if isinstance(event, Thought)]
        assert {thought.role for thought in thoughts} >= {Role.SCOUT, Role.STRATEGIST, Role.CRITIC}
        assert heard[-1] == Waiting(())  # nobody is asked while it is checked
        table = Table(tmp_path, await observed(tmp_path / "sim"))
        same = await table.plan()
        assert (plan.hash, plan.transcript) == (same.hash, same.transcript)


async def refused(side: Side, peer: str, why: str, start: FlowStart | FlowCreateStart = START) -> None:
    """The lie is told with whoever signed it, on record, and never shown as a plan."""
    with pytest.raises(Broken, match=f"{peer}'s plan.*{why}"):
        await side.room.debate(start, deaf)
    entries = await side.entries()
    assert [entry.kind for entry in entries] == [start.kind, "plan_ready", DISBELIEVED, "flow_failed"]
    assert entries[2].payload["peer"] == peer
    archive = archive_of(side)
    shown = await archive.why(REQUEST)
    assert (shown.plan, shown.transcript) == (None, ())
    assert shown.failed is not None
    assert shown.failed.startswith(f"The {peer}'s plan")
    with pytest.raises(Refused, match=rf"{REQUEST} .*\breplay\b"):
        await archive.replay(REQUEST)
    with pytest.raises(Broken, match=f"{peer}'s plan"):
        await side.room.rejoin(deaf)  # nor the second time
    ended = [entry.payload for entry in await side.entries() if entry.kind == "flow_failed"]
    assert [one["seq"] for one in ended] == [1, 2]
    assert len({str(one["id"]) for one in ended}) == 2


@pytest.mark.slow
async def test_a_scout_that_lies_about_the_position(tmp_path: Path) -> None:
    context = await observed(tmp_path / "sim")
    scene = context.scenes[0]
    assert scene.position is not None
    lied = scene.model_copy(update={"position": replace(scene.position, liquidity=scene.position.liquidity * 2)})  # type: ignore[arg-type]
    lie = context.model_copy(update={"scenes": (lied,)})
    async with a_mesh(tmp_path, lie) as side:
        await refused(side, "critic", "with a context it says is the scout's, position 1 was not so at block")


@pytest.mark.slow
async def test_a_scout_that_lies_about_the_price(tmp_path: Path) -> None:
    """The position's own pool lies with it, so that nothing in the context contradicts it: only the chain does."""
    context = await observed(tmp_path / "sim")
    scene = context.scenes[0]
    assert scene.position is not None
    cheaper = replace(scene.pool, tick=scene.pool.tick - 1)  # type: ignore[arg-type]
    lied = scene.model_copy(update={"pool": cheaper, "position": replace(scene.position, pool=cheaper)})
    async with a_mesh(tmp_path, context.model_copy(update={"scenes": (lied,)})) as side:
        await refused(side, "critic", r"pool 0x[0-9a-f]{64} was not so at block")


class Onward(SimChain):
    """The same chain some blocks later, of which the owner's node knows and the Scout does not speak."""

    def __init__(self, home: Path, blocks: int, seconds: int) -> None:
        super().__init__(SimFile(home))
        self._by = blocks, seconds

    async def head(self) -> Block:
        now = await super().head()
        blocks, seconds = self._by
        return replace(now, number=now.number + blocks, timestamp=Seconds(now.timestamp + seconds))


@pytest.mark.slow
async def test_a_scout_that_speaks_of_an_old_block(tmp_path: Path) -> None:
    """Everything is as it was at that block, so that only its age is wrong."""
    async with a_mesh(tmp_path) as side:
        side.room = replace(side.room, chain_of=lambda name: Onward(tmp_path / "sim", 90, 1_080))
        await refused(
            side, "critic", r"is 1080 s older than the chain's newest; \d+ s after the question at most 9\d\d s"
        )


@pytest.mark.slow
async def test_a_debate_that_took_its_time_is_believed_for_as_long(tmp_path: Path) -> None:
    """What was asked an hour ago may stand on a block of an hour ago, and not on one of two."""
    async with a_mesh(tmp_path) as side:
        opening = await side.room.endpoint.running.peer.send_message(REQUEST, OutgoingMessage(Role.SCOUT, START), None)
        later = replace(side.room, now=lambda: opening.ts + 3_600_000, patience=20.0)
        for seconds, believed in ((3_600, True), (4_500, True), (4_501, False), (7_200, False)):
            room = replace(later, chain_of=lambda name, past=seconds: Onward(tmp_path / "sim", past // 12, past))  # type: ignore[misc]
            async with asyncio.timeout(20):
                while await room._end() is None:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
            if believed:
                await room.rejoin(deaf)
            else:
                with pytest.raises(Broken, match=r"3600 s.*4500 s"):
                    await room.rejoin(deaf)


@pytest.mark.slow
async def test_a_scout_that_speaks_of_a_block_to_come(tmp_path: Path) -> None:
    async with a_mesh(tmp_path) as side:
        side.room = replace(side.room, chain_of=lambda name: Onward(tmp_path / "sim", -10, -120))
        await refused(side, "critic", "is from the future: 120 s after the chain's newest")


@pytest.mark.slow
async def test_a_node_that_is_a_little_behind_settles_nothing(tmp_path: Path) -> None:
    async with a_mesh(tmp_path) as side:
        behind = replace(side.room, chain_of=lambda name: Onward(tmp_path / "sim", -1, -12))
        with pytest.raises(Unavailable, match="12 s behind"):
            await behind.debate(START, deaf)
        assert await kinds(side) == ["flow_start", "plan_ready"]
        await side.room.rejoin(deaf)  # it has caught up


@pytest.mark.slow
async def test_a_scout_that_speaks_of_a_block_nobody_has(tmp_path: Path) -> None:
    context = await observed(tmp_path / "sim")
    lie = context.model_copy(update={"block": replace(context.block, number=context.block.number + 1_000_000)})
    async with a_mesh(tmp_path, lie) as side:
        await refused(side, "critic", "")


@pytest.mark.slow
async def test_a_scout_that_looks_at_another_position_than_was_asked_for(tmp_path: Path) -> None:
    async with a_mesh(tmp_path, await observed(tmp_path / "sim", 2)) as side:
        await refused(side, "critic", "asked was about 1")


def no_chain(name: str) -> Chain:
    raise AssertionError(f"the owner opened {name}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "why"),
    [({"chain": "base"}, "another chain, profile"), ({"seeded": False}, "prices on sim are from a seeded series")],
    ids=["chain", "seeded"],
)
async def test_a_context_of_something_else_opens_no_chain(tmp_path: Path, changes: dict[str, Any], why: str) -> None:
    context = await observed(tmp_path / "sim")
    async with a_mesh(tmp_path, context.model_copy(update=changes)) as side:
        side.room = replace(side.room, chain_of=no_chain)
        await refused(side, "critic", f"with a context it says is the scout's, .*{why}")


@pytest.mark.slow
async def test_no_more_pools_are_read_than_were_asked_about(tmp_path: Path) -> None:
    context = await observed(tmp_path / "sim")
    async with a_mesh(tmp_path, context.model_copy(update={"scenes": context.scenes * 2})) as side:
        side.room = replace(side.room, chain_of=no_chain)
        await refused(side, "critic", "the context is not of one position")


@pytest.mark.slow
async def test_only_the_chain_that_was_asked_about_is_opened(tmp_path: Path) -> None:
    opened: list[str] = []

    def chain_of(name: str) -> Chain:
        opened.append(name)
        return SimChain(SimFile(tmp_path / "sim"))

    async with a_mesh(tmp_path) as side:
        await replace(side.room, chain_of=chain_of).debate(START, deaf)
        assert opened == ["sim"]


@pytest.mark.soak(every=2)
@pytest.mark.slow
@pytest.mark.parametrize("error", [ValueError("x" * 64), ZeroDivisionError(), IndexError(), Malformed("no word")])
async def test_figures_no_chain_can_be_asked_for_are_a_lie(tmp_path: Path, error: Exception) -> None:
    class Choking(SimChain):
        async def witness(self, *ignored: Any) -> Any:
            raise error

    said = "no word" if isinstance(error, Malformed) else f"no chain can be asked for .{type(error).__name__}"
    async with a_mesh(tmp_path) as side:
        side.room = replace(side.room, chain_of=lambda name: Choking(SimFile(tmp_path / "sim")))
        await refused(side, "critic", said)


@pytest.mark.slow
async def test_a_token_of_the_peers_own_invention_is_not_computed_with(tmp_path: Path) -> None:
    """Or the owner would be told that their amount has too many decimals: the chain is asked first."""
    context = await surveyed(tmp_path / "sim", ("USDC", "1000.000001"))
    assert context.wish is not None
    start = FlowCreateStart(chain="sim", wish=context.wish, profile=context.profile, max_rounds=context.max_rounds)
    first, *others = context.scenes

    def change(ready: PlanReady) -> PlanReady:
        return ready.model_copy(update={"debate": ready.debate.model_copy(update={"context": stored[0]})})

    stored: list[str] = []
    async with a_mesh(tmp_path, context, twists={Role.CRITIC: forged(change)}) as side:
        coarse = replace(first.pool, token1=replace(first.pool.token1, decimals=2))
        lie = context.model_copy(update={"scenes": (first.model_copy(update={"pool": coarse}), *others)})
        stored.append(await side.journals[Role.CRITIC].put_bundle(canonical(lie)))
        await refused(side, "critic", r"pool 0x[0-9a-f]{64} was not so at block", start)


@pytest.mark.slow
@pytest.mark.parametrize("field", ["index", "verdict"])
async def test_a_critic_that_forges_the_decision(tmp_path: Path, field: str) -> None:
    def change(ready: PlanReady) -> PlanReady:
        said = ready.decision
        other = {"index": (said.index + 1) % 2, "verdict": PlanVerdict.APPROVE}[field]
        assert getattr(said, field) != other
        return ready.model_copy(update={"decision": replace(said, **{field: other})})  # type: ignore[arg-type]

    async with a_mesh(tmp_path, twists={Role.CRITIC: forged(change)}) as side:
        await refused(side, "critic", "")


@pytest.mark.slow
async def test_a_critic_that_is_milder_than_the_rules(tmp_path: Path) -> None:
    """Everything is accepted, the rules' own words are bent with it, and what they forbid is chosen."""

    def change(ready: PlanReady) -> PlanReady:
        last = ready.debate.rounds[-1]
        vetoed = next(one.index for one in last.judgments if one.verdict is Verdict.VETO)
        mild = tuple(Judgment(one.index, Verdict.ACCEPT, "fine") for one in last.judgments)
        bent = last.model_copy(update={"judgments": mild, "mechanical": mild})
        debate = ready.debate.model_copy(update={"rounds": (*ready.debate.rounds[:-1], bent)})
        decision = replace(ready.decision, index=vetoed, verdict=PlanVerdict.APPROVE, cautions=())
        return ready.model_copy(update={"debate": debate, "decision": decision})

    async with a_mesh(tmp_path, twists={Role.CRITIC: forged(change)}) as side:
        await refused(side, "critic", "the rules' verdicts of round 0 do not recompute")


@pytest.mark.slow
@pytest.mark.parametrize(("times", "why"), [("2", "by the rules it is 0"), ("6/5", "was vetoed")])
async def test_an_arbiter_that_takes_what_was_vetoed(tmp_path: Path, times: str, why: str) -> None:
    """Where every move was vetoed, and where one of them was."""
    rough = shaken(await observed(tmp_path / "sim"), Fraction(times))

    def change(ready: PlanReady) -> PlanReady:
        assert ready.decision.decided_by is DecidedBy.ARBITER
        last = ready.debate.rounds[-1]
        vetoed = next(one.index for one in last.judgments if one.verdict is Verdict.VETO)
        taken = replace(ready.decision, index=vetoed, verdict=PlanVerdict.APPROVE_WITH_CAUTION)
        return ready.model_copy(update={"decision": taken})

    start = START.model_copy(update={"max_rounds": 0})
    async with a_mesh(
        tmp_path, rough.model_copy(update={"max_rounds": 0}), twists={Role.ARBITER: forged(change)}, own=rough
    ) as side:
        await refused(side, "arbiter", why, start)


def with_scene(context: Context, **changes: Any) -> Context:
    return context.model_copy(update={"scenes": (context.scenes[0].model_copy(update=changes),)})


def lie_about(context: Context, figure: str) -> Context:
    """A Scout under its own key, everybody after it honest."""
    (scene,) = context.scenes
    assert scene.fees is not None
    assert scene.native_token1 is not None
    match figure:
        case "no volatility":
            return shaken(context, Fraction(0))
        case "a third of the volatility":
            return shaken(context, Fraction(1, 3))
        case "hours that undo each other":
            undone = [step for move in scene.returns_nano[::2] for step in (move, -move)]
            return with_scene(context, returns_nano=tuple(undone))
        case "fee growth":
            grown = replace(
                scene.fees,
                growth0_x128=scene.fees.growth0_x128 * 1_000,
                growth1_x128=scene.fees.growth1_x128 * 1_000,
            )
            return with_scene(context, fees=grown)
        case "fee window":
            return with_scene(context, fees=replace(scene.fees, seconds=60))
        case "gas":
            return with_scene(context, gas=GasQuote(Wei(0), Wei(0)))
        case "native price":
            return with_scene(context, native_token1=scene.native_token1 / 20)
        case "reference price":
            return with_scene(context, reference_gap=Fraction(1, 20))
    raise AssertionError(figure)


@pytest.mark.soak(every=4)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("figure", "why"),
    [
        ("no volatility", "the volatility is 0 times"),
        ("a third of the volatility", "the volatility is 0.333 times"),
        ("hours that undo each other", "the size of daily moves is"),
        ("fee growth", "the fee growth is 1e.03 times"),
        ("fee window", "measured over 60 s"),
        ("gas", "the price of gas is 0 times"),
        ("native price", "the native coin's price is 0.05 times"),
        ("reference price", "the reference price is"),
    ],
)
async def test_a_scout_that_lies_about_what_no_block_holds(tmp_path: Path, figure: str, why: str) -> None:
    async with a_mesh(tmp_path, lie_about(await observed(tmp_path / "sim"), figure)) as side:
        await refused(side, "critic", why)


@pytest.mark.slow
async def test_an_absurd_yield_is_refused_where_nobody_can_check_it(tmp_path: Path) -> None:
    seen = await observed(tmp_path / "sim")
    async with a_mesh(tmp_path, lie_about(seen, "fee growth"), own=with_scene(seen, fees=None)) as side:
        await refused(side, "critic", "in a year, and more than 1,000 %")


@pytest.mark.slow
async def test_a_figure_a_little_off_caps_the_verdict_for_every_reader(tmp_path: Path) -> None:
    """The peers' own word stays as they signed it; the owner's plan is another, and stays so when it is joined again
    with better sources."""
    seen = await observed(tmp_path / "sim")
    unread = with_scene(seen, returns_nano=(), reference_gap=None, gas=None, fees=None)
    async with a_mesh(tmp_path, shaken(seen, Fraction(5, 4)), own=unread) as side:
        end = await side.room.debate(START, deaf)
        assert [doubt.partition(" is ")[0] for doubt in end.doubts] == [
            "the fee growth",
            "the price of gas",
            "the volatility",
            "the variance",
            "the reference price",
        ]
        plan = await record_plan(side.room, end, None)
        assert plan.verdict == "approve_with_caution"
        assert set(end.doubts) <= set(plan.cautions)
        archive = archive_of(side, tmp_path)
        assert await archive.plan(plan.plan_id) == plan
        assert (await archive.replay(REQUEST)).identical
        assert (await archive.decision(plan.plan_id)).hash == plan.hash
        assert await record_plan(side.room, replace(end, doubts=()), None) == plan


@pytest.mark.slow
async def test_a_context_that_is_none(tmp_path: Path) -> None:
    """The bytes are what their hash says, and mean nothing."""
    stored: list[str] = []

    def twist(envelope: Envelope, says: Sequence[OutgoingMessage]) -> Sequence[OutgoingMessage]:
        (say,) = says
        assert isinstance(say.payload, PlanReady)
        debate = say.payload.debate.model_copy(update={"context": stored[0]})
        return [OutgoingMessage(say.to, say.payload.model_copy(update={"debate": debate}))]

    async with a_mesh(tmp_path, twists={Role.CRITIC: twist}) as side:
        stored.append(await side.journals[Role.CRITIC].put_bundle(canonical({"world": "flat"})))
        await refused(side, "critic", "its context cannot be read")


async def test_a_failed_flow_is_the_error_it_names(tmp_path: Path) -> None:
    def twist(envelope: Envelope, says: Sequence[OutgoingMessage]) -> Sequence[OutgoingMessage]:
        return [OutgoingMessage(Role.CLI, FlowFailed(at=Role.SCOUT, error="unavailable", reason="No node answers."))]

    async with a_mesh(tmp_path, twists={Role.SCOUT: twist}) as side:
        with pytest.raises(Unavailable, match="No node answers"):
            await side.room.debate(START, deaf)


@pytest.mark.slow
async def test_a_chain_that_does_not_answer_settles_nothing(tmp_path: Path) -> None:
    class Dumb(SimChain):
        async def witness(self, *ignored: Any) -> Any:
            raise Unavailable("The node does not answer.")

    async with a_mesh(tmp_path) as side:
        dumb = replace(side.room, chain_of=lambda name: Dumb(SimFile(tmp_path / "sim")))
        with pytest.raises(Unavailable, match="does not answer"):
            await dumb.debate(START, deaf)
        assert DISBELIEVED not in await kinds(side)
        unchecked = await archive_of(side, tmp_path).why(REQUEST)
        assert (unchecked.plan, unchecked.transcript) == (None, ())
        assert unchecked.failed is not None
        assert f"`zuno mesh join {REQUEST}`" in unchecked.failed
        end = await side.room.rejoin(deaf)  # it is all there: once the chain answers, the plan is believed
        plan = await record_plan(side.room, end, None)
        assert (await archive_of(side, tmp_path).why(REQUEST)).plan == plan


@pytest.mark.slow
async def test_silence_is_an_end_and_the_debate_can_be_joined_afterwards(tmp_path: Path) -> None:
    soon_dead = DeliveryLimits(first_retry_ms=50, tries=5)
    async with a_mesh(tmp_path, silent=[Role.CRITIC], patience=2.0, rules=soon_dead) as side:
        with pytest.raises(Unavailable, match="zuno mesh join req_00000000000000ab"):
            await side.room.debate(START, deaf)
        assert await kinds(side) == ["flow_start", "flow_failed"]
        strategist = side.peers[Role.STRATEGIST].peer
        async with asyncio.timeout(20):
            while strategist.stats.dead == 0:  # noqa: ASYNC110  # until its proposal is given up
                await asyncio.sleep(0.02)
        side.lost.clear()
        side.peers[Role.CRITIC].start()
        plan = await record_plan(side.room, await replace(side.room, patience=20.0).rejoin(deaf), None)
        shown = await archive_of(side, tmp_path).why(REQUEST)
        assert (shown.plan, shown.failed) == (plan, None)
        assert await kinds(side) == ["flow_start", "flow_failed", "plan_ready", "plan", "decision_view"]
        said = [e async for e in side.journals[Role.STRATEGIST].entries(request_id=REQUEST) if e.kind == "proposal"]
        assert len(said) == 1


@pytest.mark.slow
async def test_whoever_does_not_answer_for_too_long_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mesh_debate, "BEAT", 0.05)
    monkeypatch.setattr(mesh_debate, "SILENCE", 0.3)
    async with a_mesh(tmp_path, silent=[Role.CRITIC, Role.ARBITER]) as side:
        with pytest.raises(Unavailable, match=f"{Role.CRITIC} .*{Role.ARBITER}"):
            await side.room.debate(START, deaf)


@pytest.mark.slow
async def test_an_answer_that_came_to_another_command_line_is_found(tmp_path: Path) -> None:
    """Pongs are pinned for whoever asked, and the end of a debate is in the journal both share."""
    async with a_mesh(tmp_path) as side:
        place = side.room.endpoint
        place.running.peer.pongs[Role.SCOUT, "00000000000000aa"] = "theirs"
        await asyncio.sleep(0.2)
        assert MeshFiles(tmp_path).pinned_reply(Role.SCOUT, "00000000000000aa") == "theirs"
        assert place.running.peer.pongs == {}
        assert set(await place.ping(5.0)) == set(AGENTS)


async def test_only_a_request_of_this_mesh_is_joined(tmp_path: Path) -> None:
    async with a_mesh(tmp_path) as side:
        with pytest.raises(Refused, match="req_00000000000000ab"):
            await side.room.rejoin(deaf)
        stranger = KeyFile(tmp_path / "node.key")
        stranger.ensure()
        said = EnvelopeSigner(Role.CLI, stranger, unix_millis).envelope(
            REQUEST, OutgoingMessage(Role.SCOUT, START), None
        )
        await journal_envelope(side.journal, said)
        with pytest.raises(Refused, match="argued"):
            await side.room.rejoin(deaf)


async def test_what_began_too_long_ago_is_not_joined(tmp_path: Path) -> None:
    async with a_mesh(tmp_path) as side:
        long_ago = EnvelopeSigner(Role.CLI, side.room.key, lambda: unix_millis() - 16 * 60_000)
        await journal_envelope(side.journal, long_ago.envelope(REQUEST, OutgoingMessage(Role.SCOUT, START), None))
        with pytest.raises(Refused, match="15 minutes"):
            await side.room.rejoin(deaf)
