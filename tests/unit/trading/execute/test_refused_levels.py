"""A level that the venue refuses while a stop stands: the position stays, and the desk watches what was refused."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tests.unit.trading.execute.test_order_gate import held, protective
from tests.wire.order_gate import BTC, GateHarness
from tests.wire.paper_venue import open_binance
from zuno.kernel.errors import Unavailable
from zuno.kernel.units import Millis
from zuno.trading.model.market import MINUTE_MS
from zuno.trading.model.orders import Filters, Order, OrderRequest, OrderStatus, OrderType
from zuno.trading.model.trade_events import ExitReason

D = Decimal


class Coarsened:
    """A venue whose tick is coarser than it was, or that refuses triggers of these types at all."""

    def __init__(self, venue: Any) -> None:
        self._venue = venue
        self.tick: Decimal | None = None
        self.refused: set[OrderType] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._venue, name)

    async def filters(self, symbol: Any) -> Filters:
        found: Filters = await self._venue.filters(symbol)
        return found if self.tick is None else found.model_copy(update={"tick": self.tick})

    async def place(self, request: OrderRequest, good_till: Millis | None = None, *, unread: bool = False) -> Order:
        off = self.tick is not None and request.trigger is not None and request.trigger % self.tick
        if off or request.type in self.refused:
            now = await self._venue.now()
            return Order(request=request, venue_id="none", status=OrderStatus.REJECTED, updated=now, reason="tick size")
        placed: Order = await self._venue.place(request, good_till, unread=unread)
        return placed


async def open_desk(*refused: OrderType) -> tuple[GateHarness, Coarsened]:
    paper = open_binance()
    venue = Coarsened(paper.open_venue())
    venue.refused = {*refused}
    desk = GateHarness(paper, venue=venue)
    assert (await desk.gate.execute(desk.opening())).state == "open"
    return desk, venue


@pytest.mark.parametrize("purpose", ["stop", "target"])
async def test_a_level_off_the_tick_of_today_is_tried_once_more_on_it(purpose: str) -> None:
    desk, venue = await open_desk()
    venue.tick = D(1)  # over night
    asked, placed = (D("19801.3"), D(19_802)) if purpose == "stop" else (D("20701.3"), D(20_701))
    (trade,) = desk.gate.book.trades
    await desk.gate.set_levels(trade, *(asked, None) if purpose == "stop" else (None, asked))
    assert protective(desk)[purpose] == (D("0.050"), placed)
    assert held(desk) == D("0.050")
    assert {order.request.trigger for order in await desk.paper.open_venue().open_orders()} == {
        level for _, level in protective(desk).values()
    }


class Unheard(Coarsened):
    """Takes its first stop, and its answer is lost."""

    async def place(self, request: OrderRequest, good_till: Millis | None = None, *, unread: bool = False) -> Order:
        placed = await super().place(request, good_till, unread=unread)
        if request.type is OrderType.STOP_MARKET and not self.refused:
            self.refused = {OrderType.TAKE_PROFIT_MARKET}
            raise Unavailable("no answer")
        return placed


async def test_a_refused_target_closes_nothing_while_nobody_knows_whether_the_stop_stands() -> None:
    paper = open_binance()
    desk = GateHarness(paper, venue=Unheard(paper.open_venue()))
    assert (await desk.gate.execute(desk.opening())).state == "open"
    assert held(desk) == D("0.050")
    desk.wait(MINUTE_MS // 2)
    await desk.gate.advance()
    assert set(protective(desk)) == {"stop"}
    assert held(desk) == D("0.050")


async def test_a_target_that_is_refused_is_watched_and_said_while_the_stop_stands() -> None:
    desk, _ = await open_desk(OrderType.TAKE_PROFIT_MARKET)
    assert set(protective(desk)) == {"stop"}
    assert "target" in "".join(desk.gate.troubles.values())
    assert await desk.gate.reconcile() == ()
    for _ in range(3):
        desk.wait(MINUTE_MS)
        await desk.gate.advance()
    assert held(desk) == D("0.050")
    await desk.move(20_900)
    await desk.gate.advance()
    assert desk.gate.book.closed[-1].reason is ExitReason.TARGET
    assert not desk.gate.troubles
    assert await desk.paper.open_venue().open_orders() == ()


async def test_the_old_stop_stands_while_a_nearer_one_is_refused_and_watched() -> None:
    desk, venue = await open_desk()
    venue.refused = {OrderType.STOP_MARKET}
    (trade,) = desk.gate.book.trades
    await desk.gate.set_levels(trade, D(19_900), None)
    assert protective(desk)["stop"] == (D("0.050"), D("19600.0"))
    await desk.move(19_850)
    await desk.gate.advance()
    assert desk.gate.book.closed[-1].reason is ExitReason.STOP
    assert BTC not in {position.symbol for position in await desk.paper.open_venue().positions()}
