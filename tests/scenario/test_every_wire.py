"""At every venue, over its own wire format: an entry, its stop, and the way out."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal

import pytest

from tests.wire.exchanges.desk import WireDesk
from tests.wire.exchanges.harness import WIRES, over_wire
from tests.wire.exchanges.matching import SELL, FakeAlgo
from tests.wire.exchanges.serving import DOWN
from zuno.kernel.errors import Unavailable
from zuno.markets.market import Symbol
from zuno.markets.venues import DEFAULT_VENUES
from zuno.trading.model.orders import OrderRequest, OrderSide, OrderStatus, OrderType

BTC = Symbol("BTCUSDT")
LOOK_UPS = {"BYBIT-SPOT": ("GET /v5/order/history",), "OKX-SPOT": ("GET /api/v5/trade/order-algo",)}
"""Where orders are looked for beside the first place."""
NAMES = [pytest.param(name, marks=[] if name in DEFAULT_VENUES else [pytest.mark.soak]) for name in WIRES]


def standing(desk: WireDesk) -> list[FakeAlgo]:
    return [algo for algo in desk.here.fake.engine.algos.values() if algo.status == "NEW"]


@pytest.mark.parametrize("name", NAMES)
async def test_a_position_is_protected_and_closed(name: str) -> None:
    async with over_wire(name) as here:
        desk, lot = WireDesk(here), here.fake.engine.markets[here.market].lot
        await desk.open()
        held = desk.held()
        assert 0 < held <= Decimal("0.02")
        stops = [(algo.side, algo.quantity) for algo in standing(desk) if algo.type == "STOP_MARKET"]
        assert stops == ([(SELL, held // lot * lot)] if here.exchange.holds_stops else [])
        assert len(desk.gate.book.positions) == 1
        await desk.restart()
        await desk.gate.execute(desk.closing(BTC))
        await desk.gate.advance()
        assert desk.held() < lot
        assert standing(desk) == []
        assert desk.gate.book.positions == desk.gate.troubles == {}
        assert here.fake.broker_marks == []


@pytest.mark.parametrize("name", ["BINANCE-SPOT", "BYBIT-SPOT", "OKX-SPOT"])
async def test_a_stop_stays_where_what_replaces_it_could_not_be_sent(name: str) -> None:
    """Orders cannot be looked up, and coins are not sold twice: until they can be, the stop stands."""
    async with over_wire(name) as here:
        desk = WireDesk(here)
        await desk.open()
        held, stops = desk.held(), standing(desk)
        assert stops
        for question in (here.find_name, *LOOK_UPS.get(name, ())):
            here.server.fail(question, DOWN, 10_000)
        with suppress(Unavailable):
            await desk.gate.kill()
        desk.wait(60_000)
        await desk.gate.advance()
        assert (desk.held(), standing(desk)) == (held, stops)


async def test_a_market_that_the_wire_knows_by_another_name_is_not_entered() -> None:
    """Its order would be read as another market's, and its position would stand without a stop."""
    async with over_wire("BYBIT") as here:
        order = OrderRequest(
            client_id="zuno-renamed",
            exchange=here.exchange,
            symbol=Symbol("bybit:BTC/USDT:USDT"),
            side=OrderSide.BUY,
            type=OrderType.MARKET,
            quantity=Decimal("0.01"),
        )
        assert (await here.venue.place(order)).status is OrderStatus.REJECTED
        assert await here.venue.positions() == ()
