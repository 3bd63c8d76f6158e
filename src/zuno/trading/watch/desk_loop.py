"""The desk as one process: scheduled cycles, and beside them the protective watch, until somebody stops it.

What is due follows from the clock alone; every job has a name made of its slot, so that a restart neither skips nor
doubles one. Live, the watch is a task of its own: while a cycle waits for a model it goes on. Over recorded time the
same steps are taken one after the other, and the clock jumps to the next moment at which something is due.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum
from typing import Final, Protocol

from zuno.kernel.canonical import canonical, digest
from zuno.kernel.errors import Refused, Unavailable, ZunoError
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.trading.execute.order_gate import OrderGate
from zuno.trading.model.market import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, Mode

CADENCE: Final[Mapping[Mode, int]] = {Mode.SWING: 4 * HOUR_MS, Mode.POSITION: DAY_MS}
"""How often a mode's cycle runs, counted from midnight UTC."""


class JobKind(StrEnum):
    CYCLE = "cycle"
    TARGETS = "targets"
    """Of the sleeves that hold what a strategy says, by the day that ended."""
    DAILY_SUMMARY = "daily_summary"
    """Of the day that ended."""
    SHADOW = "shadow"
    """What the owner's own strategies want at the end of the day."""
    EVALUATION = "evaluation"
    """What was learned from closed trades, once a day."""


@dataclass(frozen=True, slots=True)
class Job:
    kind: JobKind
    slot: Millis
    symbol: Symbol | None = None
    mode: Mode | None = None

    def name(self, account: str) -> str:
        """The same whenever the same job of the same account is meant."""
        return digest(canonical([account, self.kind, self.slot, self.symbol, self.mode]))[:16]


def slot_of(span: int, now: Millis) -> Millis:
    return Millis(now // span * span)


def current_jobs(symbols: Iterable[Symbol], mode: Mode, now: Millis) -> tuple[Job, ...]:
    """The newest slot of every job at a moment. Missed slots are not made up for."""
    day, slot = slot_of(DAY_MS, now), slot_of(CADENCE[mode], now)
    return (
        Job(JobKind.DAILY_SUMMARY, day),
        Job(JobKind.TARGETS, day),
        *(Job(JobKind.CYCLE, slot, symbol, mode) for symbol in symbols),
        Job(JobKind.SHADOW, day),
        Job(JobKind.EVALUATION, day),
    )


def next_slot(mode: Mode, now: Millis) -> Millis:
    return Millis(slot_of(CADENCE[mode], now) + CADENCE[mode])


WATCH_SECONDS: Final = 3.0
"""Between two looks of the protective watch."""
LOOK_SECONDS: Final = 1.0
"""Between two looks at the schedule."""
SETTLED_MS: Final = 5 * SECOND_MS
"""After the beginning of a slot: venues are given so long to make up the bar that ended."""
TICK_MS: Final = MINUTE_MS
"""Between two looks of the watch over recorded time, while orders wait or levels are watched."""
LEAST_RETRY_MS: Final = 5 * MINUTE_MS


class DeskWork(Protocol):
    """What the desk does when it is due. Each job has a name, and one that is done already is not done again."""

    async def is_done(self, job: Job) -> bool: ...
    async def run_cycle(self, job: Job, at: Millis) -> None: ...
    async def set_targets(self, job: Job, at: Millis) -> None: ...
    async def summarise_day(self, job: Job, at: Millis) -> None: ...
    async def ask_strategies(self, job: Job, at: Millis) -> None: ...
    async def evaluate(self, job: Job, at: Millis) -> None: ...

    async def learn(self) -> None:
        """Learn from what was closed since; where nothing was it costs nothing."""

    def tell_changes(self) -> None:
        """Called when the watch has looked."""


@dataclass(frozen=True, slots=True)
class DeskPlan:
    symbols: tuple[Symbol, ...]
    mode: Mode


class MarketClock:
    """The market's time where it is moved by hand."""

    def __init__(self, at: Millis) -> None:
        self._at = at

    def now(self) -> Millis:
        return self._at

    def move(self, at: Millis) -> None:
        """Forward only."""
        self._at = Millis(max(self._at, at))


@dataclass(eq=False)
class DeskLoop:
    """Drives one account. `tick_ms`: between two looks over recorded time, where its bars are longer than a minute."""

    gate: OrderGate
    plan: DeskPlan
    work: DeskWork
    report: Callable[[str], None] = lambda text: None
    _: KW_ONLY
    watch_seconds: float = WATCH_SECONDS
    look_seconds: float = LOOK_SECONDS
    tick_ms: int = TICK_MS
    _done: set[Job] = field(default_factory=set, init=False)
    _retry: dict[Job, Millis] = field(default_factory=dict, init=False)
    _troubles: dict[str, str] = field(default_factory=dict, init=False)

    async def run_recorded(self, clock: MarketClock, until: Millis, stop: asyncio.Event) -> None:
        """From the clock's moment to another, as fast as it goes."""
        await self.gate.reconcile()
        last = Millis(clock.now() - 1)  # a slot may begin with the first moment
        while not stop.is_set():
            at = self._next_moment(last, until)
            if at is None:
                break
            if at == slot_of(CADENCE[self.plan.mode], at):
                # The account of a cycle is what was before its moment.
                clock.move(Millis(at - 1))
                await self._watch_once()
                await self._learn_once()
                clock.move(at)
                for job in current_jobs(self.plan.symbols, self.plan.mode, at):
                    if job.slot == at and await self._is_due(job, at):
                        await self._do_job(job, at)
            clock.move(at)
            await self._watch_once()
            await self._learn_once()
            last = at

    async def run_live(
        self, now: Callable[[], Millis], stop: asyncio.Event, stopped: Callable[[], Awaitable[bool]]
    ) -> None:
        """By the wall's clock. `stopped`: whether somebody asked this desk to end."""
        await self.gate.reconcile()
        watch = asyncio.create_task(self._watch(stop, stopped))
        learning: asyncio.Task[None] | None = None
        jobs: set[asyncio.Task[None]] = set()
        running: set[Job] = set()
        broken: list[Exception] = []

        async def do(job: Job, at: Millis) -> None:
            try:
                await self._do_job(job, at)
            except Exception as error:  # a broken journal or a fault of ours: the desk ends with it
                broken.append(error)
                stop.set()
            finally:
                running.discard(job)

        try:
            while not stop.is_set():
                at = now()
                for job in current_jobs(self.plan.symbols, self.plan.mode, at):
                    if at >= job.slot + SETTLED_MS and job not in running and await self._is_due(job, at):
                        running.add(job)
                        jobs.add(task := asyncio.create_task(do(job, at)))
                        task.add_done_callback(jobs.discard)
                if learning is None or learning.done():
                    # Beside the watch, which a model that thinks about a closed trade must not hold up.
                    jobs.add(learning := asyncio.create_task(self._learn_once()))
                    learning.add_done_callback(jobs.discard)
                if watch.done() or broken:
                    break
                with suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), self.look_seconds)
        finally:
            stop.set()
            for task in jobs:
                # What a run has put on record stays; it is resumed by the next start.
                task.cancel()
            await asyncio.gather(*jobs, return_exceptions=True)
            await watch
        if broken:
            raise broken[0]

    # -- parts

    def _next_moment(self, last: Millis, until: Millis) -> Millis | None:
        """The next at which something is due; None where nothing is before the end."""
        slot = next_slot(self.plan.mode, last)
        due, tick = [slot], Millis((last // self.tick_ms + 1) * self.tick_ms)
        if self.gate.needs_watch:
            due.append(tick)
        if (ends := self.gate.next_due()) is not None:
            due.append(ends if ends > last else tick)  # what is overdue could not be done: by the minute
        at = min(due)
        return at if at <= until else until if last < until else None

    async def _is_due(self, job: Job, at: Millis) -> bool:
        if job in self._done or at < self._retry.get(job, 0):
            return False
        if await self.work.is_done(job):
            self._done.add(job)
            return False
        return True

    async def _do_job(self, job: Job, at: Millis) -> None:
        act = {
            JobKind.CYCLE: self.work.run_cycle,
            JobKind.TARGETS: self.work.set_targets,
            JobKind.DAILY_SUMMARY: self.work.summarise_day,
            JobKind.SHADOW: self.work.ask_strategies,
            JobKind.EVALUATION: self.work.evaluate,
        }[job.kind]
        try:
            await act(job, at)
            self._done.add(job)
        except (Unavailable, Refused) as error:
            self._retry[job] = Millis(at + LEAST_RETRY_MS)
            of = "" if job.symbol is None else f" of {job.symbol}"
            self.report(f"{job.kind.value}{of}: {error}")

    async def _watch(self, stop: asyncio.Event, stopped: Callable[[], Awaitable[bool]]) -> None:
        while not stop.is_set():
            await self._watch_once()
            with suppress(ZunoError):
                if await stopped():
                    stop.set()
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), self.watch_seconds)

    async def _watch_once(self) -> None:
        try:
            await self.gate.advance()
            trouble = "; ".join(f"{exchange}: {why}" for exchange, why in self.gate.troubles.items())
            self.work.tell_changes()
        except ZunoError as error:  # a store that is away is tried again; stops stand at the venue
            trouble = str(error)
        self._tell_trouble("watch", trouble)

    async def _learn_once(self) -> None:
        try:
            await self.work.learn()
            trouble = ""
        except ZunoError as error:  # what was closed is on record: it is learned from at the next look
            trouble = str(error)
        self._tell_trouble("post-mortems", trouble)

    def _tell_trouble(self, of: str, trouble: str) -> None:
        """Once, until it changes."""
        if trouble and trouble != self._troubles.get(of):
            self.report(f"{of}: {trouble}")
        self._troubles[of] = trouble
