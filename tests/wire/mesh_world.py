"""A mesh without sockets or clocks: peers, their owner, a network that loses and repeats, crashes; one seed for it all.

Everything happens in the order of a heap of moments. The same seed gives the same story to the byte, so that a failing
one can be told again. The owner is the one of the command line: it says its start again, checks what it is told, gives
up and writes it all down by the code that is shipped. Only its pings are left out.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, cast

from tests.wire.debating import feeds_of_sim
from zuno.adapters.chain.sim.chain import SimChain
from zuno.adapters.store.memory import MemoryStore
from zuno.adapters.transport.inbox import InProcess
from zuno.journal.journal import ChainedJournal
from zuno.journal.port import DamagedRow, Entry, Journal
from zuno.kernel.canonical import Digest, digest, encode_model
from zuno.kernel.errors import ZunoError
from zuno.kernel.signing import NodeKey
from zuno.kernel.units import Millis
from zuno.lp.agents.observe import Observer
from zuno.lp.mesh.delivery import DeliveryLimits, Outgoing
from zuno.lp.mesh.envelope import Envelope
from zuno.lp.mesh.peer import OutgoingMessage, Peer
from zuno.lp.mesh.peer_process import MeshPeer
from zuno.lp.mesh.running import PeerRunner
from zuno.lp.model.ballot import RiskProfile
from zuno.lp.model.debate import FlowCreateStart, FlowFailed, FlowStart, PlanReady, Role
from zuno.lp.ports.transport import ReceivedMessage
from zuno.lp.service.mesh_debate import LOOK, DebateTimeout, MeshDebateRunner, OwnerEndpoint, OwnerInbox
from zuno.lp.service.recommend import record_plan

START = 1_700_000_000_000
TICK_MS = 50
CALM_MS = 60_000
"""A world goes on for so long after its last debate has ended: late repetitions have their chance to do harm."""
MOST_SENT = 4_000
"""Messages after which a world is not told any further: somebody in it speaks without bound."""
ASKED = FlowStart(chain="sim", position_id=1, profile=RiskProfile.BALANCED, max_rounds=2)
PeerOf = Callable[[Role, Journal], Peer]
Happening = Callable[[], Coroutine[Any, Any, None]]


@dataclass(frozen=True)
class Weather:
    """How bad it is."""

    loss: float = 0.0
    repeats: float = 0.0
    slowest_ms: int = 20
    crashes: int = 0
    partitions: int = 0
    names_senders: bool = True
    """Whether the transport knows who sent a parcel."""


class Crashed(Exception):
    """The process is gone in the middle of what it did."""


class Mortal:
    """A journal whose process may die right before or right after an entry is written."""

    def __init__(self, journal: ChainedJournal) -> None:
        self._journal = journal
        self.dies_at: int | None = None
        self.dies_after = False
        self._count = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)

    async def append(self, **entry: Any) -> Entry:
        self._count += 1
        dying = self._count == self.dies_at
        if dying and not self.dies_after:
            raise Crashed
        written = await self._journal.append(**entry)
        if dying:
            raise Crashed
        return written


@dataclass
class Node:
    """One peer: a journal that stays, and a life that may end."""

    role: Role
    store: MemoryStore
    journal: Mortal
    peer: MeshPeer | None = None
    lives: int = 0
    alarm: int | None = None
    """When it next looks for what is due."""


@dataclass(frozen=True, slots=True)
class Owner(MeshDebateRunner):
    """The owner of one debate. What held in another world is not computed again: it follows from the plan and the
    chain, and this chain stands still."""

    checked: set[str] | None
    """None: everything is checked anew."""

    async def check(
        self, opening: Envelope, end: Envelope, ready: PlanReady, start: FlowStart | FlowCreateStart
    ) -> tuple[str, ...]:
        name = digest(encode_model(ready))
        if self.checked is None or name not in self.checked:
            assert await MeshDebateRunner.check(self, opening, end, ready, start) == ()
        if self.checked is not None:
            self.checked.add(name)
        return ()


@dataclass
class Debate:
    """One request, and what its owner made of it."""

    owner: Owner
    opening: Envelope | None = None
    vigil: DebateTimeout | None = None
    plans: dict[Digest, PlanReady] = field(default_factory=dict)
    """Every message that was ever believed, however late."""
    failures: list[ZunoError] = field(default_factory=list)
    over_at: int | None = None
    """When the owner first had a plan or knew that there is none."""


def _done(work: Coroutine[Any, Any, None]) -> None:
    """Runs it to its end at once: there is nothing in this world that anybody could wait for."""
    try:
        work.send(None)
    except StopIteration:
        return
    raise AssertionError("somebody waits for something outside of this world")


def _at_once(work: Coroutine[Any, Any, int]) -> None:
    """The same for work that is split into tasks: those that are left when it is cut short die with it."""
    with asyncio.Runner() as runner:
        runner.run(work)


class World:
    def __init__(
        self,
        seed: int,
        keys: Mapping[Role, NodeKey],
        peer_of: PeerOf,
        weather: Weather,
        chain: SimChain,
        *,
        patience: float = 300.0,
        checked: set[str] | None = None,
        rules: DeliveryLimits | None = None,
    ) -> None:
        """`chain` is the owner's own; `patience` is in seconds of this world; `checked`: plans that held before."""
        self.chance = Random(seed)
        self.now = START
        self.weather = weather
        self.keys = keys
        self.table = {role: key.public for role, key in keys.items()}
        self.rules = rules or DeliveryLimits()
        self.sent = 0
        self.debates: dict[str, Debate] = {}
        self.told: list[str] = []
        """Everything that happened, for comparing two tellings."""
        self._chain = chain
        self._patience = patience
        self._checked = checked
        self._peer_of = peer_of
        self._moments: list[tuple[int, int, Happening]] = []
        self._count = itertools.count()
        self._apart: list[tuple[int, int, frozenset[Role]]] = []
        self.nodes = {role: self._node(role) for role in Role}
        for node in self.nodes.values():
            self._live(node)
        self._endpoint = self._open_owner_endpoint()
        self._plan_crashes()
        self._plan_partitions()

    # -- the story

    def ask(self, number: int, at: int = 0) -> Debate:
        request_id = f"req_{number:016x}"
        debate = self.debates[request_id] = Debate(self._owner(request_id))
        self.at(START + at, partial(self._start, debate))
        return debate

    def run(self) -> None:
        """Until every debate is over, and for a while after. An owner who waits for ever is left waiting."""
        last = START + 2 * round(self._patience * 1000)
        calm = False
        while self._moments and self._moments[0][0] <= last and self.sent < MOST_SENT:
            self.now, _, happen = heapq.heappop(self._moments)
            try:
                _done(happen())
            except Crashed:
                self.told.append(f"{self.now - START}: crash")
            if not calm and all(debate.over_at is not None for debate in self.debates.values()):
                calm, last = True, self.now + CALM_MS

    def written(self, role: Role, debate: Debate) -> list[str]:
        """The kinds of what is in a journal about a debate, in order."""
        rows = [row for row in self.nodes[role].store.kept.values() if not isinstance(row, DamagedRow)]
        return [row.kind for row in rows if row.request_id == debate.owner.request_id]

    def at(self, moment: int, happen: Happening) -> None:
        heapq.heappush(self._moments, (moment, next(self._count), happen))

    def inject(self, to: Role, received: ReceivedMessage, at: int) -> None:
        """Somebody who is no peer of ours, or one that lies."""
        self.at(START + at, partial(self._arrive, to, received))

    # -- how it goes on

    async def _start(self, debate: Debate) -> None:
        peer = debate.owner.endpoint.running.peer
        debate.opening = await peer.send_message(debate.owner.request_id, OutgoingMessage(Role.SCOUT, ASKED), None)
        debate.vigil = DebateTimeout(self._seconds(), self._patience)
        self._wind(self.nodes[Role.CLI])
        self._wake_later(debate, debate.vigil)

    async def _wake(self, debate: Debate) -> None:
        if debate.over_at is None:
            await self._look(debate)

    def _wake_later(self, debate: Debate, vigil: DebateTimeout) -> None:
        due = max(self.now, round(vigil.next_at * 1000)) + self.chance.randint(1, round(LOOK * 1000))
        self.at(due, partial(self._wake, debate))

    async def _look(self, debate: Debate) -> None:
        """What the command line makes of a debate so far, and `mesh join` after it."""
        owner, opening, vigil = debate.owner, debate.opening, debate.vigil
        assert opening is not None
        assert vigil is not None
        try:
            end = await owner.look(opening, vigil)
            if end is None:
                self._wake_later(debate, vigil)
                return
            owner.endpoint.running.peer.delivery.forget(owner.request_id)
            ended = await owner.settle(opening, end, ASKED)
            debate.plans[ended.message] = ended.ready
            await record_plan(owner, ended, None)
        except ZunoError as error:
            debate.failures.append(error)
        finally:
            self._wind(self.nodes[Role.CLI])
        if debate.over_at is None:
            debate.over_at = self.now
            self.told.append(f"{self.now - START}: over")

    def _wind(self, node: Node) -> None:
        """Set its alarm for what is due next, up to a tick late as a real one is."""
        due = None if node.peer is None else node.peer.delivery.next_due
        if due is not None and (node.alarm is None or due < node.alarm):
            node.alarm = max(self.now, due) + self.chance.randint(1, TICK_MS)
            self.at(node.alarm, partial(self._tick, node, node.lives, node.alarm))

    async def _tick(self, node: Node, life: int, alarm: int) -> None:
        if node.peer is None or node.lives != life or node.alarm != alarm:
            return
        node.alarm = None
        try:
            await node.peer.tick()
        except Crashed:
            self._die(node)
        self._wind(node)

    async def _arrive(self, to: Role, received: ReceivedMessage) -> None:
        node = self.nodes[to]
        if node.peer is None:
            return
        try:
            await node.peer.take(received)
        except Crashed:
            self._die(node)
        self._wind(node)

    async def _transmit(self, sender: Role, one: Outgoing) -> None:
        self.sent += 1
        self.told.append(f"{self.now - START}: {sender}→{one.to} {len(one.data)}")
        if self._parted(sender, one.to) or self.chance.random() < self.weather.loss:
            return
        copies = 2 if self.chance.random() < self.weather.repeats else 1
        known = sender if self.weather.names_senders else None
        for _ in range(copies):
            delay = self.chance.randint(1, self.weather.slowest_ms)
            self.at(self.now + delay, partial(self._arrive, one.to, ReceivedMessage(one.data, known)))

    async def _listen(self, envelope: Envelope) -> None:
        await self._endpoint.inbox.hear(envelope)
        debate = self.debates.get(envelope.request_id)
        if debate is not None and isinstance(envelope.payload, PlanReady | FlowFailed):
            self.at(self.now, partial(self._look, debate))

    # -- the owner

    def _seconds(self) -> float:
        return self.now / 1000

    def _open_owner_endpoint(self) -> OwnerEndpoint:
        peer, nowhere = self.nodes[Role.CLI].peer, cast(Any, None)
        running = PeerRunner(
            Role.CLI, InProcess(), lambda send: cast(MeshPeer, peer), stopwatch=self._seconds, nonce=nowhere
        )
        return OwnerEndpoint(running, OwnerInbox(), nowhere, "virtual")

    def _owner(self, request_id: str) -> Owner:
        journal: Any = self.nodes[Role.CLI].journal
        return Owner(
            endpoint=self._endpoint,
            journal=journal,
            key=self.keys[Role.CLI],
            now=lambda: self.now,
            stopwatch=self._seconds,
            chain_of=lambda name: self._chain,
            observe_again=Observer(self._chain, feeds_of_sim(self._chain)).observe_again,
            request_id=request_id,
            max_rounds=ASKED.max_rounds,
            patience=self._patience,
            tell=self.told.append,
            checked=self._checked,
        )

    # -- lives

    def _node(self, role: Role) -> Node:
        clock: Callable[[], Millis] = lambda: Millis(self.now)  # noqa: E731
        store = MemoryStore()
        return Node(role, store, Mortal(ChainedJournal(store, self.keys[role], code=lambda: "mesh", now=clock)))

    def _live(self, node: Node) -> None:
        node.lives += 1
        journal: Any = node.journal
        node.peer = MeshPeer(
            node.role,
            None if node.role is Role.CLI else self._peer_of(node.role, journal),
            journal,
            self.keys[node.role],
            self.table,
            partial(self._transmit, node.role),
            lambda: self.now,
            chance=Random(self.chance.getrandbits(64)),
            code="mesh",
            rules=self.rules,
            listen=self._listen if node.role is Role.CLI else None,
        )
        node.alarm = None

    def _die(self, node: Node) -> None:
        """Everything but the journal is gone; somebody starts it again."""
        node.peer = None
        node.journal.dies_at = None
        self.told.append(f"{self.now - START}: {node.role} dies")
        self.at(self.now + self.chance.randint(100, 5_000), partial(self._revive, node))

    async def _revive(self, node: Node) -> None:
        if node.peer is not None:
            return
        self._live(node)
        self.told.append(f"{self.now - START}: {node.role} lives")
        if node.peer is not None:
            try:
                _at_once(node.peer.resume())
            except Crashed:
                self._die(node)
            self._wind(node)

    async def _strike(self, node: Node) -> None:
        if node.peer is not None:
            self._die(node)

    def _plan_crashes(self) -> None:
        for _ in range(self.weather.crashes):
            node = self.nodes[self.chance.choice([role for role in Role if role is not Role.CLI])]
            if self.chance.random() < 0.5:
                node.journal.dies_at = self.chance.randint(1, 8)
                node.journal.dies_after = self.chance.random() < 0.5
            else:
                self.at(START + self.chance.randint(1, 3_000), partial(self._strike, node))

    def _plan_partitions(self) -> None:
        for _ in range(self.weather.partitions):
            begin = START + self.chance.randint(0, 3_000)
            group = frozenset(self.chance.sample(list(Role), self.chance.randint(1, 3)))
            self._apart.append((begin, begin + self.chance.randint(500, 10_000), group))

    def _parted(self, one: Role, other: Role) -> bool:
        return any(begin <= self.now < end and (one in group) != (other in group) for begin, end, group in self._apart)
