"""A spot exchange that takes its fee in coins: what is held is not in whole lots, and is protected and sold all the
same."""

from __future__ import annotations

from decimal import Decimal

from tests.wire.exchanges.harness import WireHarness, over_wire
from tests.wire.order_gate import BTC, card, rule
from tests.wire.paper_venue import ACCOUNT
from zuno.adapters.account.account_snapshot import dump_whole, restore_book
from zuno.adapters.account.trade_log import MemoryTradeLog
from zuno.kernel.units import Millis
from zuno.markets.venues import Venue
from zuno.trading.execute.intents import RulingToExecute
from zuno.trading.execute.order_gate import OrderGate
from zuno.trading.execute.venue_context import GateContext
from zuno.trading.model.cycle import Call, Leg, Style, Target
from zuno.trading.model.market import MINUTE_MS, Mode, Side
from zuno.trading.rules.performance import trace_account
from zuno.trading.rules.protections import ProtectionLimits

SPOT = Venue("BINANCE-SPOT")


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
        assert gate.book.positions[SPOT, BTC].quantity == Decimal("0.0122877")
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
        assert gate.book.positions[SPOT, BTC].quantity == Decimal("0.0122954")
        assert not await open_gate(here, log).reconcile()
        await here.move(here.price * Decimal("0.97"))
        await gate.advance()
        assert gate.book.positions == {}
        assert gate.book.dust == {SPOT: {BTC: Decimal("0.0000054")}}
        assert not await gate.reconcile()
        whole = dump_whole(trace_account(await log.events(ACCOUNT)))
        assert dump_whole(restore_book(whole[0], [whole[1]])) == whole
