"""One desk over recorded time, arm by arm: the desk's own loop, gate, ledger and paper venue, decision by decision.
Arms that run side by side come to each moment together: what is measured of the market is measured once."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from zuno.kernel.units import Millis
from zuno.lab.replies import ModelMeter
from zuno.lab.strategies_view import TiltView
from zuno.lab.trading.arm_result import ArmResult, DecisionLine, PriceSeries, Span, measure_arm
from zuno.lab.trading.arms import Arm
from zuno.lab.trading.cycles import BacktestCycles
from zuno.lab.trading.scored_decisions import DecisionRecord, ScoredDecisions
from zuno.markets.market import Symbol
from zuno.trading.agents.case import Case
from zuno.trading.agents.learned import find_cut
from zuno.trading.execute.order_gate import OrderGate
from zuno.trading.learn.tilt_book import JudgeView, read_judge_view
from zuno.trading.model.account import account_slots
from zuno.trading.model.bundle import Bundle, Slot, add_slots
from zuno.trading.model.cycle import Call, Outcome
from zuno.trading.model.known import pick
from zuno.trading.model.market import DAY_MS, Mode, Side
from zuno.trading.model.trade_events import TradeEvent
from zuno.trading.rules.calibration import list_closed_trades
from zuno.trading.run.record import summarise_run
from zuno.trading.service.runs import Recall
from zuno.trading.watch.desk_loop import DeskLoop, DeskPlan, Job, JobKind, MarketClock

MODE = Mode.SWING


class Lockstep:
    """Keeps arms at the same moment. An arm that has ended is not waited for."""

    def __init__(self, arms: int) -> None:
        self._running = arms
        self._waiting: list[asyncio.Future[None]] = []

    async def wait(self) -> None:
        """Until every arm that runs waits too."""
        mine = asyncio.get_running_loop().create_future()
        self._waiting.append(mine)
        self._release()
        await mine

    def leave(self) -> None:
        self._running -= 1
        self._release()

    def _release(self) -> None:
        if len(self._waiting) >= self._running:
            for each in self._waiting:
                each.set_result(None)
            self._waiting.clear()


@dataclass(frozen=True, slots=True)
class Learning:
    recall: Recall
    keep_run: Callable[[str, Outcome, Bundle], Awaitable[None]]
    """Puts a run that opens something on record, for its post-mortem."""
    learn: Callable[[Millis], Awaitable[int]]
    """From what was closed by then; how many lessons were drawn."""


@dataclass(slots=True)
class DeskArm:
    """One arm's desk; wiring builds it. It shares nothing with the others but what is measured of the market."""

    arm: Arm
    account: str
    gate: OrderGate
    clock: MarketClock
    cycles: Mapping[Symbol, BacktestCycles]
    events: Callable[[], Sequence[TradeEvent]]
    learning: Learning | None
    tick_ms: int
    """Between two looks of the watch: the shortest bars there are."""
    meter: ModelMeter
    decisions: list[DecisionLine] = field(default_factory=list)
    record: DecisionRecord = field(init=False)
    judge_views: dict[tuple[int, Symbol], list[JudgeView]] = field(default_factory=dict)
    """What the Judge said of a market, cycle by cycle, by the day's begin."""
    ran: int = 0
    lessons: int = 0
    recalled: int = 0

    def __post_init__(self) -> None:
        self.record = DecisionRecord(self.account)

    def measure(
        self,
        prices: Mapping[Symbol, PriceSeries],
        krw_rate: PriceSeries | None,
        span: Span,
        until: Millis,
        scored: ScoredDecisions | None = None,
        tilt: TiltView | None = None,
    ) -> ArmResult:
        counted = {"decisions": tuple(self.decisions), "cycles": self.ran, **pick(self, "lessons", "recalled")}
        asked = {**pick(self.meter, "charges", "unanswered"), "krw_rate": krw_rate}
        events = self.events()
        return measure_arm(self.arm, events, prices, span, until, **asked, **counted, scored=scored, tilt=tilt)


async def run_desk_arm(
    desk: DeskArm, span: Span, lockstep: Lockstep, tell: Callable[[Millis], Awaitable[None]], stop: asyncio.Event
) -> None:
    """From the beginning of a span to its end. `tell` is called when the cycles of a moment are done."""
    symbols = tuple(desk.cycles)
    work = _ArmWork(desk, symbols, lockstep, tell)
    loop = DeskLoop(desk.gate, DeskPlan(symbols, MODE), work, tick_ms=desk.tick_ms)
    try:
        await loop.run_recorded(desk.clock, span.end, stop)
    finally:
        lockstep.leave()


@dataclass(slots=True)
class _ArmWork:
    """The `DeskWork` of a backtest: cycles and learning; days are summed up by whoever reads the account."""

    desk: DeskArm
    symbols: Sequence[Symbol]
    lockstep: Lockstep
    tell: Callable[[Millis], Awaitable[None]]
    learned_closed: int = 0

    async def is_done(self, job: Job) -> bool:
        return job.kind is JobKind.SHADOW  # no strategy of the owner's is asked here

    async def _skip(self, job: Job, at: Millis) -> None:
        """An arm is the debate's alone."""

    ask_strategies = set_targets = summarise_day = evaluate = _skip

    async def run_cycle(self, job: Job, at: Millis) -> None:
        desk, symbol = self.desk, job.symbol
        assert symbol is not None
        if symbol is self.symbols[0]:
            await self.lockstep.wait()
        book = await desk.gate.advance()
        run_id = f"run_{job.name(desk.account)}"
        read: list[Bundle] = []

        async def recall(case: Case) -> Sequence[Slot]:
            slots = () if desk.learning is None else await desk.learning.recall(case)
            read.append(add_slots(case.bundle, slots))
            return slots

        outcome = await desk.cycles[symbol].run(
            at,
            account_slots(book.to_account(), at),
            list_closed_trades(book.closed, at),
            execute=desk.gate.execute,
            recall=None if desk.learning is None else recall,
            run_id=run_id,
        )
        desk.ran += 1
        desk.record.keep(run_id, outcome)
        if outcome.decision.source != "fallback":
            views = desk.judge_views.setdefault((at - at % DAY_MS, symbol), [])
            views.append(read_judge_view(summarise_run(outcome)))
        call = outcome.ruling.decision
        if call is not Call.HOLD:
            desk.decisions.append(DecisionLine(at=at, symbol=symbol, call=call.value))
        if desk.learning is not None:
            if call.side is not None:
                await desk.learning.keep_run(run_id, outcome, read[0])
            wanted = outcome.decision.decision.side
            desk.recalled += isinstance(wanted, Side) and find_cut(read[0], wanted) is not None
        if symbol is self.symbols[-1]:
            await self.tell(at)

    async def learn(self) -> None:
        closed = len(self.desk.gate.book.closed)
        if self.desk.learning is not None and closed != self.learned_closed:
            self.desk.lessons += await self.desk.learning.learn(self.desk.gate.now())
            self.learned_closed = closed

    def tell_changes(self) -> None:
        pass
