"""Cycles that act, and the desk that runs by itself, on a small market in memory."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.wire.cycling import PNG, ROLES, Brush, Desk, Talkative, market
from tests.wire.exchanges import binance
from tests.wire.exchanges.binance import FakeBinance
from tests.wire.exchanges.serving import serve_exchange
from tests.wire.fakes.series import MemorySeries
from tests.wire.order_gate import open_long
from tests.wire.trading_account import MemoryTradeRecord
from zuno.adapters.account.trade_log import JournalTradeLog
from zuno.adapters.clock.system import unix_millis
from zuno.adapters.file_lock import desk_lock
from zuno.adapters.memory.hashed import HashedEmbedder
from zuno.adapters.memory.table import InMemoryIndex
from zuno.adapters.venues.exchange import ApiKeys
from zuno.adapters.venues.orders.wires import build_account
from zuno.adapters.venues.synthetic.path import END
from zuno.kernel.errors import Refused, Unavailable, UsageError, ZunoError
from zuno.kernel.logs import current_log_id
from zuno.kernel.units import Millis
from zuno.llm.port import ModelRequest
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol
from zuno.markets.venues import DEFAULT_VENUES, Venue
from zuno.trading.data.bundle_builder import build_bundle
from zuno.trading.execute.order_gate import OrderGate
from zuno.trading.execute.venue_context import GateContext
from zuno.trading.learn.memory_book import LessonBook, MemoryBook, post_mortem_id, read_post_mortem
from zuno.trading.learn.recall import CaseRecall
from zuno.trading.measure.features import measure_features
from zuno.trading.model.account import POSITIONS
from zuno.trading.model.cycle import Call, JudgeKind, Node, NodeEvent, RegimeFamily
from zuno.trading.model.known import or_none
from zuno.trading.model.market import HOUR_MS, Mode
from zuno.trading.model.memory import CASE_RECORD, POST_MORTEM, ClosedTrade, Verdict
from zuno.trading.model.trade_events import ExitReason, Mandate, paper_account
from zuno.trading.rules.price_menu import PriceMenu, build_price_menu
from zuno.trading.rules.trade_outcomes import judge_outcome
from zuno.trading.run.record import ENDED, load_bundle
from zuno.trading.service.desk_view import DeskEvent
from zuno.trading.service.features import TradingDesk
from zuno.trading.service.learning import LearningDesk
from zuno.trading.service.live_start import StartPermit
from zuno.trading.service.memory import MemoryDesk
from zuno.trading.service.report import build_report
from zuno.trading.service.runs import Cycles
from zuno.trading.service.trade_desk import DeskBackends, TradeDesk, _DeskRun, desk_name
from zuno.trading.watch.desk_loop import DeskPlan, Job, JobKind

BTC = "BTCUSDT"
AS_OF = str(END - 4 * HOUR_MS)


@pytest.fixture(scope="module")
def store() -> MemorySeries:
    return asyncio.run(market(thin=True))


@pytest.fixture(scope="module")
def menu(store: MemorySeries) -> PriceMenu:
    bundle = asyncio.run(build_bundle(store, Symbol("BTCUSDT"), Mode.SWING, Millis(int(AS_OF))))
    return build_price_menu(bundle, measure_features(bundle))


@pytest.fixture
def desk(tmp_path: Path, store: MemorySeries, menu: PriceMenu) -> Desk:
    """A Judge who buys."""
    return Desk(tmp_path, store, models={role: (Talkative(menu, lambda request: 0),) for role in ROLES})


async def bought(desk: Desk, account: str, **named: Any) -> str:
    outcome = await desk.cycles.run(BTC, as_of=AS_OF, chart=False, account=account, **named)
    assert outcome.ruling.decision is Call.LONG
    return outcome.run_id


@pytest.mark.slow
async def test_a_run_that_acts_opens_once_and_its_replay_opens_nothing(desk: Desk, store: MemorySeries) -> None:
    account = paper_account(store.origin.label)
    run_id = await bought(desk, account)
    done = await desk.cycles.execution(run_id)
    assert done is not None
    assert done.state in ("open", "working")
    gate = desk.build_gate(account, lambda: Millis(int(AS_OF)))
    events = (await gate.refresh()).count
    replay = await desk.cycles.replay(run_id)
    assert replay.ok, replay.differences
    again = await desk.cycles.run(BTC, as_of=AS_OF, chart=False, account=account)
    assert again.ruling.decision is Call.HOLD, "it is held already"
    await desk.cycles.run(BTC, as_of=AS_OF, chart=False)
    assert (await gate.refresh()).count == events, "a run that nobody asked to act leaves the account alone"
    assert len(gate.book.intents) == 1


def record_of_winners(before: Millis) -> tuple[ClosedTrade, ...]:
    """So many trades of every judge and family that a claimed edge counts nearly whole."""
    return tuple(
        ClosedTrade(
            opened=before - 2 - number,
            closed=before - 1 - number,
            judge=judge,
            family=family,
            edge=0.1,
            profit_pct=4.0,
            loss_pct=2.0,
            exit_pct=4.0,
        )
        for judge in JudgeKind
        for family in RegimeFamily
        for number in range(400)
    )


@pytest.mark.slow
async def test_the_ruling_of_a_cycle_is_placed_at_an_exchange_once_and_protected(
    desk: Desk, store: MemorySeries, menu: PriceMenu
) -> None:
    as_of, mark = Millis(int(AS_OF)), Decimal(str(round(or_none(menu.now) or 0.0, 1)))
    fake = FakeBinance()
    fake.clock.ahead = as_of - unix_millis()
    tick = Decimal("0.1")
    fake.engine.move("BTCUSDT", mark - tick, mark + tick)
    async with serve_exchange(fake.server):
        keys = ApiKeys(binance.KEY, binance.SECRET)
        venue = build_account(Venue("BINANCE"), keys, tuple(DEFAULT_SYMBOLS), fake.server.url)
        context = GateContext(
            log=JournalTradeLog(desk.opened),
            account="live",
            venues={Venue("BINANCE"): venue},
            now=lambda: as_of,
            live=True,
        )
        gate = OrderGate(context)
        mandate = Mandate(
            symbols=(Symbol("BTCUSDT"),),
            venues=(Venue("BINANCE"),),
            max_margin_per_trade_usd=Decimal(2_000),
            max_margin_per_day_usd=Decimal(2_000),
            max_daily_loss_usd=Decimal(100),
            granted=as_of,
            expires=as_of + HOUR_MS,
        )
        granted = await gate.grant_mandate(mandate)
        await gate.reconcile()

        async def open_gate(account: str, moment: Millis) -> OrderGate:
            return gate

        record = MemoryTradeRecord({store.origin.label: record_of_winners(as_of)})
        cycles = desk.cycles
        cycles._with = replace(cycles._with, gate=open_gate, real_time_record=record)
        outcome = await cycles.run(BTC, as_of=AS_OF, chart=False, account="live")
        assert (outcome.ruling.decision, outcome.ruling.veto) == (Call.LONG, None)
        done = await cycles.execution(outcome.run_id)
        assert done is not None
        assert done.state in ("open", "working"), done
        (tracked,) = gate.book.intents.values()
        assert (tracked.intent.mandate, tracked.intent.exploration) == (granted.hash, False)
        fake.engine.move("BTCUSDT", mark - 2 * tick, mark - tick)  # where an entry waits, it is filled
        await gate.advance()
        await gate.end_entries("the run has ended")
        (position,) = gate.book.positions.values()
        standing = [algo for algo in fake.engine.algos.values() if algo.status == "NEW"]
        assert [algo.quantity for algo in standing] == [position.quantity] * 2, "stop and target"
        ids = [order.client_id for order in fake.engine.orders.values()]
        assert len(ids) == len(set(ids)) == sum(o.purpose == "entry" for o in gate.book.orders.values())
        assert not [order for order in fake.engine.orders.values() if order.status == "NEW"]
        await venue.close()


@pytest.mark.slow
async def test_a_later_run_sees_what_the_account_holds(desk: Desk, store: MemorySeries) -> None:
    account = paper_account(store.origin.label, "own")
    await bought(desk, account)
    later = await desk.cycles.run(BTC, as_of=str(END), chart=False, account=account)
    slots = {slot.name: slot for slot in (await load_bundle(await desk.opened(), later.bundle)).slots}
    content: Any = slots[POSITIONS].content
    assert content["positions"] or content["pending"]
    other = await desk.cycles.run(BTC, as_of=str(END), chart=False, account=paper_account(store.origin.label, "new"))
    slots = {slot.name: slot for slot in (await load_bundle(await desk.opened(), other.bundle)).slots}
    content = slots[POSITIONS].content
    assert not content["positions"]


@pytest.mark.slow
async def test_an_account_is_written_forward(desk: Desk, store: MemorySeries) -> None:
    account = paper_account(store.origin.label)
    await bought(desk, account)
    with pytest.raises(Refused, match="--account"):
        await desk.cycles.run(BTC, as_of=str(int(AS_OF) - HOUR_MS), chart=False, account=account)


@pytest.mark.slow
async def test_a_later_run_cites_the_memory_of_an_earlier_trade(desk: Desk, store: MemorySeries) -> None:
    """Bought, closed at a loss, learned from; two hours later the rules look at the same market."""
    index = InMemoryIndex(HashedEmbedder())
    desk.recall = CaseRecall(index, MemoryBook(desk.opened), LessonBook(desk.opened))
    account, origin, closed = paper_account(store.origin.label), store.origin.label, Millis(END - 2 * HOUR_MS)
    await bought(desk, account)
    gate = desk.build_gate(account, lambda: closed)
    await gate.advance()
    assert await gate.close(None)
    (written,) = (await desk.evaluator([index]).evaluate(account, origin, closed)).post_mortems
    assert written.verdict is Verdict.FAILURE
    desk.models = None
    later = await desk.cycles.run(BTC, as_of=str(END), chart=False)
    report = build_report(await desk.cycles.record(later.run_id))
    read = report.view.memory
    assert read is not None
    assert [memory.id for memory in read.memories] == [written.id]
    assert read.memories[0].constraint in report.page
    assert written.id in report.page
    await MemoryDesk(desk.opened, MemoryBook(desk.opened), LessonBook(desk.opened), index, lambda: origin).forget(
        written.id
    )
    replay = await desk.cycles.replay(later.run_id)
    assert replay.ok, replay.differences


PRICES = ("entry_price", "stop_loss", "take_profit", "expected_profit_pct", "expected_loss_pct")
WANTS_OUT = {"decision": "CANCEL_AND_CLOSE", "allocation_pct": 0, "leverage": 1, **dict.fromkeys(PRICES)}


class ChangedJudge(Talkative):
    """A Judge who says something else in some fields."""

    def __init__(self, menu: PriceMenu, changes: dict[str, Any]) -> None:
        super().__init__(menu, lambda request: 0)
        self._changes = changes

    async def reply(self, request: ModelRequest) -> Any:
        answered = await super().reply(request)
        changes = self._changes if request.role == "judge" else {}
        return replace(answered, text=json.dumps(json.loads(answered.text) | changes))


@pytest.mark.soak(every=2)
@pytest.mark.slow
@pytest.mark.parametrize("reason", [ExitReason.STOP, ExitReason.TARGET, ExitReason.HOLD_OVER, ExitReason.DECISION])
async def test_a_run_that_acts_remembers_what_closes_in_it(
    desk: Desk, store: MemorySeries, menu: PriceMenu, reason: ExitReason
) -> None:
    """Whatever ends the position, the run that finds it closed writes the post-mortem, the label and the memory."""
    index = InMemoryIndex(HashedEmbedder())
    evaluator = desk.evaluator([index])
    desk.learn, desk.recall = evaluator.try_to_learn_from, CaseRecall(index, evaluator.book, evaluator.lessons)
    account, journal = paper_account(store.origin.label), await desk.opened()
    if reason is ExitReason.HOLD_OVER:
        desk.models = {role: (ChangedJudge(menu, {"hold_duration": "2h"}),) for role in ROLES}
    opening = await bought(desk, account)
    hour_later = Millis(int(AS_OF) + HOUR_MS)
    gate = desk.build_gate(account, lambda: hour_later)
    await gate.advance()
    (trade,) = gate.book.trades.values()
    (mark,) = (await gate.marks()).values()
    if reason is ExitReason.STOP:
        await gate.set_levels(trade.id, mark - 1, None)
    elif reason is ExitReason.TARGET:
        await gate.set_levels(trade.id, None, mark + 1)
    judge = ChangedJudge(menu, WANTS_OUT)
    desk.models = dict.fromkeys(ROLES, (judge,)) if reason is ExitReason.DECISION else None
    heard: dict[Node, NodeEvent] = {}
    run = await desk.cycles.run(
        BTC, as_of=str(END), chart=False, account=account, listen=lambda event: heard.update({event.node: event})
    )
    (summary,) = (await desk.build_gate(account, lambda: Millis(END)).refresh()).closed
    assert (summary.trade, summary.reason, summary.decision) == (trade.id, reason, opening)
    id = post_mortem_id(account, trade.id)
    (written,) = [read_post_mortem(entry) async for entry in journal.entries(kind=POST_MORTEM)]
    assert (written.id, written.summary, written.verdict) == (id, summary, judge_outcome(written.path, summary.net_pnl))
    assert [entry.request_id async for entry in journal.entries(kind=CASE_RECORD)] == [id]
    assert await index.ids() == {id}
    assert not (await desk.evaluator().learn(account, store.origin.label, Millis(END))).post_mortems
    assert (await desk.cycles.replay(run.run_id)).ok
    closed_before = summary.closed < END
    assert closed_before is (reason in (ExitReason.STOP, ExitReason.TARGET)), "the others end it now"
    assert (id in heard[Node.DATA_SYNTHESIS].note) is closed_before
    recalled = (await desk.cycles.record(run.run_id)).view
    assert recalled is not None
    assert recalled.memory is not None
    assert (id in {memory.id for memory in recalled.memory.memories}) is closed_before


def backends(desk: Desk, live: bool = False) -> DeskBackends:
    async def open_gate(account: str, now: Callable[[], Millis], watch_only: str | None) -> OrderGate:
        return desk.build_gate(account, now)

    def cycles(gate: OrderGate) -> Cycles:
        async def same(account: str, as_of: Millis) -> OrderGate:
            return gate

        desk.open_gate = same
        return desk.cycles

    return DeskBackends(
        journal=desk.opened,
        log=JournalTradeLog(desk.opened),
        desk=TradingDesk(desk.store, desk.opened, Brush()),
        live=live,
        open_gate=open_gate,
        cycles=cycles,
        lock=lambda account: desk_lock(desk.home, desk_name(account)),
        now=lambda: Millis(END),
        evaluator=desk.evaluator(),
    )


@pytest.mark.slow
async def test_a_permitted_run_remembers_what_the_account_closed_before_it_and_in_it(
    desk: Desk, store: MemorySeries
) -> None:
    account, journal = paper_account(store.origin.label), await desk.opened()

    async def permit(*asked: object) -> StartPermit:
        return StartPermit(account)

    async def remembered() -> list[str | None]:
        return [entry.request_id async for entry in journal.entries(kind=POST_MORTEM)]

    await bought(desk, account)
    gate = desk.build_gate(account, lambda: Millis(int(AS_OF) + HOUR_MS))
    await gate.advance()
    (first,) = gate.book.trades
    (mark,) = (await gate.marks()).values()
    await gate.set_levels(first, mark - 1, None)
    ids = [post_mortem_id(account, first)]
    async with TradeDesk(replace(backends(desk), permit=permit)).open_run(BTC, "demo", lambda *_: True) as permitted:
        assert permitted is not None
        assert await remembered() == ids, "before the run recalls"
        held = desk.build_gate(account, lambda: Millis(END))
        await open_long(held, Millis(END), float(mark))
        (second,) = held.book.trades
        await held.close(None)
        gate_of_run = await permitted.cycles._with.gate(account, Millis(END))  # type: ignore[misc]
        await gate_of_run.refresh()
    assert await remembered() == [*ids, post_mortem_id(account, second)]


@pytest.mark.slow
async def test_the_desk_runs_through_a_recorded_day_and_a_restart_repeats_nothing(desk: Desk) -> None:
    heard: list[DeskEvent] = []
    stop = asyncio.Event()
    asked: dict[str, Any] = {"symbols": [BTC], "speed": "max"}

    def hear(event: DeskEvent) -> None:
        heard.append(event)
        if event.what == "cycle" and not stop.is_set():
            stop.set()

    first = await TradeDesk(backends(desk)).start(hear, stop, since="12h", **asked)
    assert first.cycles == 1
    second = await TradeDesk(backends(desk)).start(heard.append, asyncio.Event(), since="12h", **asked)
    journal = await desk.opened()
    ended = [entry async for entry in journal.entries(kind=ENDED)]
    assert first.cycles + second.cycles == len(ended) == len({entry.request_id for entry in ended}) == 4
    assert second.invariants == "ok"
    assert second.ledger.debits == second.ledger.credits
    assert set(second.ledger.cash) == {exchange.currency for exchange in DEFAULT_VENUES}
    assert any(event.what == "opened" for event in heard)
    with pytest.raises(Refused):
        await TradeDesk(backends(desk)).start(heard.append, asyncio.Event(), since="12h", **asked)


@pytest.mark.slow
async def test_what_a_person_closes_is_learned_from_and_the_next_run_shows_it(desk: Desk, store: MemorySeries) -> None:
    """Behaviour 17: the record is written after the close, and the cycle's node only shows it."""
    account, closed_at = paper_account(store.origin.label), Millis(END - HOUR_MS)
    run_id = await bought(desk, account)
    gate = desk.build_gate(account, lambda: closed_at)
    await gate.advance()
    for trade in list(gate.book.trades):
        await gate.close(trade)
    heard: dict[Node, NodeEvent] = {}
    market, log = TradingDesk(desk.store, desk.opened, Brush()), JournalTradeLog(desk.opened)
    learning = LearningDesk(market, desk.evaluator(), log, lambda: Millis(END), None)
    before, _ = await learning.calibration()
    assert not before.agents
    assert any("trade evaluate" in note for note in before.notes)
    evaluated = await learning.evaluate()
    (learned,) = evaluated.post_mortems
    assert not (await learning.evaluate()).post_mortems
    view, image = await learning.calibration()
    assert image == PNG
    judge = next(agent for agent in view.agents if agent.role == "judge")
    assert (judge.source, judge.regime, judge.n, judge.enough) == ("model", "all", 1, False)
    assert judge.bins[0].claimed == pytest.approx(0.8)
    assert not (await learning.calibration(AS_OF))[0].agents, "nothing was closed before it was opened"
    vetoes = await learning.vetoes()
    assert vetoes.outcomes == 0, "its hold is not over, and no level was touched"
    later = await desk.cycles.run(
        BTC, as_of=str(END), chart=False, account=account, listen=lambda event: heard.update({event.node: event})
    )
    assert heard[Node.DATA_SYNTHESIS].state == "done"
    assert learned.id in heard[Node.DATA_SYNTHESIS].note
    assert (await desk.cycles.replay(later.run_id)).ok
    assert later.run_id != run_id


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({}, Refused),
        ({"since": "24h"}, UsageError),
        ({"speed": "2"}, UsageError),
        ({"speed": "max", "since": "1h", "until": "2h"}, UsageError),
        ({"speed": "max", "symbols": ["DOGEUSDT"]}, UsageError),
    ],
)
async def test_what_cannot_be_run_is_said(desk: Desk, asked: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        await TradeDesk(backends(desk)).start(lambda event: None, asyncio.Event(), **asked)


@pytest.mark.slow
@pytest.mark.parametrize("live", [True, False])
async def test_pushes_are_sent_while_a_desk_runs_by_the_clock_and_never_through_recorded_time(
    desk: Desk, live: bool
) -> None:
    began, ended = list[bool](), list[bool]()

    async def push(stop: asyncio.Event) -> None:
        began.append(True)
        await stop.wait()
        ended.append(True)

    stop = asyncio.Event()
    asked: dict[str, Any] = {} if live else {"speed": "max", "since": "1h"}
    asyncio.get_running_loop().call_later(0.2, stop.set)
    await TradeDesk(replace(backends(desk, live), beside=[push])).start(
        lambda event: None, stop, symbols=[BTC], **asked
    )
    assert (began, ended) == (([True], [True]) if live else ([], []))


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("fault", [None, Unavailable("no venue answers")])
async def test_a_ping_follows_each_cycle_by_the_clock_and_none_in_recorded_time(
    desk: Desk, live: bool, fault: ZunoError | None
) -> None:
    pings, ids = list[bool](), list[str]()

    class OneCycle:
        async def run(self, *asked: Any, **named: Any) -> Any:
            ids.append(current_log_id())
            if fault is not None:
                raise fault
            return SimpleNamespace(run_id=named["run_id"], ruling=SimpleNamespace(decision=Call.HOLD, veto=None))

        async def execution(self, run_id: str) -> None:
            return None

    async def ping(ok: bool) -> None:
        pings.append(ok)

    with_ping = replace(backends(desk), cycles=lambda gate: OneCycle(), ping=ping)  # type: ignore[arg-type, return-value]
    gate = await with_ping.open_gate(paper_account("x"), lambda: Millis(END), None)
    plan = DeskPlan((Symbol("BTCUSDT"),), Mode.SWING)
    run = _DeskRun(with_ping, gate, plan, paper_account("x"), lambda event: None, live=live)
    with suppress(Unavailable):
        await run.run_cycle(Job(JobKind.CYCLE, Millis(END), Symbol("BTCUSDT"), Mode.SWING), Millis(END))
    assert pings == ([fault is None] if live else [])
    assert re.fullmatch(r"run_[0-9a-f]{16}", ids[0])


@pytest.mark.slow
async def test_two_desks_of_one_account_do_not_run_at_once(desk: Desk, store: MemorySeries) -> None:
    lock = desk_lock(desk.home, desk_name(paper_account(store.origin.label)))
    lock.take()
    try:
        with pytest.raises(Refused):
            await TradeDesk(backends(desk)).start(lambda event: None, asyncio.Event(), speed="max", symbols=[BTC])
    finally:
        lock.leave()
