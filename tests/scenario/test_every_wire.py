"""At every venue, over its own wire format: an entry, its stop, and the way out."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.wire.exchanges.desk import WireDesk
from tests.wire.exchanges.harness import WIRES, over_wire
from tests.wire.exchanges.matching import SELL, FakeAlgo
from zuno.markets.market import Symbol
from zuno.markets.venues import DEFAULT_VENUES

BTC = Symbol("BTCUSDT")
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
