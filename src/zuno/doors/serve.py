"""`zuno serve`: desk, monitor, pushes, bot, page and LP peers as one tree of processes, started and ended in order."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal, Protocol

from zuno.kernel.backoff import Backoff
from zuno.kernel.children import Child, ChildKeeper, Death, RestartPolicy
from zuno.kernel.errors import Refused, Unavailable, ZunoError
from zuno.kernel.lock import ProcessLock, hold
from zuno.kernel.notify import Notice, NoticeKind, NoticeLabel, Outbox, Severity
from zuno.kernel.text import plain_text
from zuno.kernel.units import Millis, Seconds
from zuno.kernel.view import EventView, ForeignText, View
from zuno.present.document import Document, document

ESSENTIAL: Final = frozenset({"monitor", "desk"})
"""A service manager is told READY once these are ready, and its watchdog is fed while they live."""
UNAVAILABLE: Final = 4
"""The exit code of a database that is down, a full disk and their like: what mends itself is waited for."""
POLICY: Final = RestartPolicy(Backoff(1.0, 60.0), long_life=10.0, most_deaths=10, passing=UNAVAILABLE)
START_SECONDS: Final = 30.0
"""How long the next part waits for one to be ready."""
END_SECONDS: Final = 20.0
"""How long a part may take to end before it is killed."""
PUSH_SECONDS: Final = 5.0
"""How long the last pushes may take."""
USAGE: Final = 2
"""The exit code of words or settings that cannot be meant: no restart mends them."""
LOOK: Final = 1.0
MOST_SILENT_LOOKS: Final = 180
"""Looks without a sign of life after which a part is killed; counted, so that no clock step kills one."""
STEADY: Final = Backoff(30.0, 3_600.0)
"""How long a part must be ready again before its outage is over: longer after each, against a storm of pushes."""
ELSEWHERE_SECONDS: Final = 5.0
OLD_REPORT_MS: Final = 60_000
"""A supervisor that has written nothing for so long stands still."""
_SAVE_LOOKS: Final = 5
_MOST_UNSENT: Final = 100
_LOG: Final = logging.getLogger(__name__)

PartStatus = Literal["starting", "ready", "restarting", "elsewhere", "ended", "given up", "left out"]
ServeEventKind = Literal["starting", "ready", "died", "note", "line", "serving", "ending"]


class PartView(View):
    name: str
    state: PartStatus = "starting"
    """`elsewhere`: another process runs it. `ended`: it was asked to. `left out`: not configured, or not wanted."""
    pid: int | None = None
    since: int | None = None
    """Unix milliseconds: when this process of it started."""
    restarts: int = 0
    why: ForeignText = ""


class ServeReport(View):
    """What a `zuno serve` says of itself, kept in the home for others to read."""

    pid: int
    since: int
    at: int
    started: bool
    """Every part had its turn to start."""
    over: bool = False
    """It ended in order: one that is not over and does not run was killed."""
    parts: tuple[PartView, ...]

    def list_troubles(self, now: Millis) -> tuple[str, ...]:
        """Why it is not ready; empty where it is."""
        if now - self.at > OLD_REPORT_MS:
            return (f"zuno serve has written nothing for {(now - self.at) // 1_000} s",)
        waiting = [part for part in self.parts if part.state in ("starting", "restarting", "given up")]
        troubles = [f"{part.name}: {part.state}{part.why and f', {part.why}'}" for part in waiting]
        return tuple(troubles) or (() if self.started else ("it is starting",))


class ServeEventView(EventView):
    event: ServeEventKind
    part: str | None
    pid: int | None

    def write_line(self) -> str:
        return f"{self.part:<8} | {self.text}" if self.event == "line" else super().write_line()


class ServeEndView(View):
    restarts: dict[str, int]
    said: str

    def to_document(self) -> Document:
        return document(self.said)


class PartChild(Child, Protocol):
    """`beats`: signs of life so far. `ready`: it said that it does its work."""

    @property
    def beats(self) -> int: ...

    @property
    def ready(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    words: tuple[str, ...]
    missing: str = ""
    """Why it is left out; empty: it is run."""
    find_holder: Callable[[], int | None] = lambda: None
    """The process that runs it elsewhere, where one does."""


@dataclass(frozen=True, slots=True)
class ServeBackends:
    parts: Sequence[Part]
    """In the order in which they are started; they are ended the other way round."""
    start: Callable[[str, Sequence[str], Callable[[str], None]], PartChild]
    end_orphans: Callable[[Sequence[str]], Awaitable[tuple[int, ...]]]
    """End what a killed `zuno serve` left; which processes those were."""
    check: Callable[[], Awaitable[object]]
    """Opens what every part needs; raises where that cannot be."""
    lock: ProcessLock
    manager: Callable[..., None]
    """Tells a service manager lines, where there is one."""
    watchdog_seconds: float | None
    outbox: Outbox | None
    """None: nobody is pushed to."""
    drain: Callable[[asyncio.Event], Awaitable[object]]
    """Sends what waits there, until an event is set."""
    label: NoticeLabel
    read: Callable[[], ServeReport | None]
    keep: Callable[[ServeReport], None]
    pid: int
    now: Callable[[], Millis]
    stopwatch: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    policy: RestartPolicy = POLICY


@dataclass(slots=True)
class _Track:
    part: Part
    view: PartView
    beats: int = 0
    silent: int = 0
    """Looks without a beat."""
    outage: str = ""
    """The key of the outage that is not over."""
    outages: int = 0
    ready_at: float = 0.0
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    """Once it is ready, or will not be for now."""

    @property
    def name(self) -> str:
        return self.part.name


class Supervisor:
    """One per home, for as long as it runs."""

    def __init__(self, backends: ServeBackends) -> None:
        self._with = backends
        self._tracks = {part.name: _Track(part, PartView(name=part.name)) for part in backends.parts}
        self._wanted = [track for track in self._tracks.values() if not track.part.missing]
        self._keeper = ChildKeeper[PartChild](backends.policy, backends.stopwatch, backends.sleep)
        self._hear: Callable[[ServeEventView], None] = lambda event: None
        self._unsent: list[tuple[str, Notice]] = []
        self._since = backends.now()
        self._started = self._told_ready = False
        self._status = ""

    async def run(self, hear: Callable[[ServeEventView], None], stop: asyncio.Event) -> ServeEndView:
        """Until `stop`. `Refused` while another serves this home; `Unavailable` where no part could be kept alive."""
        self._hear = hear
        with hold(self._with.lock):
            await self._prepare()
            works = (stop.wait(), self._look(), self._send_notices(), self._keep_all())
            tasks: list[asyncio.Future[Any]] = [asyncio.ensure_future(work) for work in works]
            ending = asyncio.Event()
            sending = asyncio.ensure_future(self._with.drain(ending))
            try:
                ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in ended:
                    task.result()  # a bug of ours ends the service
            finally:
                await self._end(*tasks)
                ending.set()
                await asyncio.wait({sending}, timeout=PUSH_SECONDS)
                sending.cancel()
        if not stop.is_set() and (troubles := self._report().list_troubles(self._with.now())):
            raise Unavailable(f"No part of the service could be kept alive: {'; '.join(troubles)}")
        restarts = {name: track.view.restarts for name, track in self._tracks.items()}
        return ServeEndView(restarts=restarts, said="The service has ended, and all of its parts with it.")

    async def _prepare(self) -> None:
        left = await self._with.end_orphans(tuple(self._tracks))
        await self._with.check()
        before = self._with.read()
        if before is not None and not before.over:
            ended = f"; what it left was ended: {', '.join(map(str, left))}" if left else ""
            self._tell("note", f"The service was killed, and is started again{ended}.")
            self._push(f"serve:{before.pid}:{before.since}:killed", "The service was killed and is started again", "")
        for track in self._tracks.values():
            if why := track.part.missing:
                self._settle(track, "note", f"The {track.name} is left out: {why}", state="left out", why=why)
        if not self._wanted:
            raise Refused("There is nothing to serve: every part is left out.")

    async def _end(self, *tasks: asyncio.Future[Any]) -> None:
        self._with.manager("STOPPING=1", "STATUS=ending")
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        children = self._keeper.children
        try:
            for name in [name for name in reversed(self._tracks) if name in children]:
                self._tell("ending", f"The {name} is asked to end.", self._tracks[name])
                for hard in (False, True):
                    children[name].signal(hard=hard)
                    with suppress(TimeoutError):
                        await asyncio.wait_for(children[name].wait(), END_SECONDS)
                        break
        except asyncio.CancelledError:  # a second Ctrl-C
            for child in children.values():
                child.signal(hard=True)
            raise
        finally:
            await self._append_notices()
            self._with.keep(self._report().model_copy(update={"over": True}))

    async def _keep_all(self) -> None:
        """Start each once the one before it has settled, and keep them until all have ended."""
        async with asyncio.TaskGroup() as keeping:
            for track in self._wanted:
                keeping.create_task(self._keep(track))
                with suppress(TimeoutError):
                    await asyncio.wait_for(track.settled.wait(), START_SECONDS)
            self._started = True

    async def _keep(self, track: _Track) -> None:
        name = track.name
        while (holder := track.part.find_holder()) is not None:
            if track.view.state != "elsewhere":
                why = f"process {holder} runs it; it is started here when that has ended"
                self._settle(track, "note", f"The {name} is not started: {why}.", state="elsewhere", why=why)
            await self._with.sleep(ELSEWHERE_SECONDS)

        start = partial(self._with.start, name, track.part.words, lambda line: self._tell("line", line, track))
        hear_start, hear_death = partial(self._hear_start, track), partial(self._hear_death, track)
        try:
            last = await self._keeper.keep(
                name, start, hear_start, hear_death, lambda code: code in (0, USAGE), lambda child: child.ready
            )
        except Unavailable as error:  # no process can be started
            last = Death(0, 126, 1, str(error))
        if last.code == 0:
            why = "it was asked to end, and is not started again"
            self._settle(track, "note", f"The {name} ended: {why}.", state="ended", why=why, pid=None)
            return
        why = f"it ended {last.count} times in a row, last with {last.how}"
        self._settle(track, "died", f"The {name} is given up: {why}", state="given up", why=why, pid=None)
        self._push(f"{self._key(track)}:given up", f"The {name} is given up", why, Severity.CRITICAL)

    def _hear_start(self, track: _Track, child: PartChild) -> None:
        track.beats = track.silent = 0
        state = "restarting" if track.outage else "starting"
        track.view = track.view.model_copy(update={"state": state, "pid": child.pid, "since": self._with.now()})
        self._tell("starting", f"The {track.name} is process {child.pid}.", track)
        self._save()

    def _hear_death(self, track: _Track, death: Death, pause: float) -> None:
        why = f"it ended ({death.how}) and is started again in {pause:g} s"
        restarts = track.view.restarts + 1
        changes = {"state": "restarting", "why": why, "pid": None, "restarts": restarts}
        self._settle(track, "died", f"The {track.name} died: {why}.", **changes)
        if not track.outage:
            track.outage, track.outages = self._key(track), track.outages + 1
            severity = Severity.CRITICAL if track.name in ESSENTIAL else Severity.WARNING
            self._push(f"{track.outage}:down", f"The {track.name} died", why, severity)

    def _settle(self, track: _Track, event: ServeEventKind, text: str, **changes: object) -> None:
        track.view = track.view.model_copy(update=changes)
        self._tell(event, text, track)
        track.settled.set()
        self._save()

    async def _look(self) -> None:
        """Looks at the parts and feeds the watchdog in one task, so that it is not fed while this stands still."""
        limit, looks = self._with.watchdog_seconds, 0
        while True:
            for name, child in self._keeper.children.items():
                self._look_at(self._tracks[name], child)
            self._tell_manager(feed=limit is not None)
            looks += 1
            if looks % _SAVE_LOOKS == 0:
                self._save()
            await self._with.sleep(LOOK if limit is None else min(LOOK, limit / 3))

    def _look_at(self, track: _Track, child: PartChild) -> None:
        if child.beats != track.beats:
            track.beats, track.silent = child.beats, 0
        else:
            track.silent += 1
        if track.silent == MOST_SILENT_LOOKS:
            self._tell("note", f"The {track.name} has given no sign of life for {track.silent} s: it is killed.", track)
            child.signal(hard=True)
        if track.view.state != "ready" and child.ready:
            track.ready_at = self._with.stopwatch()
            self._settle(track, "ready", f"The {track.name} is ready.", state="ready", why="")
        steady = self._with.stopwatch() - track.ready_at >= STEADY.delay(track.outages)
        if track.view.state == "ready" and steady and track.outage:
            self._push(f"{track.outage}:back", f"The {track.name} is back", "", Severity.INFO)
            track.outage = ""

    def _tell_manager(self, *, feed: bool) -> None:
        needed = [track.view for track in self._wanted if track.name in ESSENTIAL and track.view.state != "ended"]
        if self._started and not self._told_ready and all(part.state in ("ready", "elsewhere") for part in needed):
            self._told_ready = True
            self._save()  # whoever hears of it and looks sees the same
            self._tell("serving", "The service is ready.")
            self._with.manager("READY=1")
        if feed and all(part.pid is not None or part.state == "elsewhere" for part in needed):
            self._with.manager("WATCHDOG=1")
        status = "; ".join(self._report().list_troubles(self._with.now())) or "ready"
        if status != self._status:
            self._status = status
            self._with.manager(f"STATUS={plain_text(status, 300)}")

    async def _send_notices(self) -> None:
        while True:
            await self._append_notices()
            await self._with.sleep(LOOK)

    async def _append_notices(self) -> None:
        """An outbox that cannot be written is tried again at the next look."""
        try:
            while self._unsent and self._with.outbox is not None:
                key, notice = self._unsent[0]
                await self._with.outbox.append(notice, key)
                self._unsent.pop(0)
        except ZunoError as error:
            _LOG.info("a push is not written yet: %s", error)

    def _push(self, key: str, title: str, reason: str, severity: Severity = Severity.WARNING) -> None:
        at = Seconds(self._with.now() // 1_000)
        notice = Notice(
            NoticeKind.SERVICE, title, severity, self._with.label, at, reason=reason and plain_text(reason, 300)
        )
        self._unsent = [*self._unsent, (key, notice)][-_MOST_UNSENT:]

    def _key(self, track: _Track) -> str:
        return track.outage or f"serve:{self._with.pid}:{self._since}:{track.name}:{track.view.restarts}"

    def _report(self) -> ServeReport:
        parts = tuple(track.view for track in self._tracks.values())
        now, mine = self._with.now(), self._with.pid
        return ServeReport(pid=mine, since=self._since, at=now, started=self._started, parts=parts)

    def _save(self) -> None:
        self._with.keep(self._report())

    def _tell(self, event: ServeEventKind, text: str, track: _Track | None = None) -> None:
        part, pid = (None, None) if track is None else (track.name, track.view.pid)
        self._hear(ServeEventView(at=self._with.now(), event=event, part=part, pid=pid, text=text))
        if event != "line":
            _LOG.info("%s", text)
