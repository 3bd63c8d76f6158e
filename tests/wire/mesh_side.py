"""The owner's side of a mesh and four peers in one process, each with a key and a journal of its own; any may lie."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.wire.debating import Table, feeds_of_sim, observed
from zuno.adapters.chain.sim.chain import SimChain
from zuno.adapters.chain.sim.world_file import SimFile
from zuno.adapters.clock.system import unix_millis
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.mesh.folder import MeshFiles
from zuno.adapters.store.memory import MemoryStore
from zuno.adapters.transport.inbox import InProcess
from zuno.journal.journal import ChainedJournal
from zuno.journal.port import Entry
from zuno.lp.agents.arbiter import Arbiter
from zuno.lp.agents.critic import Critic
from zuno.lp.agents.observe import Observer
from zuno.lp.agents.scout import Scout
from zuno.lp.agents.strategist import Strategist
from zuno.lp.mesh.delivery import DeliveryLimits
from zuno.lp.mesh.envelope import Envelope
from zuno.lp.mesh.peer import OutgoingMessage, Peer, Think
from zuno.lp.mesh.peer_process import MeshPeer
from zuno.lp.mesh.running import AGENTS, PeerRunner
from zuno.lp.model.ballot import RiskProfile
from zuno.lp.model.debate import Context, FlowStart, PlanReady, PoolFacts, Role
from zuno.lp.service.archive import Archive
from zuno.lp.service.mesh_debate import MeshDebateRunner, OwnerEndpoint, OwnerInbox
from zuno.lp.service.plan_replay import ReplayDebateRunner
from zuno.lp.service.recorded_request import RecordedRequest, load_context

REQUEST = "req_00000000000000ab"
START = FlowStart(chain="sim", position_id=1, profile=RiskProfile.BALANCED, max_rounds=2)
Twist = Callable[[Envelope, Sequence[OutgoingMessage]], Sequence[OutgoingMessage]]


@dataclass
class Twisted:
    """A peer under its own right key that says something else than it should."""

    honest: Peer
    twist: Twist

    @property
    def role(self) -> Role:
        return self.honest.role

    async def handle(self, envelope: Envelope, think: Think) -> Sequence[OutgoingMessage]:
        return self.twist(envelope, await self.honest.handle(envelope, think))


@dataclass
class Side:
    """The owner's room, and what is behind it."""

    room: MeshDebateRunner
    journal: ChainedJournal
    journals: Mapping[Role, ChainedJournal]
    peers: Mapping[Role, PeerRunner]
    keys: Mapping[Role, KeyFile]
    lost: set[Role]
    """Whatever is sent to these is gone."""
    wire: Losing

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
    rules: DeliveryLimits | None = None,
    own: Context | None = None,
) -> AsyncIterator[Side]:
    """Four peers and an owner in this process, each with a key and a journal of its own. `own`: what the owner's
    sources say, if it is not the simulation's."""
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
    model_context = Table(folder, seen).model_context()
    inbox = OwnerInbox()

    def running(role: Role, peer: Peer | None, listen: Callable[[Envelope], Awaitable[None]] | None) -> PeerRunner:
        return PeerRunner(
            role,
            wire,
            lambda send: MeshPeer(
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

    async def observe_here(context: Context) -> tuple[PoolFacts, ...]:
        chain = _sim(folder)
        return own.scenes if own else await Observer(chain, feeds_of_sim(chain)).observe_again(context)

    def agent(role: Role) -> Peer:
        async def recall(digest: str) -> Context:
            return await load_context(journals[role], digest)

        match role:
            case Role.SCOUT:
                return Scout(observe, journals[role].put_bundle, model_context)
            case Role.STRATEGIST:
                return Strategist(recall, model_context)
            case Role.CRITIC:
                return Critic(recall, model_context)
        return Arbiter(recall, model_context)

    twist = twists or {}
    peers = {
        role: running(role, Twisted(agent(role), twist[role]) if role in twist else agent(role), None)
        for role in AGENTS
    }
    endpoint = OwnerEndpoint(running(Role.CLI, None, inbox.hear), inbox, MeshFiles(folder), "inproc")
    for role, one in peers.items():
        if role not in silent:
            one.start()
    endpoint.start()
    room = MeshDebateRunner(
        endpoint=endpoint,
        journal=journals[Role.CLI],
        key=keys[Role.CLI],
        now=unix_millis,
        stopwatch=time.perf_counter,
        chain_of=lambda name: _sim(folder),
        observe_again=observe_here,
        request_id=REQUEST,
        max_rounds=2,
        patience=patience,
        tell=lambda line: None,
    )
    try:
        yield Side(room, journals[Role.CLI], journals, peers, keys, lost, wire)
    finally:
        await endpoint.aclose()
        for peer in peers.values():
            await peer.close()


def _sim(folder: Path) -> SimChain:
    return SimChain(SimFile(folder / "sim"))


def deaf(thought: object) -> None:
    return None


async def kinds(side: Side) -> list[str]:
    return [entry.kind for entry in await side.entries()]


def archive_of(side: Side, folder: Path | None = None) -> Archive:
    """The owner's journal as its readers see it; a debate is held again in `folder`."""

    async def opened() -> ChainedJournal:
        return side.journal

    async def open_replay(recorded: RecordedRequest, context: Context) -> ReplayDebateRunner:
        assert folder is not None, "nothing is replayed"
        return ReplayDebateRunner(Table(folder, context, request=REQUEST).room(context.max_rounds), lambda: ())

    return Archive(opened, open_replay, lambda: "test")


def forged(change: Callable[[PlanReady], PlanReady]) -> Twist:
    def twist(envelope: Envelope, says: Sequence[OutgoingMessage]) -> Sequence[OutgoingMessage]:
        return [
            OutgoingMessage(say.to, change(say.payload)) if isinstance(say.payload, PlanReady) else say for say in says
        ]

    return twist
