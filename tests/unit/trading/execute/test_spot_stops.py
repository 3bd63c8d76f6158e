"""A spot venue that holds stops: an order to sell binds the balance, so the stop stands there alone."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import pytest

from tests.unit.trading.execute.test_order_gate import held, opened, protective
from tests.unit.trading.execute.test_two_exchanges import FullLog
from tests.wire.order_gate import GateHarness
from tests.wire.paper_venue import open_upbit
from zuno.kernel.errors import Unavailable
from zuno.markets.venues import Venue
from zuno.trading.model.orders import OrderStatus
from zuno.trading.model.trade_events import ExitReason


@pytest.fixture(autouse=True)
def spot_with_stops() -> Iterator[None]:
    venue = Venue("UPBIT")
    object.__setattr__(venue, "holds_stops", True)
    yield
    object.__setattr__(venue, "holds_stops", False)


async def open_at_spot() -> GateHarness:
    paper = open_upbit()
    paper.log = FullLog()
    paper.venue = paper.open_venue()
    return await opened(GateHarness(paper=paper), quantity=0.03)


def list_statuses(desk: GateHarness, purpose: str) -> list[OrderStatus]:
    return [order.status for order in desk.gate.book.orders.values() if order.purpose == purpose]


async def test_the_stop_stands_and_the_target_is_watched() -> None:
    desk = await open_at_spot()
    assert protective(desk) == {"stop": (Decimal("0.03"), Decimal(49_000_000))}
    assert desk.gate.needs_watch
    await desk.move(52_100_000)
    await desk.gate.advance()
    assert (held(desk), protective(desk)) == (0, {})
    assert desk.gate.book.closed[-1].reason is ExitReason.TARGET
    assert list_statuses(desk, "stop") == [OrderStatus.CANCELED]
    assert list_statuses(desk, "exit") == [OrderStatus.FILLED]
    assert not await desk.gate.reconcile()


async def test_a_stop_that_is_hit_closes_at_the_venue() -> None:
    desk = await open_at_spot()
    await desk.move(48_900_000)
    await desk.gate.advance()
    assert desk.gate.book.closed[-1].reason is ExitReason.STOP
    assert (held(desk), list_statuses(desk, "exit"), list_statuses(desk, "stop")) == (0, [], [OrderStatus.FILLED])


async def test_a_stop_that_moves_is_cancelled_before_the_next_is_placed() -> None:
    desk = await open_at_spot()
    [trade] = desk.gate.book.trades
    await desk.gate.set_levels(trade, Decimal(49_500_000), None)
    assert protective(desk) == {"stop": (Decimal("0.03"), Decimal(49_500_000))}
    assert list_statuses(desk, "stop") == [OrderStatus.CANCELED, OrderStatus.OPEN]
    assert await desk.gate.close(None)
    assert (held(desk), protective(desk), list_statuses(desk, "exit")) == (0, {}, [OrderStatus.FILLED])


async def test_a_kill_without_a_log_frees_the_balance_and_sells() -> None:
    desk = await open_at_spot()
    assert isinstance(desk.log, FullLog)
    desk.log.full = True
    with pytest.raises(Unavailable):
        await desk.gate.kill()
    assert not await desk.paper.venue.positions()
    assert not await desk.paper.venue.open_orders()
    desk.log.full = False
    await desk.restart().advance()
    assert (held(desk), list_statuses(desk, "exit")) == (0, [OrderStatus.FILLED])
    assert desk.gate.book.closed[-1].reason is ExitReason.KILL_SWITCH
