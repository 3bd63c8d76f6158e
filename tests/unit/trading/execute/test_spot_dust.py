"""A spot exchange that takes its fee in coins: what is held is not in whole lots, and is protected and sold all the
same."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tests.wire.exchanges.desk import WireDesk
from tests.wire.exchanges.harness import WireHarness, over_wire
from tests.wire.order_gate import BTC, card, rule
from tests.wire.paper_venue import ACCOUNT
from zuno.adapters.account.account_snapshot import dump_whole, restore_book
from zuno.adapters.account.trade_log import MemoryTradeLog
from zuno.kernel.units import Millis
from zuno.markets.venues import VENUES, Venue
from zuno.trading.execute.intents import RulingToExecute
from zuno.trading.execute.order_gate import OrderGate
from zuno.trading.execute.venue_context import GateContext
from zuno.trading.model.cycle import Call, Leg, Style, Target
from zuno.trading.model.market import MINUTE_MS, Mode, Side
from zuno.trading.model.orders import Order, OrderRequest, OrderStatus
from zuno.trading.model.trade_events import ExitReason
from zuno.trading.rules.performance import trace_account
from zuno.trading.rules.protections import ProtectionLimits

SPOT = Venue("BINANCE-SPOT")


class RefusesStops:
    """A venue that refuses whatever reduces."""

    def __init__(self, venue: Any) -> None:
        self._venue = venue

    def __getattr__(self, name: str) -> Any:
        return getattr(self._venue, name)

    async def place(self, order: OrderRequest, good_till: Millis | None = None, *, unread: bool = False) -> Order:
        request = order
        if not request.reduce_only:
            placed: Order = await self._venue.place(request, good_till, unread=unread)
            return placed
        at = await self._venue.now()
        return Order(request=request, status=OrderStatus.REJECTED, updated=at, reason="not now", venue_id="1")


def open_gate(here: WireHarness, log: MemoryTradeLog) -> OrderGate:
    return OrderGate(
        GateContext(
            log=log,
            account=ACCOUNT,
            venues={SPOT: here.venue},
            now=lambda: Millis(here.fake.clock.now()),
            limits=ProtectionLimits(cooldown_minutes=0),
        )
    )


async def open_long(here: WireHarness, gate: OrderGate, quantity: float, run_id: str) -> None:
    at, price = gate.now(), float(here.price)
    size = {"margin": quantity * price, "notional": quantity * price, "leverage": 1.0, "quantity": quantity}
    ruling = rule(
        Call.LONG,
        at,
        execution_style=Style.MOMENTUM_SNIPER,
        legs=(Leg(venue=SPOT, side=Side.LONG, currency="USD", **size),),
        card=card(Side.LONG, price, price * 0.98, price * 1.06, quantity),
        target_exchange=Target.BINANCE,
    )
    mark = Decimal(str(price))
    until = Millis(at + 15 * MINUTE_MS)
    result = await gate.execute(RulingToExecute(run_id, BTC, Mode.SWING, at, ruling, until, mark, mark / 100))
    assert result.state == "open", result


async def test_what_is_left_below_a_lot_is_of_the_next_trade() -> None:
    async with over_wire("BINANCE-SPOT") as here:
        log = MemoryTradeLog()
        await here.owe(SPOT.paper_cash)
        gate = open_gate(here, log)
        await open_long(here, gate, 0.0123, "run_1")
        assert gate.book.positions[SPOT, BTC, "debate"].quantity == Decimal("0.0122877")
        [stop] = gate.book.open_orders.values()
        assert (stop.purpose, stop.request.quantity) == ("stop", Decimal("0.01228"))
        await gate.close(None)
        assert gate.book.positions == gate.book.open_intents == gate.book.open_orders == {}
        assert gate.book.dust == {SPOT: {BTC: Decimal("0.0000077")}}
        assert not await gate.reconcile()
        [closed] = gate.book.closed
        assert closed.net_pnl == (await here.venue.balance()).total - SPOT.paper_cash

        here.fake.clock.ahead += MINUTE_MS
        await open_long(here, gate, 0.0123, "run_2")
        assert gate.book.dust == {SPOT: {}}
        assert gate.book.positions[SPOT, BTC, "debate"].quantity == Decimal("0.0122954")
        assert not await open_gate(here, log).reconcile()
        await here.move(here.price * Decimal("0.97"))
        await gate.advance()
        assert gate.book.positions == {}
        assert gate.book.dust == {SPOT: {BTC: Decimal("0.0000054")}}
        assert not await gate.reconcile()
        whole = dump_whole(trace_account(await log.events(ACCOUNT)))
        assert dump_whole(restore_book(whole[0], [whole[1]])) == whole


@pytest.mark.parametrize("name", [venue for venue in VENUES if venue.spot])
async def test_a_position_that_is_not_in_whole_lots_is_protected_and_sold(name: str) -> None:
    async with over_wire(name) as here:
        desk, lot = WireDesk(here), here.fake.engine.markets[here.market].lot
        quantity = Decimal("0.0123") + lot
        assert await desk.open(quantity=float(quantity)) == "open"
        [position] = desk.gate.book.positions.values()
        assert position.quantity == desk.held()
        assert bool(position.quantity % lot) is here.exchange.fee_in_base
        before = desk.gate.book.count
        for _ in range(3):
            desk.wait(2 * MINUTE_MS)
            await desk.gate.advance()
        assert (desk.gate.book.count, desk.gate.troubles) == (before, {})
        assert position.stop is not None
        await here.move(position.stop * Decimal("0.995"))
        await desk.gate.advance()
        assert desk.gate.book.positions == desk.gate.book.open_orders == desk.gate.troubles == {}
        assert desk.gate.book.closed[-1].reason is ExitReason.STOP
        left = desk.gate.book.dust.get(here.exchange, {}).get(BTC, Decimal(0))
        assert left == desk.held() == position.most % lot
        after = desk.gate.book.count
        await desk.gate.advance()
        assert desk.gate.book.count == after


@pytest.mark.parametrize("name", [venue for venue in VENUES if venue.spot])
async def test_an_entry_that_could_not_be_sold_at_its_stop_is_not_begun(name: str) -> None:
    async with over_wire(name) as here:
        market = here.fake.engine.markets[here.market]
        least = market.min_notional or Decimal(5)
        market.min_notional = least
        desk, quantity = WireDesk(here), (least / market.mark // market.lot + 1) * market.lot
        refused = await desk.gate.execute(desk.opening(BTC, float(quantity)))
        assert (refused.state, desk.gate.book.orders) == ("refused", {})


async def test_what_is_left_of_an_entry_and_too_small_to_be_sold_is_watched_without_orders() -> None:
    async with over_wire("BINANCE-SPOT") as here:
        desk, small = WireDesk(here), Decimal("0.00008")
        here.fake.engine.move(here.market, here.price - here.tick, here.price, small)
        await desk.open(quantity=0.02)
        [position] = desk.gate.book.positions.values()
        assert position.quantity < small
        before = len(desk.gate.book.orders)
        for _ in range(3):
            desk.wait(2 * MINUTE_MS)
            await desk.gate.advance()
        assert len(desk.gate.book.orders) == before
        assert [order for order in desk.gate.book.orders.values() if order.purpose == "stop"] == []
        await here.move(here.price * 2)
        await desk.gate.advance()
        assert desk.gate.book.positions == {}
        assert desk.gate.book.closed[-1].reason is ExitReason.TARGET


async def test_a_stop_that_is_refused_is_not_planned_again_at_every_pass() -> None:
    async with over_wire("BINANCE") as here:
        desk, venue = WireDesk(here), here.venue
        refused = RefusesStops(venue)
        desk.gate = OrderGate(
            GateContext(log=desk.log, account=ACCOUNT, venues={venue.exchange: refused}, now=here.fake.clock.now)
        )
        await desk.open(quantity=0.02)
        for _ in range(3):
            desk.wait(1_000)
            await desk.gate.advance()
        stops = [order for order in desk.gate.book.orders.values() if order.purpose == "stop"]
        exits = [order for order in desk.gate.book.orders.values() if order.purpose == "exit"]
        assert (len(stops), len(exits)) == (1, 3)
        assert len(desk.gate.book.positions) == 1
