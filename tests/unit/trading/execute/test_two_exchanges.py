"""A trade with legs at two exchanges, killed while nothing can be written and one of them is stopped out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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
from zuno.trading.model.cycle import Target
from zuno.trading.model.market import MINUTE_MS
from zuno.trading.model.orders import Order, OrderRequest, OrderType
from zuno.trading.model.trade_events import ExitReason, Protection, TradeEvent
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

        async def place(request: OrderRequest, good_till: Millis | None = None) -> Order:
            if self.desk is not None and request.type is OrderType.MARKET:
                await self.desk.move(19_500)
            placed: Order = await found(request, good_till)
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
    assert {place for place, _ in desk.gate.book.positions} == set(DEFAULT_VENUES)
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
