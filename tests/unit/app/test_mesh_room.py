"""The owner's side of a debate held elsewhere: what is believed, what is not, and what is left on record."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "wire"))

from debating import Table, observed

from zuno.adapters.chain.sim.chain import SimChain
from zuno.adapters.chain.sim.saved import SimFile
from zuno.adapters.clock.system import unix_millis
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.mesh.folder import MeshFiles
from zuno.adapters.store.memory import MemoryStore
from zuno.adapters.transport.inproc import InProcess
from zuno.agents.peer import Peer, Say, Think
from zuno.agents.post import Rules
from zuno.agents.resident import Resident
from zuno.agents.running import AGENTS, Running
from zuno.agents.station import Mouth, keep
from zuno.app import mesh_room
from zuno.app.archive import Archive
from zuno.app.debate import planned, recalled
from zuno.app.mesh_room import DISBELIEVED, Ear, MeshRoom, OwnerPlace
from zuno.desks.lp.arbiter import Arbiter
from zuno.desks.lp.critic import Critic
from zuno.desks.lp.scout import Scout
from zuno.desks.lp.strategist import Strategist
from zuno.domain.debate import PlanVerdict, RiskProfile
from zuno.domain.errors import Broken, Refused, Unavailable
from zuno.memory.journal import ChainedJournal
from zuno.messages.codec import canonical
from zuno.messages.debate import Context, FlowFailed, FlowStart, PlanReady, Role
from zuno.messages.envelope import Envelope
from zuno.ports.chain import Chain
from zuno.ports.journal import Entry

REQUEST = "req_00000000000000ab"
START = FlowStart(chain="sim", position_id=1, profile=RiskProfile.BALANCED, max_rounds=2)
Twist = Callable[[Envelope, Sequence[Say]], Sequence[Say]]


@dataclass
class Twisted:
    """A peer under its own right key that says something else than it should."""

    honest: Peer
    twist: Twist

    @property
    def role(self) -> Role:
        return self.honest.role

    async def handle(self, envelope: Envelope, think: Think) -> Sequence[Say]:
        return self.twist(envelope, await self.honest.handle(envelope, think))


@dataclass
class Side:
    """The owner's room, and what is behind it."""

    room: MeshRoom
    journal: ChainedJournal
    journals: Mapping[Role, ChainedJournal]
    peers: Mapping[Role, Running]
    lost: set[Role]
    """Whatever is sent to these is gone."""

    async def entries(self) -> list[Entry]:
        return [entry async for entry in self.journal.entries(request_id=REQUEST)]


class Losing(InProcess):
    def __init__(self, lost: set[Role]) -> None:
        super().__init__()
        self._lost = lost

    async def send(self, to: Role, data: bytes) -> None:
        if to not in self._lost:
            await super().send(to, data)


@asynccontextmanager
async def a_mesh(
    folder: Path,
    context: Context | None = None,
    twists: Mapping[Role, Twist] | None = None,
    silent: Sequence[Role] = (),
    patience: float = 20.0,
    rules: Rules | None = None,
) -> AsyncIterator[Side]:
    """Four residents and an owner in this process, each with a key and a journal of its own."""
    seen = context or await observed(folder / "sim")
    keys = {role: KeyFile(folder / role.value / "peer.key") for role in Role}
    for key in keys.values():
        key.ensure()
    table = {role: key.public for role, key in keys.items()}
    lost = set(silent)
    wire = Losing(lost)
    journals = {
        role: ChainedJournal(MemoryStore(), key, code=lambda: "test", now=unix_millis) for role, key in keys.items()
    }
    minds = Table(folder, seen).minds()
    ear = Ear()

    def running(role: Role, peer: Peer | None, listen: Callable[[Envelope], Awaitable[None]] | None) -> Running:
        return Running(
            role,
            wire,
            lambda send: Resident(
                role,
                peer,
                journals[role],
                keys[role],
                table,
                send,
                unix_millis,
                chance=Random(5),
                code="test",
                listen=listen,
                rules=rules,
            ),
            stopwatch=time.perf_counter,
            nonce=lambda: os.urandom(8).hex(),
        )

    async def observe(start: object) -> Context:
        return seen

    def agent(role: Role) -> Peer:
        async def recall(digest: str) -> Context:
            return await recalled(journals[role], digest)

        match role:
            case Role.SCOUT:
                return Scout(observe, journals[role].put_bundle, minds)
            case Role.STRATEGIST:
                return Strategist(recall, minds)
            case Role.CRITIC:
                return Critic(recall, minds)
        return Arbiter(recall, minds)

    twist = twists or {}
    peers = {
        role: running(role, Twisted(agent(role), twist[role]) if role in twist else agent(role), None)
        for role in AGENTS
    }
    place = OwnerPlace(running(Role.CLI, None, ear.hear), ear, MeshFiles(folder), "inproc")
    for role, one in peers.items():
        if role not in silent:
            one.start()
    place.start()
    room = MeshRoom(
        place=place,
        journal=journals[Role.CLI],
        key=keys[Role.CLI],
        now=unix_millis,
        stopwatch=time.perf_counter,
        chain_of=lambda name: _sim(folder),
        request_id=REQUEST,
        max_rounds=2,
        patience=patience,
        tell=lambda line: None,
    )
    try:
        yield Side(room, journals[Role.CLI], journals, peers, lost)
    finally:
        for one in (place, *peers.values()):
            await one.close()


def _sim(folder: Path) -> Chain:
    return SimChain(SimFile(folder / "sim"))


def deaf(thought: object) -> None:
    return None


async def kinds(side: Side) -> list[str]:
    return [entry.kind for entry in await side.entries()]


async def test_an_honest_plan_is_believed_and_its_thoughts_are_heard(tmp_path: Path) -> None:
    heard: list[Any] = []
    async with a_mesh(tmp_path) as side:
        ready = await side.room.debate(START, heard.append)
        plan = await planned(side.room, ready, None)
        assert await kinds(side) == ["flow_start", "plan_ready", "plan"]
        assert {thought.role for thought in heard} >= {Role.SCOUT, Role.STRATEGIST, Role.CRITIC}
        table = Table(tmp_path, await observed(tmp_path / "sim"))
        same = await table.plan()
        assert (plan.hash, plan.transcript) == (same.hash, same.transcript)


async def refused(side: Side, peer: str, why: str) -> None:
    """The lie is told with its author, on record, and never shown as a plan."""
    with pytest.raises(Broken, match=f"The {peer}'s word does not hold: .*{why}"):
        await side.room.debate(START, deaf)
    entries = await side.entries()
    assert [entry.kind for entry in entries] == ["flow_start", "plan_ready", DISBELIEVED, "flow_failed"]
    assert entries[2].payload["peer"] == peer

    async def opened() -> ChainedJournal:
        return side.journal

    async def nowhere(*ignored: Any) -> Any:
        raise AssertionError("nothing is replayed")

    archive = Archive(opened, nowhere, lambda: "test")
    shown = await archive.why(REQUEST)
    assert shown.plan is None
    assert shown.failed is not None
    assert shown.failed.startswith(f"The {peer}'s word does not hold")
    with pytest.raises(Refused, match="decided nothing"):
        await archive.replay(REQUEST)
    with pytest.raises(Broken, match=f"The {peer}'s word does not hold"):
        await side.room.rejoin(deaf)  # nor the second time


async def test_a_scout_that_lies_about_the_position(tmp_path: Path) -> None:
    context = await observed(tmp_path / "sim")
    scene = context.scenes[0]
    assert scene.position is not None
    lied = scene.model_copy(update={"position": replace(scene.position, liquidity=scene.position.liquidity * 2)})
    lie = context.model_copy(update={"scenes": (lied,)})
    async with a_mesh(tmp_path, lie) as side:
        await refused(side, "scout", "position 1 was not so at block")


async def test_a_scout_that_speaks_of_a_block_nobody_has(tmp_path: Path) -> None:
    context = await observed(tmp_path / "sim")
    lie = context.model_copy(update={"block": replace(context.block, number=context.block.number + 1_000_000)})
    async with a_mesh(tmp_path, lie) as side:
        await refused(side, "scout", "")


async def test_a_scout_that_looks_at_another_position_than_was_asked_for(tmp_path: Path) -> None:
    async with a_mesh(tmp_path, await observed(tmp_path / "sim", 2)) as side:
        await refused(side, "critic", "asked was about 1")


def _forged(change: Callable[[PlanReady], PlanReady]) -> Twist:
    def twist(envelope: Envelope, says: Sequence[Say]) -> Sequence[Say]:
        return [Say(say.to, change(say.payload)) if isinstance(say.payload, PlanReady) else say for say in says]

    return twist


@pytest.mark.parametrize("field", ["index", "verdict"])
async def test_a_critic_that_forges_the_decision(tmp_path: Path, field: str) -> None:
    def change(ready: PlanReady) -> PlanReady:
        said = ready.decision
        other = {"index": (said.index + 1) % 2, "verdict": PlanVerdict.APPROVE}[field]
        assert getattr(said, field) != other
        return ready.model_copy(update={"decision": replace(said, **{field: other})})

    async with a_mesh(tmp_path, twists={Role.CRITIC: _forged(change)}) as side:
        await refused(side, "critic", "")


async def test_a_context_that_is_none(tmp_path: Path) -> None:
    """The bytes are what their hash says, and mean nothing."""
    stored: list[str] = []

    def twist(envelope: Envelope, says: Sequence[Say]) -> Sequence[Say]:
        (say,) = says
        assert isinstance(say.payload, PlanReady)
        debate = say.payload.debate.model_copy(update={"context": stored[0]})
        return [Say(say.to, say.payload.model_copy(update={"debate": debate}))]

    async with a_mesh(tmp_path, twists={Role.CRITIC: twist}) as side:
        stored.append(await side.journals[Role.CRITIC].put_bundle(canonical({"world": "flat"})))
        await refused(side, "critic", "its context cannot be read")


async def test_a_failed_flow_is_the_error_it_names(tmp_path: Path) -> None:
    def twist(envelope: Envelope, says: Sequence[Say]) -> Sequence[Say]:
        return [Say(Role.CLI, FlowFailed(at=Role.SCOUT, error="unavailable", reason="No node answers."))]

    async with a_mesh(tmp_path, twists={Role.SCOUT: twist}) as side:
        with pytest.raises(Unavailable, match="No node answers"):
            await side.room.debate(START, deaf)


async def test_a_chain_that_does_not_answer_settles_nothing(tmp_path: Path) -> None:
    class Dumb(SimChain):
        async def witness(self, *ignored: Any) -> Any:
            raise Unavailable("The node does not answer.")

    async with a_mesh(tmp_path) as side:
        dumb = replace(side.room, chain_of=lambda name: Dumb(SimFile(tmp_path / "sim")))
        with pytest.raises(Unavailable, match="does not answer"):
            await dumb.debate(START, deaf)
        assert DISBELIEVED not in await kinds(side)
        ready = await side.room.rejoin(deaf)  # it is all there: once the chain answers, the plan is believed
        assert ready.decision.index >= 0


async def test_silence_is_an_end_and_the_debate_can_be_joined_afterwards(tmp_path: Path) -> None:
    soon_dead = Rules(first_retry_ms=50, tries=5)
    async with a_mesh(tmp_path, silent=[Role.CRITIC], patience=2.0, rules=soon_dead) as side:
        with pytest.raises(Unavailable, match=r"did not end within 2 s; .*zuno mesh join req_00000000000000ab"):
            await side.room.debate(START, deaf)
        assert await kinds(side) == ["flow_start", "flow_failed"]
        strategist = side.peers[Role.STRATEGIST].resident
        async with asyncio.timeout(20):
            while strategist.standing.dead == 0:  # noqa: ASYNC110  # until its proposal is given up
                await asyncio.sleep(0.02)
        side.lost.clear()
        side.peers[Role.CRITIC].start()
        ready = await replace(side.room, patience=20.0).rejoin(deaf)
        await planned(side.room, ready, None)
        assert await kinds(side) == ["flow_start", "flow_failed", "plan_ready", "plan"]
        said = [e async for e in side.journals[Role.STRATEGIST].entries(request_id=REQUEST) if e.kind == "proposal"]
        assert len(said) == 1


async def test_whoever_does_not_answer_for_too_long_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mesh_room, "BEAT", 0.05)
    monkeypatch.setattr(mesh_room, "SILENCE", 0.3)
    async with a_mesh(tmp_path, silent=[Role.CRITIC, Role.ARBITER]) as side:
        with pytest.raises(Unavailable, match="The critic and the arbiter did not answer for"):
            await side.room.debate(START, deaf)


async def test_an_answer_that_came_to_another_command_line_is_found(tmp_path: Path) -> None:
    """Pongs are pinned for whoever asked, and the end of a debate is in the journal both share."""
    async with a_mesh(tmp_path) as side:
        place = side.room.place
        place.running.resident.answered[Role.SCOUT, "00000000000000aa"] = "theirs"
        await asyncio.sleep(0.2)
        assert MeshFiles(tmp_path).pinned(Role.SCOUT, "00000000000000aa") == "theirs"
        assert place.running.resident.answered == {}
        assert set(await place.ping(5.0)) == set(AGENTS)


async def test_only_a_request_of_this_mesh_is_joined(tmp_path: Path) -> None:
    async with a_mesh(tmp_path) as side:
        with pytest.raises(Refused, match="No request req_00000000000000ab began"):
            await side.room.rejoin(deaf)
        stranger = KeyFile(tmp_path / "node.key")
        stranger.ensure()
        said = Mouth(Role.CLI, stranger, unix_millis).envelope(REQUEST, Say(Role.SCOUT, START), None)
        await keep(side.journal, said)
        with pytest.raises(Refused, match="was not argued on this mesh"):
            await side.room.rejoin(deaf)


async def test_what_began_too_long_ago_is_not_joined(tmp_path: Path) -> None:
    async with a_mesh(tmp_path) as side:
        long_ago = Mouth(Role.CLI, side.room.key, lambda: unix_millis() - 16 * 60_000)
        await keep(side.journal, long_ago.envelope(REQUEST, Say(Role.SCOUT, START), None))
        with pytest.raises(Refused, match="began more than 15 minutes ago"):
            await side.room.rejoin(deaf)
