"""The desk's loop: every slot once whatever is restarted, and a watch that waits for no model."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field

import pytest

from tests.wire.order_gate import BTC, GateHarness
from tests.wire.paper_venue import ACCOUNT, START, open_upbit
from zuno.kernel.errors import Broken, Unavailable
from zuno.kernel.units import Millis
from zuno.markets.venues import Venue
from zuno.trading.execute.order_gate import OrderGate
from zuno.trading.execute.venue_context import GateContext
from zuno.trading.model.cycle import Style
from zuno.trading.model.market import DAY_MS, HOUR_MS, Mode
from zuno.trading.model.trade_events import ExitReason
from zuno.trading.ports.venue import OrderVenue
from zuno.trading.watch.desk_loop import DeskLoop, DeskPlan, Job, JobKind, MarketClock

PLAN = DeskPlan((BTC,), Mode.SWING)
MIDNIGHT = Millis(START // DAY_MS * DAY_MS)


@dataclass
class Work:
    """Writes down what is done, as a journal does: it outlives the loop."""

    done: Counter[Job] = field(default_factory=Counter)
    dies_at: int | None = None
    """In the midst of so many jobs."""
    waits: asyncio.Event | None = None
    fails: int = 0
    breaks: Exception | None = None

    async def is_done(self, job: Job) -> bool:
        return self.done[job] > 0

    async def run_cycle(self, job: Job, at: Millis) -> None:
        if self.waits is not None:
            await self.waits.wait()
        if self.breaks is not None:
            raise self.breaks
        if self.fails:
            self.fails -= 1
            raise Unavailable("the model's budget is used up")
        self._do(job)

    async def set_targets(self, job: Job, at: Millis) -> None:
        self._do(job)

    async def summarise_day(self, job: Job, at: Millis) -> None:
        self._do(job)

    async def ask_strategies(self, job: Job, at: Millis) -> None:
        self._do(job)

    async def evaluate(self, job: Job, at: Millis) -> None:
        self._do(job)

    async def learn(self) -> None:
        return None

    def tell_changes(self) -> None:
        pass

    def _do(self, job: Job) -> None:
        if self.dies_at is not None and self.done.total() == self.dies_at:
            self.dies_at = None
            raise KeyboardInterrupt
        self.done[job] += 1


def clocked(at: Millis) -> tuple[GateHarness, MarketClock]:
    desk, clock = GateHarness(), MarketClock(at)
    return desk, clock


async def run(work: Work, since: Millis, until: Millis) -> None:
    desk, clock = clocked(since)
    await DeskLoop(desk.gate, PLAN, work).run_recorded(clock, until, asyncio.Event())


async def test_a_day_has_six_cycles_one_summary_one_evaluation_and_targets_once() -> None:
    work = Work()
    await run(work, MIDNIGHT, Millis(MIDNIGHT + DAY_MS - 1))
    assert Counter(job.kind for job in work.done) == {
        JobKind.CYCLE: 6,
        JobKind.DAILY_SUMMARY: 1,
        JobKind.TARGETS: 1,
        JobKind.SHADOW: 1,
        JobKind.EVALUATION: 1,
    }
    assert set(work.done.values()) == {1}


@pytest.mark.parametrize("dies_at", range(9))
async def test_a_restart_neither_skips_nor_doubles_a_job(dies_at: int) -> None:
    whole, cut = Work(), Work(dies_at=dies_at)
    until = Millis(MIDNIGHT + DAY_MS - 1)
    await run(whole, MIDNIGHT, until)
    with pytest.raises(KeyboardInterrupt):
        await run(cut, MIDNIGHT, until)
    await run(cut, MIDNIGHT, until)
    assert cut.done == whole.done


async def test_a_job_that_failed_is_tried_again_in_its_slot() -> None:
    work = Work(fails=1)
    stop = asyncio.Event()
    desk = GateHarness()
    moments = [Millis(MIDNIGHT + 5_000), Millis(MIDNIGHT + 10_000), Millis(MIDNIGHT + HOUR_MS)]
    said: list[str] = []

    def now() -> Millis:
        if len(moments) > 1:
            return moments.pop(0)
        if work.done:
            stop.set()
        return moments[0]

    async def stopped() -> bool:
        return False

    loop = DeskLoop(desk.gate, PLAN, work, said.append, watch_seconds=0.01, look_seconds=0.01)
    await loop.run_live(now, stop, stopped)
    cycles = [job for job in work.done if job.kind is JobKind.CYCLE]
    assert [job.slot for job in cycles] in ([], [MIDNIGHT])
    assert any("budget" in line for line in said)


async def test_the_watch_acts_while_a_cycle_waits_for_a_model() -> None:
    desk = GateHarness(open_upbit())
    assert (await desk.gate.execute(desk.opening(quantity=0.02, style=Style.MOMENTUM_SNIPER))).state == "open"
    stop, model = asyncio.Event(), asyncio.Event()
    work = Work(waits=model)

    async def stopped() -> bool:
        return bool(desk.gate.book.closed)

    loop = DeskLoop(desk.gate, PLAN, work, watch_seconds=0.01, look_seconds=0.01)
    running = asyncio.create_task(loop.run_live(lambda: Millis(desk.paper.at + HOUR_MS), stop, stopped))
    await asyncio.sleep(0.05)
    await desk.move(48_990_000)
    await asyncio.wait_for(running, 20)
    (summary,) = desk.gate.book.closed
    assert summary.reason is ExitReason.STOP
    assert not any(job.kind is JobKind.CYCLE for job in work.done)


async def test_somebody_elses_wish_ends_it() -> None:
    desk = GateHarness()

    async def stopped() -> bool:
        return True

    loop = DeskLoop(desk.gate, PLAN, Work(), watch_seconds=0.01, look_seconds=0.01)
    await asyncio.wait_for(loop.run_live(lambda: MIDNIGHT, asyncio.Event(), stopped), 20)


async def test_a_broken_journal_ends_the_desk() -> None:
    async def stopped() -> bool:
        return False

    work = Work(breaks=Broken("the chain does not fit"))
    loop = DeskLoop(GateHarness().gate, PLAN, work, watch_seconds=0.01, look_seconds=0.01)
    with pytest.raises(Broken):
        await asyncio.wait_for(loop.run_live(lambda: Millis(MIDNIGHT + 5_000), asyncio.Event(), stopped), 20)


async def test_a_clock_that_jumps_back_does_nothing_twice() -> None:
    work = Work()
    desk = GateHarness()
    stop = asyncio.Event()
    moments = iter([MIDNIGHT + 5_000, MIDNIGHT + 4 * HOUR_MS + 5_000, MIDNIGHT + 6_000, MIDNIGHT + 4 * HOUR_MS + 9_000])

    def now() -> Millis:
        at = next(moments, None)
        if at is None:
            stop.set()
        return Millis(at or MIDNIGHT + 4 * HOUR_MS + 9_000)

    async def stopped() -> bool:
        return False

    loop = DeskLoop(desk.gate, PLAN, work, watch_seconds=0.01, look_seconds=0.01)
    await asyncio.wait_for(loop.run_live(now, stop, stopped), 20)
    assert set(work.done.values()) == {1}


class CountedClock(MarketClock):
    """Ends what creeps."""

    def __init__(self, at: Millis, stop: asyncio.Event) -> None:
        super().__init__(at)
        self._moves, self._stop = 0, stop

    def move(self, at: Millis) -> None:
        self._moves += 1
        if self._moves > 500:
            self._stop.set()
        super().move(at)


async def test_what_is_overdue_and_cannot_be_done_is_tried_by_the_minute() -> None:
    """A hold ends while the market is dark."""
    desk, stop = GateHarness(), asyncio.Event()
    assert (await desk.gate.execute(desk.opening(hold="1h"))).state == "open"
    clock = CountedClock(Millis(desk.paper.at), stop)

    def now() -> Millis:
        desk.paper.at = clock.now()
        return clock.now()

    venues: dict[Venue, OrderVenue] = {Venue("BINANCE"): desk.paper.open_venue()}
    gate = OrderGate(GateContext(log=desk.log, account=ACCOUNT, venues=venues, now=now))
    until = Millis(clock.now() + 2 * HOUR_MS)
    await DeskLoop(gate, PLAN, Work()).run_recorded(clock, until, stop)
    assert clock.now() == until
