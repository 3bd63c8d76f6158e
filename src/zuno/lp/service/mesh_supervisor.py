"""Keeping a mesh running: the peers of this home as processes, started again when they die, ended when we end."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Literal

from zuno.kernel.backoff import Backoff
from zuno.kernel.children import Child, ChildKeeper, Death, RestartPolicy
from zuno.kernel.errors import Refused, Unavailable
from zuno.kernel.units import Millis
from zuno.kernel.view import EventView, View
from zuno.lp.model.debate import Role
from zuno.lp.ports.mesh import MeshFolder, PeerProcesses, PeerReport, RunningMesh
from zuno.lp.service.mesh import MeshService, MeshView, format_pids, silent_sentence
from zuno.present.document import Document, document

FIRST_PAUSE: Final = 0.2
LONGEST_PAUSE: Final = 10.0
LONG_LIFE: Final = 30.0
"""Seconds after which a life counts as one; a death after it is the first again."""
MOST_DEATHS: Final = 6
"""Deaths in a row after which it is started once more; the next one is the last."""
GRACE: Final = 5.0
LOOK: Final = 0.5
MISSING_SECONDS: Final = 5.0
"""Between two notes on what a mesh that is not up waits for."""

Event = Literal["starting", "started", "died", "up", "note", "ending"]
Hear = Callable[["MeshEventView"], None]
Show = Callable[[MeshView], None]


class MeshEventView(EventView):
    event: Event
    role: str | None
    pid: int | None


class UpEndView(View):
    """The mesh ended because it was asked to."""

    restarts: dict[str, int]
    said: str

    def to_document(self) -> Document:
        return document(self.said)


@dataclass(slots=True)
class MeshHost:
    """One per home, for as long as it runs."""

    keeper: MeshService
    folder: MeshFolder
    peer_processes: PeerProcesses
    now: Callable[[], Millis]
    stopwatch: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _processes: ChildKeeper[Child] = field(init=False)
    _restarts: dict[str, int] = field(default_factory=dict)
    _hear: Hear = field(init=False)

    def __post_init__(self) -> None:
        policy = RestartPolicy(Backoff(FIRST_PAUSE, LONGEST_PAUSE), LONG_LIFE, MOST_DEATHS)
        self._processes = ChildKeeper(policy, self.stopwatch, self.sleep)

    async def up(self, transport: str | None, hear: Hear, show: Show, stop: asyncio.Event) -> UpEndView:
        """Until it is asked to end, or one of them cannot be kept alive (`Unavailable`)."""
        self._hear = hear
        table, roles, way = self.keeper.table(), self.keeper.here(), self.keeper.way(transport)
        if not roles:
            raise Refused("No agent of this mesh lives in this home; `zuno mesh init` shows the table.")
        lock = self.folder.lock("up")
        lock.take()
        try:
            before = self.folder.last_mesh()  # of the keeper before us: counted on, like what the peers count
            self._restarts = {role.value: 0 for role in roles} | dict(before.restarts if before else {})
            self.folder.keep_running_mesh(RunningMesh(transport=way, restarts=self._restarts))
            if left := await self.peer_processes.end_orphans():
                text = f"Nodes that a killed mesh had left behind were ended: {format_pids(left)}."
                self._tell("note", text)
            self._remark(roles, way)
            await self._run(roles, way, lambda: show(self.keeper.build_view(table, way, None)), stop)
        finally:
            await self._end_all()
            lock.leave()
        return UpEndView(restarts=dict(self._restarts), said="The mesh has ended, and all of its processes with it.")

    def _remark(self, roles: tuple[Role, ...], way: str) -> None:
        elsewhere = [role.value for role in self.keeper.table() if role not in roles and role is not Role.CLI]
        if elsewhere:
            self._tell("note", f"Not started here, for their keys are elsewhere: {', '.join(elsewhere)}.")
        if way == "axl" and not self.peer_processes.has_nodes:
            self._tell("note", "ZUNO_AXL_NODE names no binary: the AXL nodes are expected to run.")

    async def _run(self, roles: tuple[Role, ...], way: str, look: Callable[[], None], stop: asyncio.Event) -> None:
        starts = {role.value: partial(self.peer_processes.peer, role, way) for role in roles}
        if way == "axl" and self.peer_processes.has_nodes:
            starts |= {f"node of the {role}": partial(self.peer_processes.node, role) for role in (Role.CLI, *roles)}
        keeping = [asyncio.ensure_future(self._keep(name, start, way)) for name, start in starts.items()]
        watching = asyncio.ensure_future(self._watch(roles, way))
        drawing = asyncio.ensure_future(self._draw(look))
        stopping = asyncio.ensure_future(stop.wait())
        tasks = [*keeping, watching, drawing, stopping]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep(self, name: str, start: Callable[[], Child], way: str) -> None:
        def hear_start(child: Child) -> None:
            self._tell("starting", f"The {name} is process {child.pid}.", name, child.pid)

        def hear_death(death: Death, pause: float) -> None:
            self._restarts[name] = self._restarts.get(name, 0) + 1
            self.folder.keep_running_mesh(RunningMesh(transport=way, restarts=self._restarts))
            text = f"The {name} ended ({death.how}) and is started again in {pause:g} s."
            self._tell("died", text, name, death.pid)

        last = await self._processes.keep(name, start, hear_start, hear_death)
        raise Unavailable(f"The {name} ended {last.count} times in a row, last with {last.how}")

    async def _watch(self, roles: tuple[Role, ...], way: str) -> None:
        """Tells when a new process is there, when all are and the owner has met them, and what that waits for."""
        there: dict[Role, int] = {}
        is_up, missing, since = False, "", self.stopwatch()
        while True:
            for role in roles:
                report = self._report(role)
                if report is not None and report.pid != there.get(role):
                    there[role] = report.pid
                    self._tell("started", f"The {role} is there.", role.value, report.pid)
            if not is_up:
                why = self._find_missing(roles) or await self._meet(roles, way)
                if is_up := not why:
                    self._tell("up", "The mesh is up.")
                elif why != missing and self.stopwatch() - since >= MISSING_SECONDS:
                    missing, since = why, self.stopwatch()
                    self._tell("note", f"The mesh is not up yet: {why}")
            await self.sleep(LOOK)

    async def _draw(self, look: Callable[[], None]) -> None:
        """Apart from the watch, which waits for first contact."""
        while True:
            look()
            await self.sleep(LOOK)

    def _report(self, role: Role) -> PeerReport | None:
        """What the process that lives now says of itself."""
        report, child = self.folder.report(role), self._processes.children.get(role.value)
        return report if report is not None and child is not None and report.pid == child.pid else None

    def _find_missing(self, roles: tuple[Role, ...]) -> str:
        """Who is not there, or has no AXL node of its own."""
        missing: list[str] = []
        for role in roles:
            report = self._report(role)
            if report is None:
                missing.append(f"the {role} is not there.")
            elif report.node is not None and report.node.state != "ok":
                missing.append(f"node of the {role}: {report.node.state}. {report.node.why}")
        return " ".join(missing)

    async def _meet(self, roles: tuple[Role, ...], way: str) -> str:
        """What is missing still. A mesh is up with a peer that is there and does not answer yet: the note says so."""
        try:
            silent = await self.keeper.warm_routes(way, roles)
        except Unavailable as error:
            return str(error)
        except Refused as error:
            self._tell("note", str(error))
            return ""
        missing = self._find_missing(roles)  # one that answered may have died since
        if silent and not missing:
            self._tell("note", silent_sentence(silent, way))
        return missing

    async def _end_all(self) -> None:
        """Ask each to end, and make those end that do not."""
        children = list(self._processes.children.values())
        if not children:
            return
        self._tell("ending", "The mesh is ending.")
        for hard in (False, True):
            for child in children:
                child.signal(hard=hard)
            ending = [asyncio.ensure_future(child.wait()) for child in children]
            _, pending = await asyncio.wait(ending, timeout=GRACE)
            for task in pending:
                task.cancel()
            if not pending:
                break

    def _tell(self, event: Event, text: str, role: str | None = None, pid: int | None = None) -> None:
        self._hear(MeshEventView(at=self.now(), event=event, role=role, pid=pid, text=text))
