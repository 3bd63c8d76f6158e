"""Random faults for a simulated day: whatever fails, nothing is doubled, nothing unprotected, and the ledger is the
venue's in the end."""

from __future__ import annotations

import asyncio
import random
import tracemalloc
from decimal import Decimal
from typing import Any

import pytest

from tests.wire.order_gate import BTC, GateHarness
from tests.wire.paper_venue import ACCOUNT, open_binance
from zuno.adapters.account.trade_log import MemoryTradeLog, OwnedTradeLog
from zuno.kernel.errors import DiskFull, Unavailable, ZunoError
from zuno.kernel.units import Millis
from zuno.markets.venues import Venue
from zuno.trading.execute.account_writer import AccountWriter, ConcurrentWrite
from zuno.trading.model.cycle import Style
from zuno.trading.model.market import DAY_MS, MINUTE_MS, Side
from zuno.trading.model.orders import OrderType
from zuno.trading.model.trade_events import LockSet, Protection
from zuno.trading.rules.protections import ProtectionLimits

CALM = ProtectionLimits(
    cooldown_minutes=0, daily_loss_pct=Decimal(99), max_drawdown_pct=Decimal(99), max_stops=1_000_000
)


class FaultyVenue:
    """Fails before it acts, or after: a lost reply."""

    def __init__(self, venue: Any, chance: random.Random, rate: float) -> None:
        self._venue, self._chance, self.rate = venue, chance, rate

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._venue, name)
        if not asyncio.iscoroutinefunction(found):
            return found

        async def call(*args: Any, **named: Any) -> Any:
            if self._chance.random() < self.rate:
                raise Unavailable("HTTP 503")
            done = await found(*args, **named)
            if self._chance.random() < self.rate:
                raise Unavailable("timeout")
            return done

        return call


class FaultyLog(MemoryTradeLog):
    """A disk that is full now and then."""

    def __init__(self, chance: random.Random, rate: float) -> None:
        super().__init__()
        self._chance, self.rate = chance, rate

    async def append(self, account: str, events: Any, after: int) -> None:
        if account == ACCOUNT and self._chance.random() < self.rate:
            raise DiskFull("the home")
        await super().append(account, events, after)
        if account == ACCOUNT and self._chance.random() < self.rate:
            raise Unavailable("it was written, and nobody heard so")


async def live_through(seed: int, minutes: int, rate: float = 0.05) -> GateHarness:
    """A desk over a random walk, with a new process now and then."""
    chance = random.Random(seed)
    paper = open_binance()
    log = FaultyLog(chance, 0.0)
    paper.log = log
    venue = FaultyVenue(paper.open_venue(), chance, 0.0)
    desk = GateHarness(paper, limits=CALM, venue=venue, compare_every=Millis(5 * MINUTE_MS))
    venue.rate = log.rate = rate
    for minute in range(minutes):
        price = (paper.price * Decimal(str(1 + chance.gauss(0, 0.002)))).quantize(Decimal("0.1"))
        paper.price = price
        paper.at += MINUTE_MS - 1_000
        del paper.tape.market[BTC][:-4]
        await desk.move(price, chance.choice(["0.02", "1000"]))
        try:
            if minute % 30 == 0:
                style = chance.choice([Style.PASSIVE_MAKER, Style.SMART_DCA, Style.MOMENTUM_SNIPER])
                side = chance.choice([Side.LONG, Side.SHORT])
                await desk.gate.execute(desk.opening(side, style, run_id=f"run_{minute}"))
            elif minute % 97 == 0:
                await desk.gate.execute(desk.closing(run_id=f"run_{minute}"))
            await desk.gate.advance()
        except ZunoError:
            pass
        if chance.random() < 0.05:
            desk.restart()
    venue.rate = log.rate = 0.0
    paper.at += 1_000
    paper.show(paper.price)
    desk.restart()
    await desk.gate.advance()
    await desk.gate.advance()
    return desk


async def check_soundness(desk: GateHarness) -> None:
    book, venue = desk.gate.book, desk.paper.open_venue()
    assert await desk.gate.reconcile() == ()
    assert (await venue.balance()).total == book.venue_balance(Venue("BINANCE"))
    stops = {o.request.symbol: o.left for o in await venue.open_orders() if o.request.type is OrderType.STOP_MARKET}
    assert {p.symbol: p.quantity for p in await venue.positions()} == stops
    for id in book.orders:
        assert desk.paper.count_orders(id) <= 1
    assert book.locks == {}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_two_hours_of_random_faults_leave_the_account_sound(seed: int) -> None:
    desk = await live_through(seed, 120)
    await check_soundness(desk)
    assert desk.gate.book.intents


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(4))
async def test_a_day_of_random_faults_leaves_the_account_sound(seed: int) -> None:
    desk = await live_through(seed, DAY_MS // MINUTE_MS)
    await check_soundness(desk)
    assert len(desk.gate.book.closed) > 5


@pytest.mark.soak
async def test_a_second_day_takes_no_more_memory_than_its_events() -> None:
    await live_through(1, 200)
    tracemalloc.start()
    try:
        desk = await live_through(2, DAY_MS // MINUTE_MS)
        used, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert desk.gate.book.count > 300
    assert most < used + 20_000_000


async def test_a_full_disk_leaves_the_account_as_it_was() -> None:
    chance = random.Random(1)
    paper = open_binance()
    log = FaultyLog(chance, 0.0)
    paper.log = log
    desk = GateHarness(paper)
    log.rate = 1.0
    with pytest.raises(DiskFull):
        await desk.gate.execute(desk.opening())
    assert await desk.paper.open_venue().open_orders() == ()
    assert desk.gate.book.count == 0
    log.rate = 0.0
    assert (await desk.gate.execute(desk.opening())).state == "open"


async def test_a_log_that_is_owned_notices_others_when_it_writes() -> None:
    desk = GateHarness()
    desk.paper.log = OwnedTradeLog(desk.paper.log)
    gate = desk.restart()
    await gate.pause()
    other = GateHarness(desk.paper)
    other.paper.log = desk.paper.log._log
    await other.restart().resume()
    assert gate.book.locks, "nobody looked"
    await gate.pause("once more")
    await gate.kill()
    assert {lock.protection for lock in gate.book.locks.values()} == {Protection.KILL_SWITCH}


class BrokenOnce(MemoryTradeLog):
    """One append ends by something that is no error of ours, before or after it wrote."""

    def __init__(self, fault: BaseException, *, writes: bool) -> None:
        super().__init__()
        self._faults, self._writes = [fault], writes

    async def append(self, account: str, events: Any, after: int) -> None:
        if not self._faults or self._writes:
            await super().append(account, events, after)
        if self._faults:
            raise self._faults.pop()


@pytest.mark.parametrize("writes", [False, True])
@pytest.mark.parametrize("fault", [OSError("a disk"), asyncio.CancelledError(), KeyError("a bug")], ids=repr)
async def test_no_event_is_left_in_memory_that_no_log_has(fault: BaseException, writes: bool) -> None:
    log = BrokenOnce(fault, writes=writes)
    writer = AccountWriter(log, ACCOUNT)
    await writer.refresh()
    pause = LockSet(at=Millis(1), protection=Protection.PAUSED, symbol=None, until=None, reason="a pause")
    with pytest.raises(type(fault)):
        await writer.write([pause])
    assert pause in writer.unwritten

    later = pause.model_copy(update={"at": Millis(2), "protection": Protection.RECONCILIATION})
    with pytest.raises(ConcurrentWrite):
        await writer.write([later])
    assert (writer.book.count, writer.unwritten) == (len(log.list_events(ACCOUNT)), ())
    assert ((Protection.PAUSED, None) in writer.book.locks) is writes
    await writer.write([later])
    assert writer.book.count == len(log.list_events(ACCOUNT)) == 1 + writes
