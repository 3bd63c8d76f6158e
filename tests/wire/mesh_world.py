"""A mesh without sockets or clocks: peers, a network that loses and repeats, crashes, and one seed for all of it.

Everything happens in the order of a heap of moments. The same seed gives the same story to the byte, so that a failing
one can be told again.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

from zuno.adapters.store.memory import MemoryStore
from zuno.agents.peer import Peer, Say
from zuno.agents.post import Outgoing, Rules
from zuno.agents.resident import Resident
from zuno.domain.units import Millis
from zuno.memory.journal import ChainedJournal
from zuno.messages.debate import FlowFailed, FlowStart, PlanReady, Role
from zuno.messages.envelope import Envelope
from zuno.ports.journal import Entry, Journal
from zuno.ports.signing import NodeKey
from zuno.ports.transport import Parcel

START = 1_700_000_000_000
TICK_MS = 50
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
    journal: Mortal
    resident: Resident | None = None
    lives: int = 0
    alarm: int | None = None
    """When it next looks for what is due."""


@dataclass
class Debate:
    """What the owner saw of one request."""

    request_id: str
    plans: list[PlanReady] = field(default_factory=list)
    failures: list[FlowFailed] = field(default_factory=list)
    given_up: bool = False

    @property
    def over(self) -> bool:
        return bool(self.plans or self.failures) or self.given_up


def _done(work: Coroutine[Any, Any, None]) -> None:
    """Runs it to its end at once: there is nothing in this world that anybody could wait for."""
    try:
        work.send(None)
    except StopIteration:
        return
    raise AssertionError("somebody waits for something outside of this world")


class World:
    def __init__(
        self,
        seed: int,
        keys: Mapping[Role, NodeKey],
        peer_of: PeerOf,
        weather: Weather,
        believe: Callable[[PlanReady], bool] = lambda plan: True,
        rules: Rules | None = None,
    ) -> None:
        self.chance = Random(seed)
        self.now = START
        self.weather = weather
        self.keys = keys
        self.table = {role: key.public for role, key in keys.items()}
        self.rules = rules or Rules()
        self.sent = 0
        self.debates: dict[str, Debate] = {}
        self.told: list[str] = []
        """Everything that happened, for comparing two tellings."""
        self._believe = believe
        self._peer_of = peer_of
        self._moments: list[tuple[int, int, Happening]] = []
        self._count = itertools.count()
        self._apart: list[tuple[int, int, frozenset[Role]]] = []
        self.nodes = {role: Node(role, self._journal(role)) for role in Role}
        for node in self.nodes.values():
            self._live(node)
        self._plan_crashes()
        self._plan_partitions()

    # -- the story

    def ask(self, number: int, at: int = 0) -> Debate:
        request_id = f"req_{number:016x}"
        debate = self.debates[request_id] = Debate(request_id)
        self.at(START + at, partial(self._start, debate))
        return debate

    def run(self, longest_ms: int = 300_000) -> None:
        """Until every debate is over and nothing is in flight that could change it, or the owner gives up."""
        for debate in self.debates.values():
            self.at(START + longest_ms, partial(self._give_up, debate))
        while self._moments:
            self.now, _, happen = heapq.heappop(self._moments)
            try:
                _done(happen())
            except Crashed:
                self.told.append(f"{self.now - START}: crash")
            if all(debate.over for debate in self.debates.values()) and self.now > START + self._calm_after():
                break

    def at(self, moment: int, happen: Happening) -> None:
        heapq.heappush(self._moments, (moment, next(self._count), happen))

    def inject(self, to: Role, parcel: Parcel, at: int) -> None:
        """Somebody who is no peer of ours, or one that lies."""
        self.at(START + at, partial(self._arrive, to, parcel))

    # -- how it goes on

    def _calm_after(self) -> int:
        """A while after the end, so that late repetitions have their chance to do harm."""
        return 0

    async def _start(self, debate: Debate) -> None:
        cli = self.nodes[Role.CLI].resident
        if cli is None:
            self.at(self.now + 500, partial(self._start, debate))
            return
        start = FlowStart(chain="sim", position_id=1, profile="balanced", max_rounds=2)
        try:
            await cli.say(debate.request_id, Say(Role.SCOUT, start), None)
        except Crashed:
            self._die(self.nodes[Role.CLI])
        self._wind(self.nodes[Role.CLI])

    async def _give_up(self, debate: Debate) -> None:
        if not debate.over:
            debate.given_up = True

    def _wind(self, node: Node) -> None:
        """Set its alarm for what is due next, up to a tick late as a real one is."""
        due = None if node.resident is None else node.resident.post.next_due
        if due is not None and (node.alarm is None or due < node.alarm):
            node.alarm = max(self.now, due) + self.chance.randint(1, TICK_MS)
            self.at(node.alarm, partial(self._tick, node, node.lives, node.alarm))

    async def _tick(self, node: Node, life: int, alarm: int) -> None:
        if node.resident is None or node.lives != life or node.alarm != alarm:
            return
        node.alarm = None
        try:
            await node.resident.tick()
        except Crashed:
            self._die(node)
        self._wind(node)

    async def _arrive(self, to: Role, parcel: Parcel) -> None:
        node = self.nodes[to]
        if node.resident is None:
            return
        try:
            await node.resident.take(parcel)
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
            self.at(self.now + delay, partial(self._arrive, one.to, Parcel(one.data, known)))

    async def _listen(self, envelope: Envelope) -> None:
        debate = self.debates.get(envelope.request_id)
        if debate is None:
            return
        match envelope.payload:
            case PlanReady() as plan if not debate.over and self._believe(plan):
                debate.plans.append(plan)
            case FlowFailed() as failure if not debate.over:
                debate.failures.append(failure)
            case _:
                pass

    # -- lives

    def _journal(self, role: Role) -> Mortal:
        clock: Callable[[], Millis] = lambda: Millis(self.now)  # noqa: E731
        return Mortal(ChainedJournal(MemoryStore(), self.keys[role], code=lambda: "mesh", now=clock, secrets=()))

    def _live(self, node: Node) -> None:
        node.lives += 1
        journal: Any = node.journal
        node.resident = Resident(
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
        node.resident = None
        node.journal.dies_at = None
        self.told.append(f"{self.now - START}: {node.role} dies")
        self.at(self.now + self.chance.randint(100, 5_000), partial(self._revive, node))

    async def _revive(self, node: Node) -> None:
        if node.resident is not None:
            return
        self._live(node)
        self.told.append(f"{self.now - START}: {node.role} lives")
        if node.resident is not None:
            try:
                await node.resident.resume()
            except Crashed:
                self._die(node)
            self._wind(node)

    async def _strike(self, node: Node) -> None:
        if node.resident is not None:
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
