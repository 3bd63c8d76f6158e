"""What the page starts and does not wait for: a debate, a cycle, a plan being applied. A closed tab ends none of them.

The journal has what comes of a job, by the same id; here stands only what runs in this process and how it ended.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, Literal, TypeVar

from zuno.doors.web.events import EventFeed
from zuno.doors.web.problems import Problem, describe_error
from zuno.doors.web.services import Services
from zuno.doors.zuno import Zuno
from zuno.kernel.units import Millis
from zuno.kernel.view import ForeignText, View

T = TypeVar("T")
MOST_RUNNING: Final = 4
"""Debates and cycles together."""
MOST_KEPT: Final = 100
State = Literal["running", "ended", "failed"]


class JobView(View):
    id: str
    """Of the debate (`req_…`) or the run (`run_…`); else a name of its own."""
    what: str
    """`recommend`, `analyze`, `approve`, `apply`, `cancel`, `kill`, `desk`, `collect` and the like."""
    about: ForeignText
    state: State
    started: int
    """Unix milliseconds."""
    error: ForeignText | None = None


class JobsView(View):
    jobs: tuple[JobView, ...]
    """The newest first."""


@dataclass(slots=True, eq=False)
class Jobs:
    services: Services
    feed: EventFeed
    now: Callable[[], Millis]
    chance: Callable[[int], bytes]
    count: Callable[[str, str], None]
    """Told what was asked and how it ended."""
    _jobs: dict[str, JobView] = field(default_factory=dict, init=False)
    _running: set[asyncio.Task[object]] = field(default_factory=set, init=False)
    """References to running tasks: a task without one may be garbage-collected."""
    _arguing: set[asyncio.Task[object]] = field(default_factory=set, init=False)
    """Those that count against `MOST_RUNNING`."""

    def list(self) -> JobsView:
        return JobsView(jobs=tuple(reversed(self._jobs.values())))

    def find(self, id_: str) -> JobView | None:
        """One that runs here, or failed here; what ended is in the journal."""
        job = self._jobs.get(id_)
        return None if job is None or job.state == "ended" else job

    def show(self, id_: str) -> JobView:
        if id_ not in self._jobs:
            raise Problem(404, "No such job was started since the server was; the journal may have what came of it.")
        return self._jobs[id_]

    def new_id(self, prefix: str) -> str:
        return prefix + hashlib.sha256(self.chance(16)).hexdigest()[:16]

    def start(self, id_: str, what: str, about: str, work: Callable[[Zuno], Awaitable[object]]) -> JobView:
        """Begin a debate or a cycle, and answer at once. `Problem` where too many of them run."""
        if len(self._arguing) >= MOST_RUNNING:
            raise Problem(429, f"{len(self._arguing)} debates and cycles run already; wait for one to end.")
        task = self._begin(id_, what, about, self.services.ask(work))
        self._arguing.add(task)
        task.add_done_callback(self._arguing.discard)
        return self._jobs[id_]

    async def finish(self, id_: str, what: str, about: str, work: Callable[[Zuno], Awaitable[T]]) -> T:
        """Begin and wait. The job goes on if the caller goes away; it is never refused because of other jobs."""
        return await self.follow(id_, what, about, self.services.ask(work))

    async def follow(self, id_: str, what: str, about: str, work: Awaitable[T]) -> T:
        """The same for what the services do not do: the kill switch comes this way."""
        return await asyncio.shield(self._begin(id_, what, about, work))

    async def begin(self, id_: str, what: str, about: str, work: Awaitable[object], seconds: float) -> JobView:
        """Begin what goes on until it is stopped, and answer after some seconds: what is refused by then is raised."""
        task = self._begin(id_, what, about, work)
        await asyncio.wait([task], timeout=seconds)
        if task.done():
            task.result()
        return self._jobs[id_]

    def _begin(self, id_: str, what: str, about: str, work: Awaitable[T]) -> asyncio.Task[T]:
        self._put(JobView(id=id_, what=what, about=about, state="running", started=self.now()))
        task = asyncio.create_task(self._run(id_, work))
        self._running.add(task)

        def forget(done: asyncio.Task[T]) -> None:
            self._running.discard(done)
            if not done.cancelled():
                done.exception()  # told by its job

        task.add_done_callback(forget)
        return task

    async def _run(self, id_: str, work: Awaitable[T]) -> T:
        job = self._jobs[id_]
        try:
            result = await work
        except Exception as error:  # whatever it was, the job says so; it is raised again for whoever waits
            self._put(job.model_copy(update={"state": "failed", "error": describe_error(error).detail}))
            raise
        except asyncio.CancelledError:
            self._put(job.model_copy(update={"state": "failed", "error": "It was cut off; what is on record stays."}))
            raise
        self._put(job.model_copy(update={"state": "ended"}))
        return result

    def _put(self, job: JobView) -> None:
        self._jobs.pop(job.id, None)
        self._jobs[job.id] = job
        if job.state != "running":
            self.count(job.what, job.state)
        for old in [key for key, kept in self._jobs.items() if kept.state != "running"][:-MOST_KEPT]:
            del self._jobs[old]
        self.feed.publish("job", job.model_dump(mode="json", by_alias=True))
