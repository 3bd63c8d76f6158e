"""Two sleeves at one perpetual of each exchange, over its own wire: what happens while the desk is away takes no
sleeve's coins for another's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from decimal import Decimal
from typing import Any

import pytest

from tests.wire.exchanges.desk import ACCOUNT, WireDesk
from tests.wire.exchanges.harness import over_wire
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.trading.execute.targets import TargetPosition, TargetState
from zuno.trading.model.known import Known
from zuno.trading.model.market import Side
from zuno.trading.model.sleeves import DEBATE, LP_HEDGE, TREND
from zuno.trading.model.trade_events import AccountOpened, SleeveTransferred

D = Decimal
BTC = Symbol("BTCUSDT")


@pytest.fixture(params=["BINANCE", "BYBIT", "OKX", "HYPERLIQUID"])
async def desk(request: pytest.FixtureRequest) -> AsyncIterator[WireDesk]:
    async with over_wire(request.param) as here:
        venue, cash = here.venue.exchange, here.fake.engine.cash

        async def read_rates() -> Mapping[str, Known[Decimal]]:
            return {venue.currency: D(1)}

        desk = WireDesk(here, options={"rates": read_rates})
        given = [
            SleeveTransferred(
                at=Millis(0), key=f"give-{name}", source=DEBATE, target=name, currency=venue.currency, amount=cash / 3
            )
            for name in (TREND, LP_HEDGE)
        ]
        await desk.log.append(ACCOUNT, [AccountOpened(at=Millis(0), cash={venue: cash}), *given], 0)
        yield desk


async def take(desk: WireDesk, quantity: str, sleeve: str) -> TargetState:
    apart: dict[str, Any] = {"stop_distance": None} if sleeve == LP_HEDGE else {}
    target = TargetPosition(desk.here.venue.exchange, BTC, D(quantity), at_once=True, **apart)
    return (await desk.gate.set_targets({sleeve: [target]}, Millis(desk.here.fake.clock.now()), "req_1"))[0].state


async def leave_alone(desk: WireDesk, *parts: str) -> None:
    """The market goes to these parts of its price, and a desk comes back then."""
    for part in parts:
        price = desk.here.price * D(part) // desk.here.tick * desk.here.tick
        await desk.here.move(price, mark=price)
        desk.wait(60_000)
    await desk.restart()
    for _ in range(3):
        await desk.gate.advance()
        desk.wait(20_000)


def booked(desk: WireDesk) -> dict[str, Decimal]:
    return {trade.sleeve: trade.signed for trade in desk.gate.book.positions.values()}


async def test_the_debates_stop_takes_its_own_coins_alone(desk: WireDesk) -> None:
    assert await take(desk, "0.012", TREND) == "done"
    assert await desk.open(quantity=0.008) == "open"
    await leave_alone(desk, "1.05", "0.97")  # beyond its target, later beyond its stop
    assert booked(desk) == {TREND: D("0.012")}
    assert desk.held() == D("0.012")
    assert not desk.gate.book.locks


async def test_a_hedge_is_as_much_as_it_says(desk: WireDesk) -> None:
    assert await take(desk, "-0.012", LP_HEDGE) == "done"
    assert await desk.open(quantity=0.008, side=Side.SHORT) == "open"
    await leave_alone(desk, "0.95", "1.03")
    assert booked(desk) == {LP_HEDGE: D("-0.012")}
    assert desk.held() == D("-0.012")
    assert await take(desk, "-0.012", LP_HEDGE) == "held"
    assert not desk.gate.book.locks
