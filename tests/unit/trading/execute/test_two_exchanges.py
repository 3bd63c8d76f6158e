"""A trade with legs at two exchanges, killed while nothing can be written and one of them is stopped out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from tests.unit.trading.execute.test_order_gate import DeafVenue
from tests.wire.order_gate import GateHarness
from tests.wire.paper_venue import ACCOUNT, PaperHarness, open_binance, open_upbit
from zuno.adapters.account.trade_log import MemoryTradeLog
from zuno.adapters.venues.paper.venue import PaperVenue
from zuno.kernel.errors import DiskFull, Unavailable
from zuno.kernel.units import Millis
from zuno.markets.venues import DEFAULT_VENUES, Venue
from zuno.trading.execute.intents import RulingToExecute
from zuno.trading.model.cycle import Style, Target
from zuno.trading.model.market import MINUTE_MS, Side
from zuno.trading.model.orders import Order, OrderRequest, OrderSide, OrderType
from zuno.trading.model.trade_events import (
    ExitReason,
    IntentKind,
    IntentLeg,
    IntentStored,
    Protection,
    TradeEvent,
    TradeIntent,
)
from zuno.trading.ports.venue import OrderVenue
from zuno.trading.rules.inputs import Fees


class FullLog(MemoryTradeLog):
    """Takes nothing more of the desk's own; the venues keep theirs."""

    full = False

    async def append(self, account: str, events: Sequence[TradeEvent], after: int) -> None:
        if self.full and account == ACCOUNT:
            raise DiskFull("the home")
        await super().append(account, events, after)


class StoppedOut(DeafVenue):
    """The market falls through the stop as an exit arrives."""

    desk: GateHarness | None = None

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._venue, name)
        if name != "place" or self.desk is None:
            return found

        async def place(request: OrderRequest, good_till: Millis | None = None, **named: Any) -> Order:
            if self.desk is not None and request.type is OrderType.MARKET:
                await self.desk.move(19_500)
            placed: Order = await found(request, good_till, **named)
            return placed

        return place


def open_upbit_beside(binance: PaperHarness) -> OrderVenue:
    """By the same clock, with a price that stands."""
    upbit = open_upbit()
    upbit.at = binance.at
    upbit.show(upbit.price)

    async def now() -> Millis:
        return Millis(binance.at)

    fees = Fees().at(Venue("UPBIT"))
    return PaperVenue(Venue("UPBIT"), ACCOUNT, binance.log, upbit.tape, now, fees, latency_ms=0)


def in_two_legs(order: RulingToExecute) -> RulingToExecute:
    leg = order.ruling.legs[0]
    won = leg.model_copy(update={"venue": Venue("UPBIT"), "currency": "KRW", "quantity": 0.01})
    legs = {"legs": (leg, won), "target_exchange": Target.SPLIT}
    return replace(order, ruling=order.ruling.model_copy(update=legs))


async def test_the_exit_of_one_leg_is_ours_though_the_other_was_stopped_out() -> None:
    log = FullLog()
    paper = replace(open_binance(), log=log)
    venue = StoppedOut(paper.open_venue())
    desk = GateHarness(paper, venue=venue, others={Venue("UPBIT"): open_upbit_beside(paper)})
    await desk.gate.execute(in_two_legs(desk.opening()))
    assert {place for place, _, _ in desk.gate.book.positions} == set(DEFAULT_VENUES)
    venue.desk, log.full = desk, True
    with pytest.raises(Unavailable):
        await desk.gate.kill()
    venue.desk, log.full = None, False
    desk.wait(MINUTE_MS)
    await desk.restart().reconcile()
    book = desk.gate.book
    assert {summary.exchange: summary.reason for summary in book.closed} == {
        Venue("BINANCE"): ExitReason.STOP,
        Venue("UPBIT"): ExitReason.KILL_SWITCH,
    }
    assert set(book.locks) == {(Protection.KILL_SWITCH, None)}
    assert book.positions == book.open_orders == book.open_intents == {}


def build_hedge(desk: GateHarness) -> TradeIntent:
    """Spot long and perpetual short, as one intent."""
    bought = IntentLeg(
        exchange=Venue("UPBIT"),
        quantity=Decimal("0.02"),
        entry=Decimal(50_000_000),
        stop=Decimal(49_000_000),
        target=Decimal(52_000_000),
        leverage=1,
    )
    sold = IntentLeg(
        exchange=Venue("BINANCE"),
        quantity=Decimal("0.02"),
        entry=Decimal(20_000),
        stop=Decimal(20_400),
        target=Decimal(19_200),
        leverage=1,
        side=Side.SHORT,
    )
    order = desk.opening()
    return TradeIntent(
        id="int_hedge",
        decision="run_hedge",
        kind=IntentKind.OPEN,
        symbol=order.symbol,
        mode=order.mode,
        side=Side.LONG,
        style=Style.MOMENTUM_SNIPER,
        legs=(bought, sold),
        valid_until=order.valid_until,
        mark=Decimal(20_000),
        atr=Decimal(200),
    )


async def test_each_leg_is_entered_protected_and_closed_on_its_own_side() -> None:
    paper = open_binance()
    desk = GateHarness(paper, others={Venue("UPBIT"): open_upbit_beside(paper)})
    intent = build_hedge(desk)
    await desk.gate.refresh()
    await desk.gate._account.write([IntentStored(at=Millis(paper.at), intent=intent, ruling=None)])
    await desk.gate.advance()
    book = desk.gate.book
    sides = {exchange: trade.side for (exchange, _, _), trade in book.positions.items()}
    assert sides == {Venue("UPBIT"): Side.LONG, Venue("BINANCE"): Side.SHORT}
    [stop] = [order.request for order in book.open_orders.values() if order.purpose == "stop"]
    assert (stop.exchange, stop.side, stop.trigger) == (Venue("BINANCE"), OrderSide.BUY, Decimal(20_400))
    await desk.gate.close(None)
    assert not desk.gate.book.positions
    assert not await desk.gate.reconcile()


def test_a_leg_on_the_side_of_its_intent_is_written_as_before() -> None:
    bought, sold = build_hedge(GateHarness()).legs
    assert ("side" in bought.model_dump(), "side" in sold.model_dump()) == (False, True)
    assert IntentLeg.model_validate_json(sold.model_dump_json()) == sold
