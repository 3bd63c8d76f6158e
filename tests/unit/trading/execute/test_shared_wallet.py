"""Two venues of one wallet: its money is counted once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from decimal import Decimal

import pytest

from tests.wire.exchanges.desk import WireDesk
from tests.wire.exchanges.harness import WireHarness, open_wire, over_wire
from tests.wire.order_gate import BTC
from zuno.adapters.account.trade_log import MemoryTradeLog
from zuno.kernel.units import Millis
from zuno.markets.venues import Venue
from zuno.trading.execute.order_gate import OrderGate
from zuno.trading.execute.venue_context import GateContext
from zuno.trading.model.trade_events import Protection
from zuno.trading.rules.account import mark_to_market

PERPETUAL, SPOT = Venue("BYBIT"), Venue("BYBIT-SPOT")


async def never_sleep(seconds: float) -> None:
    raise AssertionError("nothing is waited for")


@asynccontextmanager
async def open_wallet() -> AsyncIterator[tuple[WireHarness, Callable[..., OrderGate]]]:
    """A fake with one wallet, and what opens the gate of an account at its venues."""
    async with over_wire("BYBIT-SPOT") as here:
        ports = {PERPETUAL: open_wire(PERPETUAL, here.server.url, never_sleep), SPOT: here.venue}

        def open_gate(log: MemoryTradeLog, venues: tuple[Venue, ...] = (PERPETUAL, SPOT)) -> OrderGate:
            chosen = {venue: ports[venue] for venue in venues}
            now = here.fake.clock.now
            return OrderGate(GateContext(log=log, account="live", venues=chosen, now=lambda: Millis(now())))

        yield here, open_gate
        await ports[PERPETUAL].close()


@pytest.mark.parametrize("first", [(PERPETUAL, SPOT), (PERPETUAL,)])
async def test_the_money_of_one_wallet_is_counted_once(first: tuple[Venue, ...]) -> None:
    """`first`: the venues that the account began with."""
    async with open_wallet() as (here, open_gate):
        log, cash = MemoryTradeLog(), here.fake.engine.cash
        await open_gate(log, first).reconcile()
        gate = open_gate(log)
        await gate.reconcile()
        assert sum(map(gate.book.cash, (PERPETUAL, SPOT))) == cash
        marked = mark_to_market(gate.book.to_account(), BTC, {BTC: 60_000.0}, {"USD": 1.0})
        assert marked.equity_usd == float(cash)  # type: ignore[union-attr]
        assert marked.free == {PERPETUAL: float(cash) / 2, SPOT: float(cash) / 2}  # type: ignore[union-attr]

        desk = WireDesk(here, log)
        desk.gate = gate
        assert await desk.open(quantity=0.02) == "open"
        assert gate.book.cash(SPOT) < 0
        assert not await gate.reconcile()
        free = mark_to_market(gate.book.to_account(), BTC, {BTC: 60_000.0}, {"USD": 1.0}).free  # type: ignore[union-attr]
        assert sum(free.values()) == pytest.approx(float(here.fake.engine.cash))
        assert (Protection.RECONCILIATION, None) not in gate.book.locks


async def test_a_deposit_is_found_once_and_adopted_once() -> None:
    async with open_wallet() as (here, open_gate):
        gate = open_gate(MemoryTradeLog())
        await gate.reconcile()
        here.fake.engine.cash += 500
        assert len(await gate.reconcile()) == 1
        before = gate.book.count
        assert len(await gate.reconcile()) == 1
        assert gate.book.count == before
        assert (Protection.RECONCILIATION, None) in gate.book.locks
        shown = await gate.find_cash_differences()
        assert shown == {PERPETUAL: Decimal(500)}
        await gate.adopt_cash(shown)
        assert sum(map(gate.book.cash, (PERPETUAL, SPOT))) == here.fake.engine.cash
        assert not await gate.reconcile()
