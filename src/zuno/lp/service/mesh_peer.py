"""One agent as a process: it takes its seat, goes on where its journal ends, and answers until it is asked to end."""

import asyncio
import os
import traceback
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from zuno.kernel.errors import Broken, ZunoError
from zuno.kernel.units import Millis
from zuno.kernel.view import View, sanitise
from zuno.kernel.wire import derive
from zuno.lp.mesh.envelope import Envelope
from zuno.lp.mesh.peer import OutgoingMessage, Peer, Think
from zuno.lp.mesh.peer_process import run_concurrently
from zuno.lp.mesh.running import AGENTS, PeerRunner
from zuno.lp.model.debate import Role
from zuno.lp.ports.mesh import MeshFolder, PeerLock, PeerReport
from zuno.present.document import Document, document

REPORT_SECONDS: Final = 0.5
PING_EVERY: Final = 4
"""Reports between two pings of the neighbours."""
MISSED: Final = 3
"""Pings in a row that a neighbour may miss, busy as it is, before it is called silent."""
_MOST_DEBATES: Final = 64

Tell = Callable[[str], None]


class PeerEndView(View):
    """A peer ended because it was asked to."""

    role: str
    heard: int
    said: int
    text: str

    def to_document(self) -> Document:
        return document(self.text)


class PeerPerDebate:
    """The same role at several debates: each has a peer of its own, so that each has its own budget and record."""

    def __init__(self, role: Role, peer_for: Callable[[str], Peer], tell: Tell, stopwatch: Callable[[], float]) -> None:
        self.role = role
        self._peer_for = peer_for
        self._tell = tell
        self._stopwatch = stopwatch
        self._peers: OrderedDict[str, Peer] = OrderedDict()

    async def handle(self, envelope: Envelope, think: Think) -> Sequence[OutgoingMessage]:
        """A bug ends the debate it happened in, not the peer: after a restart it would only happen again."""
        began = self._stopwatch()
        try:
            says = await self._peer(envelope.request_id).handle(envelope, think)
        except ZunoError as error:
            why = sanitise(str(error))
            self._tell(f"{envelope.request_id}: {envelope.kind} of the {envelope.from_} ended it: {why}")
            raise
        except Exception as error:
            self._tell(traceback.format_exc().rstrip())
            raise Broken(f"The {self.role} has a bug ({type(error).__name__}); its log has the trace.") from error
        taken = self._stopwatch() - began
        answers = ", ".join(f"{say.payload.kind} to the {say.to}" for say in says) or "nothing"
        self._tell(f"{envelope.request_id}: {envelope.kind} of the {envelope.from_} → {answers} ({taken:.2f} s)")
        return says

    def _peer(self, request_id: str) -> Peer:
        peer = self._peers.pop(request_id, None) or self._peer_for(request_id)
        self._peers[request_id] = peer
        while len(self._peers) > _MOST_DEBATES:
            self._peers.popitem(last=False)
        return peer


@dataclass(frozen=True, slots=True)
class PeerService:
    role: Role
    transport: str
    running: PeerRunner
    folder: MeshFolder
    lock: PeerLock
    """Taken already; left when this life ends."""
    code: str
    now: Callable[[], Millis]
    orphaned: Callable[[], bool]
    """Whether the process that started us is gone, where that matters."""
    tell: Tell

    async def run(self, stop: asyncio.Event) -> PeerEndView:
        try:
            await self._live(stop)
        finally:
            await self.running.close()
            self.lock.leave()
        stats = self.running.peer.stats
        text = f"The {self.role} has ended: {stats.heard} heard, {stats.said} said."
        return PeerEndView(role=self.role.value, heard=stats.heard, said=stats.said, text=text)

    async def _live(self, stop: asyncio.Event) -> None:
        working = asyncio.gather(self._attend(), self._report(stop))
        stopping = asyncio.ensure_future(stop.wait())
        both: list[asyncio.Future[Any]] = [working, stopping]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                await working  # it ends by failing alone
        finally:
            working.cancel()
            stopping.cancel()
            await asyncio.gather(working, stopping, return_exceptions=True)

    async def _attend(self) -> None:
        left = await self.running.peer.resume(self.running.start, run_concurrently)
        unanswered = f"; {left} unanswered from before" if left else ""
        self.tell(f"The {self.role} is there, over {self.transport}{unanswered}.")
        raise await self.running.wait_for_failure()

    async def _report(self, stop: asyncio.Event) -> None:
        """Keeps the report fresh, tells what is new, and notices when nobody needs us any more."""
        before = self.folder.report(self.role)
        reported, strangers, node = Counter[str](), 0, None
        if before is not None:  # of the lives before: a restart is no way to be forgotten
            self.running.peer.stats.add(before)
            reported, strangers = Counter({**before.rejected, "": before.dead}), before.strangers
        since, count = self.now(), 0
        trips: dict[str, float] = {}
        missed: Counter[Role] = Counter()
        pinging: asyncio.Future[None] | None = None
        others = tuple(role for role in AGENTS if role is not self.role)

        async def ping() -> None:
            answered = await self.running.ping(others, REPORT_SECONDS * PING_EVERY * 0.75)
            self.running.peer.pongs.clear()
            for role in others:
                missed[role] = 0 if role in answered else missed[role] + 1
                if role in answered and role.value not in trips:
                    self.tell(f"The {role} answers.")
                elif missed[role] == MISSED and trips.pop(role.value, None) is not None:
                    self.tell(f"The {role} has fallen silent.")
            trips.update({role.value: round(pong.milliseconds, 3) for role, pong in answered.items()})

        while True:
            stats = self.running.peer.stats
            for why, times in stats.rejected.items():
                if reported[why] == 0:
                    self.tell(f"Rejected: {sanitise(why)}.")
                reported[why] = times
            if stats.dead > reported[""]:
                self.tell(f"{stats.dead - reported['']} letters were never acknowledged; the journal names them.")
                reported[""] = stats.dead
            if (health := self.running.transport.node) is not None and health != node:
                self.tell(f"node: {health.state}. {sanitise(health.why)}".rstrip())
                node = health
            self.folder.keep_report(self.role, self._build_report(since, trips, strangers))
            if self.orphaned():
                self.tell("Whoever started this process is gone.")
                stop.set()
            if self.running.attends and count % PING_EVERY == 0 and (pinging is None or pinging.done()):
                pinging = asyncio.ensure_future(ping())
            count += 1
            await asyncio.sleep(REPORT_SECONDS)

    def _build_report(self, since: Millis, trips: dict[str, float], strangers: int) -> PeerReport:
        stats = self.running.peer.stats
        return derive(
            PeerReport,
            stats,
            pid=os.getpid(),
            since=since,
            at=self.now(),
            code=self.code,
            transport=self.transport,
            rejected=dict(stats.rejected),
            round_trips=dict(trips),
            strangers=strangers + self.running.transport.strangers,
            node=self.running.transport.node,
        )
